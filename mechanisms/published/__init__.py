"""mechanisms published."""
