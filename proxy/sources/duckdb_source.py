"""DuckDB as a source: a database file, or parquet and CSV files, read in this process.

The engine can read only its own file and the files of the owner's directories. No extensions are installed or loaded,
and no statement changes the configuration.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from mechanisms.side_by_side import work_in_pipeline
from planner.catalog.catalog import SqlType
from planner.catalog.key_space import KeySpace
from planner.catalog.relation_names import RelationIdentity
from planner.errors import KeyholeError
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.policy.compile import SourceColumn
from planner.question.plan import KeyBlock, ReadRelation, Rewritten
from planner.values.sql_literals import quote_name, quote_text
from proxy.concurrency.fair_queue import FairTurns
from proxy.sources.alignment import align_groups, write_groups
from proxy.sources.duckdb_relations import (
    EXPLAIN_ALL,
    Looks,
    check_same_files,
    check_same_types,
    describe_files,
    estimate_rows,
    find_file_patterns,
    identify_relation,
    read_columns,
    read_file_states,
    read_keys,
    read_open_file_states,
    read_state,
)
from proxy.sources.duckdb_rollups import DATABASE, DuckDBStore
from proxy.sources.failures import explain_failure, refuse_unopened_source, refuse_without_turn
from proxy.sources.pinned_relations import DATABASE as PINNED
from proxy.sources.pinned_relations import DuckDBPins
from proxy.sources.protocol import Counts, Row, TrueAggregates, hide_failures, hide_shape_failures, sort_counts
from proxy.sources.public_tables import UNCOPYABLE, read_public_rows
from proxy.sources.rollups import MOST_ROWS, Rollups, SourceStatement
from proxy.sources.source_refusals import DatabaseUnopened, report_unreachable_source

_SEALED = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "preserve_insertion_order": "false",
    "pandas_analyze_sample": "0",  # what a column of pinned texts is must not be guessed from some of them
}
_IN_USE = "Could not set lock on file"  # an IOException as others are: the class does not tell
_PAUSE_S = 0.05  # between looks whether a loader or reader has left: that takes up to seconds, a look a millisecond
# PostgreSQL's text, which the copy becomes, cannot hold the character
_UNCOPYABLE = {**UNCOPYABLE, SqlType.TEXT: "contains({0}, chr(0))"}


class DuckDBSource:
    """A DuckDB database as a source, one instance for the process. Each call opens its own cursor.

    While the database is open, DuckDB lets no other process write to its file. If `is_held` is false, the file is open
    only during each question, so a loader can write between questions. Then no rollups are kept.

    Parameters:
        database: a `.duckdb` file, opened read-only; None for an empty in-memory database over files.
        directories: where `read_parquet`, `read_csv` and views may read files. Names of files in the first one are
            relative.
        settings: DuckDB settings of the owner, such as `threads` and `memory_limit`.
        questions: the number of questions that are answered at the same time.
        rollups: the largest number of rollups kept in memory.
        rollup_rows: the largest number of rows of each.
        is_held: True if the file stays open.

    Raises:
        KeyholeError: KH008 when the database cannot be opened.
    """

    dialect: Dialect = DUCKDB

    def __init__(
        self,
        database: Path | None,
        *,
        directories: tuple[Path, ...],
        settings: Mapping[str, str],
        questions: int = 8,
        rollups: int = 0,
        rollup_rows: int = MOST_ROWS,
        is_held: bool = True,
    ) -> None:
        self._turns = FairTurns(questions)
        self._openings = _DatabaseHandle(
            partial(
                _open_database,
                database,
                directories=directories,
                settings=settings,
                rollups=rollups if is_held else 0,
                rollup_rows=rollup_rows,
            ),
            is_held=is_held,
        )
        self._directory, self._database = directories[0], database
        with self._openings.use():
            pass  # what cannot be opened is refused here

    def list_relations(self) -> tuple[str, ...]:
        """Return the names of the tables and views in the database file."""
        with self._open_cursor() as cursor:
            rows = cursor.execute(
                "SELECT table_schema, table_name FROM information_schema.tables "
                "WHERE table_catalog = current_database() ORDER BY 1, 2"
            ).fetchall()
        return tuple(_qualify_name(schema, name) for schema, name in rows)

    def hold_open(self) -> AbstractContextManager[None]:
        """Keep the file open during the block, so that several catalog reads open the file only once.

        Raise KH008 if the source does not answer.
        """
        return self._openings.keep_open()

    def read_schema(self, relation: str) -> tuple[SourceColumn, ...]:
        """Return a relation's columns by PostgreSQL's type names. Raise KH006 if the relation cannot be read."""
        return hide_shape_failures(lambda: read_columns(relation, run=self._run), relation=relation)

    def identify(self, relation: str) -> RelationIdentity:
        """Return the stored tables and files that a relation reads. Raise KH006 if the relation cannot be read."""

        def identify() -> RelationIdentity:
            known = identify_relation(relation, run=self._run, directory=self._directory, database=self._database)
            return read_keys(known, run=self._run)

        return hide_shape_failures(identify, relation=relation)

    def read_state(self, relation: str) -> str:
        """Return the names, sizes and times of the relation's files, as text.

        Raise KH006 if the relation cannot be read, and KH008 if the source does not answer.
        """
        return hide_shape_failures(
            lambda: read_state(relation, run=self._run, database=self._database), relation=relation
        )

    def read_files(self, relation: str) -> str:
        """Return the names, sizes and times of the files that DuckDB really reads now, as text.

        If the database file was replaced, the old file is still open and is the one described. Raise KH006 if the
        relation cannot be read, and KH008 if the source does not answer.
        """

        def look() -> str:
            with self._openings.use() as opened:
                patterns = opened.patterns.get(relation)
                if patterns is None:
                    patterns = find_file_patterns(relation, run=opened.run, database=self._database)
                    opened.patterns[relation] = patterns
                return describe_files(patterns, run=opened.run, database=self._stat_open(opened))

        return hide_shape_failures(look, relation=relation)

    def reopen(self) -> None:
        """Open the new database file, if the file was replaced.

        Questions that are already running finish on the old file. Raise KH008 if the source does not answer.
        """
        self._openings.renew(lambda opened: opened.looks != read_file_states(self._database))

    def estimate_rows(self, relation: str) -> int:
        """Return DuckDB's own estimate of the relation's number of rows. Raise KH006 if the relation cannot be read."""
        return hide_shape_failures(lambda: estimate_rows(relation, run=self._run), relation=relation)

    def read_table_rows(self, relation: str, columns: tuple[str, ...], *, most: int) -> tuple[Row, ...]:
        """Return the rows of a public table, sorted by all columns. Raise KH006 if the relation cannot be read.

        If the table has more than `most` rows, return `most` + 1 of them.
        """
        return read_public_rows(
            relation, columns, self.read_schema(relation), most=most, run=self._run, uncopyable=_UNCOPYABLE
        )

    def read_for_owner(self, relation: str, sql: str) -> tuple[Row, ...]:
        """Return the exact, unprotected rows of a statement, for the owner alone.

        Raise KH006 if the relation cannot be read.
        """
        return hide_shape_failures(lambda: tuple(self._run(sql)), relation=relation)

    @contextmanager
    def take_turn(self, *, analyst: str, timeout_ms: int) -> Iterator[None]:
        """Hold one of a fixed number of turns at the source during the block.

        A statement that has not stopped yet keeps its turn. If the file is not held open, wait until no other process
        writes to it, and open it. Raise KH501; nothing was reserved then.
        """
        started = time.monotonic()
        with self._turns.take_turn(analyst, timeout_ms=timeout_ms) as has_turn:
            if not has_turn:
                raise refuse_without_turn()
            with self._openings.keep_open(until=started + timeout_ms / 1000):
                yield

    def read_aggregates(
        self, rewritten: Rewritten, keys: KeySpace, *, functionals: int, timeout_ms: int, version: str | None = None
    ) -> TrueAggregates:
        """Return the true aggregates of a question. Raise KH501 if reading the source fails."""

        def read_aggregates(opened: _OpenDatabase, statement: SourceStatement, left_ms: int) -> TrueAggregates:
            scans = statement.is_scan
            if rewritten.blocks and not statement.reads_rollups:
                return read_blocks(opened, left_ms)
            with (
                opened.pins.provide_tables(statement.sql, rewritten.pinned_relations if scans else ()) as asked,
                opened.cursor() as cursor,
                _interrupt_after(cursor.interrupt, timeout_ms=left_ms),
                check_same_types(
                    rewritten.relations if scans else (), cursor
                ),  # a rollup was held against them when made
            ):
                found = cursor.execute(asked).fetchnumpy()
            groups = [found[f"k{i}"] for i in range(len(keys.columns))]
            sums = [found[f"f{i}"] for i in range(functionals)]
            return TrueAggregates(align_groups(groups, sums, keys))

        def read_blocks(opened: _OpenDatabase, left_ms: int) -> TrueAggregates:
            """Read the groups block by block, in one transaction and from unchanged files."""
            values = np.zeros((functionals, keys.size), dtype=np.int64)

            def spread(read: tuple[KeyBlock, dict[str, npt.NDArray[Any]]]) -> None:
                block, found = read
                groups = [found[f"k{i}"] for i in range(len(keys.columns))]
                sums = [found[f"f{i}"] for i in range(functionals)]
                write_groups(groups, sums, block.keys, into=values[:, block.start : block.start + block.keys.size])

            with (
                opened.cursor() as cursor,
                _interrupt_after(cursor.interrupt, timeout_ms=left_ms),
                check_same_types(rewritten.relations, cursor),
                ExitStack() as pinned,  # what is made for a transaction is made before it
            ):
                texts = [
                    pinned.enter_context(opened.pins.provide_tables(one.sql, rewritten.pinned_relations))
                    for one in rewritten.blocks
                ]
                pinned.enter_context(check_same_files(rewritten.relations, run=opened.run, database=self._database))
                cursor.begin()
                work_in_pipeline(
                    spread,
                    (
                        (block, cursor.execute(asked).fetchnumpy())
                        for block, asked in zip(rewritten.blocks, texts, strict=True)
                    ),
                )
            return TrueAggregates(values)

        def read_one_database() -> TrueAggregates:
            with self._openings.use() as opened:
                return opened.rollups.answer(
                    rewritten, version=version, timeout_ms=timeout_ms, read=partial(read_aggregates, opened)
                )

        return hide_failures(read_one_database)

    def read_counts(self, sql: str, *, relations: Sequence[ReadRelation], timeout_ms: int) -> Counts:
        """Return the counts of a statement. Raise KH501 if reading the source fails."""

        def query() -> Counts:
            with (
                _keep_interrupts(),
                self._open_cursor() as cursor,
                _interrupt_after(cursor.interrupt, timeout_ms=timeout_ms),
                check_same_types(relations, cursor),
            ):
                return sort_counts(cursor.execute(sql).fetchall())

        return hide_failures(query)

    def count_rollups(self) -> Mapping[str, int]:
        """Return the number of rollups, by state."""
        opened = self._openings.newest
        return {"ready": 0, "building": 0, "useless": 0} if opened is None else opened.rollups.count_by_state()

    def wait_for_rollups(self) -> None:
        """Wait until no rollup is being built."""
        if (opened := self._openings.newest) is not None:
            opened.rollups.wait_for_rollups()

    def close(self) -> None:
        """Close the database after all reads have ended. Interrupt running reads, which then fail."""
        self._openings.close()

    def _stat_open(self, opened: "_OpenDatabase") -> Looks:
        return read_open_file_states(opened.looks, read_file_states(self._database)) if opened.looks else {}

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        with self._open_cursor() as cursor:
            return cursor.execute(sql).fetchall()

    @contextmanager
    def _open_cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._openings.use() as opened, opened.cursor() as cursor:
            yield cursor


@dataclass(slots=True, eq=False)
class _OpenDatabase:
    """An open database with its pinned rows, its rollups, and the number of its readers.

    Every cursor starts in the schema `home`, or in the instance's own. `looks` is the state of its files when they were
    opened. `patterns` has, by relation, the names under which it reads files.
    """

    connection: duckdb.DuckDBPyConnection
    home: str | None
    looks: Looks
    pins: DuckDBPins
    rollups: Rollups
    patterns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    readers: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    cursors: list[duckdb.DuckDBPyConnection] = field(default_factory=list)

    @contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a cursor in the database's own schema. `interrupt` also stops what runs on this cursor."""
        with closing(_make_cursor(self.connection, self.home)) as cursor:
            with self.lock:
                self.cursors.append(cursor)
            try:
                yield cursor
            finally:
                with self.lock:
                    self.cursors.remove(cursor)

    def interrupt(self) -> None:
        """Interrupt the running statements of all readers."""
        with self.lock:
            for cursor in self.cursors:
                cursor.interrupt()

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement, and return its rows."""
        with self.cursor() as cursor:
            return cursor.execute(sql).fetchall()

    def close(self) -> None:
        """Close the rollups and the DuckDB instance."""
        self.rollups.close()
        self.connection.close()


class _DatabaseHandle:
    """A shared handle on one database, which opens the file for readers and closes the file after them.

    Unless it is held, it is opened for the first reader and closed after the last. A replaced database is closed after
    its last reader.
    """

    def __init__(self, open_database: Callable[[], _OpenDatabase], *, is_held: bool) -> None:
        self._open_database = open_database
        self._held = is_held
        self._lock = threading.Lock()
        self._left = threading.Condition(self._lock)
        self._open: list[_OpenDatabase] = []
        self._opened: _OpenDatabase | None = None
        self._ended = False

    @property
    def newest(self) -> _OpenDatabase | None:
        """The open database, or None if the file is closed."""
        return self._opened

    @contextmanager
    def use(self, *, until: float | None = None) -> Iterator[_OpenDatabase]:
        """Give the block the open database, and open the file if necessary.

        If `until` is given (in seconds of the monotonic clock), retry until then, and raise KH501 at last. Otherwise
        raise KH008 at the first failure.
        """
        opened = self._join(until)
        try:
            yield opened
        finally:
            with self._lock:
                opened.readers -= 1
                is_over = not self._ended and not opened.readers and (not self._held or opened is not self._opened)
                if is_over:
                    self._open.remove(opened)
                    self._opened = None if opened is self._opened else self._opened
                self._left.notify_all()
            if is_over:
                opened.close()

    @contextmanager
    def keep_open(self, *, until: float | None = None) -> Iterator[None]:
        """Keep the file open during the block. Retry and raise as `use` does."""
        if self._held:
            yield
        else:
            with self.use(until=until):
                yield

    def renew(self, is_replaced: Callable[[_OpenDatabase], bool]) -> None:
        """Open the current file beside the old one, if the old one was replaced.

        If that fails, keep the old one and raise KH008.
        """
        with self._lock:
            before = self._opened
            if self._ended or before is None or not is_replaced(before):
                return
            self._opened = self._open_database()
            self._open.append(self._opened)
            is_over = not before.readers
            if is_over:
                self._open.remove(before)
        if is_over:
            before.close()

    def _join(self, until: float | None) -> _OpenDatabase:
        while True:
            with self._lock:
                if self._ended:
                    raise report_unreachable_source()
                try:
                    if self._opened is None:
                        self._opened = self._open_database()
                        self._open.append(self._opened)
                    self._opened.readers += 1
                    return self._opened
                except KeyholeError as error:
                    if until is None:
                        raise
                    unopened = error
            if time.monotonic() + _PAUSE_S > until:
                raise refuse_unopened_source(unopened)
            time.sleep(_PAUSE_S)

    def close(self) -> None:
        """Interrupt all readers, and close the database for good after the last reader.

        DuckDB cannot close under a reader, and a process that ends with a thread inside the engine is aborted. An
        interrupt that comes before its statement is lost, so it is repeated.
        """
        with self._left:
            self._ended = True
            while any(opened.readers for opened in self._open):
                for opened in self._open:
                    opened.interrupt()
                self._left.wait(_PAUSE_S)
            left, self._open, self._opened = self._open, [], None
        for opened in left:
            opened.close()


@contextmanager
def _interrupt_after(interrupt: Callable[[], None], *, timeout_ms: int) -> Iterator[None]:
    timer = threading.Timer(timeout_ms / 1000, interrupt)
    timer.daemon = True
    timer.start()
    try:
        with _interrupt_on_ctrl_c(interrupt):
            yield
    finally:
        timer.cancel()


@contextmanager
def _interrupt_on_ctrl_c(interrupt: Callable[[], None]) -> Iterator[None]:
    """Interrupt the statement on Ctrl-C. DuckDB itself would first wait for its threads."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        interrupt()
        before(number, frame)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _keep_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt if Ctrl-C ended a statement. DuckDB raises its own error instead."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
    else:
        return
    raise KeyboardInterrupt


