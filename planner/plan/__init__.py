"""planner plan."""
