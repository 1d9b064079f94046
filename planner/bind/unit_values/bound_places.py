"""Bounds on a unit in a question about its first rows: it adds no more rows than the question keeps places.

    SELECT product FROM (SELECT product, row_number() OVER (PARTITION BY person ORDER BY day) AS n FROM sales) q
    WHERE n <= 2 GROUP BY product HAVING count(*) > 50

A unit has one row in each place, so that two of its rows are read, in two groups at most. Other rows are left out
before a unit is bounded: they take no place of those that are asked for.

Guarantee: a bound is never wider than the one without WHERE, and is kept by the scan on any data.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from planner.catalog.catalog import Column, FixedKey, RowCap, Table
from planner.question.condition import Compare, Condition, Within, find_columns, make_test
from planner.question.question import ValuesOfRows

_MOST_PLACES = 100
"""Places of a unit's rows that a bound is narrowed to: with more, the table's own bounds are hardly ever wider."""


def narrow_by_row_numbers(table: Table, where: Condition) -> Table:
    """Return a question's table with the tighter bounds that hold if WHERE keeps only the first rows of each unit."""
    for name in _list_row_numbers(table):
        left = _list_remaining_numbers(name, where.list_conjuncts())
        if left:
            table = _narrow_table(table, FixedKey(name, left))
    return table


def _list_row_numbers(table: Table) -> list[str]:
    rules = [values.rule for values in table.own]
    return [one.name for rule in rules if isinstance(rule, ValuesOfRows) for one in rule.values if one.kind == "place"]


def _list_remaining_numbers(name: str, conjuncts: Sequence[Condition]) -> tuple[int, ...]:
    """Return the places that a condition leaves. Return none if they are too many or if no place is left."""
    own = [one for one in conjuncts if find_columns(one) == {name}]
    if not any(_has_last_place(one) for one in own):
        return ()
    tests = [make_test(one, name) for one in own]
    return tuple(place for place in range(1, _MOST_PLACES + 1) if all(test(place) is True for test in tests))


def _has_last_place(condition: Condition) -> bool:
    """Return True if no place beyond the most satisfies a condition."""
    match condition:
        case Compare(_, "=" | "<" | "<=", int() as value):
            return value <= _MOST_PLACES
        case Within(_, values):
            return all(isinstance(value, int) and value <= _MOST_PLACES for value in values)
        case _:
            return False


def _narrow_table(table: Table, key: FixedKey) -> Table:
    places, cap = len(key.values), table.row_cap
    return replace(
        table,
        columns=tuple(_narrow_total(column, places) for column in table.columns),
        groups_per_unit=min(table.groups_per_unit, places),
        rows_per_unit=None if table.rows_per_unit is None else min(table.rows_per_unit, places),
        row_cap=None if cap is None else RowCap(rows=min(cap.rows, places), unique=cap.unique),
        fixed=(*table.fixed, key),
    )


def _narrow_total(column: Column, places: int) -> Column:
    """Return a column with the range of a unit's total over `places` rows, each with a value within its bounds."""
    if column.bounds is None or (column.per_unit is None and not column.is_unit_value):
        return column
    low, high = min(Decimal(0), column.bounds[0] * places), max(Decimal(0), column.bounds[1] * places)
    if column.per_unit is not None:
        low, high = max(low, column.per_unit[0]), min(high, column.per_unit[1])
    return replace(column, per_unit=(low, high)) if low <= high else column
