"""Standard scores of groups: `(x - avg(x) OVER ()) / stddev(x) OVER () > 2`, compared without the division.

A standard deviation is never below 0. So the comparison is `x - avg(x) OVER () > 2 * stddev(x) OVER ()`, except where
all groups are equal. There PostgreSQL divides by 0, or compares NULL, and no comparison holds here. The same holds of
the deviation of all rows, by which the difference of a group's mean and theirs is divided.
"""

from dataclasses import replace
from fractions import Fraction
from math import prod

from sqlglot import exp

from mechanisms.protocol import Deviation
from planner.aggregates.aggregate import Aggregate, GroupScope, identify_sum
from planner.aggregates.arithmetic import Linear, have_same_rows, read_linear
from planner.aggregates.comparison import UNKNOWN, Having, join_children
from planner.aggregates.linear_comparison import compare_with_zero
from planner.aggregates.rounded_comparison import find_divisor
from planner.aggregates.row_expression import SumPart
from planner.errors import KeyholeError
from planner.parser.tree import find_position, write_short
from planner.question.key_cells import OWN_GROUP_ALONE, KeyCells


def compare_standard_score(
    node: exp.Expr, left: exp.Div, operator: str, right: exp.Expr, within: GroupScope
) -> Having | None:
    """Return a comparison of a standard score, `(x - mean) / deviation`, with a number.

    Return None for other divisors.

    Raise KH204 for a quotient whose numerator need not be 0 where all groups are equal.
    """
    above, below = read_linear(left.this, within), read_linear(find_divisor(left), within)
    if above is not None and below is not None and (of_rows := _find_deviation_of_rows(below)) is not None:
        return _compare_with_rows(node, left, operator, right, (above, below), of_rows, within)
    deviation = None if below is None else _find_deviation(below)
    if above is None or below is None or deviation is None:
        return None
    said = read_linear(right, within)
    if said is None:
        return UNKNOWN
    if said.summands or said.key_numbers is not None or not _vanishes_if_equal(above, below, within):
        raise _refuse(
            left,
            detail="Where all groups are equal, nothing can be divided by their standard deviation.",
            hint="Multiply out: sum(x) > 2 * stddev(sum(x)) OVER ().",
        )
    if not said.constant and operator not in ("<", ">", "<>"):
        raise _refuse(
            left,
            detail="It has no value where all groups are equal, where the difference from their mean is 0.",
            hint="Compare the difference itself: sum(x) >= avg(sum(x)) OVER ().",
        )
    ((found, factor),) = below.summands
    cells = _leave_out_single_groups(replace(found.cells, statistic=replace(deviation, if_equal=0)), within)
    divisor = replace(below, summands=((replace(found, cells=cells), factor),))
    difference = above.add(divisor, -said.constant)
    sides = {"=": (">=", "<="), "<>": (">", "<")}.get(operator, (operator,))
    made = (compare_with_zero(difference, side, node, find_position(left), within) for side in sides)
    return join_children(made, is_conjunction=operator == "=")


def _compare_with_rows(
    node: exp.Expr,
    left: exp.Div,
    operator: str,
    right: exp.Expr,
    sides: tuple[Linear, Linear],
    deviation: Aggregate,
    within: GroupScope,
) -> Having:
    """Return a comparison of a mean's distance from the mean of all rows, over their deviation, with a number.

    Raise KH204 if it holds for a distance of 0, as of rows that are all equal.
    """
    said, (above, below) = read_linear(right, within), sides
    if said is None:
        return UNKNOWN
    rises = operator in (">", ">=")
    is_away = rises or operator in ("<", "<=")
    is_plain = not said.summands and said.key_numbers is None
    is_away = is_away and is_plain and (said.constant > 0 if rises else said.constant < 0)
    if not is_away or not _is_distance_from_mean(above, deviation, within):
        raise _refuse(
            left,
            detail="Where all rows are equal, nothing can be divided by their standard deviation.",
            hint="Multiply out: avg(x) > (SELECT avg(x) + 2 * stddev(x) FROM t).",
        )
    return compare_with_zero(above.add(below, -said.constant), operator, node, find_position(left), within)


