"""proxy process."""
