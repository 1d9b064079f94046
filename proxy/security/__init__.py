"""proxy security."""
