"""The value that keys are ranked by: a sum over rows or their mean, compared with 0."""

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from planner.aggregates.aggregate import GroupScope, contains_aggregate
from planner.aggregates.arithmetic import Linear, linear, same_rows
from planner.aggregates.comparison import Comparison
from planner.aggregates.having_refusals import not_ranked
from planner.aggregates.intervals import length_in_seconds
from planner.aggregates.linear_comparison import compare_with_zero
from planner.aggregates.row_expression import Part
from planner.errors import KeyholeError
from planner.parser.tree import contains_type, find_position, strip_parentheses
from planner.question.condition_text import canonical

_ROUNDED = (exp.Round, exp.Floor, exp.Ceil, exp.Trunc)
_ROUNDING_TYPES = (
    exp.DataType.Type.DECIMAL,
    exp.DataType.Type.SMALLINT,
    exp.DataType.Type.INT,
    exp.DataType.Type.BIGINT,
    exp.DataType.Type.FLOAT,
)


def ranked_value(node: exp.Expr, within: GroupScope) -> Comparison:
    """Return the expression, except for added constants, as `sum > 0` if it rises with that sum, else as `sum < 0`.

    A mean or a share of rows is one divided by their number. Rounding is left out: it keeps the order.

    Raises KH204 for what is neither: ratios of sums, values picked by rank, numbers of keys, constants.
    """
    node = _without_rounding(node, within)
    try:
        return _read(node, within)
    except KeyholeError as error:
        if error.code == "KH204" and not contains_type(node, exp.Div):  # a division of integers is told what to write
            raise not_ranked(node) from None
        raise


def _without_rounding(node: exp.Expr, within: GroupScope) -> exp.Expr:
    """Strip roundings to whole numbers or places, and casts to types that round."""
    inner = strip_parentheses(node)
    if isinstance(inner, _ROUNDED) and contains_aggregate(inner.this):
        places = inner.args.get("decimals")
        if places is None or not contains_type(places, exp.Column, exp.Placeholder, exp.Parameter):
            return _without_rounding(inner.this, within)
    if isinstance(inner, exp.Cast) and inner.to.this in _ROUNDING_TYPES and contains_aggregate(inner.this):
        return _without_rounding(inner.this, within)
    return node


def _read(node: exp.Expr, within: GroupScope) -> Comparison:
    found = linear(length_in_seconds(node, within), within)
    if found is None or not found.summands or found.own is not None:
        raise not_ranked(node)
    if any(one.by_units for one, _ in found.summands):
        return _divide_by_units(found, node, within)
    mean = any(one.per for one, _ in found.summands)
    if mean and not all(len(one.per) == 1 and not one.per[0].power and not one.by_units for one, _ in found.summands):
        raise not_ranked(node)
    if not mean and found.missing is not None and found.missing != found.constant:
        raise not_ranked(node)
    bare_sum = replace(found, constant=Fraction(0), missing=None)
    made = compare_with_zero(bare_sum, ">", node, find_position(node), within)
    if not isinstance(made, Comparison) or made.against is not None or made.cell_sums:
        raise not_ranked(node)
    return made


def _divide_by_units(found: Linear, node: exp.Expr, within: GroupScope) -> Comparison:
    """Compare the dividend of a ratio by privacy units with 0; the units are what the mean is `over`. Raise KH204."""
    base = found.summands[0][0].per
    if len(base) != 1 or not all(one.by_units and same_rows(base, one.per, within) for one, _ in found.summands):
        raise not_ranked(node)
    above = tuple((replace(one, per=(), by_units=False), factor) for one, factor in found.summands)
    bare_sum = replace(found, summands=above, constant=Fraction(0), missing=None)
    made = compare_with_zero(bare_sum, ">", node, find_position(node), within)
    wanted = _list_conjuncts(base[0])
    every_row = [wanted <= _list_conjuncts(part) for part in made.parts] if isinstance(made, Comparison) else [False]
    if not isinstance(made, Comparison) or made.against is not None or made.off_each_unit or not all(every_row):
        raise not_ranked(node)  # rows that are divided by no unit
    return replace(made, over=replace(base[0], coefficient=Fraction(1)), by_units=True)


def _list_conjuncts(part: Part) -> frozenset[str]:
    return frozenset(map(canonical, part.condition.conjuncts()))
