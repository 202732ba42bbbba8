"""Data sets to token batches: read, recognise, encode, profile, batch."""
