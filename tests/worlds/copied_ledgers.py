"""The tables of a new SQLite ledger, made by the migrations once in each process that tests, and by their own SQL after
that, which takes a third of the processor. What Keyhole's processes open, and ledgers in PostgreSQL or of an older
schema, are migrated as ever."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

import pytest
import sqlalchemy as sa

from accountant.store import schema

_migrate = schema._upgrade


@contextmanager
def copied_ledgers() -> Iterator[None]:
    """While the block runs, new ledgers of this process are made so."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(schema, "_upgrade", _make_tables)
        yield


def _make_tables(engine: sa.Engine) -> None:
    """`_upgrade` of the schema; in one transaction, as there, so that of two who make a ledger one finds it made."""
    if engine.dialect.name == "sqlite":
        with engine.begin() as connection:
            if not connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar():
                for statement in _statements():
                    connection.exec_driver_sql(statement)
                return
    _migrate(engine)


@cache
def _statements() -> tuple[str, ...]:
    """What makes the tables, indexes, triggers and first rows of a ledger that was migrated."""
    with tempfile.TemporaryDirectory(prefix="keyhole-") as folder:
        file = Path(folder) / "ledger.db"
        engine = sa.create_engine(f"sqlite:///{file}")
        _migrate(engine)
        engine.dispose()
        with closing(sqlite3.connect(file)) as migrated:
            return tuple(one for one in migrated.iterdump() if one not in ("BEGIN TRANSACTION;", "COMMIT;"))
