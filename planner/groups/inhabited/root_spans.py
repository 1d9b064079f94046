"""The spans of a date's, timestamp's or number's values in which the conditions on it may hold.

The line of values is cut at each value where a comparison changes. Between two cuts every comparison has one truth,
whether it is of the column, of its calendar or of a value that is looked up by these. Recurring parts of a time, such
as its weekday, are tested day by day if the days are few.

Guarantee: every value for which a row may satisfy all conditions lies in a span, infinite times and NaN included.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import islice, pairwise
from math import ceil, floor, inf, isfinite, nextafter
from typing import Any, TypeAlias

import numpy as np

from planner.catalog.catalog import Column, Computed, Derivation, Lookup, SqlType, Table, Value
from planner.catalog.derived_columns import find_calendar_step
from planner.groups.inhabited.column_roots import CYCLIC, derive_value
from planner.groups.inhabited.possible_truth import (
    Places,
    PossibleTruths,
    allow_both_truths,
    find_possible_places,
    test_values,
)
from planner.groups.number_parts import find_column_unit
from planner.question.condition import Compare, Condition, IsNull, Leaf, Within, find_columns
from planner.values.datetimes import STEPS, move_to_midnight, shift_moment, truncate_to_unit

MOST_MOMENTS = 10_000
"""The most days, hours or minutes that are tested one by one: some twenty milliseconds."""
_MOST_TESTS = 30_000_000  # comparisons times the parts of the line: a tenth of a second
Key: TypeAlias = Any  # a place on the line: whole numbers, doubles, or decimals with what lies just after them
Span: TypeAlias = tuple[Key | None, Key | None]
_EPOCH = datetime(1, 1, 1)
_UNITS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class RootLine:
    """A line on which the values of a column are points, as numbers in the order of the values.

    The line of a time also has years at both ends for which no derived values exist.
    """

    column: Column

    @property
    def is_time(self) -> bool:
        """True if the column is a date or a timestamp."""
        return self.column.sql_type in (SqlType.DATE, SqlType.TIMESTAMP)

    @property
    def calendar(self) -> tuple[Key, Key]:
        """The first point of the calendar on the line, and the first point after the calendar."""
        return self.find_point(date.min), self.find_point_after(
            datetime.max if self.column.sql_type is SqlType.TIMESTAMP else date.max
        )

    def find_point(self, value: Value) -> Key:
        """Return the point of a value. If the column cannot have the value, return the first point above it."""
        return self._find_point(value, after=False)

    def find_point_after(self, value: Value) -> Key:
        """Return the first point above a value."""
        return self._find_point(value, after=True)

    def _find_point(self, value: Any, *, after: bool) -> Key:
        match self.column.sql_type:
            case SqlType.DATE:
                return move_to_midnight(value).toordinal() + after
            case SqlType.TIMESTAMP:
                return 2 * ((move_to_midnight(value) - _EPOCH) // _MICROSECOND) + after
            case SqlType.DOUBLE:
                number = float(value)
                return nextafter(number, inf) if after else number
            case _:
                unit = find_column_unit(self.column)
                if unit is None:
                    return Decimal(value), after
                units = Fraction(value) / unit
                return floor(units) + 1 if after else ceil(units)

    def find_moment(self, place: Key) -> datetime:
        """Return the time at a point. If none is there, return the last time before it."""
        if self.column.sql_type is SqlType.DATE:
            return datetime.fromordinal(place)
        found: datetime = _EPOCH + place // 2 * _MICROSECOND
        return found

    def reads_cyclic_part(self, condition: Condition, table: Table) -> bool:
        """Return True if a condition reads a recurring part of the time, such as its hour or weekday."""
        return any(_find_cyclic_part(table.get_column(name), self) for name in find_columns(condition))

    def is_comparable(self, value: Value) -> bool:
        """Return True if a constant can be compared with the column's values on the line."""
        match self.column.sql_type:
            case SqlType.DATE:
                return isinstance(value, date) and not isinstance(value, datetime)
            case SqlType.TIMESTAMP:
                return isinstance(value, date)
            case SqlType.DOUBLE:
                return isinstance(value, int | Decimal) and isfinite(float(value))
            case _:
                return isinstance(value, int | Decimal) and not isinstance(value, bool) and isfinite(value)


