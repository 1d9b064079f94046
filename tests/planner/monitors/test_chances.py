"""When groups would alert, by where they are headed: what the alarm promises shows in them."""

import pytest

from planner.monitors.chances import list_courses
from tests.in_turn import in_turn
from tests.worlds.monitored import SQL, TABLES, planned


def test_chances_keep_the_contract_on_either_side() -> None:
    (courses,) = list_courses(planned())
    assert courses.text == "count(*) > 400"
    by_distance = {course.tolerances_away: course for course in courses.courses}
    assert by_distance[0].value == 401
    assert by_distance[0].crossing_look == 24
    assert by_distance[-1].value == 360
    for course in courses.courses:
        if course.crossing_look is not None:
            assert course.at_crossing is not None
            assert course.at_crossing >= 0.95
            assert course.mean_delay is not None
            assert course.mean_delay < 1
        if course.tolerances_away <= -1:
            assert course.by_close <= 0.10
    chances = [course.by_close for course in courses.courses]
    assert chances == sorted(chances)


def test_a_ladder_reserves_more_and_costs_less_far_below() -> None:
    (courses,) = list_courses(planned())
    assert courses.ladder_epsilon is not None
    assert courses.ladder_epsilon > courses.epsilon
    far, near = courses.courses[0].ladder_epsilon, courses.courses[-1].ladder_epsilon
    assert far is not None
    assert near is not None
    assert far < courses.epsilon < near <= courses.ladder_epsilon + 1e-9


def test_a_progressive_monitor_is_told_of_as_what_it_would_be_without() -> None:
    plain, progressive = list_courses(planned()), list_courses(planned(progressive="true"))
    assert [one.epsilon for one in plain] == [one.epsilon for one in progressive]
    assert planned(progressive="true").epsilon_per_cell == pytest.approx(progressive[0].ladder_epsilon)


def test_one_alarm_on_the_whole_condition_is_told_of_at_each_of_its_thresholds() -> None:
    """The others being far beyond theirs: the contract of the whole shows at each."""
    plan = planned(f"{SQL} AND count(*) FILTER (WHERE severity > 3) > 400", tolerance='"40"')
    found = list_courses(plan)
    assert [one.text for one in found] == ["count(*) FILTER (WHERE severity > 3) > 400", "count(*) > 400"]
    for one in found:
        assert one.watches_whole
        assert one.epsilon == plan.epsilon_per_cell
        assert one.ladder_epsilon is not None
        by_distance = {course.tolerances_away: course for course in one.courses}
        assert (int(by_distance[-1].value), int(by_distance[0].value)) == (360, 401)
        assert by_distance[0].crossing_look == 24
        assert by_distance[-1].by_close <= 0.10
        assert all(course.at_crossing is None or course.at_crossing >= 0.95 for course in one.courses)
    signed = planned(f"{SQL} OR sum(change) > 100", early_any="true", tolerance='"40"')
    assert all(one.watches_whole and one.ladder_epsilon is not None for one in list_courses(signed))
    (alone,) = list_courses(planned(SQL.replace("count(*) > 400", "sum(change) > 100"), early_any="true"))
    assert (alone.text, alone.watches_whole) == ("sum(change) > 100", False)
    assert list_courses(planned(SQL.replace(">", "<"), early_any="true")) == (), "true while a window is empty"


def test_each_threshold_is_by_itself_and_a_close_has_none() -> None:
    both = list_courses(planned(f"{SQL} AND sum(cost) > 20000"))
    assert sorted(one.text for one in both) == ["count(*) > 400", "sum(cost) > 20000"]
    assert list_courses(planned(alert='"close"')) == ()


@in_turn(
    ("having", "earlier", "looks"),
    [
        ("count(*) > 1.3 * {lag} AND {lag} >= 100", 100, 8),
        ("count(*) > {lag} + 50", 60, 8),
        ("sum(count(*)) {rows}) > 300", 100, 8),
    ],
)
def test_a_trend_begins_at_what_earlier_windows_weigh(having: str, earlier: int, looks: int) -> None:
    """Earlier windows are at their threshold, ten tolerances, or as large as this one. Both rates hold at the close."""
    along = "OVER (PARTITION BY ward ORDER BY day"
    written = having.format(lag=f"lag(count(*)) {along})", rows=f"{along} ROWS 2 PRECEDING")
    plan = planned(
        f"SELECT ward, day FROM visits GROUP BY ward, day HAVING {written}",
        tables=TABLES.replace("append_only = true\n", 'append_only = true\narrived = "arrived_at"\n', 1),
        **{"from": '"2026-02-05"', "every": '"3 hours"', "tolerance": '"6"'},
    )
    (found,) = list_courses(plan)
    assert found.earlier_value == earlier
    assert found.ladder_epsilon is None
    for course in found.courses:
        assert (course.crossing_look == looks) is (course.tolerances_away in (0, 1))
        if course.at_crossing is None:
            assert course.by_close <= 0.10
        else:
            assert course.at_crossing >= 0.95
