"""Rows for a DuckDB of a test in a few statements: one statement for each row takes six times the processor."""

from collections.abc import Sequence
from typing import Any

import duckdb

_MOST = 200  # rows of one statement: more are slower again, as each value is a parameter


def insert(duck: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Sequence[Any]]) -> None:
    """Insert into all columns of a table, in their order."""
    for at in range(0, len(rows), _MOST):
        part = rows[at : at + _MOST]
        places = f"({', '.join('?' * len(part[0]))})"
        duck.execute(
            f"INSERT INTO {table} VALUES {', '.join([places] * len(part))}", [one for row in part for one in row]
        )
