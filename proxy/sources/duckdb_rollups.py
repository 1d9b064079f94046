"""Rollups in memory, in a database of their own beside the one that is read."""

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
    """Tables of an attached in-memory database; nothing is written to disk, and the source's own file stays as it is.

    Parameters:
        open_cursor: opens a cursor of the instance that has `DATABASE` attached.
        pins: what reads pinned rows in it.
        most_rows: that a rollup may have.
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
        """Build the rollup as a table of its own. Raise `RollupTooLarge` and `TypesChanged`."""
        relation = f"{DATABASE}.main.{quote_name(f'{rollup.name}_{next(self._numbers)}')}"
        cursor = self._open_cursor()
        timer = threading.Timer(timeout_ms / 1000, cursor.interrupt)
        timer.daemon = True
        self._interrupt = cursor.interrupt
        timer.start()
        try:
            with (
                self._pins.provide(rollup.build_from(kept), rollup.pinned) as build,
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
        """Remove the table."""
        cursor = self._open_cursor()
        try:
            cursor.execute(f"DROP TABLE IF EXISTS {relation}")
        finally:
            cursor.close()

    def cancel(self) -> None:
        """Interrupt a build."""
        interrupt = self._interrupt
        if interrupt is not None:
            interrupt()

    def close(self) -> None:
        """Close nothing: nothing outlives the instance."""
