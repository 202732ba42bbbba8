"""Measured runs, the forecasts graded on them, and the doubt that follows from it."""
