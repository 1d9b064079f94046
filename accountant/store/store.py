"""The ledger's storage, and the accountant's only I/O: SQLite in WAL mode, or PostgreSQL.

Guarantee: inside `begin_write()` there is one writer at a time, over all threads, processes and machines. It sees every
event committed so far. When the block ends without an error, its events survive the death of process and machine.
Proof: docs/proofs/accounting.md, theorem 5.
"""

import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event as engine_event

from accountant.errors import LedgerUnavailable, NoLedger, StorageFull
from accountant.storage_failures import explain_failures
from accountant.store import ledger_tables
from accountant.store.deadline import Deadline, limit_server_waits
from accountant.store.domain_cache import DomainCache
from accountant.store.file_calls import TimedConnection
from accountant.store.held_file import HeldFile
from accountant.store.private_files import make_private_file
from accountant.store.schema import VERSION_TABLE, has_ledger_tables, retry_while_locked, run_migrations
from accountant.store.transaction import Transaction

if TYPE_CHECKING:
    from accountant.store.punctual import PunctualConnection

# for whoever has no policy that says so: how long a question waits for the writers before it against how soon a ledger
# that hangs is told of; set, not measured
TIMEOUT_MS = 30_000
# the most for a PostgreSQL that takes no connection
CONNECT_TIMEOUT_S = 10


class LedgerStore:
    """An open database that holds one ledger.

    `timeout_ms` limits three waits: for a connection, of a writer for other writers, and for each answer of the server.
    `held` is the file of an SQLite ledger.
    """

    def __init__(self, engine: sa.Engine, *, timeout_ms: int, held: HeldFile | None = None) -> None:
        self._engine = engine
        self._timeout_ms = timeout_ms
        self._held = held
        self._cache = DomainCache()

    @classmethod
    def open(cls, url: str, *, timeout_ms: int = TIMEOUT_MS, can_create: bool = True) -> "LedgerStore":
        """Open the ledger at an SQLAlchemy URL and bring its schema up to date. If `can_create`, make a missing one.

        `postgresql://` means `postgresql+psycopg://`. Raise `NoLedger`, `LedgerUnavailable`. Messages never contain the
        URL, which may hold a password.
        """
        with explain_failures(), ExitStack() as undo:
            engine = _make_engine(url, timeout_ms=timeout_ms, can_create=can_create)
            undo.callback(engine.dispose)
            held = None
            if (path := find_sqlite_file(engine.url)) is not None:
                held = retry_while_locked(HeldFile)(engine, path)
                undo.callback(held.close)
            if not can_create and not has_ledger_tables(engine):
                raise NoLedger("there is no ledger at that address")
            run_migrations(engine)
            undo.pop_all()
        return cls(engine, timeout_ms=timeout_ms, held=held)

    def make_deadline(self) -> Deadline:
        """Return the deadline for all waits of a caller that comes now."""
        return Deadline(self._timeout_ms)

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()
        if self._held is not None:
            self._held.close()

    def check_room(self, *, room_bytes: int) -> None:
        """Check that an SQLite file can grow by `room_bytes` on its disk. Raise `LedgerUnavailable` if it cannot."""
        file = self._engine.url.database
        if self._engine.dialect.name == "sqlite" and file and file != ":memory:":
            with suppress(OSError):
                if shutil.disk_usage(Path(file).parent).free < room_bytes:
                    raise StorageFull("the disk is full, or nearly")

    @contextmanager
    def begin_write(self, deadline: Deadline) -> Iterator[Transaction]:
        """Open one serialised transaction. It is durable when the block ends, and undone if the block raises.

        Raise `LedgerUnavailable` by the deadline if it cannot begin. Raise it later if it is unknown whether the
        transaction became durable: the server did not answer the COMMIT, or the file is no longer at its path.
        """
        with explain_failures(), ExitStack() as open_:
            open_.callback(self._check_file_held)  # last of all: what was written must be where the next opener looks
            self._check_file_held()
            with limit_server_waits(deadline.moment):
                connection = open_.enter_context(self._engine.connect())
                connection.execution_options(keyhole_deadline=deadline)
                open_.enter_context(connection.begin())
                if connection.dialect.name == "postgresql":
                    connection.execute(sa.text("SET LOCAL synchronous_commit = on"))
                    connection.execute(sa.text(f"SET LOCAL lock_timeout = {deadline.left_ms}"))
                    connection.execute(sa.text(f"SET LOCAL idle_in_transaction_session_timeout = {self._timeout_ms}"))
                    connection.execute(sa.select(ledger_tables.WRITER.c.id).with_for_update()).one()
            yield Transaction(connection, self._cache)

    @contextmanager
    def begin_read(self, deadline: Deadline) -> Iterator[Transaction]:
        """Open a read-only view of all committed events at one moment.

        It waits for no writer. Raise `LedgerUnavailable` if it cannot be read.
        """
        with explain_failures(), ExitStack() as open_:
            self._check_file_held()
            with limit_server_waits(deadline.moment):
                connection = open_.enter_context(self._engine.connect())
                connection.execution_options(keyhole_begin="BEGIN", keyhole_deadline=deadline)
                if connection.dialect.name == "postgresql":
                    # SQLite's readers have one snapshot anyway
                    connection.execution_options(isolation_level="REPEATABLE READ")
                open_.enter_context(connection.begin())
            yield Transaction(connection, self._cache)

    def _check_file_held(self) -> None:
        if self._held is not None:
            self._held.check_file_unchanged()


