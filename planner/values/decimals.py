"""Exact fractions as decimals for people."""

from decimal import Decimal, localcontext
from fractions import Fraction

from planner.predicates.column_comparison import terminating


def decimal(value: Fraction) -> Decimal:
    """The fraction as a decimal for people: exact if it ends, else to 12 digits."""
    exact = terminating(value)
    if exact is not None and len(exact.as_tuple().digits) <= 30:
        return exact
    with localcontext() as context:
        context.prec = 12
        return Decimal(value.numerator) / Decimal(value.denominator)
