"""Sliding windows whose alerts go at once: prices, one state for the horizon, and refusals with hints that work."""

from datetime import timedelta

import pytest

from mechanisms.alarm.prices import Way
from mechanisms.standing.sliding_noise import SlidingNoise
from mechanisms.standing.window_noise import estimate_state_size
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.monitors import at_once
from planner.monitors.affordable import find_fitting
from planner.monitors.explain import describe_monitor, explain_monitor, make_monitor_json
from planner.monitors.guarantee import make_promise_json, write_promise
from planner.monitors.monitor_plan import MonitorPlan
from tests.in_turn import in_turn
from tests.seeded_noise import SeededNoise
from tests.worlds.monitored import BY_WARD, TABLES, declared, planned

ARRIVED = TABLES.replace("append_only = true\n", 'append_only = true\narrived = "arrived_at"\n', 1)
IN_ORDER = ARRIVED.replace("arrived_at", "seen_at")


def _window(length: str, column: str = "seen_at") -> str:
    return f'{{ column = "{column}", length = "{length}", sliding = true }}'


def _at_once(
    sql: str = BY_WARD,
    *,
    tables: str = ARRIVED,
    length: str = "24 hours",
    column: str = "seen_at",
    **keys: str,
) -> MonitorPlan:
    return planned(sql, tables=tables, window=_window(length, column), clears='"at once"', **keys)


def _asking(having: str) -> str:
    return BY_WARD.replace("count(*) > 400", having)


@pytest.mark.parametrize(
    ("length", "every", "price", "way"),
    [
        ("2 hours", "1 hour", 5.66, Way.TICK_NOISE),
        ("12 hours", "1 hour", 14.2, Way.TICK_NOISE),
        ("24 hours", "1 hour", 20.2, Way.TICK_NOISE),
        ("60 hours", "1 hour", 28.0, Way.BLOCK_NOISE),
        ("7 days", "1 hour", 35.8, Way.BLOCK_NOISE),
    ],
)
def test_the_cheaper_noise_is_taken(length: str, every: str, price: float, way: Way) -> None:
    """At a tolerance of 1,000 rows, where whole numbers are as good as others."""
    plan = _at_once(_asking("count(*) > 9999"), tolerance='"999"', length=length, every=f'"{every}"')
    assert plan.epsilon_per_cell * 1000 == pytest.approx(price, rel=0.01)
    assert plan.way.way is way
    assert plan.way.price == min(one.price for one in plan.ways if one.way in (Way.TICK_NOISE, Way.BLOCK_NOISE))
    assert plan.find_way_epsilon(plan.way) == plan.epsilon_per_cell == plan.standing.worst_case_epsilon
    assert plan.epsilon_per_unit == 0


def test_all_looks_of_the_horizon_are_those_of_one_state() -> None:
    plan = _at_once(lateness='"10 minutes"')
    assert plan.clears_at_once
    assert isinstance(plan.standing, SlidingNoise)
    assert (len(plan.windows.starts), plan.windows.looks, plan.standing.looks) == (1, 365 * 24, 365 * 24)
    assert plan.windows.first_looks[0] - plan.windows.starts[0] == timedelta(hours=1)
    assert plan.windows.delay == timedelta(minutes=11), "what is being added at the moment of a look has to be there"
    assert plan.question.keys.names == plan.keys.names == ("ward",)
    shorter = _at_once(lateness='"10 minutes"', until='"2026-01-02 18:30"')
    assert shorter.windows.looks == 42
    assert shorter.epsilon_per_cell == plan.epsilon_per_cell, "a row is in as many looks"


def test_rows_that_count_by_their_own_time_have_to_be_there_in_time_which_is_said() -> None:
    """Rows in the order of their time may all come late, to stretches of time whose noise was used."""
    (warning,) = _at_once(tables=IN_ORDER, lateness='"10 minutes"').warnings
    assert "within 11 minutes of their seen_at" in warning
    assert _at_once(lateness='"10 minutes"').warnings == ()


@pytest.mark.parametrize(
    "having",
    [
        "count(*) < 400",
        "count(*) BETWEEN 100 AND 400",
        "count(*) > 400 AND sum(cost) > 20000",
        "sum(change) > 100",
        "avg(cost) > 400 OR count(*) < 10",
        "NOT (count(*) > 400 AND count(*) > 100)",
    ],
)
def test_any_condition_is_watched(having: str) -> None:
    plan = _at_once(_asking(having), tolerance='"50"', length="3 hours")
    assert isinstance(plan.standing, SlidingNoise)
    assert not any(way.way is Way.ALARM_PER_EPOCH for way in plan.ways), "no alarm watches that in windows that slide"
    assert plan.standing.fnr is not None
    assert plan.standing.fnr <= 0.05