@dataclass(frozen=True, slots=True)
class Spans:
    """Stretches of a column's line in which conditions may hold.

    Each includes its first point and ends before its last one.

    An end of None is open. `includes_null`: the conditions may hold for NULL.
    """

    line: RootLine
    spans: tuple[Span, ...]
    includes_null: bool

    def clip(self, among: Span) -> "Spans":
        """Return the part of the spans within the stretch `among`."""
        first, past = among
        spans = (
            (low if first is None or (low is not None and low > first) else first,
             high if past is None or (high is not None and high < past) else past)
            for low, high in self.spans
        )  # fmt: skip
        kept = ((low, high) for low, high in spans if low is None or high is None or low < high)
        return Spans(self.line, tuple(kept), self.includes_null)

    def lie_within(self, others: Iterable[tuple[Key, Key]]) -> bool:
        """Return True if the stretches `others` cover the spans."""
        pieces = sorted(others)
        firsts = [first for first, _ in pieces]
        for low, high in self.spans:
            reached = low
            while reached is None or high is None or reached < high:
                place = -1 if reached is None else bisect_right(firsts, reached) - 1
                if place < 0 or pieces[place][1] <= reached:
                    return False
                reached = pieces[place][1]
        return True

    def list_ends(self) -> Iterator[tuple[datetime, datetime]]:
        """Yield the first and the last time in each span, except for spans outside of the calendar."""
        first, past = self.line.calendar
        for low, high in self.spans:
            at = first if low is None else max(low, first)
            end = past if high is None else min(high, past)
            if at < end:
                yield self.line.find_moment(at), self.line.find_moment(end - 1)

    def list_moments(self, unit: str) -> Iterator[tuple[Key, datetime, Key]]:
        """Yield each day, hour or minute (`unit` says which) that overlaps a span.

        Each item has the first point of the unit on the line, the time there, and the point after the unit.
        """
        step = _UNITS[unit]
        first, past = self.line.calendar
        for low, high in self.spans:
            at = first if low is None else max(low, first)
            end = past if high is None else min(high, past)
            while at < end:
                start = self.line.find_moment(at)
                begun = truncate_to_unit(start, unit)
                after = min(self.line.find_point(begun + step) if begun <= datetime.max - step else past, end)
                yield at, start, after
                at = after


def find_line(column: Column) -> RootLine | None:
    """Return the line of a stored or computed column. Return None if engines do not agree on its values' order."""
    numbers = (SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE)
    rooted = column.derivation is None or isinstance(column.derivation, Computed)
    ordered = rooted and column.sql_type in (SqlType.DATE, SqlType.TIMESTAMP, *numbers)
    return RootLine(column) if ordered else None


@dataclass(frozen=True, slots=True)
class RisingColumn:
    """A column whose value never decreases as the value of its root column increases."""

    line: RootLine
    derivation: Derivation | None

    def find_point(self, value: Value) -> Key:
        """Return the first point of the root's line at which the column has the value or a greater one."""
        return self._find_ends(value)[0]

    def find_point_after(self, value: Value) -> Key:
        """Return the first point of the root's line at which the column is greater than the value."""
        return self._find_ends(value)[1]

    def _find_ends(self, value: Any) -> tuple[Key, Key]:
        if self.derivation is None:
            return self.line.find_point(value), self.line.find_point_after(value)
        if self.derivation.function == "extract":
            return self._find_year_start(value), self._find_year_start(value + 1)
        unit = "day" if self.derivation.function == "date" else self.derivation.part
        start = truncate_to_unit(value, unit)
        past = self._find_next(start, unit)
        return (self.line.find_point(start) if start == move_to_midnight(value) else past), past

    def _find_next(self, start: datetime, unit: str) -> Key:
        try:
            return self.line.find_point(shift_moment(start, STEPS[unit], 1))
        except (OverflowError, ValueError):
            return self.line.calendar[1]

    def _find_year_start(self, number: int) -> Key:
        assert self.derivation is not None
        if not 1 <= number <= 9999:
            return self.line.calendar[number > 9999]
        first = date.fromisocalendar(number, 1, 1) if self.derivation.part == "isoyear" else date(number, 1, 1)
        return self.line.find_point(first)

    def is_comparable(self, value: Value) -> bool:
        """Return True if a constant can be compared with the column's values on the line."""
        if self.derivation is None:
            return self.line.is_comparable(value)
        if self.derivation.function == "extract":
            return type(value) is int
        return isinstance(value, date)


