"""Comparisons with a ratio of sums of other groups: what is demanded beside them, their tolerance and functional.

`sum(a) / sum(b) > (SELECT sum(a) / sum(b) FROM t)` compares a group's ratio with that of all groups, where `b` is never
negative. It is decided as means of rows are, with the sum of `b` in the place of the number of rows. Where that sum is
small the ratio drowns in noise, so sums beside the comparison demand some. No row bounds a ratio. So the other ratio is
also demanded to lie within a multiple of the columns' bounds, unless the one sum is a part of the other.

Proof: docs/proofs/cell_means.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

from mechanisms.protocol import MeanPair
from planner.aggregates.aggregate import identify_sum
from planner.aggregates.comparison import CellSum, Comparison, Conjunction, Having, SpreadComparison, require_count
from planner.aggregates.row_expression import SumPart
from planner.catalog.tolerance import Amount
from planner.errors import KeyholeError
from planner.functionals.added_guards import flatten
from planner.functionals.atoms.group_means import find_unit, multiply_rows, name_difference
from planner.functionals.cell_readings import sum_cells
from planner.functionals.guard_remedy import WORTH, find_next_round, find_slack_share
from planner.functionals.mean_bands import MeanBands
from planner.functionals.row_range import find_row_effect, is_never_null
from planner.question.condition_text import write_canonical
from planner.question.key_cells import OWN_GROUP_ALONE, KeyCells
from planner.question.question import CellRead, Functional, Measure
from planner.values.decimals import convert_to_decimal, round_up_to_two_digits

_FAR = 2  # times the largest value over that of the divisor: most ratios are nearer to 0, and noise grows with it
_WORTH = 3 * WORTH  # units in a tolerance: such a comparison costs about 0.5 epsilon
_LEAST_PART = Fraction(1, 10)  # of the range of the ratio, as its tolerance, if none is set


def add_ratio_tolerances(formula: Having, bands: MeanBands, *, warn: Callable[[str], None]) -> Having:
    """Return the formula with the tolerance of each comparison with a ratio of other groups, and sums beside it.

    Raise KH206 if sums may not be added, KH304 without a tolerance.
    """
    children = formula.children if isinstance(formula, Conjunction) else (formula,)
    typed = [one for one in children if isinstance(one, Comparison)]

    def place(leaf: Comparison | SpreadComparison) -> Having:
        if not isinstance(leaf, Comparison) or not leaf.compares_ratios:
            return leaf
        return _add_tolerance(leaf, bands, typed, warn)

    return flatten(formula.map_comparisons(place))


def _add_tolerance(
    leaf: Comparison, bands: MeanBands, typed: Sequence[Comparison], warn: Callable[[str], None]
) -> Having:
    other = leaf.other_mean
    assert other is not None
    sums = _RatioSums.from_mean(leaf, leaf, bands)
    reach, is_sure = _find_largest_ratio(other.mean)
    slack = find_slack_share(bands.tolerances, of="sum")
    width = abs(other.factor) * reach
    noise = _WORTH * (sums.worth + width * sums.divisor_worth)
    wanted = find_next_round(ceil(noise / (_find_part(bands.find_amount(leaf)) * width)))
    own = next((one for one in typed if _demands(one, leaf, other.own_cells)), None)
    added: list[Comparison] = []
    if own is None:
        own = _demand_divisor(leaf, leaf, other.own_cells, multiply_rows(wanted, other.own_groups), slack)
        added.append(own)
    rows = _find_sure_sum(own, bands)
    beyond = next((one for one in typed if _demands(one, other.mean, other.cells)), None)
    if beyond is None:
        beyond = _demand_divisor(other.mean, leaf, other.cells, multiply_rows(rows, other.groups), slack)
        added.append(beyond)
    far = _find_sure_sum(beyond, bands)
    if not is_sure:
        added += _limit_ratio(other.mean, leaf, other.cells, reach, slack * reach * far)
    texts = " AND ".join(guard.text for guard in added)
    if added and not bands.accuracy.adds_guards:
        raise KeyholeError(
            "KH206",
            f"{leaf.text} compares with a ratio of other groups",
            detail=f"A ratio by a small sum drowns in noise, and no row bounds it: {texts} would be added.",
            hint="SET keyhole.guard = 'add';",
            position=leaf.position,
        )
    allowed = _find_tolerance(bands.find_amount(leaf), noise / rows, width)
    because = " (added, since a ratio by a small sum drowns in noise)" if added else ""
    warn(f"{leaf.text} may err within {convert_to_decimal(allowed)}{f', where {texts}{because}' if added else ''}")
    columns = {part.column for mean in (leaf, other.mean) for part in mean.summands if part.column is not None}
    if not all(is_never_null(one, bands.table) for one in columns):
        warn(f"a sum over no values counts as 0 in {leaf.text}, where PostgreSQL has NULL")
    bound = reach if is_sure else reach / (1 - slack)
    made = replace(leaf, fixed_tolerance=allowed, other_mean=replace(other, least_rows=(rows, far), reach=bound))
    return Conjunction((made, *dict.fromkeys(added)))


@dataclass(frozen=True, slots=True)
class _RatioSums:
    """A ratio as its sum and its divisor, each with what one of its steps is worth, and what a unit changes it by."""

    total: Functional
    size: Fraction
    divisor: Functional
    divisor_size: Fraction

    @staticmethod
    def from_mean(mean: Comparison, own: Comparison, bands: MeanBands) -> "_RatioSums":
        """Return the sums of a ratio. Raise KH203 to KH208."""
        assert mean.divisor_rows is not None
        above, below = _name_sums(mean, own)
        summed = CellSum(above, Measure.TOTAL, mean.summands, OWN_GROUP_ALONE, Fraction(1))
        counted = CellSum(below, Measure.TOTAL, (mean.divisor_rows,), OWN_GROUP_ALONE, Fraction(1))
        total, size = sum_cells(summed, mean, table=bands.table, where=bands.where)
        divisor, divisor_size = sum_cells(counted, mean, table=bands.table, where=bands.where)
        return _RatioSums(total, size, divisor, divisor_size)

    @property
    def worth(self) -> Fraction:
        return self.total.sensitivity * self.size

    @property
    def divisor_worth(self) -> Fraction:
        return self.divisor.sensitivity * self.divisor_size


def _name_sums(mean: Comparison, own: Comparison) -> tuple[str, str]:
    """Return a ratio's sum and its divisor as texts. `lag(a / b) OVER w` is read as those of `a` and of `b`."""
    above, _, below = mean.left_text.rpartition(" / ")
    if below.count("(") == below.count(")"):
        return above, below
    first, _, second = own.left_text.rpartition(" / ")
    return mean.left_text.replace(own.left_text, first), mean.left_text.replace(own.left_text, second)


