"""Comparisons with the mean of other groups: the counts beside them, their tolerance, and their functional.

`avg(x) > (SELECT avg(x) FROM t)` compares a group's mean with that of all groups. Means of few rows drown in noise, so
counts beside the comparison demand rows of both. The tolerance is an amount of the mean. A percentage would be one of a
private number. It stands for the amount that noise allows in groups of so many rows, at about the same price always.
A standard deviation of the other rows may stand beside their mean, or a quantile of them in its place.

Proof: docs/proofs/cell_means.md, docs/proofs/row_deviations.md, docs/proofs/row_quantiles.md.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, sqrt

from mechanisms.protocol import LEAST, MeanPair, RowDeviation, RowQuantile
from planner.aggregates.comparison import CellSum, Comparison, Conjunction, Having, SpreadComparison, require_count
from planner.catalog.tolerance import quote_literal, set_amount
from planner.errors import KeyholeError
from planner.functionals.added_guards import flatten
from planner.functionals.atoms.row_bins import (
    MOST_BINS,
    describe_quantile,
    find_least_rows,
    find_rank_slack,
    find_width,
    make_row_quantile,
    read_bins,
)
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
_WORTH_OF_SQUARES = 40  # units whose squares a deviation's own square may err by, times the root of the groups
_MOST_SQUARES = 1 << 45  # what a unit's squares may add: noise of the least rate then costs an eighth at most
_MOST_SQUARE = 1 << 40  # of a row: four million in a group stay within 64-bit integers
_LEAST_BINS = 2  # in a tolerance: in the half that bins leave, the own mean costs twice as much
_STEPS = 2000  # of a tolerance, at least


def add_mean_tolerances(formula: Having, bands: MeanBands, *, warn: Callable[[str], None]) -> Having:
    """Return the formula with tolerances for comparisons with the mean of other groups, and counts beside them.

    Raise KH206 if counts may not be added, KH304 without a tolerance.
    """
    sizes = bands.find_sizes(formula)
    typed = list(_list_conjuncts(formula))
    return flatten(formula.map_comparisons(lambda leaf: _add_tolerance(leaf, bands, sizes, typed, warn)))


def _add_tolerance(
    leaf: Comparison | SpreadComparison,
    bands: MeanBands,
    sizes: Mapping[object, GroupSize],
    typed: list[Comparison],
    warn: Callable[[str], None],
) -> Having:
    if not isinstance(leaf, Comparison) or leaf.other_mean is None or not leaf.other_mean.reads_groups:
        return leaf
    if leaf.compares_ratios:
        return leaf
    other = leaf.other_mean
    own = replace(leaf, other_mean=None, required_values=leaf.required_values[:1])
    rows = bands.find_rows(own, sizes)
    if other.own_cells != OWN_GROUP_ALONE:  # no count of the group's own rows was added
        rows = max(rows, bands.find_wanted_rows(leaf, leaf))
    guards: list[Comparison] = []
    known: list[int] = []
    for mean, cells, groups in ((own, other.own_cells, other.own_groups), (other.mean, other.cells, other.groups)):
        if cells == OWN_GROUP_ALONE:
            known.append(rows)
            continue
        if cells.averages_means:
            guard = _demand_rows_of_each(mean, own, cells, rows, bands)
        else:
            wanted = multiply_rows(rows, groups)
            if other.quantile is not None:
                wanted = max(wanted, find_least_rows(leaf, bands))
            guard = _make_guard(mean, cells, wanted, bands)
        same = next((one for one in typed if one.cell_sums == guard.cell_sums), None)
        if same is None:
            guards.append(guard)
        known.append(_find_sure_rows(same or guard, bands))
    texts = " AND ".join(dict.fromkeys(guard.text for guard in guards))
    if guards and not bands.accuracy.adds_guards:
        raise KeyholeError(
            "KH206",
            f"{leaf.text} compares with the mean of other groups",
            detail="The mean of a few rows drowns in noise, so that other groups must have some.",
            hint=f"Add: AND {texts}",
            position=leaf.position,
        )
    placed = replace(leaf, other_mean=replace(other, least_rows=(known[0], known[1])))
    allowed = _find_tolerance(placed, bands)
    placed = _set_rank_slack(placed, allowed, bands, warn)
    placed = _set_least_deviation(placed, allowed, bands, warn)
    added = f", where {texts} (added, since the mean of few rows drowns in noise)" if guards else ""
    if other.cells.averages_means:
        added += "; it is false if a listed group has fewer rows"
        if " / " in other.mean.left_text:
            warn(f"a sum over no values counts as 0 in {leaf.text}, where PostgreSQL leaves its group out")
    warn(
        f"{leaf.text} may err within {convert_to_decimal(allowed)}{added}; "
        "more rows of a group, demanded by a count of your own, make it sharper"
    )
    made = replace(placed, fixed_tolerance=allowed)
    return Conjunction((made, *dict.fromkeys(guards))) if guards else made


def _set_least_deviation(
    leaf: Comparison, allowed: Fraction, bands: MeanBands, warn: Callable[[str], None]
) -> Comparison:
    """Return a comparison with the least standard deviation that it tells apart: that worth its tolerance."""
    other = leaf.other_mean
    assert other is not None
    if not other.deviation_factor:
        return leaf
    side = bands.make_side(other.mean, Fraction(1), Fraction(0), {})
    least = min(allowed / abs(other.deviation_factor), (side.most - side.least) / 2)
    shown = convert_to_decimal(round_up_to_two_digits(least))
    warn(f"a standard deviation below {shown} counts as {shown} in {leaf.text}, since its square drowns in noise")
    return replace(leaf, other_mean=replace(other, least_deviation=Fraction(shown)))


def _set_rank_slack(leaf: Comparison, allowed: Fraction, bands: MeanBands, warn: Callable[[str], None]) -> Comparison:
    """Return a comparison with the share of rows by which its quantile's rank may err. Raise KH304 for wide bins."""
    other = leaf.other_mean
    assert other is not None
    if other.quantile is None:
        return leaf
    width = find_width(leaf, bands)
    if 0 < allowed < width * _LEAST_BINS:  # without a tolerance none is wide enough
        wanted = set_amount(
            bands.accuracy.tolerance, leaf.left_text, convert_to_decimal(round_up_to_two_digits(width * _LEAST_BINS))
        )
        raise KeyholeError(
            "KH304",
            f"{leaf.text} has a narrower tolerance than the bins that its quantile is read off",
            detail=f"The rows are counted in at most {MOST_BINS} bins, since more of them need wider noise.",
            hint=f"SET keyhole.tolerance = '{quote_literal(wanted)}';",
            position=leaf.position,
        )
    found = replace(leaf, other_mean=replace(other, rank_slack=find_rank_slack(leaf, bands)))
    warn(describe_quantile(found, bands))
    return found


