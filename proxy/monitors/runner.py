"""The thread that makes the monitors' looks when they are due, in every serving process.

Guarantee: if two processes look at the same time, the ledger records the look once. The other look is dropped and does
no harm. A failed look is tried again until the next one is due. It is reported only as late.
"""

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter

import structlog

from accountant.errors import LedgerError, LookAlreadyRecorded, MonitorStopped, WindowClosed, WindowLost
from accountant.monitor_model import MonitorRun, MonitorState, WindowState
from mechanisms.formula import Integers
from planner.catalog.catalog import Catalog
from planner.catalog.monitor import Monitor
from planner.errors import KeyholeError
from planner.monitors.build import plan_monitor
from planner.monitors.monitor_plan import MonitorPlan
from proxy.monitors.clock import WatchedClock, count_seconds, get_wait_after_jump
from proxy.monitors.look import PreparedLook, WatchedRun, read_looks
from proxy.monitors.monitor_refusals import (
    refuse_changed_monitor,
    refuse_future_looks,
    refuse_lost_window,
    refuse_removed_monitor,
)
from proxy.monitors.schedule import DueLook, find_look_moment, find_next_moment, list_due_looks
from proxy.observe.logs import describe_exception
from proxy.observe.telemetry import GaugeReading, LookEnding
from proxy.open_policy.service import Service, Serving
from proxy.open_policy.service_refusals import report_unavailable_ledger

log = structlog.get_logger("keyhole.monitors")

POLL_S = 2.0
"""How late a monitor that was just started is noticed, against questions to the ledger."""
RETRY_S = 5.0  # between a look that failed and the next try: set, not measured
_LEASE_S = 60.0  # who dies while looking holds others up for so long; a longer look may be made twice, once in vain
_LEFT_S = 5.0  # how long whoever ends waits for a look under way: what is not recorded is made again


@dataclass(slots=True)
class _RunMemory:
    """A runner's memory of one run between rounds: the next due time, and since when a look is late."""

    run: str
    seen_to_at: datetime = datetime.min
    late_since: datetime | None = None
    complaint: str = ""


@dataclass(frozen=True, slots=True)
class _WaitingRun:
    """A run with its due looks, and the newest stored states of its windows."""

    watched: WatchedRun
    memory: _RunMemory
    due: Sequence[DueLook]
    states: Mapping[int, WindowState]

    @property
    def name(self) -> str:
        return self.watched.plan.monitor.name


