"""A clinic whose visits come in as they happen, in real PostgreSQL, with a monitor over wards and days."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import duckdb
import psycopg

from planner.monitors.build import plan_monitor
from planner.monitors.monitor_plan import MonitorPlan
from proxy.cli.check import check
from proxy.monitors.runner import MonitorRunner
from proxy.monitors.start import start_monitor
from proxy.open_policy.service import Service
from tests.seeded_noise import SeededNoise
from tests.worlds.house import VERIFIER, new_database

START = datetime(2026, 3, 1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NAME = "crowded"
TOKEN = "ada's token, which is long enough to be none"

POLICY = """\
[source]
url = "{source}"

[ledger]
url = "{ledger}"

[budget]
epsilon_per_predicate = 4
epsilon_per_unit = 40
epsilon_per_query = 4

[tables.visits]
privacy_unit = "row"
refresh = "live"
append_only = true
{arrived}
[tables.visits.columns.ward]
key = {{ values = ["A", "B", "C"] }}

[tables.visits.columns.day]
expression = "date_trunc('day', seen_at)"
key = {{ range = ["2026-03-01", "2026-03-31"] }}

[tables.visits.columns.cost]
bounds = [-10, 10]

[tables.visits.columns.room]
key = {{ range = [1, 1000] }}

[analysts.ada]
password = "{verifier}"
token_sha256 = "{token}"

[monitors.crowded]
sql = "{sql}"
window = {window}
every = "{every}"
from = "2026-03-01"
until = "2026-03-03"
tolerance = "10%"
analysts = ["ada"]
{more}
"""
ARRIVED = 'arrived = "arrived_at"\n'
TABLE = "CREATE TABLE visits (ward text, seen_at timestamp, cost integer, room integer, arrived_at timestamp)"
MANY = "SELECT ward, day FROM visits GROUP BY ward, day HAVING count(*) > 400"

TOKEN_DIGEST = sha256(TOKEN.encode()).hexdigest()


@dataclass
class Clinic:
    """An open policy, and the time as its runners see it."""

    policy: Path
    service: Service
    source_url: str
    now: datetime = START

    @property
    def plan(self) -> MonitorPlan:
        """The plan of its one monitor."""
        return plan_monitor(self.service.catalog, self.service.catalog.monitors[0], dialect=self.service.source.dialect)

    def runner(self, service: Service | None = None, *, seconds: Callable[[], float] | None = None) -> MonitorRunner:
        """One that looks by the clinic's clock, as if the monitor had been started at its beginning. The clock does not
        jump unless `seconds` passed otherwise."""
        return MonitorRunner(
            service or self.service,
            clock=lambda: self.now.replace(tzinfo=UTC),
            seconds=seconds or (lambda: self.now.replace(tzinfo=UTC).timestamp()),
            since=lambda _: START.replace(tzinfo=UTC),
        )

    def start(self) -> str:
        """Start the monitor; its run."""
        return start_monitor(self.service, self.plan, by="tests", why="to see").run

    def arrive(self, rows: Sequence[tuple[str, datetime]]) -> None:
        """Visits that come in."""
        with psycopg.connect(self.source_url) as source, source.cursor() as cursor:
            cursor.executemany("INSERT INTO visits (ward, seen_at) VALUES (%s, %s)", rows)

    def arrive_late(self, rows: Sequence[tuple[str, datetime]], *, arrived: datetime) -> None:
        """Visits, as they came at another time than theirs."""
        values = [(*row, arrived) for row in rows]
        if self.source_url.endswith(".duckdb"):
            with duckdb.connect(self.source_url) as loader:
                columns = [list(column) for column in zip(*values, strict=True)]
                loader.execute(
                    "INSERT INTO visits (ward, seen_at, arrived_at) SELECT unnest(?), unnest(?), unnest(?)", columns
                )
            return
        with psycopg.connect(self.source_url) as source, source.cursor() as cursor:
            cursor.executemany("INSERT INTO visits (ward, seen_at, arrived_at) VALUES (%s, %s, %s)", values)

    def alerts(self, run: str) -> list[tuple[int, int, str]]:
        """What was alerted: the look's number, the window, the ward."""
        page = self.service.ledger.monitors.read_alerts(run)
        return [(one.number, one.window, "ABC"[one.key]) for one in page.alerts]


@contextmanager
def clinic(
    folder: Path,
    postgres_url: str,
    *,
    sql: str = MANY,
    window: str = '"day"',
    every: str = "6 hours",
    more: str = "",
    arrived: str = "",
    ledger: str = "sqlite:///keyhole.db",
    seed: int | None = 7,
    first_day: str = "2026-03-01",
) -> Iterator[Clinic]:
    """An open clinic without visits, with a calendar from `first_day`. Noise is seeded unless `seed` is None."""
    with new_database(postgres_url) as url:
        with psycopg.connect(url) as source:
            source.execute(TABLE)
        policy = folder / "keyhole.toml"
        asked = {"sql": sql, "token": TOKEN_DIGEST, "window": window, "every": every, "more": more, "arrived": arrived}
        text = POLICY.format(source=url, ledger=ledger, verifier=VERIFIER, **asked)
        policy.write_text(_begin_calendar(text, first_day))
        check(policy, confirm=False)
        with Service.open(policy) as service:
            if seed is not None:
                service.noise = SeededNoise(seed)
            yield Clinic(policy, service, url)


@contextmanager
def clinic_in_a_file(
    folder: Path,
    *,
    sql: str = MANY,
    window: str = '"day"',
    every: str = "6 hours",
    more: str = "",
    arrived: str = "",
    first_day: str = "2026-03-01",
) -> Iterator[Clinic]:
    """The same over a DuckDB file that is open only while it is read, so that a loader may write to it."""
    with duckdb.connect(str(folder / "visits.duckdb")) as loader:
        loader.execute(TABLE)
    policy = folder / "keyhole.toml"
    text = POLICY.format(
        source="duckdb:///visits.duckdb",
        ledger="sqlite:///keyhole.db",
        sql=sql,
        window=window,
        every=every,
        more=more,
        arrived=arrived,
        verifier=VERIFIER,
        token=TOKEN_DIGEST,
    )
    text = _begin_calendar(text.replace("[ledger]", "hold = false\n\n[ledger]"), first_day)
    policy.write_text(text, encoding="utf-8")
    check(policy, confirm=False)
    with Service.open(policy) as service:
        yield Clinic(policy, service, str(folder / "visits.duckdb"))


def _begin_calendar(policy: str, first_day: str) -> str:
    """The policy with an earlier first day among the values of its key."""
    return policy.replace('["2026-03-01", "2026-03-31"]', f'["{first_day}", "2026-03-31"]')


def visits(ward: str, count: int, *, at: datetime) -> list[tuple[str, datetime]]:
    """So many visits of a ward in the minutes after a moment."""
    return [(ward, at + timedelta(milliseconds=10 * i)) for i in range(count)]
