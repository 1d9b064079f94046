"""Spark as a source: one read-only session for each turn. No analyst can change its settings."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

import numpy as np

from planner.catalog.key_space import KeySpace
from planner.catalog.relation_names import RelationIdentity
from planner.errors import KeyholeError
from planner.lower.dialects.dialect import Dialect
from planner.policy.compile import SourceColumn
from planner.question.plan import ReadRelation, Rewritten
from proxy.concurrency.fair_queue import FairTurns
from proxy.sources.alignment import write_groups
from proxy.sources.failures import refuse_unopened_source, refuse_without_turn
from proxy.sources.protocol import Counts, Row, TrueAggregates, convert_value, hide_failures, sort_counts
from proxy.sources.protocol import hide_shape_failures as hide_shapes
from proxy.sources.read_types import check_after_reading, check_types
from proxy.sources.source_refusals import report_unknown_relation
from proxy.sources.spark.arrow_columns import read_integers, read_key_column
from proxy.sources.spark.connection import SparkSession
from proxy.sources.spark.public_rows import read_public_rows
from proxy.sources.spark.sessions import SparkServer, find_engine, open_session
from proxy.sources.spark.spark_pins import SparkPins
from proxy.sources.spark.spark_refusals import refuse_unknown_engine
from proxy.sources.spark.spark_relations import (
    estimate_rows,
    identify_relation,
    list_relations,
    read_columns,
    read_state,
)

_Result = TypeVar("_Result")
_FIRST_S = 60.0  # for a server that has just started, which compiles itself
_OPENING_S = 10.0
"""For a session to be there and tried: less than a question may take by default, so that a gone server is told."""
_SHORTEST_S = 2.0  # for the same where questions may take less
_SHAPES_S = 60.0  # for what the catalog says of a relation
_KEEP_TYPES = frozenset({"spark"})
"""Engines that read what a statement reads by the types that they found when they planned it, before they say what its
columns are, or fail: types found the same after that were those. Sail converts what has moved by then."""
_ROWS_S = 600.0  # for all rows of a public table, which the owner waits for


class SparkSource:
    """A Spark server, read through sessions that end with their question.

    Parameters:
        place: the server, its engine, and the catalog and database for unqualified names.
        dialects: the SQL of each engine, by its name.
        questions: the number of questions that are answered at the same time.

    Raises:
        KeyholeError: KH008 if it cannot be reached, or its SQL would have another meaning.
    """

    def __init__(self, place: SparkServer, *, dialects: Mapping[str, Dialect], questions: int) -> None:
        self._place = place
        self._turns = FairTurns(questions)
        self._pins = SparkPins()
        self._lock = threading.Lock()
        self._ready: list[SparkSession] = []
        self.engine = place.engine or self._run_for_owner(find_engine)
        if place.engine is not None:
            self._run_for_owner(lambda _: None)
        if self.engine not in dialects:
            raise refuse_unknown_engine(self.engine)
        self.dialect: Dialect = dialects[self.engine]

    def list_relations(self) -> tuple[str, ...]:
        """Return the names of tables and views, in the policy's database or in the whole catalog."""
        return self._run_for_owner(lambda session: list_relations(session, database=self._place.database))

    def read_schema(self, relation: str) -> tuple[SourceColumn, ...]:
        """Return a relation's columns by PostgreSQL's type names.

        Raise KH006 if the relation cannot be read, and KH008 if the source does not answer.
        """
        columns = self._read_shape(relation, lambda session: read_columns(relation, session))
        if not columns:  # what Sail makes of files that are not there
            raise report_unknown_relation(relation)
        return columns

    def identify(self, relation: str) -> RelationIdentity:
        """Return the stored tables and files that a relation reads.

        Raise KH006 if the relation cannot be read, and KH008 if the source does not answer.
        """
        return self._read_shape(relation, lambda session: identify_relation(relation, session))

    def read_state(self, relation: str) -> str:
        """Return a digest of the names of the relation's files.

        Raise KH006 if the relation cannot be read, and KH008 if the source does not answer.
        """
        return self._read_shape(relation, lambda session: read_state(relation, session))

    def read_files(self, relation: str) -> None:
        """Return None: the server keeps the rows."""

    def hold_open(self) -> AbstractContextManager[None]:
        """Do nothing: no file is opened for a reader."""
        return nullcontext()

    def reopen(self) -> None:
        """Do nothing: each statement finds the tables that are there."""

    def estimate_rows(self, relation: str) -> int:
        """Return the engine's estimate of the relation's number of rows.

        Raise KH006 if the relation cannot be read, and KH008 if the source does not answer.
        """
        return self._read_shape(relation, lambda session: estimate_rows(relation, session))

    def read_table_rows(self, relation: str, columns: tuple[str, ...], *, most: int) -> tuple[Row, ...]:
        """Return the rows of a public table, sorted by all columns.

        Raise KH006 if the relation cannot be read, and KH008 if the source does not answer. If the table has more than
        `most` rows, return `most` + 1 of them.
        """
        schema = self.read_schema(relation)
        return self._run_for_owner(
            lambda session: read_public_rows(relation, columns, schema, session, most=most), within_s=_ROWS_S
        )

    def read_for_owner(self, relation: str, sql: str) -> tuple[Row, ...]:
        """Return the exact, unprotected rows of a statement, for the owner alone.

        Raise KH006 if the relation cannot be read, and KH008 if the source does not answer.
        """
        return self._read_shape(
            relation,
            lambda session: tuple(tuple(map(convert_value, row)) for row in session.read_tuples(sql)),
            within_s=_ROWS_S,
        )

    @contextmanager
    def take_turn(self, *, analyst: str, timeout_ms: int) -> Iterator[None]:
        """Hold one of a fixed number of turns, each with a tested session. Raise KH501; nothing was reserved then."""
        with self._turns.take_turn(analyst, timeout_ms=timeout_ms) as has_turn:
            if not has_turn:
                raise refuse_without_turn()
            session = self._open(max(_SHORTEST_S, min(_OPENING_S, timeout_ms / 1000)))
            with self._lock:
                self._ready.append(session)
            try:
                yield
            finally:
                with self._lock:
                    left = session in self._ready
                    if left:
                        self._ready.remove(session)
                if left:
                    session.close()

    def _open(self, seconds: float) -> SparkSession:
        try:
            return open_session(self._place, seconds=seconds)
        except KeyholeError as error:
            failure = refuse_unopened_source(error)
        raise failure

    def read_aggregates(
        self,
        rewritten: Rewritten,
        keys: KeySpace,
        *,
        functionals: int,
        timeout_ms: int,
        version: str | None = None,  # noqa: ARG002 (nothing is kept)
    ) -> TrueAggregates:
        """Return the true aggregates of a question.

        Raise KH501, at the latest `GIVEN_UP_S` after the time at which the server should have stopped.
        """

        def query(session: SparkSession) -> TrueAggregates:
            for relation in rewritten.pinned_relations:
                session.add_view(relation.name, self._pins.get(relation))

            def check() -> None:
                check_types(rewritten.relations, lambda relation: read_columns(relation, session))

            def check_late() -> None:
                with check_after_reading():
                    check()

            check()
            found = np.zeros((functionals, keys.size), dtype=np.int64)
            keeps_types = self.engine in _KEEP_TYPES
            for part in session.read(rewritten.sql, on_schema=check_late if keeps_types else None):
                groups = [read_key_column(part.column(f"k{i}")) for i in range(len(keys.columns))]
                sums = [read_integers(part.column(f"f{i}")) for i in range(functionals)]
                if sums:  # else a formula of public columns alone
                    write_groups(groups, sums, keys, into=found)
            if not keeps_types:
                check_late()
            return TrueAggregates(found)

        return hide_failures(lambda: self._ask(query, timeout_ms=timeout_ms))

    def read_counts(self, sql: str, *, relations: Sequence[ReadRelation], timeout_ms: int) -> Counts:
        """Return the counts of a statement. Raise KH501, at the latest as `read_aggregates` does."""

        def query(session: SparkSession) -> Counts:
            check_types(relations, lambda relation: read_columns(relation, session))
            found = sort_counts(session.read_tuples(sql))
            with check_after_reading():
                check_types(relations, lambda relation: read_columns(relation, session))
            return found

        return hide_failures(lambda: self._ask(query, timeout_ms=timeout_ms))

    def _ask(self, query: Callable[[SparkSession], _Result], *, timeout_ms: int) -> _Result:
        """Return the result of a query in the turn's session, and end the session."""
        started = time.monotonic()
        with self._lock:
            session = self._ready.pop() if self._ready else None
        if session is None:
            session = open_session(self._place, seconds=timeout_ms / 1000)
        left_ms = timeout_ms - int((time.monotonic() - started) * 1000)
        try:
            with session.stop_after(after_ms=max(1, left_ms)):
                return query(session)
        finally:
            session.close()

    def count_rollups(self) -> Mapping[str, int]:
        """Return an empty mapping, since nothing is written to the server."""
        return {"ready": 0, "building": 0, "useless": 0}

    def wait_for_rollups(self) -> None:
        """Do nothing, since no rollup is built."""

    def close(self) -> None:
        """Close the unused sessions."""
        with self._lock:
            left, self._ready = self._ready, []
        for session in left:
            session.close()

    def _run_for_owner(self, work: Callable[[SparkSession], _Result], *, within_s: float = _SHAPES_S) -> _Result:
        session = open_session(self._place, seconds=_FIRST_S)
        try:
            with session.close_after(within_s):
                return work(session)
        finally:
            session.close()

    def _read_shape(
        self, relation: str, work: Callable[[SparkSession], _Result], *, within_s: float = _SHAPES_S
    ) -> _Result:
        return hide_shapes(lambda: self._run_for_owner(work, within_s=within_s), relation=relation)