def _find_largest_ratio(mean: Comparison) -> tuple[Fraction, bool]:
    """Return how far a ratio is from 0 at most, and True if its columns make that sure, False if it is demanded."""
    divisor = mean.divisor_rows
    assert divisor is not None
    signs = [
        sum((max(sign * part.coefficient, Fraction(0)) for part in mean.summands), Fraction(0)) for sign in (1, -1)
    ]
    if all(_is_part_of(part, divisor) for part in mean.summands):
        return max(signs), True
    reaches = [find_row_effect(part) for part in mean.summands]
    most = max(sum(side, Fraction(0)) for side in zip(*reaches, strict=True))
    return Fraction(round_up_to_two_digits(_FAR * most / find_row_effect(divisor)[1])), False


def _is_part_of(part: SumPart, whole: SumPart) -> bool:
    """Return True if a sum is one over some of the rows of another."""
    conditions = [{write_canonical(one) for one in each.condition.list_conjuncts()} for each in (part, whole)]
    return (part.column, part.power) == (whole.column, whole.power) and conditions[1] <= conditions[0]


def _find_part(amount: Amount) -> Fraction:
    percent = Fraction(amount.number) / 100 if amount.is_percent or amount.refers_to_bounds else Fraction(0)
    return percent or _LEAST_PART


def _find_tolerance(amount: Amount, noise: Fraction, reach: Fraction) -> Fraction:
    """Return the tolerance in the ratio's unit. A percentage stands for what noise allows at about the same price."""
    if amount.refers_to_bounds:
        return reach * Fraction(amount.number) / 100
    if not amount.is_percent:
        return Fraction(amount.number)
    return Fraction(round_up_to_two_digits(min(noise, reach / 2)))


