"""The values of a question's keys for which rows may satisfy WHERE, such as the months that its days fall in.

    WHERE starts_on >= '2025-06-01' AND starts_on < '2025-09-01' GROUP BY date_trunc('month', starts_on)    3 months
    WHERE city IN ('Bonn', 'Aachen') GROUP BY districts.state                                               1 state

A row that is not in the data may have any value that WHERE allows. So an empty group that WHERE allows counts as 0.

Guarantee: a value is left out only if no row with it satisfies all conditions. This follows from the policy and the
statement alone. The list is exact for intervals: truncated times, steps of numbers, listed values and looked-up ones.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Sequence, Set
from itertools import compress, product
from typing import Any, cast

import numpy as np

from planner.catalog.catalog import Column, ComputedName, Derivation, Lookup, MergedKeys, Table, Value, ValueGroups
from planner.catalog.listed_values import remember_of_list
from planner.groups.inhabited.column_roots import CYCLIC, derive_value, find_roots, make_value_function, reads_roots
from planner.groups.inhabited.possible_truth import (
    Places,
    PossibleTruths,
    allow_both_truths,
    find_possible_places,
    test_values,
)
from planner.groups.inhabited.root_spans import (
    MOST_MOMENTS,
    RootLine,
    Spans,
    find_line,
    find_rising_column,
    find_spans,
    find_unit,
)
from planner.question.condition import And, Condition, Leaf, Not, Or, count_parts, join_all
from planner.question.disjoint import ConditionRows

_MOST_COMPARED = 100_000  # parts of conditions that are held against each other: some fifty milliseconds


def list_inhabited_values(
    key: Column, values: tuple[Value, ...], conditions: Iterable[Condition], table: Table
) -> tuple[Value, ...]:
    """Return the values of a key that some row may have which satisfies the conditions."""
    roots = find_roots(key, table)
    told = [one for one in conditions if reads_roots(one, roots, table)]
    left = _mark(key, values, told, table) if told else None
    return values if left is None else _keep(values, left)


def _keep(values: tuple[Value, ...], marks: Places) -> tuple[Value, ...]:
    """Return the marked values. If they are consecutive, equal arguments return the same tuple object."""
    count = int(np.count_nonzero(marks))
    if count in (0, len(values)):
        return values[:count]
    first = int(np.argmax(marks))
    return _slice(values, first, count) if marks[first : first + count].all() else tuple(compress(values, marks))


@remember_of_list
def _slice(values: tuple[Value, ...], first: int, count: int) -> tuple[Value, ...]:
    return values[first : first + count]


def _mark(column: Column, values: Sequence[Value], told: Sequence[Condition], table: Table) -> Places | None:
    """Return, by value, True if a row may have it. Return None if no value is known to be impossible."""
    roots = find_roots(column, table)
    match column.derivation:
        case _ if column.name in roots:
            return _find_possible_values(values, told, root=column.name, table=table)
        case MergedKeys() as merged:
            return _mark_members(values, _list_left_groups(merged, told, table))
        case ValueGroups(tests=tests) as parts if tests:
            return _mark_members(values, _list_tested_groups(parts, told, table))
        case ValueGroups() as parts:
            return _mark_parts(parts, values, told, table)
        case Lookup(column=base, pairs=pairs):
            held = (
                _find_possible_values(pairs.known, told, root=base, table=table)
                if base in roots
                else _mark(table.get_column(base), pairs.known, told, table)
            )
            return None if held is None else _mark_members(values, set(compress(pairs.found, held)))
        case Derivation() as derived:
            return _mark_times(column, derived, values, told, table)
        case _:
            return _find_possible_values(values, told, root=column.name, table=table)


def _mark_members(values: Sequence[Value], left: Container[Value | None] | None) -> Places | None:
    return None if left is None else np.fromiter(map(left.__contains__, values), np.bool_, len(values))


def _find_possible_values(
    values: Sequence[Value | None], told: Sequence[Condition], *, root: str, table: Table
) -> Places:
    """Return, by value of a column, True if the conditions may hold for a row with the value."""
    known: dict[str, Sequence[Value | None] | None] = {root: values}

    def test(leaf: Leaf) -> PossibleTruths:
        column = table.get_column(leaf.column)
        if column.name not in known:
            make = make_value_function(column, root, table)
            known[column.name] = None if make is None else [make(value) for value in values]
        found = known[column.name]
        return allow_both_truths(len(values)) if found is None else test_values(leaf, column, found)

    return find_possible_places(told, test, len(values))


def _list_left_groups(merged: MergedKeys, told: Sequence[Condition], table: Table) -> Set[Value] | None:
    """Return the groups of a merged key whose combinations of values may occur."""
    marked = [
        _mark(table.get_column(name), values, told, table)
        for name, values in zip(merged.columns, merged.known, strict=True)
    ]
    if all(marks is None for marks in marked):
        return None
    choices = [
        [True] * len(values) if marks is None else marks.tolist()
        for values, marks in zip(merged.known, marked, strict=True)
    ]
    return {group for group, held in zip(merged.groups, product(*choices), strict=True) if all(held)}


def _list_tested_groups(parts: ValueGroups, told: Sequence[Condition], table: Table) -> Set[int | None] | None:
    """Return the groups whose condition may hold together with the others."""
    tests = [test for test in parts.tests if isinstance(test, Leaf | Not | And | Or)]
    if sum(map(count_parts, told)) * sum(map(count_parts, tests)) > _MOST_COMPARED:
        return None
    rows = ConditionRows.from_condition(join_all(told))
    denied = {one.condition if isinstance(one, Not) else Not(one) for one in told}
    left = {
        group
        for test, group in zip(tests, parts.groups, strict=True)
        if denied.isdisjoint(test.list_conjuncts()) and not rows.are_disjoint_from(test)
    }
    if _find_possible_values([None], told, root=parts.column, table=table).all():
        left.add(parts.null_group)
    return left


def _mark_parts(parts: ValueGroups, values: Sequence[Any], told: Sequence[Condition], table: Table) -> Places | None:
    """Return, by group between cuts, True if a number or a time of the group may occur."""
    base = table.get_column(parts.column)
    line = find_line(base if isinstance(base.name, ComputedName) else _find_root(base, table))
    if line is None:
        return None
    scale, cuts = find_rising_column(base, line), cast("Sequence[Any]", parts.cut_points)
    within = scale is not None and cuts and parts.groups[0] is parts.groups[-1] is None
    ends = (scale.find_point(cuts[0]), scale.find_point(cuts[-1])) if scale is not None and within else (None, None)
    spans = find_spans(line, told, table, among=ends)
    if spans is None:
        return None
    pieces = np.zeros(len(cuts) + 1, dtype=np.bool_)
    if scale is not None:
        for low, high in spans.spans:
            first = 0 if low is None else bisect_right(cuts, low, key=scale.find_point)
            pieces[first : 1 + (len(cuts) if high is None else bisect_left(cuts, high, key=scale.find_point))] = True
    else:
        numbers = _list_numbers(base, cuts)
        marks = _mark(base, numbers, told, table)
        for number in numbers if marks is None else compress(numbers, marks):
            pieces[bisect_right(cuts, number)] = True
    groups = np.fromiter((-1 if group is None else group for group in parts.groups), np.int64, len(parts.groups))
    left = np.zeros(len(parts.shown_values) + 1, dtype=np.bool_)  # the last is none
    left[groups[pieces]] = True
    if parts.null_group is not None:
        left[parts.null_group] |= spans.includes_null or _may_miss(base, line, spans, table)
    return left[np.fromiter(values, np.int64, len(values))]


def _may_miss(column: Column, line: RootLine, spans: Spans, table: Table) -> bool:
    """Return True if a lookup may give NULL somewhere in the spans, because its row is missing or holds NULL."""
    if not isinstance(column.derivation, Lookup):
        return False
    base, pairs = find_rising_column(table.get_column(column.derivation.column), line), column.derivation.pairs
    if base is None:
        return True
    known = [value for value, found in zip(pairs.known, pairs.found, strict=True) if found is not None]
    return not spans.lie_within((base.find_point(value), base.find_point_after(value)) for value in known)


def _list_numbers(column: Column, cuts: Sequence[Any]) -> Sequence[Any]:
    """Return the numbers that a column may have within cuts: looked-up ones, or the integers of a part of a time."""
    if isinstance(column.derivation, Lookup):
        return tuple({value for value in column.derivation.pairs.found if value is not None})
    return range(cuts[0], cuts[-1])


def _find_root(column: Column, table: Table) -> Column:
    (root,) = find_roots(column, table)
    return table.get_column(root)


def _mark_times(
    column: Column, derived: Derivation, values: Sequence[Value], told: Sequence[Condition], table: Table
) -> Places | None:
    """Return, by calendar period or part of a time, True if some moment of the spans is in it."""
    line = find_line(table.get_column(derived.column))
    if line is None:
        return None
    again = [
        one for one in told if line.reads_cyclic_part(one, table)
    ]  # which a period may decide, however many there are
    told_by_value = _find_possible_values(values, again, root=column.name, table=table) if again else None
    scale, among = find_rising_column(column, line), cast("Sequence[Any]", values)
    ends = (
        (None, None)
        if scale is None or not among
        else (scale.find_point(min(among)), scale.find_point_after(max(among)))
    )
    spans = find_spans(line, told, table, among=ends)
    if spans is None:
        return told_by_value
    if scale is None:
        marks = _mark_members(values, _find_parts(derived, values, spans))
    else:
        marks = _mark_periods(derived, values, spans)
    if marks is None or told_by_value is None:
        return told_by_value if marks is None else marks
    return marks & told_by_value


def _mark_periods(derived: Derivation, values: Sequence[Any], spans: Spans) -> Places:
    ordered = sorted(values)
    marks = np.zeros(len(ordered), dtype=np.bool_)
    for first, last in spans.list_ends():
        marks[
            bisect_left(ordered, derive_value(derived, first)) : bisect_right(ordered, derive_value(derived, last))
        ] = True
    if ordered == list(values):
        return marks
    left = set(compress(ordered, marks))
    return np.fromiter((value in left for value in values), np.bool_, len(ordered))


def _find_parts(derived: Derivation, values: Sequence[Value], spans: Spans) -> Set[Value] | None:
    """Return the parts of the days, hours or minutes in the spans. Return None if these are too many to inspect."""
    wanted, found = frozenset(values), set[Value]()
    if derived.function != "extract" or derived.part not in CYCLIC:
        return None
    for place, (_, moment, _) in enumerate(spans.list_moments(find_unit([derived.part]))):
        if place == MOST_MOMENTS:
            return None
        part = derive_value(derived, moment)
        if part is not None and part in wanted:
            found.add(part)
            if len(found) == len(wanted):
                break
    return found
