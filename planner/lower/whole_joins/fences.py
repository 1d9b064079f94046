"""Joins that an engine does in full, whichever rows a question asks for.

    SELECT v.ward FROM visits v JOIN labs l USING (person) WHERE v.note = 'gout' GROUP BY v.ward HAVING count(*) > 100

Where no visit has this note, an engine that asks for it first has nothing to join, and reads no lab: its answer came
in 9 ms and not in 48, which told that nobody has gout.

Guarantee: what is asked of a row behind a join is not asked in front of it, and units that a condition chooses are
joined as a relation that is never empty. So both sides of a join are read, whatever condition few rows satisfy.

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


def fence_rows(dialect: Dialect) -> str:
    """Return what ends a SELECT of joined rows, so that tests further out are asked behind its joins.

    Empty for an engine that has nothing of the kind.
    """
    return "" if dialect.row_fence is None else f" {dialect.row_fence}"


def read_whole(step: str) -> str:
    """Return a test that holds, and for which an engine computes a named step, whether or not a row meets it."""
    return f"(SELECT count(*) FROM {step}) >= 0"


def any_value(dialect: Dialect, column: Column) -> str:
    """Return a value of the column's type, which some unit may have. Raise KeyError for a type without one."""
    spelling = dialect.spelling
    return spelling.cast(spelling.constant(_ANY_VALUE[column.sql_type], column=column), spelling.type_name(column))


def add_anybody(rows: str, columns: Sequence[Column], *, beside: int, dialect: Dialect) -> str:
    """Return a SELECT with one row more: of some unit, that may or may not be there, with NULL in other columns.

    Parameters:
        rows: a SELECT of columns like these, and of so many others `beside`.
    """
    shown = [*(any_value(dialect, column) for column in columns), *["NULL"] * beside]
    return f"{rows} UNION ALL SELECT {', '.join(shown)}"
