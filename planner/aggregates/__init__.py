"""planner aggregates."""
