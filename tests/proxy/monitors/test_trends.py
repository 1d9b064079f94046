"""Monitors that compare a day with the days before, over real PostgreSQL: meaning, alerts, charges and restarts.

Values stand so far from their thresholds that another answer has a chance below 1e-6.
"""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from random import Random

import numpy as np
import psycopg
import pytest

from accountant.monitor_model import MonitorState
from mechanisms.formula import Booleans, Integers, evaluate_formula
from planner.catalog.catalog import RELEASED_BY
from planner.monitors.build import plan_monitor
from planner.monitors.monitor_looks import make_look
from planner.monitors.monitor_plan import MonitorPlan
from proxy.open_policy.service import Service
from proxy.report.budget import make_document
from tests.worlds.clinic import ARRIVED, DAY, HOUR, START, Clinic, clinic, clinic_in_a_file, visits
from tests.worlds.house import most_spent

pytestmark = pytest.mark.server

BEFORE = "lag(count(*)) OVER (PARTITION BY ward ORDER BY day)"
GROUPED = f"SELECT ward, day, count(*) AS n, {BEFORE} AS before FROM visits GROUP BY ward, day"
UP = f"SELECT ward, day FROM ({GROUPED}) q WHERE n > 1.3 * before AND before >= 400"
DOWN = f"SELECT ward, day FROM ({GROUPED}) q WHERE n < 0.5 * before AND before >= 400"
FIRST_DAY = "2026-02-20"


@pytest.fixture
def wards(tmp_path: Path, postgres_url: str) -> Iterator[Clinic]:
    with clinic(tmp_path, postgres_url, sql=UP, arrived=ARRIVED, first_day=FIRST_DAY) as opened:
        yield opened


def _advance(wards: Clinic, hours: float, service: Service | None = None) -> None:
    wards.now = START + hours * HOUR + timedelta(minutes=1)
    wards.runner(service).make_due_looks()


def _arrive(wards: Clinic, ward: str, count: int, *, hours: float) -> None:
    at = START + hours * HOUR
    wards.arrive_late(visits(ward, count, at=at), arrived=at)


def test_a_ward_alerts_at_the_look_at_which_it_is_a_third_above_the_day_before(wards: Clinic) -> None:
    """The day before the horizon is read. A has grown, B has not, and C had too few visits to compare with."""
    run = wards.start()
    for ward, count in (("A", 500), ("B", 900), ("C", 50)):
        _arrive(wards, ward, count, hours=-12)
    _arrive(wards, "A", 500, hours=1)
    _advance(wards, 6)
    assert wards.alerts(run) == []
    _arrive(wards, "A", 800, hours=7)
    _arrive(wards, "B", 900, hours=7)
    _arrive(wards, "C", 900, hours=7)
    _advance(wards, 12)
    assert wards.alerts(run) == [(2, 0, "A")]
    _advance(wards, 24)
    for ward, count in (("A", 900), ("B", 900), ("C", 2200)):
        _arrive(wards, ward, count, hours=25)
    _advance(wards, 30)
    _advance(wards, 48)
    assert wards.alerts(run) == [(2, 0, "A"), (5, 1, "C")]


def test_a_row_that_comes_after_its_day_closed_does_not_count_in_the_next_one(wards: Clinic) -> None:
    """Without the late visits A would have risen on the first day already, and so it alerts."""
    run = wards.start()
    _arrive(wards, "A", 500, hours=-12)
    late = START - 11 * HOUR
    wards.arrive_late(visits("A", 900, at=late), arrived=START + HOUR)
    _arrive(wards, "A", 1300, hours=2)
    _advance(wards, 6)
    assert wards.alerts(run) == [(1, 0, "A")]


