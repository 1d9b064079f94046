"""planner values."""
