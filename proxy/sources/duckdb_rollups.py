"""DuckDB's rollups, kept in a separate database in memory."""

import itertools
import threading
from collections.abc import Callable, Mapping

import duckdb

from planner.question.plan import Rollup
from planner.values.sql_literals import quote_name
from proxy.sources.duckdb_relations import check_same_types
from proxy.sources.pinned_relations import DuckDBPins
from proxy.sources.rollups import RollupTooLarge

DATABASE = "keyhole_rollups"


class DuckDBStore:
    """The store of rollups in an attached in-memory database. Nothing is written to disk or to the source's file.

    Parameters:
        open_cursor: opens a cursor of the instance that has `DATABASE` attached.
        pins: provides pinned rows to its statements.
        most_rows: the largest number of rows of a rollup.
    """

    def __init__(
        self, open_cursor: Callable[[], duckdb.DuckDBPyConnection], *, pins: DuckDBPins, most_rows: int
    ) -> None:
        self._open_cursor = open_cursor
        self._pins = pins
        self._most_rows = most_rows
        self._numbers = itertools.count()
        self._interrupt: Callable[[], None] | None = None

    def build(self, rollup: Rollup, *, kept: Mapping[str, str], timeout_ms: int) -> str:
        """Store a rollup as a table, and return the table's name. Raise `RollupTooLarge` or `TypesChanged`."""
        relation = f"{DATABASE}.main.{quote_name(f'{rollup.name}_{next(self._numbers)}')}"
        cursor = self._open_cursor()
        timer = threading.Timer(timeout_ms / 1000, cursor.interrupt)
        timer.daemon = True
        self._interrupt = cursor.interrupt
        timer.start()
        try:
            with (
                self._pins.provide_tables(rollup.write_build(kept), rollup.pinned_relations) as build,
                check_same_types(rollup.relations, cursor),
            ):
                # behind a LIMIT a join of six million rows takes twenty times as long: they are counted first
                counted = cursor.execute(f"SELECT count(*) > {self._most_rows} FROM (\n{build}\n) AS built").fetchone()
                if counted == (True,):
                    raise RollupTooLarge
                cursor.execute(f"CREATE TABLE {relation} AS\n{build}")
            rows = cursor.execute(f"SELECT count(*) > {self._most_rows} FROM {relation}").fetchone()
            if rows == (True,):
                cursor.execute(f"DROP TABLE {relation}")
                raise RollupTooLarge
        finally:
            self._interrupt = None
            timer.cancel()
            cursor.close()
        return relation

    def drop(self, relation: str) -> None:
        """Drop the table of a rollup."""
        cursor = self._open_cursor()
        try:
            cursor.execute(f"DROP TABLE IF EXISTS {relation}")
        finally:
            cursor.close()

    def cancel(self) -> None:
        """Interrupt the statement that builds a rollup."""
        interrupt = self._interrupt
        if interrupt is not None:
            interrupt()

    def close(self) -> None:
        """Do nothing: the rollups end with the instance."""
