"""Monitors at work over real PostgreSQL: looks in time, alerts that stay, one charge, and what goes wrong."""

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psycopg
import pytest
import structlog
from structlog.testing import capture_logs

from accountant.errors import LookAlreadyRecorded
from accountant.monitor_model import MonitorState
from planner.catalog.catalog import RELEASED_BY
from planner.errors import KeyholeError
from planner.monitors.build import plan_monitor
from planner.question.plan import Rewritten
from proxy.monitors.look import WatchedRun
from proxy.monitors.runner import MonitorRunner
from proxy.monitors.schedule import list_due_looks
from proxy.monitors.start import start_monitor
from proxy.observe.telemetry import Telemetry
from proxy.open_policy.service import Service
from proxy.report.budget import make_document
from proxy.sources.protocol import Source, TrueAggregates
from tests.rows_at_once import insert
from tests.worlds.clinic import DAY, HOUR, NAME, START, Clinic, clinic, clinic_in_a_file, visits
from tests.worlds.house import most_spent

pytestmark = pytest.mark.server


@pytest.fixture
def wards(tmp_path: Path, postgres_url: str) -> Iterator[Clinic]:
    with clinic(tmp_path, postgres_url) as opened:
        yield opened


def _advance(wards: Clinic, hours: float) -> None:
    wards.now = START + hours * HOUR
    wards.runner().make_due_looks()


def test_a_ward_is_in_the_answer_from_the_look_at_which_it_crosses(wards: Clinic) -> None:
    """Far above and far below its threshold, where the chance of another answer is below 1e-9."""
    run = wards.start()
    wards.arrive(visits("A", 900, at=START + HOUR))
    _advance(wards, 6)
    assert wards.alerts(run) == [(1, 0, "A")]
    wards.arrive(visits("C", 900, at=START + 7 * HOUR))
    _advance(wards, 12)
    _advance(wards, 18)
    assert wards.alerts(run) == [(1, 0, "A"), (2, 0, "C")]
    _advance(wards, 24)
    wards.arrive(visits("A", 900, at=START + DAY))
    _advance(wards, 30)
    assert wards.alerts(run)[2:] == [(5, 1, "A")]
    assert wards.service.ledger.monitors.list_closed_windows(run) == {0}


def test_a_row_that_comes_after_the_moment_of_a_look_does_not_count_in_it(wards: Clinic) -> None:
    run = wards.start()
    wards.arrive(visits("A", 900, at=START + 6 * HOUR))
    _advance(wards, 6)
    assert wards.alerts(run) == []
    _advance(wards, 12)
    assert wards.alerts(run) == [(2, 0, "A")]


def test_nothing_is_looked_at_before_the_start_or_when_paused(wards: Clinic) -> None:
    wards.arrive(visits("A", 900, at=START + HOUR))
    _advance(wards, 6)
    run = wards.start()
    wards.service.ledger.monitors.pause_run(run, by="tests", why="to see")
    _advance(wards, 12)
    assert wards.alerts(run) == []
    wards.service.ledger.monitors.resume_run(run, by="tests", why="enough")
    _advance(wards, 13)
    assert wards.alerts(run) == [(2, 0, "A")]


def test_the_horizon_is_paid_once_however_many_looks_are_made(wards: Clinic) -> None:
    run, plan = wards.start(), wards.plan
    assert plan.windows.looks == 4
    for hours in (6, 12, 18, 24, 30):
        _advance(wards, hours)
        assert most_spent(make_document(wards.service, None), "visits") == pytest.approx(
            plan.epsilon_per_cell, abs=1e-8
        )
    wards.service.ledger.monitors.end_run(run, by="tests", why="over")
    assert most_spent(make_document(wards.service, None), "visits") == pytest.approx(plan.epsilon_per_cell, abs=1e-8)
    (asked,) = wards.service.ledger.read_history(analyst=RELEASED_BY)
    assert asked.charge.cells.key_count == 9
    wards.service.ledger.verify_everything()


