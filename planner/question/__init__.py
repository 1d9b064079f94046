"""planner question."""
