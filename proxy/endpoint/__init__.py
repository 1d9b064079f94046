"""proxy endpoint."""
