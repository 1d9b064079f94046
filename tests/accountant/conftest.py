"""A real PostgreSQL for the ledger, and the same tests over both stores."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from accountant.ledger import Ledger


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture(scope="session")
def new_database(postgres_url: str) -> Callable[[], str]:
    """Makes an empty database and gives its SQLAlchemy URL."""
    numbers = count()

    def create() -> str:
        name = f"ledger_{os.getpid()}_{next(numbers)}"
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        parts = conninfo_to_dict(postgres_url)
        query = "&".join(f"{key}={value}" for key, value in parts.items() if key not in ("dbname",))
        return f"postgresql:///{name}?{query}"

    return create


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty place for a ledger."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/ledger.db"
        return
    create: Callable[[], str] = request.getfixturevalue("new_database")
    url = create()
    yield url
    name = str(sa.make_url(url).database)
    with psycopg.connect(request.getfixturevalue("postgres_url"), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    with Ledger.open(ledger_url, clock=now) as opened:
        yield opened
