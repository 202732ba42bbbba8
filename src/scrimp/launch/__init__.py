"""Puts a job on a machine through an engine, follows it to its end, and never leaves it behind.

`engine.py` says what every engine answers, `engines/` holds one file each, `attend.py` is the loop that watches a
started job: events out, signals in.
"""