def multiply_rows(rows: int, groups: int) -> int:
    """Return the group size for which the mean of several groups is meant.

    The mean of one group is meant for `rows` rows.
    """
    return int(round_up_to_two_digits(Fraction(rows * min(groups, ceil(_ROWS_BESIDE * sqrt(groups))))))


def _list_conjuncts(formula: Having) -> Iterator[Comparison]:
    children = formula.children if isinstance(formula, Conjunction) else (formula,)
    for child in children:
        if isinstance(child, Comparison) and len(child.cell_sums) == 1 and child.operator in (">", ">="):
            yield child


def _make_guard(mean: Comparison, cells: KeyCells, least: int, bands: MeanBands) -> Comparison:
    """Return the count that demands rows of other groups."""
    assert mean.divisor_rows is not None
    text = _write_count(mean.left_text)
    tolerance = least * find_slack_share(bands.tolerances)
    made = require_count(text, least, measure=Measure.TOTAL, parts=(), tolerance=tolerance, position=mean.position)
    return replace(made, cell_sums=(CellSum(text, Measure.ROWS, (mean.divisor_rows,), cells, Fraction(1)),))


def _write_count(mean: str) -> str:
    """Return the text of a mean's number of rows."""
    divided, _, divisor = mean.rpartition(" / ")
    return divisor if divided else mean.replace("avg(", "count(", 1)


