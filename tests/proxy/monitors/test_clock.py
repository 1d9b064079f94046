"""A clock that jumps closes no window too early; a horizon that is over ends its monitor; leases of a clock ahead."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from accountant.monitor_model import MonitorState
from planner.errors import KeyholeError
from proxy.monitors.clock import ClockReading, WatchedClock, get_wait_after_jump
from proxy.monitors.monitor_refusals import refuse_future_looks
from proxy.observe.telemetry import Telemetry
from tests.worlds.clinic import DAY, HOUR, NAME, START, Clinic, clinic, visits

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


@dataclass
class Machine:
    """A machine's clock and the seconds that passed on it."""

    now: datetime = START
    seconds: float = 1000.0

    def watched(self) -> WatchedClock:
        return WatchedClock(lambda: self.now.replace(tzinfo=UTC), lambda: self.seconds)

    def wait(self, length: timedelta, *, jump: timedelta = timedelta(0)) -> None:
        self.now += length + jump
        self.seconds += length.total_seconds()


@pytest.mark.parametrize("jump", [DAY, -DAY, HOUR + 2 * SECOND], ids=str)
def test_a_clock_that_jumps_and_comes_back_is_trusted_again(jump: timedelta) -> None:
    machine = Machine()
    clock = machine.watched()
    assert clock.read(every=HOUR) == ClockReading(START)
    machine.wait(2 * SECOND, jump=jump)
    assert clock.read(every=HOUR) == ClockReading(machine.now, jump, is_new=True)
    machine.wait(MINUTE)
    assert clock.read(every=HOUR) == ClockReading(machine.now, jump)
    machine.wait(MINUTE, jump=-jump)
    assert clock.read(every=HOUR) == ClockReading(machine.now, is_over=True, was_set=True)


def test_a_clock_that_goes_on_evenly_is_trusted_after_the_wait() -> None:
    machine = Machine()
    clock = machine.watched()
    clock.read(every=HOUR)
    machine.wait(MINUTE, jump=DAY)
    clock.read(every=HOUR)
    machine.wait(HOUR - SECOND)
    assert clock.read(every=HOUR).jumped_by == DAY
    machine.wait(SECOND)
    assert clock.read(every=HOUR) == ClockReading(machine.now, is_over=True, was_set=True)


def test_a_clock_that_jumps_again_is_watched_from_there() -> None:
    machine = Machine()
    clock = machine.watched()
    clock.read(every=MINUTE)
    machine.wait(SECOND, jump=HOUR)
    assert clock.read(every=MINUTE).is_new
    machine.wait(9 * MINUTE, jump=HOUR)
    assert clock.read(every=MINUTE) == ClockReading(machine.now, 2 * HOUR, is_new=True)
    machine.wait(9 * MINUTE)
    assert clock.read(every=MINUTE).jumped_by == 2 * HOUR
    machine.wait(MINUTE)
    assert clock.read(every=MINUTE).is_over


def test_small_steps_and_long_waits_are_no_jumps() -> None:
    """A step of up to the time between two looks costs one look at most. A process that was stopped has no jump."""
    machine = Machine()
    clock = machine.watched()
    clock.read(every=HOUR)
    for length, step in ((3 * DAY, timedelta(0)), (SECOND, HOUR), (SECOND, -HOUR)):
        machine.wait(length, jump=step)
        assert clock.read(every=HOUR) == ClockReading(machine.now, was_set=step != timedelta(0))


def test_waits_are_ten_minutes_to_an_hour() -> None:
    assert [get_wait_after_jump(one) for one in (SECOND, 20 * MINUTE, DAY)] == [10 * MINUTE, 20 * MINUTE, HOUR]


@pytest.fixture
def wards(tmp_path: Path, postgres_url: str) -> Iterator[Clinic]:
    with clinic(tmp_path, postgres_url) as opened:
        yield opened


@pytest.mark.server
def test_a_clock_that_jumps_forward_and_back_closes_no_window(wards: Clinic) -> None:
    """Without the wait, both windows would be closed on the rows of now, charged, and never watched again."""
    run, passed = wards.start(), [0.0]
    wards.service.telemetry = Telemetry(log=structlog.get_logger())
    runner = wards.runner(seconds=lambda: passed[0])
    runner.make_due_looks()
    with capture_logs() as logged:
        for _ in range(2):
            wards.now += 3 * DAY if wards.now == START else MINUTE
            passed[0] += 60
            runner.make_due_looks()
        assert runner.gauges[1].read() == {"": pytest.approx((3 * DAY - MINUTE).total_seconds(), abs=61)}
        wards.now = START + 3 * MINUTE
        passed[0] += 60
        runner.make_due_looks()
    assert [line["event"] for line in logged] == ["clock jumped", "clock settled"]
    assert wards.service.ledger.monitors.list_closed_windows(run) == frozenset()
    assert wards.service.ledger.monitors.list_begun_windows(run) == frozenset()
    wards.arrive(visits("A", 900, at=START + HOUR))
    wards.now, passed[0] = START + 6 * HOUR, 6 * 3600
    runner.make_due_looks()
    assert wards.alerts(run) == [(1, 0, "A")]


@pytest.mark.server
def test_looks_that_lie_in_the_future_are_said_to_lie_there(wards: Clinic) -> None:
    """The process was started while the clock was ahead, so nothing could be held against it."""
    run = wards.start()
    wards.now = START + DAY + 12 * HOUR
    wards.runner().make_due_looks()
    looked = wards.now
    wards.now = START + 6 * HOUR
    refused = refuse_future_looks(NAME, looked)
    wards.service.telemetry = Telemetry(log=structlog.get_logger())
    runner = wards.runner()
    with capture_logs() as logged:
        for _ in range(3):
            runner.make_due_looks()
            wards.now += 10 * SECOND
    said = [(line["code"], line["why"]) for line in logged if line["event"] == "monitor cannot be looked at"]
    assert said == [(refused.code, refused.message)] == [("KH604", refused.message)]
    assert runner.gauges[0].read()[NAME] >= 20
    (standing,) = wards.service.ledger.monitors.list_runs()
    assert (standing.run, standing.last_look) == (run, 6)
    assert isinstance(refused, KeyholeError)


@pytest.mark.server
def test_a_monitor_past_its_horizon_ends(wards: Clinic) -> None:
    run = wards.start()
    wards.service.telemetry = Telemetry(log=structlog.get_logger())
    for hours in range(6, 73, 6):
        wards.now = START + hours * HOUR
        wards.runner().make_due_looks()
    assert [one.state for one in wards.service.ledger.monitors.list_runs()] == [MonitorState.RUNNING]
    with capture_logs() as logged:
        wards.runner().make_due_looks()
    (ended,) = wards.service.ledger.monitors.list_runs()
    assert (ended.run, ended.state, ended.reason) == (run, MonitorState.ENDED, "its horizon is over")
    assert [line["event"] for line in logged] == ["monitor is over"]
    wards.service.ledger.verify_everything()


@pytest.mark.server
def test_a_lease_that_a_clock_ahead_wrote_is_void(wards: Clinic) -> None:
    monitors = wards.service.ledger.monitors
    assert monitors.take_leases([NAME], holder="ahead", seconds=3600 + 60) == {NAME}
    assert monitors.take_leases([NAME], holder="other", seconds=60) == {NAME}
    assert monitors.take_leases([NAME], holder="third", seconds=60) == frozenset()
