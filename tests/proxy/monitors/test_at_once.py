"""Alerts that go at once, over real sources: rows come and leave, come late, and come again; one charge a run.

Counts are far from their threshold, where the chance of another answer is below 1e-9, unless a test says otherwise.
"""

from collections.abc import Iterator
from datetime import UTC, timedelta
from pathlib import Path
from typing import TypedDict

import numpy as np
import pytest
from scipy import stats

from mechanisms.formula import Integers
from planner.catalog.catalog import RELEASED_BY
from proxy.monitors.look import WatchedRun
from proxy.monitors.schedule import DueLook
from proxy.report.budget import make_document
from tests.effort import rounds
from tests.worlds.clinic import ARRIVED, HOUR, START, Clinic, clinic, clinic_in_a_file, visits
from tests.worlds.house import most_spent

pytestmark = pytest.mark.server


class Asked(TypedDict):
    """What the clinic's monitor is declared with."""

    sql: str
    window: str
    every: str
    more: str
    arrived: str


LAST_THREE = '{ column = "seen_at", length = "3 hours", sliding = true }'
LATENESS = timedelta(minutes=10)
DUE = LATENESS + timedelta(minutes=1)
"""How long after its moment a look is made."""
ASKED: Asked = {
    "sql": "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 400",
    "window": LAST_THREE,
    "every": "1 hour",
    "more": 'clears = "at once"\nlateness = "10 minutes"',
    "arrived": ARRIVED,
}


@pytest.fixture
def wards(tmp_path: Path, postgres_url: str) -> Iterator[Clinic]:
    with clinic(tmp_path, postgres_url, **ASKED) as opened:
        yield opened


@pytest.fixture(params=["postgres", "duckdb"])
def both(request: pytest.FixtureRequest, tmp_path: Path, postgres_url: str) -> Iterator[Clinic]:
    made = (
        clinic(tmp_path, postgres_url, **ASKED) if request.param == "postgres" else clinic_in_a_file(tmp_path, **ASKED)
    )
    with made as opened:
        yield opened


def _look(wards: Clinic, number: int) -> None:
    wards.now = START + number * HOUR + DUE
    wards.runner().make_due_looks()


def _arrive(wards: Clinic, ward: str, count: int, *, hour: float, late: timedelta = timedelta(0)) -> None:
    at = START + hour * HOUR
    wards.arrive_late(visits(ward, count, at=at), arrived=at + timedelta(minutes=1) + late)


def _in_answer(wards: Clinic, run: str) -> str:
    return "".join("ABC"[key] for key in wards.service.ledger.monitors.find_keys_in_answer(run, 0))


def test_rows_come_and_leave_and_come_again(both: Clinic) -> None:
    run, seen = both.start(), []
    both.now = START + HOUR + LATENESS
    both.runner().make_due_looks()
    assert both.service.ledger.monitors.list_open_windows(run) == (), "what is being added has another minute"
    for look in range(1, 12):
        if look in (2, 8):
            _arrive(both, "A", 900, hour=look - 0.5)
        if look == 3:
            _arrive(both, "C", 900, hour=look - 0.5)
        _look(both, look)
        seen.append(_in_answer(both, run))
    assert seen == ["", "A", "AC", "AC", "C", "", "", "A", "A", "A", ""]
    page = both.service.ledger.monitors.read_alerts(run)
    told = [(one.number, "ABC"[one.key], one.cleared_number) for one in page.alerts]
    assert told == [(2, "A", 5), (3, "C", 6), (8, "A", 11)]
    assert {one.cleared_at for one in page.alerts} == {(START + look * HOUR).replace(tzinfo=UTC) for look in (5, 6, 11)}
    both.service.ledger.verify_everything()


def test_what_comes_after_the_look_at_its_time_counts_in_none(both: Clinic) -> None:
    """Visits of the second hour that come with its look, and others that came in its last minute."""
    run, seen = both.start(), []
    _arrive(both, "A", 900, hour=1.5, late=timedelta(minutes=39))
    _arrive(both, "B", 900, hour=1.5, late=timedelta(minutes=38))
    for look in range(1, 6):
        _look(both, look)
        seen.append(_in_answer(both, run))
    assert seen == ["", "B", "B", "B", ""]


def test_looks_that_are_missed_change_nothing_of_later_ones(wards: Clinic) -> None:
    run = wards.start()
    _arrive(wards, "A", 900, hour=1.5)
    _arrive(wards, "A", 900, hour=2.5, late=2 * HOUR)  # in time for no look, made or not
    _look(wards, 1)
    _look(wards, 4)
    assert _in_answer(wards, run) == "A"
    _look(wards, 5)
    assert _in_answer(wards, run) == ""


def test_a_condition_below_its_threshold_holds_while_it_does(tmp_path: Path, postgres_url: str) -> None:
    asked: Asked = {**ASKED, "sql": ASKED["sql"].replace("> 400", "< 400")}
    with clinic(tmp_path, postgres_url, **asked) as wards:
        run, seen = wards.start(), []
        _arrive(wards, "B", 900, hour=1.5)
        for look in (1, 2, 5):
            _look(wards, look)
            seen.append(_in_answer(wards, run))
        assert seen == ["ABC", "AC", "ABC"]


