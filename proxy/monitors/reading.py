"""The analysts' view of monitors: which they may read, their progress, and their alerts.

Guarantee: all of it is public (policy and clock) or was released by a look that the ledger has. An analyst
learns of a monitor only if its policy names the analyst, and only after being charged for reading it.
"""

import json
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import Lock
from typing import Any, Protocol

from accountant.errors import LedgerError, OverBudget
from accountant.ledger import Ledger
from accountant.monitor_model import MonitorRun, MonitorState
from planner.catalog.key_space import KeySpace
from planner.catalog.monitor import Monitor
from planner.errors import KeyholeError
from planner.extract.extract import declare_monitor
from planner.extract.virtual_relations import MonitorRelation
from planner.monitors.build import plan_monitor
from planner.monitors.explain import explain_monitor, explain_monitor_briefly, make_monitor_json
from planner.monitors.guarantee import write_promise
from planner.monitors.monitor_plan import MonitorPlan, WindowPlan
from planner.scope.embedded import EmbeddedQuestion
from planner.statements.kinds import ExplainFormat
from planner.statements.listening import name_channel
from proxy.monitors.alert_json import Telling, as_utc, key_text, relation_row, write_iso, write_time
from proxy.monitors.notifications import (
    Admitted,
    Change,
    ClosedWindow,
    MonitorNews,
    ToldAlert,
    ToldClearing,
    Wanted,
    in_order_of_looks,
)
from proxy.monitors.read_refusals import reading_too_dear, unreadable_monitor
from proxy.monitors.schedule import count_moments, next_moment, number_of
from proxy.open_policy.accounts import find_limits
from proxy.open_policy.service import Service, Serving
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.pipeline.virtual_rows import RelationRows, VirtualRow
from proxy.shadow.address import OWNER
from proxy.shadow.key_labels import KeyLabels, refuse_unready_labels

NEVER_STARTED = "waiting"
"""The state of a monitor that was declared, and not started as it is declared now."""

_PASSING = ("KH502", "KH406")  # what is missing may be there again


class ReadsLabels(Protocol):
    """Reads what computed keys are shown as, from a shadow."""

    def read(self, question: EmbeddedQuestion, space: KeySpace, *, analyst: str) -> KeyLabels | None:
        """Return the labels of a question's keys; None if all are shown as they stand. Raise KH106, KH202 and KH406."""


@dataclass(frozen=True, slots=True)
class MonitorStatus:
    """The progress and promise of a monitor: all that its analysts may know of it beside its alerts.

    Times are UTC. `epsilon_per_unit` is None where each row is a unit by itself.
    """

    monitor: Monitor
    keys: tuple[str, ...]
    state: str
    reason: str
    window_length: timedelta
    looks_made: int
    looks_planned: int
    next_look: datetime | None
    last_look: datetime | None
    last_number: int
    fnr: float | None
    fpr: float | None
    tolerance: str
    epsilon_per_group: float
    epsilon_per_unit: float | None
    contract: str

    def row(self) -> VirtualRow:
        """Return its row in `keyhole.monitors`."""
        return (
            self.monitor.name,
            self.state,
            _interval(self.monitor.every),
            _interval(self.window_length),
            str(self.looks_made),
            str(self.looks_planned),
            write_time(self.next_look),
            write_time(self.last_look),
            _number(self.fnr),
            _number(self.fpr),
            self.tolerance,
            _number(self.epsilon_per_group),
            _number(self.epsilon_per_unit),
            self.reason or None,
        )

    def document(self) -> dict[str, Any]:
        """Return the same for programs."""
        return {
            "name": self.monitor.name,
            "comment": self.monitor.comment,
            "state": self.state,
            "reason": self.reason or None,
            "keys": list(self.keys),
            "every_s": self.monitor.every.total_seconds(),
            "window_s": self.window_length.total_seconds(),
            "looks_made": self.looks_made,
            "looks_planned": self.looks_planned,
            "look": self.last_number,
            "next_look": write_iso(self.next_look),
            "last_look": write_iso(self.last_look),
            "fnr": self.fnr,
            "fpr": self.fpr,
            "tolerance": self.tolerance,
            "epsilon_per_group": self.epsilon_per_group,
            "epsilon_per_unit": self.epsilon_per_unit,
            "contract": self.contract,
        }


@dataclass(frozen=True, slots=True)
class AlertsRead:
    """The changes of whole looks: alerts that came, and alerts, of these looks or earlier ones, that they cleared.

    The alerts follow the look `last_look`. `more`: there is something.
    """

    alerts: tuple[ToldAlert, ...]
    cleared: tuple[ToldClearing, ...]
    last_look: int
    more: bool

    @property
    def changes(self) -> tuple[Change, ...]:
        """Alerts and clearings."""
        return in_order_of_looks(self.alerts, self.cleared)


