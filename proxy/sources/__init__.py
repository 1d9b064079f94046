"""proxy sources."""
