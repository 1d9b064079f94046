"""Comparisons of linear expressions of aggregates, with constants or with each other, as one sum against zero."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod

from sqlglot import exp

from mechanisms.protocol import Deviation, Quantile
from planner.aggregates.aggregate import (
    COMPARED,
    Aggregate,
    GroupScope,
    contains_aggregate,
    identify_sum,
    sums_no_rows,
)
from planner.aggregates.arithmetic import (
    UNIT_MEASURES,
    Linear,
    find_least_per_row,
    have_same_rows,
    is_never_negative,
    is_positive_mean,
    read_linear,
    refuse_nonlinear,
    strip_nullif,
)
from planner.aggregates.comparison import (
    UNKNOWN,
    CellSum,
    Comparison,
    Conjunction,
    Disjunction,
    Having,
    OtherMean,
    Slack,
    join_children,
)
from planner.aggregates.having_refusals import (
    refuse_integer_quotient,
    refuse_mean_against_key,
    refuse_ratio_without_base,
    refuse_self_comparison,
    refuse_true_coalesce,
    refuse_zero_mean,
)
from planner.aggregates.key_numbers import KeyNumbers
from planner.aggregates.key_thresholds import is_public, read_key_numbers, subtract_from_mean
from planner.aggregates.row_expression import Arithmetic, SumPart
from planner.errors import KeyholeError
from planner.parser.tree import find_position, strip_parentheses, write_node, write_short
from planner.question.condition import ALWAYS, Condition
from planner.question.condition_text import write_canonical
from planner.question.key_cells import OWN_GROUP_ALONE, KeyCells
from planner.question.question import Measure
from planner.values.decimals import convert_to_decimal
from planner.values.operators import COMPARISONS, FLIPPED_OPERATORS

_MOST_QUANTILES = 2  # of one comparison, as in `n > q3 + 1.5 * (q3 - q1)`: every choice of their cells counts


def compare_linear(node: exp.Expr, left: exp.Expr, operator: str, right: exp.Expr, within: GroupScope) -> Having:
    """Return the formula for `left operator right`.

    Both are linear, or a mean is compared with each group's own threshold.

    Raise KH204 for other arithmetic, KH208 for a threshold that is not constant.
    """
    mean = subtract_from_mean(left, right) if is_public(right, within) else None
    if mean is not None:
        return _compare_mean_with_key(mean, left, operator, right, node, within)
    first, second = read_linear(left, within), read_linear(right, within)
    if first is None or second is None:
        return UNKNOWN
    if (first.null_value is not None and second.summands) or second.null_value is not None:
        raise refuse_nonlinear(node, within)
    return compare_with_zero(first.add(second, Fraction(-1)), operator, node, find_position(left), within)


def compare_quotient_of_means(
    left: exp.Expr, operator: str, right: exp.Expr, node: exp.Expr, within: GroupScope
) -> Having | None:
    """Rewrite `mean / mean operator c` as `mean operator c * mean`, for means over different rows.

    The divisor must be positive. Return None for other expressions. Raise KH204 for a divisor that may be 0 or
    negative.
    """
    if not isinstance(left, exp.Div) or not (contains_aggregate(left.this) and contains_aggregate(left.expression)):
        return None
    above, below = (
        read_linear(left.this, within),
        read_linear(strip_nullif(strip_parentheses(left.expression), within), within),
    )
    if (
        above is None
        or below is None
        or not above.summands
        or above.null_value is not None
        or above.key_numbers is not None
    ):
        return None
    means = [found for found, _ in (*above.summands, *below.summands)]
    if not all(found.divisor and not found.divides_by_units for found in means):
        return None
    if all(have_same_rows(means[0].divisor, found.divisor, within) for found in means):
        return None
    threshold = read_linear(right, within)
    if threshold is None:
        return UNKNOWN
    if threshold.summands or threshold.key_numbers is not None:
        raise refuse_nonlinear(node, within)
    if not is_positive_mean(below) or any(isinstance(found.row_statistic, Deviation) for found, _ in below.summands):
        raise refuse_zero_mean(left, operator, right, node)
    return compare_with_zero(above.add(below, -threshold.constant), operator, node, find_position(left), within)


def clear_denominator(left: exp.Div, right: exp.Expr, within: GroupScope) -> tuple[exp.Expr, exp.Expr]:
    """Return `x / n op t` as `x op t * n`, where n is a positive number that a key determines.

    Raise KH204 if no such number divides `x`.
    """
    above, (below, arithmetic) = read_linear(left.this, within), read_key_numbers(left.expression, within)
    if not all(number > 0 for number in below.known_numbers):
        raise KeyholeError(
            "KH204",
            f"{below.text} is not positive for every group, so nothing can be divided by it",
            hint=f"Leave the others out: WHERE {' AND '.join(f'{column} > 0' for column in below.columns)}",
            position=find_position(left),
        )
    if above is not None and max(above.arithmetic, arithmetic) is Arithmetic.INTEGER:
        raise refuse_integer_quotient(left)
    return left.this, exp.Mul(this=_read_factor(right), expression=_read_factor(left.expression))


def _read_factor(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node.copy()) if isinstance(node, exp.Binary) else node.copy()


def compare_with_zero(difference: Linear, operator: str, node: exp.Expr, at: int | None, within: GroupScope) -> Having:
    """Return `difference operator 0`, for the comparison at `node` and a message's position `at`.

    Raise KH204 for a ratio or quotient that cannot be compared with 0.
    """
    if not difference.summands or not difference.summands[0][1]:
        raise refuse_self_comparison(node)
    first, scale = difference.summands[0]
    if first.divisor and first.function != "avg" and len(difference.summands) == 1:
        scale = Fraction(1 if scale > 0 else -1)  # a ratio in percent keeps its unit
    operator = operator if scale > 0 else FLIPPED_OPERATORS[operator]
    threshold = -difference.constant / scale
    own = None if difference.key_numbers is None else difference.key_numbers.multiply(-1 / scale).shift(threshold)
    summands = tuple(
        (found, coefficient if scale == 1 else coefficient / scale)
        for found, coefficient in difference.summands
        if coefficient
    )
    difference = replace(difference, summands=summands)
    special = _compare_specially(difference, operator, threshold, scale, own, node, at, within)
    if special is not None:
        return special
    per = _find_common_divisor(summands, node, within)
    measure = _find_common_measure(summands, node, within)
    by_units = any(found.divides_by_units for found, _ in summands)
    needs_base = bool(per) and (by_units or not find_least_per_row(per))
    if needs_base and (difference.null_value is not None or not threshold):
        raise refuse_ratio_without_base(node)
    if own is not None and (per or difference.null_value is not None):
        raise refuse_mean_against_key(node)
    apart = measure is Measure.TOTAL and not within.scope.table.is_row_unit  # else all add up alike
    parts, off = list[SumPart](), list[SumPart]()
    for found, coefficient in summands:
        taken_off = apart and found.measure is Measure.UNITS
        (off if taken_off else parts).extend(
            part.multiply(-coefficient if taken_off else coefficient) for part in found.summands
        )
    if by_units and apart:
        off += [part.multiply(threshold) for part in per]
    else:
        parts += [part.multiply(-threshold) for part in per]
    off_condition = _find_units_rows(parts, off, node)
    values = dict.fromkeys(value for found, _ in summands for value in found.required_values)
    left = Linear(summands, Fraction(0), difference.arithmetic).text
    if difference.null_value is not None:
        passes = COMPARISONS[operator](difference.null_value / scale, 0)
        if passes and not (per and COMPARISONS[operator](0, 0)):
            raise refuse_true_coalesce(node)
        values = {} if passes else values
    if own is not None:
        values |= dict.fromkeys(own.required_values)
    return Comparison(
        text=f"{left} {operator} {convert_to_decimal(threshold) if own is None else own.text}",
        left_text=left,
        names=(left, *summands[0][0].names),
        measure=measure,
        summands=tuple(parts),
        operator=operator,
        right_value=Fraction(0) if per else threshold,
        threshold=threshold,
        origin=threshold if per else Fraction(0),
        per_row=(find_least_per_row(per) or None) if per and not by_units else None,
        required_values=tuple(values),
        slack=Slack.THRESHOLD,
        position=at,
        key_thresholds=own,
        divisor_rows=replace(per[0], coefficient=Fraction(1), power=0) if len(per) == 1 else None,
        ratio_base=per if needs_base else (),
        divides_by_units=by_units,
        unit_deduction=sum((part.coefficient for part in off), Fraction(0)),
        deduction_condition=off_condition,
        has_either_sign=any(found.has_either_sign for found, _ in summands),
    )


def _compare_specially(
    difference: Linear,
    operator: str,
    threshold: Fraction,
    scale: Fraction,
    own: KeyNumbers | None,
    node: exp.Expr,
    at: int | None,
    within: GroupScope,
) -> Having | None:
    """Compare means over different rows, or other groups. Return None for one sum of the group.

    Raise KH204 for any other comparison.
    """
    if own is None and difference.null_value is None:
        means = _compare_means(difference.summands, operator, threshold, node, at, within)
        if means is not None:
            return means
    return _compare_cells(difference, operator, threshold, scale, own, node, at, within)


def _compare_cells(
    difference: Linear,
    operator: str,
    threshold: Fraction,
    scale: Fraction,
    own: KeyNumbers | None,
    node: exp.Expr,
    at: int | None,
    within: GroupScope,
) -> Having | None:
    """Compare sums of other groups, beside a group's own, with a constant. None without other groups.

    Raise KH204 for any other comparison.
    """
    summands = difference.summands
    if all(found.cells == OWN_GROUP_ALONE for found, _ in summands):
        return None
    plain = all(not found.divisor and found.measure in COMPARED for found, _ in summands)
    if any(found.row_statistic is not None for found, _ in summands):
        raise _refuse_row_statistic(summands, node)
    value = difference.null_value  # of groups that lack a neighbour, whose literals are false
    holds = value is not None and COMPARISONS[operator](value / scale, 0)
    if own is not None or holds or not plain:
        raise KeyholeError(
            "KH204",
            f"{write_short(node)} compares other groups with something else than sums, counts and means of rows",
            detail="Sums and counts are compared with sums, counts and constants, means of rows with means of rows.",
            hint="Compare a count or a sum of the group with the count or sum of other groups.",
            position=find_position(node),
        )
    others = [found for found, _ in summands if found.cells != OWN_GROUP_ALONE]
    read = [found.cells.statistic for found in others if found.cells.statistic is not None]
    quantiles = sum(isinstance(one, Quantile) for one in read)
    if len(read) - quantiles > 1 or (quantiles and (len(others) > quantiles or quantiles > _MOST_QUANTILES)):
        raise KeyholeError(
            "KH204",
            f"{write_short(node)} compares a quantile of groups, or their largest, with other groups",
            detail="At most two quantiles are compared with counts and sums of the group itself, and with "
            "constants. Means and "
            "totals of groups may stand beside one standard deviation of groups.",
            hint="Compare the group's own count or sum with one or two quantiles, and nothing else.",
            position=find_position(node),
        )
    if _lack_cells([found.cells for found, _ in summands]):
        return UNKNOWN
    if value is None and any(found.cells.empty_value is None and sums_no_rows(found, within) for found in others):
        return UNKNOWN
    left = Linear(summands, Fraction(0), difference.arithmetic).text
    closed = [_close_if_equal(found.cells, operator) for found, _ in summands]
    first = next((found for found, _ in summands if found.cells == OWN_GROUP_ALONE), summands[0][0])
    return Comparison(
        text=f"{left} {operator} {convert_to_decimal(threshold)}",
        left_text=left,
        names=(left, *first.names),
        measure=Measure.TOTAL,
        summands=(),
        operator=operator,
        right_value=threshold,
        threshold=threshold,
        origin=Fraction(0),
        per_row=None,
        required_values=(),
        slack=Slack.THRESHOLD,
        position=at,
        cell_sums=tuple(
            CellSum(
                found.text,
                found.measure,
                found.summands,
                replace(cells, false_without_value=True)
                if value is not None and cells.indices_without_value
                else cells,
                coefficient,
            )
            for (found, coefficient), cells in zip(summands, closed, strict=True)
        ),
    )


def compare_with_missing(node: exp.Expr, left: exp.Expr, within: GroupScope, *, negated: bool) -> Having:
    """Return `left IS NULL`, for an expression `left` of other groups.

    It is true for a group if another group that the expression reads does not exist. The formula reads no sum. Raise
    KH204 if a value may also be NULL by the rows of the group itself, or by a divisor.
    """
    read = read_linear(left, within)
    others = [] if read is None else [found for found, _ in read.summands if found.cells != OWN_GROUP_ALONE]
    own = [] if read is None else [found for found, _ in read.summands if found.cells == OWN_GROUP_ALONE]
    plain = all(found.measure in COMPARED and not found.divisor for found in (*own, *others))
    divides = any(found.cells.may_have_no_value and not found.cells.indices_without_value for found in others)
    if (
        read is None
        or not plain
        or divides
        or any(found.required_values for found in own)
        or read.null_value is not None
    ):
        raise KeyholeError(
            "KH204",
            f"{write_short(node)} tests for a NULL that private rows decide",
            detail="The calendar alone decides if a neighbour is missing. Rows decide if a group's own sum or a "
            "quotient is NULL.",
            hint="Test the neighbour itself: lag(sum(x)) OVER (ORDER BY month) IS NOT NULL",
            position=find_position(node),
        )
    lacking = [found for found in others if found.cells.indices_without_value]
    sides = [
        Comparison(
            text=f"{found.text} IS {'NOT ' if negated else ''}NULL",
            left_text=f"{found.text} IS NULL",
            names=(found.text,),
            measure=Measure.TOTAL,
            summands=(),
            operator="<=" if negated else ">",
            right_value=Fraction(0),
            threshold=Fraction(0),
            origin=Fraction(0),
            per_row=None,
            required_values=(),
            slack=Slack.THRESHOLD,
            position=find_position(left),
            fixed_tolerance=Fraction(0),
            cell_sums=(
                CellSum(
                    found.text,
                    found.measure,
                    found.summands,
                    replace(found.cells, empty_value=Fraction(1)),
                    Fraction(0),
                ),
            ),
        )
        for found in {found.cells: found for found in lacking}.values()
    ]
    return join_children(sides, is_conjunction=negated)


def _close_if_equal(cells: KeyCells, operator: str) -> KeyCells:
    """Return cells of which a deviation that divides, if it is 0, makes the comparison with 0 fail."""
    if not isinstance(cells.statistic, Deviation) or cells.statistic.if_equal is None:
        return cells
    return replace(cells, statistic=replace(cells.statistic, if_equal={">=": -1, "<=": 1}.get(operator, 0)))


def _lack_cells(cells: Sequence[KeyCells]) -> bool:
    """Return True if for every group some group that it is compared with does not exist.

    An example is a comparison with the month two before, over a key of two months.
    """
    calendars = {one.key for one in cells if one.key is not None}
    for key in calendars:
        along = [one for one in cells if one.key == key]
        if len(frozenset().union(*(one.indices_without_value for one in along))) == len(along[0].used_places):
            return True
    return False


def _compare_means(
    summands: tuple[tuple[Aggregate, Fraction], ...],
    operator: str,
    threshold: Fraction,
    node: exp.Expr,
    at: int | None,
    within: GroupScope,
) -> Having | None:
    """Compare a mean with a mean over other rows, with factors and a constant.

    Return None if the summands are not two means.
    """
    if operator in ("=", "<>"):
        sides = [
            _compare_means(summands, one, threshold, node, at, within)
            for one in ((">=", "<=") if operator == "=" else (">", "<"))
        ]
        made = tuple(side for side in sides if side is not None)
        return (Conjunction(made) if operator == "=" else Disjunction(made)) if made else None
    is_ratio = _are_ratios(summands)
    deviations = [(found, coefficient) for found, coefficient in summands if found.row_statistic is not None]
    sorts = _sort_by_rows([one for one in summands if one not in deviations], within, is_ratio=is_ratio)
    has_mean = len(sorts) == 2
    if deviations and not (len(deviations) == 1 and _complete_sorts(sorts, deviations[0][0], within)):
        return None
    if len(sorts) != 2:
        return None
    if sorts[0][0][0].cells != OWN_GROUP_ALONE == sorts[1][0][0].cells:  # a group's own mean stands on the left
        sorts.reverse()
    operator = operator if sorts[0][0][1] > 0 else FLIPPED_OPERATORS[operator]
    threshold /= sorts[0][0][1]
    cells = [sort[0][0].cells for sort in sorts]
    if cells[0].averages_means or (cells[1].averages_means and (is_ratio or deviations)):
        return None
    if _lack_cells(cells):
        return UNKNOWN
    means = []
    for sort in sorts:
        scale = sort[0][1]
        alone = tuple((replace(found, cells=OWN_GROUP_ALONE), number / scale) for found, number in sort)
        mean = (
            _compare_ratio(alone, at)
            if is_ratio
            else compare_with_zero(Linear(alone, Fraction(0), Arithmetic.EXACT), ">", node, at, within)
        )
        assert isinstance(mean, Comparison)
        means.append(replace(mean, summands=tuple(part for part in mean.summands if part.coefficient)))
    first, second = means
    scale = sorts[0][0][1]
    factor = -sorts[1][0][1] / scale if has_mean else Fraction(0)
    others = [(-number / scale, found.text) for found, number in deviations]
    right = _write_multiples([*([(factor, second.left_text)] if factor else []), *others])
    if threshold:
        right += f" {'-' if threshold < 0 else '+'} {convert_to_decimal(abs(threshold))}"
    other = OtherMean(
        second,
        factor,
        threshold,
        own_cells=cells[0],
        cells=cells[1],
        own_groups=_count_groups(cells[0], within),
        groups=_count_groups(cells[1], within),
    )
    for found, number in deviations:
        other = _read_row_statistic(other, found.row_statistic, -number / scale)
    return replace(
        first,
        text=f"{first.left_text} {operator} {right}",
        operator=operator,
        required_values=tuple(dict.fromkeys((*first.required_values, *second.required_values))),
        other_mean=other,
    )


def _read_row_statistic(other: OtherMean, statistic: Deviation | Quantile | None, factor: Fraction) -> OtherMean:
    """Return a right side with a multiple of a statistic of its rows."""
    if isinstance(statistic, Quantile):
        return replace(other, quantile=statistic, quantile_factor=factor)
    assert statistic is not None
    return replace(other, deviation_factor=factor, is_sample=statistic.is_sample)


def _refuse_row_statistic(summands: tuple[tuple[Aggregate, Fraction], ...], node: exp.Expr) -> KeyholeError:
    """Return KH204 for a statistic of rows that is compared with something else than a group's own mean."""
    if any(isinstance(found.row_statistic, Quantile) for found, _ in summands):
        return KeyholeError(
            "KH204",
            f"{write_short(node)} compares a quantile of rows with something else than a group's own mean",
            detail="A group's mean is compared with a multiple of one quantile, plus a constant.",
            hint="Compare a mean with it: avg(x) > (SELECT 2 * percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM t).",
            position=find_position(node),
        )
    return KeyholeError(
        "KH204",
        f"{write_short(node)} compares a standard deviation of rows with something else than a group's own mean",
        detail="A group's mean is compared with the mean and one standard deviation of the same rows.",
        hint="Compare a mean with it: avg(x) > (SELECT avg(x) + 2 * stddev(x) FROM t).",
        position=find_position(node),
    )


