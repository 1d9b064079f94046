"""Joins that an engine does in full, whichever rows a question asks for.

    SELECT v.ward FROM visits v JOIN labs l USING (person) WHERE v.note = 'gout' GROUP BY v.ward HAVING count(*) > 100

If no visit has this note, an engine that tests it first has nothing to join and reads no lab. Its answer came in 9 ms
instead of 48, which revealed that nobody has gout.

Guarantee: tests on a row behind a join are not made in front of it. Units that a condition chooses are joined as a
relation that is never empty. So both sides of a join are read, whatever condition few rows satisfy.

References: docs/decisions/0041-whole-joins.md.
"""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

from planner.catalog.catalog import Column, SqlType, Value
from planner.lower.dialects.dialect import Dialect

_ANY_VALUE: dict[SqlType, Value] = {
    SqlType.INTEGER: 0,
    SqlType.NUMERIC: Decimal(0),
    SqlType.DOUBLE: 0,
    SqlType.TEXT: "",
    SqlType.BOOLEAN: False,
    SqlType.DATE: date(2000, 1, 1),
    SqlType.TIMESTAMP: datetime(2000, 1, 1),
    SqlType.UUID: "00000000-0000-0000-0000-000000000000",
}


def write_row_fence(dialect: Dialect) -> str:
    """Return the end of a SELECT of joined rows that keeps an engine from moving outer tests before the joins.

    Return "" for an engine without such an end.
    """
    return "" if dialect.row_fence is None else f" {dialect.row_fence}"


def write_whole_read(step: str) -> str:
    """Return a test that is always true, and that makes an engine compute a named step even if no row needs it."""
    return f"(SELECT count(*) FROM {step}) >= 0"


def write_any_value(dialect: Dialect, column: Column) -> str:
    """Return SQL for a constant of the column's type, which some unit may have.

    Raise KeyError for a type without one.
    """
    spelling = dialect.spelling
    return spelling.write_cast(
        spelling.write_constant(_ANY_VALUE[column.sql_type], column=column), spelling.write_type(column)
    )


def add_any_row(rows: str, columns: Sequence[Column], *, beside: int, dialect: Dialect) -> str:
    """Return a SELECT with one more row, so that the engine always has a row to join.

    The row has constant values of a unit, which may or may not exist, and NULL in other columns.

    Parameters:
        rows: a SELECT of columns like these, and of `beside` others.
    """
    shown = [*(write_any_value(dialect, column) for column in columns), *["NULL"] * beside]
    return f"{rows} UNION ALL SELECT {', '.join(shown)}"
