"""planner policy."""
