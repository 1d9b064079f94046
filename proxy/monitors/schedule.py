"""The schedule of a monitor: which looks are due, by the clock and by the looks already made.

Guarantee: the due looks follow from public times and from which looks were made. A missed look is never made later,
except for the last one of a window.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from planner.monitors.monitor_plan import WindowPlan


@dataclass(frozen=True, slots=True)
class DueLook:
    """A look that is due: number `look` of its window, at the time `due_at`.

    `moment_number` is the number of that time among all moments of the horizon.
    """

    window: int
    look: int
    due_at: datetime
    moment_number: int


def list_due_looks(
    windows: WindowPlan,
    *,
    since: datetime,
    now: datetime,
    made: Mapping[int, int],
    closed: Collection[int],
    early: bool,
) -> tuple[DueLook, ...]:
    """Return the newest due look of each open window, ordered by time.

    Parameters:
        since: when the monitor was started; windows that had closed by then get no look.
        now: the time in UTC, as all times of the plan.
        made: maps each window that has begun to the number of its last look.
        early: True if there are looks before the window's close.
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
    return tuple(sorted(due, key=lambda one: (one.due_at, one.window)))


def find_next_moment(windows: WindowPlan, *, now: datetime, newest: int = 0) -> datetime | None:
    """Return the time of the next look of any window, or None if no look is left.

    Parameters:
        newest: the number of the newest look that was made. The next look has a higher number, even if the newest one
            is in the future.
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
    """Return the time at which a look is made: its moment plus the waiting time for late rows."""
    return windows.first_looks[0] + (number - 1) * windows.every + windows.delay


def find_look_number(windows: WindowPlan, at: datetime) -> int:
    """Return the number, from 1, of a time among all moments of the horizon."""
    return (at - windows.first_looks[0]) // windows.every + 1


def count_moments(windows: WindowPlan) -> int:
    """Return the number of moments in a horizon at which looks are made."""
    return find_look_number(windows, windows.find_close(len(windows.starts) - 1))


def _make_look(windows: WindowPlan, window: int, look: int) -> DueLook:
    at = windows.first_looks[window] + (look - 1) * windows.every
    return DueLook(window, look, at, find_look_number(windows, at))


def _count_overlaps(windows: WindowPlan) -> int:
    """Return how many earlier windows are still looked at when a window's looks begin."""
    first = windows.first_looks[0] + (windows.looks - 1) * windows.every
    return bisect_left(windows.first_looks, first)
