"""Monitors as analysts see them: which ones they may read, their progress, and their alerts.

Guarantee: everything is public (policy and clock), or was released by a look that the ledger has. An analyst sees a
monitor only if the policy names the analyst as a reader. Alerts are sent only after the analyst was charged for
reading.
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
from proxy.monitors.alert_json import (
    AlertWriter,
    convert_to_utc,
    encode_key,
    make_relation_row,
    write_iso,
    write_postgres_time,
)
from proxy.monitors.notifications import (
    AdmittedMonitor,
    AlertNotice,
    Change,
    ClearingNotice,
    ClosedWindow,
    MonitorNews,
    NewsRequest,
    sort_by_look,
)
from proxy.monitors.read_refusals import refuse_expensive_reading, refuse_unreadable_monitor
from proxy.monitors.schedule import count_moments, find_look_number, find_next_moment
from proxy.open_policy.accounts import find_limits
from proxy.open_policy.service import Service, Serving
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.pipeline.virtual_rows import RelationRows, VirtualRow
from proxy.shadow.address import OWNER
from proxy.shadow.key_labels import KeyLabels, refuse_unready_labels

NEVER_STARTED = "waiting"
"""The state of a monitor that was declared, and not started as it is declared now."""

_PASSING = ("KH502", "KH406")  # what is missing may be there again


class LabelSource(Protocol):
    """An interface that returns the labels of computed keys. A shadow implements it."""

    def read_labels(self, question: EmbeddedQuestion, space: KeySpace, *, analyst: str) -> KeyLabels | None:
        """Return the labels of a question's keys, or None if all are shown unchanged. Raise KH106, KH202 and KH406."""


@dataclass(frozen=True, slots=True)
class MonitorStatus:
    """The progress and promise of a monitor. Analysts see only this and the alerts.

    Times are in UTC. `epsilon_per_unit` is None if each row is its own privacy unit.
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

    def make_row(self) -> VirtualRow:
        """Return the monitor's row in `keyhole.monitors`."""
        return (
            self.monitor.name,
            self.state,
            _write_interval(self.monitor.every),
            _write_interval(self.window_length),
            str(self.looks_made),
            str(self.looks_planned),
            write_postgres_time(self.next_look),
            write_postgres_time(self.last_look),
            _write_number(self.fnr),
            _write_number(self.fpr),
            self.tolerance,
            _write_number(self.epsilon_per_group),
            _write_number(self.epsilon_per_unit),
            self.reason or None,
        )

    def make_document(self) -> dict[str, Any]:
        """Return the status as JSON."""
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
class NoticePage:
    """The changes of some looks: new alerts, and earlier or new alerts that were cleared.

    Each look is included whole. `last_look` is the number of the last one. `has_more` is True if there are later
    changes.
    """

    alerts: tuple[AlertNotice, ...]
    cleared: tuple[ClearingNotice, ...]
    last_look: int
    has_more: bool

    @property
    def changes(self) -> tuple[Change, ...]:
        """The alerts and clearings."""
        return sort_by_look(self.alerts, self.cleared)


