"""planner bind."""
