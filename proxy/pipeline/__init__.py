"""proxy pipeline."""