class MonitorReading:
    """Reads the monitors of an open service. Every method may be called from any thread, and raises KH502."""

    def __init__(self, service: Service, labels: ReadsLabels | None = None) -> None:
        """Take `labels`, which read how computed keys are shown."""
        self.service = service
        self._lock = Lock()
        self._plans: dict[Monitor, tuple[str, MonitorPlan]] = {}
        self._read_labels = labels
        self._labels: dict[Monitor, tuple[str, KeyLabels | None]] = {}
        self._paid: set[tuple[str, str]] = set()

    # --- for statements

    def check_readable(self, name: str, *, analyst: str, position: int | None) -> None:
        """Raise KH605, with the place of its name, unless the analyst may read the monitor."""
        self.find(name, analyst=analyst, position=position)

    def read_alerts(self, name: str, *, analyst: str) -> RelationRows:
        """Return the rows of a monitor's relation. Raise KH306, KH605."""
        monitor = self.find(name, analyst=analyst)
        run = self._run(monitor)
        if run is None:
            return RelationRows((), (self._why_nothing(monitor),))
        self._pay(run, analyst=analyst)
        relation, plan = self._relation(monitor), self.plan(monitor)
        answered = tuple(name for name, _ in relation.columns[: -len(relation.times)])
        read = self._read(run, Telling(plan, run, answered), after=0)
        notices = () if run.state is MonitorState.RUNNING else (f"the monitor {name} is {run.state}: {run.reason}.",)
        return RelationRows(tuple(relation_row(alert, relation.times) for alert in read.alerts), notices)

    def list_monitors(self, *, analyst: str) -> RelationRows:
        """Return the rows of `keyhole.monitors`."""
        return RelationRows(tuple(self.status(one).row() for one in self.readable(analyst)))

    def list_alerts(self, *, analyst: str) -> RelationRows:
        """Return the rows of `keyhole.alerts`.

        A monitor that does not fit the analyst's own cap is left out, and a notice says so.
        """
        rows: list[VirtualRow] = []
        notices: list[str] = []
        for monitor in self.readable(analyst):
            try:
                read = self.alerts(monitor, analyst=analyst)
            except KeyholeError as error:
                if error.code != "KH306":
                    raise
                notices.append(f"alerts of {monitor.name} are left out: {error.message}.")
                continue
            rows.extend(
                (
                    alert.monitor,
                    key_text(alert.key),
                    write_time(alert.window_start),
                    write_time(alert.alerted_at),
                    str(alert.number),
                    write_time(alert.cleared_at),
                )
                for alert in read.alerts
            )
        return RelationRows(tuple(rows), tuple(notices))

    def explain(self, name: str, *, analyst: str, form: ExplainFormat) -> tuple[str, ...]:
        """Return EXPLAIN's lines for the relation of a monitor. Raise KH605."""
        plan = self.plan(self.find(name, analyst=analyst))
        if form == "json":
            return (json.dumps([{"Keyhole": make_monitor_json(plan)}], indent=2, ensure_ascii=False),)
        return explain_monitor(plan) if form == "verbose" else explain_monitor_briefly(plan)

    # --- for everybody

    def readable(self, analyst: str) -> tuple[Monitor, ...]:
        """Return the monitors that an analyst may read, in the policy's order."""
        return tuple(one for one in self.service.catalog.monitors if analyst in one.analysts)

    def find(self, name: str, *, analyst: str, position: int | None = None) -> Monitor:
        """Return the monitor of that name. Raise KH605 if there is none that the analyst may read."""
        found = self.service.catalog.find_monitor(name)
        if found is None or analyst not in found.analysts:
            raise unreadable_monitor(name, position=position)
        return found

    def plan(self, monitor: Monitor) -> MonitorPlan:
        """Return its plan under the current policy."""
        catalog = self.service.catalog
        with self._lock:
            known = self._plans.get(monitor)
            if known is None or known[0] != catalog.digest:
                made = plan_monitor(catalog, monitor, dialect=self.service.dialect)
                known = self._plans[monitor] = (catalog.digest, made)
            return known[1]

    def status(self, monitor: Monitor) -> MonitorStatus:
        """Return the progress of a monitor, by the ledger and the clock."""
        plan, run = self.plan(monitor), self._run(monitor)
        windows, number = plan.windows, 0 if run is None else run.last_look
        running = run is not None and run.state is MonitorState.RUNNING
        return MonitorStatus(
            monitor=monitor,
            keys=self._keys(monitor),
            state=NEVER_STARTED if run is None else run.state.value,
            reason="" if run is None else run.reason,
            window_length=windows.length,
            looks_made=0 if run is None else run.looks_made,
            looks_planned=count_moments(windows),
            next_look=_next_look(windows, newest=number) if running or run is None else None,
            last_look=_moment(windows, number) if number else None,
            last_number=number,
            # as they were asked for: what the mechanism keeps is a little less, by its rounding
            fnr=None if plan.standing.fnr is None else plan.question.accuracy.fnr,
            fpr=None if plan.standing.fpr is None else plan.question.accuracy.fpr,
            tolerance=monitor.tolerance or self.service.catalog.defaults.tolerance,
            epsilon_per_group=plan.epsilon_per_cell,
            epsilon_per_unit=plan.epsilon_per_unit if plan.question.table.unit else None,
            contract=write_promise(plan),
        )

    def begin(self, monitor: Monitor, *, analyst: str) -> int:
        """Charge the reader and return the number of the last look, after which alerts will be sent. Raise KH306."""
        run = self._run(monitor)
        if run is None:
            return 0
        self._pay(run, analyst=analyst)
        return run.last_look

    def alerts(self, monitor: Monitor, *, analyst: str, after: int = 0, most: int | None = None) -> AlertsRead:
        """Return the alerts and clearings of a monitor after a look, of whole looks, as few as make `most` of both.

        The reader is charged. Raise KH306 if the reader's own cap does not cover it.
        """
        run = self._run(monitor)
        if run is None:
            return _nothing(after)
        self._pay(run, analyst=analyst)
        return self._alerts(monitor, run, after=after, most=most)

    def alerts_for_owner(self, monitor: Monitor, *, after: int = 0) -> AlertsRead:
        """Return the same for the owner, who is not charged for reading."""
        run = self._run(monitor)
        return _nothing(after) if run is None else self._alerts(monitor, run, after=after)

    def _alerts(self, monitor: Monitor, run: MonitorRun, *, after: int, most: int | None = None) -> AlertsRead:
        if run.last_look <= after:
            return _nothing(after)
        telling = Telling(self.plan(monitor), run, self._keys(monitor), self.label_keys(monitor))
        return self._read(run, telling, after=after, most=most)

    def _read(self, run: MonitorRun, telling: Telling, *, after: int, most: int | None = None) -> AlertsRead:
        with _asking_ledger():
            page = self._ledger.monitors.read_changes(run.run, after_number=after, limit=most)
        came, cleared = tuple(map(telling.tell, page.alerts)), tuple(map(telling.tell_clearing, page.cleared))
        return AlertsRead(came, cleared, page.last_look, page.has_more)

    def read_news(self, wanted: Collection[Wanted], *, origin: int) -> Mapping[Wanted, MonitorNews | KeyholeError]:
        """Return the news as the news desk has it.

        Each run and each stretch of looks is read once for all who want it.
        """
        runs: dict[str, MonitorRun | None] = {}
        read: dict[tuple[str, int], MonitorNews] = {}
        found: dict[Wanted, MonitorNews | KeyholeError] = {}
        for one in wanted:
            try:
                monitor = self.find(one.monitor, analyst=one.analyst)
                if one.monitor not in runs:
                    runs[one.monitor] = self._run(monitor)
                run = runs[one.monitor]
                if run is not None:
                    self._pay(run, analyst=one.analyst)
                after = (0 if run is None else run.last_look) if one.after is None else one.after
                if (one.monitor, after) not in read:
                    read[one.monitor, after] = self._news(monitor, run, after=after, origin=origin)
                found[one] = read[one.monitor, after]
            except KeyholeError as error:
                if error.code in _PASSING:
                    raise
                found[one] = error
        return found

    def _news(self, monitor: Monitor, run: MonitorRun | None, *, after: int, origin: int) -> MonitorNews:
        state = NEVER_STARTED if run is None else run.state.value
        if run is None or run.last_look <= after:
            return MonitorNews(monitor.name, state, "" if run is None else run.reason, after, origin)
        page = self._alerts(monitor, run, after=after)
        closed = tuple(_list_closed(self.plan(monitor).windows, after=after, last=page.last_look))
        return MonitorNews(monitor.name, state, run.reason, page.last_look, origin, page.alerts, page.cleared, closed)

    def admit(self, channel: str, *, analyst: str) -> Admitted | None:
        """Return the monitor with a channel, if the analyst may read it, and charge the reading. Raise KH306."""
        for monitor in self.readable(analyst):
            if name_channel(monitor.name) == channel:
                return Admitted(monitor.name, self.begin(monitor, analyst=analyst))
        return None

    @property
    def _ledger(self) -> Ledger:
        return self.service.ledger

    def label_keys(self, monitor: Monitor) -> KeyLabels | None:
        """Return how the groups of computed keys are shown; None if all keys are shown as they stand.

        Raises KH106, KH202 and KH406 where PostgreSQL does not show them.
        """
        catalog = self.service.catalog
        known = self._labels.get(monitor)
        if known is None or known[0] != catalog.digest:
            question = self._relation(monitor).question
            made = None
            if question.shown_keys is not None:
                if self._read_labels is None:
                    raise refuse_unready_labels()
                role = next((analyst.name for analyst in catalog.analysts), OWNER)
                made = self._read_labels.read(question, self.plan(monitor).question.keys, analyst=role)
            known = self._labels[monitor] = (catalog.digest, made)
        return known[1]

    def _relation(self, monitor: Monitor) -> MonitorRelation:
        return declare_monitor(monitor, self.service.catalog)

    def _keys(self, monitor: Monitor) -> tuple[str, ...]:
        """Return the question's keys by the names that its relation has for them."""
        return self._relation(monitor).keys

    def _run(self, monitor: Monitor) -> MonitorRun | None:
        """Return its newest run, if that was started as it is declared now."""
        with _asking_ledger():
            run = self._ledger.monitors.find(monitor.name)
        return run if run is not None and run.fingerprint == self.plan(monitor).fingerprint else None

    def _why_nothing(self, monitor: Monitor) -> str:
        with _asking_ledger():
            run = self._ledger.monitors.find(monitor.name)
        if run is None:
            return f"the monitor {monitor.name} was not started yet: it has alerted nothing"
        return f"the monitor {monitor.name} was declared anew, and was not started since: it has alerted nothing"

    def _pay(self, run: MonitorRun, *, analyst: str) -> None:
        """Charge an analyst for reading a run, once. Raise KH306."""
        if (run.run, analyst) in self._paid:
            return
        # the owner named its readers: that needs no other word
        caps = replace(find_limits(self.service.catalog, self.service.find_analyst(analyst)), approval_above_nano=None)
        try:
            with _asking_ledger():
                self._ledger.monitors.charge_reader(run.run, analyst, caps)
        except OverBudget as over:
            raise reading_too_dear(run.monitor, over) from None
        self._paid.add((run.run, analyst))


