"""mechanisms threshold."""
