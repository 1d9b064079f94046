"""A clinic with monitors whose looks a test records itself: in the real ledger, by its own verbs, when it chooses.

`crowded` watches wards by days, `rush` wards in windows of six hours, `private` is bob's alone; of
`recent`, which is there where it is asked for, alerts clear at once. All watch a year that has not begun, since a
service ends monitors that are over.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from hashlib import sha256
from pathlib import Path

import psycopg

from accountant.charges import NANO, Cells, Charge, Family
from accountant.monitor_model import MonitorRun, WindowAxis, WindowLook
from planner.catalog.listed_values import format_values
from planner.monitors.monitor_plan import MonitorPlan
from proxy.cli.check import check
from proxy.monitors.reading import ServiceMonitorReader
from proxy.open_policy.accounts import convert_to_nano, find_limits, make_label
from proxy.open_policy.service import OWNER, Service
from tests.worlds.house import VERIFIER, House, opened

TOKENS = {"ada": "ada's token, which is long enough to be none", "bob": "bob's token, which is long enough to be none"}
WARDS = ("A", "B", "C")
TABLES = (
    "CREATE TABLE visits (ward text, seen_at timestamp)",
    "CREATE TABLE floors (ward text, floor text)",
    "INSERT INTO floors VALUES ('A', 'ground'), ('B', 'first'), ('C', 'first')",
)
POLICY = """\
[source]
url = "{source}"

[ledger]
url = "sqlite:///keyhole.db"

[accuracy]
fnr = 0.05
fpr = 0.10
tolerance = "10%"

[budget]
epsilon_per_predicate = 100.0
epsilon_per_unit = 100.0
epsilon_per_query = 100.0

[server]
database = "clinic"

[tables.visits]
privacy_unit = "row"
refresh = "live"
append_only = true
arrived = "seen_at"

[tables.visits.columns.ward]
key = {{ values = ["A", "B", "C"] }}

[tables.visits.columns.day]
expression = "date_trunc('day', seen_at)"
key = {{ range = ["2126-01-01", "2126-01-10"], step = "1 day" }}

[tables.visits.columns.seen_at]

[tables.floors]
public = true

[monitors.crowded]
sql = "SELECT ward, day FROM visits GROUP BY ward, day HAVING count(*) > 400"
window = "day"
every = "1 hour"
lateness = "10 minutes"
from = "2126-01-01"
until = "2126-01-10"
analysts = ["ada", "bob"]
comment = "Wards over 400 visits today"

[monitors.rush]
sql = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 100"
window = {{ column = "seen_at", length = "6 hours" }}
every = "1 hour"
from = "2126-01-01"
until = "2126-01-02"
analysts = ["ada"]

[monitors.private]
sql = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 200"
window = {{ column = "seen_at", length = "1 day" }}
every = "1 hour"
from = "2126-01-01"
until = "2126-01-03"
analysts = ["bob"]

[analysts.ada]
password = "{verifier}"
token_sha256 = "{ada}"

[analysts.bob]
password = "{verifier}"
token_sha256 = "{bob}"
epsilon_per_predicate = {bobs}
"""
RECENT = """
[monitors.recent]
sql = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 300"
window = { column = "seen_at", length = "3 hours", sliding = true }
every = "1 hour"
lateness = "10 minutes"
from = "2126-01-01"
until = "2126-01-03"
analysts = ["ada"]
clears = "at once"
"""
"""More of the policy: a monitor whose alerts clear at once."""


def install(directory: Path, url: str, *, bobs: float = 1000.0, more: str = "") -> Path:
    """The clinic in an empty PostgreSQL database, and its policy in `directory`, checked and pinned."""
    with psycopg.connect(url) as connection:
        for statement in TABLES:
            connection.execute(statement.encode())
    hashes = {name: sha256(token.encode()).hexdigest() for name, token in TOKENS.items()}
    path = directory / "keyhole.toml"
    path.write_text(POLICY.format(source=url, verifier=VERIFIER, bobs=bobs, **hashes) + more, encoding="utf-8")
    check(path, confirm=False)
    return path


@dataclass(frozen=True)
class Watch:
    """A monitor that a test started, and of which it makes the looks."""

    service: Service
    plan: MonitorPlan
    run: MonitorRun

    def look(
        self,
        number: int,
        alerts: Mapping[int, tuple[str, ...]],
        *,
        cleared: tuple[str, ...] = (),
        closing: tuple[int, ...] = (),
    ) -> None:
        """Record a look over the horizon at which, by window, these wards came into the answer, and the `cleared` ones
        went out of it."""
        monitors = self.service.ledger.monitors
        windows = sorted({*alerts, *closing})
        looks = []
        for window in windows:
            state = monitors.begin_window(self.run.run, window, b"drawn %d" % window)
            came, went = (tuple(sorted(map(WARDS.index, wards))) for wards in (alerts.get(window, ()), cleared))
            looks.append(WindowLook(window, state.look, state.look + 1, state.body + b"+", came, went))
        first = self.plan.windows.first_looks[0]
        at = (first + (number - 1) * self.plan.windows.every).replace(tzinfo=UTC)
        monitors.record_look(self.run.run, looks, number=number, at=at, closing=dict.fromkeys(closing))

    def pause(self, why: str) -> None:
        """As its owner."""
        self.service.ledger.monitors.pause_run(self.run.run, by="the owner", why=why)

    def resume(self) -> None:
        """As its owner."""
        self.service.ledger.monitors.resume_run(self.run.run, by="the owner", why="on again")

    def end(self, why: str) -> None:
        """As its owner."""
        self.service.ledger.monitors.end_run(self.run.run, by="the owner", why=why)


def start(service: Service, name: str) -> Watch:
    """Start a monitor: the horizon is reserved in the real ledger."""
    monitor = service.catalog.find_monitor(name)
    assert monitor is not None
    plan = ServiceMonitorReader(service).plan_monitor(monitor)
    keys = plan.question.keys
    columns = sorted(
        (make_label(column), tuple(format_values(values)))
        for column, values in zip(keys.columns, keys.values, strict=True)
    )
    family = Family(
        table="visits",
        unit="row",
        columns=tuple(one for one, _ in columns),
        filter="",
        version=service.find_version(plan.question.table),
        immutable=frozenset(),
    )
    charge = Charge(
        question=plan.fingerprint,
        analyst=OWNER.name,
        family=family,
        cells=Cells(tuple(columns)),
        epsilon_nano=convert_to_nano(plan.epsilon_per_cell),
        unit_epsilon_nano=0,
        shared=True,
    )
    run = service.ledger.monitors.start_run(
        name,
        charge,
        find_limits(service.catalog, OWNER),
        windows=None if plan.clears_at_once else WindowAxis(make_label(plan.window_column), overlap=1),
        fingerprint=plan.fingerprint,
        wording=None,
        by="the owner",
        why="to see",
        is_restarted=plan.clears_at_once,
    )
    assert charge.epsilon_nano < 100 * NANO
    return Watch(service, plan, run)


@contextmanager
def alerted(directory: Path, url: str, *, bobs: float = 1000.0, more: str = "") -> Iterator[House]:
    """The clinic, serving; with more of the policy, such as RECENT."""
    with opened(install(directory, url, bobs=bobs, more=more)) as house:
        yield house