def _demands(one: Comparison, mean: Comparison, cells: KeyCells) -> bool:
    """Return True if a comparison demands a number of the divisor's sum in some groups."""
    assert mean.divisor_rows is not None
    wanted = identify_sum((mean.divisor_rows,))
    if one.operator not in (">", ">=") or one.right_value <= 0 or one.other_mean is not None or one.per_row is not None:
        return False
    if cells == OWN_GROUP_ALONE:
        return not one.cell_sums and one.measure is Measure.TOTAL and identify_sum(one.summands) == wanted
    alone = one.cell_sums[0] if len(one.cell_sums) == 1 and one.cell_sums[0].factor == 1 else None
    return alone is not None and (alone.cells, identify_sum(alone.summands)) == (cells, wanted)


def _demand_divisor(mean: Comparison, own: Comparison, cells: KeyCells, least: int, slack: Fraction) -> Comparison:
    """Return the comparison that the divisor's sum reaches a number."""
    assert mean.divisor_rows is not None
    text, tolerance = _name_sums(mean, own)[1], least * slack
    parts = (mean.divisor_rows,) if cells == OWN_GROUP_ALONE else ()
    made = require_count(text, least, measure=Measure.TOTAL, parts=parts, tolerance=tolerance, position=mean.position)
    if parts:
        return replace(made, names=(text, "sum"))
    summed = CellSum(text, Measure.TOTAL, (mean.divisor_rows,), cells, Fraction(1))
    return replace(made, names=(text, "sum"), cell_sums=(summed,))


def _limit_ratio(
    mean: Comparison, own: Comparison, cells: KeyCells, reach: Fraction, tolerance: Fraction
) -> list[Comparison]:
    """Return the comparisons that a ratio is at most so far from 0, in the directions in which it can be."""
    assert mean.divisor_rows is not None
    above, below = _name_sums(mean, own)
    far = f"{convert_to_decimal(reach)} * {below}"
    found: list[Comparison] = []
    for side, sign, text in ((1, -1, f"{far} - ({above})"), (0, 1, f"{far} + ({above})")):
        if not any(find_row_effect(part)[side] for part in mean.summands):
            continue
        made = require_count(text, 0, measure=Measure.TOTAL, parts=(), tolerance=tolerance, position=mean.position)
        sums = (
            CellSum(below, Measure.TOTAL, (mean.divisor_rows,), cells, reach),
            CellSum(above, Measure.TOTAL, mean.summands, cells, Fraction(sign)),
        )
        found.append(replace(made, names=(text, "sum"), cell_sums=sums))
    return found


def _find_sure_sum(guard: Comparison, bands: MeanBands) -> int:
    """Return the sum that a comparison is sure to demand."""
    tolerance = guard.fixed_tolerance
    if tolerance is None:
        amount = bands.tolerances.find_amount(guard.names)
        tolerance = (
            amount.compute_size(threshold=guard.threshold, bounds=Fraction(0)) if amount is not None else Fraction(0)
        )
    return max(1, floor(guard.right_value - tolerance))


def read_group_ratio(leaf: Comparison, bands: MeanBands) -> tuple[Functional, Fraction]:
    """Return the functional of a comparison with a ratio of other groups, and the worth of one step of it.

    Its value is the difference of both ratios. Raise KH203 to KH208.
    """
    other = leaf.other_mean
    assert other is not None
    assert leaf.fixed_tolerance is not None
    own, far = _RatioSums.from_mean(leaf, leaf, bands), _RatioSums.from_mean(other.mean, leaf, bands)
    worth, far_worth = own.size / own.divisor_size, far.size / far.divisor_size
    unit = find_unit(leaf.fixed_tolerance or other.reach)
    times, constant = other.factor * far_worth / worth, other.constant / worth
    far_reach = ceil(other.reach / far_worth)
    pair = MeanPair(
        other_factor=times,
        constant=constant,
        step=unit / worth,
        largest_mean=ceil(abs(times) * far_reach + abs(constant)) + 1,
        largest_other_mean=far_reach,
        rows=max(1, floor(other.least_rows[0] / own.divisor_size)),
        other_rows=max(1, floor(other.least_rows[1] / far.divisor_size)),
    )
    reads = (
        CellRead(own.total, other.own_cells, 1),
        CellRead(own.divisor, other.own_cells, 1),
        CellRead(far.total, other.cells, 1),
        CellRead(far.divisor, other.cells, 1),
    )
    made = Functional(
        name=name_difference(leaf),
        measure=Measure.TOTAL,
        terms=(),
        sensitivity=own.total.sensitivity,
        unit_range=None,
        unit_size=convert_to_decimal(unit),
        rows=1,
        cell_reads=reads,
        pair=pair,
    )
    return made, unit