def find_rising_column(column: Column, line: RootLine) -> RisingColumn | None:
    """Return the column as a `RisingColumn`, or None if its value may decrease while its root increases."""
    if column.name == line.column.name:
        return RisingColumn(line, None)
    derived = column.derivation
    if not isinstance(derived, Derivation) or derived.column != line.column.name:
        return None
    if derived.function == "extract":
        return RisingColumn(line, derived) if derived.part in ("year", "isoyear") else None
    return RisingColumn(line, derived) if find_calendar_step(column) is not None else None


def find_spans(
    line: RootLine, conditions: Sequence[Condition], table: Table, *, among: Span = (None, None)
) -> Spans | None:
    """Return the spans in which the conditions may hold. Return None if there are too many tests.

    Parameters:
        among: the stretch of the line that matters. Spans outside of it may be left out.
    """
    cells = _Cells.from_conditions(line, conditions, table)
    if cells is None:
        return None
    test, count = cells.test_leaf, len(cells.cuts) + 2
    coarse = cells.join_cells(find_possible_places(conditions, test, count)).clip(among)
    leaves = [leaf for one in conditions for leaf in one.walk_leaves()]
    again = {part for leaf in leaves if (part := _find_cyclic_part(table.get_column(leaf.column), line))}
    if not again or not line.is_time:
        return coarse
    return _refine_spans(cells, coarse, conditions, unit=find_unit(again)) or coarse


def find_unit(parts: Iterable[str]) -> str:
    """Return the longest of days, hours and minutes during which each of these parts of a time is constant."""
    return next((unit for unit in ("minute", "hour") if unit in parts), "day")


