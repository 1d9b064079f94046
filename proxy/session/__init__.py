"""proxy session."""
