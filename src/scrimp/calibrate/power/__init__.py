"""Measured power of nodes: grades."""