def _demand_rows_of_each(
    mean: Comparison, own: Comparison, cells: KeyCells, least: int, bands: MeanBands
) -> Comparison:
    """Return the count that demands rows of each group whose mean is averaged."""
    assert mean.divisor_rows is not None
    made = _make_guard(own, cells, least, bands)
    averaged, over, frame = mean.left_text.removeprefix("avg(").rpartition(") OVER ")
    text = f"min({_write_count(averaged)}{over}{frame}"
    fewest = replace(cells, averages_means=False, statistic=LEAST)
    summed = CellSum(text, Measure.ROWS, (mean.divisor_rows,), fewest, Fraction(1))
    return replace(made, text=f"{text} >= {least}", left_text=text, cell_sums=(summed,))


def _find_sure_rows(guard: Comparison, bands: MeanBands) -> int:
    """Return the rows that a count of other groups is sure to demand."""
    slack = guard.fixed_tolerance
    if slack is None:
        amount = bands.tolerances.find_amount(guard.names)
        slack = (
            amount.compute_size(threshold=guard.threshold, bounds=Fraction(0)) if amount is not None else Fraction(0)
        )
    return max(1, floor(guard.right_value) + (guard.operator == ">") - ceil(slack))


def _find_tolerance(leaf: Comparison, bands: MeanBands) -> Fraction:
    """Return the tolerance in the mean's unit."""
    assert leaf.other_mean is not None
    amount, width = bands.find_amount(leaf), bands.measure_overlap(leaf)
    if amount.refers_to_bounds:
        return width * Fraction(amount.number) / 100
    if not amount.is_percent:
        return Fraction(amount.number)
    first = bands.make_sides(leaf, {})[0]
    noise = max(bands.estimate_noise(first, end) for end in (first.least, first.most)) / leaf.other_mean.least_rows[0]
    worth = 2 * _WORTH if leaf.other_mean.cells.averages_means else _WORTH  # each of the groups' means is noisy
    wanted = noise * worth + _estimate_deviation_noise(leaf, bands)
    if leaf.other_mean.quantile is not None:
        binned = find_width(leaf, bands)
        wanted = max(wanted + binned, binned * _LEAST_BINS)
    return Fraction(round_up_to_two_digits(min(wanted, width / 2)))


def _estimate_deviation_noise(leaf: Comparison, bands: MeanBands) -> Fraction:
    """Return about the tolerance that noise in a standard deviation needs, in the mean's unit."""
    other = leaf.other_mean
    assert other is not None
    if not other.deviation_factor:
        return Fraction(0)
    squares, step = _square(_centre(other.mean, bands), other.mean, bands)
    square = _WORTH_OF_SQUARES * squares.sensitivity * step * Fraction(sqrt(other.groups)) / other.least_rows[1]
    return abs(other.deviation_factor) * Fraction(sqrt(square))


def read_group_means(leaf: Comparison, bands: MeanBands) -> tuple[Functional, Fraction]:
    """Return the functional of a comparison with the mean of other groups, and the worth of one of its steps.

    The functional is the difference of both means. Raise KH203 to KH208.
    """
    other = leaf.other_mean
    assert other is not None
    own = replace(leaf, other_mean=None, required_values=leaf.required_values[:1])
    first, second = _centre(own, bands), _centre(other.mean, bands)
    assert leaf.fixed_tolerance is not None
    unit = find_unit(leaf.fixed_tolerance or bands.measure_overlap(leaf))
    deviation: RowDeviation | None = None
    quantile: RowQuantile | None = None
    constant = other.constant + other.factor * second.middle - first.middle
    squared: tuple[CellRead, ...] = ()
    if other.deviation_factor:
        squares, size = _square(second, other.mean, bands)
        squared = (CellRead(squares, other.cells, 1),)
        deviation = RowDeviation(
            times=other.deviation_factor * second.step_value / first.step_value,
            square=size / second.step_value**2,
            least=min(other.least_deviation / second.step_value, Fraction(second.largest_distance)),
            is_sample=other.is_sample,
        )
    others: tuple[CellRead, ...] = (CellRead(second.total, other.cells, 1), CellRead(second.row_count, other.cells, 1))
    if other.quantile is not None:
        others = read_bins(leaf, bands)
        quantile, shift = make_row_quantile(leaf, bands, step_value=first.step_value)
        constant += shift
    pair = MeanPair(
        other_factor=other.factor * second.step_value / first.step_value,
        constant=constant / first.step_value,
        step=unit / first.step_value,
        largest_mean=first.largest_distance,
        largest_other_mean=second.largest_distance,
        rows=other.least_rows[0],
        other_rows=other.least_rows[1],
        deviation=deviation,
        averaged_groups=other.groups if other.cells.averages_means else 0,
        quantile=quantile,
    )
    return (
        Functional(
            name=name_difference(leaf),
            measure=Measure.TOTAL,
            terms=(),
            sensitivity=first.total.sensitivity,
            unit_range=None,
            unit_size=convert_to_decimal(unit),
            rows=1,
            cell_reads=(
                CellRead(first.total, other.own_cells, 1),
                CellRead(first.row_count, other.own_cells, 1),
                *others,
                *squared,
            ),
            pair=pair,
        ),
        unit,
    )


