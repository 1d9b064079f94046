"""A PostgreSQL database that nobody reaches for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql


@contextmanager
def outage(server_url: str, database: str) -> Iterator[None]:
    """Every connection to the database is cut, and no new one is let in, while the block runs."""
    allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    with psycopg.connect(server_url, autocommit=True) as owner:
        owner.execute(allow.format(sql.Identifier(database), sql.SQL("false")))
        owner.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", [database])
        try:
            yield
        finally:
            owner.execute(allow.format(sql.Identifier(database), sql.SQL("true")))