def test_a_look_that_dies_before_it_is_recorded_is_made_again_on_the_same_draw(
    wards: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = wards.start()
    wards.arrive(visits("A", 400, at=START + HOUR))  # near its threshold: another draw could answer otherwise
    monitors = wards.service.ledger.monitors

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(type(monitors), "record_look", die)
        with pytest.raises(KeyboardInterrupt):
            _advance(wards, 6)
    (state,) = monitors.list_open_windows(run)
    assert state.look == 0
    _advance(wards, 6)
    (looked,) = monitors.list_open_windows(run)
    again = wards.plan.standing.take_look(
        state.body, np.array([[400, 0, 0]], dtype=np.int64), look=1, noise=wards.service.noise
    )
    assert looked.body == again.state


def test_of_two_processes_that_look_at_once_one_records_it(wards: Clinic) -> None:
    run = wards.start()
    wards.arrive(visits("A", 900, at=START + HOUR))
    wards.now = START + 6 * HOUR
    plan, (standing_run,) = wards.plan, wards.service.ledger.monitors.list_runs()
    due = list_due_looks(plan.windows, since=START, now=wards.now, made={}, closed=(), early=True)
    drawn = plan.standing.draw_state(keys=3, noise=wards.service.noise)
    state = wards.service.ledger.monitors.begin_window(run, 0, drawn)
    looks = [WatchedRun(wards.service, plan, standing_run, who).prepare_look(due[0], state) for who in ("one", "other")]
    first, second = (one for one in looks if one is not None)
    values = np.array([[900, 0, 0]], dtype=np.int64)
    first.record_look(values)
    with pytest.raises(LookAlreadyRecorded):
        second.record_look(values)
    assert wards.alerts(run) == [(1, 0, "A")]


def test_a_source_that_is_gone_makes_a_look_late_and_nothing_else(wards: Clinic) -> None:
    run = wards.start()
    wards.arrive(visits("A", 900, at=START + HOUR))
    with psycopg.connect(wards.source_url, autocommit=True) as source:
        source.execute("ALTER TABLE visits RENAME TO elsewhere")
        wards.now = START + 6 * HOUR
        runner = wards.runner()
        runner.make_due_looks()
        assert wards.alerts(run) == []
        wards.now += timedelta(minutes=10)
        assert runner.gauges[0].read() == {NAME: 600.0}
        source.execute("ALTER TABLE elsewhere RENAME TO visits")
    runner.make_due_looks()
    assert wards.alerts(run) == [(1, 0, "A")]
    assert runner.gauges[0].read() == {NAME: 0.0}


def test_a_window_whose_column_is_gone_does_not_begin_and_is_given_back(wards: Clinic) -> None:
    """No row is read of it. It begins once the column is there again."""
    run = wards.start()
    wards.arrive(visits("A", 900, at=START + HOUR))
    with psycopg.connect(wards.source_url, autocommit=True) as source:
        source.execute("ALTER TABLE visits RENAME COLUMN ward TO station")
        _advance(wards, 6)
        assert wards.service.ledger.monitors.list_begun_windows(run) == frozenset()
        source.execute("ALTER TABLE visits RENAME COLUMN station TO ward")
        _advance(wards, 12)
        assert wards.alerts(run) == [(2, 0, "A")]
        source.execute("ALTER TABLE visits RENAME COLUMN ward TO station")
    _advance(wards, 30)
    assert wards.service.ledger.monitors.list_begun_windows(run) == {0}


def test_a_monitor_that_cannot_be_read_holds_up_no_other(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault that nobody foresaw, in reading for the monitor that is looked at first."""
    other = """
[monitors.later]
sql = "SELECT ward, day FROM visits GROUP BY ward, day HAVING count(*) > 300"
window = "day"
every = "4 hours"
from = "2026-03-01"
until = "2026-03-03"
"""
    with clinic(tmp_path, postgres_url, every="3 hours", more=other) as wards:
        for monitor in wards.service.catalog.monitors:
            plan = plan_monitor(wards.service.catalog, monitor, dialect=wards.service.source.dialect)
            start_monitor(wards.service, plan, by="tests", why="to see")
        wards.arrive(visits("A", 900, at=START + HOUR))
        source = type(wards.service.source)
        aggregates = source.read_aggregates

        def break_at_three(self: Source, rewritten: Rewritten, *keys: Any, **how: Any) -> TrueAggregates:
            if "2026-03-01 03:00" in rewritten.sql:
                raise RuntimeError("unforeseen")
            return aggregates(self, rewritten, *keys, **how)

        wards.now = START + 4 * HOUR
        runner = wards.runner()
        with monkeypatch.context() as breaking:
            breaking.setattr(source, "read_aggregates", break_at_three)
            runner.make_due_looks()
        crowded, later = wards.service.ledger.monitors.list_runs()
        assert wards.alerts(crowded.run) == []
        assert wards.alerts(later.run) == [(1, 0, "A")]
        told = wards.service.telemetry.write_prometheus_text().decode()
        assert 'keyhole_monitor_looks_total{monitor="crowded",outcome="failed"} 1.0' in told
        wards.now += timedelta(minutes=1)
        runner.make_due_looks()
        assert wards.alerts(crowded.run) == [(1, 0, "A")]


def test_a_window_whose_state_is_lost_is_closed_and_the_next_one_watched(wards: Clinic) -> None:
    """Somebody deletes the states in the database of the ledger: the window costs all that was reserved."""
    run = wards.start()
    _advance(wards, 6)
    with sqlite3.connect(wards.policy.parent / "keyhole.db") as ledger:
        ledger.execute("DELETE FROM monitor_state")
    ledger.close()
    wards.arrive(visits("A", 900, at=START + 7 * HOUR))
    _advance(wards, 12)
    assert wards.service.ledger.monitors.list_closed_windows(run) == {0}
    _advance(wards, 18)
    assert wards.alerts(run) == []
    wards.arrive(visits("A", 900, at=START + DAY))
    _advance(wards, 30)
    assert wards.alerts(run) == [(5, 1, "A")]
    wards.service.ledger.verify_everything()


def test_looks_are_counted_by_how_they_end(wards: Clinic) -> None:
    wards.start()
    for hours in (6, 12):
        _advance(wards, hours)
    told = wards.service.telemetry.write_prometheus_text().decode()
    assert 'keyhole_monitor_looks_total{monitor="crowded",outcome="made"} 2.0' in told


def test_missed_looks_are_skipped_and_the_close_is_made_late(wards: Clinic) -> None:
    run = wards.start()
    wards.arrive(visits("A", 900, at=START + HOUR))
    _advance(wards, 6 + 2 * 24)
    assert wards.alerts(run) == [(4, 0, "A")]
    assert wards.service.ledger.monitors.list_closed_windows(run) == {0, 1}
    assert [one.looks_made for one in wards.service.ledger.monitors.list_runs()] == [3]


def test_another_monitor_under_the_same_name_is_not_looked_at(tmp_path: Path, postgres_url: str) -> None:
    with clinic(tmp_path, postgres_url) as wards:
        run = wards.start()
        policy = wards.policy.read_text(encoding="utf-8")
        wards.arrive(visits("A", 900, at=START + HOUR))
        wards.policy.write_text(policy.replace("> 400", "> 500"), encoding="utf-8")
        with Service.open(wards.policy) as other:
            wards.now = START + 6 * HOUR
            wards.runner(other).make_due_looks()
        assert wards.alerts(run) == []
        wards.policy.write_text(policy.replace('analysts = ["ada"]', "analysts = []"), encoding="utf-8")
        with Service.open(wards.policy) as same:
            wards.runner(same).make_due_looks()
        assert wards.alerts(run) == [(1, 0, "A")]


@dataclass
class _Answering:
    """Which of some open services answers now."""

    service: Service

    @property
    def telemetry(self) -> Telemetry:
        return self.service.telemetry

    def hold_open(self) -> AbstractContextManager[Service]:
        return self.service.hold_open()


def test_a_runner_looks_by_the_policy_that_answers_now(wards: Clinic) -> None:
    """At a reload: what the monitor was is looked at no more, and what it became as soon as that is started."""
    old = wards.start()
    policy = wards.policy.read_text(encoding="utf-8")
    wards.arrive(visits("A", 900, at=START + HOUR))
    answering = _Answering(wards.service)
    runner = MonitorRunner(
        answering,
        clock=lambda: wards.now.replace(tzinfo=UTC),
        seconds=lambda: wards.now.timestamp(),
        since=lambda _: START.replace(tzinfo=UTC),
    )
    wards.now = START + 6 * HOUR
    runner.make_due_looks()
    assert wards.alerts(old) == [(1, 0, "A")]
    wards.policy.write_text(policy.replace("> 400", "> 500"), encoding="utf-8")
    with Service.open(wards.policy) as service:
        answering.service = service
        wards.arrive(visits("C", 900, at=START + 7 * HOUR))
        wards.now = START + 12 * HOUR
        runner.make_due_looks()
        assert wards.alerts(old) == [(1, 0, "A")]
        service.ledger.monitors.end_run(old, by="tests", why="changed")
        plan = plan_monitor(service.catalog, service.catalog.monitors[0], dialect=service.source.dialect)
        new = start_monitor(service, plan, by="tests", why="to see").run
        runner.make_due_looks()
        assert wards.alerts(new) == [(2, 0, "A"), (2, 0, "C")]


def test_a_monitor_that_is_put_right_is_looked_at_as_soon_as_the_policy_answers(wards: Clinic) -> None:
    """What was found of the next look under one policy says nothing of another's."""
    run = wards.start()
    policy = wards.policy.read_text(encoding="utf-8")
    wards.policy.write_text(policy.replace("> 400", "> 500"), encoding="utf-8")
    wards.arrive(visits("A", 900, at=START + HOUR))
    wards.now = START + 6 * HOUR
    with Service.open(wards.policy) as wrong:
        answering = _Answering(wrong)
        runner = MonitorRunner(
            answering,
            clock=lambda: wards.now.replace(tzinfo=UTC),
            seconds=lambda: wards.now.timestamp(),
            since=lambda _: START.replace(tzinfo=UTC),
        )
        runner.make_due_looks()
        assert wards.alerts(run) == []
        answering.service = wards.service
        runner.make_due_looks()
    assert wards.alerts(run) == [(1, 0, "A")]


def test_starting_twice_is_refused(wards: Clinic) -> None:
    run = wards.start()
    with pytest.raises(KeyholeError, match="has not ended") as refused:
        wards.start()
    assert refused.value.code == "KH606"
    wards.service.ledger.monitors.end_run(run, by="tests", why="over")
    assert [one.state for one in wards.service.ledger.monitors.list_runs()] == [MonitorState.ENDED]


def test_what_is_decided_at_the_close_is_decided_then(tmp_path: Path, postgres_url: str) -> None:
    sql = "SELECT ward, day FROM visits GROUP BY ward, day HAVING count(*) < 100"
    with clinic(tmp_path, postgres_url, sql=sql) as wards:
        run = wards.start()
        wards.arrive(visits("A", 900, at=START + HOUR))
        for hours in (6, 12, 18):
            _advance(wards, hours)
        assert wards.service.ledger.monitors.list_begun_windows(run) == frozenset()
        _advance(wards, 24)
        assert wards.alerts(run) == [(1, 0, "B"), (1, 0, "C")]


def test_what_may_become_false_again_alerts_at_the_look_at_which_it_is_true(tmp_path: Path, postgres_url: str) -> None:
    """A ward within the band alerts and stays when it is above it; one that is above it by its first look never does.
    Five tolerances from either end, where the chance of another answer is below 1e-9."""
    sql = "SELECT ward, day FROM visits GROUP BY ward, day HAVING count(*) BETWEEN 300 AND 600"
    with clinic(tmp_path, postgres_url, sql=sql, more="early_any = true") as wards:
        run = wards.start()
        wards.arrive(visits("A", 1200, at=START + HOUR))
        _advance(wards, 6)
        wards.arrive(visits("B", 450, at=START + 7 * HOUR))
        _advance(wards, 12)
        assert wards.alerts(run) == [(2, 0, "B")]
        wards.arrive(visits("B", 900, at=START + 13 * HOUR))
        for hours in (18, 24):
            _advance(wards, hours)
        assert wards.alerts(run) == [(2, 0, "B")]
        spent = most_spent(make_document(wards.service, None), "visits")
        assert spent == pytest.approx(wards.plan.epsilon_per_cell, abs=1e-8)
        wards.arrive(visits("C", 450, at=START + DAY))
        _advance(wards, 30)
        assert wards.alerts(run) == [(2, 0, "B"), (5, 1, "C")]


def test_windows_that_hop_are_looked_at_one_at_a_time(tmp_path: Path, postgres_url: str) -> None:
    sql, window = (
        "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 400",
        '{ column = "seen_at", length = "1 day", hop = "6 hours" }',
    )
    with clinic(tmp_path, postgres_url, sql=sql, window=window, every="1 hour") as wards:
        run = wards.start()
        wards.arrive(visits("A", 5000, at=START + 13 * HOUR))
        for hour in range(1, 49):
            _advance(wards, hour)
        # it is in the windows that begin at 0, 6 and 12 hours, each of which is looked at in its last six hours alone
        assert [(number, window) for number, window, _ in wards.alerts(run)] == [(1, 0), (7, 1), (13, 2)]


def test_a_sliding_window_alerts_once_in_an_epoch(tmp_path: Path, postgres_url: str) -> None:
    sql, window = (
        "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 4000",
        '{ column = "seen_at", length = "1 day", sliding = true }',
    )
    with clinic(tmp_path, postgres_url, sql=sql, window=window, every="6 hours") as wards:
        run = wards.start()
        wards.arrive(visits("B", 8000, at=START + 13 * HOUR))
        for hour in range(6, 97, 6):
            _advance(wards, hour)
        # within the day that ends at a look from hour 18 to hour 36; epochs have four looks
        assert [(one.window, "ABC"[one.key]) for one in wards.service.ledger.monitors.read_alerts(run).alerts] == [
            (0, "B"),
            (1, "B"),
        ]


def test_monitors_of_one_table_and_moment_read_together(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = """
[monitors.dear]
sql = "SELECT ward, day FROM visits WHERE cost > 0 GROUP BY ward, day HAVING count(*) > 300"
window = "day"
every = "6 hours"
from = "2026-03-01"
until = "2026-03-03"
"""
    with clinic(tmp_path, postgres_url, more=other) as wards:
        for monitor in wards.service.catalog.monitors:
            plan = plan_monitor(wards.service.catalog, monitor, dialect=wards.service.source.dialect)
            start_monitor(wards.service, plan, by="tests", why="to see")
        wards.arrive(visits("A", 900, at=START + HOUR))
        read: list[str] = []
        source = type(wards.service.source)
        aggregates = source.read_aggregates

        def counted(self: Source, rewritten: Rewritten, *keys: Any, **how: Any) -> TrueAggregates:
            read.append(rewritten.sql)
            return aggregates(self, rewritten, *keys, **how)

        with monkeypatch.context() as counting:
            counting.setattr(source, "read_aggregates", counted)
            _advance(wards, 6)
        assert len(read) == 1
        crowded, dear = wards.service.ledger.monitors.list_runs()
        assert wards.alerts(crowded.run) == [(1, 0, "A")]
        assert wards.alerts(dear.run) == []
        assert (crowded.run, dear.looks_made) != (dear.run, 0)


def test_a_loader_writes_to_the_file_between_looks(tmp_path: Path) -> None:
    with clinic_in_a_file(tmp_path) as wards:
        run = wards.start()
        for hour in (6, 12):
            with duckdb.connect(wards.source_url) as loader:
                insert(loader, "visits (ward, seen_at)", visits("A", 450, at=wards.now))
            _advance(wards, hour)
        assert wards.alerts(run)[-1][1:] == (0, "A")
        with duckdb.connect(wards.source_url) as loader:
            assert loader.execute("SELECT count(*) FROM visits").fetchone() == (900,)


def test_the_ledger_keeps_of_its_text_what_the_policy_lets_it(tmp_path: Path, postgres_url: str) -> None:
    sql = "SELECT ward, day FROM visits WHERE ward <> 'B' GROUP BY ward, day HAVING count(*) > 400;"
    with clinic(tmp_path, postgres_url, sql=sql) as wards:
        wards.start()
        (asked,) = wards.service.ledger.read_history(analyst=RELEASED_BY)
        assert asked.wording is not None
        text = asked.wording.text or ""
        assert "count(*) > 400" in text
        assert "'B'" not in text


def test_a_monitor_that_the_policy_lost_or_changed_is_told_of_and_late(tmp_path: Path, postgres_url: str) -> None:
    with clinic(tmp_path, postgres_url) as wards:
        wards.start()
        policy = wards.policy.read_text(encoding="utf-8")
        wards.policy.write_text(policy.replace("> 400", "> 500"), encoding="utf-8")
        with Service.open(wards.policy) as other:
            wards.now = START + 6 * HOUR
            runner = wards.runner(other)
            runner.make_due_looks()
            wards.now += HOUR
            assert runner.gauges[0].read() == {NAME: 3600.0}
        wards.policy.write_text(policy.partition("[monitors.crowded]")[0], encoding="utf-8")
        with (
            capture_logs() as logged,
            Service.open(wards.policy, telemetry=Telemetry(log=structlog.get_logger())) as without,
        ):
            runner = wards.runner(without)
            for _ in range(3):
                runner.make_due_looks()
        assert [line["monitor"] for line in logged if line["event"] == "monitor cannot be looked at"] == [NAME]
