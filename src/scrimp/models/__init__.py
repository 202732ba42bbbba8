"""A model's name to its folder, tokenizer files and shape."""
