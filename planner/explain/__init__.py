"""planner explain."""
