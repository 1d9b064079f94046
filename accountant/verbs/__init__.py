"""accountant verbs."""
