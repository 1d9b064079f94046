"""PostgreSQL as a source: a small pool of read-only connections. No analyst can change their settings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import numpy as np
import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from accountant.store.deadline import limit_waits
from accountant.store.pinned_session import pin_settings
from mechanisms.formula import Integers
from planner.catalog.key_space import KeySpace
from planner.catalog.relation_names import RelationIdentity
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.postgres import POSTGRES
from planner.policy.compile import SourceColumn
from planner.question.plan import PinnedRelation, ReadRelation, Rewritten
from proxy.concurrency.fair_queue import FairTurns
from proxy.sources.alignment import write_groups
from proxy.sources.connecting import (
    OPENING_S,
    SourceConnection,
    find_connection_error,
    limit_statements,
    try_connecting,
)
from proxy.sources.failures import refuse_without_turn
from proxy.sources.pinned_relations import PostgresPins
from proxy.sources.postgres_relations import (
    RELATION,
    STATE,
    check_keys_stay_unique,
    check_locked_types,
    make_identity,
    read_columns,
)
from proxy.sources.postgres_rollups import PostgresStore
from proxy.sources.protocol import Counts, Row, TrueAggregates, hide_failures, hide_shape_failures, sort_counts
from proxy.sources.public_tables import read_public_rows
from proxy.sources.rollups import MOST_ROWS, Rollups, SourceStatement
from proxy.sources.source_refusals import report_missing_grant, report_unreachable_source

_SETTINGS = {
    "search_path": "public",
    "default_transaction_read_only": "on",
    "row_security": "on",  # a policy of rows holds for the reader, as its owner means it
}
"""On top of what every session has."""
_OPENING_S = float(OPENING_S)
_CHECK_S = 2.0  # for a connection that was idle to say that it lives: less than a question waits for one that does
# The pool's pauses double: after a minute without the source it would not see for another one that it is back. Having
# given up it tries at once for whoever comes.
_RECONNECT_S = 1.0
_ROWS_S = 600.0  # for all rows of a public table, which the owner waits for
_STATE_TIMEOUT_MS = "2000"  # a load may hold its lock for hours, and this one has a connection that questions want
_IDLE_S = 10.0
"""After each such time without need one connection is given back: after a busy hour all but one within two minutes."""

_RELATIONS = """
SELECT CASE WHEN n.nspname = 'public' THEN '' ELSE quote_ident(n.nspname) || '.' END || quote_ident(c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
  AND c.relname NOT LIKE 'keyhole\\_rollup\\_%'  -- those that Keyhole keeps itself
  AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
  AND NOT EXISTS (  -- a partition is a part of its table
    SELECT FROM pg_partition_ancestors(c.oid) AS a JOIN pg_class AS p ON p.oid = a.relid
    WHERE p.oid <> c.oid AND has_schema_privilege(p.relnamespace, 'USAGE') AND has_table_privilege(p.oid, 'SELECT')
  )
ORDER BY n.nspname, c.relname
"""

# memory against turns with the server: some three hundred bytes a row while it is in Python's hands; set, not measured
ROWS_AT_ONCE = 1 << 15


class PostgresSource:
    """A PostgreSQL database, or one with the same protocol, read through a role that may only read.

    Parameters:
        url: a libpq connection string.
        connections: the largest number of connections.
        settings: the owner's server settings in addition to Keyhole's own, such as `jit` and `work_mem`.
        rollups: the largest number of rollups.
        rollup_rows: the largest number of rows of each.
        scratch: the schema in which they are kept; None for temporary tables.
        rows_at_once: the number of groups that are fetched at a time.

    Raises:
        KeyholeError: KH008 when the database cannot be reached.
    """

    dialect: Dialect = POSTGRES

    def __init__(
        self,
        url: str,
        *,
        connections: int,
        settings: Mapping[str, str],
        rollups: int = 0,
        rollup_rows: int = MOST_ROWS,
        scratch: str | None = None,
        rows_at_once: int = ROWS_AT_ONCE,
    ) -> None:
        self._settings = {**_SETTINGS, **settings}
        self._turns = FairTurns(connections)
        self._url = url
        try_connecting(url)
        self._pool: ConnectionPool[SourceConnection] = ConnectionPool(
            url,
            connection_class=SourceConnection,
            min_size=1,
            max_size=connections,
            max_idle=_IDLE_S,
            open=True,
            timeout=_OPENING_S,
            reconnect_timeout=_RECONNECT_S,
            configure=self._configure,
            # a connection that the server dropped meanwhile is replaced: it must not cost a reservation
            check=_check_connection,
            kwargs={"prepare_threshold": None, "connect_timeout": OPENING_S},
            name="keyhole-source",
        )
        if not self._is_ready():
            raise find_connection_error(url)
        self._pins = PostgresPins()
        self._store = PostgresStore(
            url, scratch=scratch, settings=self._settings, pins=self._pins, most_rows=rollup_rows
        )
        self._rollups = Rollups(self._store, most=rollups)
        self._rows_at_once = rows_at_once

    def _is_ready(self) -> bool:
        # whoever asks before the first connection is there would open a second one
        try:
            self._pool.wait(_OPENING_S)
        except PoolTimeout:
            return False
        return True

    def _configure(self, connection: SourceConnection) -> None:
        connection.autocommit = True
        pin_settings(connection, self._settings)
        connection.autocommit = False
        # said at each BEGIN, too: a pooler in between may hand on another session than the one that was set
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        connection.read_only = True
        connection.deferrable = False

    @contextmanager
    def _connect_for_owner(self) -> Iterator[SourceConnection]:
        """Open a connection for the owner's own requests. Raise KH008 with the cause if none can be opened."""
        with ExitStack() as held:
            try:
                connection = held.enter_context(self._pool.connection())
            except PoolTimeout:
                connection = None
            if connection is None:
                raise find_connection_error(self._url)
            yield connection

    def list_relations(self) -> tuple[str, ...]:
        """Return the names of the tables and views that the role may select from.

        Rollups, partitions and child tables are left out.
        """
        with self._connect_for_owner() as connection:
            return tuple(name for (name,) in connection.execute(_RELATIONS))

    def read_schema(self, relation: str) -> tuple[SourceColumn, ...]:
        """Return a relation's columns that the role may select.

        Raise KH006 if there is no such relation, or the role may select no column. Raise KH008 if no server answers.
        """

        def query() -> tuple[SourceColumn, ...]:
            with self._connect_for_owner() as connection:
                try:
                    found = read_columns(relation, connection)
                except psycopg.errors.InsufficientPrivilege:  # of the schema
                    found = ()
                if not found:
                    raise report_missing_grant(relation, connection.info.user)
                return found

        return hide_shape_failures(query, relation=relation)

    def identify(self, relation: str) -> RelationIdentity:
        """Return the tables that a relation reads, by name and OID. Raise KH006, and KH008 if no server answers."""

        def query() -> RelationIdentity:
            with self._connect_for_owner() as connection:
                return make_identity(connection.execute(RELATION, (relation, relation)).fetchall())

        return hide_shape_failures(query, relation=relation)

    def read_state(self, relation: str) -> str:
        """Return the file names and change counters of the relation's tables, as text.

        Wait while a writer has the tables locked. Raise KH006 if the relation cannot be read, and KH008 if the source
        does not answer.
        """

        def query() -> str:
            with self._connect_for_owner() as connection:
                connection.execute("SELECT set_config('statement_timeout', %s, true)", (_STATE_TIMEOUT_MS,))
                _run(connection, f"SELECT FROM {relation} LIMIT 0")  # a load that holds the table's lock is awaited
                return str(connection.execute(STATE, (relation,)).fetchall())

        return hide_shape_failures(query, relation=relation)

    def read_files(self, relation: str) -> None:
        """Return None: the server keeps the rows."""

    def hold_open(self) -> AbstractContextManager[None]:
        """Do nothing: no file is opened for a reader."""
        return nullcontext()

    def reopen(self) -> None:
        """Do nothing: each statement finds the tables that are there."""

    def estimate_rows(self, relation: str) -> int:
        """Return PostgreSQL's estimate of the relation's number of rows, from its statistics.

        Raise KH006, and KH008 when nothing answers.
        """

        def query() -> int:
            with self._connect_for_owner() as connection:
                connection.execute("SELECT set_config('statement_timeout', %s, true)", (_STATE_TIMEOUT_MS,))
                ((plan,),) = _run(connection, f"EXPLAIN (FORMAT json) SELECT * FROM {relation}")
                return int(plan[0]["Plan"]["Plan Rows"])

        return hide_shape_failures(query, relation=relation)

    def read_table_rows(self, relation: str, columns: tuple[str, ...], *, most: int) -> tuple[Row, ...]:
        """Return the rows of a public table, sorted by all columns.

        If the table has more than `most` rows, return `most` + 1 of them. Raise KH006, and KH008 if no server answers.
        """

        def run(sql: str) -> list[tuple[Any, ...]]:
            with self._connect_for_owner() as connection, limit_waits(_ROWS_S):
                return _run(connection, sql)

        return read_public_rows(relation, columns, self.read_schema(relation), most=most, run=run)

    def read_for_owner(self, relation: str, sql: str) -> tuple[Row, ...]:
        """Return the exact, unprotected rows of a statement, for the owner alone.

        Raise KH006 if the relation cannot be read, and KH008 if the source does not answer.
        """

        def query() -> tuple[Row, ...]:
            with self._connect_for_owner() as connection, limit_waits(_ROWS_S):
                return tuple(_run(connection, sql))

        return hide_shape_failures(query, relation=relation)

    @contextmanager
    def take_turn(self, *, analyst: str, timeout_ms: int) -> Iterator[None]:
        """Hold one of as many turns as there are connections, after a check that a connection is alive.

        The check takes at most `timeout_ms`. Raise KH501; nothing was reserved then.
        """
        with self._turns.take_turn(analyst, timeout_ms=timeout_ms) as has_turn:
            if not has_turn:
                raise refuse_without_turn()
            if not self._has_live_connection(timeout_ms):
                raise report_unreachable_source()
            yield

    def _has_live_connection(self, timeout_ms: int) -> bool:
        longest_s = max(_CHECK_S, min(_OPENING_S, timeout_ms / 1000))
        try:
            with limit_waits(longest_s), self._pool.connection(timeout=longest_s):
                return True
        except (psycopg.Error, PoolTimeout):
            return False

    def read_aggregates(
        self, rewritten: Rewritten, keys: KeySpace, *, functionals: int, timeout_ms: int, version: str | None = None
    ) -> TrueAggregates:
        """Return the true aggregates of a question.

        Raise KH501, at the latest `GIVEN_UP_S` after the time at which the source should have stopped by itself. A
        silent connection is then closed as dead.
        """

        def read_aggregates(statement: SourceStatement, left_ms: int) -> TrueAggregates:
            own = self._store.is_temporary and statement.reads_rollups
            with (
                self._check_missing_column(rewritten.relations, left_ms=left_ms),
                self._store.borrow_connection(timeout_ms=left_ms) if own else self._limit_time(left_ms) as connection,
                check_keys_stay_unique(rewritten.relations if statement.is_scan else (), connection),
            ):
                pinned = rewritten.pinned_relations if statement.is_scan else ()
                values = self._read_values(connection, statement.sql, pinned, keys, functionals=functionals)
                if statement.is_scan:  # a rollup was held against them when it was made
                    check_locked_types(rewritten.relations, connection)
            return TrueAggregates(values)

        return hide_failures(
            lambda: self._rollups.answer(rewritten, version=version, timeout_ms=timeout_ms, read=read_aggregates)
        )

    @contextmanager
    def _check_missing_column(self, relations: Sequence[ReadRelation], *, left_ms: int) -> Iterator[None]:
        """Raise `MissingColumn` if the block fails for a missing column that the relations themselves lack.

        No row was read in that case. If a view fails for a missing column while it computes rows, the error stays.
        """
        try:
            yield
        except psycopg.errors.UndefinedColumn:
            with self._limit_time(left_ms) as connection:
                check_locked_types(relations, connection)
            raise

    def _read_values(
        self,
        connection: psycopg.Connection[tuple[Any, ...]],
        sql: str,
        pinned: Sequence[PinnedRelation],
        keys: KeySpace,
        *,
        functionals: int,
    ) -> Integers:
        """Return the value of every functional for every key.

        If there are very many keys, the groups are fetched in pieces, to limit memory. This choice depends only on the
        number of keys, never on rows.
        """
        split, values = len(keys.columns), np.zeros((functionals, keys.size), dtype=np.int64)
        if keys.size <= self._rows_at_once:
            with self._pins.run(connection, sql, pinned) as cursor:
                pieces: Iterable[list[tuple[Any, ...]]] = [cursor.fetchall()]
        else:
            pieces = self._pins.stream(connection, sql, pinned, rows=self._rows_at_once)
        for rows in pieces:
            if rows and functionals:
                columns = list(zip(*rows, strict=True))
                write_groups(columns[:split], columns[split : split + functionals], keys, into=values)
        return values

    def read_counts(self, sql: str, *, relations: Sequence[ReadRelation], timeout_ms: int) -> Counts:
        """Return the counts of a statement. Raise KH501, at the latest as `read_aggregates` does."""

        def query() -> Counts:
            with (
                self._check_missing_column(relations, left_ms=timeout_ms),
                self._limit_time(timeout_ms) as connection,
                check_keys_stay_unique(relations, connection),
            ):
                found = sort_counts(_run(connection, sql))
                check_locked_types(relations, connection)
                return found

        return hide_failures(query)

    @contextmanager
    def _limit_time(self, timeout_ms: int) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        with limit_statements(after_ms=timeout_ms), self._pool.connection(timeout=timeout_ms / 1000) as connection:
            connection.execute("SELECT set_config('statement_timeout', %s, true)", (str(timeout_ms),))
            yield connection

    def count_rollups(self) -> Mapping[str, int]:
        """Return the number of rollups, by state."""
        return self._rollups.count_by_state()

    def wait_for_rollups(self) -> None:
        """Wait until no rollup is being built."""
        self._rollups.wait_for_rollups()

    def close(self) -> None:
        """Close the pool and drop the rollups."""
        self._rollups.close()
        self._pool.close()


def _check_connection(connection: SourceConnection) -> None:
    """Check that an idle connection still answers. If it raises psycopg.Error, the pool tries another."""
    with limit_waits(_CHECK_S):
        ConnectionPool.check_connection(connection)


def _run(connection: psycopg.Connection[tuple[Any, ...]], sql: str) -> list[tuple[Any, ...]]:
    # the text is Keyhole's own: identifiers quoted, constants typed, no parameters
    with connection.cursor(binary=True) as cursor:
        return cursor.execute(sql).fetchall()
