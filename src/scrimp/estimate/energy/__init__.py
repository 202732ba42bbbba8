"""Electricity at the wall and its carbon: what a node draws, for how long, and how the grid of its place counts it."""
