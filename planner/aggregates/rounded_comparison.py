"""Comparisons of rounded aggregates, as comparisons with the edges of the steps that qualify."""

from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from planner.aggregates.aggregate import GroupScope
from planner.aggregates.arithmetic import Linear, linear, not_linear
from planner.aggregates.comparison import FAILS, Every, Having, Some
from planner.aggregates.linear_comparison import compare_with_zero
from planner.aggregates.row_expression import Arithmetic
from planner.errors import KeyholeError
from planner.parser.tree import position, write_node
from planner.values.expressions import fold
from planner.values.model import Number, Untyped, number

_FINEST = 30  # decimals of ROUND, either way: beyond every grid and bound that a policy can declare


def rounded_comparison(
    left: exp.Round | exp.Floor | exp.Ceil, operator: str, right: exp.Expr, within: GroupScope
) -> Having:
    """A rounded aggregate against a constant: against the edges of the steps that qualify. Raises KH204."""
    inner, threshold = linear(left.this, within), linear(right, within)
    if inner is None or threshold is None:
        return FAILS
    places = _places(left, within)
    own = threshold.own or inner.own
    if threshold.summands or own is not None or inner.missing is not None or places is None:
        raise not_linear(left, within)
    if isinstance(left, exp.Round) and inner.arithmetic is Arithmetic.FLOATING:
        raise KeyholeError(
            "KH204",
            f"{write_node(left)[:80]} rounds a double, where halves go to even numbers",
            hint=f"Compare {write_node(left.this)[:80]} itself, or round({write_node(left.this)[:60]}::numeric, 2).",
            position=position(left),
        )
    step = Fraction(1, 10**places) if places >= 0 else Fraction(10**-places)
    at = position(left)

    def side(of: str) -> Having:
        edge, found = _edge(left, of, threshold.constant / step)
        return compare_with_zero(
            inner.plus(Linear((), edge * step, Arithmetic.EXACT), Fraction(-1)), found, left, at, within
        )

    if operator == "=":
        return Every((side(">="), side("<=")))
    if operator == "<>":
        return Some((side(">"), side("<")))
    return side(operator)


def _places(left: exp.Round | exp.Floor | exp.Ceil, within: GroupScope) -> int | None:
    decimals = left.args.get("decimals")
    if decimals is None:
        return 0
    value = fold(decimals, within.given)
    if isinstance(value, Untyped):
        value = number(value.text, decimals)
    if not isinstance(value, Number) or not value.integral or abs(value.value) > _FINEST:
        return None
    return int(value.value)


def _edge(left: exp.Expr, operator: str, threshold: Fraction) -> tuple[Fraction, str]:
    """Where the value, in steps, must lie for its rounding to compare so: an edge and an operator.

    Rounding grows with the value, so `rounded >= n` starts at the least value that rounds to the whole number n.
    """
    least = ceil(threshold) if operator in (">=", "<") else floor(threshold) + 1
    above = operator in (">", ">=")  # `rounded <= n` and `rounded < n` are the negations of `rounded >= least`
    match left:
        case exp.Floor():
            edge, included = Fraction(least), True
        case exp.Ceil():
            edge, included = Fraction(least - 1), False
        case _:  # halves away from zero
            edge, included = least - Fraction(1, 2), least > 0
    if above:
        return edge, ">=" if included else ">"
    return edge, "<" if included else "<="
