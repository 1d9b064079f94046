"""planner scope."""
