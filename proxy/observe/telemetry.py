"""The operator's view of a running Keyhole: counters, gauges, durations by stage, and a log line for each event.

Guarantee: every label and every logged field comes from the policy, the ledger, the catalogue of errors or the
connection. There is no SQL, key, parameter, password or number of keys among them. Two things do depend on data, and
are for operators alone. One is how long the stages from `aggregate` on take, which is never logged. The other is
whether data have moved within a data version.

References: docs/metrics.md has every metric and every event.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from enum import StrEnum
from functools import cache
from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger  # a tenth of the start of a command, which logs nothing

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""From the fastest stages to beyond the default statement timeout, two or three for each power of ten."""
_LOGIN_FAILED = "KH401"
_ALARMING = ("KH501", "KH502", "KH900")
_HEALTH = ("/healthz", "/readyz")  # asked every few seconds

_PAUSE_S = 60.0  # seconds between two lines of the log about what anybody can cause as often as they like

disable_created_metrics()  # a second series for each, which says when the process started


@dataclass(frozen=True, slots=True)
class FinishedRequest:
    """An answered HTTP request, with only the facts that the operator may know. `code` is the code of a refusal."""

    method: str | None
    path: str | None
    status: int | None
    analyst: str | None
    code: str | None


class Stage(StrEnum):
    """The stages of a question, in order. `TURN` is the wait for a turn at the source."""

    PARSE = "parse"
    PLAN = "plan"
    TURN = "turn"
    RESERVE = "reserve"
    AGGREGATE = "aggregate"
    DECIDE = "decide"
    COMMIT = "commit"


class QuestionEnding(StrEnum):
    """The end of a planned question.

    The question was answered, answered from a stored answer, refused without a charge, or failed after the charge.
    """

    ANSWERED = "answered"
    STORED = "stored"
    REFUSED = "refused"
    FAILED = "failed"


class LookEnding(StrEnum):
    """The end of a monitor's look: recorded, dropped because another process recorded it, or failed.

    A failed look is tried again.
    """

    MADE = "made"
    TAKEN = "taken"
    FAILED = "failed"


class Interface(StrEnum):
    """The interface through which a question is asked."""

    POSTGRESQL = "postgresql"
    REST = "rest"


class DisconnectReason(StrEnum):
    """The reason for which a connection to the PostgreSQL endpoint was ended before the client ended it."""

    LIMIT = "limit"
    LOGIN_TIMEOUT = "login_timeout"
    PROTOCOL = "protocol"
    SHADOW = "shadow"
    TLS = "tls"


@dataclass(frozen=True, slots=True)
class GaugeReading:
    """One gauge, read at each scrape of metrics: its name, help, label name ("" for none), and values by label."""

    name: str
    help: str
    label: str
    read: Callable[[], Mapping[str, float]]


@cache
def _read_own_version() -> str:
    """Return Keyhole's version. The result is kept, since each reading parses a file of hundreds of lines."""
    return version("keyhole")


