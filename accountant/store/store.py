"""The ledger's storage, and the accountant's only I/O: SQLite in WAL mode, or PostgreSQL.

Guarantee: inside `writing()` one writer at a time, over all threads, processes and machines, sees every event
committed so far; when the block ends without an error, what it appended survives the death of process and machine.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event as engine_event
from sqlalchemy.exc import SQLAlchemyError

from accountant.errors import LedgerUnavailable
from accountant.store import tables
from accountant.store.domain_cache import DomainCache
from accountant.store.private_files import make_private_file
from accountant.store.schema import migrate
from accountant.store.transaction import Transaction

# how long a question waits for the writer before it against how soon a writer that hangs is told of; set, not measured
LOCK_TIMEOUT_MS = 30_000
# the same for a PostgreSQL that does not answer at all
CONNECT_TIMEOUT_S = 10


class LedgerStore:
    """An open database that holds one ledger."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._cache = DomainCache()

    @classmethod
    def open(cls, url: str) -> "LedgerStore":
        """Open or create the ledger at an SQLAlchemy URL and bring its schema up to date.

        `postgresql://` is read as `postgresql+psycopg://`. Raises `LedgerUnavailable`; never shows the URL, which may
        hold a password.
        """
        with _translated():
            engine = _engine(url)
            try:
                migrate(engine)
            except BaseException:
                engine.dispose()
                raise
        return cls(engine)

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def check_room(self, *, room_bytes: int) -> None:
        """Look whether a SQLite file could grow by so much on its disk. Raises `LedgerUnavailable`."""
        file = self._engine.url.database
        if self._engine.dialect.name == "sqlite" and file and file != ":memory:":
            with suppress(OSError):
                if shutil.disk_usage(Path(file).parent).free < room_bytes:
                    raise LedgerUnavailable("the disk is full")

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """One serialised transaction; durable when the block ends, undone when it raises."""
        with _translated(), self._engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("SET LOCAL synchronous_commit = on"))
                connection.execute(sa.text(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}"))
                connection.execute(sa.text(f"SET LOCAL idle_in_transaction_session_timeout = {LOCK_TIMEOUT_MS}"))
                connection.execute(sa.select(tables.WRITER.c.id).with_for_update()).one()
            yield Transaction(connection, self._cache)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """One read-only look at what is committed at one moment; waits for nobody."""
        with _translated(), self._engine.connect() as connection:
            connection.execution_options(keyhole_begin="BEGIN")
            if connection.dialect.name == "postgresql":
                # SQLite's readers have one snapshot anyway
                connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield Transaction(connection, self._cache)


def _engine(url: str) -> sa.Engine:
    parsed = sa.make_url(url)
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() == "postgresql":
        return sa.create_engine(
            parsed,
            # the queue is a row lock: only READ COMMITTED sees what was committed while waiting for it
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,
            connect_args={"connect_timeout": CONNECT_TIMEOUT_S},
        )
    if parsed.get_backend_name() != "sqlite":
        raise LedgerUnavailable(f"a ledger lives in SQLite or PostgreSQL, not in {parsed.get_backend_name()}")
    if not parsed.database or parsed.database == ":memory:" or "mode" in parsed.query:
        raise LedgerUnavailable("a ledger in memory would forget what was spent")
    if not parsed.database.startswith("file:"):
        make_private_file(Path(parsed.database))
    engine = sa.create_engine(parsed, connect_args={"timeout": LOCK_TIMEOUT_MS / 1000})
    engine_event.listen(engine, "connect", _prepare_sqlite)
    engine_event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(dbapi_connection: Any, _: object) -> None:
    dbapi_connection.isolation_level = None  # the driver begins nothing by itself
    for pragma in (
        f"busy_timeout = {LOCK_TIMEOUT_MS}",
        "journal_mode = WAL",
        "synchronous = FULL",
        "fullfsync = ON",
        "foreign_keys = ON",
    ):
        dbapi_connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: sa.Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("keyhole_begin", "BEGIN IMMEDIATE"))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, OSError, UnicodeDecodeError) as error:
        # the last where a text in SQLite is none. The driver's text may hold the address or statement values: only its
        # kind is passed on
        raise LedgerUnavailable(f"the ledger's storage failed ({type(error).__name__})") from error
