"""proxy observe."""