def _find_cyclic_part(column: Column, line: RootLine) -> str | None:
    derived = column.derivation
    found = isinstance(derived, Derivation) and derived.column == line.column.name and derived.function == "extract"
    return derived.part if found and isinstance(derived, Derivation) and derived.part in CYCLIC else None


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells of the line between cuts, the last one for NULL."""

    line: RootLine
    table: Table
    cuts: tuple[Key, ...]

    @staticmethod
    def from_conditions(line: RootLine, conditions: Iterable[Condition], table: Table) -> "_Cells | None":
        found, tests = set(line.calendar if line.is_time else ()), 0
        for leaf in (leaf for one in conditions for leaf in one.walk_leaves()):
            tests += 1
            for scale, value in _list_changes(leaf, line, table):
                found |= {scale.find_point(value), scale.find_point_after(value)}
        return None if tests * len(found) > _MOST_TESTS else _Cells(line, table, tuple(sorted(found)))

    def find_first_cell(self, place: Key) -> int:
        """Return the first cell that does not lie below a cut."""
        return bisect_left(self.cuts, place) + 1

    def test_leaf(self, leaf: Leaf) -> PossibleTruths:
        """Return the cells in which a test may be true, and those in which it may be false."""
        count = len(self.cuts) + 2
        column = self.table.get_column(leaf.column)
        scale, lookup = find_rising_column(column, self.line), column.derivation
        if scale is not None:
            return self._compare(leaf, scale, self._mark_present(derived=scale.derivation is not None))
        if _find_cyclic_part(column, self.line):
            present = self._mark_present(derived=True)
            return PossibleTruths(~present if isinstance(leaf, IsNull) else present, present)
        if not isinstance(lookup, Lookup) or not lookup.is_listed:
            return allow_both_truths(count)
        base = find_rising_column(self.table.get_column(lookup.column), self.line)
        if base is None or not all(base.is_comparable(known) for known in lookup.pairs.known):
            return allow_both_truths(count)
        none = test_values(leaf, column, [None])
        true, false = (np.full(count, bool(one[0])) for one in (none.may_be_true, none.may_be_false))
        found = test_values(leaf, column, lookup.pairs.found)
        for known, held, failed in zip(lookup.pairs.known, found.may_be_true, found.may_be_false, strict=True):
            place = slice(
                self.find_first_cell(base.find_point(known)), self.find_first_cell(base.find_point_after(known))
            )
            true[place], false[place] = held, failed
        return PossibleTruths(true, false)

    def _mark_present(self, *, derived: bool) -> Places:
        """Return True, by cell, if a column has a value there. Outside of the calendar nothing is derived."""
        present = np.ones(len(self.cuts) + 2, dtype=np.bool_)
        present[-1] = False
        if derived:
            first, past = map(self.find_first_cell, self.line.calendar)
            present[:first] = False
            present[past:] = False
        return present

    def _compare(self, leaf: Leaf, scale: RisingColumn, present: Places) -> PossibleTruths:
        true = np.zeros_like(present)
        match leaf:
            case IsNull():
                return PossibleTruths(~present, present)
            case Compare(_, operator, value) if scale.is_comparable(value):
                low, high = (
                    self.find_first_cell(scale.find_point(value)),
                    self.find_first_cell(scale.find_point_after(value)),
                )
                sides = {"<": (0, low), "<=": (0, high), ">": (high, None), ">=": (low, None)}
                true[slice(*sides.get(operator, (low, high)))] = True
                true = ~true if operator == "<>" else true
            case Within(_, values) if all(map(scale.is_comparable, values)):
                for value in values:
                    true[
                        self.find_first_cell(scale.find_point(value)) : self.find_first_cell(
                            scale.find_point_after(value)
                        )
                    ] = True
            case _:
                return allow_both_truths(len(present))
        return PossibleTruths(true & present, ~true & present)

    def join_cells(self, held: Places) -> Spans:
        """Return the spans of the cells marked True in `held`. The last cell is that of NULL."""
        ends: list[Key | None] = [None, *self.cuts, None]
        spans: list[Span] = []
        for cell in np.flatnonzero(held[:-1]).tolist():
            low, high = ends[cell], ends[cell + 1]
            if spans and cell and spans[-1][1] == low:
                spans[-1] = (spans[-1][0], high)
            else:
                spans.append((low, high))
        return Spans(self.line, tuple(spans), bool(held[-1]))


def _list_changes(leaf: Leaf, line: RootLine, table: Table) -> Iterator[tuple[RisingColumn, Value]]:
    """Yield the values at which a test changes, each with the rising column whose value it is."""
    column = table.get_column(leaf.column)
    scale = find_rising_column(column, line)
    if scale is None and isinstance(column.derivation, Lookup) and column.derivation.is_listed:
        base = find_rising_column(table.get_column(column.derivation.column), line)
        if base is not None:
            yield from ((base, known) for known in column.derivation.pairs.known if base.is_comparable(known))
    match leaf:
        case Compare(_, _, value) if scale is not None and scale.is_comparable(value):
            yield scale, value
        case Within(_, values) if scale is not None and all(map(scale.is_comparable, values)):
            yield from ((scale, value) for value in values)
        case _:
            pass


def _refine_spans(cells: _Cells, coarse: Spans, conditions: Sequence[Condition], *, unit: str) -> Spans | None:
    """Return the days, hours or minutes of the spans in which the conditions may hold, or None if they are too many."""
    cut = _cut_spans(coarse, cells.cuts)
    if sum((last - first) / _UNITS[unit] for first, last in cut.list_ends()) > MOST_MOMENTS:
        return None
    moments = list(islice(cut.list_moments(unit), MOST_MOMENTS + 1))
    if len(moments) > MOST_MOMENTS:
        return None
    line, (first, past) = cells.line, cells.line.calendar
    places = np.array([bisect_right(cells.cuts, at) for at, _, _ in moments], dtype=np.int64)
    known: dict[str, Sequence[Value | None]] = {}

    def test(leaf: Leaf) -> PossibleTruths:
        column = cells.table.get_column(leaf.column)
        if not _find_cyclic_part(column, line):
            found = cells.test_leaf(leaf)
            return PossibleTruths(found.may_be_true[places], found.may_be_false[places])
        derived = column.derivation
        assert isinstance(derived, Derivation)
        if column.name not in known:
            known[column.name] = [derive_value(derived, start) for _, start, _ in moments]
        return test_values(leaf, column, known[column.name])

    held = find_possible_places(conditions, test, len(moments))
    found = [(at, after) for marked, (at, _, after) in zip(held.tolist(), moments, strict=True) if marked]
    before = [(low, high) for low, high in cut.spans if high is not None and high <= first]
    behind = [(low, high) for low, high in cut.spans if low is not None and low >= past]
    return Spans(line, (*before, *found, *behind), coarse.includes_null)


def _cut_spans(coarse: Spans, cuts: Sequence[Key]) -> Spans:
    """Return the same spans, split at each cut."""
    found: list[Span] = []
    for low, high in coarse.spans:
        first = 0 if low is None else bisect_right(cuts, low)
        inside = [cut for cut in cuts[first:] if high is None or cut < high]
        ends = [low, *inside, high]
        found += pairwise(ends)
    return Spans(coarse.line, tuple(found), coarse.includes_null)