def _sort_by_rows(
    means: Sequence[tuple[Aggregate, Fraction]], within: GroupScope, *, is_ratio: bool
) -> list[list[tuple[Aggregate, Fraction]]]:
    """Return means by the rows that they are of. Return nothing if one of them is no mean of rows."""
    sorts: list[list[tuple[Aggregate, Fraction]]] = []
    for found, coefficient in means:
        if len(found.divisor) != 1 or found.divides_by_units or found.cells.empty_value is not None:
            return []
        if not (is_ratio or find_least_per_row(found.divisor)) or (found.divisor[0].power and not is_ratio):
            return []
        alike = next(
            (
                sort
                for sort in sorts
                if sort[0][0].cells == found.cells and have_same_rows(sort[0][0].divisor, found.divisor, within)
            ),
            None,
        )
        if alike is None:
            sorts.append(alike := [])
        alike.append((found, coefficient))
    return sorts


def _write_multiples(parts: Sequence[tuple[Fraction, str]]) -> str:
    """Return a sum of multiples as an analyst would write it."""
    written = ""
    for factor, text in parts:
        size = "" if abs(factor) == 1 else f"{convert_to_decimal(abs(factor))} * "
        sign = (" - " if factor < 0 else " + ") if written else ("-" if factor < 0 else "")
        written += f"{sign}{size}{text}"
    return written


