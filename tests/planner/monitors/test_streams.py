"""Monitors that a published stream watches: what they lose, what is told of them, and what none can watch."""

import json

import pytest

from mechanisms.alarm.prices import Way
from mechanisms.standing.standing_streams import NO_BOUND, StandingStream
from mechanisms.streams.stream_names import WATCHING
from planner.errors import KeyholeError
from planner.monitors.chances import list_courses
from planner.monitors.explain import describe_monitor, explain_monitor, make_monitor_json
from planner.monitors.guarantee import write_promise
from planner.monitors.monitor_plan import MonitorPlan
from planner.monitors.stream_monitor import MOST_STREAMED
from tests.worlds.monitored import BY_WARD, OF_A_DAY, SQL, TABLES, planned

OF_STAYS = "SELECT ward, day FROM stays GROUP BY ward, day HAVING count(DISTINCT patient_id) > 100"
PASSING = TABLES.replace("append_only = true\n", 'immutable = ["ward", "day"]\n', 1)


def _streamed(sql: str = SQL, *, name: str = "pegasus", epsilon: str = "0.5", **keys: str) -> MonitorPlan:
    return planned(sql, mechanism=f'"{name}"', **({} if name == "zeros" else {"epsilon": epsilon}), **keys)


@pytest.mark.parametrize("name", WATCHING)
def test_every_stream_can_be_named_and_loses_what_it_is_given(name: str) -> None:
    plan = _streamed(name=name)
    assert isinstance(plan.standing, StandingStream)
    assert plan.standing.name == name
    assert (plan.standing.fnr, plan.standing.fpr) == (None, None)
    assert plan.epsilon_per_cell == (0.0 if name == "zeros" else 0.5)
    assert plan.alerts_early


@pytest.mark.parametrize(
    ("having", "tables", "times"),
    [
        ("count(*) > 400", TABLES, 1),
        ("count(*) > 400", PASSING, 24),
        ("sum(change) > 400", TABLES, 47),
        ("count(*) > 400 AND sum(change) > 400", PASSING, 71),
    ],
)
def test_an_event_counts_as_often_as_it_can_change_what_is_between_looks(having: str, tables: str, times: int) -> None:
    """Once where rows are added alone, at each of the 24 looks where they come and go, twice at each but the first
    where they take something off."""
    sql = f"SELECT ward, day FROM visits GROUP BY ward, day HAVING {having}"
    assert _streamed(sql, tables=tables).epsilon_per_cell == pytest.approx(0.5 * times)


def test_a_unit_pays_for_the_groups_and_windows_that_it_counts_in() -> None:
    assert _streamed(OF_STAYS, epsilon="0.25").epsilon_per_unit == pytest.approx(20 * 0.25)
    hopping = '{ column = "seen_at", length = "1 day", hop = "6 hours" }'
    assert _streamed(BY_WARD, window=hopping).epsilon_per_cell == pytest.approx(4 * 0.5)


def test_that_nothing_is_bounded_is_said_everywhere() -> None:
    plan = _streamed(OF_STAYS, epsilon="0.25")
    assert write_promise(plan) == (
        "no bound on missed or wrong: a group comes into the answer at the first look at which the condition, with "
        "10 % slack, holds of estimates by pegasus, which promise no accuracy; at most 0.25 epsilon a group and "
        "window. This holds for aggregates after bounding each (patient_id), which counts in at most 20 of 1,095 "
        "groups and windows and loses at most 5 epsilon over the horizon; rows without patient_id are left out."
    )
    assert describe_monitor(plan).endswith("; pegasus: no bound on missed or wrong")
    assert NO_BOUND.rstrip(".") in plan.warnings
    document = json.loads(json.dumps(make_monitor_json(plan)))
    assert document["guarantee"]["fnr_per_look"] is None
    assert document["guarantee"]["fpr_per_window"] is None
    assert (document["mechanism"], document["event_epsilon"]) == ("pegasus", 0.25)
    assert list_courses(plan) == ()


def test_what_a_contract_would_cost_stands_beside_it() -> None:
    plan = _streamed()
    assert [way.way for way in plan.ways] == [Way.STREAM, Way.ALARM, Way.SIGNED_TREE, Way.AFRESH]
    assert plan.way.way is Way.STREAM
    alarm = planned()
    assert plan.find_way_epsilon(plan.ways[1]) == pytest.approx(alarm.epsilon_per_cell)
    lines = explain_monitor(plan)
    for line in (
        "    count(*) > 400   holds of estimates above 360, whose errors have no bound",
        "  Ways of watching the groups; pegasus keeps no rates, the others keep fnr 5 % and fpr 10 %:",
        "    -> pegasus, a published stream, no bound on missed or wrong   epsilon 0.50   an alert stays up to 1 day",
    ):
        assert line in lines
    both = SQL + " AND sum(cost) > 400"  # of rows that may go, one alarm watches it as a whole
    stream, alarm = _streamed(both, tables=PASSING), planned(both, tables=PASSING, early_any="true")
    assert stream.find_way_epsilon(stream.ways[1]) == pytest.approx(alarm.epsilon_per_cell)
    assert stream.warnings[-1].startswith("an alert stays until its window closes")


def test_what_it_may_lose_makes_another_monitor() -> None:
    assert _streamed().fingerprint != _streamed(epsilon="0.25").fingerprint
    assert _streamed().fingerprint != _streamed(name="pegasus_average").fingerprint
    assert _streamed().fingerprint == _streamed(epsilon="0.50").fingerprint


@pytest.mark.parametrize("having", ["count(*) < 400", "count(*) BETWEEN 100 AND 400"])
def test_what_is_below_a_threshold_no_stream_watches(having: str) -> None:
    with pytest.raises(KeyholeError, match="below a threshold") as refused:
        _streamed(f"SELECT ward, day FROM visits GROUP BY ward, day HAVING {having}")
    assert refused.value.code == "KH602"


def test_thresholds_of_each_group_are_refused() -> None:
    sql = (
        "SELECT v.ward, v.day FROM visits v JOIN calendar c ON v.day = c.day GROUP BY v.ward, v.day, c.target "
        "HAVING count(*) > c.target"
    )
    window = {"from": '"2026-01-01"', "until": '"2026-01-05"'}
    assert planned(sql, **window).alerts_early
    with pytest.raises(KeyholeError, match="differs between groups") as refused:
        _streamed(sql, **window)
    assert refused.value.code == "KH602"


def test_more_than_a_stream_can_keep_is_refused() -> None:
    tables = TABLES.replace('values = ["A", "B", "C"]', f"range = [1, {MOST_STREAMED // 1440 + 1}]", 1)
    tables = tables.replace("[tables.visits.columns.ward]", "[tables.visits.columns.severity]", 1).replace(
        "[tables.visits.columns.severity]\n\n[tables.stays]", "[tables.stays]", 1
    )
    sql, short = BY_WARD.replace("ward", "severity"), {"until": '"2026-01-02"', "every": '"1 minute"'}
    assert planned(sql, tables=tables, window=OF_A_DAY, **short).alerts_early
    with pytest.raises(KeyholeError, match="that a stream may have") as refused:
        _streamed(sql, tables=tables, window=OF_A_DAY, **short)
    assert refused.value.code == "KH601"


def test_noise_that_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(KeyholeError) as refused:
        _streamed(epsilon="1000")
    assert refused.value.code == "KH602"
    assert "epsilon" in (refused.value.hint or "")
