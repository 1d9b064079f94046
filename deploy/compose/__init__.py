"""The sample source of docker-compose.yml: the demo's sales in PostgreSQL."""
