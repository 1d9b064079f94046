"""Who looks when: in every process that serves, a thread that makes the looks that are due.

Guarantee: whoever looks at the same time as another process looks in vain, and no more than that; the ledger records
each look once. A look that fails is tried again until the next one is due; nothing is told of it but that it is late.
"""

import asyncio
import os
import socket
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter

import structlog

from accountant.errors import LedgerError, LookTaken, MonitorStopped, WindowLost, WindowOver
from accountant.monitor_model import MonitorRun, MonitorState, WindowState
from planner.catalog.monitors import Monitor
from planner.errors import KeyholeError
from planner.monitors.build import plan_monitor
from planner.monitors.model import MonitorPlan
from proxy.monitors.look import LONGEST_MS, WatchedRun
from proxy.monitors.refusals import changed_since_start, window_lost
from proxy.monitors.schedule import DueLook, list_due, next_moment
from proxy.observe.logs import fault
from proxy.observe.telemetry import GaugeReading, LookEnding
from proxy.service.refusals import ledger_unavailable
from proxy.service.service import Service, Serving

log = structlog.get_logger("keyhole.monitors")

POLL_S = 2.0
"""How late a monitor that was just started is noticed, against questions to the ledger."""
RETRY_S = 5.0  # between a look that failed and the next try: set, not measured
_LEASE_S = LONGEST_MS / 1000  # who dies while looking holds others up for so long, where nobody ends the lease
_LEFT_S = 5.0  # how long whoever ends waits for a look under way: what is not recorded is made again


@dataclass(slots=True)
class _Attention:
    """What a runner remembers of a run between rounds: when it is to be seen to, and since when a look is late."""

    run: str
    seen_to_at: datetime = datetime.min
    late_since: datetime | None = None
    complaint: str = ""


