"""Time: how long a job takes, from arithmetic and a roofline per device class."""
