"""Comparisons with the mean of other groups: the counts beside them, their tolerance, and their functional.

`avg(x) > (SELECT avg(x) FROM t)` compares a group's mean with that of all groups. Means of few rows drown in noise, so
counts beside the comparison demand rows of both. The tolerance is an amount of the mean. A percentage would be one of a
private number. It stands for the amount that noise allows in groups of so many rows, at about the same price always.

Proof: docs/proofs/cell_means.md.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, sqrt

from mechanisms.protocol import MeanPair
from planner.aggregates.comparison import CellSum, Comparison, Conjunction, Having, SpreadComparison, require_count
from planner.errors import KeyholeError
from planner.functionals.added_guards import flatten
from planner.functionals.cell_readings import sum_cells
from planner.functionals.functional import find_grid, make_functional
from planner.functionals.group_sizes import GroupSize
from planner.functionals.guard_remedy import find_slack_share
from planner.functionals.mean_bands import MeanBands
from planner.functionals.row_range import find_row_range
from planner.question.key_cells import OWN_GROUP_ALONE, KeyCells
from planner.question.question import CellRead, Functional, Measure
from planner.values.decimals import convert_to_decimal, round_up_to_two_digits

_ROWS_BESIDE = 5
"""The mean of n groups has this times the root of n as many rows as a group, or n times: it errs about a fifth."""
_WORTH = 3  # times the least tolerance that noise needs: such a comparison costs about 0.5 epsilon
_STEPS = 2000  # of a tolerance, at least


def place_group_means(formula: Having, bands: MeanBands, *, warn: Callable[[str], None]) -> Having:
    """Return the formula with the tolerance of each comparison with the mean of other groups, and counts beside it.

    Raise KH206 if counts may not be added, KH304 without a tolerance.
    """
    sizes = bands.find_sizes(formula)
    typed = list(_list_conjuncts(formula))
    return flatten(formula.map_comparisons(lambda leaf: _place(leaf, bands, sizes, typed, warn)))


def _place(
    leaf: Comparison | SpreadComparison,
    bands: MeanBands,
    sizes: Mapping[object, GroupSize],
    typed: list[Comparison],
    warn: Callable[[str], None],
) -> Having:
    if not isinstance(leaf, Comparison) or leaf.other_mean is None or not leaf.other_mean.reads_groups:
        return leaf
    other = leaf.other_mean
    own = replace(leaf, other_mean=None, values=leaf.values[:1])
    rows = bands.find_rows(own, sizes)
    if other.own_cells != OWN_GROUP_ALONE:  # no count of the group's own rows was added
        rows = max(rows, bands.find_wanted_rows(leaf, leaf))
    guards: list[Comparison] = []
    known: list[int] = []
    for mean, cells, groups in ((own, other.own_cells, other.own_groups), (other.mean, other.cells, other.groups)):
        if cells == OWN_GROUP_ALONE:
            known.append(rows)
            continue
        guard = _make_guard(mean, cells, _multiply_rows(rows, groups), bands)
        same = next((one for one in typed if one.cell_sums == guard.cell_sums), None)
        if same is None:
            guards.append(guard)
        known.append(_find_relaxed(same or guard, bands))
    texts = " AND ".join(dict.fromkeys(guard.text for guard in guards))
    if guards and not bands.accuracy.adds_guards:
        raise KeyholeError(
            "KH206",
            f"{leaf.text} compares with the mean of other groups",
            detail="The mean of a few rows drowns in noise, so that other groups must have some.",
            hint=f"Add: AND {texts}",
            position=leaf.position,
        )
    placed = replace(leaf, other_mean=replace(other, rows=(known[0], known[1])))
    allowed = _find_allowed(placed, bands)
    added = f", where {texts} (added, since the mean of few rows drowns in noise)" if guards else ""
    warn(
        f"{leaf.text} may err within {convert_to_decimal(allowed)}{added}; "
        "more rows of a group, demanded by a count of your own, make it sharper"
    )
    made = replace(placed, fixed_tolerance=allowed)
    return Conjunction((made, *dict.fromkeys(guards))) if guards else made


def _multiply_rows(rows: int, groups: int) -> int:
    """Return the rows that the mean of some groups should have beside that of one group of `rows` rows."""
    return int(round_up_to_two_digits(Fraction(rows * min(groups, ceil(_ROWS_BESIDE * sqrt(groups))))))


def _list_conjuncts(formula: Having) -> Iterator[Comparison]:
    children = formula.children if isinstance(formula, Conjunction) else (formula,)
    for child in children:
        if isinstance(child, Comparison) and len(child.cell_sums) == 1 and child.operator in (">", ">="):
            yield child


def _make_guard(mean: Comparison, cells: KeyCells, least: int, bands: MeanBands) -> Comparison:
    """Return the count that demands rows of other groups."""
    assert mean.divisor_rows is not None
    divided, _, divisor = mean.left_text.rpartition(" / ")
    text = divisor if divided else mean.left_text.replace("avg(", "count(", 1)
    tolerance = least * find_slack_share(bands.tolerances)
    made = require_count(text, least, measure=Measure.TOTAL, parts=(), tolerance=tolerance, position=mean.position)
    return replace(made, cell_sums=(CellSum(text, Measure.ROWS, (mean.divisor_rows,), cells, Fraction(1)),))


def _find_relaxed(guard: Comparison, bands: MeanBands) -> int:
    """Return the rows that a count of other groups is sure to demand."""
    slack = guard.fixed_tolerance
    if slack is None:
        amount = bands.tolerances.find_amount(guard.names)
        slack = (
            amount.compute_size(threshold=guard.threshold, bounds=Fraction(0)) if amount is not None else Fraction(0)
        )
    return max(1, floor(guard.right_value) + (guard.operator == ">") - ceil(slack))


def _find_allowed(leaf: Comparison, bands: MeanBands) -> Fraction:
    """Return the tolerance in the mean's unit."""
    assert leaf.other_mean is not None
    amount, width = bands.find_amount(leaf), bands.measure_overlap(leaf)
    if amount.refers_to_bounds:
        return width * Fraction(amount.number) / 100
    if not amount.is_percent:
        return Fraction(amount.number)
    first = bands.make_sides(leaf, {})[0]
    noise = max(bands.estimate_noise(first, end) for end in (first.least, first.most)) / leaf.other_mean.rows[0]
    return Fraction(round_up_to_two_digits(min(noise * _WORTH, width / 2)))


