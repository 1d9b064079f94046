"""What keys are ranked by: a sum over rows, as a comparison with 0 says it."""

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from planner.aggregates.aggregate import GroupScope
from planner.aggregates.arithmetic import linear
from planner.aggregates.comparison import Comparison
from planner.aggregates.linear_comparison import compare_with_zero
from planner.aggregates.refusals import not_ranked
from planner.errors import KeyholeError
from planner.parser.tree import contains, position


def ranked_value(node: exp.Expr, within: GroupScope) -> Comparison:
    """The expression but for constants that are added to it, as `sum > 0` where it rises with that sum, and `sum < 0`
    where it falls.

    Raises KH204 for what is no sum over rows: means and ratios, values picked by rank, numbers of keys, constants.
    """
    try:
        return _read(node, within)
    except KeyholeError as error:
        if error.code == "KH204" and not contains(node, exp.Div):  # a division of integers is told what to write
            raise not_ranked(node) from None
        raise


def _read(node: exp.Expr, within: GroupScope) -> Comparison:
    found = linear(node, within)
    if found is None or not found.summands or found.own is not None or any(one.per for one, _ in found.summands):
        raise not_ranked(node)
    if found.missing is not None and found.missing != found.constant:
        raise not_ranked(node)
    bare_sum = replace(found, constant=Fraction(0), missing=None)
    made = compare_with_zero(bare_sum, ">", node, position(node), within)
    assert isinstance(made, Comparison)
    return made
