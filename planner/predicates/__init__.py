"""planner predicates."""
