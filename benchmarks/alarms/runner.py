"""What a look costs beside its scan, and how many scans a hundred monitors need: `python -m benchmarks.alarms.runner`.

Ten thousand keys and 24 looks over parquet, and a hundred monitors with thresholds of their own on one table. Times
are of one run on one machine: read their ratios.
"""

import argparse
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import duckdb
from rich.console import Console
from rich.table import Table

from planner.monitors.build import plan_monitor
from planner.question.plan import Rewritten
from proxy.cli import check as checking
from proxy.monitors.runner import MonitorRunner
from proxy.monitors.start import start_monitor
from proxy.open_policy.service import Service
from proxy.sources.protocol import Source, TrueAggregates

KEYS, ROWS, LOOKS, MONITORS = 10_000, 2_000_000, 24, 100
_START = datetime(2026, 3, 1)
_POLICY = """\
[source]
url = "duckdb://"

[budget]
epsilon_per_predicate = 1000
epsilon_per_query = 4

[tables.visits]
relation = "visits.parquet"
privacy_unit = "row"
refresh = "live"
append_only = true

[tables.visits.columns.shop]
key = {{ range = [1, {keys}] }}

[tables.visits.columns.seen_at]
"""
_MONITOR = """
[monitors.busy{number}]
sql = "SELECT shop FROM visits GROUP BY shop HAVING count(*) > {cut}"
window = {{ column = "seen_at", length = "1 day" }}
every = "1 hour"
from = "2026-03-01"
until = "2026-03-01"
tolerance = "25%"
"""


@dataclass
class WatchedDay:
    """One day watched: seconds of each look in all, and of its statements in the source alone."""

    looks_s: list[float] = field(default_factory=list)
    scans_s: list[float] = field(default_factory=list)
    statements: int = 0

    @property
    def beyond_s(self) -> float:
        """What a look took beyond its scans, on the median."""
        return statistics.median(look - scan for look, scan in zip(self.looks_s, self.scans_s, strict=True))


class _TimedSource:
    """A source that says how long its statements took; all else is the source's own."""

    def __init__(self, source: Source, day: WatchedDay) -> None:
        self._source = source
        self._day = day

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def read_aggregates(self, rewritten: Rewritten, *keys: Any, **how: Any) -> TrueAggregates:
        """As the source's."""
        started = time.perf_counter()
        try:
            return self._source.read_aggregates(rewritten, *keys, **how)
        finally:
            self._day.scans_s[-1] += time.perf_counter() - started
            self._day.statements += 1


def watch_day(folder: Path, *, keys: int, rows: int, monitors: int, looks: int) -> WatchedDay:
    """Watch so many keys by so many monitors through the first looks of a day."""
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE TABLE visits AS SELECT 1 + (i * 7919) % {keys} AS shop, "
            f"TIMESTAMP '2026-03-01' + to_microseconds(i * 86400000000 // {rows}) AS seen_at FROM range({rows}) AS r(i)"
        )
        connection.table("visits").write_parquet(str(folder / "visits.parquet"))
    policy = folder / "keyhole.toml"
    cut = max(20, rows // keys // 2)
    text = _POLICY.format(keys=keys) + "".join(
        _MONITOR.format(number=number, cut=cut + number) for number in range(monitors)
    )
    policy.write_text(text, encoding="utf-8")
    checking.check(policy, confirm=False)
    with Service.open(policy) as service:
        for monitor in service.catalog.monitors:
            plan = plan_monitor(service.catalog, monitor, dialect=service.source.dialect)
            start_monitor(service, plan, by="benchmark", why="to be timed")
        return _look(service, looks)


def _look(service: Service, looks: int) -> WatchedDay:
    day, now = WatchedDay(), _START
    service.source = cast(Source, _TimedSource(service.source, day))
    runner = MonitorRunner(
        service,
        clock=lambda: now.replace(tzinfo=UTC),
        seconds=lambda: now.replace(tzinfo=UTC).timestamp(),
        since=lambda _: _START.replace(tzinfo=UTC),
    )
    for look in range(1, looks + 1):
        now = _START + look * timedelta(hours=1)
        day.scans_s.append(0.0)
        started = time.perf_counter()
        runner.make_due_looks()
        day.looks_s.append(time.perf_counter() - started)
    return day


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    rows = parser.parse_args().rows
    table = Table("monitors", "keys", "looks", "statements a look", "a look", "of it the scan", "beyond the scan")
    for monitors, keys, looks in ((1, KEYS, LOOKS), (1, 100, LOOKS), (MONITORS, 100, LOOKS)):
        with tempfile.TemporaryDirectory(prefix="keyhole-looks-") as folder:
            day = watch_day(Path(folder), keys=keys, rows=rows, monitors=monitors, looks=looks)
        table.add_row(
            str(monitors),
            f"{keys:,}",
            str(looks),
            f"{day.statements / looks:.0f}",
            f"{statistics.median(day.looks_s):.3f} s",
            f"{statistics.median(day.scans_s):.3f} s",
            f"{day.beyond_s:.3f} s",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
