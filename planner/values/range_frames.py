"""RANGE frames of windows: the values between two distances from a row's own, as PostgreSQL's calendar has them.

`RANGE BETWEEN interval '2 months' PRECEDING AND CURRENT ROW` takes the groups whose month is at most two months
earlier, however many are listed between. A distance that leaves the calendar takes all values on that side.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

from planner.catalog.catalog import Value
from planner.values.constant import Constant, Interval, Number
from planner.values.datetimes import move_to_midnight, shift_moment

_Bound: TypeAlias = tuple[int, Any]  # a value after 0; -1 is before all values, and 1 behind them


@dataclass(frozen=True, slots=True)
class RangeEdge:
    """One end of a RANGE frame: a `distance` from a row's own value. None means all values on that side."""

    is_following: bool
    distance: Constant | None


CURRENT_ROW = RangeEdge(is_following=False, distance=Number(Fraction(0), is_integral=True))


class RangeFrame:
    """The RANGE frames of all values of a calendar, in ascending order.

    The window may run in either direction.
    """

    def __init__(self, values: Sequence[Value], start: RangeEdge, end: RangeEdge, *, descending: bool) -> None:
        """Raise ValueError for a distance that PostgreSQL does not add to such values, or not in their order."""
        self._values = [move_to_midnight(value) if isinstance(value, date) else value for value in values]
        self._descending = descending
        low, high = (end, start) if descending else (start, end)
        self._low, self._high = self._list_bounds(low), self._list_bounds(high)

    def find_places(self, own: int, line: Sequence[int]) -> tuple[int, int]:
        """Return the positions of a value's frame in a line of values: the first, and the one after the last."""
        rising = line[::-1] if self._descending else line
        first = bisect_left(rising, self._low[own], key=self._find_bound)
        past = max(first, bisect_right(rising, self._high[own], key=self._find_bound))
        return (len(line) - past, len(line) - first) if self._descending else (first, past)

    def _find_bound(self, place: int) -> _Bound:
        return 0, self._values[place]

    def _list_bounds(self, edge: RangeEdge) -> list[_Bound]:
        if edge is CURRENT_ROW:
            return [(0, value) for value in self._values]
        sign = 1 if edge.is_following is not self._descending else -1
        if edge.distance is None:
            return [(sign, 0)] * len(self._values)
        bounds = [_shift(value, edge.distance, sign) for value in self._values]
        if any(before > after for before, after in pairwise(bounds)):
            raise ValueError("ends of frames fall")  # at ends of months, where PostgreSQL stays at the row before's
        return bounds


def _shift(value: Value, distance: Constant, sign: int) -> _Bound:
    """Return a value plus (sign 1) or minus (-1) a distance. Raise ValueError for one that is negative or no distance.

    An interval of which one part alone is negative is refused, too.
    """
    match value, distance:
        case date(), Interval(months, days, microseconds) if min(months, days, microseconds) >= 0:
            try:
                return 0, shift_moment(value, distance, sign)
            except (OverflowError, ValueError):
                return sign, 0
        case int(), Number(number, True) if number >= 0:
            return 0, value + sign * int(number)
    raise ValueError("no distance of these values")
