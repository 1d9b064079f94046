"""The acceptance probability of an arc look, as a function of the value: a sine between two exponential feet.

The square roots of the probabilities of "accepted" and "rejected" are a point on a circle. In the middle this point
moves along the circle at constant speed. Below, the probability falls exponentially, so that its logarithm changes by
`slope` a step at most. Above, the probability of "rejected" does the same.

| here | in the proof |
|---|---|
| speed | k |
| slope | s |
| foot | the distance from the centre to where a foot begins |

Proof: docs/proofs/arc.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from mechanisms.certified import bound_exponentials
from mechanisms.protocol import Unachievable

_FIXED_BITS = 224  # of all intermediate values: 160 more than a table keeps
_ONE = 1 << _FIXED_BITS
_LEAST_SPEED = 1e-6  # as a part of the slope: error rates so near to one half have no use
_MOST_STEPS = 100  # of Newton's method on the inverse of a speed, which is nearly linear: about five are usual
_ROUNDED = 1e-15  # of a speed, as far as it is solved for


@dataclass(frozen=True, slots=True)
class AcceptanceLaw:
    """The law `p(x)` at a distance `x` from its centre, in steps of a table. `p(-x) = 1 - p(x)`, so `p(0) = 1/2`.

    `speed` is twice the angle by which the point on the circle turns a step. `slope` is the largest change of a
    logarithm a step.
    """

    speed: float
    slope: float

    @property
    def foot(self) -> float:
        """Return the distance from the centre to where the feet begin."""
        return (0.5 * math.pi - 2.0 * math.atan2(self.speed, self.slope)) / self.speed

    def stretch(self, part: float) -> "AcceptanceLaw":
        """Return the same law at a part of its speed, and so at the same part of its slope."""
        return AcceptanceLaw(speed=part * self.speed, slope=part * self.slope)

    def find_position(self, probability: float) -> float:
        """Return the distance from the centre, negative below it, at which the law has a probability in (0, 1).

        >>> law = AcceptanceLaw(speed=0.02, slope=0.06)
        >>> [round(law.find_position(p), 3) for p in (0.5, 0.05, 0.95)]
        [0.0, -57.917, 57.917]
        """
        if probability > 0.5:
            return -self.find_position(1.0 - probability)
        square = self.speed * self.speed
        at_foot = square / (square + self.slope * self.slope)
        if probability >= at_foot:
            return (2.0 * math.asin(math.sqrt(probability)) - 0.5 * math.pi) / self.speed
        return -self.foot - math.log(at_foot / probability) / self.slope

    def tabulate(self, start: Fraction, count: int, *, scale: int) -> list[int]:
        """Return `floor(scale * p(x))` at `count` distances from `start` on, one step apart.

        Guarantee: computed with 224 binary digits, so nearly all are exact, and all are within one. They never
        decrease.
        """
        foot = Fraction(self.foot)
        low = min(count, max(0, math.ceil(-foot - start)))
        high = max(low, min(count, math.floor(foot - start) + 1))
        result: list[int] = []
        if low:
            result += self._list_foot(-foot - (start + low - 1), low, scale=scale)[::-1]
        result += self._list_sines(start + low, high - low, scale=scale)
        if high < count:
            upper = self._list_foot(start + high - foot, count - high, scale=scale)
            result += [scale - 1 - value for value in upper]
        return result

    def _list_foot(self, beyond: Fraction, count: int, *, scale: int) -> list[int]:
        """Return the probabilities of a foot at `beyond`, `beyond + 1`, .. from where it begins."""
        slope = Fraction(self.slope)
        sine, _ = _compute_sine(-Fraction(self.speed) * Fraction(self.foot))
        value = scale * ((_ONE + sine) >> 1)
        if beyond:
            value = (value * bound_exponentials(slope * beyond, 0, _FIXED_BITS)[0][0]) >> _FIXED_BITS
        fall = bound_exponentials(slope, 0, _FIXED_BITS)[0][0]
        result = []
        for _ in range(count):
            result.append(value >> _FIXED_BITS)
            value = (value * fall) >> _FIXED_BITS
        return result

    def _list_sines(self, start: Fraction, count: int, *, scale: int) -> list[int]:
        """Return the probabilities of the middle at `start`, `start + 1`, ..."""
        speed = Fraction(self.speed)
        before, _ = _compute_sine(speed * (start - 1))
        here, _ = _compute_sine(speed * start)
        turn = 2 * _compute_sine(speed)[1]
        result = []
        for _ in range(count):
            result.append((scale * (_ONE + here)) >> (_FIXED_BITS + 1))
            before, here = here, ((turn * here) >> _FIXED_BITS) - before
        return result


@dataclass(frozen=True, slots=True)
class Speed:
    """A speed within a distance of one, and its derivatives by the logarithms of both rates and by the slope."""

    speed: float
    by_fnr: float
    by_fpr: float
    by_slope: float


@lru_cache(maxsize=1024)
def find_speed(*, fnr: float, fpr: float, slope: float) -> Speed:
    """Return the speed at which the probability rises from `fpr` to `1 - fnr` within a distance of one.

    Parameters:
        fnr, fpr: in (0, 1), of sum below one.
        slope: the largest change of a logarithm within a distance of one, above that of `compute_laplace_slope`.

    Raises:
        Unachievable: the rates are so near to one half, or so far from the slope, that no speed is found.

    >>> found = find_speed(fnr=0.046, fpr=0.092, slope=1.5 * compute_laplace_slope(fnr=0.05, fpr=0.1))
    >>> round(found.speed, 6)
    2.182002
    """
    low, high = 1.0 / slope, 1.0 / (_LEAST_SPEED * slope)  # of the inverse of the speed
    inverse = 0.5 / max(math.asin(math.sqrt(1.0 - fnr)) - math.asin(math.sqrt(fpr)), 0.5 / high)
    for _ in range(_MOST_STEPS):
        inverse = inverse if low < inverse < high else 0.5 * (low + high)
        missed, wrong = (_measure_half(rate, 1.0 / inverse, slope) for rate in (fnr, fpr))
        excess = missed.width + wrong.width - 1.0
        if excess > 0.0:
            high = inverse
        else:
            low = inverse
        rise = (missed.by_inverse + wrong.by_inverse) / inverse
        step = excess / rise if rise > 0.0 else math.inf
        if abs(step) <= _ROUNDED * inverse or high - low <= _ROUNDED * low:
            fall = -rise * inverse * inverse  # by the speed
            return Speed(
                speed=1.0 / inverse,
                by_fnr=-missed.by_rate / fall,
                by_fpr=-wrong.by_rate / fall,
                by_slope=-(missed.by_slope + wrong.by_slope) / fall,
            )
        inverse -= step
    raise Unachievable("no arc look has error rates like these")


@dataclass(frozen=True, slots=True)
class _Half:
    """The distance from the centre to a probability, and its derivatives.

    They are by the logarithms of the speed's inverse and of the probability, and by the slope.
    """

    width: float
    by_inverse: float
    by_rate: float
    by_slope: float


def _measure_half(rate: float, speed: float, slope: float) -> _Half:
    if rate > 0.5:
        other = _measure_half(1.0 - rate, speed, slope)
        return _Half(-other.width, -other.by_inverse, other.by_rate * rate / (1.0 - rate), -other.by_slope)
    square = speed * speed
    at_foot = square / (square + slope * slope)
    if rate >= at_foot:
        width = (0.5 * math.pi - 2.0 * math.asin(math.sqrt(rate))) / speed
        return _Half(width, width, -math.sqrt(rate / (1.0 - rate)) / speed, 0.0)
    foot = (0.5 * math.pi - 2.0 * math.atan2(speed, slope)) / speed
    beyond = math.log(at_foot / rate) / slope
    return _Half(foot + beyond, foot, -1.0 / slope, -beyond / slope)


def compute_laplace_slope(*, fnr: float, fpr: float) -> float:
    """Return the largest change of a logarithm within the tolerance that a test on Laplace noise needs.

    >>> round(compute_laplace_slope(fnr=0.05, fpr=0.1), 3)
    3.912
    """
    return -math.log(4.0 * fnr * fpr)


def _compute_sine(angle: Fraction) -> tuple[int, int]:
    """Return the sine and the cosine of an angle of at most a right one, as fixed-point numbers."""
    fixed = (angle.numerator << _FIXED_BITS) // angle.denominator
    sums, term, power = [_ONE, 0, 0, 0], _ONE, 0
    while term:
        power += 1
        term = (term * fixed >> _FIXED_BITS) // power
        if term == -1:  # rounded downward for ever
            break
        sums[power % 4] += term
    return sums[1] - sums[3], sums[0] - sums[2]