class MonitorRunner:
    """Makes the looks of all monitors of whichever policy answers now. One in a process.

    Parameters:
        clock: what time it is, UTC; looks are made by it, and it decides nothing else.
        since: from when on a run looks; windows that had closed by then it never begins. The moment of its start.
        told: called with a monitor's name when a look was recorded.
    """

    def __init__(
        self,
        serving: Serving,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        since: Callable[[MonitorRun], datetime] = attrgetter("started_at"),
        told: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._serving = serving
        self._clock = clock
        self._since = since
        self._told = told
        self._holder = f"{socket.gethostname()} {os.getpid()} {uuid.uuid4().hex[:8]}"
        self._attention: dict[str, _Attention] = {}
        self._plans: dict[str, _Planned] = {}

    @property
    def reading(self) -> GaugeReading:
        """How late the oldest look that is due is, by monitor."""
        return GaugeReading(
            "keyhole_monitor_late_seconds", "How late the look is that is due", "monitor", self._lateness
        )

    def look_around(self) -> None:
        """Make every look that is due by now, one after the other."""
        with self._serving.using() as service:
            if not service.catalog.monitors:
                return
            newest = {run.monitor: run for run in service.ledger.monitors.runs()}
            for monitor in service.catalog.monitors:
                run = newest.get(monitor.name)
                if run is None or run.state is not MonitorState.RUNNING:
                    self._attention.pop(monitor.name, None)
                else:
                    self._attend(service, monitor, run)

    def _attend(self, service: Service, monitor: Monitor, run: MonitorRun) -> None:
        kept = self._attention.get(monitor.name)
        if kept is None or kept.run != run.run:
            kept = self._attention[monitor.name] = _Attention(run.run)
        try:
            plan = self._plan(service, monitor)
            if plan.fingerprint != run.fingerprint:
                raise changed_since_start(monitor.name)
            if self._now() >= kept.seen_to_at:
                self._look_at_due(WatchedRun(service, plan, run, self._holder), kept)
        except KeyholeError as error:
            self._complain(service, monitor.name, kept, error)
        except WindowLost as lost:
            self._complain(service, monitor.name, kept, window_lost(monitor.name, lost.windows))
            for window in lost.windows:
                service.ledger.monitors.close_window(run.run, window, None)
        except LedgerError:
            self._complain(service, monitor.name, kept, ledger_unavailable())
        except Exception as error:  # the other monitors are looked at all the same
            kept.seen_to_at = self._now() + timedelta(seconds=RETRY_S)
            log.error("monitor was not looked at", monitor=monitor.name, **fault(error))
        else:
            kept.complaint = ""

    def _look_at_due(self, watch: WatchedRun, kept: _Attention) -> None:
        """Make the looks of one monitor that are due, if nobody else is about to."""
        monitors, windows = watch.service.ledger.monitors, watch.plan.windows
        now = self._now()
        states = {state.window: state for state in monitors.open_windows(watch.run.run)}
        due = list_due(
            windows,
            since=self._since(watch.run).astimezone(UTC).replace(tzinfo=None),
            now=now,
            made={window: state.look for window, state in states.items()},
            closed=monitors.closed_windows(watch.run.run) | watch.run.excluded,
            early=watch.plan.early,
        )
        kept.late_since = min((one.at + windows.lateness for one in due), default=None)
        if not due:
            kept.seen_to_at = next_moment(windows, now=now) or datetime.max
            return
        kept.seen_to_at = now + timedelta(seconds=RETRY_S)
        with self._leased(watch) as is_ours:
            if is_ours and all(self._make(watch, one, states.get(one.window)) for one in due):
                kept.late_since, kept.seen_to_at = None, now

    def _make(self, watch: WatchedRun, due: DueLook, state: WindowState | None) -> bool:
        """Make one look; whether it is made now, by whomever."""
        seen, name = watch.service.telemetry, watch.plan.monitor.name
        try:
            watch.look(due, state)
        except LookTaken:
            seen.look(LookEnding.TAKEN, monitor=name, number=due.number)
        except (MonitorStopped, WindowOver):
            pass  # paused, ended or closed meanwhile: nothing is due any more
        except KeyholeError as error:
            seen.look(LookEnding.FAILED, monitor=name, number=due.number, code=error.code)
            return False
        else:
            seen.look(LookEnding.MADE, monitor=name, number=due.number)
            self._told(name)
        return True

    @contextmanager
    def _leased(self, watch: WatchedRun) -> Iterator[bool]:
        """Whether the looks of a monitor are this runner's to make while the block runs."""
        monitors, name = watch.service.ledger.monitors, watch.plan.monitor.name
        if not monitors.take_lease(name, holder=self._holder, seconds=_LEASE_S):
            yield False
            return
        try:
            yield True
        finally:
            monitors.give_lease_back(name, holder=self._holder)

    def _plan(self, service: Service, monitor: Monitor) -> MonitorPlan:
        """The plan of a monitor under the policy that answers now. Raises KeyholeError."""
        known = self._plans.get(monitor.name)
        if known is None or known.digest != service.catalog.digest:
            known = self._plans[monitor.name] = _Planned.of(service, monitor)
        if isinstance(known.plan, KeyholeError):
            raise known.plan
        return known.plan

    def _complain(self, service: Service, name: str, kept: _Attention, error: KeyholeError) -> None:
        """Say once what keeps a monitor from being looked at."""
        kept.seen_to_at = self._now() + timedelta(seconds=RETRY_S)
        if kept.complaint != error.message:
            kept.complaint = error.message
            service.telemetry.monitor_stuck(name, code=error.code, why=error.message)

    def _lateness(self) -> Mapping[str, float]:
        now = self._now()
        return {
            name: 0.0 if kept.late_since is None else max(0.0, (now - kept.late_since).total_seconds())
            for name, kept in tuple(self._attention.items())
        }

    def _now(self) -> datetime:
        return self._clock().astimezone(UTC).replace(tzinfo=None)


@dataclass(frozen=True, slots=True)
class _Planned:
    """What planning a monitor came to under the policy of that digest."""

    digest: str
    plan: MonitorPlan | KeyholeError

    @staticmethod
    def of(service: Service, monitor: Monitor) -> "_Planned":
        try:
            plan: MonitorPlan | KeyholeError = plan_monitor(service.catalog, monitor, dialect=service.source.dialect)
        except KeyholeError as error:
            plan = error
        return _Planned(service.catalog.digest, plan)


@asynccontextmanager
async def looking(runner: MonitorRunner) -> AsyncIterator[None]:
    """While the block runs, look around every `POLL_S` seconds in a thread of its own."""
    stopping = threading.Event()

    def look_again() -> None:
        while not stopping.wait(POLL_S):
            try:
                runner.look_around()
            except Exception as error:
                log.error("monitors were not looked at", **fault(error))

    # a daemon, since whoever ends need not wait for a look: one that is not recorded is made again
    thread = threading.Thread(target=look_again, name="keyhole-monitors", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        await asyncio.to_thread(thread.join, _LEFT_S)
