"""The ledger's schema as ordered steps, one file `NNNN_what.py` each with an `upgrade(connection)`.

A step that was released is never edited: the next change is the next file. Steps describe their tables themselves and
do not import `tables.py`, which moves on.
"""
