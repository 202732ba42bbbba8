"""The checks of `scrimp doctor`, one file for each kind; `probes.py` is what reads the outside."""
