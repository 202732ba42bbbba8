"""The append-only record of money and runs."""
