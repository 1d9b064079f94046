"""proxy concurrency."""
