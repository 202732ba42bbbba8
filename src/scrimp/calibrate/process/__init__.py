"""Measured runs of our own trainer on CPUs: rows as cases, grades."""
