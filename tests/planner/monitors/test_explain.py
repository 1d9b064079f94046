"""EXPLAIN of a monitor: the contract, the price beside others, and the same for a program."""

import json

from planner.monitors.explain import describe_monitor, explain_monitor, explain_monitor_briefly, make_monitor_json
from planner.monitors.guarantee import write_promise
from tests.worlds.monitored import BY_WARD, SQL, TABLES, planned

OF_STAYS = "SELECT ward, day FROM stays GROUP BY ward, day HAVING count(DISTINCT patient_id) > 999"


def test_the_contract_is_a_sentence() -> None:
    assert write_promise(planned()) == (
        "a group is missing at a look at which it truly qualifies at most 5 % of the time; one that fails at every "
        "look of a window even with 10 % slack comes into the answer at any look of its window, 24 of them, at most "
        "10 % of the time; at most 0.18 epsilon a group and window."
    )
    assert write_promise(planned(alert='"close"')) == (
        "a group that truly qualifies when its window closes is missed at most 5 % of the time; one that fails then "
        "even with 10 % slack is returned at most 10 % of the time; at most 0.1 epsilon a group and window."
    )
    assert write_promise(planned(OF_STAYS)).endswith(
        "This holds for aggregates after bounding each (patient_id), which counts in at most 20 of 1,095 groups and "
        "windows and loses at most 1.42 epsilon over the horizon; rows without patient_id are left out."
    )


def test_what_is_watched_and_what_it_costs_are_lines() -> None:
    lines = explain_monitor(planned(lateness='"10 minutes"'))
    assert lines[0] == "Monitor crowded: 3 groups of visits (ward), nothing is spent by EXPLAIN"
    for line in (
        "  Alerts where count(*) > 400",
        "    count(*) > 400   may err between 360 and 400",
        "  Windows: 365 of 1 day by day, from 2026-01-01 to 2027-01-01",
        "  Looks: 24 a window, every 1 hour, made 10 minutes later; 8,760 in all",
        "  Cost: one group and window: at most 0.18 epsilon (a new question at every look would cost 2.29)",
        "    -> an alarm                                epsilon 0.18   an alert stays up to 1 day",
        "       a new question at every look            epsilon 2.29   an alert goes at once",
    ):
        assert line in lines


def test_the_short_text_has_condition_looks_price_and_promise() -> None:
    plan = planned(OF_STAYS)
    lines = explain_monitor_briefly(plan)
    assert lines[0] == explain_monitor(plan)[0]
    assert len(lines) <= 10
    assert "    count(DISTINCT patient_id) > 999   may err between 900 and 999" in lines
    assert (
        "  Cost: one group and window: at most 0.08 epsilon (a new question at every look would cost 0.94); "
        "one (patient_id) over the horizon: at most 1.42 epsilon, in at most 20 of 1,095 groups and windows"
    ) in lines
    assert f"  Guarantee: {write_promise(plan)}" in lines
    assert not any("SQL" in line or "->" in line for line in lines)


def test_the_price_table_has_every_way() -> None:
    sliding = explain_monitor(planned(BY_WARD, window='{ column = "seen_at", length = "1 day", sliding = true }'))
    assert any(line.startswith("    -> an alarm for each epoch") for line in sliding)
    (ticks,) = (line for line in sliding if "noise on each tick" in line)
    assert ticks.endswith('clears = "at once": an alert goes at once, fpr is for each look')
    hopping = explain_monitor(planned(BY_WARD, window='{ column = "seen_at", length = "1 day", hop = "6 hours" }'))
    assert any("one every 6 hours, each looked at in its last 6 hours" in line for line in hopping)


def test_growth_is_told_where_it_matters() -> None:
    without = TABLES.replace("append_only = true\n", 'immutable = ["ward", "day"]\n', 1)
    assert any("may fall, because rows may be changed" in line for line in explain_monitor(planned(tables=without)))
    assert not any("may fall" in line for line in explain_monitor(planned(alert='"close"', tables=without)))


def test_a_condition_that_is_watched_as_a_whole_is_told_with_its_price() -> None:
    """Three times 7.09 / 11, which makes up for the tolerances of 10 and 40, and what else could be done."""
    plan = planned(SQL.replace("> 400", "BETWEEN 100 AND 400"), early_any="true")
    lines = explain_monitor(plan)
    for line in (
        "  One alarm watches how far a group is inside the condition.",
        "  Rows change this distance in both directions: the alarm costs three times as much",
        "    -> an alarm                                epsilon 1.69   an alert stays up to 1 day",
        "       a new question at every look            epsilon 8.54   an alert goes at once",
    ):
        assert line in lines
    assert not any("Values of" in line for line in lines)
    document = make_monitor_json(plan)
    assert document["watched_as_a_whole"]
    assert not make_monitor_json(planned())["watched_as_a_whole"]
    assert document["guarantee"]["fpr_per_window"] == 0.1


def test_a_program_is_told_the_same() -> None:
    plan = planned(OF_STAYS, lateness='"10 minutes"')
    document = json.loads(json.dumps(make_monitor_json(plan)))
    assert document["guarantee"]["sentence"] == write_promise(plan)
    assert document["guarantee"]["epsilon_per_unit"] == plan.epsilon_per_unit
    assert document["looks"] == {
        "early": True,
        "per_window": 24,
        "in_all": 8760,
        "every_seconds": 3600,
        "late_seconds": 660,
        "first": "2026-01-01T01:00:00",
        "last": "2027-01-01T00:00:00",
    }
    assert document["windows"]["count"] == 365
    assert [way["way"] for way in document["ways"]] == ["alarm", "signed_tree", "afresh"]
    assert [way["taken"] for way in document["ways"]] == [True, False, False]
    assert [way["served"] for way in document["ways"]] == [True, False, True]
    assert document["fingerprint"] == plan.fingerprint
    assert "recorded_at" in document["sql"]


def test_one_line_says_what_a_monitor_costs() -> None:
    assert describe_monitor(planned(OF_STAYS)) == (
        "3 groups, 365 windows of 1 day, each 24 looks; at most 0.08 epsilon a group and window, at most 1.42 a unit "
        "over the horizon"
    )
    assert "each decided at its close" in describe_monitor(planned(alert='"close"'))