def _find_deviation_of_rows(divisor: Linear) -> Aggregate | None:
    """Return the standard deviation of rows that a divisor is a positive multiple of. Return None for others."""
    if len(divisor.summands) != 1 or divisor.constant or divisor.key_numbers is not None:
        return None
    ((found, factor),) = divisor.summands
    is_positive = factor > 0 and divisor.null_value is None
    return found if isinstance(found.row_statistic, Deviation) and is_positive else None


def _is_distance_from_mean(one: Linear, deviation: Aggregate, within: GroupScope) -> bool:
    """Return True for a multiple of a group's own mean less the mean of the rows of a deviation."""
    if len(one.summands) != 2 or one.constant or one.key_numbers is not None or one.null_value is not None:
        return False
    (own, times), (mean, taken_off) = sorted(one.summands, key=lambda summand: summand[0].cells != OWN_GROUP_ALONE)
    return (
        own.cells == OWN_GROUP_ALONE
        and times == -taken_off
        and mean.cells == deviation.cells
        and identify_sum(own.summands) == identify_sum(mean.summands) == identify_sum(deviation.summands)
        and bool(own.divisor)
        and bool(mean.divisor)
        and have_same_rows(own.divisor, mean.divisor, within)
        and have_same_rows(mean.divisor, deviation.divisor, within)
    )


def _leave_out_single_groups(cells: KeyCells, within: GroupScope) -> KeyCells:
    """Return cells that read no group where there is one alone: its deviation is 0, so that the score has no value."""
    beside = prod(len(values) for name, values in within.key_values if name in cells.summed_keys)
    return replace(cells, used_places=tuple(taken if beside * len(taken) > 1 else () for taken in cells.used_places))


def _find_deviation(divisor: Linear) -> Deviation | None:
    """Return the standard deviation of groups that a divisor is a multiple of. Return None for others."""
    if len(divisor.summands) != 1 or divisor.constant or divisor.key_numbers is not None:
        return None
    ((found, factor),) = divisor.summands
    read = found.cells.statistic
    return read if isinstance(read, Deviation) and factor > 0 and divisor.null_value is None else None


def _vanishes_if_equal(one: Linear, divisor: Linear, within: GroupScope) -> bool:
    """Return True if a sum is a multiple of a group's own size less the mean of the groups of the deviation."""
    if len(one.summands) != 2 or one.constant or one.key_numbers is not None or one.null_value is not None:
        return False
    (own, times), (mean, taken_off) = sorted(one.summands, key=lambda summand: summand[0].cells != OWN_GROUP_ALONE)
    ((spread, _),) = divisor.summands
    return (
        own.cells == OWN_GROUP_ALONE
        and times == -taken_off
        and len({found.measure for found in (own, mean, spread)}) == 1
        and not (own.divisor or mean.divisor)
        and identify_sum(own.summands) == identify_sum(spread.summands) == identify_sum(_add_up(mean, within))
        and _has_same_groups(mean, spread)
    )


def _add_up(mean: Aggregate, within: GroupScope) -> tuple[SumPart, ...]:
    """Return the parts of the sum that the mean of groups is that of."""
    groups = prod(len(values) for name, values in within.key_values if name in mean.cells.summed_keys)
    return tuple(part.multiply(Fraction(groups * max(1, mean.cells.most_places))) for part in mean.summands)


def _has_same_groups(mean: Aggregate, spread: Aggregate) -> bool:
    """Return True if a mean and a deviation are of the same groups, a group's own among them."""
    one, other = mean.cells, spread.cells
    if (
        (one.summed_keys, one.key) != (other.summed_keys, other.key)
        or one.statistic is not None
        or one.empty_value is not None
    ):
        return False
    return (other.key is None or bool(one.most_places)) and all(
        not taken or (place in taken and taken == one.used_places[place])
        for place, taken in enumerate(other.used_places)
    )


def _refuse(left: exp.Div, *, detail: str, hint: str) -> KeyholeError:
    return KeyholeError(
        "KH204",
        f"{write_short(left)} is no standard score with a value in every group",
        detail=detail,
        hint=hint,
        position=find_position(left),
    )