def _complete_sorts(sorts: list[list[tuple[Aggregate, Fraction]]], deviation: Aggregate, within: GroupScope) -> bool:
    """Return True if a deviation is that of the rows of the other mean. Without another mean, add none of these rows.

    A group's own mean is on one side. A quantile stands alone on the other.
    """
    own = [sort for sort in sorts if sort[0][0].cells == OWN_GROUP_ALONE]
    if len(own) != 1 or deviation.cells == OWN_GROUP_ALONE:
        return False
    mean = replace(deviation, row_statistic=None, text=deviation.mean_text)
    if len(sorts) == 1:
        sorts.append([(mean, Fraction(1))])
        return True
    if isinstance(deviation.row_statistic, Quantile):
        return False
    other = next(sort for sort in sorts if sort is not own[0])
    return (
        len(other) == 1
        and other[0][0].cells == mean.cells
        and identify_sum(other[0][0].summands) == identify_sum(mean.summands)
        and have_same_rows(other[0][0].divisor, mean.divisor, within)
    )


def _are_ratios(summands: tuple[tuple[Aggregate, Fraction], ...]) -> bool:
    """Return True for ratios by one sum that no row lowers, of which some are of other groups."""
    divisors = [found.divisor for found, _ in summands]
    return (
        any(found.cells != OWN_GROUP_ALONE for found, _ in summands)
        and all(len(one) == 1 and one[0].power and is_never_negative(one) for one in divisors)
        and len({identify_sum(one) for one in divisors}) == 1
    )


