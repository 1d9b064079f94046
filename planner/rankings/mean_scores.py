"""Means as integers to rank by: a mean whose divisor is at least a public number of rows.

The mean of few rows depends on one of them, and would need as much noise as a single row. The score of a group with n
values is `worst + sum(x - worst) / max(n, N')`. From N' values on that is their mean. With fewer values it is the mean
of N' values, the missing ones at `worst_value`, the end that comes last in the ranking's order. So no group comes first
for lack of values, and the ranking needs no guard.

Guarantee: one privacy unit changes a group's score by at most the functional's sensitivity, in integer steps. A group
with at least `rows` values has the score of its mean, rounded down to a step.

Proof: docs/proofs/ranking.md, section Means.

| symbol | name | meaning |
|---|---|---|
| N' | `rows` | the least number of values to divide by |
| W | `reach` | the largest distance of a value from `worst_value`, in steps of the total |
| k | `count.sensitivity` | the most values of one privacy unit in a group |
| c | `times` | the number of score steps in a step of the total |
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

import numpy as np

from mechanisms.formula import Integers
from planner.aggregates.comparison import Comparison, Conjunction, Having
from planner.catalog.catalog import Table
from planner.catalog.tolerance import parse_tolerances
from planner.errors import KeyholeError
from planner.functionals.functional import LARGEST, find_grid, make_functional
from planner.functionals.group_sizes import find_demanded_units, find_group_sizes, identify_mean, is_divisor_at_least
from planner.functionals.guard_remedy import find_next_round
from planner.functionals.per_key_offsets import LIMIT
from planner.functionals.row_range import find_row_range
from planner.question.condition import Condition
from planner.question.condition_text import write_canonical
from planner.question.question import Accuracy, Functional, MeanScore, Measure, Ranked
from planner.rankings.group_differences import compute_differences
from planner.values.decimals import convert_to_decimal

_USUAL = Fraction(1, 10)  # of how far values can lie apart

_FINE = 1_000  # steps of a score that its sensitivity is worth at least, so that rounding costs a thousandth
_FACTOR = 10**6  # what a remainder is multiplied by at once
_MOST_TIMES = _FACTOR**2  # the finest steps, of groups so large that a unit moves their mean by a billionth of a step
_MOST_ROWS = 2**42  # no group has more, and a remainder of one of so many times `_FACTOR` is an int64
_MOST_TRIES = 8  # each brings the number of rows to within a step of 1, 2, 5 of the one that is wanted


def score_mean(
    mean: Comparison,
    *,
    highest_first: bool,
    formula: Having,
    table: Table,
    where: Condition,
    accuracy: Accuracy,
) -> tuple[Functional, MeanScore]:
    """Return the functional and the parts of a mean's score, for groups as large as a count in `formula` demands.

    The size is at least `keyhole.min_rows`.

    Parameters:
        mean: the mean compared with 0.
        highest_first: True if the greatest means come first.

    Raises KH203, KH204, KH005, KH208.
    """
    if mean.divides_by_units:
        return _score_by_units(
            mean, highest_first=highest_first, formula=formula, table=table, where=where, accuracy=accuracy
        )
    assert mean.divisor_rows is not None
    assert mean.per_row is not None
    if not all(is_divisor_at_least(part, mean.divisor_rows, table, where) for part in mean.summands):
        raise KeyholeError(
            "KH204",
            f"groups cannot be ranked by {mean.left_text}, which is no mean of the rows that it divides by",
            hint="Count those rows on both sides, for example by the same FILTER.",
            position=mean.position,
        )
    least, most = _find_ends(mean, table, where)
    if least >= most:
        raise _refuse_one_value(mean)
    worst = least if highest_first else most
    total, step = make_functional(_subtract(mean, worst), table=table, min_rows=1, where=where)
    counted = replace(mean, summands=(mean.divisor_rows,), per_row=None, left_text=f"values of {mean.left_text}")
    count, _ = make_functional(counted, table=table, min_rows=1, where=where)
    size = step / mean.per_row
    reach = ceil((most - least) / size)
    score = MeanScore(
        total=_clip_to_count(replace(total, name=mean.left_text), count, reach),
        count=count,
        least_rows=_count_rows(mean, formula, table, where, accuracy),
        multiplier=1,
        worst_value=convert_to_decimal(worst),
        largest_distance=reach,
        step=convert_to_decimal(size),
    )
    return _refine_steps(_make_score_functional(mean, size), score, fine=most - least)


def _score_by_units(
    mean: Comparison, *, highest_first: bool, formula: Having, table: Table, where: Condition, accuracy: Accuracy
) -> tuple[Functional, MeanScore]:
    """Return the score of the units' sum divided by their number. Raise KH204.

    Each unit has one value, its clipped total.
    """
    assert mean.divisor_rows is not None
    base = mean.divisor_rows
    counted = replace(mean, summands=(base,), measure=Measure.UNITS, left_text=f"units of {mean.left_text}")
    count, _ = make_functional(counted, table=table, min_rows=1, where=where)
    made, step = make_functional(mean, table=table, min_rows=1, where=where)
    low, high = made.unit_range or (0, made.sensitivity)
    least, most = low * step, high * step
    if least >= most:
        raise _refuse_one_value(mean)
    worst = least if highest_first else most
    of_units = mean.measure in (Measure.UNITS, Measure.UNIT_SUM)
    if of_units and worst:
        less = replace(mean, measure=Measure.UNIT_SUM, summands=(*mean.summands, base.multiply(-worst)))
    else:
        shared = {write_canonical(part.condition) for part in mean.summands} == {write_canonical(base.condition)}
        less = replace(mean, unit_deduction=worst, deduction_condition=None if shared or not worst else base.condition)
    total, size = make_functional(less, table=table, min_rows=1, where=where)
    reach = ceil((most - least) / size)
    said = parse_tolerances(accuracy.tolerance)
    score = MeanScore(
        total=_clip_to_count(replace(total, name=mean.left_text), count, reach),
        count=count,
        least_rows=min(
            max(accuracy.min_rows, find_demanded_units(formula, base, said, min_rows=accuracy.min_rows)), _MOST_ROWS
        ),
        multiplier=1,
        worst_value=convert_to_decimal(worst),
        largest_distance=reach,
        step=convert_to_decimal(size),
    )
    return _refine_steps(_make_score_functional(mean, size), score, fine=most - least)


def _refuse_one_value(mean: Comparison) -> KeyholeError:
    return KeyholeError(
        "KH204",
        f"groups cannot be ranked by {mean.left_text}: declared bounds leave it one value",
        hint="Rank by a count or a sum, for example ORDER BY count(*) DESC.",
        position=mean.position,
    )


def _make_score_functional(mean: Comparison, size: Fraction) -> Functional:
    """Return the functional of a score, which is computed from two others. `_refine_steps` sets its sensitivity."""
    return Functional(
        name=mean.left_text,
        measure=Measure.TOTAL,
        terms=(),
        sensitivity=1,
        unit_range=None,
        unit_size=convert_to_decimal(size),
        rows=1,
    )


def rank_mean(ranked: Ranked, score: MeanScore, *, wanted: Fraction) -> Ranked:
    """Return the ranking by a mean's score, with the tolerance `wanted` in the analyst's unit (0: none was set).

    Scores are rounded down. So if two means differ by n steps, their scores differ by at least n - 1.
    """
    if not wanted:
        return replace(ranked, mean=score)
    made, score = _refine_steps(ranked.functional, score, fine=wanted)
    steps = floor(wanted / Fraction(made.unit_size))
    slack = convert_to_decimal(steps * Fraction(made.unit_size))
    return replace(ranked, functional=made, mean=score, tolerance=max(steps - 1, 0), tolerance_value=slack)


def fit_rows(ranked: Ranked, score: MeanScore, find_tolerance: Callable[[Functional], int]) -> Ranked:
    """Return the ranking for groups so large that the tolerance of its price is at most the one that was set.

    If no tolerance was set, it is a tenth of the range of values.

    Parameters:
        find_tolerance: returns the steps of a functional by which groups must differ so that the price keeps their
            order.
    """
    wanted = Fraction(ranked.tolerance_value) or score.largest_distance * Fraction(score.step) * _USUAL
    made = ranked.functional
    for _ in range(_MOST_TRIES):
        within = find_tolerance(made) * Fraction(made.unit_size)
        larger = find_next_round(ceil(score.least_rows * within / wanted))
        if within <= wanted or larger <= score.least_rows:
            break
        made, score = _refine_steps(made, replace(score, least_rows=larger), fine=wanted)
    return rank_mean(replace(ranked, functional=made), score, wanted=Fraction(ranked.tolerance_value))


def _refine_steps(made: Functional, score: MeanScore, *, fine: Fraction) -> tuple[Functional, MeanScore]:
    """Return the score in steps so fine that its sensitivity and `fine` are each at least a thousand steps.

    Raise KH208.
    """
    size, moved = Fraction(score.step), _bound_change(score)
    times = 1
    while min(moved, fine / size) * times < _FINE and times < _MOST_TIMES:
        times *= 10
    if score.largest_distance * times > LARGEST:
        raise KeyholeError(
            "KH208",
            f"{made.name} has too many steps to be ranked by",
            hint="Ask the owner to declare a coarser grid or narrower bounds, or SET keyhole.min_rows to less.",
        )
    scaled = replace(made, sensitivity=max(1, ceil(moved * times)), unit_size=convert_to_decimal(size / times))
    return scaled, replace(score, multiplier=times)


def compute_scores(ranked: Ranked, values: Integers) -> Integers:
    """Return the integers by which keys are ranked, from the exact values of all functionals.

    Guarantee: for a mean each is `floor(times * total / max(count, rows))`, clipped to the declared bounds.

    Parameters:
        values: int64 of shape (functionals, keys). The ranked value is the last row. For a mean it is the count, below
            the total.
    """
    if ranked.cells is not None:
        return compute_differences(ranked.cells, values[-len(ranked.cells.sums) :], descending=ranked.descending)
    if ranked.mean is None:
        alone: Integers = np.clip(values[-1], -LIMIT, LIMIT)
        return alone
    mean = ranked.mean
    divisor = np.clip(values[-1], mean.least_rows, _MOST_ROWS)
    whole, rest = np.divmod(np.clip(values[-2], -LIMIT, LIMIT), divisor)
    beyond = (whole < -mean.largest_distance) | (whole >= mean.largest_distance)
    scores: Integers = np.clip(whole, -mean.largest_distance, mean.largest_distance)
    rest, left = np.where(beyond, 0, rest), mean.multiplier
    while left > 1:
        factor = min(left, _FACTOR)
        more, rest = np.divmod(rest * factor, divisor)
        scores, left = scores * factor + more, left // factor
    return scores


def describe_rows(ranked: Ranked) -> str:
    """Return a warning that says how groups with fewer values than a mean's least divisor are ranked."""
    assert ranked.mean is not None
    return (
        f"{ranked.functional.name} is divided by {ranked.mean.least_rows:,} at least: a group with fewer values counts "
        f"as if the missing ones were {ranked.mean.worst_value:f}; SET keyhole.min_rows sets another number"
    )


