"""The reading of a public table's rows at Spark. A refusal tells the owner why, and names no value."""

from collections.abc import Mapping, Sequence

from planner.catalog.catalog import SqlType
from planner.catalog.sql_types import SourceColumn, read_sql_type
from proxy.sources.protocol import Row, convert_value
from proxy.sources.source_refusals import report_uncopyable_value, report_unknown_relation, report_unreadable_rows
from proxy.sources.spark.connection import SparkSession
from proxy.sources.spark.spark_relations import quote_name

_UNCOPYABLE: Mapping[SqlType, str] = {
    SqlType.DATE: "year({0}) < 1 OR year({0}) > 9999",
    SqlType.TIMESTAMP: "year({0}) < 1 OR year({0}) > 9999",
    SqlType.TEXT: "instr({0}, char(0)) > 0",
}
"""By type, which values of a column have no counterpart in the copy, which is PostgreSQL's."""


def read_public_rows(
    relation: str,
    columns: Sequence[str],
    schema: Sequence[SourceColumn],
    session: SparkSession,
    *,
    most: int,
) -> tuple[Row, ...]:
    """Return the table's rows, sorted by all columns. If there are more than `most`, return any `most` + 1 of them.

    Raises:
        KeyholeError: KH006 if the user may not select these columns, or the engine cannot read the rows. KH006 with the
            column's name if a value cannot be copied.
    """
    kinds = {column.name: read_sql_type(column.declared) for column in schema}
    if not set(columns) <= set(kinds):
        raise report_unknown_relation(relation)
    checks = {column: _UNCOPYABLE[kinds[column]] for column in columns if kinds[column] in _UNCOPYABLE}
    place = {column: f"c{i}" for i, column in enumerate(columns)}
    asked = [f"coalesce(bool_or({check.format(place[one])}), false) AS {place[one]}" for one, check in checks.items()]
    listed = ", ".join(f"{quote_name(column)} AS {name}" for column, name in place.items())
    order = ", ".join(place.values())
    # none beyond it is looked at, and sorting comes after it: an engine may stop as soon as it has so many
    found = f"(SELECT {listed} FROM {relation} LIMIT {most + 1}) AS found"
    try:
        beyond = session.read_tuples(f"SELECT {', '.join(asked)} FROM {found}")[0] if asked else ()
        wrong = next((column for column, has_one in zip(checks, beyond, strict=True) if has_one), None)
        rows = session.read_tuples(f"SELECT {order} FROM {found} ORDER BY {order}") if wrong is None else []
    except Exception:
        failure = report_unreadable_rows(relation)
    else:
        if wrong is not None:
            raise report_uncopyable_value(relation, wrong)
        return tuple(tuple(map(convert_value, row)) for row in rows)
    # outside the handler: the engine's error quotes rows
    raise failure
