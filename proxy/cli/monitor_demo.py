"""The run of `keyhole demo --monitor`: a monitor over sale lines that arrive, replayed hour by hour at high speed.

Lines are written to parquet files as they would have arrived. Every look is real, and the shown alerts are those that
LISTEN delivers to psycopg. The demo may read the true data, which no analyst can.
"""

import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import psycopg
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from accountant.monitor_model import MonitorAlert
from deploy.demo import build
from mechanisms.alarm.prices import price_each_look
from mechanisms.formula import list_literals
from planner.monitors.build import plan_monitor
from planner.monitors.monitor_plan import MonitorPlan
from proxy.cli import check as checking
from proxy.cli.demo import PASSWORD, USER, make_demo_console, time_step
from proxy.monitors.runner import MonitorRunner
from proxy.monitors.start import start_monitor
from proxy.open_policy.service import Service
from proxy.process.addresses import Addresses
from proxy.process.serve import serve_in_background

NAME = "busy_day"
QUESTION = "tell me when a country has more than 60 customers today. It is looked at every hour."
SHOWN = 8  # of the newest alerts, below one another: what fits beside the rest of a terminal
SHORT_DAYS = 4  # of the part that the whole demo shows
_REDRAWS = 12  # a second
_LAST_NEWS_S = 60.0  # for notifications that are still on their way, on a busy machine


@dataclass(slots=True)
class _Replay:
    """The shop's past, one hour at a time. Lines before `now` have arrived. Looks are made `delay` later."""

    folder: Path
    now: datetime
    delay: timedelta = timedelta(0)
    _lines: "duckdb.DuckDBPyConnection" = field(default_factory=duckdb.connect)

    def __post_init__(self) -> None:
        (self.folder / "sales").mkdir()
        source = str(build.HERE / "online_retail.parquet")
        self._lines.execute(
            "CREATE TABLE sales AS SELECT CAST(CustomerID AS INTEGER) AS customer_id, Country AS country, "
            "InvoiceDate AS invoice_date FROM read_parquet(?)",
            [source],
        )
        self._write(self.folder / "sales" / "before.parquet", since=datetime.min, until=self.now)

    def advance(self, moment: datetime) -> None:
        """Move the time to `moment`. Replace the day's file by one with the lines that have arrived."""
        day = moment - timedelta(microseconds=1)
        since = datetime(day.year, day.month, day.day)
        self._write(self.folder / "sales" / f"{since:%Y-%m-%d}.parquet", since=since, until=moment)
        self.now = moment

    def clock(self) -> datetime:
        """Return the time in the replay."""
        return (self.now + self.delay).replace(tzinfo=UTC)

    def count_customers(self, *, since: datetime, until: datetime) -> dict[str, int]:
        """Return the true number of customers of each country, with which the demo compares alerts."""
        rows = self._lines.execute(
            "SELECT country, count(DISTINCT customer_id) FROM sales WHERE invoice_date >= ? AND invoice_date < ? "
            "GROUP BY country",
            [since, until],
        ).fetchall()
        return dict(rows)

    def _write(self, path: Path, *, since: datetime, until: datetime) -> None:
        written = path.with_suffix(".written")
        self._lines.execute(
            f"COPY (SELECT * FROM sales WHERE invoice_date >= '{since}' AND invoice_date < '{until}') "
            f"TO '{written}' (FORMAT parquet)"
        )
        written.rename(path)


@dataclass(frozen=True, slots=True)
class _Alert:
    """The content of a notification."""

    country: str
    day: str
    at: str

    @staticmethod
    def from_payload(payload: str) -> "_Alert":
        told: dict[str, Any] = json.loads(payload)
        return _Alert(told["key"]["country"], str(told["key"]["day"])[:10], str(told["alerted_at"])[:16])


def run_monitor_demo(*, days: int | None = None) -> None:
    """Replay the horizon, or its first `days`. Print the alerts as they come, and what they cost."""
    console = make_demo_console()
    with tempfile.TemporaryDirectory(prefix="keyhole-demo-") as name:
        folder = Path(name)
        console.print(f"\n[bold]A monitor[/]: {QUESTION}")
        policy = Path(shutil.copyfile(build.HERE / "monitor.toml", folder / "keyhole.toml"))
        with time_step(console, "lines of the months before loaded, public tables pinned"):
            build.write_countries(folder / "countries.parquet")
            replay = _Replay(folder, datetime(2011, 11, 14))
            checking.check(policy, confirm=False)
        with (
            Service.open(policy) as service,
            # by today's clock the replayed days are long over, and who serves would end the monitor
            serve_in_background(service, host="127.0.0.1", port=0, rest_port=0, looks=False) as addresses,
        ):
            monitor = service.catalog.find_monitor(NAME)
            assert monitor is not None
            plan = plan_monitor(service.catalog, monitor, dialect=service.source.dialect)
            started = start_monitor(service, plan, by="demo", why="the demo")
            replay.delay = plan.windows.delay
            _LiveReplay(console, service, plan, replay, run=started.run).show(addresses, days=days)


