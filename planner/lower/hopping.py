"""Windows that overlap: a relation with one row for each window that a row is in.

Guarantee: a row stands there once for each window `w` of those that are read with `w <= time < w + length`, and for no
other; one without a time, or with one on no calendar, not at all. Windows are computed between the years 1 and 9999,
so that no row fails.

References: docs/proofs/units_over_a_horizon.md.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count, pairwise

from planner.catalog.catalog import Column, Table
from planner.errors import KeyholeError
from planner.lower.dialects.dialect import Dialect
from planner.lower.layout import indent_blocks, select, where
from planner.lower.look import before, moment, not_before, windows_to_read
from planner.lower.row import RowSql
from planner.question.as_of import Hopping
from planner.question.question import Question


def put_into_windows(table: Table, question: Question, *, dialect: Dialect) -> Table:
    """Return the table with the windows of a look as a stored column, if they overlap; any other table unchanged.

    Parameters:
        table: that of `question`, or of the subquery over it, members joined.

    Raises KH900 where the horizon is not one window every hop.
    """
    as_of = question.as_of
    if as_of is None or as_of.hopping is None:
        return table
    hopping = as_of.hopping
    windows = [moment(one) for one in windows_to_read(table, as_of, question.keys)]
    if any(b - a != hopping.hop for a, b in pairwise(map(moment, as_of.horizon))):
        raise KeyholeError("KH900", "windows that are not one every hop")
    row, time = RowSql(table=table, dialect=dialect), table.get_column(hopping.column)
    stored = [one.name for one in table.columns if one.derivation is None and one.name != as_of.window]
    window, spelling = table.get_column(as_of.window), dialect.spelling
    within = [not_before(row, time, min(windows)), before(row, time, max(windows) + hopping.length)]
    if len(windows) == 1:
        begins, source = spelling.constant(windows[0], column=window), [f"FROM {table.relation}"]
    else:
        overlap = hopping.windows_of_a_row > 1
        back = _free_name(table) if overlap else spelling.interval(timedelta())
        begins = _begins(row, time, back, hopping, windows[0])
        source = [f"FROM {table.relation}", *([f"CROSS JOIN {_hops(hopping, back, dialect)}"] if overlap else [])]
        if hopping.length % hopping.hop:
            within.append(_lasts(row, time, begins, hopping.length))
    lines = [
        "(",
        "  -- each row once for every window that it is in",
        *indent_blocks(
            select([*map(spelling.identifier, stored), f"{begins} AS {spelling.identifier(window.name)}"]),
            source,
            where(within),
        ),
        ") AS hopping",
    ]
    return replace(table, relation="\n".join(lines))


def _hops(hopping: Hopping, name: str, dialect: Dialect) -> str:
    """Return the SQL of a relation of how far the windows of a row lie before its last one."""
    rows = ", ".join(f"({dialect.spelling.interval(i * hopping.hop)})" for i in range(hopping.windows_of_a_row))
    return f"(VALUES {rows}) AS {name}s({name})"


def _begins(row: RowSql, time: Column, back: str, hopping: Hopping, origin: datetime) -> str:
    """Return the beginning of the row's last window, and of those before it."""
    at = row.column(time.name)
    last = row.dialect.floor_moment(row.dialect.spelling.as_moment(at), hopping.hop, origin)
    return f"CASE WHEN {at} BETWEEN {row.dialect.spelling.years(time.sql_type)} THEN {last} - {back} END"


def _lasts(row: RowSql, time: Column, begins: str, length: timedelta) -> str:
    """Return the SQL of a test that a row is still in its window.

    It matters if windows are no whole number of hops, so rows are not in equally many.
    """
    at = row.column(time.name)
    known = f"{at} BETWEEN {row.dialect.spelling.years(time.sql_type)}"
    spelling = row.dialect.spelling
    ends = f"{begins} + {spelling.interval(length)}"
    return f"CASE WHEN {known} THEN {spelling.as_moment(at)} < {ends} ELSE FALSE END"


def _free_name(table: Table) -> str:
    taken = {column.name.lower() for column in table.columns}
    return next(name for i in count() if (name := f"keyhole_hop{i}") not in taken)
