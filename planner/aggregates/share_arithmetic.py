"""Shares, `x / total`, within sums and multiples of constants and within rounding, as the shares themselves.

s / before - 1 > 0.25                   s / before > 1.25
round(100.0 * s / total, 1) >= 20       100.0 * s / total >= 19.95
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from planner.aggregates.aggregate import GroupScope, contains_aggregate
from planner.aggregates.arithmetic import find_cast_arithmetic, read_linear
from planner.aggregates.cell_windows import reads_groups
from planner.aggregates.comparison import Having
from planner.aggregates.rounded_comparison import compare_edges, find_edge, read_places
from planner.aggregates.row_expression import Arithmetic
from planner.parser.tree import is_number, strip_parentheses
from planner.scope.name_resolution import find_numeric_scale
from planner.values.constant import NotConstant, Number
from planner.values.expressions import fold_constant
from planner.values.operators import FLIPPED_OPERATORS

_ROUNDINGS = (exp.Round, exp.Floor, exp.Ceil, exp.Trunc)
_MOST_STEPS = 8  # constants around a share


def find_divisor(node: exp.Div) -> exp.Expr:
    """Return what a quotient divides by, within NULLIF(it, 0), which leaves groups out where it is 0."""
    below = strip_parentheses(node.expression)
    is_tested = isinstance(below, exp.Nullif) and is_number(strip_parentheses(below.expression), 0)
    return strip_parentheses(below.this) if is_tested else below


def divides_by_groups(node: exp.Expr) -> bool:
    """Return True for a quotient whose divisor is a window over groups, cast or not."""
    if not isinstance(node, exp.Div):
        return False
    below = find_divisor(node)
    return reads_groups(below.this if isinstance(below, exp.Cast) else below)


def unwrap_share(
    left: exp.Expr, operator: str, right: exp.Expr, within: GroupScope
) -> tuple[exp.Div, str, exp.Expr] | None:
    """Return a comparison of sums and multiples of a share with a constant as that of the share.

    Return None if there is none, or if there are constants around a quotient of integers or doubles.
    """
    node, steps = strip_parentheses(left), 0
    multiples: list[exp.Expr] = []
    while not divides_by_groups(node):
        steps += 1
        if isinstance(node, exp.Cast) and _is_plain_numeric(node):
            node = strip_parentheses(node.this)
            continue
        if not isinstance(node, exp.Add | exp.Sub | exp.Mul) or contains_aggregate(right) or steps > _MOST_STEPS:
            return None
        one, other = strip_parentheses(node.this), strip_parentheses(node.expression)
        is_behind = not contains_aggregate(one)
        share, constant = (other, one) if is_behind else (one, other)
        if _fold_number(constant, within) is None:
            return None
        said, moved = exp.Paren(this=right.copy()), _multiply([*multiples, constant])
        if isinstance(node, exp.Mul):
            multiples.append(constant)
        elif isinstance(node, exp.Add):
            right = exp.Sub(this=said, expression=moved)
        elif is_behind:
            right, operator = exp.Sub(this=moved, expression=said), FLIPPED_OPERATORS[operator]
        else:
            right = exp.Add(this=said, expression=moved)
        node = share
    assert isinstance(node, exp.Div)
    if not steps:
        return node, operator, right
    if _find_arithmetic(node, within) is not Arithmetic.EXACT:
        return None
    if multiples:
        above = _multiply([*multiples, node.this])
        node = exp.Div(this=exp.Paren(this=above), expression=node.expression.copy(), typed=False, safe=False)
    return node, operator, right


def _is_plain_numeric(node: exp.Cast) -> bool:
    """Return True for a cast to numeric that keeps all digits."""
    return find_cast_arithmetic(node) is Arithmetic.EXACT and find_numeric_scale(node) is None


def _multiply(factors: Sequence[exp.Expr]) -> exp.Expr:
    first, *others = (exp.Paren(this=one.copy()) for one in factors)
    product: exp.Expr = first
    for one in others:
        product = exp.Mul(this=product, expression=one)
    return product


def compare_rounded_share(
    left: exp.Expr,
    operator: str,
    right: exp.Expr,
    within: GroupScope,
    compare: Callable[[exp.Expr, str, exp.Expr], Having],
) -> Having | None:
    """Compare a rounded share with a number, by the edges of the steps that qualify.

    Return None for anything else, and if it is rounded as a double.

    Parameters:
        compare: reads a comparison of what is rounded.
    """
    if not isinstance(left, _ROUNDINGS) or contains_aggregate(right):
        return None
    share = unwrap_share(left.this, ">", exp.Literal.number(0), within)
    threshold, places = _fold_number(right, within), read_places(left, within)
    if share is None or threshold is None or places is None:
        return None
    if _find_arithmetic(share[0], within) is not Arithmetic.EXACT:
        return None

    def side(of: str) -> Having:
        edge, found = find_edge(left, of, threshold * Fraction(10) ** places)
        written = f"{Decimal(int(2 * abs(edge)) * 5).scaleb(-places - 1):f}"  # edges are whole or half steps
        literal: exp.Expr = exp.Literal.number(written)
        return compare(left.this, found, exp.Neg(this=literal) if edge < 0 else literal)

    return compare_edges(operator, side)


def _find_arithmetic(share: exp.Div, within: GroupScope) -> Arithmetic | None:
    """Return the arithmetic in which PostgreSQL divides. Return None for what is no sum."""
    part, whole = read_linear(share.this, within), read_linear(find_divisor(share), within)
    return None if part is None or whole is None else max(part.arithmetic, whole.arithmetic)


def _fold_number(node: exp.Expr, within: GroupScope) -> Fraction | None:
    try:
        value = fold_constant(node, within.constants)
    except NotConstant:
        return None
    return value.value if isinstance(value, Number) else None
