"""Pure formulas: memory, time, money, energy, each an Estimate with an interval."""
