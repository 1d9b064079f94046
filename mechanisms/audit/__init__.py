"""mechanisms audit."""
