"""Looked-up columns in SQL: the pinned values stand in the statement, joined to the private rows by a unique value.

Guarantee: a row finds one pinned value at most, so that the join neither adds nor drops rows, whatever the data.
"""

from dataclasses import replace

from planner.catalog.model import Column, Lookup, SqlType, Table
from planner.lower.row import RowSql
from planner.values.sql_literals import Dialect, constant, identifier, type_name


def spread(table: Table, *, dialect: Dialect) -> Table:
    """The table with its looked-up columns stored: its relation is the private one with the pinned values beside it."""
    looked_up = [column for column in table.columns if isinstance(column.derivation, Lookup)]
    if not looked_up:
        return table
    row = RowSql(table=table, dialect=dialect)
    stored = [identifier(column.name) for column in table.columns if column.derivation is None]
    found = [f"keyhole_v{i} AS {identifier(column.name)}" for i, column in enumerate(looked_up)]
    joins = [_join(row, column, i) for i, column in enumerate(looked_up)]
    relation = f"(SELECT {', '.join([*stored, *found])} FROM {table.relation} {' '.join(joins)}) AS joined"
    columns = tuple(
        replace(column, derivation=None, determined=table.determines(column))
        if isinstance(column.derivation, Lookup)
        else column
        for column in table.columns
    )
    return replace(table, relation=relation, columns=columns)


def _join(row: RowSql, column: Column, number: int) -> str:
    assert isinstance(column.derivation, Lookup)
    base = row.table.column(column.derivation.column)
    pairs = {known: value for known, value in column.derivation.pairs if value is not None}
    key, value = f"keyhole_k{number}", f"keyhole_v{number}"
    types = _type(base), _type(column)
    listed = ", ".join(
        f"({constant(known, column=base)}, {constant(found, column=column)})" for known, found in pairs.items()
    )
    rows = f"(VALUES {listed}) AS given(k, v)" if pairs else "(SELECT NULL AS k, NULL AS v WHERE FALSE) AS given"
    pinned = f"(SELECT CAST(k AS {types[0]}) AS {key}, CAST(v AS {types[1]}) AS {value} FROM {rows}) AS pinned{number}"
    return f"LEFT JOIN {pinned} ON {row.column(base.name)} = {key}"


def _type(column: Column) -> str:
    """A type that holds every pinned value, whatever the private column's width."""
    return "bigint" if column.sql_type is SqlType.INTEGER else type_name(column)