def test_a_day_is_charged_once_for_all_days_that_read_it(wards: Clinic) -> None:
    """The days of the horizon and the one before, each at the loss of the two alarms that may read its rows."""
    run, plan = wards.start(), wards.plan
    (asked,) = wards.service.ledger.read_history(analyst=RELEASED_BY)
    days = next(values for _, values in asked.charge.cells.columns if "2026-03-01" in values)
    assert days == ("2026-02-28", "2026-03-01", "2026-03-02", "2026-03-03")
    assert asked.charge.cells.key_count == 12
    for hours in (6, 24, 30, 48):
        _advance(wards, hours)
        assert most_spent(make_document(wards.service, None), "visits") == pytest.approx(
            plan.epsilon_per_cell, abs=1e-8
        )
    for hours in (73, 74):
        _advance(wards, hours)
    (ended,) = wards.service.ledger.monitors.list_runs()
    assert (ended.run, ended.state) == (run, MonitorState.ENDED)
    assert most_spent(make_document(wards.service, None), "visits") == pytest.approx(plan.epsilon_per_cell, abs=1e-8)
    wards.service.ledger.verify_everything()


def test_a_monitor_that_ends_before_its_first_look_costs_nothing(wards: Clinic) -> None:
    run = wards.start()
    wards.service.ledger.monitors.end_run(run, by="tests", why="over")
    assert most_spent(make_document(wards.service, None), "visits") == 0
    wards.service.ledger.verify_everything()


def test_a_service_that_is_opened_anew_goes_on_with_the_same_state(wards: Clinic) -> None:
    run = wards.start()
    _arrive(wards, "A", 500, hours=-12)
    _arrive(wards, "A", 640, hours=1)
    _advance(wards, 6)
    (before,) = wards.service.ledger.monitors.list_open_windows(run)
    with Service.open(wards.policy) as again:
        (found,) = again.ledger.monitors.list_open_windows(run)
        assert found == before
        _arrive(wards, "A", 660, hours=7)
        _advance(wards, 12, again)
        assert [one.window for one in again.ledger.monitors.read_alerts(run).alerts] == [0]
        again.ledger.verify_everything()


def test_a_fall_is_told_when_the_day_is_over(tmp_path: Path, postgres_url: str) -> None:
    with clinic(tmp_path, postgres_url, sql=DOWN, arrived=ARRIVED, first_day=FIRST_DAY) as wards:
        assert not wards.plan.alerts_early
        run = wards.start()
        for ward in "ABC":
            _arrive(wards, ward, 900, hours=-12)
        _arrive(wards, "A", 800, hours=5)
        for hours in (6, 12, 18):
            _advance(wards, hours)
        assert wards.service.ledger.monitors.list_begun_windows(run) == frozenset()
        _advance(wards, 24)
        assert wards.alerts(run) == [(1, 0, "B"), (1, 0, "C")]
        wards.service.ledger.verify_everything()


def test_days_of_a_duckdb_file_are_compared_as_well(tmp_path: Path) -> None:
    with clinic_in_a_file(tmp_path, sql=UP, arrived=ARRIVED, first_day=FIRST_DAY) as wards:
        run = wards.start()
        _arrive(wards, "A", 600, hours=-12)
        _arrive(wards, "A", 1800, hours=1)
        _advance(wards, 6)
        assert wards.alerts(run) == [(1, 0, "A")]


def _over(window: str) -> str:
    """Days with a window over those before, beside their number of visits."""
    return f"SELECT ward, day, count(*) AS n, {window} AS b FROM visits GROUP BY ward, day"


