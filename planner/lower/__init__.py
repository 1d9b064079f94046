"""planner lower."""
