"""planner catalog."""
