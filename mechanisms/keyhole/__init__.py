"""mechanisms keyhole."""
