"""Probabilities to any number of digits, and the digits of a geometric variable."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from mechanisms.certified import bound_exponentials, make_exponential, make_logistic, make_rational
from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE
from tests.in_turn import in_turn

RATES = (
    LEAST_RATE,
    Fraction(1, 10**7),
    Fraction(1, 3),
    Fraction(1),
    Fraction(2890371, 10**6),
    Fraction(50),
    GREATEST_RATE,
)


@in_turn("rate", RATES)
def test_prefixes_agree_with_decimal_arithmetic(rate: Fraction) -> None:
    with localcontext() as context:
        context.prec = 120
        value = (-(Decimal(rate.numerator) / Decimal(rate.denominator))).exp()
        for bits in (8, 72, 136, 200):
            scale = Decimal(2) ** bits
            assert make_exponential(rate, doubled=0, most=3).read_prefix(bits) == int(value * scale)
            assert make_logistic(rate, doubled=0, most=0).read_prefix(bits) == int(value / (1 + value) * scale)
            assert make_logistic(rate, doubled=0, most=2, is_doubled=True).read_prefix(bits) == int(
                2 * value / (1 + value) * scale
            )
            squared = value**8
            assert make_logistic(rate, doubled=3, most=3).read_prefix(bits) == int(squared / (1 + squared) * scale)


@in_turn("rate", RATES)
def test_bounds_enclose_and_tighten(rate: Fraction) -> None:
    for precision in (160, 320, 640):
        coarse = bound_exponentials(rate, 4, precision)
        fine = bound_exponentials(rate, 4, 2 * precision)
        for (low, high), (inner_low, inner_high) in zip(coarse, fine, strict=True):
            assert 0 <= high - low <= 2
            assert low << precision <= inner_low <= inner_high <= high << precision


def test_rational_digits_are_exact() -> None:
    for numerator, denominator in itertools.product(range(1, 12), range(11, 14)):
        value = Fraction(numerator, denominator)
        for bits in (1, 8, 72, 300):
            assert make_rational(value).read_prefix(bits) == math.floor(value * 2**bits)
        assert make_rational(value).read_digits(8, 64) == math.floor(value * 2**72) % 2**64
    assert make_rational(Fraction(1)).read_prefix(8) == 256
    with pytest.raises(ValueError, match="lies in"):
        make_rational(Fraction(3, 2))


@pytest.mark.parametrize("decay", [Fraction(1, 3), Fraction(7, 8), Fraction(99, 100)])
def test_independent_digits_make_a_geometric_variable(decay: Fraction) -> None:
    """Exhaustive, in rationals: three digits, two carries, zero coin and sign give the discrete Laplace law."""
    digits = 3
    ones = [decay ** (2**place) / (1 + decay ** (2**place)) for place in range(digits)]
    carry = decay ** (2**digits)
    different = 2 * ones[0]
    for magnitude in range(3 * 2**digits):
        low, rounds = magnitude % 2**digits, magnitude // 2**digits
        probability = carry**rounds * (1 - carry)
        for place, one in enumerate(ones):
            probability *= one if low >> place & 1 else 1 - one
        assert probability == (1 - decay) * decay**magnitude
        assert different * Fraction(1, 2) * probability == (1 - decay) / (1 + decay) * decay ** (magnitude + 1)
    assert 1 - different == (1 - decay) / (1 + decay)
