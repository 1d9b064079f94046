"""PostgreSQL's rollups: unlogged tables in the owner's scratch schema, or temporary tables of one connection.

All are made by one connection outside the pool. Tables in the scratch schema are named after it, so that the next
process recognises and drops the tables of a crashed one.
"""

import itertools
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import psycopg

from accountant.store.pinned_session import pin_settings
from planner.question.plan import Rollup
from planner.values.sql_literals import quote_name
from proxy.sources.connecting import OPENING_S, SourceConnection, limit_statements
from proxy.sources.pinned_relations import PostgresPins
from proxy.sources.postgres_relations import check_keys_stay_unique, check_locked_types
from proxy.sources.rollups import RollupBusy, RollupTooLarge, limit_rows

_PREFIX = "keyhole_rollup"
_STATEMENTS = 3  # that make a rollup: the table, its index, its statistics
_CANCELLED_S = 5.0  # for a request to cancel: a server that hangs does not hold up who wants to stop
_SESSION = """
SELECT pid || '_' || cast(extract(epoch FROM backend_start) * 1000000 AS bigint)
FROM pg_stat_activity WHERE pid = pg_backend_pid()
"""
_LEFT_BEHIND = """
SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname LIKE 'keyhole\\_rollup\\_%%'
  AND c.relkind = 'r' AND c.relowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)
  AND NOT EXISTS (
    SELECT FROM pg_stat_activity
    WHERE starts_with(
      c.relname, 'keyhole_rollup_' || pid || '_' || cast(extract(epoch FROM backend_start) * 1000000 AS bigint) || '_'
    )
  )
"""


class PostgresStore:
    """The store of one PostgreSQL source's rollups, as tables in that database.

    Parameters:
        url: a libpq connection string.
        scratch: the schema in which the role may create tables; None for temporary tables.
        settings: the session's settings, as for the connections of questions.
        pins: sends pinned rows with a statement.
        most_rows: the largest number of rows of a rollup.
    """

    def __init__(
        self, url: str, *, scratch: str | None, settings: Mapping[str, str], pins: PostgresPins, most_rows: int
    ) -> None:
        self._url = url
        self._scratch = scratch
        self._settings = {**settings, "default_transaction_read_only": "off"}
        self._pins = pins
        self._most_rows = most_rows
        self._numbers = itertools.count()
        self._held = threading.Lock()
        self._connection: SourceConnection | None = None
        self._session = ""

    def build(self, rollup: Rollup, *, kept: Mapping[str, str], timeout_ms: int) -> str:
        """Store a rollup as an indexed and analysed table, and return the table's name.

        Raise `RollupTooLarge` and `TypesChanged`.
        """
        with self._held:
            connection = self._open()
            with (
                limit_statements(after_ms=_STATEMENTS * timeout_ms),
                connection.transaction(),
                check_keys_stay_unique(rollup.relations, connection),
            ):
                connection.execute("SELECT set_config('statement_timeout', %s, true)", (str(timeout_ms),))
                relation = self._make_name()
                kind = "TEMPORARY" if self._scratch is None else "UNLOGGED"
                head = f"CREATE {kind} TABLE {relation} AS\n"
                build = limit_rows(rollup.write_build(kept), self._most_rows)
                with self._pins.run(connection, build, rollup.pinned_relations, head=head) as cursor:
                    if cursor.rowcount > self._most_rows:
                        raise RollupTooLarge  # which rolls the table back
                check_locked_types(rollup.relations, connection)
                if rollup.indexed_column is not None:
                    _run(connection, f"CREATE INDEX ON {relation} ({quote_name(rollup.indexed_column)})")
                _run(connection, f"ANALYZE {relation}")
            return relation

    @contextmanager
    def borrow_connection(self, *, timeout_ms: int) -> Iterator[SourceConnection]:
        """Lend the connection that sees temporary rollups. Raise `RollupBusy` if another thread uses it."""
        if not self._held.acquire(blocking=False):
            raise RollupBusy
        try:
            if self._connection is None:
                raise RollupBusy
            with limit_statements(after_ms=timeout_ms), self._connection.transaction():
                self._connection.execute("SET TRANSACTION READ ONLY")
                self._connection.execute("SELECT set_config('statement_timeout', %s, true)", (str(timeout_ms),))
                yield self._connection
        finally:
            self._held.release()

    @property
    def is_temporary(self) -> bool:
        """Return True if rollups are temporary tables, which only the connection of `borrow_connection` sees."""
        return self._scratch is None

    def drop(self, relation: str) -> None:
        """Drop a rollup's table once no statement reads it."""
        with self._held:
            _run(self._open(), f"DROP TABLE IF EXISTS {relation}")

    def cancel(self) -> None:
        """Cancel the statement that builds a rollup."""
        connection = self._connection
        if connection is not None:
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=_CANCELLED_S)

    def close(self) -> None:
        """Drop this connection's rollups, and close the connection."""
        with self._held:
            if self._connection is None:
                return
            try:
                for relation in self._list_own_tables():
                    _run(self._connection, f"DROP TABLE IF EXISTS {relation}")
            finally:
                self._connection.close()
                self._connection = None

    def _open(self) -> SourceConnection:
        if self._connection is None or self._connection.closed:
            connection = SourceConnection.connect(self._url, autocommit=True, connect_timeout=OPENING_S)
            connection.prepare_threshold = None
            pin_settings(connection, self._settings)
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            connection.deferrable = False
            self._session = connection.execute(_SESSION).fetchall()[0][0]
            self._connection = connection
            for relation in self._list_abandoned_tables():
                _run(connection, f"DROP TABLE IF EXISTS {relation}")
        return self._connection

    def _make_name(self) -> str:
        name = quote_name(f"{_PREFIX}_{self._session}_{next(self._numbers)}")
        return name if self._scratch is None else f"{quote_name(self._scratch)}.{name}"

    def _list_abandoned_tables(self) -> list[str]:
        if self._scratch is None or self._connection is None:
            return []
        return [name for (name,) in self._connection.execute(_LEFT_BEHIND, (self._scratch,))]

    def _list_own_tables(self) -> list[str]:
        if self._scratch is None or self._connection is None:
            return []
        found = self._connection.execute(
            "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables "
            "WHERE schemaname = %s AND starts_with(tablename, %s)",
            (self._scratch, f"{_PREFIX}_{self._session}_"),
        )
        return [name for (name,) in found]


def _run(connection: SourceConnection, sql: str) -> int:
    """Run a statement, and return the number of rows that it wrote."""
    with connection.cursor() as cursor:
        return cursor.execute(sql).rowcount