class Readings:
    """The reading of whichever service answers now; the news desk of a process. Safe to share between threads."""

    def __init__(self, serving: Serving, labels: ReadsLabels | None = None) -> None:
        self._serving = serving
        self._labels = labels
        self._lock = Lock()
        self._numbers = count(1)
        self._newest: tuple[int, MonitorReading] | None = None

    @contextmanager
    def using(self) -> Iterator[MonitorReading]:
        """Yield the reading, while its service stays open."""
        with self.numbered() as (_, reading):
            yield reading

    @contextmanager
    def numbered(self) -> Iterator[tuple[int, MonitorReading]]:
        """Yield the reading, with a number that changes once another service answers."""
        with self._serving.hold_open() as service:
            with self._lock:
                if self._newest is None or self._newest[1].service is not service:
                    self._newest = next(self._numbers), MonitorReading(service, self._labels)
                newest = self._newest
            yield newest

    def admit(self, channel: str, *, analyst: str) -> Admitted | None:
        """Return the monitor as the news desk has it."""
        with self.using() as reading:
            return reading.admit(channel, analyst=analyst)

    def read_news(self, wanted: Collection[Wanted]) -> Mapping[Wanted, MonitorNews | KeyholeError]:
        """Return the news as the news desk has it."""
        with self.numbered() as (origin, reading):
            return reading.read_news(wanted, origin=origin)


