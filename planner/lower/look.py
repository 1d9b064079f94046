"""One look at a standing question: the rows that had come by then, in windows that were open when they came.

Guarantee: the tests on a row are fixed once the row is there. Except for the moment of the look itself, no later row
and no later look changes whether the row counts in one of its windows. Nothing fails on data. Times are computed with
between the years 1 and 9999, and outside, infinities included, only compared.

References: docs/proofs/units_over_a_horizon.md.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta

from planner.catalog.catalog import Column, Derivation, SqlType, Table, Value
from planner.catalog.key_space import KeySpace
from planner.errors import KeyholeError
from planner.lower.contribution_bounds import exceeds_groups, write_not_null
from planner.lower.dialects.dialect import Dialect
from planner.lower.domain import is_gapless, write_restriction
from planner.lower.functional import FunctionalSql
from planner.lower.joins import join_lookups, join_members
from planner.lower.row import RowSql
from planner.question.as_of import AsOf, InTime
from planner.question.condition import ALWAYS
from planner.question.question import Measure, Question


def extend_to_horizon(question: Question) -> Question:
    """Return a look's question with all windows of its horizon as public values. Any other question is unchanged."""
    as_of = question.as_of
    if as_of is None:
        return question

    def table(one: Table) -> Table:
        return replace(one, columns=tuple(as_of.extend_to_horizon(column) for column in one.columns))

    keys = replace(question.keys, columns=tuple(as_of.extend_to_horizon(column) for column in question.keys.columns))
    rows = question.per_unit
    rows = None if rows is None else replace(rows, table=table(rows.table))
    return replace(question, table=table(question.table), keys=keys, per_unit=rows)


def may_leave_out(question: Question) -> bool:
    """Return True if some of a unit's groups or rows may not count, so that the order in which rows came matters.

    The arrival times must then give that order. A date gives it only for looks at midnight, because a day counts once
    it is over.
    """
    question = extend_to_horizon(question)
    table = question.table if question.per_unit is None else question.per_unit.table
    return _may_leave_out(table, question.keys)


def may_leave_out_groups(question: Question) -> bool:
    """Return True if some of a unit's groups may not count, so that stored rows must never change.

    If the rows of a counted group were deleted or changed, another group would count in its place, and the unit would
    have been in more groups than may count.
    """
    question = extend_to_horizon(question)
    table = question.table if question.per_unit is None else question.per_unit.table
    return not table.is_row_unit and exceeds_groups(table, question.keys)


def _may_leave_out(table: Table, keys: KeySpace) -> bool:
    return not table.is_row_unit and (table.row_cap is not None or exceeds_groups(table, keys))


def find_growing_functionals(question: Question, *, dialect: Dialect) -> tuple[bool, ...]:
    """Return, by functional, True if its value and each unit's part of it can only grow as rows arrive.

    No row may add a negative amount: even a total whose range begins at 0 would fall. No unit may add one, for itself
    or for some of its rows. A unit's part of a count of different values can fall, since another unit may get the same
    value. Return False for questions over a subquery per unit.
    """
    if question.per_unit is not None:
        return (False,) * len(question.functionals)
    known = question.table
    row = RowSql(table=join_lookups(join_members(known, dialect=dialect), dialect=dialect), dialect=dialect)
    return tuple(
        one.measure not in (Measure.VALUES, Measure.UNIT_PARTS)
        and not one.off_each_unit
        and (one.measure is not Measure.UNIT_SUM or all(term.coefficient > 0 for term in one.terms))
        and FunctionalSql.from_functional(row, one, where=ALWAYS, among=question.where, known=known).least >= 0
        for one in question.functionals
    )


def write_arrival_tests(row: RowSql, as_of: AsOf, keys: KeySpace) -> list[str]:
    """Return SQL for a look's tests on a row: the row's window is read, and it came before look and close.

    Raises KH900 if rows have no such time, or no window.
    """
    came = row.table.get_column(as_of.column)
    if came.sql_type not in (SqlType.DATE, SqlType.TIMESTAMP) or as_of.window not in keys.names:
        raise KeyholeError("KH900", "the rows have no arrival time, or the keys have no window")
    window = row.table.get_column(as_of.window)
    windows = list_windows_to_read(row.table, as_of, keys)
    tests = [
        *_write_span(row, window, windows, as_of),
        write_restriction(row, window, windows) or write_not_null(row, window),
    ]
    tests.append(_write_arrival_test(row, came, as_of.before, whole_days=_may_leave_out(row.table, keys)))
    if not _is_time_of(came, window, as_of) and _may_come_late(windows, as_of):
        tests.append(_write_while_open(row, came, window, as_of.window_open_for))
    return tests


def _write_span(row: RowSql, window: Column, windows: Sequence[Value], as_of: AsOf) -> list[str]:
    """Return SQL for the test of the range in which windows lie that are apart: a source may skip rows outside."""
    if len(windows) < 2 or is_gapless(window, tuple(windows)):
        return []
    first, last = find_window_start(min(windows)), find_window_start(max(windows))
    span = tuple(one for one in as_of.horizon if first <= find_window_start(one) <= last)
    found = write_restriction(row, window, span) if is_gapless(window, span) else None
    return [] if found is None else [found]


