"""The time by which looks are made: the machine's clock, held against a counter of seconds that nobody sets.

Guarantee: no look is made by a clock that has just jumped. A window closed too early is never looked at again, and a
clock that jumps forward would close all windows on the way on the data of now.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_SHORTEST_WAIT, _LONGEST_WAIT = timedelta(minutes=10), timedelta(hours=1)
"""How long a clock that jumped is watched, at least and at most. A longer wait survives longer faults of a time server;
a shorter one makes looks sooner after a clock was put right. Set, not measured."""
_NOTICEABLE = timedelta(seconds=1)  # what a time server corrects in one step; plans of earlier rounds are forgotten


def count_seconds() -> float:
    """Return seconds since the machine started, time asleep included where the system counts that."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True)
class ClockReading:
    """One reading.

    `jumped_by` is how far the clock stands from where it should, 0 where looks may be made by it; `is_new` says that
    this jump was not seen before, `is_over` that one ended with this reading, and `was_set` that what was planned by
    earlier readings is to be planned again.
    """

    now: datetime
    jumped_by: timedelta = timedelta(0)
    is_new: bool = False
    is_over: bool = False
    was_set: bool = False


class WatchedClock:
    """The clock of one runner.

    Parameters:
        wall: the machine's clock, with its time zone.
        seconds: a counter of seconds that only moves forward, at the pace of time.
    """

    def __init__(self, wall: Callable[[], datetime], seconds: Callable[[], float]) -> None:
        self._wall = wall
        self._seconds = seconds
        self._trusted: tuple[datetime, float] | None = None
        self._jumped: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        """Return what the clock says, UTC without a time zone, whether it jumped or not."""
        return self._wall().astimezone(UTC).replace(tzinfo=None)

    def read(self, *, every: timedelta) -> ClockReading:
        """Read the clock before a round of looks that are made `every` so often.

        A clock that moved by more than that since the last reading has jumped. Looks wait until it is back where it
        should be, or has gone on evenly from the place it jumped to for the time of `get_wait_after_jump`.
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
    """Return how long looks wait for a jumped clock to go on evenly.

    It is the time between two looks, from ten minutes to an hour.
    """
    return min(max(every, _SHORTEST_WAIT), _LONGEST_WAIT)


def _measure_jump(earlier: tuple[datetime, float], now: datetime, seconds: float) -> timedelta:
    """Return how far the clock has moved since an earlier reading beyond the time that passed."""
    return (now - earlier[0]) - timedelta(seconds=seconds - earlier[1])
