"""The training loop and its exact resume: what a rented machine runs."""