def read_group_means(leaf: Comparison, bands: MeanBands) -> tuple[Functional, Fraction]:
    """Return the functional of a comparison with the mean of other groups, and the worth of one step of it.

    Its value is the difference of both means. Raise KH203 to KH208.
    """
    other = leaf.other_mean
    assert other is not None
    own = replace(leaf, other_mean=None, values=leaf.values[:1])
    first, second = _centre(own, bands), _centre(other.mean, bands)
    assert leaf.fixed_tolerance is not None
    unit = _find_unit(leaf.fixed_tolerance or bands.measure_overlap(leaf))
    pair = MeanPair(
        times=other.factor * second.worth / first.worth,
        constant=(other.constant + other.factor * second.middle - first.middle) / first.worth,
        step=unit / first.worth,
        largest_distance=first.largest_distance,
        other_reach=second.largest_distance,
        rows=other.rows[0],
        other_rows=other.rows[1],
    )
    return (
        Functional(
            name=_name_difference(leaf),
            measure=Measure.TOTAL,
            terms=(),
            sensitivity=first.total.sensitivity,
            unit_range=None,
            unit_size=convert_to_decimal(unit),
            rows=1,
            cell_reads=(
                CellRead(first.total, other.own_cells, 1),
                CellRead(first.counted, other.own_cells, 1),
                CellRead(second.total, other.cells, 1),
                CellRead(second.counted, other.cells, 1),
            ),
            pair=pair,
        ),
        unit,
    )


def _name_difference(leaf: Comparison) -> str:
    """Return the left side less the right side."""
    right = leaf.text.partition(f" {leaf.operator} ")[2]
    assert leaf.other_mean is not None
    return (
        f"{leaf.left} - ({right})"
        if leaf.other_mean.constant or leaf.other_mean.factor < 0
        else f"{leaf.left} - {right}"
    )


@dataclass(frozen=True, slots=True)
class _Centred:
    """A mean as a sum of distances from the middle of its range, and its rows.

    `worth` is a step of the sum for one row in the mean's unit. No distance is above `reach` steps.
    """

    total: Functional
    counted: Functional
    worth: Fraction
    middle: Fraction
    largest_distance: int


def _centre(mean: Comparison, bands: MeanBands) -> _Centred:
    assert mean.divisor_rows is not None
    assert mean.per_row is not None
    side = bands.make_side(mean, Fraction(1), Fraction(0), {})
    middle = floor((side.least + side.most) / side.fine) * side.fine / 2
    off = () if not middle else (replace(mean.divisor_rows, coefficient=-middle * mean.per_row),)
    centred = replace(mean, parts=(*mean.parts, *off), right_value=Fraction(0), threshold=middle, origin=middle)
    total, step = make_functional(centred, table=bands.table, min_rows=1, where=bands.where)
    rows = CellSum(mean.left_text, Measure.ROWS, (mean.divisor_rows,), OWN_GROUP_ALONE, Fraction(1))
    counted, _ = sum_cells(rows, mean, table=bands.table, where=bands.where)
    ranges = {name: find_grid(bands.table.get_column(name), bands.table, position=None)[1:] for name in total.summed}
    low, high = find_row_range(total.terms, ranges=ranges, table=bands.table, among=bands.where)
    return _Centred(total, counted, step / mean.per_row, middle, max(1, -low, high))


def _find_unit(allowed: Fraction) -> Fraction:
    """Return the power of ten of which at least `_STEPS` make a tolerance."""
    unit = Fraction(1)
    while unit * _STEPS > allowed:
        unit /= 10
    while unit * _STEPS * 10 <= allowed:
        unit *= 10
    return unit
