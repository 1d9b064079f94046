"""The number of a row's group as SQL: a value is compared with few of many cuts.

No value makes it fail, and it takes the same time for each value. Nothing is computed from a value before it was
clamped, or if it has too many digits.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise, zip_longest
from typing import Protocol

import numpy as np

from planner.catalog.catalog import (
    Column,
    Computed,
    ComputedName,
    Derivation,
    MergedKeys,
    SqlType,
    Table,
    Value,
    ValueGroups,
)
from planner.catalog.derived_columns import PART_RANGES
from planner.catalog.steps import Run, Steps
from planner.lower.dialects.dialect import Dialect
from planner.question.condition import And, Condition, Leaf, Not, Or
from planner.values.sql_literals import write_integer

_FEW_STEPS = 8  # cuts that are compared one by one
_FARTHEST = 2**62  # whole numbers whose differences have 64 bits


class GroupedRow(Protocol):
    """A row as SQL reads it. It stands for `planner.lower.row.RowSql`, which this module must not import."""

    @property
    def table(self) -> Table:
        """The table to which the row belongs."""

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect of the engine that reads the row."""

    def write_column(self, name: str) -> str:
        """Return the SQL of a column's value."""

    def write_condition(self, condition: Condition) -> str:
        """Return the SQL of a row condition."""

    def write_truth(self, condition: Condition) -> str:
        """Return the SQL for the truth of a key's condition, NULL if it is unknown."""

    def write_comparison(self, expression: str, column: Column, operator: str, value: Value) -> str:
        """Return the SQL of a comparison with a constant."""

    def write_within(self, expression: str, column: Column, values: tuple[Value, ...]) -> str:
        """Return the SQL of a test for a list of constants."""


def write_group_number(row: GroupedRow, parts: ValueGroups) -> str:
    """Return the SQL of a row's group number, NULL for a row in no group."""
    if isinstance(parts.column, ComputedName) and parts.tests:
        return row.dialect.spelling.write_cast(_write_truth_number(row, parts), "integer")
    base = row.table.get_column(parts.column)
    value, cast = row.write_column(base.name), row.dialect.spelling.write_cast

    def between(first: int, past: int) -> str:
        groups = set(parts.groups[first : past + 1])
        if len(groups) == 1:
            return _write_number(groups.pop())
        middle = (first + past) // 2
        below = row.write_comparison(value, base, "<", parts.cut_points[middle])
        return f"CASE WHEN {below} THEN {between(first, middle)} ELSE {between(middle + 1, past)} END"

    if base.computed and isinstance(base.derivation, Derivation) and base.derivation.part in PART_RANGES:
        return cast(_write_part_group(row, parts, base.derivation), "integer")
    arms = [f"WHEN ({value}) IS NULL THEN {_write_number(parts.null_group)}"]
    steps = parts.cut_points if isinstance(parts.cut_points, Steps) else _find_equal_steps(parts)
    if steps is not None:
        return cast(f"CASE {' '.join(arms)} {_write_step_number(row, base, steps, parts.groups)} END", "integer")
    for test, group in zip(parts.tests, parts.groups, strict=False):
        assert isinstance(test, Leaf | Not | And | Or)
        arms.append(f"WHEN {row.write_truth(test)} THEN {_write_number(group)}")
    rest = "NULL" if parts.tests else between(0, len(parts.cut_points))
    return cast(f"CASE {' '.join(arms)} ELSE {rest} END", "integer")


def _write_part_group(row: GroupedRow, parts: ValueGroups, derived: Derivation) -> str:
    """Return the SQL of the group of a part of a time. It is computed once for each row, whatever the value.

    A time outside of the calendar is in no group, and is distinguished from NULL.
    """
    first, last = PART_RANGES[derived.part]
    cuts = [int(str(cut)) for cut in parts.cut_points]
    groups = [parts.groups[bisect_right(cuts, number)] for number in range(first, last + 1)]
    width = max(len(_write_number(group)) for group in groups)
    listed = "".join(_write_number(group).rjust(width, "0") for group in groups)
    found = f"({row.write_column(parts.column)}) - {first}"
    if groups != list(range(len(groups))):
        place = f"({found}) * {width} + 1"
        found = row.dialect.spelling.write_cast(row.dialect.pick_digits(listed, place, width), "integer")
    nulls = f"CASE WHEN ({row.write_column(derived.column)}) IS NULL THEN {_write_number(parts.null_group)} END"
    return f"COALESCE({found}, {nulls})"


def _write_truth_number(row: GroupedRow, parts: ValueGroups) -> str:
    """Return the SQL of the group of a condition: the second group if true, the first if false.

    It is computed once for each row, whatever the value.
    """
    test = parts.tests[1]
    assert isinstance(test, Leaf | Not | And | Or)
    (first, second), nulls, held = parts.groups, parts.null_group, f"({row.write_truth(test)})"
    if second == nulls or first == nulls:
        instead = "TRUE" if second == nulls else "FALSE"
        return f"CASE WHEN COALESCE({held}, {instead}) THEN {_write_number(second)} ELSE {_write_number(first)} END"
    if first == second:
        return f"CASE WHEN {held} IS NULL THEN {_write_number(nulls)} ELSE {_write_number(first)} END"
    assert (first, second) == (0, 1)
    return f"COALESCE({row.dialect.spelling.write_cast(held, 'integer')}, {_write_number(nulls)})"


