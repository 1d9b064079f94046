"""accountant events."""
