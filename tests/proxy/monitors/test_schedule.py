"""Which looks are due: none is made up but a window's last, and nothing but clocks and looks decides."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.monitors.monitor_plan import WindowPlan
from proxy.monitors.schedule import DueLook, count_moments, find_look_number, find_next_moment, list_due_looks

_START = datetime(2026, 3, 1)
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


def _days(count: int = 3, *, lateness: timedelta = timedelta(0)) -> WindowPlan:
    starts = tuple(_START + day * _DAY for day in range(count))
    return WindowPlan(
        starts=starts,
        first_looks=tuple(start + _HOUR for start in starts),
        length=_DAY,
        every=_HOUR,
        lateness=lateness,
        looks=24,
    )


def _hopping() -> WindowPlan:
    """A day long, beginning every six hours; each is looked at in its last six."""
    starts = tuple(_START + hop * 6 * _HOUR for hop in range(8))
    return WindowPlan(
        starts=starts,
        first_looks=tuple(start + 19 * _HOUR for start in starts),
        length=_DAY,
        every=_HOUR,
        lateness=timedelta(0),
        looks=6,
    )


def _due(
    now: datetime,
    made: dict[int, int] | None = None,
    *,
    since: datetime = _START,
    closed: tuple[int, ...] = (),
    early: bool = True,
    windows: WindowPlan | None = None,
) -> tuple[DueLook, ...]:
    return list_due_looks(windows or _days(), since=since, now=now, made=made or {}, closed=closed, early=early)


def test_nothing_is_due_before_the_first_moment() -> None:
    assert _due(_START + timedelta(minutes=59)) == ()
    assert _due(_START + _HOUR) == (DueLook(0, 1, _START + _HOUR, 1),)


def test_a_look_is_made_later_by_the_lateness() -> None:
    late = _days(lateness=timedelta(minutes=10))
    assert _due(_START + timedelta(minutes=69), windows=late) == ()
    assert _due(_START + timedelta(minutes=70), windows=late) == (DueLook(0, 1, _START + _HOUR, 1),)


def test_missed_looks_are_skipped_and_not_made_up() -> None:
    assert _due(_START + 7.5 * _HOUR, {0: 2}) == (DueLook(0, 7, _START + 7 * _HOUR, 7),)
    assert _due(_START + 7.5 * _HOUR, {0: 7}) == ()


def test_the_last_look_of_a_window_is_made_late_and_before_those_of_the_next() -> None:
    found = _due(_START + 2 * _DAY + 5 * _HOUR, {0: 21})
    assert [(one.window, one.look, one.moment_number) for one in found] == [(0, 24, 24), (1, 24, 48), (2, 5, 53)]


def test_a_window_that_closed_before_the_start_is_never_looked_at() -> None:
    found = _due(_START + 2 * _DAY, since=_START + _DAY)
    assert [one.window for one in found] == [1]
    assert [one.window for one in _due(_START + 2 * _DAY, since=_START + _DAY - timedelta(seconds=1))] == [0, 1]


def test_a_closed_window_is_not_looked_at() -> None:
    assert [one.window for one in _due(_START + 2 * _DAY, closed=(0,))] == [1]


def test_without_early_looks_only_the_close_is_due() -> None:
    assert _due(_START + 23 * _HOUR, early=False) == ()
    assert _due(_START + _DAY, early=False) == (DueLook(0, 24, _START + _DAY, 24),)


def test_hopping_windows_are_looked_at_one_at_a_time() -> None:
    windows, now = _hopping(), _START
    made: dict[int, int] = {}
    seen = []
    while now < _START + 3 * _DAY:
        found = _due(now, made, windows=windows)
        assert len(found) <= 1
        for one in found:
            seen.append(one.moment_number)
            made[one.window] = one.look
        now += _HOUR
    assert seen == list(range(1, count_moments(windows) + 1))


@given(st.integers(0, 90), st.sampled_from([_days(), _hopping(), _days(lateness=timedelta(minutes=90))]))
def test_the_next_moment_is_when_something_comes_due(half_hours: int, windows: WindowPlan) -> None:
    now = _START + half_hours * _HOUR / 2
    made = {one.window: one.look for one in _due(now, windows=windows)}
    moment = find_next_moment(windows, now=now)
    if moment is None:
        assert now >= windows.find_close(len(windows.starts) - 1) + windows.lateness
        return
    assert moment > now
    assert _due(moment - timedelta(microseconds=1), made, windows=windows) == ()
    assert len(_due(moment, made, windows=windows)) >= 1


def test_the_next_moment_comes_after_a_look_that_was_made_in_the_future() -> None:
    """By a clock that was ahead: the ledger has the fifth look, so the sixth comes next, whatever the time is now."""
    windows = _days(lateness=timedelta(minutes=10))
    assert find_next_moment(windows, now=_START, newest=5) == _START + 6 * _HOUR + windows.delay
    assert (
        find_next_moment(windows, now=_START + 8 * _HOUR + windows.delay, newest=5)
        == _START + 9 * _HOUR + windows.delay
    )


def test_numbers_count_all_moments_of_a_horizon() -> None:
    assert count_moments(_days()) == 72
    assert find_look_number(_days(), _START + 2 * _DAY) == 48


@pytest.mark.parametrize("early", [True, False])
def test_every_window_is_closed_in_the_end(early: bool) -> None:
    assert [(one.window, one.look) for one in _due(_START + 9 * _DAY, early=early)] == [(0, 24), (1, 24), (2, 24)]
