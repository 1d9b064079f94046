"""planner functionals."""
