"""One file per engine; the file name is the name users type."""
