"""Measured memory: rows as cases, the fit of figures, forecasts of tables, grades."""
