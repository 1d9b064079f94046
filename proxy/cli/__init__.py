"""proxy cli."""
