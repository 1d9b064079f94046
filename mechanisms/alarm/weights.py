"""Weights that grow by the same factor with each step of a value: `exp(rate * steps)`, as canonical integers.

Only the first 128 binary digits of a weight are kept, rounded down. So weights rise with their steps, and every machine
computes the same ones. Two weights whose steps differ by `d > 0` have the quotient `exp(rate * d)` to a relative
2**-126.

Proof: docs/proofs/alarm.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil

from mechanisms.certified import bound_exponentials

DIGITS = 128
"""Significant binary digits of a weight."""

ROUNDED = Fraction(1, 1 << 124)
"""At most what rounding of weights adds to a loss, in any regime: eight times a relative 2**-127."""

_WORKING = 224  # bits of what is multiplied: a weight that they do not settle comes once in 2**60
_WRONG = 24  # bits of these that rounding may have spoilt: a dozen products spoil four
_RADIX = 8  # bits of a step that one product takes in: 256 powers kept, against one product for each bit
_BITS_OF_A_NAT = 1.45  # more than 1 / ln 2


def compute_weight(rate: Fraction, steps: int) -> int:
    """Return `exp(rate * steps) * 2**127` rounded down to its first 128 binary digits, exactly.

    Guarantee: the quotient of two weights whose steps differ by `d > 0` lies between `exp(rate * d) * (1 - 2**-127)`
    and `exp(rate * d) * (1 + 2**-126)` (docs/proofs/alarm.md).

    Parameters:
        rate: positive.
        steps: >= 0.

    >>> compute_weight(Fraction(1, 2), 0) == 2**127, compute_weight(Fraction(1, 2), 4) * 1000 // 2**127
    (True, 7389)
    """
    power = _ONE
    for place, digit in enumerate(_split_into_digits(steps)):
        if digit:
            power = power.multiply(_compute_power(rate, digit << (_RADIX * place)))
    # what is known is below the truth, by less than the last bits that may be wrong
    least, most = (value >> (_WORKING - DIGITS) for value in (power.mantissa, power.mantissa + (1 << _WRONG)))
    if least == most or steps == 0:
        return least << power.exponent
    return _compute_certain_weight(rate, steps)


@dataclass(frozen=True, slots=True)
class _Power:
    """`mantissa * 2**(exponent + 1 - _WORKING)`, the mantissa of exactly `_WORKING` bits, rounded down."""

    mantissa: int
    exponent: int

    def multiply(self, other: "_Power") -> "_Power":
        product = self.mantissa * other.mantissa >> (_WORKING - 1)
        carried = product >> _WORKING
        return _Power(mantissa=product >> carried, exponent=self.exponent + other.exponent + carried)


_ONE = _Power(mantissa=1 << (_WORKING - 1), exponent=0)


def _split_into_digits(steps: int) -> list[int]:
    digits = []
    while steps:
        digits.append(steps & ((1 << _RADIX) - 1))
        steps >>= _RADIX
    return digits


@lru_cache(maxsize=1 << 14)
def _compute_power(rate: Fraction, steps: int) -> _Power:
    low, _, exponent = _enclose_power(rate, steps, digits=_WORKING)
    return _Power(mantissa=low, exponent=exponent)


def _compute_certain_weight(rate: Fraction, steps: int) -> int:
    """Return the weight, computed with more and more digits until the kept ones are certain.

    A weight is irrational, so this ends.
    """
    digits = 2 * _WORKING
    while True:
        low, high, exponent = _enclose_power(rate, steps, digits=digits)
        least, most = low >> (digits - DIGITS), high >> (digits - DIGITS)
        if least == most:
            return least << exponent
        digits *= 2


def _enclose_power(rate: Fraction, steps: int, *, digits: int) -> tuple[int, int, int]:
    """Return `low <= exp(rate * steps) * 2**(digits - 1 - exponent) <= high`.

    They differ by one or two, and `low` has exactly `digits` binary digits.
    """
    nats = rate * steps
    precision = 2 * ceil(float(nats) * _BITS_OF_A_NAT) + digits + 64
    ((least, most),) = bound_exponentials(nats, 0, precision)
    shift = 2 * precision
    low, high = (1 << shift) // most, -(-(1 << shift) // least)  # times 2**precision
    exponent = low.bit_length() - 1 - precision
    excess = low.bit_length() - digits
    return low >> excess, (high >> excess) + 1, exponent
