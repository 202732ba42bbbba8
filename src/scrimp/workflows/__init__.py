"""One function per verb, the Python API: the only place where rooms meet."""
