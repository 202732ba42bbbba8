"""One real training step under fake tensors: its memory, without weights and without a GPU."""
