"""The clock that decides when looks are made. It is checked against a counter of seconds that nobody can set.

Guarantee: no look is made just after the clock has jumped. A clock that jumped forward would close all windows in
between with today's data, and a closed window is never looked at again.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_SHORTEST_WAIT, _LONGEST_WAIT = timedelta(minutes=10), timedelta(hours=1)
"""How long a clock that jumped is watched, at least and at most. A longer wait survives longer faults of a time server;
a shorter one makes looks sooner after a clock was put right. Set, not measured."""
_NOTICEABLE = timedelta(seconds=1)  # a time server corrects up to this in one step; larger steps end earlier plans


def count_seconds() -> float:
    """Return the seconds since the machine started, including time asleep if the system counts it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True)
class ClockReading:
    """One reading of the clock, and what it says about a jump.

    `jumped_by` is the difference between the clock and the expected time, and 0 if looks may be made. `is_new` is True
    at the first reading after a jump, and `is_over` at the reading that ends the waiting. `was_set` is True if plans
    from earlier readings must be made again.
    """

    now: datetime
    jumped_by: timedelta = timedelta(0)
    is_new: bool = False
    is_over: bool = False
    was_set: bool = False


class WatchedClock:
    """The clock of one runner, which notices jumps.

    Parameters:
        wall: the machine's clock, with its time zone.
        seconds: a counter of seconds that only moves forward, and that nobody can set.
    """

    def __init__(self, wall: Callable[[], datetime], seconds: Callable[[], float]) -> None:
        self._wall = wall
        self._seconds = seconds
        self._trusted: tuple[datetime, float] | None = None
        self._jumped: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        """Return the clock's time, in UTC without a time zone, even just after a jump."""
        return self._wall().astimezone(UTC).replace(tzinfo=None)

    def read(self, *, every: timedelta) -> ClockReading:
        """Read the clock before a round of looks. `every` is the time between two rounds.

        The clock has jumped if it moved by more than `every` beyond the counter. Looks then wait until the clock shows
        the expected time again, or has run evenly for the time of `get_wait_after_jump`.
        """
        now, seconds = self.now(), self._seconds()
        off = timedelta(0) if self._trusted is None else _measure_jump(self._trusted, now, seconds)
        if abs(off) <= every:
            was_jumped, self._trusted, self._jumped = self._jumped is not None, (now, seconds), None
            return ClockReading(now, is_over=was_jumped, was_set=was_jumped or abs(off) > _NOTICEABLE)
        if self._jumped is None or abs(_measure_jump(self._jumped, now, seconds)) > every:
            self._jumped = (now, seconds)
            return ClockReading(now, off, is_new=True)
        if seconds - self._jumped[1] < get_wait_after_jump(every).total_seconds():
            return ClockReading(now, off)
        self._trusted, self._jumped = (now, seconds), None
        return ClockReading(now, is_over=True, was_set=True)


def get_wait_after_jump(every: timedelta) -> timedelta:
    """Return how long looks wait after a jump if the clock then runs evenly.

    The result is the time between two looks, but at least ten minutes and at most an hour.
    """
    return min(max(every, _SHORTEST_WAIT), _LONGEST_WAIT)


def _measure_jump(earlier: tuple[datetime, float], now: datetime, seconds: float) -> timedelta:
    """Return by how much the clock has moved farther than the counter of seconds since an earlier reading."""
    return (now - earlier[0]) - timedelta(seconds=seconds - earlier[1])
