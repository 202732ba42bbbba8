"""What this machine can do for scrimp, and what is missing: the checks behind `scrimp doctor`."""
