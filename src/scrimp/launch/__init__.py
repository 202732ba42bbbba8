"""Puts a job on a machine through an engine."""
