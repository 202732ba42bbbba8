"""YAML and overrides to JobSpec, and nouns to files and back."""
