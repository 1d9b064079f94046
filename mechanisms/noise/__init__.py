"""mechanisms noise."""