def _open_database(
    database: Path | None,
    *,
    directories: tuple[Path, ...],
    settings: Mapping[str, str],
    rollups: int,
    rollup_rows: int,
) -> _OpenDatabase:
    """Open an in-memory DuckDB instance with the database file attached. Raise KH008.

    This way a replaced file can be opened beside the old one. Opened by name, DuckDB would return the old file again.
    """
    allowed = ", ".join(quote_text(str(directory.resolve())) for directory in directories)
    try:
        connection = duckdb.connect(":memory:", config={**_SEALED, **settings})
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
        connection.execute(EXPLAIN_ALL)
        home, looks = (None, {}) if database is None else _attach(connection, database)
        for beside in (DATABASE, PINNED):
            connection.execute(f"ATTACH ':memory:' AS {beside} (READ_WRITE)")
        connection.execute(f"SET GLOBAL allowed_directories = [{allowed}]")
        connection.execute("SET GLOBAL enable_external_access = false")
        connection.execute("SET GLOBAL lock_configuration = true")
    except (duckdb.Error, OSError) as error:
        raise DatabaseUnopened(database, detail=str(error).split("\n")[0], why=_explain_unopened_file(error)) from None
    pins = DuckDBPins(connection)
    store = DuckDBStore(partial(_make_cursor, connection, home), pins=pins, most_rows=rollup_rows)
    return _OpenDatabase(connection, home, looks, pins, Rollups(store, most=rollups))