def test_all_looks_cost_once_and_a_later_run_pays_and_draws_again(wards: Clinic) -> None:
    run, plan, monitors = wards.start(), wards.plan, wards.service.ledger.monitors
    assert plan.windows.looks == 72
    for look in (1, 2, 3, 7):
        _look(wards, look)
        assert most_spent(make_document(wards.service, None), "visits") == pytest.approx(
            plan.epsilon_per_cell, abs=1e-8
        )
    (drawn,) = monitors.list_open_windows(run)
    monitors.end_run(run, by="tests", why="over")
    assert most_spent(make_document(wards.service, None), "visits") == pytest.approx(plan.epsilon_per_cell, abs=1e-8)
    again = wards.start()
    assert most_spent(make_document(wards.service, None), "visits") == pytest.approx(
        2 * plan.epsilon_per_cell, abs=1e-8
    )
    _arrive(wards, "A", 900, hour=7.5)
    _look(wards, 8)
    assert _in_answer(wards, again) == "A"
    (anew,) = monitors.list_open_windows(again)
    assert anew.body != drawn.body
    assert [asked.charge.cells.key_count for asked in wards.service.ledger.read_history(analyst=RELEASED_BY)] == [3, 3]
    wards.service.ledger.verify_everything()


def test_a_run_that_ends_before_its_first_look_costs_nothing(wards: Clinic) -> None:
    run = wards.start()
    wards.service.ledger.monitors.end_run(run, by="tests", why="never mind")
    assert most_spent(make_document(wards.service, None), "visits") == 0


def test_the_last_look_of_the_horizon_closes_it(wards: Clinic) -> None:
    run = wards.start()
    _look(wards, 71)
    assert wards.service.ledger.monitors.list_closed_windows(run) == frozenset()
    _look(wards, 90)
    assert wards.service.ledger.monitors.list_closed_windows(run) == {0}
    _look(wards, 91)
    assert most_spent(make_document(wards.service, None), "visits") == pytest.approx(
        wards.plan.epsilon_per_cell, abs=1e-8
    )


def test_a_look_that_dies_before_it_is_recorded_is_made_again_on_the_same_draw(
    wards: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Near the threshold, where another draw could answer otherwise; at the second look as at the first."""
    run, monitors = wards.start(), wards.service.ledger.monitors
    _arrive(wards, "A", 400, hour=0.5)

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for look in (1, 2):
        with monkeypatch.context() as dying:
            dying.setattr(type(monitors), "record_look", die)
            with pytest.raises(KeyboardInterrupt):
                _look(wards, look)
        (state,) = monitors.list_open_windows(run)
        assert state.look == look - 1
        assert len(monitors.read_alerts(run).alerts) == 0 or look > 1
        values = np.array([[400, 0, 0]], dtype=np.int64)
        own = wards.plan.standing.take_look(state.body, values, look=look, noise=wards.service.noise)
        _look(wards, look)
        (looked,) = monitors.list_open_windows(run)
        assert looked.look == look
        if look == 1:
            assert looked.body == own.state, "the first look's noise was drawn before data were read"
            assert _in_answer(wards, run) == ("A" if own.alerted[0] else "")


def test_both_rates_hold_at_each_look_by_itself(tmp_path: Path, postgres_url: str) -> None:
    """Half of a thousand rooms one visit above the threshold, half of them at the tolerance below it, at every look: by
    the state that is written and read again. Each of the looks leaves its binomial quantile with a chance of 1e-8."""
    asked: Asked = {**ASKED, "sql": "SELECT room FROM visits GROUP BY room HAVING count(*) > 400"}
    with clinic(tmp_path, postgres_url, **asked) as wards:
        run, plan, monitors = wards.start(), wards.plan, wards.service.ledger.monitors
        (standing_run,) = monitors.list_runs()
        watched = WatchedRun(wards.service, plan, standing_run, "tests")
        values: Integers = np.repeat(np.array([401, 360], dtype=np.int64), 500)[np.newaxis, :]
        seen = []
        for look in range(1, 1 + rounds(40, quick=6)):
            state = next(iter(monitors.list_open_windows(run)), None)
            due = DueLook(0, look, START + look * HOUR, look)
            prepared = watched.prepare_look(due, state)
            assert prepared is not None
            prepared.record_look(values)
            answer = np.array(monitors.find_keys_in_answer(run, 0))
            seen.append((500 - np.count_nonzero(answer < 500), np.count_nonzero(answer >= 500)))
        assert plan.standing.fnr is not None
        assert plan.standing.fpr is not None
        assert max(missed for missed, _ in seen) <= stats.binom.isf(1e-8, 500, plan.standing.fnr)
        assert max(wrong for _, wrong in seen) <= stats.binom.isf(1e-8, 500, plan.standing.fpr)
        assert min(wrong for _, wrong in seen) > 0
