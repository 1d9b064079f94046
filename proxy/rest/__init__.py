"""proxy rest."""
