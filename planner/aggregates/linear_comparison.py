"""Comparisons of linear expressions of aggregates, with constants or with each other, as one sum against zero."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod

from sqlglot import exp

from mechanisms.protocol import Deviation, Quantile
from planner.aggregates.aggregate import Aggregate, GroupScope, contains_aggregate, sums_no_rows
from planner.aggregates.arithmetic import (
    UNIT_MEASURES,
    Linear,
    find_least_per_row,
    have_same_rows,
    is_positive_mean,
    read_linear,
    refuse_nonlinear,
    strip_nullif,
)
from planner.aggregates.cell_windows import ADDED
from planner.aggregates.comparison import (
    UNKNOWN,
    CellSum,
    Comparison,
    Conjunction,
    Disjunction,
    Having,
    OtherMean,
    Slack,
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


def compare_linear(node: exp.Expr, left: exp.Expr, operator: str, right: exp.Expr, within: GroupScope) -> Having:
    """Return `left operator right`, both linear, or a mean against a threshold that differs between groups.

    Raise KH204, KH208.
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
    """Return `mean / mean operator c` over different rows, as `mean operator c * mean` if the divisor is above 0.

    Return None for other expressions. Raise KH204 for a divisor that may be 0 or negative.
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
    if not is_positive_mean(below):
        raise refuse_zero_mean(left, operator, right, node)
    return compare_with_zero(above.add(below, -threshold.constant), operator, node, find_position(left), within)


def clear_denominator(left: exp.Div, right: exp.Expr, within: GroupScope) -> tuple[exp.Expr, exp.Expr]:
    """Return `x / n op t` as `x op t * n`, where n is a positive number that a key determines. Raise KH204."""
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
    """Return `difference operator 0`, for the comparison at `node` and a message's position `at`. Raise KH204."""
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
            part.multiply(-coefficient if taken_off else coefficient) for part in found.parts
        )
    if by_units and apart:
        off += [part.multiply(threshold) for part in per]
    else:
        parts += [part.multiply(-threshold) for part in per]
    off_condition = _find_units_rows(parts, off, node)
    values = dict.fromkeys(value for found, _ in summands for value in found.values)
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
        left=left,
        names=(left, *summands[0][0].names),
        measure=measure,
        parts=tuple(parts),
        operator=operator,
        at=Fraction(0) if per else threshold,
        threshold=threshold,
        origin=threshold if per else Fraction(0),
        per_row=(find_least_per_row(per) or None) if per and not by_units else None,
        values=tuple(values),
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
    """Compare means over different rows, or other groups. Return None for one sum of the group. Raise KH204."""
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
    """Compare sums of other groups, beside a group's own, with a constant. None without other groups. Raise KH204."""
    summands = difference.summands
    if all(found.cells == OWN_GROUP_ALONE for found, _ in summands):
        return None
    plain = all(not found.divisor and found.measure in ADDED for found, _ in summands)
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
    if len(read) > 1 or (len(others) > 1 and any(isinstance(one, Quantile) for one in read)):
        raise KeyholeError(
            "KH204",
            f"{write_short(node)} compares a quantile of groups, or their largest, with other groups",
            detail="Each is compared with counts and sums of the group itself, and with constants. Means and totals of "
            "groups may stand beside one standard deviation of groups.",
            hint="Compare the group's own count or sum with the quantile or the largest alone.",
            position=find_position(node),
        )
    if _lack_cells([found.cells for found, _ in summands]):
        return UNKNOWN
    if value is None and any(found.cells.default is None and sums_no_rows(found, within) for found in others):
        return UNKNOWN
    left = Linear(summands, Fraction(0), difference.arithmetic).text
    closed = [_close_if_equal(found.cells, operator) for found, _ in summands]
    first = next((found for found, _ in summands if found.cells == OWN_GROUP_ALONE), summands[0][0])
    return Comparison(
        text=f"{left} {operator} {convert_to_decimal(threshold)}",
        left=left,
        names=(left, *first.names),
        measure=Measure.TOTAL,
        parts=(),
        operator=operator,
        at=threshold,
        threshold=threshold,
        origin=Fraction(0),
        per_row=None,
        values=(),
        slack=Slack.THRESHOLD,
        position=at,
        cell_sums=tuple(
            CellSum(
                found.text,
                found.measure,
                found.parts,
                replace(cells, fails=True) if value is not None and cells.lacking else cells,
                coefficient,
            )
            for (found, coefficient), cells in zip(summands, closed, strict=True)
        ),
    )


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
        if len(frozenset().union(*(one.lacking for one in along))) == len(along[0].used_places):
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
    sorts: list[list[tuple[Aggregate, Fraction]]] = []
    for found, coefficient in summands:
        if (
            len(found.divisor) != 1
            or found.divisor[0].power
            or found.divides_by_units
            or found.cells.default is not None
            or not find_least_per_row(found.divisor)
        ):
            return None
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
    if len(sorts) != 2:
        return None
    if sorts[0][0][0].cells != OWN_GROUP_ALONE == sorts[1][0][0].cells:  # a group's own mean stands on the left
        sorts.reverse()
        operator = operator if sorts[0][0][1] > 0 else FLIPPED_OPERATORS[operator]
        threshold /= sorts[0][0][1]
    cells = [sort[0][0].cells for sort in sorts]
    if _lack_cells(cells):
        return UNKNOWN
    means = []
    for sort in sorts:
        scale = sort[0][1]
        alone = tuple((replace(found, cells=OWN_GROUP_ALONE), number / scale) for found, number in sort)
        scaled = Linear(alone, Fraction(0), Arithmetic.EXACT)
        mean = compare_with_zero(scaled, ">", node, at, within)
        assert isinstance(mean, Comparison)
        means.append(replace(mean, parts=tuple(part for part in mean.parts if part.coefficient)))
    first, second = means
    factor = -sorts[1][0][1] / sorts[0][0][1]
    right = second.left if abs(factor) == 1 else f"{convert_to_decimal(abs(factor))} * {second.left}"
    right = f"-{right}" if factor < 0 else right
    if threshold:
        right += f" {'-' if threshold < 0 else '+'} {convert_to_decimal(abs(threshold))}"
    return replace(
        first,
        text=f"{first.left} {operator} {right}",
        operator=operator,
        values=tuple(dict.fromkeys((*first.values, *second.values))),
        other_mean=OtherMean(
            second,
            factor,
            threshold,
            own_cells=cells[0],
            cells=cells[1],
            own_groups=_count_groups(cells[0], within),
            groups=_count_groups(cells[1], within),
        ),
    )


def _count_groups(cells: KeyCells, within: GroupScope) -> int:
    """Return the largest number of groups that a window adds up."""
    sizes = dict(within.values)
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
        numbers = sum(len(found.parts) for found, _ in summands)
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
        left=f"{plain.text} - {f'({own.text})' if ' ' in own.text else own.text}",
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
            detail="A mean is its sum less its count times a number, so that the other side has to be a number.",
            hint="Compare each of them with a number, or a mean with a mean.",
            position=find_position(node),
        )
    named = dict.fromkeys(write_node(found) for found in node.find_all(exp.Column))
    present = " AND ".join(f"{column} IS NOT NULL" for column in named)
    raise KeyholeError(
        "KH204",
        f"{write_short(node)} compares means or ratios over different rows",
        detail="Two means are compared by their sums, which needs the same rows in both.",
        hint=f"Add FILTER (WHERE {present}) to both, or ask one atom each.",
        position=find_position(node),
    )
