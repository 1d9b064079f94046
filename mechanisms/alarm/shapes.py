"""The law of an alarm's secret draw for each regime, and the loss that it has.

With `E` the draw, `rise` a power and `1 / root` a decay: `P(E <= x) = low * x**rise` up to 1, and `P(E > x) = high *
x**(-1 / root)` from there on. For `rise = root = 1` the logarithm of `E` is Laplace noise.

| here | the proof |
|---|---|
| `rise`, `root` | 1 + s, 1 / q |
| `low_probability`, `high_probability` | F_1, S_1 |

Proof: docs/proofs/alarm.md.
"""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import isqrt


@dataclass(frozen=True, slots=True)
class Shape:
    """The distribution of an alarm's secret number, given by two whole numbers.

    >>> Shape(rise=1, root=1).low_probability, Shape(rise=3, root=1).high_probability
    (Fraction(1, 2), Fraction(3, 4))
    """

    rise: int
    root: int

    @property
    def low_probability(self) -> Fraction:
        """`P(E <= 1)`."""
        return Fraction(1, 1 + self.rise * self.root)

    @property
    def high_probability(self) -> Fraction:
        """`P(E > 1)`."""
        return 1 - self.low_probability

    def compute_chance(self, total: int, unit: int, *, bits: int) -> int:
        """Return `floor(P(E <= total / unit) * 2**bits)`, exactly, for `total >= 0` and `unit > 0`.

        >>> Shape(rise=1, root=1).compute_chance(3, 2, bits=6), Shape(rise=1, root=2).compute_chance(8, 2, bits=6)
        (42, 42)
        """
        if total <= unit:
            low = self.low_probability
            return (low.numerator * _raise_to_power(total, self.rise) << bits) // (
                low.denominator * _raise_to_power(unit, self.rise)
            )
        high = self.high_probability
        part = _raise_to_power(high.numerator, self.root) * unit << bits * self.root
        whole = _raise_to_power(high.denominator, self.root) * total
        powered = -(-part // whole)  # the power of what is left, rounded up
        left = powered if self.root == 1 else _round_up_root(powered)
        return (1 << bits) - left


class Regime(Enum):
    """The rule by which one privacy unit may change the values that an alarm sees, from look to look of one window.

    `GROWING`: it raises each value by at least 0 and at most the sensitivity, and never by less than at an earlier
    look. `COMING_AND_GOING`: it raises each by at least 0 and at most the sensitivity. `SIGNED`: it changes each by at
    most the sensitivity, in either direction. `SLIDING`: a sliding window, watched in epochs of at least as many looks
    as it is long. Each epoch has its own draw. One event raises the values of consecutive looks by one amount, the
    sensitivity at most. It is in two epochs at most, and the loss covers both.

    The same holds with all signs changed.
    """

    GROWING = "growing"
    COMING_AND_GOING = "coming and going"
    SIGNED = "signed"
    SLIDING = "sliding"

    @property
    def draw_shape(self) -> Shape:
        """The distribution from which an alarm draws its secret number under this regime."""
        return _SHAPES[self]

    @property
    def loss_factor(self) -> int:
        """The alarm's loss in units of rate times sensitivity, without `ROUNDED`, the extra loss by rounding.

        Guarantee: docs/proofs/alarm.md.

        >>> [regime.loss_factor for regime in Regime]
        [1, 2, 3, 2]
        """
        rise, decay = self.draw_shape.rise, Fraction(1, self.draw_shape.root)
        factors = {
            Regime.GROWING: max(Fraction(rise), decay),
            Regime.COMING_AND_GOING: max(Fraction(rise), 1 + decay),
            Regime.SIGNED: 1 + max(Fraction(rise - 1), 1 + decay),
            Regime.SLIDING: max(Fraction(2 * rise), 1 + 2 * decay),
        }
        return int(factors[self])  # whole for these shapes


# found by comparing prices, .05 and .1: the first is the best of all; with any real exponents the others would cost 4 %
# less at most for a year of days, and 8 % for 10,000 looks
_SHAPES = {
    Regime.GROWING: Shape(rise=1, root=1),
    Regime.COMING_AND_GOING: Shape(rise=2, root=1),
    Regime.SIGNED: Shape(rise=3, root=1),
    Regime.SLIDING: Shape(rise=1, root=2),
}


def _round_up_root(value: int) -> int:
    """Return the least whole number whose square is not below the value."""
    return isqrt(value - 1) + 1 if value > 0 else 0


def _raise_to_power(value: int, exponent: int) -> int:
    """Return a whole number raised to a whole exponent of at least zero, as a whole number."""
    result: int = value**exponent
    return result