class Telemetry:
    """The metrics of one process in their own registry, and its log. It is safe to share among threads.

    Without `log` nothing is logged. Commands and tests have no operator to read it.
    """

    def __init__(
        self, *, log: "FilteringBoundLogger | None" = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.registry = registry = CollectorRegistry()
        self._log = log
        self._clock = clock
        self._untold: dict[DisconnectReason, int] = {}
        self._told_at: dict[DisconnectReason, float] = {}
        self._faults: dict[str, int] = {}
        self._faulty_at: dict[str, float] = {}
        self._faults_lock = threading.Lock()
        self._questions = Counter(
            "keyhole_questions", "Planned questions by how they ended", ["outcome"], registry=registry
        )
        self._refusals = Counter("keyhole_refusals", "Errors told to clients", ["face", "code"], registry=registry)
        self._stages = Histogram(
            "keyhole_stage_seconds", "Time by stage of a question", ["stage"], buckets=BUCKETS_S, registry=registry
        )
        self._reserved = Counter(
            "keyhole_epsilon_reserved",
            "Worst-case epsilon per group that questions reserved",
            ["table"],
            registry=registry,
        )
        self._charged = Counter(
            "keyhole_epsilon_charged",
            "Epsilon that committed questions cost the group that lost most",
            ["table"],
            registry=registry,
        )
        self._opened = Counter("keyhole_sessions_opened", "Sessions that logged in", registry=registry)
        self._turned_away = Counter(
            "keyhole_connections_turned_away", "Connections that were ended", ["reason"], registry=registry
        )
        self._failed_logins = Counter(
            "keyhole_failed_logins", "Wrong passwords and tokens", ["face"], registry=registry
        )
        self._looks = Counter(
            "keyhole_monitor_looks", "Looks of monitors by how they ended", ["monitor", "outcome"], registry=registry
        )
        self._turns = Gauge("keyhole_source_turns", "Questions at the source", ["state"], registry=registry)
        self.workers = Gauge("keyhole_question_workers", "Questions in threads", ["state"], registry=registry)
        Info("keyhole_build", "What is running", registry=registry).info(
            {"version": _read_own_version(), "python": python_version()}
        )
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        self._show_zeros()

    def _show_zeros(self) -> None:
        """Set counters to 0, so that rates of events that have not happened are 0 and not missing."""
        for stage in Stage:
            self._stages.labels(stage=stage)
        for ending in QuestionEnding:
            self._questions.labels(outcome=ending)
        for face in Interface:
            self._failed_logins.labels(face=face)
            for code in _ALARMING:
                self._refusals.labels(face=face, code=code)
        for reason in DisconnectReason:
            self._turned_away.labels(reason=reason)
        for gauge, states in ((self._turns, ("waiting", "taken")), (self.workers, ("waiting", "busy"))):
            for state in states:
                gauge.labels(state=state)

    def write_prometheus_text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def add_gauges(self, *readings: GaugeReading) -> None:
        """Read these gauges at every scrape. A gauge that cannot be read is left out of the scrape."""
        self.registry.register(_GaugeCollector(readings))

    @contextmanager
    def measure_stage(self, stage: Stage) -> Iterator[None]:
        """Measure the block as one stage of a question, however it ends."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._stages.labels(stage=stage).observe(time.perf_counter() - started)

    @contextmanager
    def count_turn(self, turn: AbstractContextManager[None]) -> Iterator[None]:
        """Run the block within the source's `turn`, and count questions that wait for a turn or hold one."""
        with ExitStack() as inside:
            with self._turns.labels(state="waiting").track_inprogress(), self.measure_stage(Stage.TURN):
                inside.enter_context(turn)
            with self._turns.labels(state="taken").track_inprogress():
                yield

    def count_question(self, ending: QuestionEnding, *, analyst: str, question: str) -> None:
        """Count and log a planned question that has ended; `question` is its id in the ledger."""
        self._questions.labels(outcome=ending).inc()
        self._log_event("question", analyst=analyst, question=question, outcome=ending)

    def count_reservation(self, table: str, *, epsilon: float) -> None:
        """Count a question that reserved at most `epsilon` for every group that it asks about."""
        self._reserved.labels(table=table).inc(epsilon)
        self._charged.labels(table=table)

    def count_charge(self, table: str, *, epsilon: float) -> None:
        """Count a committed question. `epsilon` is the largest loss of a group on the shared balances."""
        self._charged.labels(table=table).inc(epsilon)

    def count_refusal(
        self, code: str, *, face: Interface, analyst: str | None = None, address: str | None = None
    ) -> None:
        """Count the error `code` that a client got. `analyst` is one of the policy's, or None before the login."""
        self._count_refusal(code, face)
        self._log_event("refused", face=face, code=code, analyst=analyst, address=address)

    def count_request(self, done: FinishedRequest) -> None:
        """Count an answered request over HTTP."""
        if done.code is not None:
            self._count_refusal(done.code, Interface.REST)
        if done.path not in _HEALTH or done.code is not None:
            self._log_event("request", **asdict(done))

    def count_disconnect(self, reason: DisconnectReason, *, address: str | None) -> None:
        """Count a connection that was ended for this reason.

        The first of each reason is logged at once. Later ones are logged once a minute, with their number.
        """
        self._turned_away.labels(reason=reason).inc()
        self._untold[reason] = self._untold.get(reason, 0) + 1
        now = self._clock()
        if now - self._told_at.get(reason, -math.inf) >= _PAUSE_S:
            self._told_at[reason] = now
            self._log_event("turned away", reason=reason, address=address, times=self._untold.pop(reason))

    @contextmanager
    def count_session(self, *, analyst: str, address: str | None) -> Iterator[None]:
        """Count the block as one session."""
        started = time.monotonic()
        self._opened.inc()
        self._log_event("session opened", analyst=analyst, address=address)
        try:
            yield
        finally:
            self._log_event("session closed", analyst=analyst, seconds=round(time.monotonic() - started, 3))

    def note_moved_data(self, table: str, *, version: str) -> None:
        """Log that a table's data changed within a data version, against the owner's declaration."""
        if self._log is not None:
            self._log.warning("data moved within a version", table=table, version=version)

    def note_undeclared_files(self, table: str, *, version: str) -> None:
        """Log that a table's files are not those of its data version, so that its questions are refused."""
        if self._log is not None:
            self._log.warning("files are not those of the version", table=table, version=version)

    def count_look(self, ending: LookEnding, *, monitor: str, number: int, code: str | None = None) -> None:
        """Count a look of a monitor that has ended.

        `number` is the look's number in the horizon. `code` is the error code of a failed look.
        """
        self._looks.labels(monitor=monitor, outcome=ending).inc()
        if ending is LookEnding.FAILED and self._log is not None:
            self._log.warning("look failed", monitor=monitor, look=number, code=code)
        else:
            self._log_event("look", monitor=monitor, look=number, outcome=ending)

    def note_stuck_monitor(self, monitor: str, *, code: str, why: str) -> None:
        """Log that a monitor runs in the ledger but cannot be looked at under this policy."""
        if self._log is not None:
            self._log.warning("monitor cannot be looked at", monitor=monitor, code=code, why=why)

    def log_ended_monitor(self, monitor: str) -> None:
        """Log that a monitor was ended because its horizon is over."""
        self._log_event("monitor is over", monitor=monitor)

    def log_clock_jump(self, *, by: timedelta, waits: timedelta) -> None:
        """Log that the machine's clock jumped, and how long looks wait unless the clock returns."""
        if self._log is not None:
            self._log.error("clock jumped", seconds=by.total_seconds(), looks_wait_seconds=waits.total_seconds())

    def log_settled_clock(self, *, after: timedelta) -> None:
        """Log that looks are made again after a jump of the clock."""
        if self._log is not None:
            self._log.warning("clock settled", jump_seconds=after.total_seconds())

    def log_ledger_failure(self, fault: Exception) -> None:
        """Log that the ledger failed, with the ledger's own message.

        The message is about files, servers and events, never about data. The first of each reason is logged at once.
        Later ones are logged once a minute, with their number.
        """
        why, now = str(fault), self._clock()
        with self._faults_lock:
            self._faults[why] = self._faults.get(why, 0) + 1
            if now - self._faulty_at.get(why, -math.inf) < _PAUSE_S:
                return
            self._faulty_at[why] = now
            times = self._faults.pop(why)
        if self._log is not None:
            self._log.warning("the ledger failed", why=why, times=times)

    def note_missing_parts(self, missing: Sequence[str]) -> None:
        """Log that a part that Keyhole needs stopped working, or works again."""
        if missing:
            self._log_event("not ready", missing=list(missing))
        else:
            self._log_event("ready")

    def _count_refusal(self, code: str, face: Interface) -> None:
        self._refusals.labels(face=face, code=code).inc()
        if code == _LOGIN_FAILED:
            self._failed_logins.labels(face=face).inc()

    def _log_event(self, event: str, **fields: object) -> None:
        if self._log is not None:
            self._log.info(event, **{name: value for name, value in fields.items() if value is not None})


class _GaugeCollector(Collector):
    def __init__(self, readings: tuple[GaugeReading, ...]) -> None:
        self._readings = readings

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges' names, without reading them."""
        for reading in self._readings:
            yield _make_gauge_family(reading)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges' current readings."""
        for reading in self._readings:
            family = _make_gauge_family(reading)
            with suppress(Exception):
                for label, value in reading.read().items():
                    family.add_metric([label] if reading.label else [], value)
            yield family


def _make_gauge_family(reading: GaugeReading) -> GaugeMetricFamily:
    return GaugeMetricFamily(reading.name, reading.help, labels=[reading.label] if reading.label else [])