class ServiceMonitorReader:
    """A reader of an open service's monitors. Every method may be called from any thread, and may raise KH502."""

    def __init__(self, service: Service, labels: LabelSource | None = None) -> None:
        """Store the service, and `labels`, which returns the labels of computed keys."""
        self.service = service
        self._lock = Lock()
        self._plans: dict[Monitor, tuple[str, MonitorPlan]] = {}
        self._read_labels = labels
        self._labels: dict[Monitor, tuple[str, KeyLabels | None]] = {}
        self._paid: set[tuple[str, str]] = set()

    # --- for statements

    def check_readable(self, name: str, *, analyst: str, position: int | None) -> None:
        """Raise KH605 unless the analyst may read the monitor. `position` is where the text names it."""
        self.find_readable(name, analyst=analyst, position=position)

    def read_alerts(self, name: str, *, analyst: str) -> RelationRows:
        """Return a monitor's alerts, as the rows of its relation. Charge the analyst for reading.

        Raise KH306 if the analyst's own cap does not cover it, KH605 for a monitor that the analyst may not read.
        """
        monitor = self.find_readable(name, analyst=analyst)
        run = self._find_run(monitor)
        if run is None:
            return RelationRows((), (self._explain_silence(monitor),))
        self._charge_reader(run, analyst=analyst)
        relation, plan = self._find_relation(monitor), self.plan_monitor(monitor)
        answered = tuple(name for name, _ in relation.columns[: -len(relation.time_columns)])
        read = self._read_run(run, AlertWriter(plan, run, answered), after=0)
        notices = () if run.state is MonitorState.RUNNING else (f"the monitor {name} is {run.state}: {run.reason}.",)
        return RelationRows(tuple(make_relation_row(alert, relation.time_columns) for alert in read.alerts), notices)

    def list_monitors(self, *, analyst: str) -> RelationRows:
        """Return the rows of `keyhole.monitors`."""
        return RelationRows(tuple(self.read_status(one).make_row() for one in self.list_readable(analyst)))

    def list_alerts(self, *, analyst: str) -> RelationRows:
        """Return the rows of `keyhole.alerts`.

        A monitor whose reading exceeds the analyst's own cap is left out, and a notice says so.
        """
        rows: list[VirtualRow] = []
        notices: list[str] = []
        for monitor in self.list_readable(analyst):
            try:
                read = self.read_alert_page(monitor, analyst=analyst)
            except KeyholeError as error:
                if error.code != "KH306":
                    raise
                notices.append(f"alerts of {monitor.name} are left out: {error.message}.")
                continue
            rows.extend(
                (
                    alert.monitor,
                    encode_key(alert.key),
                    write_postgres_time(alert.window_start),
                    write_postgres_time(alert.alerted_at),
                    str(alert.number),
                    write_postgres_time(alert.cleared_at),
                )
                for alert in read.alerts
            )
        return RelationRows(tuple(rows), tuple(notices))

    def explain(self, name: str, *, analyst: str, form: ExplainFormat) -> tuple[str, ...]:
        """Return EXPLAIN's lines for a query of the monitor's relation.

        Raise KH605 if the analyst may not read the monitor.
        """
        plan = self.plan_monitor(self.find_readable(name, analyst=analyst))
        if form == "json":
            return (json.dumps([{"Keyhole": make_monitor_json(plan)}], indent=2, ensure_ascii=False),)
        return explain_monitor(plan) if form == "verbose" else explain_monitor_briefly(plan)

    # --- for everybody

    def list_readable(self, analyst: str) -> tuple[Monitor, ...]:
        """Return the monitors that an analyst may read, in the policy's order."""
        return tuple(one for one in self.service.catalog.monitors if analyst in one.analysts)

    def find_readable(self, name: str, *, analyst: str, position: int | None = None) -> Monitor:
        """Return the monitor with that name. Raise KH605 if there is none that the analyst may read."""
        found = self.service.catalog.find_monitor(name)
        if found is None or analyst not in found.analysts:
            raise refuse_unreadable_monitor(name, position=position)
        return found

    def plan_monitor(self, monitor: Monitor) -> MonitorPlan:
        """Return the plan of a monitor under the current policy."""
        catalog = self.service.catalog
        with self._lock:
            known = self._plans.get(monitor)
            if known is None or known[0] != catalog.digest:
                made = plan_monitor(catalog, monitor, dialect=self.service.dialect)
                known = self._plans[monitor] = (catalog.digest, made)
            return known[1]

    def read_status(self, monitor: Monitor) -> MonitorStatus:
        """Return the progress and promise of a monitor, read from the ledger and the clock."""
        plan, run = self.plan_monitor(monitor), self._find_run(monitor)
        windows, number = plan.windows, 0 if run is None else run.last_look
        running = run is not None and run.state is MonitorState.RUNNING
        return MonitorStatus(
            monitor=monitor,
            keys=self._name_keys(monitor),
            state=NEVER_STARTED if run is None else run.state.value,
            reason="" if run is None else run.reason,
            window_length=windows.length,
            looks_made=0 if run is None else run.looks_made,
            looks_planned=count_moments(windows),
            next_look=_find_next_look(windows, newest=number) if running or run is None else None,
            last_look=_find_moment(windows, number) if number else None,
            last_number=number,
            # as they were asked for: what the mechanism keeps is a little less, by its rounding
            fnr=None if plan.standing.fnr is None else plan.question.accuracy.fnr,
            fpr=None if plan.standing.fpr is None else plan.question.accuracy.fpr,
            tolerance=monitor.tolerance or self.service.catalog.defaults.tolerance,
            epsilon_per_group=plan.epsilon_per_cell,
            epsilon_per_unit=plan.epsilon_per_unit if plan.question.table.unit else None,
            contract=write_promise(plan),
        )

    def begin_reading(self, monitor: Monitor, *, analyst: str) -> int:
        """Charge the analyst for reading a monitor, and return the number of its last look.

        Raise KH306 if the analyst's own cap does not cover the reading. The caller then sends alerts of later looks.
        """
        run = self._find_run(monitor)
        if run is None:
            return 0
        self._charge_reader(run, analyst=analyst)
        return run.last_look

    def read_alert_page(self, monitor: Monitor, *, analyst: str, after: int = 0, most: int | None = None) -> NoticePage:
        """Charge the analyst for reading, and return a monitor's alerts and clearings after a look.

        Looks are returned whole: as few as contain at least `most` alerts and clearings. Raise KH306 if the analyst's
        own cap does not cover the reading.
        """
        run = self._find_run(monitor)
        if run is None:
            return _make_empty_page(after)
        self._charge_reader(run, analyst=analyst)
        return self._read_alerts(monitor, run, after=after, most=most)

    def read_alerts_for_owner(self, monitor: Monitor, *, after: int = 0) -> NoticePage:
        """Return a page of alerts and clearings for the owner, after the look `after`. Nobody is charged."""
        run = self._find_run(monitor)
        return _make_empty_page(after) if run is None else self._read_alerts(monitor, run, after=after)

    def _read_alerts(self, monitor: Monitor, run: MonitorRun, *, after: int, most: int | None = None) -> NoticePage:
        if run.last_look <= after:
            return _make_empty_page(after)
        telling = AlertWriter(self.plan_monitor(monitor), run, self._name_keys(monitor), self.label_keys(monitor))
        return self._read_run(run, telling, after=after, most=most)

    def _read_run(self, run: MonitorRun, telling: AlertWriter, *, after: int, most: int | None = None) -> NoticePage:
        with _refuse_if_ledger_fails():
            page = self._ledger.monitors.read_changes(run.run, after_number=after, limit=most)
        came, cleared = tuple(map(telling.make_alert, page.alerts)), tuple(map(telling.make_clearing, page.cleared))
        return NoticePage(came, cleared, page.last_look, page.has_more)

    def read_news(
        self, wanted: Collection[NewsRequest], *, origin: int
    ) -> Mapping[NewsRequest, MonitorNews | KeyholeError]:
        """Return the news for each request, or the error if the analyst may not read the monitor.

        Each analyst is charged once for each run. Requests for the same looks share one reading of the ledger.
        """
        runs: dict[str, MonitorRun | None] = {}
        read: dict[tuple[str, int], MonitorNews] = {}
        found: dict[NewsRequest, MonitorNews | KeyholeError] = {}
        for one in wanted:
            try:
                monitor = self.find_readable(one.monitor, analyst=one.analyst)
                if one.monitor not in runs:
                    runs[one.monitor] = self._find_run(monitor)
                run = runs[one.monitor]
                if run is not None:
                    self._charge_reader(run, analyst=one.analyst)
                after = (0 if run is None else run.last_look) if one.after is None else one.after
                if (one.monitor, after) not in read:
                    read[one.monitor, after] = self._read_monitor_news(monitor, run, after=after, origin=origin)
                found[one] = read[one.monitor, after]
            except KeyholeError as error:
                if error.code in _PASSING:
                    raise
                found[one] = error
        return found

    def _read_monitor_news(self, monitor: Monitor, run: MonitorRun | None, *, after: int, origin: int) -> MonitorNews:
        state = NEVER_STARTED if run is None else run.state.value
        if run is None or run.last_look <= after:
            return MonitorNews(monitor.name, state, "" if run is None else run.reason, after, origin)
        page = self._read_alerts(monitor, run, after=after)
        closed = tuple(_list_closed_windows(self.plan_monitor(monitor).windows, after=after, last=page.last_look))
        return MonitorNews(monitor.name, state, run.reason, page.last_look, origin, page.alerts, page.cleared, closed)

    def admit_channel(self, channel: str, *, analyst: str) -> AdmittedMonitor | None:
        """Return the monitor that has this channel, if the analyst may read it, and charge the analyst.

        Raise KH306 if the analyst's own cap does not cover it.
        """
        for monitor in self.list_readable(analyst):
            if name_channel(monitor.name) == channel:
                return AdmittedMonitor(monitor.name, self.begin_reading(monitor, analyst=analyst))
        return None

    @property
    def _ledger(self) -> Ledger:
        return self.service.ledger

    def label_keys(self, monitor: Monitor) -> KeyLabels | None:
        """Return the labels of a monitor's computed keys, or None if all keys are shown unchanged.

        Raise KH106, KH202 and KH406 if PostgreSQL cannot compute the labels.
        """
        catalog = self.service.catalog
        known = self._labels.get(monitor)
        if known is None or known[0] != catalog.digest:
            question = self._find_relation(monitor).question
            made = None
            if question.shown_keys is not None:
                if self._read_labels is None:
                    raise refuse_unready_labels()
                role = next((analyst.name for analyst in catalog.analysts), OWNER)
                made = self._read_labels.read_labels(question, self.plan_monitor(monitor).question.keys, analyst=role)
            known = self._labels[monitor] = (catalog.digest, made)
        return known[1]

    def _find_relation(self, monitor: Monitor) -> MonitorRelation:
        return declare_monitor(monitor, self.service.catalog)

    def _name_keys(self, monitor: Monitor) -> tuple[str, ...]:
        """Return the names of the question's keys in the monitor's relation."""
        return self._find_relation(monitor).keys

    def _find_run(self, monitor: Monitor) -> MonitorRun | None:
        """Return the monitor's newest run, if the monitor's policy section has not changed since its start."""
        with _refuse_if_ledger_fails():
            run = self._ledger.monitors.find_newest_run(monitor.name)
        return run if run is not None and run.fingerprint == self.plan_monitor(monitor).fingerprint else None

    def _explain_silence(self, monitor: Monitor) -> str:
        with _refuse_if_ledger_fails():
            run = self._ledger.monitors.find_newest_run(monitor.name)
        if run is None:
            return f"the monitor {monitor.name} was not started yet: it has alerted nothing"
        return f"the monitor {monitor.name} was declared anew, and was not started since: it has alerted nothing"

    def _charge_reader(self, run: MonitorRun, *, analyst: str) -> None:
        """Charge an analyst once for reading a run. Raise KH306 if the budget does not suffice."""
        if (run.run, analyst) in self._paid:
            return
        # the owner named its readers: that needs no other word
        caps = replace(find_limits(self.service.catalog, self.service.find_analyst(analyst)), approval_above_nano=None)
        try:
            with _refuse_if_ledger_fails():
                self._ledger.monitors.charge_reader(run.run, analyst, caps)
        except OverBudget as over:
            raise refuse_expensive_reading(run.monitor, over) from None
        self._paid.add((run.run, analyst))