def _compare_ratio(summands: tuple[tuple[Aggregate, Fraction], ...], at: int | None) -> Comparison:
    """Return a ratio of sums of a group itself, compared with 0."""
    left = Linear(summands, Fraction(0), Arithmetic.EXACT).text
    divisor = summands[0][0].divisor[0]
    return Comparison(
        text=f"{left} > 0",
        left_text=left,
        names=(left, *summands[0][0].names),
        measure=Measure.TOTAL,
        summands=tuple(
            part.multiply(times / divisor.coefficient) for found, times in summands for part in found.summands
        ),
        operator=">",
        right_value=Fraction(0),
        threshold=Fraction(0),
        origin=Fraction(0),
        per_row=Fraction(1),
        required_values=tuple(dict.fromkeys(value for found, _ in summands for value in found.required_values)),
        slack=Slack.THRESHOLD,
        position=at,
        divisor_rows=replace(divisor, coefficient=Fraction(1)),
    )


def _count_groups(cells: KeyCells, within: GroupScope) -> int:
    """Return the largest number of groups that a window adds up."""
    sizes = dict(within.key_values)
    return prod(len(sizes[name]) for name in cells.summed_keys) * max(map(len, cells.used_places), default=1)


def _find_common_measure(
    summands: tuple[tuple[Aggregate, Fraction], ...], node: exp.Expr, within: GroupScope
) -> Measure:
    """Return what a sum of these summands measures. Raise KH204 if they cannot be added.

    Units are counted beside rows (a number for each unit is subtracted from a sum of rows), or with other units alone.
    """
    measures = {found.measure if found.measure in UNIT_MEASURES else Measure.TOTAL for found, _ in summands}
    if Measure.VALUES in measures and len(summands) > 1:
        raise refuse_nonlinear(node, within)
    if measures == {Measure.UNITS}:
        numbers = sum(len(found.summands) for found, _ in summands)
        divided = any(found.divides_by_units for found, _ in summands)
        return Measure.UNIT_SUM if divided or numbers > 1 else Measure.UNITS
    if Measure.UNITS in measures and any(found.divisor for found, _ in summands):
        raise refuse_nonlinear(node, within)
    return Measure.VALUES if measures == {Measure.VALUES} else Measure.TOTAL


