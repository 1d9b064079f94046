"""The shadow: a real, data-free PostgreSQL behind every session."""
