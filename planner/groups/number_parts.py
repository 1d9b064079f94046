"""The parts of a number column between the cuts of an expression, each shown by a value inside it."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, inf, isfinite, nextafter

from planner.catalog.catalog import Column, SqlType, Value, ValueGroups
from planner.catalog.steps import Steps, StepSamples
from planner.groups.cuts import CutFinder
from planner.groups.doubles import Cut
from planner.groups.even_cuts import join_runs
from planner.groups.pieces import MOST_CUTS, TooManyCuts
from planner.values.sql_literals import find_integer_limit, read_numeric_modifier

_FINEST = 18  # decimals that are told apart of a numeric whose type does not say


_FEW_STEPS = 8  # that are compared one by one
_FARTHEST = 10**18  # units of numbers that are computed with in 64 bits


def make_number_parts(column: Column, finder: CutFinder, *, distinct: bool) -> ValueGroups:
    """Return the groups of a column's values, one between each two neighbouring cuts. Raise `TooManyCuts`.

    Groups outside of the finder's `window` are left out.

    Parameters:
        distinct: True if the expression is known to have a different value in each group.
    """
    steps = _find_steps(column, finder) if distinct else None
    if steps is None or any(run.count < 1 for run in steps.runs):  # WHERE may leave no number at all
        return replace(_list_parts(column, finder.list_cuts(), finder.window), distinct=distinct)
    inside = finder.window is None
    nulls = not column.required
    lying = StepSamples(steps, has_below=inside, has_above=inside, has_null=nulls)
    count = len(lying) - nulls
    if len(lying) > MOST_CUTS:
        raise TooManyCuts(len(lying))
    parts = ValueGroups(
        column=column.name,
        kind=column.sql_type,
        cut_points=steps,
        groups=tuple(range(count)) if inside else (None, *range(count), None),
        null_group=count if nulls else None,
        shown_values=lying,
        distinct=True,
    )
    return parts if len(steps) > _FEW_STEPS else replace(parts, cut_points=tuple(steps), shown_values=tuple(lying))


def _find_steps(column: Column, finder: CutFinder) -> Steps | None:
    """Return the cuts as numbers of the column's unit at equal distances, or None if that is impossible."""
    if finder.cuts or not finder.even_cuts or find_column_unit(column) is None:
        return None
    scale = _find_scale(column)
    found = [one.convert_to_units(Fraction(1, 10**scale)) for one in finder.even_cuts]
    runs = join_runs([run for run in found if run is not None])
    if runs is None or None in found:
        return None
    first, last = runs[0].first, runs[-1].last
    if column.sql_type is SqlType.INTEGER:
        limit = find_integer_limit(column.declared)
    else:
        typed = read_numeric_modifier(column.declared)
        assert typed is not None
        limit = 10 ** typed[0] - 1
    if first <= -min(limit, _FARTHEST) or last >= min(limit, _FARTHEST):
        return None
    return Steps(runs, None if column.sql_type is SqlType.INTEGER else scale)


def find_column_unit(column: Column) -> Fraction | None:
    """Return the unit that divides all of the column's numbers, or None if its type has none."""
    if column.sql_type is SqlType.INTEGER:
        return Fraction(1)
    typed = read_numeric_modifier(column.declared)
    has_units = column.sql_type is SqlType.NUMERIC and typed is not None and 0 <= typed[1] <= typed[0]
    return Fraction(1, 10 ** _find_scale(column)) if has_units else None


def _list_parts(column: Column, found: list[Cut], window: tuple[Cut, Cut] | None) -> ValueGroups:
    """Return the parts between cuts, listed one by one."""
    if window is not None:
        found = [cut for cut in found if window[0] <= cut <= window[1]]
    starts: dict[Value, Cut] = {}
    for cut in found:
        starts.setdefault(_find_first_above(column, cut), cut)
    kept = list(starts.items())
    ends = [cut[0] for _, cut in kept]
    shown: list[Value | None] = []
    groups: list[int | None] = []
    middles = [*(([ends[0] - 1, *[(a + b) / 2 for a, b in pairwise(ends)], ends[-1] + 1]) if ends else [Fraction(0)])]
    for place, middle in enumerate(middles):
        outside = window is not None and place in (0, len(kept))
        around_zero = (place == 0 or ends[place - 1] < 0) and (place == len(kept) or ends[place] > 0)
        chosen = Fraction(0) if around_zero else middle  # of 0 few expressions make -0
        if column.sql_type is SqlType.DOUBLE and 0 < place < len(kept):
            chosen = _find_double_between(chosen, kept[place - 1][0], kept[place][0])
        value = None if outside else _find_value_in(column, place, kept, chosen)
        groups.append(None if value is None else len(shown))
        if value is not None:
            shown.append(value)
    nulls = None
    if not column.required:
        nulls = len(shown)
        shown.append(None)
    return ValueGroups(
        column=column.name,
        kind=column.sql_type,
        cut_points=tuple(value for value, _ in kept),
        groups=tuple(groups),
        null_group=nulls,
        shown_values=tuple(shown),
    )


def _find_double_between(middle: Fraction, first: Value, behind: Value) -> Fraction:
    """Return the double nearest to a middle. If that is outside of a small part, return the part's first double."""
    assert isinstance(first, Decimal)
    assert isinstance(behind, Decimal)
    found = Fraction(float(middle))
    return found if Fraction(first) <= found < Fraction(behind) else Fraction(first)


def _find_first_above(column: Column, cut: Cut) -> Value:
    """Return the least value of a column that does not lie below a cut."""
    at, below = cut
    if column.sql_type is SqlType.DOUBLE:
        number = float(at)
        if Fraction(number) < at or (below and Fraction(number) == at):
            number = nextafter(number, inf)
        return Decimal(number)
    scale = _find_scale(column)
    steps = at * 10**scale
    first = floor(steps) + 1 if below else ceil(steps)
    return first if column.sql_type is SqlType.INTEGER else Decimal(first).scaleb(-scale)


def _find_scale(column: Column) -> int:
    if column.sql_type is SqlType.INTEGER:
        return 0
    typed = read_numeric_modifier(column.declared)
    return _FINEST if typed is None else typed[1]


def _find_value_in(column: Column, place: int, kept: list[tuple[Value, Cut]], middle: Fraction) -> Value | None:
    """Return a value of the column's type inside a part, or None if there is none."""
    typed = read_numeric_modifier(column.declared)
    if column.sql_type is SqlType.DOUBLE or (column.sql_type is SqlType.NUMERIC and typed is None):
        if not isfinite(float(middle)):
            return None
        # the shortest text of a double: what is written like it is compared with it as equal
        return Decimal(repr(float(middle))) if column.sql_type is SqlType.DOUBLE else _round_middle(middle)
    unit = Fraction(1, 10 ** _find_scale(column))
    if not kept:
        exact = Fraction(0)
    else:
        start = kept[max(place - 1, 0)][0]
        assert isinstance(start, int | Decimal)
        exact = Fraction(start) - (unit if place == 0 else 0)
    if column.sql_type is SqlType.INTEGER:
        limit = find_integer_limit(column.declared)
        return exact.numerator if -limit - 1 <= exact <= limit else None
    assert typed is not None
    precision, scale = typed
    return Decimal(int(exact * 10**scale)).scaleb(-scale) if abs(exact) < 10 ** (precision - scale) else None


def _round_middle(value: Fraction) -> Decimal:
    return Decimal(round(value * 10**_FINEST)).scaleb(-_FINEST).normalize()