class _LiveReplay:
    """A replay that prints alerts as they come."""

    def __init__(self, console: Console, service: Service, plan: MonitorPlan, replay: _Replay, *, run: str) -> None:
        self._console = console
        self._service = service
        self._run = run
        self._plan = plan
        self._replay = replay
        began = replay.clock()
        self._runner = MonitorRunner(
            service, clock=replay.clock, seconds=lambda: replay.clock().timestamp(), since=lambda _: began
        )
        self._alerts: list[_Alert] = []
        self._looks = 0

    def show(self, addresses: Addresses, *, days: int | None) -> None:
        """Replay the given days (None: all), and print the result."""
        windows = self._plan.windows
        watched = range(len(windows.starts) if days is None else min(days, len(windows.starts)))
        conninfo = (
            f"host={addresses.host} port={addresses.port} user={USER} password={PASSWORD} dbname={addresses.database}"
        )
        started = time.perf_counter()
        with psycopg.connect(conninfo, autocommit=True) as listening:
            listening.execute(f"LISTEN keyhole_{NAME}")
            with Live(console=self._console, refresh_per_second=_REDRAWS, transient=True) as screen:
                for window in watched:
                    for look in range(windows.looks):
                        self._replay.advance(windows.first_looks[window] + look * windows.every)
                        self._runner.make_due_looks()
                        self._looks += 1
                        self._receive_alerts(listening, seconds=0.0)
                        screen.update(self._draw_state())
                missing = len(self._find_recorded()) - len(self._alerts)
                if missing > 0:
                    self._receive_alerts(listening, seconds=_LAST_NEWS_S, at_least=missing)
        self._console.print(self._list_newest())
        self._print_result(watched, seconds=time.perf_counter() - started)

    def _receive_alerts(
        self, listening: "psycopg.Connection[tuple[Any, ...]]", *, seconds: float, at_least: int | None = None
    ) -> None:
        found = listening.notifies(timeout=seconds, stop_after=at_least)
        self._alerts += [_Alert.from_payload(heard.payload) for heard in found]

    def _find_recorded(self) -> Sequence[MonitorAlert]:
        """Return all alerts so far, as the ledger has them."""
        return self._service.ledger.monitors.read_alerts(self._run).alerts

    def _draw_state(self) -> RenderableType:
        heading = Text(f"{self._replay.now:%A %d %B %Y, %H:%M}   {self._looks:,} looks   {len(self._alerts)} alerts")
        return Group(heading, self._list_newest())

    def _list_newest(self) -> Table:
        table = Table("country", "day", "alerted at", box=None, padding=(0, 3, 0, 0), header_style="bold")
        for alert in self._alerts[-SHOWN:]:
            table.add_row(alert.country, alert.day, alert.at)
        return table

    def _print_result(self, watched: range, *, seconds: float) -> None:
        """Print the alerts with the true crossings, and the alerts' price with that of asking at every look."""
        plan, windows = self._plan, self._plan.windows
        alerted = {(alert.country, alert.day) for alert in self._alerts}
        crossed, far = set(), set()
        (cut,) = (literal.cut for literal in list_literals(plan.question.formula))
        (tolerance,) = (literal.tolerance for literal in list_literals(plan.question.formula))
        for window in watched:
            start = windows.starts[window]
            for country, customers in self._replay.count_customers(since=start, until=start + windows.length).items():
                if customers > cut:
                    crossed.add((country, str(start)[:10]))
                elif customers > cut - tolerance:
                    far.add((country, str(start)[:10]))
        wrong = alerted - crossed - far
        afresh = price_each_look(looks=windows.looks, fnr=plan.question.accuracy.fnr, fpr=plan.question.accuracy.fpr)
        times = afresh / (plan.epsilon_per_cell * (tolerance + 1))
        days = len(watched)
        self._console.print(
            f"[green]Alerts: {len(alerted)}[/], days: {days}, looks: {self._looks:,} ({seconds:.0f} s). Of countries' "
            f"days with more than {cut} customers {len(crossed & alerted)} of {len(crossed)} alerted; of those with "
            f"{cut - tolerance} or fewer {len(wrong)} of {days * plan.keys.size - len(crossed) - len(far):,}.\n"
            f"Alert hourly, {windows.looks} looks a day: [bold]{plan.epsilon_per_cell:.2f} epsilon[/] a country and "
            f"day. Asking at every look would cost {times:.1f} times that."
        )