class CurrentMonitorReader:
    """A reader of monitors in whichever service is current. It is safe to share among threads."""

    def __init__(self, serving: Serving, labels: LabelSource | None = None) -> None:
        self._serving = serving
        self._labels = labels
        self._lock = Lock()
        self._numbers = count(1)
        self._newest: tuple[int, ServiceMonitorReader] | None = None

    @contextmanager
    def use_reader(self) -> Iterator[ServiceMonitorReader]:
        """Yield the current service's reader, and keep the service open during the block."""
        with self.use_numbered_reader() as (_, reading):
            yield reading

    @contextmanager
    def use_numbered_reader(self) -> Iterator[tuple[int, ServiceMonitorReader]]:
        """Yield the current service's reader, with a number that changes when the service is replaced."""
        with self._serving.hold_open() as service:
            with self._lock:
                if self._newest is None or self._newest[1].service is not service:
                    self._newest = next(self._numbers), ServiceMonitorReader(service, self._labels)
                newest = self._newest
            yield newest

    def admit_channel(self, channel: str, *, analyst: str) -> AdmittedMonitor | None:
        """Return the monitor that has this channel, if the analyst may read it, and charge the analyst for reading."""
        with self.use_reader() as reading:
            return reading.admit_channel(channel, analyst=analyst)

    def read_news(self, wanted: Collection[NewsRequest]) -> Mapping[NewsRequest, MonitorNews | KeyholeError]:
        """Return the news for each request, or the error if the analyst may not read the monitor.

        Each analyst is charged once for each run.
        """
        with self.use_numbered_reader() as (origin, reading):
            return reading.read_news(wanted, origin=origin)