def _find_units_rows(parts: Sequence[SumPart], units: Sequence[SumPart], node: exp.Expr) -> Condition | None:
    """Return the rows that a unit needs to be counted beside a sum of rows. Return None if they are the summed rows.

    Raise KH204 for units with rows of one FILTER beside sums over other rows.
    """
    counted = {write_canonical(part.condition): part.condition for part in units}
    if not counted or counted.keys() == {write_canonical(part.condition) for part in parts}:
        return None
    if counted.keys() == {write_canonical(ALWAYS)}:
        return ALWAYS
    raise KeyholeError(
        "KH204",
        f"{write_short(node)} compares a sum of some rows with a count of units that have other rows",
        detail="Both sides together change with one unit, so the same rows have to count on both.",
        hint="Write the same FILTER on both sides, or a condition in WHERE.",
        position=find_position(node),
    )


def _compare_mean_with_key(
    mean: exp.Expr, left: exp.Expr, operator: str, right: exp.Expr, node: exp.Expr, within: GroupScope
) -> Having:
    """Compare a mean with a threshold that a key determines: the mean of the rows' values less it, against 0.

    A percentage refers to the least threshold in absolute value, as for sums.
    """
    own, _ = read_key_numbers(right, within)
    less, plain = read_linear(mean, within), read_linear(left, within)
    if less is None or plain is None or not own.known_numbers:
        return UNKNOWN
    made = compare_with_zero(less, operator, node, find_position(left), within)
    if not isinstance(made, Comparison):
        return made
    least, most = min(own.known_numbers), max(own.known_numbers)
    shown = (
        f"{convert_to_decimal(least)} to {convert_to_decimal(most)}" if least < most else f"{convert_to_decimal(least)}"
    )
    return replace(
        made,
        text=f"{plain.text} {made.operator} {own.text} ({shown})",
        left_text=f"{plain.text} - {f'({own.text})' if ' ' in own.text else own.text}",
        names=(plain.text, *plain.summands[0][0].names),
        threshold=min(map(abs, own.known_numbers)),
    )


