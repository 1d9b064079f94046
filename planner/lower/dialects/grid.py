"""The grid of a measure: its bounds in steps, and rounding to a step in whole numbers, half up."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from planner.values.sql_literals import write_integer

INT4 = 2**31  # the end of integer
INT8 = 2**63  # the end of bigint


@dataclass(frozen=True, slots=True)
class Grid:
    """The step g = p/q to which a measure is rounded, and its declared range in the user's unit."""

    step: Fraction
    lower: Fraction
    upper: Fraction

    @property
    def p(self) -> int:
        """The numerator of the step."""
        return self.step.numerator

    @property
    def q(self) -> int:
        """The denominator of the step."""
        return self.step.denominator

    @property
    def low(self) -> int:
        """The least value of the range, in steps."""
        return _round_half_up(self.lower / self.step)

    @property
    def high(self) -> int:
        """The greatest value of the range, in steps."""
        return _round_half_up(self.upper / self.step)

    @property
    def largest_whole(self) -> int:
        """A whole number that is at least as large as the absolute values of both bounds."""
        return max(abs(floor(self.lower)), abs(ceil(self.upper)))

    def round_doubled(self, doubled: str, floor_quotient: Callable[[str, int], str]) -> str:
        """Return SQL for `floor((doubled + p) / 2p)`, or for `low` if that is greater.

        The dividend is shifted so that it is never negative.

        Parameters:
            doubled: 2q times the value, rounded down to a whole number.
        """
        dividend = f"{doubled} + {write_integer(self.p - 2 * self.p * self.low)}"
        return f"{floor_quotient(dividend, 2 * self.p)} + {write_integer(self.low)}"

    @property
    def rounds_by_cast(self) -> bool:
        """True if `round_away` applies: the step divides 1, and the range fits a bigint."""
        return self.p == 1 and self.high - floor(self.lower / self.step) < INT8

    def round_away(self, multiplied: str, *, cast: str) -> str:
        """Return SQL for a column's value within the bounds, half up, for casts that round halves away from zero.

        For values of at least 0 the two roundings agree. Negative values are shifted above 0 first.

        Parameters:
            multiplied: the value in steps, exactly.
        """
        shift = -min(floor(self.lower / self.step), 0)
        if not shift:
            return f"{cast}({multiplied} AS {self.whole_type})"
        wide = choose_integer_type(0, self.high + shift)
        rounded = f"{cast}({multiplied} + {shift} AS {wide}) - {shift}"
        return rounded if wide == self.whole_type else f"{cast}({rounded} AS {self.whole_type})"

    @property
    def whole_type(self) -> str:
        """The narrowest type that holds every value of the range in steps."""
        return choose_integer_type(self.low, self.high)


def choose_integer_type(low: int, high: int) -> str:
    """Return the narrowest type of all integers from `low` to `high`."""
    return "integer" if max(abs(low), abs(high)) < INT4 else "bigint"


def _round_half_up(value: Fraction) -> int:
    return floor(value + Fraction(1, 2))
