"""planner extract."""