def _bound_change(score: MeanScore) -> Fraction:
    """Return the largest change of the mean by one privacy unit, in steps of the total."""
    unit = score.count.sensitivity
    raised = min(Fraction(score.total.sensitivity, score.least_rows), Fraction(score.largest_distance))
    return max(raised, Fraction(unit * score.largest_distance, score.least_rows + unit))


def _subtract(mean: Comparison, origin: Fraction) -> Comparison:
    """Return the mean minus a number, compared with 0."""
    assert mean.divisor_rows is not None
    assert mean.per_row is not None
    off = () if origin == 0 else (replace(mean.divisor_rows, coefficient=-origin * mean.per_row),)
    return replace(mean, summands=(*mean.summands, *off), origin=origin)


def _clip_to_count(total: Functional, count: Functional, reach: int) -> Functional:
    """Return the total clipped to the range of as many values of a unit as are counted.

    It bounds the mean by `reach`.
    """
    if total.unit_range is None:
        return total
    most = count.sensitivity * reach
    low, high = max(total.unit_range[0], -most), min(total.unit_range[1], most)
    return replace(total, unit_range=(low, high), sensitivity=max(-low, high, 1))


def _find_ends(mean: Comparison, table: Table, where: Condition) -> tuple[Fraction, Fraction]:
    """Return the least and the greatest value of a row that counts."""
    assert mean.per_row is not None

    def row(origin: Fraction) -> tuple[Fraction, Fraction]:
        made, step = make_functional(_subtract(mean, origin), table=table, min_rows=1, where=where)
        ranges = {name: find_grid(table.get_column(name), table, position=mean.position)[1:] for name in made.summed}
        low, high = find_row_range(made.terms, ranges=ranges, table=table, among=where)
        assert mean.per_row is not None
        return low * step / mean.per_row, high * step / mean.per_row

    low, high = row(Fraction(0))
    beyond = max(-low, high) + 1  # where a row that does not count stands, 0, is no longer between the others
    return row(beyond)[0] + beyond, row(-beyond)[1] - beyond


def _count_rows(mean: Comparison, formula: Having, table: Table, where: Condition, accuracy: Accuracy) -> int:
    """Return the least number of rows of groups that a count in the formula demands, reduced by its tolerance.

    It is at least `min_rows`. A count of all rows serves a mean of the rows with a value, because the analyst chose
    that divisor.
    """
    assert mean.divisor_rows is not None
    of_rows = replace(mean, divisor_rows=replace(mean.divisor_rows, column=None))
    said = parse_tolerances(accuracy.tolerance)
    known = [
        find_group_sizes(
            Conjunction((formula, one)), table=table, where=where, tolerances=said, min_rows=accuracy.min_rows
        ).get(identify_mean(one))
        for one in (mean, of_rows)
    ]
    least = max((accuracy.min_rows, *(one.rows for one in known if one is not None)))
    return min(least, _MOST_ROWS)  # of a larger divisor no remainder would be an int64