def _write_number(group: int | None) -> str:
    return "NULL" if group is None else str(group)


def _find_equal_steps(parts: ValueGroups) -> Steps | None:
    """Return the cuts if they are whole numbers at equal distances with a group between any two. Else return None."""
    first, *others = parts.cut_points or (None,)
    if len(others) < _FEW_STEPS or type(first) is not int or type(others[0]) is not int:
        return None
    run = Run(first, others[0] - first, len(others) + 1)
    if max(abs(run.first), abs(run.last)) >= _FARTHEST or tuple(parts.cut_points) != tuple(run.numbers):
        return None
    return Steps((run,), None) if parts.groups == (None, *range(len(others)), None) else None


def _write_step_number(row: GroupedRow, base: Column, steps: Steps, groups: Sequence[int | None]) -> str:
    """Return the SQL of the CASE arms that number the steps of a value that is not NULL."""
    value, dialect = row.write_column(base.name), row.dialect
    first, last = steps[0], steps[-1]
    before = _write_number(groups[0])
    arms = f"WHEN {row.write_comparison(value, base, '<', first)} THEN {before}"
    arms += f" WHEN {row.write_comparison(value, base, '>=', last)} THEN {_write_number(groups[-1])}"
    low, high = steps.runs[0].first, steps.runs[-1].last
    if base.sql_type is SqlType.INTEGER:  # clamped before anything is subtracted: nothing overflows
        units = (
            f"LEAST(GREATEST({dialect.spelling.write_cast(value, 'bigint')}, {write_integer(low)}), "
            f"{write_integer(high)})"
        )
    elif isinstance(base.derivation, Computed):
        units = dialect.spelling.write_cast(
            f"LEAST(GREATEST({value}, {write_integer(low)}), {write_integer(high)})", "bigint"
        )
    else:
        assert steps.scale is not None
        digits = max(len(str(max(abs(low), abs(high)))) - steps.scale, 1)
        units = dialect.convert_to_whole(value, base.declared, digits, steps.scale, "bigint")
    number = 0 if groups[0] is None else 1
    counted: list[tuple[Run, str]] = []
    for run, after in zip_longest(steps.runs, steps.runs[1:]):
        quotient = dialect.divide_down(f"({units}) - {write_integer(run.first)}", run.step)
        if after is not None and after.first - run.last > run.step:  # its last step is a longer one
            quotient = f"LEAST({quotient}, {write_integer(run.count - 1)})"
        counted.append((run, f"{quotient} + {number}" if number else quotient))
        number += run.count
    for (_, found), (after, _) in pairwise(counted):
        arms += f" WHEN {row.write_comparison(value, base, '<', steps.convert_units(after.first))} THEN {found}"
    return f"{arms} ELSE {counted[-1][1]}"


def write_combination_number(row: GroupedRow, merged: MergedKeys) -> str:
    """Return the SQL for the number of a row's group by several keys. It is NULL if a key has an unknown value.

    Each key's value is first numbered. Values that make no difference share a number. A constant array then maps the
    combination of these numbers to the group.
    """
    groups = np.array(merged.groups).reshape([len(values) for values in merged.known])
    place = ""
    for axis, (name, values) in enumerate(zip(merged.columns, merged.known, strict=True)):
        alike: dict[bytes, list[int]] = {}
        for number, slice_ in enumerate(np.moveaxis(groups, axis, 0)):
            alike.setdefault(slice_.tobytes(), []).append(number)
        groups = np.take(groups, [same[0] for same in alike.values()], axis=axis)
        own = _write_value_number(row, name, values, tuple(map(tuple, alike.values())))
        place = f"({place}) * {len(alike)} + {own}" if place else own
    return row.dialect.spelling.write_cast(_write_look_up(row, place, groups.reshape(-1).tolist()), "integer")


def _write_value_number(
    row: GroupedRow, name: str, values: tuple[Value, ...], alike: tuple[tuple[int, ...], ...]
) -> str:
    """Return the SQL of the number of a key's value among the different ones, NULL for an unknown value.

    Parameters:
        alike: the places of the values that have each number.
    """
    column, expression = row.table.get_column(name), row.write_column(name)
    if isinstance(column.derivation, ValueGroups | MergedKeys) and values == tuple(range(len(values))):
        numbers = {place: number for number, same in enumerate(alike) for place in same}
        return _write_look_up(row, expression, [numbers[place] for place in range(len(values))])
    tests = (row.write_within(expression, column, tuple(values[place] for place in same)) for same in alike)
    return f"CASE {' '.join(f'WHEN {test} THEN {number}' for number, test in enumerate(tests))} END"


def _write_look_up(row: GroupedRow, place: str, listed: Sequence[int]) -> str:
    """Return the SQL of the list's item at a place, counted from 0."""
    if list(listed) == list(range(len(listed))):
        return place
    width = len(str(max(listed)))
    texts = "".join(str(number).rjust(width, "0") for number in listed)
    return row.dialect.spelling.write_cast(row.dialect.pick_digits(texts, f"({place}) * {width} + 1", width), "integer")