def _make_empty_page(after: int) -> NoticePage:
    return NoticePage((), (), after, has_more=False)


@contextmanager
def _refuse_if_ledger_fails() -> Iterator[None]:
    try:
        yield
    except OverBudget:
        raise
    except LedgerError:
        raise report_unavailable_ledger() from None


def _list_closed_windows(windows: WindowPlan, *, after: int, last: int) -> Iterator[ClosedWindow]:
    """Yield the windows whose last look is later than the look `after`, and not later than the look `last`."""
    before_last = (windows.looks - 1) * windows.every
    first, end = (
        bisect_right(windows.first_looks, windows.first_looks[0] + (number - 1) * windows.every - before_last)
        for number in (after, last)
    )
    for window in range(first, end):
        yield ClosedWindow(
            find_look_number(windows, windows.find_close(window)), convert_to_utc(windows.starts[window])
        )


def _find_moment(windows: WindowPlan, number: int) -> datetime:
    return convert_to_utc(windows.first_looks[0] + (number - 1) * windows.every)


def _find_next_look(windows: WindowPlan, *, newest: int) -> datetime | None:
    moment = find_next_moment(windows, now=datetime.now(UTC).replace(tzinfo=None), newest=newest)
    return None if moment is None else convert_to_utc(moment)


def _write_interval(length: timedelta) -> str:
    return f"{length.total_seconds():.6f} seconds"


def _write_number(value: float | None) -> str | None:
    return None if value is None else f"{value:.9g}"
