"""One self-contained HTML file per run."""
