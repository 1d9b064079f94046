"""The sample source of docker-compose.yml: the demo's sales in PostgreSQL.

May import: `deploy.demo`, `proxy.sources`.
Read first: `load.py`.
"""
