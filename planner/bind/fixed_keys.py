"""Keys that a question's WHERE fixes to a few values, and the narrower bounds that follow from it.

    [tables.admissions.groupings]
    "ward, month" = { max_groups = 4, rows = 2 }

    SELECT ward FROM admissions WHERE month = '2025-11-01' GROUP BY ward HAVING count(*) > 100

All rows that are read lie in one month, so that a unit's rows in a ward are its rows in one group by ward and month: 2
of them count. In k months they lie in k such groups. Rows of other values are left out before a unit is bounded, so
that they take no place of the rows that are asked for.

Guarantee: a bound is never wider than the one without WHERE. It is a function of policy and statement, and kept by the
scan on any data. Every row that WHERE keeps has one of the values, so that none is left out that would count.

References: docs/proofs/finer_keys.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

from planner.bind.unit_join import apply_bounds
from planner.catalog.catalog import Column, Derivation, FixedKey, Table, Value
from planner.catalog.derived_columns import is_derivable
from planner.question.condition import Compare, Condition, Within, find_columns, make_test

MOST_VALUES = 1000
"""Values of a fixed key: rows are bounded as many times, which is hardly ever less, and a statement lists them all."""


def narrow_by_fixed_keys(declared: Table, bounded: Table, *, keys: Sequence[Column], where: Condition) -> Table:
    """Return a question's table with narrower contribution bounds, if its WHERE fixes some keys to single values.

    A fixed key is kept only if it narrows a bound.

    Parameters:
        declared: the table with the owner's groupings.
        bounded: the same table with the bounds for the question's keys.
    """
    fixed = tuple(_find_fixed_keys(declared, keys, where)) if bounded.unit else ()
    if not fixed:
        return bounded
    best = _take_smaller_bounds(bounded, apply_bounds(declared, keys, fixed))
    named = {name for grouping in declared.groupings for name in grouping.keys}
    for one in sorted(fixed, key=lambda key: key.name in named):  # a key by which it is declared says more
        fewer = tuple(other for other in fixed if other != one)
        if _take_smaller_bounds(bounded, apply_bounds(declared, keys, fewer)) == best:
            fixed = fewer
    return replace(best, fixed=fixed)


def _take_smaller_bounds(table: Table, other: Table) -> Table:
    """Return the table with the lesser of two bounds each."""
    totals = {column.name: column.per_unit for column in other.columns}
    cap = table.row_cap
    if cap is not None and other.row_cap is not None and other.row_cap.rows < cap.rows:
        cap = other.row_cap
    return replace(
        table,
        columns=tuple(_narrow_total(column, totals.get(column.name)) for column in table.columns),
        groups_per_unit=min(table.groups_per_unit, other.groups_per_unit),
        rows_per_unit=min(
            (rows for rows in (table.rows_per_unit, other.rows_per_unit) if rows is not None), default=None
        ),
        row_cap=cap,
    )


def _narrow_total(column: Column, other: tuple[Decimal, Decimal] | None) -> Column:
    if column.per_unit is None or other is None:
        return column
    (low, high), (least, most) = column.per_unit, other
    narrower = max(low, least), min(high, most)
    return replace(column, per_unit=narrower) if narrower[0] <= narrower[1] else column


def _find_fixed_keys(table: Table, keys: Sequence[Column], where: Condition) -> Iterator[FixedKey]:
    """Yield the keys that a condition restricts to a few declared values."""
    taken = {key.name for key in keys}
    for column in table.columns:
        if column.domain is None or column.name in taken or table.determines(column):
            continue
        values = _list_remaining_values(table, column, where)
        if values is not None and 0 < len(values) <= MOST_VALUES:
            yield FixedKey(column.name, values)


def _list_remaining_values(table: Table, column: Column, where: Condition) -> tuple[Value, ...] | None:
    """Return the values of a key that a condition leaves. Return None if a row may have another value."""
    conjuncts = where.list_conjuncts()
    listed = [listed for one in conjuncts if (listed := _list_values(one, column)) is not None]
    periods = _list_periods(table, column, conjuncts)
    if periods is not None:
        listed.append(periods)
    if not listed:
        return None
    left = frozenset.intersection(*map(frozenset, listed))
    own = [make_test(one, column.name) for one in conjuncts if find_columns(one) == {column.name}]
    kept = frozenset(value for value in left if all(holds(value) is True for holds in own))
    domain = column.domain or ()
    return tuple(value for value in domain if value in kept) if kept <= frozenset(domain) else None


def _list_values(condition: Condition, column: Column) -> tuple[Value, ...] | None:
    match condition:
        case Compare(name, "=", value) if name == column.name:
            return (value,)
        case Within(name, values) if name == column.name:
            return values
        case _:
            return None


def _list_periods(table: Table, column: Column, conjuncts: Sequence[Condition]) -> tuple[Value, ...] | None:
    """Return the periods of a calendar that cover the rows between two times.

    Return None if the calendar lacks some, or if the time is open on a side.
    """
    derived = column.derivation
    if not isinstance(derived, Derivation) or derived.function == "extract":
        return None
    first: list[date] = []
    last: list[date] = []
    try:
        for one in conjuncts:
            if isinstance(one, Compare | Within) and _keeps_order(table.get_column(one.column), column, derived):
                lows, highs = _find_ends(one)
                first += [_find_period(derived, value) for value in lows]
                last += [_find_period(derived, value) for value in highs]
    except OverflowError:  # at the ends of the calendar
        return None
    if not first or not last:
        return None
    low, high = max(first), min(last)
    periods = sorted(value for value in column.domain or () if isinstance(value, date) and low <= value <= high)
    if not periods or (periods[0], periods[-1]) != (low, high):
        return None
    joined = all(_find_period(derived, _find_earlier_time(later)) == earlier for earlier, later in pairwise(periods))
    return tuple(periods) if joined else None


def _keeps_order(read: Column, column: Column, derived: Derivation) -> bool:
    """Return True if an earlier value of a column that is read is never in a later period."""
    written = isinstance(read.derivation, Derivation) and read.derivation.function == "extract"
    return not written and (read.name == column.name or is_derivable(derived, read))


def _find_ends(condition: Compare | Within) -> tuple[list[date], list[date]]:
    """Return the earliest and the latest time that a comparison allows, each if there is one."""
    match condition:
        case Within(_, values):
            times = [value for value in values if isinstance(value, date)]
            return ([min(times)], [max(times)]) if len(times) == len(values) and times else ([], [])
        case Compare(_, "=", date() as value):
            return [value], [value]
        case Compare(_, ">", date() as value):
            # a time may be finer than a microsecond: the period where the open end lies is kept
            return [value if isinstance(value, datetime) else value + timedelta(days=1)], []
        case Compare(_, ">=", date() as value):
            return [value], []
        case Compare(_, "<", date() as value):
            return [], [_find_earlier_time(value)]
        case Compare(_, "<=", date() as value):
            return [], [value]
        case _:
            return [], []


def _find_earlier_time(value: date) -> date:
    """Return a time before which no period ends that has not ended before the given one."""
    return value - (timedelta(microseconds=1) if isinstance(value, datetime) else timedelta(days=1))


def _find_period(derived: Derivation, value: date) -> date:
    """Return the period of a calendar in which a time lies."""
    if derived.part == "hour":
        time = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        return time.replace(minute=0, second=0, microsecond=0)
    day = date(value.year, value.month, value.day)
    match derived.part:
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "year":
            return day.replace(month=1, day=1)
        case _:
            return day
