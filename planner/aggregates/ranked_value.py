"""The value by which keys are ranked: a sum over rows or a mean, compared with 0."""

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from planner.aggregates.aggregate import GroupScope, contains_aggregate
from planner.aggregates.arithmetic import Linear, have_same_rows, read_linear
from planner.aggregates.comparison import Comparison
from planner.aggregates.having_refusals import refuse_ranking, refuse_ranking_by_growth
from planner.aggregates.intervals import convert_to_seconds
from planner.aggregates.linear_comparison import compare_with_zero
from planner.aggregates.row_expression import SumPart
from planner.errors import KeyholeError
from planner.parser.tree import contains_type, find_position, strip_parentheses
from planner.question.condition_text import write_canonical

_ROUNDED = (exp.Round, exp.Floor, exp.Ceil, exp.Trunc)
_ROUNDING_TYPES = (
    exp.DataType.Type.DECIMAL,
    exp.DataType.Type.SMALLINT,
    exp.DataType.Type.INT,
    exp.DataType.Type.BIGINT,
    exp.DataType.Type.FLOAT,
)


def read_ranked_value(node: exp.Expr, within: GroupScope) -> Comparison:
    """Return the measure of a ranking as a comparison with 0.

    It is `sum > 0` if the measure rises with that sum, else `sum < 0`. Constants that are added to the measure are left
    out. A mean or a share of rows is a sum divided by a number of rows. Rounding is left out, because it keeps the
    order. Raise KH204 for other expressions: ratios of sums, values picked by rank, numbers of keys, constants.
    """
    node = _strip_rounding(node, within)
    try:
        return _read(node, within)
    except KeyholeError as error:
        if any(contains_type(one.expression, exp.Window) for one in node.find_all(exp.Div)):
            raise refuse_ranking_by_growth(node) from None
        if error.code == "KH204" and not contains_type(
            node, exp.Div
        ):  # for a division of integers the refusal has a better hint
            raise refuse_ranking(node) from None
        raise


def _strip_rounding(node: exp.Expr, within: GroupScope) -> exp.Expr:
    """Strip roundings to whole numbers or places, and casts to types that round."""
    inner = strip_parentheses(node)
    if isinstance(inner, _ROUNDED) and contains_aggregate(inner.this):
        places = inner.args.get("decimals")
        if places is None or not contains_type(places, exp.Column, exp.Placeholder, exp.Parameter):
            return _strip_rounding(inner.this, within)
    if isinstance(inner, exp.Cast) and inner.to.this in _ROUNDING_TYPES and contains_aggregate(inner.this):
        return _strip_rounding(inner.this, within)
    return node


def _read(node: exp.Expr, within: GroupScope) -> Comparison:
    found = read_linear(convert_to_seconds(node, within), within)
    if found is None or not found.summands or found.key_numbers is not None:
        raise refuse_ranking(node)
    if any(one.divides_by_units for one, _ in found.summands):
        return _divide_by_units(found, node, within)
    mean = any(one.divisor for one, _ in found.summands)
    if mean and not all(
        len(one.divisor) == 1 and not one.divisor[0].power and not one.divides_by_units for one, _ in found.summands
    ):
        raise refuse_ranking(node)
    if not mean and found.null_value is not None and found.null_value != found.constant:
        raise refuse_ranking(node)
    bare_sum = replace(found, constant=Fraction(0), null_value=None)
    made = compare_with_zero(bare_sum, ">", node, find_position(node), within)
    if not isinstance(made, Comparison) or made.other_mean is not None:
        raise refuse_ranking(node)
    if made.may_lack_groups and found.null_value is not None:
        raise refuse_ranking(node)  # a number in the place of NULL
    return made


def _divide_by_units(found: Linear, node: exp.Expr, within: GroupScope) -> Comparison:
    """Compare the dividend of a ratio by privacy units with 0. The units are its `divisor_rows`.

    Raise KH204 if Keyhole cannot rank the ratio.
    """
    base = found.summands[0][0].divisor
    if len(base) != 1 or not all(
        one.divides_by_units and have_same_rows(base, one.divisor, within) for one, _ in found.summands
    ):
        raise refuse_ranking(node)
    above = tuple((replace(one, divisor=(), divides_by_units=False), factor) for one, factor in found.summands)
    bare_sum = replace(found, summands=above, constant=Fraction(0), null_value=None)
    made = compare_with_zero(bare_sum, ">", node, find_position(node), within)
    wanted = _list_conjuncts(base[0])
    every_row = [wanted <= _list_conjuncts(part) for part in made.summands] if isinstance(made, Comparison) else [False]
    if not isinstance(made, Comparison) or made.other_mean is not None or made.unit_deduction or not all(every_row):
        raise refuse_ranking(node)  # rows that are divided by no unit
    return replace(made, divisor_rows=replace(base[0], coefficient=Fraction(1)), divides_by_units=True)


def _list_conjuncts(part: SumPart) -> frozenset[str]:
    return frozenset(map(write_canonical, part.condition.list_conjuncts()))