def _explain_unopened_file(error: Exception) -> str:
    return "another process has the file open for writing" if _IN_USE in str(error) else explain_failure(error)


def _attach(connection: duckdb.DuckDBPyConnection, database: Path) -> tuple[str, Looks]:
    """Attach a file for reading. Return the schema in which its names are looked up, and the file's state."""
    name = "memory_db" if database.stem == "memory" else None  # that one is the instance's own
    attach = f"ATTACH {quote_text(str(database))}{'' if name is None else f' AS {name}'} (READ_ONLY)"
    while True:
        before = read_file_states(database) if database.exists() else {}
        connection.execute(attach)
        ((attached,),) = connection.execute(
            "SELECT database_name FROM duckdb_databases() WHERE NOT internal AND path IS NOT NULL"
        ).fetchall()
        if read_file_states(database) == before:
            return f"{quote_name(attached)}.main", before
        connection.execute(f"DETACH {quote_name(attached)}")  # replaced at this moment: which of both is open?


def _make_cursor(connection: duckdb.DuckDBPyConnection, home: str | None) -> duckdb.DuckDBPyConnection:
    cursor = connection.cursor()
    if home is not None:
        cursor.execute(f"USE {home}")
    return cursor


def _qualify_name(schema: str, name: str) -> str:
    return quote_name(name) if schema == "main" else f"{quote_name(schema)}.{quote_name(name)}"
