"""Which looks of a monitor are due, by the clock and by what was looked at before.

Guarantee: a function of public times and of which looks were made. A look that was missed is never made up, but for the
last one of a window, which is made late.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from planner.monitors.monitor_plan import WindowPlan


@dataclass(frozen=True, slots=True)
class DueLook:
    """The `look`th look of a window, for the moment `at`, which is the `number`th of its horizon."""

    window: int
    look: int
    at: datetime
    number: int


def list_due_looks(
    windows: WindowPlan,
    *,
    since: datetime,
    now: datetime,
    made: Mapping[int, int],
    closed: Collection[int],
    early: bool,
) -> tuple[DueLook, ...]:
    """Return the newest due look of each open window, in the order of their moments.

    Parameters:
        since: when the monitor was started; windows that had closed by then are never looked at.
        now: UTC, as the plan's times are.
        made: by window that was begun, its last look.
        early: whether there is a look before the close.
    """
    arrived = now - windows.delay
    first = bisect_right(windows.first_looks, since - (windows.looks - 1) * windows.every)
    last = bisect_right(windows.first_looks, arrived)
    due = []
    for window in range(first, last):
        if window in closed:
            continue
        passed = (arrived - windows.first_looks[window]) // windows.every + 1
        look = min(passed, windows.looks)
        if look > made.get(window, 0) and (early or look == windows.looks):
            due.append(_make_look(windows, window, look))
    return tuple(sorted(due, key=lambda one: (one.at, one.window)))


def find_next_moment(windows: WindowPlan, *, now: datetime, newest: int = 0) -> datetime | None:
    """Return the moment of the next look, of whichever window. Return None if there is none any more.

    Parameters:
        newest: the number of the newest look that was made. The next one comes after it, also if that lies in the
            future.
    """
    arrived = max(now, find_look_moment(windows, newest)) - windows.delay if newest else now - windows.delay
    open_now = max(bisect_right(windows.first_looks, arrived) - 1, 0)
    moments = []
    for window in range(max(0, open_now - _count_overlaps(windows)), min(open_now + 2, len(windows.starts))):
        passed = (arrived - windows.first_looks[window]) // windows.every + 1
        if passed < windows.looks:
            moments.append(windows.first_looks[window] + max(passed, 0) * windows.every + windows.delay)
    return min(moments, default=None)


def find_look_moment(windows: WindowPlan, number: int) -> datetime:
    """Return when the look of that number over the horizon is made: its moment and the wait for late rows."""
    return windows.first_looks[0] + (number - 1) * windows.every + windows.delay


def find_look_number(windows: WindowPlan, at: datetime) -> int:
    """Return the number, from 1, of a look's moment among all those of the horizon."""
    return (at - windows.first_looks[0]) // windows.every + 1


def count_moments(windows: WindowPlan) -> int:
    """Return the number of moments of looks in a horizon."""
    return find_look_number(windows, windows.find_close(len(windows.starts) - 1))


def _make_look(windows: WindowPlan, window: int, look: int) -> DueLook:
    at = windows.first_looks[window] + (look - 1) * windows.every
    return DueLook(window, look, at, find_look_number(windows, at))


def _count_overlaps(windows: WindowPlan) -> int:
    """Return the number of windows before one that are still looked at when its looks begin."""
    first = windows.first_looks[0] + (windows.looks - 1) * windows.every
    return bisect_left(windows.first_looks, first)
