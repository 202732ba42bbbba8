"""Memory: what a recipe needs on a card, phase by phase, or of the process on a CPU."""
