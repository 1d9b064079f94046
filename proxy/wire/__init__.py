"""PostgreSQL's protocol 3.0 without any I/O: bytes in give messages, messages give bytes."""
