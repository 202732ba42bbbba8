"""Measured speed: rows as cases, the fit of the roofline, forecasts of tables, grades."""
