"""planner statements."""
