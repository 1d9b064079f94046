"""Arithmetic of exact numbers as in PostgreSQL: operators, quotients that it rounds, FLOOR and CEIL."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from planner.parser.tree import write_short
from planner.scope.key_values import NotExact, TypedValue, make_exact_number, read_fraction, unify

_OF_DOUBLES: dict[type[exp.Expr], Callable[[float, float], float]] = {
    exp.Add: float.__add__,
    exp.Sub: float.__sub__,
    exp.Mul: float.__mul__,
    exp.Div: float.__truediv__,
}
_ROUNDED_BELOW = 10_000  # quotients below this keep 16 decimals, however their operands are written
_SMALLEST_DOUBLE, _LARGEST_DOUBLE = 1e-290, 1e290  # between which no operator rounds to 0 or overflows
_MOST_WRITTEN = 16  # decimals that all literals beside a rounded quotient have together


def compute(operation: type[exp.Expr], left: TypedValue, right: TypedValue, node: exp.Expr) -> TypedValue:
    """Return the result of an arithmetic operator on two numbers. Raise `NotExact` if the exact result is not known."""
    if "quotient" in (left.kind, right.kind):
        return _add_to_quotient(operation, left, right, node)
    left, right = unify([left, right], node)
    a, b = read_fraction(left, node), read_fraction(right, node)
    kind = left.kind
    if a is None or b is None:
        return TypedValue(kind, None)
    if kind == "double":
        return _compute_double(operation, float(a), float(b), node)
    if operation is exp.Mod:
        quotient = a / b
        return make_exact_number(a - b * (floor(quotient) if quotient >= 0 else ceil(quotient)), kind, node)
    if operation is exp.Div:
        if kind != "integer":
            return _divide(a, b, node)
        return make_exact_number(Fraction(floor(a / b) if a / b >= 0 else ceil(a / b)), kind, node)
    return make_exact_number(a + b if operation is exp.Add else a - b if operation is exp.Sub else a * b, kind, node)


def _compute_double(operation: type[exp.Expr], left: float, right: float, node: exp.Expr) -> TypedValue:
    """Return the result of an operator on doubles, bit by bit as PostgreSQL computes it. Raise `NotExact`."""
    found = _OF_DOUBLES[operation](left, right) if operation in _OF_DOUBLES else None
    if found is None or (found and not _SMALLEST_DOUBLE < abs(found) < _LARGEST_DOUBLE):
        raise NotExact(write_short(node))
    return TypedValue("double", Fraction(found))


def _divide(dividend: Fraction, divisor: Fraction, node: exp.Expr) -> TypedValue:
    """Return a numeric quotient.

    It is a number if PostgreSQL computes all its digits, else only dividend and divisor.
    """
    found = make_exact_number(dividend / divisor, "numeric", node)
    assert isinstance(found.raw, Fraction)
    decimals = next((places for places in range(17) if (found.raw * 10**places).denominator == 1), None)
    if decimals is not None and decimals <= _count_kept_decimals(found.raw):
        return found
    literals = [one for one in node.find_all(exp.Literal) if not one.is_string]
    nested = any(one is not node for one in node.find_all(exp.Div))
    if nested or abs(found.raw) >= _ROUNDED_BELOW or sum(map(_count_decimals, literals)) > _MOST_WRITTEN:
        raise NotExact(write_short(node))
    return TypedValue("quotient", (dividend, divisor))


def _add_to_quotient(operation: type[exp.Expr], left: TypedValue, right: TypedValue, node: exp.Expr) -> TypedValue:
    """Return a rounded quotient with a whole number added or subtracted."""
    if operation is exp.Add and left.kind != "quotient":
        left, right = right, left
    by = read_fraction(right, node) if right.kind in ("integer", "whole") else None
    if left.kind != "quotient" or by is None or operation not in (exp.Add, exp.Sub) or not isinstance(left.raw, tuple):
        raise NotExact(write_short(node))
    dividend, divisor, *added = left.raw
    if added or not isinstance(dividend, Fraction) or not isinstance(divisor, Fraction):
        raise NotExact(write_short(node))
    return TypedValue("quotient", (dividend, divisor, by if operation is exp.Add else -by))


def restore_quotient(found: TypedValue) -> TypedValue:
    """Return the exact value of a quotient that PostgreSQL rounds.

    The rounded value is whole only if the exact value is.
    """
    if found.kind != "quotient" or not isinstance(found.raw, tuple):
        return found
    dividend, divisor, *added = found.raw
    assert isinstance(dividend, Fraction)
    assert isinstance(divisor, Fraction)
    return TypedValue("numeric", dividend / divisor + sum(part for part in added if isinstance(part, Fraction)))


def _count_kept_decimals(value: Fraction) -> int:
    """Return the least number of decimals that PostgreSQL's division keeps.

    It is 16 digits, less 4 for each 4 digits before the point.
    """
    return 16 - 4 * ((len(str(floor(abs(value)))) - 1) // 4)


def _count_decimals(literal: exp.Literal) -> int:
    exponent = Decimal(str(literal.this)).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else _MOST_WRITTEN + 1


def round_to_whole_number(node: exp.Expr, found: TypedValue) -> TypedValue:
    """Return FLOOR or CEIL of a number. Raise `NotExact` if the exact number is not known."""
    found = restore_quotient(found)  # no whole number, and farther from one than PostgreSQL rounds
    value = read_fraction(found, node)
    kind = "double" if found.kind in ("integer", "double") else "whole"
    if value is None:
        return TypedValue(kind, None)
    return TypedValue(kind, Fraction(floor(value) if isinstance(node, exp.Floor) else ceil(value)))
