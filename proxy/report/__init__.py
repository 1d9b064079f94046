"""proxy report."""
