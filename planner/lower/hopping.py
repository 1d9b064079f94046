"""Windows that overlap: a relation with one row for each window that a row is in.

Guarantee: a row is there once for each window `w` that is read with `w <= time < w + length`, and for no other window.
A row without a time, or with a time on no calendar, is not there. Windows are computed between the years 1 and 9999, so
no row fails.

References: docs/proofs/units_over_a_horizon.md.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count, pairwise

from planner.catalog.catalog import Column, Table
from planner.errors import KeyholeError
from planner.lower.dialects.dialect import Dialect
from planner.lower.layout import indent_blocks, write_select, write_where
from planner.lower.look import find_window_start, list_windows_to_read, write_before_moment, write_not_before_moment
from planner.lower.row import RowSql
from planner.question.as_of import Hopping
from planner.question.question import Question


def put_into_windows(table: Table, question: Question, *, dialect: Dialect) -> Table:
    """Return the table with the windows of a look as a stored column, if they overlap.

    Return any other table unchanged.

    Parameters:
        table: the table of `question`, or of its subquery, with members joined.

    Raises KH900 if the horizon is not one window every hop.
    """
    as_of = question.as_of
    if as_of is None or as_of.hopping is None:
        return table
    hopping = as_of.hopping
    windows = [find_window_start(one) for one in list_windows_to_read(table, as_of, question.keys)]
    if any(b - a != hopping.hop for a, b in pairwise(map(find_window_start, as_of.horizon))):
        raise KeyholeError("KH900", "the horizon does not have one window every hop")
    row, time = RowSql(table=table, dialect=dialect), table.get_column(hopping.column)
    stored = [one.name for one in table.columns if one.derivation is None and one.name != as_of.window]
    window, spelling = table.get_column(as_of.window), dialect.spelling
    within = [
        write_not_before_moment(row, time, min(windows)),
        write_before_moment(row, time, max(windows) + hopping.length),
    ]
    if len(windows) == 1:
        begins, source = spelling.write_constant(windows[0], column=window), [f"FROM {table.relation}"]
    else:
        overlap = hopping.windows_of_a_row > 1
        back = _find_free_name(table) if overlap else spelling.write_interval(timedelta())
        begins = _write_begin(row, time, back, hopping, windows[0])
        source = [f"FROM {table.relation}", *([f"CROSS JOIN {_write_hops(hopping, back, dialect)}"] if overlap else [])]
        if hopping.length % hopping.hop:
            within.append(_write_last_test(row, time, begins, hopping.length))
    lines = [
        "(",
        "  -- each row once for every window that it is in",
        *indent_blocks(
            write_select(
                [*map(spelling.quote_identifier, stored), f"{begins} AS {spelling.quote_identifier(window.name)}"]
            ),
            source,
            write_where(within),
        ),
        ") AS hopping",
    ]
    return replace(table, relation="\n".join(lines))


def _write_hops(hopping: Hopping, name: str, dialect: Dialect) -> str:
    """Return SQL for a relation with the distances of a row's windows from its last one."""
    rows = ", ".join(f"({dialect.spelling.write_interval(i * hopping.hop)})" for i in range(hopping.windows_of_a_row))
    return f"(VALUES {rows}) AS {name}s({name})"


def _write_begin(row: RowSql, time: Column, back: str, hopping: Hopping, origin: datetime) -> str:
    """Return SQL for the beginning of the row's last window minus a distance."""
    at = row.write_column(time.name)
    last = row.dialect.floor_moment(row.dialect.spelling.convert_to_timestamp(at), hopping.hop, origin)
    return f"CASE WHEN {at} BETWEEN {row.dialect.spelling.write_years(time.sql_type)} THEN {last} - {back} END"


def _write_last_test(row: RowSql, time: Column, begins: str, length: timedelta) -> str:
    """Return SQL for the test that a row is still in its window.

    It matters if a window is no whole number of hops, because rows are then in different numbers of windows.
    """
    at = row.write_column(time.name)
    known = f"{at} BETWEEN {row.dialect.spelling.write_years(time.sql_type)}"
    spelling = row.dialect.spelling
    ends = f"{begins} + {spelling.write_interval(length)}"
    return f"CASE WHEN {known} THEN {spelling.convert_to_timestamp(at)} < {ends} ELSE FALSE END"


def _find_free_name(table: Table) -> str:
    taken = {column.name.lower() for column in table.columns}
    return next(name for i in count() if (name := f"keyhole_hop{i}") not in taken)
