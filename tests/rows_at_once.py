"""Rows for a DuckDB of a test in one statement, column by column: row by row takes fifteen times the processor."""

from collections.abc import Sequence
from typing import Any

import duckdb


def insert(duck: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Sequence[Any]]) -> None:
    """Insert into all columns of a table, or into those that stand behind its name, in their order."""
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        duck.execute(f"INSERT INTO {table} SELECT {', '.join(['unnest(?)'] * len(columns))}", columns)