def _find_common_divisor(
    summands: tuple[tuple[Aggregate, Fraction], ...], node: exp.Expr, within: GroupScope
) -> tuple[SumPart, ...]:
    """Return the divisor of all summands, or nothing if none is divided. Raise KH204 if they differ."""
    found = [one.divisor for one, _ in summands]
    first = found[0]
    if all(not per for per in found):
        return ()
    if len({one.divides_by_units for one, _ in summands}) > 1:
        raise refuse_nonlinear(node, within)
    if all(per and have_same_rows(first, per, within) for per in found):
        return first
    if not all(found):
        raise KeyholeError(
            "KH204",
            f"{write_short(node)} compares a sum or count with a mean or ratio",
            detail="A mean is tested as its sum less a number times its count, so the other side has to be a number.",
            hint="Compare each of them with a number, or a mean with a mean.",
            position=find_position(node),
        )
    named = dict.fromkeys(write_node(found) for found in node.find_all(exp.Column))
    present = " AND ".join(f"{column} IS NOT NULL" for column in named)
    raise KeyholeError(
        "KH204",
        f"{write_short(node)} compares means or ratios over different rows",
        detail="Two means are compared by their sums, which needs the same rows in both.",
        hint=f"Add FILTER (WHERE {present}) to both, or compare each with a number.",
        position=find_position(node),
    )
