"""One look at a standing question: rows that had come by then, in windows that were open when they came.

Guarantee: what is asked of a row here is fixed once the row is there: no row that comes later, and no later look,
changes whether it counts in one of its windows, but for the moment of the look itself. Nothing fails on data: times
are computed with between the years 1 and 9999, and outside, infinities included, only compared.

References: docs/proofs/units_over_a_horizon.md.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta

from planner.catalog.catalog import Column, Derivation, SqlType, Table, Value
from planner.catalog.key_space import KeySpace
from planner.errors import KeyholeError
from planner.lower.contribution_bounds import exceeds_groups, not_null
from planner.lower.dialects.dialect import Dialect
from planner.lower.domain import restriction
from planner.lower.functional import FunctionalSql
from planner.lower.joins import join_lookups, join_members
from planner.lower.row import RowSql
from planner.question.as_of import AsOf, InTime
from planner.question.condition import ALWAYS
from planner.question.question import Measure, Question


def over_horizon(question: Question) -> Question:
    """Return the question whose public windows are those of its horizon, if it is a look; any other unchanged."""
    as_of = question.as_of
    if as_of is None:
        return question

    def table(one: Table) -> Table:
        return replace(one, columns=tuple(as_of.over_horizon(column) for column in one.columns))

    keys = replace(question.keys, columns=tuple(as_of.over_horizon(column) for column in question.keys.columns))
    rows = question.per_unit
    rows = None if rows is None else replace(rows, table=table(rows.table))
    return replace(question, table=table(question.table), keys=keys, per_unit=rows)


def chooses(question: Question) -> bool:
    """Return True if some of a unit's groups or rows could be left out, so the order matters in which rows came.

    Then their time must say it. A date says it only at looks at midnight, as a day counts once it is over.
    """
    question = over_horizon(question)
    table = question.table if question.per_unit is None else question.per_unit.table
    return _leaves_out(table, question.keys)


def chooses_groups(question: Question) -> bool:
    """Return True if some of a unit's groups could be left out: then rows must stay as well.

    If the rows of a group that counted are deleted or changed, another group takes its place, and the unit was in more
    groups than count.
    """
    question = over_horizon(question)
    table = question.table if question.per_unit is None else question.per_unit.table
    return not table.is_row_unit and exceeds_groups(table, question.keys)


def _leaves_out(table: Table, keys: KeySpace) -> bool:
    return not table.is_row_unit and (table.row_cap is not None or exceeds_groups(table, keys))


def grows(question: Question, *, dialect: Dialect) -> tuple[bool, ...]:
    """Return, by functional, if its values and a unit's part of them can only grow as rows come.

    No row may add a negative amount: a total of a range that begins at 0 falls all the same where rows may. Nor may a
    unit, for its own sake or for some of its rows. Different values are a unit's own until another one has them too. A
    question over a subquery per unit is not looked into.
    """
    if question.per_unit is not None:
        return (False,) * len(question.functionals)
    known = question.table
    row = RowSql(table=join_lookups(join_members(known, dialect=dialect), dialect=dialect), dialect=dialect)
    return tuple(
        one.measure is not Measure.VALUES
        and not one.off_each_unit
        and (one.measure is not Measure.UNIT_SUM or all(term.coefficient > 0 for term in one.terms))
        and FunctionalSql.of(row, one, where=ALWAYS, among=question.where, known=known).least >= 0
        for one in question.functionals
    )


def arrival_tests(row: RowSql, as_of: AsOf, keys: KeySpace) -> list[str]:
    """Return SQL for the tests of a look on a row.

    It is in a window that is read, had come, and before that window closed.

    Raises KH900 where rows have no such time, or no window.
    """
    came = row.table.get_column(as_of.column)
    if came.sql_type not in (SqlType.DATE, SqlType.TIMESTAMP) or as_of.window not in keys.names:
        raise KeyholeError("KH900", "a look at rows without a time or a window")
    window = row.table.get_column(as_of.window)
    windows = windows_to_read(row.table, as_of, keys)
    tests = [restriction(row, window, windows) or not_null(row, window)]
    tests.append(_had_come(row, came, as_of.before, whole_days=_leaves_out(row.table, keys)))
    if not _is_time_of(came, window, as_of) and _closed_by(windows, as_of):
        tests.append(_while_open(row, came, window, as_of.window_open_for))
    return tests


def _had_come(row: RowSql, came: Column, look: datetime, *, whole_days: bool) -> str:
    """Return SQL for the test that a row had come by the look.

    With `whole_days` a date counts once its day is over. Until then rows may come that have it, and take the place of
    others.
    """
    if came.sql_type is SqlType.DATE and whole_days:
        look = datetime.combine(look.date(), time())
    return before(row, came, look)


def in_time_test(row: RowSql, in_time: InTime) -> str:
    """Return SQL for the test that a row had come when its time was first looked at. A time on no calendar never had.

    Raises KH900 where rows do not say when they came.
    """
    seen, came = row.table.get_column(in_time.column), row.table.get_column(in_time.arrived)
    if seen.sql_type not in (SqlType.DATE, SqlType.TIMESTAMP) or came.sql_type is not SqlType.TIMESTAMP:
        raise KeyholeError("KH900", "rows that count if they came in time, without a time")
    at, arrived, spelling = row.column(seen.name), row.column(came.name), row.dialect.spelling
    known = f"{arrived} BETWEEN {spelling.years(came.sql_type)} AND {at} BETWEEN {spelling.years(seen.sql_type)}"
    tick = row.dialect.floor_moment(spelling.as_moment(at), in_time.every, in_time.origin)
    made = f"{tick} + {spelling.interval(in_time.every + in_time.lateness)}"
    return f"CASE WHEN {known} THEN {spelling.as_moment(arrived)} < {made} ELSE FALSE END"


def windows_to_read(table: Table, as_of: AsOf, keys: KeySpace) -> tuple[Value, ...]:
    """Return the windows that are asked for.

    If a unit's groups are chosen among those of several windows, return all of the horizon.
    """
    place = keys.names.index(as_of.window)
    if table.is_row_unit or table.determines(keys.columns[place]) or not exceeds_groups(table, keys):
        return keys.values[place]
    return as_of.horizon


def _is_time_of(came: Column, window: Column, as_of: AsOf) -> bool:
    """Return True if windows are made of the column by which rows come: none comes after its own window."""
    if as_of.hopping is not None:
        return as_of.hopping.column == came.name
    return isinstance(window.derivation, Derivation) and window.derivation.column == came.name


def _closed_by(windows: Sequence[Value], as_of: AsOf) -> bool:
    """Return True if a row could have come by the look after one of the windows had closed."""
    # no sum of the two: the calendar ends with the year 9999
    return bool(windows) and as_of.before - moment(min(windows)) > as_of.window_open_for


def moment(window: Value) -> datetime:
    """Return the beginning of a window that is a date or a timestamp. Raise KH900 for any other value."""
    match window:
        case datetime():
            return window
        case date():
            return datetime.combine(window, time())
        case _:
            raise KeyholeError("KH900", "a window that is no time")


def before(row: RowSql, column: Column, end: datetime) -> str:
    """Return SQL for the test that a date or timestamp lies before a moment, in the column's type, unconverted."""
    expression, constant = row.column(column.name), row.dialect.spelling.constant
    if column.sql_type is SqlType.TIMESTAMP:
        return f"{expression} < {constant(end, column=column)}"
    return f"{expression} {'<' if _is_midnight(end) else '<='} {constant(end.date(), column=column)}"


def not_before(row: RowSql, column: Column, begin: datetime) -> str:
    """Return SQL for the test that a date or timestamp does not lie before a moment, in the column's type as well."""
    expression, constant = row.column(column.name), row.dialect.spelling.constant
    if column.sql_type is SqlType.TIMESTAMP:
        return f"{expression} >= {constant(begin, column=column)}"
    return f"{expression} {'>=' if _is_midnight(begin) else '>'} {constant(begin.date(), column=column)}"


def _is_midnight(moment: datetime) -> bool:
    return moment.time() == time()


def _while_open(row: RowSql, came: Column, window: Column, open_for: timedelta) -> str:
    """Return SQL for the test that a row came before its window closed.

    A row on no calendar is in no window, or came before all of them.
    """
    arrived, begins, spelling = row.column(came.name), row.column(window.name), row.dialect.spelling
    known = f"{arrived} BETWEEN {spelling.years(came.sql_type)} AND {begins} BETWEEN {spelling.years(window.sql_type)}"
    closes = f"{spelling.as_moment(begins)} + {spelling.interval(open_for)}"
    return f"CASE WHEN {known} THEN {spelling.as_moment(arrived)} < {closes} ELSE TRUE END"
