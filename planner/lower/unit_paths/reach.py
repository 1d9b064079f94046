"""A table whose units are reached through keys, as a relation that has the units' columns.

Guarantee: each row of the table stands there once if its path leads to a unit, and not at all else, whatever the tables
on the path hold. If two of their rows have the same key, the least unit counts, as its bytes or numbers order it. So
if all rows of one unit are taken away in all tables, every other row keeps its unit. The statement's work is that of
one pass over each table and one join by equality, in which a row meets one other at most.

Proof: docs/proofs/unit_paths.md.
"""

from dataclasses import replace

from planner.catalog.model import SqlType, Table
from planner.lower.dialects.model import Dialect
from planner.lower.row import RowSql

_ORDERED = frozenset({SqlType.INTEGER, SqlType.TEXT, SqlType.DATE, SqlType.TIMESTAMP})
"""Types whose least value every engine finds by `min`."""


def reach_units(table: Table, *, dialect: Dialect) -> Table:
    """Return the table with its units' columns stored beside its own, or the table itself if it has no path."""
    if table.path is None:
        return table
    spelling = dialect.spelling
    own = RowSql(table=table, dialect=dialect)
    shown = [
        spelling.identifier(column.name)
        for column in table.columns
        if column.derivation is None and column.name not in table.unit
    ]
    units = [f"keyhole_p{i} AS {spelling.identifier(name)}" for i, name in enumerate(table.unit)]
    met = " AND ".join(f"{own.column(name)} = keyhole_r{i}" for i, name in enumerate(table.path.by))
    relation = (
        f"(SELECT {', '.join([*shown, *units])} FROM {table.relation} JOIN {_find_units(table, dialect)} ON {met}"
        f" /* the unit of each row: that of the one row that its key leads to */) AS reached"
    )
    return replace(table, relation=relation, path=None)


def _find_units(table: Table, dialect: Dialect) -> str:
    """The relation with one row for each key of the reached table that leads to a unit, and this unit."""
    assert table.path is not None
    reached = reach_units(table.path.table, dialect=dialect)
    row = RowSql(table=reached, dialect=dialect)
    keys = [f"{row.column(name)} AS keyhole_r{i}" for i, name in enumerate(table.path.through)]
    named = ", ".join(f"keyhole_r{i}" for i in range(len(keys)))
    units = [f"{row.column(name)} AS keyhole_q{i}" for i, name in enumerate(reached.unit)]
    present = " AND ".join(f"({row.column(name)}) IS NOT NULL" for name in (*table.path.through, *reached.unit))
    rows = f"(SELECT {', '.join([*keys, *units])} FROM {reached.relation} WHERE {present}) AS keyed"
    if len(units) == 1 and reached.column(reached.unit[0]).sql_type in _ORDERED:
        return f"(SELECT {named}, min(keyhole_q0) AS keyhole_p0 FROM {rows} GROUP BY {named}) AS found"
    order = ", ".join(f"keyhole_q{i}" for i in range(len(units)))
    shown = ", ".join(f"keyhole_q{i} AS keyhole_p{i}" for i in range(len(units)))
    place = f"row_number() OVER (PARTITION BY {named} ORDER BY {order}) AS keyhole_place"
    placed = f"(SELECT keyed.*, {place} FROM {rows}) AS placed"
    return f"(SELECT {named}, {shown} FROM {placed} WHERE keyhole_place = 1) AS found"