def test_it_is_another_monitor_than_one_that_clears_at_the_close() -> None:
    latched = planned(BY_WARD, tables=ARRIVED, window=_window("24 hours"))
    assert not latched.clears_at_once
    assert latched.fingerprint != _at_once().fingerprint
    assert planned(BY_WARD, tables=ARRIVED, window=_window("24 hours"), clears='"at the close"') == latched
    assert _at_once().fingerprint != _at_once(tables=IN_ORDER).fingerprint


CHANGING = TABLES.replace("append_only = true\n", 'immutable = ["ward", "seen_at"]\n', 1)
REFUSED = [
    ({"tables": CHANGING}, "KH603", "append_only"),
    ({"tables": TABLES}, "KH603", 'arrived = "seen_at"'),
    ({"tables": ARRIVED.replace("arrived_at", "reported")}, "KH603", "timestamp in arrived"),
    ({"sql": BY_WARD.replace("visits", "stays"), "column": "recorded_at"}, "KH603", "hop"),
    ({"length": "3 days", "column": "reported", "every": '"1 day"', "from": '"2026-01-01 06:00"'}, "KH601", "2026-01"),
    ({"fnr": "1e-14"}, "KH303", "fnr"),
    ({"length": "400 days"}, "KH601", "until"),
]


@in_turn(("keys", "code", "hint"), REFUSED)
def test_what_cannot_be_watched_so_is_refused(keys: dict[str, str], code: str, hint: str) -> None:
    with pytest.raises(KeyholeError) as caught:
        _at_once(**keys)
    assert caught.value.code == code
    assert caught.value.message.startswith("[monitors.crowded]: ")
    assert hint in (caught.value.hint or "")


def test_sums_that_could_be_held_back_are_refused() -> None:
    """A stretch's part of a total that is held within 64 bits would depend on other stretches."""
    wide = "bounds = [0, 99999999]\ngrid = 0.01"
    with pytest.raises(KeyholeError) as caught:
        _at_once(_asking("sum(cost) > 200000000"), tables=ARRIVED.replace("bounds = [0, 5000]\ngrid = 0.01", wide, 1))
    assert caught.value.code == "KH602"


def test_noise_that_is_too_much_to_be_written_is_refused_with_settings_that_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three groups of 24 stretches are 576 bytes."""
    monkeypatch.setattr(at_once, "MOST_STATE_BYTES", 300)
    with pytest.raises(KeyholeError) as caught:
        _at_once()
    assert caught.value.code == "KH601"
    assert 'to 1 groups, or write every = "2 hours".' in (caught.value.hint or "")
    assert _at_once(every='"2 hours"').windows.looks == 365 * 12


@pytest.mark.parametrize("length", ["24 hours", "60 hours", "7 days"])
def test_a_state_is_as_large_as_was_said(length: str) -> None:
    plan = _at_once(length=length)
    assert isinstance(plan.standing, SlidingNoise)
    state = plan.standing.draw_state(keys=plan.keys.size, noise=SeededNoise(3))
    said = estimate_state_size(plan.standing.shape, functionals=1, keys=plan.keys.size)
    assert said <= len(state) + 64
    assert len(state) <= said + 64


def test_explain_says_what_it_is_what_it_costs_and_what_is_promised() -> None:
    plan = _at_once()
    lines = explain_monitor(plan)
    (taken,) = (line for line in lines if line.startswith("    -> "))
    assert taken.endswith("an alert goes at once")
    assert "noise on each tick" in taken
    assert any('clears = "at the close": an alert stays up to 1 day' in line for line in lines)
    assert any("8,760, every 1 hour, made 1 minute later; a row is in 24 of them" in line for line in lines)
    assert any("the look at which the time in them was first seen" in line for line in lines)
    assert "at each look by itself" in write_promise(plan)
    told = make_promise_json(plan)
    assert (told["fpr_per_window"], told["fpr_per_look"], told["fnr_per_look"]) == (None, 0.10, 0.05)
    assert make_monitor_json(plan)["clears"] == "at once"
    assert "cleared at once" in describe_monitor(plan)


def test_what_clears_at_the_close_says_how_to_ask_for_more() -> None:
    lines = explain_monitor(planned(BY_WARD, tables=ARRIVED, window=_window("24 hours")))
    (ticks,) = (line for line in lines if "noise on each tick" in line)
    assert 'clears = "at once": an alert goes at once, fpr is for each look' in ticks
    assert not any("no monitor can use it" in line for line in lines)


def test_settings_that_fit_are_told_and_do() -> None:
    catalog = declared(BY_WARD, tables=ARRIVED, window=_window("24 hours"), clears='"at once"')
    found = find_fitting(catalog, catalog.monitors[0], dialect=DUCKDB, fits=lambda plan: plan.epsilon_per_cell <= 0.48)
    assert found == ('tolerance = "11%"', 'every = "2 hours" (12 looks a window)', 'clears = "at the close"')
    assert _at_once(tolerance='"11%"').epsilon_per_cell <= 0.48
    assert _at_once(every='"2 hours"').epsilon_per_cell <= 0.48
