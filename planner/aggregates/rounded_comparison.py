"""Comparisons of rounded aggregates, as comparisons with the edges of the steps that qualify.

A quotient of integers is one of them: PostgreSQL truncates it towards 0. `count(a) * 100 / count(*) >= 20` is the same
for the exact quotient, and so is `> 19`; `> -1` means that the exact quotient is above -1.

So are shares, `x / total`, within constants: `s / before - 1 > 0.25` is `s / before > 1.25`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from planner.aggregates.aggregate import GroupScope, contains_aggregate
from planner.aggregates.arithmetic import (
    Linear,
    find_cast_arithmetic,
    read_exact_quotient,
    read_linear,
    refuse_nonlinear,
)
from planner.aggregates.cell_windows import reads_groups
from planner.aggregates.comparison import UNKNOWN, Comparison, Conjunction, Disjunction, Having
from planner.aggregates.computed_measure import find_least_value
from planner.aggregates.having_refusals import write_parenthesised
from planner.aggregates.key_thresholds import is_public
from planner.aggregates.linear_comparison import compare_with_zero
from planner.aggregates.order_statistics import compare_pick, is_pick
from planner.aggregates.row_expression import Arithmetic
from planner.catalog.catalog import Column
from planner.errors import KeyholeError
from planner.parser.tree import find_position, is_number, strip_parentheses, write_node, write_short
from planner.scope.name_resolution import find_numeric_scale
from planner.values.constant import NotConstant, Number, Untyped, read_number
from planner.values.expressions import fold_constant
from planner.values.operators import FLIPPED_OPERATORS

_ROUNDINGS = (exp.Round, exp.Floor, exp.Ceil, exp.Trunc)
_TRUNCATED = exp.Trunc()
_MOST_STEPS = 8  # constants around a share
_FINEST = 30  # decimals of ROUND, either way: beyond every grid and bound that a policy can declare


def compare_rounded_aggregate(
    left: exp.Round | exp.Floor | exp.Ceil | exp.Trunc, operator: str, right: exp.Expr, within: GroupScope
) -> Having:
    """Compare a rounded aggregate with a constant, by the edges of the steps that qualify.

    Raise KH204 for a rounding that has no exact steps.
    """
    inner, threshold = read_linear(left.this, within), read_linear(right, within)
    if inner is None or threshold is None:
        return UNKNOWN
    places = _read_decimal_places(left, within)
    own = threshold.key_numbers or inner.key_numbers
    if threshold.summands or own is not None or inner.null_value is not None or places is None:
        raise refuse_nonlinear(left, within)
    if isinstance(left, exp.Round) and inner.arithmetic is Arithmetic.FLOATING:
        raise KeyholeError(
            "KH204",
            f"{write_short(left)} rounds a double, where halves go to even numbers",
            hint=f"Compare {write_node(left.this)} itself, or round({write_node(left.this)}::numeric, 2).",
            position=find_position(left),
        )
    step = Fraction(1, 10**places) if places >= 0 else Fraction(10**-places)
    at = find_position(left)

    def compare_edge(of: str) -> Having:
        edge, found = _find_edge(left, of, threshold.constant / step)
        return compare_with_zero(
            inner.add(Linear((), edge * step, Arithmetic.EXACT), Fraction(-1)), found, left, at, within
        )

    return _compare_edges(operator, compare_edge)


def compare_rounded_value(left: exp.Expr, operator: str, right: exp.Expr, within: GroupScope) -> Having | None:
    """Compare a rounded max, min or percentile with a constant.

    Return None for anything else, and if it is rounded as a double.
    """
    if not isinstance(left, exp.Round | exp.Floor | exp.Ceil | exp.Trunc):
        return None
    picked = strip_parentheses(left.this)
    is_exact = isinstance(picked, exp.Cast) and find_cast_arithmetic(picked) is Arithmetic.EXACT
    picked = strip_parentheses(picked.this) if is_exact else picked
    places, at = _read_decimal_places(left, within), _fold_constant(right, within)
    if places is None or at is None or not is_pick(picked):
        return None
    if not is_exact and isinstance(left, exp.Round) and left.args.get("decimals") is None:
        return None

    def compare_edge(of: str) -> Having:
        edge, found = _find_edge(left, of, at * Fraction(10) ** places)
        written = f"{Decimal(int(2 * abs(edge)) * 5).scaleb(-places - 1):f}"  # edges are whole or half steps
        literal: exp.Expr = exp.Literal.number(written)
        return compare_pick(picked, found, exp.Neg(this=literal) if edge < 0 else literal, within)

    return _compare_edges(operator, compare_edge)


def _compare_edges(operator: str, side: Callable[[str], Having]) -> Having:
    """Return the comparison as one or two comparisons with an edge each."""
    if operator == "=":
        return Conjunction((side(">="), side("<=")))
    if operator == "<>":
        return Disjunction((side(">"), side("<")))
    return side(operator)


@dataclass(frozen=True, slots=True)
class _TruncatedQuotient:
    """`factor` times a quotient of integers, which PostgreSQL truncates.

    `quotient` is the quotient with its remainder.
    """

    quotient: Linear
    factor: Fraction


def compare_integer_quotient(left: exp.Expr, operator: str, right: exp.Expr, within: GroupScope) -> Having | None:
    """Compare an integer quotient, whose remainder SQL drops, with a constant.

    Return None for any other comparison.
    """
    if not any(True for _ in left.find_all(exp.Div)) or is_public(left, within):
        return None
    found, threshold = _read_integer_quotient(left, within), read_linear(right, within)
    if (
        found is None
        or not found.factor
        or threshold is None
        or threshold.summands
        or threshold.key_numbers is not None
    ):
        return None
    operator = operator if found.factor > 0 else FLIPPED_OPERATORS[operator]
    at = threshold.constant / found.factor
    divided = next(node for node in left.find_all(exp.Div) if not is_public(node, within))
    warning = (
        f"{write_short(divided)} divides integers, which drops the remainder as PostgreSQL does; "
        f"1.0 * {write_parenthesised(divided.this)} keeps it"
    )

    def compare_edge(of: str) -> Having:
        edge, compared = _find_edge(_TRUNCATED, of, at)
        difference = found.quotient.add(Linear((), edge, Arithmetic.EXACT), Fraction(-1))
        made = compare_with_zero(difference, compared, left, find_position(left), within)
        return replace(made, warnings=(*made.warnings, warning)) if isinstance(made, Comparison) else made

    return _compare_edges(operator, compare_edge)


def compare_with_integer_quotient(
    left: exp.Expr, operator: str, right: exp.Expr, node: exp.Expr, within: GroupScope
) -> Having | None:
    """Compare a sum of whole numbers with a sum divided by a whole number, `count(a) > count(*) / 2`.

    For whole A, `A > floor(q)` is `A > q`, and `A >= floor(q)` is `A > q - 1`. Return None for other comparisons.
    """
    if not isinstance(strip_parentheses(right), exp.Div):
        left, operator, right = right, FLIPPED_OPERATORS[operator], left
    divided = strip_parentheses(right)
    if not isinstance(divided, exp.Div) or (_fold_constant(divided.expression, within) or 0) <= 0:
        return None
    quotient, whole = read_exact_quotient(divided, within), read_linear(left, within)
    if quotient is None or whole is None or not whole.summands:
        return None
    if any(one.arithmetic is not Arithmetic.INTEGER or one.key_numbers or one.null_value for one in (quotient, whole)):
        return None
    if not _is_never_negative(quotient):
        return None
    difference = replace(whole, arithmetic=Arithmetic.EXACT).add(
        replace(quotient, arithmetic=Arithmetic.EXACT), Fraction(-1)
    )

    def compare_edge(of: str) -> Having:
        edge, compared = {">": (0, ">"), ">=": (-1, ">"), "<": (-1, "<="), "<=": (0, "<=")}[of]
        moved = difference.add(Linear((), Fraction(edge), Arithmetic.EXACT), Fraction(-1))
        return compare_with_zero(moved, compared, node, find_position(left), within)

    return _compare_edges(operator, compare_edge)


def _is_never_negative(found: Linear) -> bool:
    """Return True for a sum of counts and sums of columns, divided by a positive number, that is never negative."""
    return found.constant >= 0 and all(
        coefficient > 0
        and not one.divisor
        and all(
            part.coefficient >= 0 and (not part.power or part.column is None or _find_least_value(part.column) >= 0)
            for part in one.summands
        )
        for one, coefficient in found.summands
    )


def _find_least_value(column: Column) -> Fraction:
    """Return the least value of a column, or a number below 0 if none is known."""
    least = find_least_value(column)
    return Fraction(-1) if least is None else least


def _read_integer_quotient(node: exp.Expr, within: GroupScope) -> _TruncatedQuotient | None:
    """Return the expression as a multiple of one quotient of integers. Return None if it is none."""
    node = strip_parentheses(node)
    match node:
        case exp.Div() if not is_public(node.expression, within):
            found = read_exact_quotient(node, within)
            whole = found is not None and found.arithmetic is Arithmetic.INTEGER and bool(found.summands)
            if found is not None and whole and found.key_numbers is None and found.null_value is None:
                return _TruncatedQuotient(replace(found, arithmetic=Arithmetic.EXACT), Fraction(1))
        case exp.Neg():
            inner = _read_integer_quotient(node.this, within)
            return inner and replace(inner, factor=-inner.factor)
        case exp.Cast() if find_cast_arithmetic(node) is not None:
            return _read_integer_quotient(node.this, within)
        case exp.Round() | exp.Floor() | exp.Ceil() if node.args.get("decimals") is None:
            inner = _read_integer_quotient(node.this, within)
            return inner if inner is not None and inner.factor.denominator == 1 else None
        case exp.Mul():
            for one, other in ((node.this, node.expression), (node.expression, node.this)):
                number = _fold_constant(other, within)
                inner = None if number is None else _read_integer_quotient(one, within)
                if inner is not None and number is not None:
                    return replace(inner, factor=inner.factor * number)
        case _:
            pass
    return None


def _fold_constant(node: exp.Expr, within: GroupScope) -> Fraction | None:
    try:
        value = fold_constant(node, within.constants)
    except NotConstant:
        return None
    return value.value if isinstance(value, Number) else None


def _read_decimal_places(left: exp.Round | exp.Floor | exp.Ceil | exp.Trunc, within: GroupScope) -> int | None:
    """Return the number of decimals in a rounding. Return None if it is not a whole number, or very large."""
    decimals = left.args.get("decimals")
    if decimals is None:
        return 0
    value = fold_constant(decimals, within.constants)
    if isinstance(value, Untyped):
        value = read_number(value.text, decimals)
    if not isinstance(value, Number) or not value.is_integral or abs(value.value) > _FINEST:
        return None
    return int(value.value)


def _find_edge(left: exp.Expr, operator: str, threshold: Fraction) -> tuple[Fraction, str]:
    """Return the edge and the operator that the value, in steps, must satisfy for its rounding to compare as asked.

    Rounding grows with the value, so `rounded >= n` starts at the least value that rounds to the whole number n.
    """
    least = ceil(threshold) if operator in (">=", "<") else floor(threshold) + 1
    above = operator in (">", ">=")  # `rounded <= n` and `rounded < n` are the negations of `rounded >= least`
    match left:
        case exp.Floor():
            edge, included = Fraction(least), True
        case exp.Trunc():
            edge, included = (Fraction(least), True) if least > 0 else (Fraction(least - 1), False)
        case exp.Ceil():
            edge, included = Fraction(least - 1), False
        case _:  # halves away from zero
            edge, included = least - Fraction(1, 2), least > 0
    if above:
        return edge, ">=" if included else ">"
    return edge, "<" if included else "<="


def find_divisor(node: exp.Div) -> exp.Expr:
    """Return the divisor of a quotient. For `NULLIF(x, 0)`, which is NULL where x is 0, return x."""
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
    """Solve a comparison such as `100 * share + 1 > c` for the share: return the share, the operator and a constant.

    Return None if the left side has no share, or has further constants and divides integers or doubles.
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
        if _fold_constant(constant, within) is None:
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
        compare: reads a comparison of the share before rounding.
    """
    if not isinstance(left, _ROUNDINGS) or contains_aggregate(right):
        return None
    share = unwrap_share(left.this, ">", exp.Literal.number(0), within)
    threshold, places = _fold_constant(right, within), _read_decimal_places(left, within)
    if share is None or threshold is None or places is None:
        return None
    if _find_arithmetic(share[0], within) is not Arithmetic.EXACT:
        return None

    def compare_edge(of: str) -> Having:
        edge, found = _find_edge(left, of, threshold * Fraction(10) ** places)
        written = f"{Decimal(int(2 * abs(edge)) * 5).scaleb(-places - 1):f}"  # edges are whole or half steps
        literal: exp.Expr = exp.Literal.number(written)
        return compare(left.this, found, exp.Neg(this=literal) if edge < 0 else literal)

    return _compare_edges(operator, compare_edge)


def _find_arithmetic(share: exp.Div, within: GroupScope) -> Arithmetic | None:
    """Return the arithmetic in which PostgreSQL divides. Return None for what is no sum."""
    part, whole = read_linear(share.this, within), read_linear(find_divisor(share), within)
    return None if part is None or whole is None else max(part.arithmetic, whole.arithmetic)
