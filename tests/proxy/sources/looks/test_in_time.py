"""Looks at the last hours where an alert goes at once: both engines count a stretch of time as it was at its first
look, whatever comes later and at whichever look it is counted again."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import psycopg
import pytest

from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.monitors.build import plan_monitor
from planner.monitors.monitor_looks import make_look
from planner.monitors.monitor_plan import MonitorPlan
from tests.worlds.house import new_database
from tests.worlds.monitored import BY_WARD, TABLES, declared

pytestmark = pytest.mark.server

Row = tuple[str, str | None, str | None]
"""A ward, the time in the row, and when it came."""
ARRIVED = TABLES.replace("append_only = true\n", 'append_only = true\narrived = "arrived_at"\n', 1)
HOUR = timedelta(hours=1)
START = datetime(2026, 1, 1)
LATENESS = timedelta(minutes=10)
WINDOW = 5  # looks
COLUMNS = (
    "ward text, seen_at timestamp, reported date, quarter_hour timestamp, arrived_at timestamp, "
    "cost decimal(10, 2), change integer, severity integer"
)
ODD: tuple[Row, ...] = (
    ("A", "2026-01-01 08:00", None),
    ("A", None, "2026-01-01 08:00"),
    ("A", "infinity", "2026-01-01 08:00"),
    ("A", "2026-01-01 08:00", "infinity"),
    ("A", "2026-01-01 08:00", "-infinity"),
    ("A", "0001-01-01 00:00", "2026-01-01 08:00"),
    ("A", "9999-12-31 23:59:59.999999", "2026-01-01 08:00"),
    ("B", "2026-01-01 08:59:59.999999", "2026-01-01 09:09:59.999999"),
    ("B", "2026-01-01 08:59:59.999999", "2026-01-01 09:10:00"),
    ("B", "2026-01-01 09:00:00", "2026-01-01 09:10:00"),
)


def _plan(dialect: Dialect, tables: str = ARRIVED, **keys: str) -> MonitorPlan:
    catalog = declared(
        BY_WARD,
        tables=tables,
        window=f'{{ column = "seen_at", length = "{WINDOW} hours", sliding = true }}',
        clears='"at once"',
        lateness='"10 minutes"',
        **keys,
    )
    return plan_monitor(catalog, catalog.monitors[0], dialect=dialect)


class _Engines:
    """The same rows in DuckDB and in PostgreSQL."""

    def __init__(self, duck: duckdb.DuckDBPyConnection, postgres: psycopg.Connection[tuple[object, ...]]) -> None:
        self._duck, self._postgres = duck, postgres
        self._plans = [_plan(dialect) for dialect in (DUCKDB, POSTGRES)]

    def load(self, rows: Sequence[Row]) -> None:
        """These and no others."""
        values = ", ".join(f"({', '.join('NULL' if one is None else repr(one) for one in row)})" for row in rows)
        for writer in (self._duck, self._postgres):
            writer.execute("DROP TABLE IF EXISTS visits")
            writer.execute(f"CREATE TABLE visits ({COLUMNS})")
            writer.execute(f"INSERT INTO visits (ward, seen_at, arrived_at) VALUES {values}")

    def count(self, look: int) -> Mapping[str, int]:
        """By ward, what a look counts; the engines agree."""
        one, other = (make_look(plan, window=0, look=look).rewritten.sql for plan in self._plans)
        found = [self._duck.execute(one).fetchall(), self._postgres.execute(other).fetchall()]
        duck, postgres = ({str(row[0]): int(str(row[1])) for row in rows if row[1]} for rows in found)
        assert duck == postgres
        return duck


@pytest.fixture(scope="module")
def both(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Engines]:
    folder: Path = tmp_path_factory.mktemp("looks")
    with (
        new_database(postgres_url) as url,
        psycopg.connect(url, autocommit=True) as postgres,
        duckdb.connect(str(folder / "visits.duckdb")) as duck,
    ):
        yield _Engines(duck, postgres)


def _come(seed: int) -> list[Row]:
    """Rows of a day, many of them late, some far, some seen beforehand."""
    chance = random.Random(seed)
    delays = [timedelta(0), 2 * LATENESS, 3 * HOUR, -2 * HOUR, timedelta(minutes=5)]
    rows: list[Row] = []
    for _ in range(400):
        seen = START + timedelta(seconds=chance.randrange(-5 * 3600, 20 * 3600))
        came = seen + chance.choice(delays) * chance.random()
        rows.append((chance.choice("ABC"), seen.isoformat(), came.isoformat()))
    return rows


def _tick_of(seen: str) -> int:
    """The number of the first look that sees a time."""
    return (datetime.fromisoformat(seen) - START) // HOUR + 1


def _in_time(row: Row) -> bool:
    assert row[1] is not None
    assert row[2] is not None
    return datetime.fromisoformat(row[2]) < START + _tick_of(row[1]) * HOUR + LATENESS


def test_a_stretch_is_counted_as_it_was_at_its_first_look(both: _Engines) -> None:
    """Of each look what its definition says, read when it is due and read again when all rows have come."""
    rows = _come(seed=3)
    by_tick = Counter((row[0], _tick_of(str(row[1]))) for row in rows if _in_time(row))
    late = sum(not _in_time(row) for row in rows)
    assert 50 < late < 300
    expected = {
        look: {ward: total for ward in "ABC" if (total := sum(by_tick[ward, look - i] for i in range(WINDOW)))}
        for look in (1, 2, 7, 8, 12, 19)
    }
    for look, counts in expected.items():
        made = START + look * HOUR + LATENESS
        both.load([row for row in rows if datetime.fromisoformat(str(row[2])) < made + timedelta(minutes=1)])
        assert both.count(look) == counts
    both.load(rows)
    for look, counts in expected.items():
        assert both.count(look) == counts


def test_what_is_on_no_calendar_never_counts_and_to_the_moment(both: _Engines) -> None:
    """A row that came in the last microsecond counts, and one that came with the look does not."""
    both.load(ODD)
    assert [both.count(look) for look in (8, 9, 10, 14)] == [{}, {"B": 1}, {"B": 2}, {"B": 1}]


def test_where_rows_come_in_the_order_of_their_time_nothing_else_is_asked() -> None:
    tables = TABLES.replace("append_only = true\n", 'append_only = true\narrived = "seen_at"\n', 1)
    plan = _plan(DUCKDB, tables)
    assert not plan.counts_by_arrival
    assert make_look(plan, window=0, look=9).question.in_time is None
    assert "time_bucket" not in make_look(plan, window=0, look=9).rewritten.sql