ALONG = "OVER (PARTITION BY ward ORDER BY day"
TRENDS = {
    "base": f"SELECT ward, day FROM ({_over(f'lag(count(*)) {ALONG})')}) q WHERE n > 1.3 * b AND b >= 10",
    "either": f"SELECT ward, day FROM ({_over(f'lag(count(*), 2) {ALONG})')}) q WHERE n - b > 8 OR b > 30 AND n < 20",
    "default": f"SELECT ward, day FROM ({_over(f'lag(count(*), 3, 0) {ALONG})')}) q WHERE n > b + 5",
    "mean": f"SELECT ward, day FROM ({_over(f'avg(count(*)) {ALONG} ROWS BETWEEN 4 PRECEDING AND 1 PRECEDING)')}) q "
    "WHERE n > 1.2 * b + 1 OR n <= 0.6 * b",
    "running": f"SELECT ward, day FROM ({_over(f'sum(count(*)) {ALONG} ROWS 2 PRECEDING)')}) q WHERE b >= 70",
    "rooms": f"SELECT ward, day FROM ({_over(f'lag(count(*) FILTER (WHERE room > 2)) {ALONG})')}) q WHERE b > n - 9",
    "twice": f"SELECT ward, day FROM ({_over(f'lag(count(*)) {ALONG})')}) q WHERE n > b AND n > 12",
    "joined": "WITH q AS (SELECT ward, day, count(*) AS n FROM visits GROUP BY ward, day) SELECT a.ward, a.day "
    "FROM q a JOIN q b ON b.ward = a.ward AND b.day = a.day - interval '2 days' WHERE a.n > b.n + 3",
    "falls": f"SELECT ward, day FROM ({_over(f'lag(count(*)) {ALONG})')}) q WHERE NOT n >= b - 4",
}


def test_the_values_of_a_look_give_the_answer_of_postgresql(tmp_path: Path, postgres_url: str) -> None:
    """Ten days of random visits; each monitor's condition of the exact values at the close of some days, against its
    own text over the same rows."""
    more = "".join(
        f'\n[monitors.{name}]\nsql = "{sql}"\nwindow = "day"\nevery = "6 hours"\nfrom = "2026-03-01"\n'
        'until = "2026-03-06"\ntolerance = "10%"\n'
        for name, sql in TRENDS.items()
    )
    chosen = Random(20)
    with clinic(tmp_path, postgres_url, arrived=ARRIVED, first_day="2026-02-25", more=more) as wards:
        with psycopg.connect(wards.source_url) as source, source.cursor() as cursor:
            for day in range(-4, 6):
                at = START + day * DAY + HOUR
                rows = [(ward, at, chosen.randrange(5), at) for ward in "ABC" for _ in range(chosen.randrange(1, 40))]
                cursor.executemany("INSERT INTO visits (ward, seen_at, room, arrived_at) VALUES (%s, %s, %s, %s)", rows)
        answers = 0
        for monitor in wards.service.catalog.monitors[1:]:
            plan = plan_monitor(wards.service.catalog, monitor, dialect=wards.service.source.dialect)
            expected = _ask_postgresql(wards.source_url, TRENDS[monitor.name])
            for window, start in list(enumerate(plan.windows.starts))[::2]:
                look = make_look(plan, window=window, look=plan.windows.looks)
                read = wards.service.source.read_aggregates(
                    look.rewritten, look.keys, functionals=look.functionals, timeout_ms=10_000
                )
                assert plan.trend is not None
                held = _hold(plan, plan.trend.compute_functionals(read.values, shape=look.keys.shape))
                found = {("ABC"[place], start.date()) for place in np.flatnonzero(held)}
                assert found == {one for one in expected if one[1] == start.date()}, (monitor.name, start)
                answers += len(found)
        assert 15 < answers < 3 * 3 * len(TRENDS) - 15


def _hold(plan: MonitorPlan, values: Integers) -> Booleans:
    """Whether the condition holds of exact values, for each ward."""
    return evaluate_formula(plan.question.formula, lambda one: one.evaluate(values[one.functional]), keys=3)


def _ask_postgresql(url: str, sql: str) -> set[tuple[str, date]]:
    """The answer of a monitor's own text, whose table has the day as a column."""
    by_day = "(SELECT *, date_trunc('day', seen_at)::date AS day FROM visits) AS visits"
    with psycopg.connect(url) as source:
        found: Sequence[tuple[str, date]] = source.execute(sql.replace("FROM visits", f"FROM {by_day}")).fetchall()
    return set(found)
