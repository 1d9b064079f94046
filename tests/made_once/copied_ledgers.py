"""The tables of a new ledger, made by the migrations once in each process that tests, and by their own SQL after that,
which takes a third of the processor. What Keyhole's processes open, and ledgers of an older schema, are migrated as
ever."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from accountant.store import schema, store
from accountant.store.deadline import limit_waits

_LONGEST_S = 600.0
_migrate = schema._upgrade_schema
_make_engine = store._make_engine
_postgres_script: list[str] = []


@contextmanager
def copied_ledgers() -> Iterator[None]:
    """While the block runs, new ledgers of this process are made so."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(schema, "_upgrade_schema", _make_tables)
        patched.setattr(store, "_make_engine", _make_engine_that_compiles_once)
        yield


def _make_engine_that_compiles_once(url: str, *, timeout_ms: int, can_create: bool) -> sa.Engine:
    """`_make_engine` of the store. SQLAlchemy keeps the texts of statements by engine and dialect, and would write all
    of them anew for each ledger."""
    engine = _make_engine(url, timeout_ms=timeout_ms, can_create=can_create)
    if engine.dialect.name == "sqlite":
        known = _known_sqlite()
        assert type(engine.dialect) is type(known.dialect)
        engine.dialect = engine.pool._dialect = known.dialect
        engine._compiled_cache = known._compiled_cache
    return engine


@cache
def _known_sqlite() -> sa.Engine:
    """Return an engine whose dialect has seen a connection."""
    engine = sa.create_engine("sqlite://")
    engine.connect().close()
    return engine


def _make_tables(engine: sa.Engine) -> None:
    """`_upgrade` of the schema; in one transaction, as there, so that of two who make a ledger one finds it made."""
    if engine.dialect.name == "sqlite":
        with engine.begin() as connection:
            if not connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar():
                for statement in _statements():
                    connection.exec_driver_sql(statement)
                return
    elif engine.dialect.name == "postgresql" and _made_in_postgres(engine):
        return
    _migrate(engine)


def _made_in_postgres(engine: sa.Engine) -> bool:
    """Make the tables in an empty database, and return True; False if it is not empty."""
    with limit_waits(_LONGEST_S), engine.begin() as connection:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(schema.MIGRATION_LOCK)))
        there = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        if connection.exec_driver_sql(there).scalar():
            return False
        if _postgres_script:
            # many statements in one request, which sqlalchemy would prepare
            connection.connection.cursor().execute(_postgres_script[0])
            return True
    with _recorded(engine) as statements:
        _migrate(engine)
    _postgres_script.append(";\n".join(statements))
    return True


@contextmanager
def _recorded(engine: sa.Engine) -> Iterator[list[str]]:
    """Note the statements that change anything, with their arguments in them."""
    statements: list[str] = []

    def note(connection: sa.Connection, cursor: Any, statement: str, arguments: Any, *_: object) -> None:
        if not statement.lstrip().upper().startswith("SELECT"):
            statements.append(psycopg.ClientCursor(cursor.connection).mogrify(statement, arguments))

    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)


@cache
def _statements() -> tuple[str, ...]:
    """Return the statements that make the tables, indexes, triggers and first rows of a migrated ledger."""
    with tempfile.TemporaryDirectory(prefix="keyhole-") as folder:
        file = Path(folder) / "ledger.db"
        engine = sa.create_engine(f"sqlite:///{file}")
        _migrate(engine)
        engine.dispose()
        with closing(sqlite3.connect(file)) as migrated:
            return tuple(one for one in migrated.iterdump() if one not in ("BEGIN TRANSACTION;", "COMMIT;"))
