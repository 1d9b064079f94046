"""planner parser."""
