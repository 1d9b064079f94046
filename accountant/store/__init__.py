"""accountant store."""