def _make_engine(url: str, *, timeout_ms: int, can_create: bool) -> sa.Engine:
    parsed = sa.make_url(url)
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() == "postgresql":
        engine = sa.create_engine(
            parsed,
            # the queue is a row lock: only READ COMMITTED sees what was committed while waiting for it
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,
            pool_timeout=timeout_ms / 1000,
            connect_args={"connect_timeout": min(CONNECT_TIMEOUT_S, math.ceil(timeout_ms / 1000))},
        )
        engine_event.listen(engine, "do_connect", partial(_connect_with_deadline, timeout_ms=timeout_ms))
        return engine
    if parsed.get_backend_name() != "sqlite":
        raise LedgerUnavailable(f"a ledger lives in SQLite or PostgreSQL, not in {parsed.get_backend_name()}")
    if not parsed.database or parsed.database == ":memory:" or "mode" in parsed.query:
        raise LedgerUnavailable("a ledger in memory would forget what was spent")
    path = find_sqlite_file(parsed)
    if path is not None and can_create:
        make_private_file(path)
    elif path is not None and not path.exists():
        raise NoLedger(f"there is no ledger: {path.name} does not exist")
    engine = sa.create_engine(
        parsed,
        pool_timeout=timeout_ms / 1000,
        connect_args={"timeout": timeout_ms / 1000, "factory": TimedConnection},
    )
    engine_event.listen(engine, "connect", _prepare_sqlite)
    engine_event.listen(engine, "begin", partial(_begin_sqlite, timeout_ms=timeout_ms))
    return engine


def find_sqlite_file(url: sa.URL) -> Path | None:
    """Return the file of a ledger in SQLite.

    Return None if its name is one of SQLite's own URIs, whose file is not locked.
    """
    if url.get_backend_name() != "sqlite" or not url.database or url.database.startswith("file:"):
        return None
    return Path(url.database).absolute()


def _connect_with_deadline(
    dialect: object,  # noqa: ARG001
    record: object,  # noqa: ARG001
    arguments: Sequence[str],
    named: Mapping[str, Any],
    *,
    timeout_ms: int,
) -> "PunctualConnection":
    from accountant.store.pinned_session import pin_ledger_session
    from accountant.store.punctual import PunctualConnection

    connection = PunctualConnection.connect(*arguments, **named)
    connection.longest_s = timeout_ms / 1000
    connection.autocommit = True
    try:
        pin_ledger_session(connection, table=VERSION_TABLE)
    except BaseException:
        connection.close()
        raise
    connection.autocommit = False
    connection.deferrable = False
    return connection


def _prepare_sqlite(dbapi_connection: Any, _: object) -> None:
    dbapi_connection.isolation_level = None  # the driver begins nothing by itself
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON", "foreign_keys = ON"):
        dbapi_connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: sa.Connection, *, timeout_ms: int) -> None:
    options = connection.get_execution_options()
    deadline = options.get("keyhole_deadline") or Deadline(timeout_ms)
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {deadline.left_ms}")
    connection.exec_driver_sql("PRAGMA shrink_memory")  # pages are read from the file, not as they are remembered
    connection.exec_driver_sql(options.get("keyhole_begin", "BEGIN IMMEDIATE"))