def _nothing(after: int) -> AlertsRead:
    return AlertsRead((), (), after, more=False)


@contextmanager
def _asking_ledger() -> Iterator[None]:
    try:
        yield
    except OverBudget:
        raise
    except LedgerError:
        raise report_unavailable_ledger() from None


def _list_closed(windows: WindowPlan, *, after: int, last: int) -> Iterator[ClosedWindow]:
    """Yield the windows whose last look is one of those after a look, up to another."""
    before_last = (windows.looks - 1) * windows.every
    first, end = (
        bisect_right(windows.first_looks, windows.first_looks[0] + (number - 1) * windows.every - before_last)
        for number in (after, last)
    )
    for window in range(first, end):
        yield ClosedWindow(number_of(windows, windows.find_close(window)), as_utc(windows.starts[window]))


def _moment(windows: WindowPlan, number: int) -> datetime:
    return as_utc(windows.first_looks[0] + (number - 1) * windows.every)


def _next_look(windows: WindowPlan, *, newest: int) -> datetime | None:
    moment = next_moment(windows, now=datetime.now(UTC).replace(tzinfo=None), newest=newest)
    return None if moment is None else as_utc(moment)


def _interval(length: timedelta) -> str:
    return f"{length.total_seconds():.6f} seconds"


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.9g}"