class MonitorRunner:
    """The maker of all monitors' looks, under the current policy. A process has one.

    Parameters:
        name: the runner's name on this machine. If it is the same after a restart, the runner need not wait for its own
            old lease.
        clock: returns the time by which looks are made, in UTC. Nothing else depends on this clock.
        seconds: a counter of seconds that nobody can set, for checking the clock.
        since: the time from which a run looks, usually its start. Windows that closed earlier never begin.
        on_look: called with a monitor's name when a look was recorded.
    """

    def __init__(
        self,
        serving: Serving,
        *,
        name: str = "",
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        seconds: Callable[[], float] = count_seconds,
        since: Callable[[MonitorRun], datetime] = attrgetter("started_at"),
        on_look: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._serving = serving
        self._clock = WatchedClock(clock, seconds)
        self._jumped_by = timedelta(0)
        self._since = since
        self._on_look = on_look
        self._holder = f"{socket.gethostname()} {name or os.getpid()}"
        self._attention: dict[str, _RunMemory] = {}
        self._catalog: Catalog | None = None
        self._plans: dict[str, MonitorPlan | KeyholeError] = {}

    @property
    def gauges(self) -> tuple[GaugeReading, ...]:
        """The gauges of looks: how late each monitor's oldest due look is, and how far the clock has jumped."""
        late = GaugeReading(
            "keyhole_monitor_late_seconds", "How late the look is that is due", "monitor", self._measure_lateness
        )
        return late, GaugeReading(
            "keyhole_clock_jump_seconds",
            "How far the clock stands from where it should: looks wait",
            "",
            lambda: {"": self._jumped_by.total_seconds()},
        )

    def make_due_looks(self) -> None:
        """Make every look that is due now, and record it in the ledger.

        If possible, looks of the same moment share statements at the source.
        """
        with self._serving.hold_open() as service:
            if service.catalog is not self._catalog:
                self._reset_for_policy(service)
            if not service.catalog.monitors or not self._can_trust_clock(service):
                return
            newest = {run.monitor: run for run in service.ledger.monitors.list_runs()}
            waiting: list[_WaitingRun] = []
            for monitor in service.catalog.monitors:
                run = newest.get(monitor.name)
                if run is None or run.state is not MonitorState.RUNNING:
                    self._attention.pop(monitor.name, None)
                elif (found := self._find_waiting_run(service, monitor, run)) is not None:
                    waiting.append(found)
            with self._lease_runs(service, waiting) as ours:
                self._make_looks([look for one in ours for look in self._prepare_looks(one)])

    def _can_trust_clock(self, service: Service) -> bool:
        """Return True unless the clock has jumped. Log the beginning and the end of a jump once."""
        every = min(monitor.every for monitor in service.catalog.monitors)
        reading = self._clock.read(every=every)
        jumped_by, self._jumped_by = self._jumped_by, reading.jumped_by
        if reading.is_new:
            service.telemetry.log_clock_jump(by=reading.jumped_by, waits=get_wait_after_jump(every))
        if reading.is_over:
            service.telemetry.log_settled_clock(after=jumped_by)
        if reading.was_set:
            for kept in self._attention.values():
                kept.seen_to_at = datetime.min
        return not reading.jumped_by

    def _reset_for_policy(self, service: Service) -> None:
        """Forget the plans and due times that belong to an earlier policy.

        Log each monitor that still runs in the ledger but is no longer in the policy.
        """
        catalog = self._catalog = service.catalog
        self._plans.clear()
        with suppress(LedgerError):  # it is said again where the ledger is gone
            for run in service.ledger.monitors.list_runs():
                if run.state is MonitorState.RUNNING and catalog.find_monitor(run.monitor) is None:
                    gone = refuse_removed_monitor(run.monitor)
                    service.telemetry.note_stuck_monitor(run.monitor, code=gone.code, why=gone.message)
        for name, kept in tuple(self._attention.items()):
            kept.seen_to_at = datetime.min
            if catalog.find_monitor(name) is None:
                del self._attention[name]

    def _find_waiting_run(self, service: Service, monitor: Monitor, run: MonitorRun) -> _WaitingRun | None:
        """Return a run with its due looks. Return None if no look is due, or if an error prevents it."""
        kept = self._attention.get(monitor.name)
        if kept is None or kept.run != run.run:
            kept = self._attention[monitor.name] = _RunMemory(run.run)
        if self._clock.now() < kept.seen_to_at:
            return None
        found: _WaitingRun | None = None
        with self._log_what_prevents(service, monitor.name, run.run, kept):
            plan = self._plan_monitor(service, monitor)
            if plan.fingerprint != run.fingerprint:
                raise refuse_changed_monitor(monitor.name)
            found = self._find_due(WatchedRun(service, plan, run, self._holder), kept)
            if found is None:
                kept.complaint = ""
        return found

    @contextmanager
    def _log_what_prevents(self, service: Service, name: str, run: str, kept: _RunMemory) -> Iterator[None]:
        """Log an error of the block that prevents one monitor's looks, so that other monitors are still looked at."""
        try:
            yield
        except KeyholeError as error:
            self._log_complaint_once(service, name, kept, error)
        except WindowLost as lost:
            self._log_complaint_once(service, name, kept, refuse_lost_window(name, lost.windows))
            with suppress(LedgerError):  # another process closed it, or the ledger is gone: the next try finds out
                for window in lost.windows:
                    service.ledger.monitors.close_window(run, window, None)
        except (MonitorStopped, WindowClosed):
            pass  # paused, ended or closed meanwhile: nothing is due any more
        except LedgerError:
            self._log_complaint_once(service, name, kept, report_unavailable_ledger())
        except Exception as error:
            kept.seen_to_at = self._clock.now() + timedelta(seconds=RETRY_S)
            log.error("monitor was not looked at", monitor=name, **describe_exception(error))

    def _find_due(self, watched: WatchedRun, kept: _RunMemory) -> _WaitingRun | None:
        """Return a run with its due looks, or None. End the monitor if its horizon is over."""
        monitors, windows = watched.service.ledger.monitors, watched.plan.windows
        now = self._clock.now()
        newest = find_look_moment(windows, watched.run.last_look) if watched.run.last_look else now
        if newest - now > windows.every:
            raise refuse_future_looks(watched.plan.monitor.name, newest)
        states = {state.window: state for state in monitors.list_open_windows(watched.run.run)}
        due = list_due_looks(
            windows,
            since=self._since(watched.run).astimezone(UTC).replace(tzinfo=None),
            now=now,
            made={window: state.look for window, state in states.items()},
            closed=monitors.list_closed_windows(watched.run.run) | watched.run.excluded_windows,
            early=watched.plan.alerts_early,
        )
        kept.late_since = min((one.due_at + windows.delay for one in due), default=None)
        if not due:
            moment = find_next_moment(windows, now=now)
            kept.seen_to_at = moment or datetime.max
            if moment is None:
                monitors.end_run(watched.run.run, by="keyhole", why="its horizon is over")
                watched.service.telemetry.log_ended_monitor(watched.plan.monitor.name)
            return None
        kept.seen_to_at = now + timedelta(seconds=RETRY_S)
        return _WaitingRun(watched, kept, due, states)

    @contextmanager
    def _lease_runs(self, service: Service, waiting: Sequence[_WaitingRun]) -> Iterator[list[_WaitingRun]]:
        """Yield the runs for which this runner may look during the block.

        Their leases are taken in one transaction, and given back in one.
        """
        monitors = service.ledger.monitors
        held: frozenset[str] = frozenset()
        try:
            if waiting:
                held = monitors.take_leases([one.name for one in waiting], holder=self._holder, seconds=_LEASE_S)
        except LedgerError:
            for one in waiting:
                self._log_complaint_once(service, one.name, one.memory, report_unavailable_ledger())
        else:
            for one in waiting:
                if one.name not in held:
                    one.memory.complaint = ""
        try:
            yield [one for one in waiting if one.name in held]
        finally:
            if held:
                with suppress(LedgerError):
                    monitors.release_leases(held, holder=self._holder)

    def _prepare_looks(self, one: _WaitingRun) -> list[PreparedLook]:
        """Draw and store the noise for the due looks, and return the prepared looks."""
        watched, prepared = one.watched, []
        with self._log_what_prevents(watched.service, one.name, watched.run.run, one.memory):
            looks = (watched.prepare_look(each, one.states.get(each.window)) for each in one.due)
            prepared = [look for look in looks if look is not None]
            one.memory.complaint = ""
        return prepared

    def _make_looks(self, looks: Sequence[PreparedLook]) -> None:
        """Make the looks, earlier moments first. After a failed look, skip its monitor for this round."""
        failed: set[str] = set()
        in_order = sorted(looks, key=lambda one: one.due.due_at)
        for _, together in groupby(in_order, key=lambda one: one.due.due_at):
            wanted = [one for one in together if one.watched.run.run not in failed]
            for one, values in read_looks(wanted):
                if not self._record_look(one, values):
                    failed.add(one.watched.run.run)
        for one in looks:
            if one.watched.run.run not in failed:
                kept = self._attention[one.watched.plan.monitor.name]
                kept.late_since, kept.seen_to_at = None, datetime.min

    def _record_look(self, one: PreparedLook, values: Integers | KeyholeError) -> bool:
        """Record one look. Return False if that failed and must be tried again."""
        seen, name, number = one.watched.service.telemetry, one.watched.plan.monitor.name, one.due.moment_number
        if isinstance(values, KeyholeError):
            seen.count_look(LookEnding.FAILED, monitor=name, number=number, code=values.code)
            return False
        try:
            one.record_look(values)
        except LookAlreadyRecorded:
            seen.count_look(LookEnding.TAKEN, monitor=name, number=number)
        except (MonitorStopped, WindowClosed):
            pass  # paused, ended or closed meanwhile: nothing is due any more
        except LedgerError:
            seen.count_look(LookEnding.FAILED, monitor=name, number=number, code=report_unavailable_ledger().code)
            return False
        except Exception as error:  # the other monitors' looks are recorded all the same
            log.error("monitor was not looked at", monitor=name, **describe_exception(error))
            return False
        else:
            seen.count_look(LookEnding.MADE, monitor=name, number=number)
            self._on_look(name)
        return True

    def _plan_monitor(self, service: Service, monitor: Monitor) -> MonitorPlan:
        """Return the plan of a monitor under the current policy. Raise KeyholeError."""
        known = self._plans.get(monitor.name)
        if known is None:
            try:
                known = plan_monitor(service.catalog, monitor, dialect=service.source.dialect)
            except KeyholeError as error:
                known = error
            self._plans[monitor.name] = known
        if isinstance(known, KeyholeError):
            raise known
        return known

    def _log_complaint_once(self, service: Service, name: str, kept: _RunMemory, error: KeyholeError) -> None:
        """Log once why a monitor's looks cannot be made."""
        kept.seen_to_at = self._clock.now() + timedelta(seconds=RETRY_S)
        kept.late_since = kept.late_since or self._clock.now()
        if kept.complaint != error.message:
            kept.complaint = error.message
            service.telemetry.note_stuck_monitor(name, code=error.code, why=error.message)

    def _measure_lateness(self) -> Mapping[str, float]:
        now = self._clock.now()
        return {
            name: 0.0 if kept.late_since is None else max(0.0, (now - kept.late_since).total_seconds())
            for name, kept in tuple(self._attention.items())
        }


@asynccontextmanager
async def run_looks(runner: MonitorRunner) -> AsyncIterator[None]:
    """Make due looks every `POLL_S` seconds in a separate thread, while the block runs."""
    stopping = threading.Event()

    def look_again() -> None:
        while not stopping.wait(POLL_S):
            try:
                runner.make_due_looks()
            except Exception as error:
                log.error("monitors were not looked at", **describe_exception(error))

    # a daemon, since whoever ends need not wait for a look: one that is not recorded is made again
    thread = threading.Thread(target=look_again, name="keyhole-monitors", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        await asyncio.to_thread(thread.join, _LEFT_S)