def _write_arrival_test(row: RowSql, came: Column, look: datetime, *, whole_days: bool) -> str:
    """Return SQL for the test that a row had come by the look.

    With `whole_days` a date counts once its day is over. Until then more rows with the date may come and take the place
    of others.
    """
    if came.sql_type is SqlType.DATE and whole_days:
        look = datetime.combine(look.date(), time())
    return write_before_moment(row, came, look)


def write_in_time_test(row: RowSql, in_time: InTime) -> str:
    """Return SQL for the test that a row had arrived by the first look after its time.

    The test is false for rows whose time is on no calendar. Raise KH900 if rows do not say when they arrived.
    """
    seen, came = row.table.get_column(in_time.column), row.table.get_column(in_time.arrival_column)
    if seen.sql_type not in (SqlType.DATE, SqlType.TIMESTAMP) or came.sql_type is not SqlType.TIMESTAMP:
        raise KeyholeError("KH900", "the rows do not say when they arrived")
    at, arrived, spelling = row.write_column(seen.name), row.write_column(came.name), row.dialect.spelling
    known = (
        f"{arrived} BETWEEN {spelling.write_years(came.sql_type)} AND {at} BETWEEN "
        f"{spelling.write_years(seen.sql_type)}"
    )
    tick = row.dialect.floor_moment(spelling.convert_to_timestamp(at), in_time.look_interval, in_time.origin)
    made = f"{tick} + {spelling.write_interval(in_time.look_interval + in_time.lateness)}"
    return f"CASE WHEN {known} THEN {spelling.convert_to_timestamp(arrived)} < {made} ELSE FALSE END"


def list_windows_to_read(table: Table, as_of: AsOf, keys: KeySpace) -> tuple[Value, ...]:
    """Return the windows of the question, or all of the horizon if a unit's groups are chosen among several windows."""
    place = keys.names.index(as_of.window)
    if table.is_row_unit or table.determines(keys.columns[place]) or not exceeds_groups(table, keys):
        return keys.values[place]
    return as_of.horizon


def _is_time_of(came: Column, window: Column, as_of: AsOf) -> bool:
    """Return True if windows are made from the column by which rows come. Then no row comes after its own window."""
    if as_of.hopping is not None:
        return as_of.hopping.column == came.name
    return isinstance(window.derivation, Derivation) and window.derivation.column == came.name


def _may_come_late(windows: Sequence[Value], as_of: AsOf) -> bool:
    """Return True if a row could have come by the look after one of the windows had closed."""
    # no sum of the two: the calendar ends with the year 9999
    return bool(windows) and as_of.before - find_window_start(min(windows)) > as_of.window_open_for


def find_window_start(window: Value) -> datetime:
    """Return the beginning of a window that is a date or a timestamp. Raise KH900 for any other value."""
    match window:
        case datetime():
            return window
        case date():
            return datetime.combine(window, time())
        case _:
            raise KeyholeError("KH900", "a window is neither a date nor a timestamp")


def write_before_moment(row: RowSql, column: Column, end: datetime) -> str:
    """Return SQL for the test that a date or timestamp lies before a moment, in the column's own type."""
    expression, constant = row.write_column(column.name), row.dialect.spelling.write_constant
    if column.sql_type is SqlType.TIMESTAMP:
        return f"{expression} < {constant(end, column=column)}"
    return f"{expression} {'<' if _is_midnight(end) else '<='} {constant(end.date(), column=column)}"


def write_not_before_moment(row: RowSql, column: Column, begin: datetime) -> str:
    """Return SQL for the test that a date or timestamp does not lie before a moment, in the column's own type."""
    expression, constant = row.write_column(column.name), row.dialect.spelling.write_constant
    if column.sql_type is SqlType.TIMESTAMP:
        return f"{expression} >= {constant(begin, column=column)}"
    return f"{expression} {'>=' if _is_midnight(begin) else '>'} {constant(begin.date(), column=column)}"


def _is_midnight(moment: datetime) -> bool:
    return moment.time() == time()


def _write_while_open(row: RowSql, came: Column, window: Column, open_for: timedelta) -> str:
    """Return SQL for the test that a row came before its window closed.

    It is true for times on no calendar, which are in no window or before all of them.
    """
    arrived, begins, spelling = row.write_column(came.name), row.write_column(window.name), row.dialect.spelling
    known = (
        f"{arrived} BETWEEN {spelling.write_years(came.sql_type)} AND {begins} BETWEEN "
        f"{spelling.write_years(window.sql_type)}"
    )
    closes = f"{spelling.convert_to_timestamp(begins)} + {spelling.write_interval(open_for)}"
    return f"CASE WHEN {known} THEN {spelling.convert_to_timestamp(arrived)} < {closes} ELSE TRUE END"
