"""Probabilities known to any number of binary digits: exact rationals, and expressions in exponentials of rationals.

A probability is compared with a uniform number digit by digit, so the comparison is exact even if the probability is
irrational. If the known digits do not decide, more are computed, in integers with certified bounds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

_FIRST_PRECISION = 160  # bits: settles the first digits of nearly every coin at once; doubled where it does not


@dataclass(frozen=True, slots=True)
class Probability:
    """A number in [0, 1] given by certified fixed-point bounds.

    `bound_digits(p)` returns integers with `low <= value * 2**p <= high`. They are equal if `value * 2**p` is an
    integer. The width of the interval, in units of the value, tends to zero as `p` grows.
    """

    bound_digits: Callable[[int], tuple[int, int]]

    def read_prefix(self, bits: int) -> int:
        """Return the first `bits` binary digits of the number as an integer, exactly: `floor(value * 2**bits)`."""
        precision = max(_FIRST_PRECISION, bits + 64)
        while True:
            low, high = self.bound_digits(precision)
            first, last = low >> (precision - bits), high >> (precision - bits)
            if first == last:
                return first
            precision *= 2

    def read_digits(self, start: int, count: int) -> int:
        """Return the binary digits `start + 1 .. start + count` behind the point, as one integer."""
        return self.read_prefix(start + count) - (self.read_prefix(start) << count)


def make_rational(value: Fraction) -> Probability:
    """Return the probability of an exact rational value.

    Raises:
        ValueError: outside [0, 1].
    """
    if not 0 <= value <= 1:
        raise ValueError("a probability lies in [0, 1]")

    def bounds(precision: int) -> tuple[int, int]:
        scaled = value.numerator << precision
        return scaled // value.denominator, -(-scaled // value.denominator)

    return Probability(bounds)


def make_exponential(rate: Fraction, *, doubled: int, most: int) -> Probability:
    """Return `exp(-rate * 2**doubled)` for a rational `rate > 0`.

    It is irrational, so a prefix of its digits decides a draw.

    `most >= doubled` is the largest `doubled` that the caller uses with this rate, so that all of them share one
    computation.
    """
    return Probability(lambda precision: bound_exponentials(rate, most, precision)[doubled])


def make_logistic(rate: Fraction, *, doubled: int, most: int, is_doubled: bool = False) -> Probability:
    """Return `1 / (1 + exp(rate * 2**doubled))`, or twice this if `is_doubled`.

    It is irrational for a rational `rate > 0`.

    `most` is that of `make_exponential`.
    """

    def bounds(precision: int) -> tuple[int, int]:
        one = 1 << precision
        low, high = bound_exponentials(rate, most, precision)[doubled]
        shift = precision + 1 if is_doubled else precision
        return (low << shift) // (one + low), -(-(high << shift) // (one + high))

    return Probability(bounds)


def certify_unchanged_noise(*, coarse: Fraction, fine: Fraction) -> Probability:
    """Return the probability that a gradual release draws the same noise at two levels.

    It is `((1 - a1) / (1 - a2))**2 * a2 / a1` with `a1 = exp(-coarse)`, `a2 = exp(-fine)`, for rational `0 < coarse <
    fine`.

    Irrational: with `x = exp(-1 / d)` for a common denominator `d` it is a rational function of the transcendental
    number `x`, and no constant, since it tends to zero with `x`.
    """

    def bounds(precision: int) -> tuple[int, int]:
        one = 1 << precision
        ((low1, high1),) = bound_exponentials(coarse, 0, precision)
        ((low2, high2),) = bound_exponentials(fine, 0, precision)
        if low1 == 0 or high1 >= one:
            return 0, one
        low = ((one - high1) ** 2 * low2 << precision) // ((one - low2) ** 2 * high1)
        high = -(-((one - low1) ** 2 * high2 << precision) // ((one - high2) ** 2 * low1))
        return low, min(one, high)

    return Probability(bounds)


def certify_noise_not_risen(*, coarse: Fraction, fine: Fraction) -> Probability:
    """Return the probability that refined noise does not rise further, for `refine_noise`.

    It is `(1 - a1**2) / (1 - a1 * a2) * a2 / a1` with `a1`, `a2` of `certify_unchanged_noise`.

    Irrational for the same reason.
    """

    def bounds(precision: int) -> tuple[int, int]:
        one = 1 << precision
        ((low1, high1),) = bound_exponentials(coarse, 0, precision)
        ((low2, high2),) = bound_exponentials(fine, 0, precision)
        if low1 == 0 or high1 >= one:
            return 0, one
        low = ((one * one - high1 * high1) * low2 << precision) // ((one * one - low1 * low2) * high1)
        high = -(-((one * one - low1 * low1) * high2 << precision) // ((one * one - high1 * high2) * low1))
        return low, min(one, high)

    return Probability(bounds)


def certify_changed_noise(*, coarse: Fraction, fine: Fraction) -> Probability:
    """Return the probability that noise of a gradual release differs at two levels.

    It is `(1 - p) * 2 * a1 / (1 + a1)` with `p` the `certify_unchanged_noise` and `a1 = exp(-coarse)`.

    Irrational for the same reason.
    """
    unchanged = certify_unchanged_noise(coarse=coarse, fine=fine)
    different = make_logistic(coarse, doubled=0, most=0, is_doubled=True)

    def bounds(precision: int) -> tuple[int, int]:
        one = 1 << precision
        low, high = unchanged.bound_digits(precision)
        least, most = different.bound_digits(precision)
        return ((one - high) * least) >> precision, -((-(one - low) * most) >> precision)

    return Probability(bounds)


Survivals = Callable[[int], Iterator[tuple[int, int]]]
"""`P(N >= 1), P(N >= 2), ..` of a variable on 0, 1, .., each as the bounds of a `Probability` at a precision."""


def list_geometric_survivals(first: Probability, rate: Fraction, *, doubled: int) -> Survivals:
    """Return the infinite sequence `first * exp(-rate * 2**doubled * (k - 1))` for `k = 1, 2, ..`."""

    def bounds(precision: int) -> Iterator[tuple[int, int]]:
        low, high = first.bound_digits(precision)
        least, most = bound_exponentials(rate, doubled, precision)[doubled]
        while True:
            yield low, high
            low, high = (low * least) >> precision, -((-high * most) >> precision)

    return bounds


def list_digit_survivals(rate: Fraction, *, doubled: int, digits: int) -> Survivals:
    """Return the survivals of some binary digits of a geometric variable, read as a number.

    They are `(c**k - c**m) / (1 - c**m)` with `c = exp(-rate * 2**doubled)`, `m = 2**digits`, for `k = 1 .. m - 1`. The
    digits are `doubled .. doubled + digits - 1` of a variable of this rate.

    Irrational: a rational function of one transcendental number, and no constant.
    """

    def bounds(precision: int) -> Iterator[tuple[int, int]]:
        one = 1 << precision
        powers = bound_exponentials(rate, doubled + digits, precision)
        (least, most), (none, all_) = powers[doubled], powers[doubled + digits]
        low, high = least, most
        for _ in range((1 << digits) - 1):
            if all_ >= one:
                yield 0, one
            else:
                yield (
                    (max(0, low - all_) << precision) // (one - all_),
                    min(one, -(-((high - none) << precision) // (one - none))),
                )
            low, high = (low * least) >> precision, -((-high * most) >> precision)

    return bounds


@lru_cache(maxsize=512)
def bound_exponentials(rate: Fraction, doublings: int, precision: int) -> tuple[tuple[int, int], ...]:
    """Return certified bounds of `2**precision * exp(-rate * 2**j)` for `j = 0 .. doublings`.

    All terms of the series of `exp(r)` with `r = rate / 2**h < 1/2` are positive. Truncated and rounded downward it is
    a lower bound. Rounded upward, with twice the last term added, it is an upper bound. The reciprocal is then squared
    `h + doublings` times with outward rounding.
    """
    halvings = max(0, rate.numerator.bit_length() - rate.denominator.bit_length() + 2)
    working = precision + 2 * (halvings + doublings) + 16
    one = 1 << working
    low, high = _sum_exponential_series(rate / (1 << halvings), working)
    low, high = (one << working) // high, -(-(one << working) // low)
    result: list[tuple[int, int]] = []
    excess = working - precision
    for step in range(halvings + doublings + 1):
        if step >= halvings:
            result.append((low >> excess, -(-high >> excess)))
        low, high = (low * low) >> working, -((-high * high) >> working)
    return tuple(result)


def _sum_exponential_series(exponent: Fraction, working: int) -> tuple[int, int]:
    numerator, denominator = exponent.numerator, exponent.denominator
    step_low = (numerator << working) // denominator
    step_high = step_low + 1
    low = high = term_low = term_high = 1 << working
    count = 0
    while term_high > 1:
        count += 1
        term_low = ((term_low * step_low) >> working) // count
        term_high = -((-term_high * step_high) >> working)
        term_high = -(-term_high // count)
        low += term_low
        high += term_high
    return low, high + 2 * term_high
