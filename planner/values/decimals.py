"""Exact fractions as decimals for people."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, floor, log


def convert_to_decimal(value: Fraction) -> Decimal:
    """Return the fraction as a decimal for people: exact if it terminates, else to 12 digits."""
    exact = convert_to_exact_decimal(value)
    if exact is not None and len(exact.as_tuple().digits) <= 30:
        return exact
    with localcontext() as context:
        context.prec = 12
        return Decimal(value.numerator) / Decimal(value.denominator)


def convert_to_exact_decimal(value: Fraction) -> Decimal | None:
    """Return the fraction as an exact decimal. Return None if its digits never end."""
    denominator, twos, fives = value.denominator, 0, 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    if denominator != 1:
        return None
    scale = max(twos, fives)
    digits = value.numerator * 10**scale // value.denominator
    return Decimal(f"{digits}E-{scale}") if scale else Decimal(digits)


def round_up_to_two_digits(value: Fraction) -> Fraction:
    """Return the number rounded up to two significant digits."""
    if not value:
        return value
    step = Fraction(10) ** (floor(log(value, 10)) - 1)
    return ceil(value / step) * step