def name_difference(leaf: Comparison) -> str:
    """Return the text of the left side minus the right side."""
    right, other = leaf.text.partition(f" {leaf.operator} ")[2], leaf.other_mean
    assert other is not None
    is_sum = other.constant or (other.deviation_factor and other.factor)
    return f"{leaf.left_text} - ({right})" if is_sum or right.startswith("-") else f"{leaf.left_text} - {right}"


@dataclass(frozen=True, slots=True)
class _CentredMean:
    """A mean as a sum of distances from the middle of its range, and its rows.

    `step_value` is a step of the sum for one row in the mean's unit. No distance is above `largest_distance` steps.
    """

    total: Functional
    row_count: Functional
    step_value: Fraction
    middle: Fraction
    largest_distance: int


def _centre(mean: Comparison, bands: MeanBands) -> _CentredMean:
    assert mean.divisor_rows is not None
    assert mean.per_row is not None
    side = bands.make_side(mean, Fraction(1), Fraction(0), {})
    middle = floor((side.least + side.most) / side.grid_step) * side.grid_step / 2
    off = () if not middle else (replace(mean.divisor_rows, coefficient=-middle * mean.per_row),)
    centred = replace(mean, summands=(*mean.summands, *off), right_value=Fraction(0), threshold=middle, origin=middle)
    total, step = make_functional(centred, table=bands.table, min_rows=1, where=bands.where)
    rows = CellSum(mean.left_text, Measure.ROWS, (mean.divisor_rows,), OWN_GROUP_ALONE, Fraction(1))
    counted, _ = sum_cells(rows, mean, table=bands.table, where=bands.where)
    ranges = {name: find_grid(bands.table.get_column(name), bands.table, position=None)[1:] for name in total.summed}
    low, high = find_row_range(total.terms, ranges=ranges, table=bands.table, among=bands.where)
    return _CentredMean(total, counted, step / mean.per_row, middle, max(1, -low, high))


def _square(side: _CentredMean, mean: Comparison, bands: MeanBands) -> tuple[Functional, Fraction]:
    """Return the sum of the squares of the distances from the middle, and the worth of a step of it."""
    (scaled,) = (part for part in mean.summands if part.power)
    off = sum((part.coefficient for part in mean.summands if not part.power), Fraction(0)) - side.middle
    by_power = {2: scaled.coefficient**2, 1: 2 * scaled.coefficient * off, 0: off * off}
    parts = tuple(replace(scaled, coefficient=number, power=power) for power, number in by_power.items() if number)
    name = "" if scaled.column is None else scaled.column.name
    summed = CellSum(f"squares of {name}", Measure.TOTAL, parts, OWN_GROUP_ALONE, Fraction(1))
    made, step = sum_cells(summed, mean, table=bands.table, where=bands.where)
    if made.sensitivity > _MOST_SQUARES or (side.largest_distance * side.step_value) ** 2 / step > _MOST_SQUARE:
        raise KeyholeError(
            "KH208",
            f"the squares of {name} have too many digits for a standard deviation of rows",
            hint=f"Ask the owner to declare a coarser grid or narrower bounds of {name}.",
            position=mean.position,
        )
    return made, step


def find_unit(allowed: Fraction) -> Fraction:
    """Return the largest power of ten that fits at least `_STEPS` times into a tolerance."""
    unit = Fraction(1)
    while unit * _STEPS > allowed:
        unit /= 10
    while unit * _STEPS * 10 <= allowed:
        unit *= 10
    return unit
