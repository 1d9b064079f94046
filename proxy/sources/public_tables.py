"""The reading of a public table's rows. A refusal tells the owner why they cannot be read, and names no value."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planner.catalog.catalog import SqlType
from planner.catalog.sql_types import SourceColumn, read_sql_type
from planner.errors import KeyholeError
from planner.values.sql_literals import quote_name
from proxy.sources.protocol import Row, convert_value, hide_shape_failures
from proxy.sources.source_refusals import report_uncopyable_value, report_unreadable_rows

UNCOPYABLE: Mapping[SqlType, str] = {
    SqlType.DATE: "{0} < DATE '0001-01-01' OR {0} >= DATE '10000-01-01'",
    SqlType.TIMESTAMP: "CAST({0} AS timestamp) < TIMESTAMP '0001-01-01' "
    "OR CAST({0} AS timestamp) >= TIMESTAMP '10000-01-01'",
}
"""By type, which values of a column have no counterpart: infinite ones, which DuckDB's driver replaces, among them."""


def read_public_rows(
    relation: str,
    columns: Sequence[str],
    schema: Sequence[SourceColumn],
    *,
    most: int,
    run: Callable[[str], list[tuple[Any, ...]]],
    uncopyable: Mapping[SqlType, str] = UNCOPYABLE,
) -> tuple[Row, ...]:
    """Return the table's rows, sorted by all columns. If there are more than `most`, return any `most` + 1 of them.

    Raises:
        KeyholeError: KH006 if the role may not select these columns, or the engine cannot read the rows. KH006 with the
            column's name if a value cannot be copied.
    """
    listed = ", ".join(quote_name(column) for column in columns)
    order = ", ".join(str(i + 1) for i in range(len(columns)))
    hide_shape_failures(lambda: run(f"SELECT {listed} FROM {relation} LIMIT 0"), relation=relation)
    # none beyond it is looked at, and sorting comes after it: an engine may stop as soon as it has so many
    found = f"(SELECT {listed} FROM {relation} LIMIT {most + 1}) AS found"
    kinds = {column.name: read_sql_type(column.declared) for column in schema}
    checks = {column: uncopyable[kinds[column]] for column in columns if kinds.get(column) in uncopyable}

    def fetch() -> tuple[list[tuple[Any, ...]], str | None]:
        if checks:
            asked = ", ".join(f"bool_or({check.format(quote_name(column))})" for column, check in checks.items())
            for column, has_one in zip(checks, run(f"SELECT {asked} FROM {found}")[0], strict=True):
                if has_one:
                    return [], column
        return run(f"SELECT {listed} FROM {found} ORDER BY {order}"), None

    rows, column = _read_rows(fetch, relation=relation)
    if column is not None:
        raise report_uncopyable_value(relation, column)
    return tuple(tuple(convert_value(value) for value in row) for row in rows)


def _read_rows(
    found: Callable[[], tuple[list[tuple[Any, ...]], str | None]], *, relation: str
) -> tuple[list[tuple[Any, ...]], str | None]:
    try:
        return found()
    except KeyholeError:
        raise
    except Exception:
        failure = report_unreadable_rows(relation)
    # outside the handler: the engine's error quotes rows
    raise failure
