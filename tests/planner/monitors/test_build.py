"""From a monitor to its plan: what it costs, how values grow, when it alerts, and what makes it another one."""

from datetime import timedelta
from math import log

import pytest

from mechanisms.alarm.calibration import price_alarm
from mechanisms.alarm.prices import Way
from mechanisms.alarm.shapes import Regime
from mechanisms.standing.alarms import StandingAlarms
from mechanisms.standing.close import StandingDecision
from mechanisms.standing.standing_streams import StandingStream
from planner.errors import KeyholeError
from planner.monitors.monitor_looks import make_look
from tests.in_turn import in_turn
from tests.worlds.monitored import BY_WARD, OF_A_DAY, SQL, TABLES, planned

OF_STAYS = "SELECT ward, day FROM stays GROUP BY ward, day HAVING count(DISTINCT patient_id) > 100"
WITHOUT_PROMISE = TABLES.replace("append_only = true\n", 'immutable = ["ward", "day"]\n', 1)


def _price(plan_epsilon: float, *, tolerance: int) -> float:
    return plan_epsilon * (tolerance + 1)


def test_a_growing_count_costs_the_logarithm_of_its_looks() -> None:
    """ln(N / 4ab) over 41: 24 looks, fnr 5 %, fpr 10 %, a tolerance of 40 rows."""
    plan = planned()
    assert plan.epsilon_per_cell == pytest.approx(log(24 / (4 * 0.05 * 0.10)) / 41, abs=1e-9)
    assert plan.epsilon_per_unit == 0
    assert (plan.alerts_early, plan.regimes) == (True, (Regime.GROWING,))
    assert plan.standing.fnr == pytest.approx(0.05)
    assert plan.standing.fpr == pytest.approx(0.10)
    assert plan.way.way is Way.ALARM
    assert [round(way.price, 1) for way in plan.ways] == [7.1, 20.0, 93.9]
    afresh = next(way for way in plan.ways if way.way is Way.AFRESH)
    assert plan.find_way_epsilon(afresh) / plan.epsilon_per_cell == pytest.approx(13.24, abs=0.01)


def test_windows_are_values_of_the_key_or_have_a_length() -> None:
    by_key, by_length = planned(), planned(BY_WARD, window=OF_A_DAY)
    assert by_key.windows == by_length.windows
    assert by_key.keys.names == by_length.keys.names == ("ward",)
    assert by_key.question.keys.names == ("ward", "day")
    assert by_length.question.keys.names == ("ward", "window_start")
    assert by_key.question.keys.size == by_length.question.keys.size == 3 * 365
    assert by_key.epsilon_per_cell == by_length.epsilon_per_cell
    assert by_length.window_column.label != by_key.window_column.label


def test_a_row_in_windows_that_hop_is_paid_for_in_each() -> None:
    """12.8 = 2 ln(12 / 4ab): a day that begins every twelve hours is looked at in its last twelve."""
    plan = planned(BY_WARD, window='{ column = "seen_at", length = "1 day", hop = "12 hours" }')
    assert plan.way.way is Way.ALARM_PER_HOP
    assert (
        _price(plan.epsilon_per_cell, tolerance=40) == pytest.approx(plan.way.price) == pytest.approx(12.79, abs=0.01)
    )
    assert plan.standing.worst_case_epsilon == pytest.approx(plan.epsilon_per_cell / 2)


def test_a_sliding_window_is_watched_in_epochs() -> None:
    plan = planned(BY_WARD, window='{ column = "seen_at", length = "1 day", sliding = true }')
    assert plan.way.way is Way.ALARM_PER_EPOCH
    assert plan.regimes == (Regime.SLIDING,)
    assert _price(plan.epsilon_per_cell, tolerance=40) == pytest.approx(19.125, abs=0.01)


def test_rows_that_may_go_again_cost_twice_as_much_and_are_told() -> None:
    plan = planned(tables=WITHOUT_PROMISE)
    assert plan.regimes == (Regime.COMING_AND_GOING,)
    assert _price(plan.epsilon_per_cell, tolerance=40) == pytest.approx(12.741, abs=0.001)
    assert plan.alerts_early
    (warning,) = plan.warnings
    assert "append_only = true under [tables.visits]" in warning


def test_a_key_that_where_fixes_bounds_a_monitor_as_it_bounds_a_question() -> None:
    """What a group costs is what it costs grouped by the fixed key as well, in windows of either kind."""
    bounds = 'groupings = { "ward, day" = { rows = 1, per_unit = { cost = [0, 2000] } } }'
    tables = TABLES.replace("max_groups_per_unit = 20", f"max_groups_per_unit = 20\n{bounds}")
    fixed, finer, other = (
        planned(f"SELECT {keys} FROM stays {where} GROUP BY {keys} HAVING sum(cost) > 90000", tables=tables)
        for keys, where in (("day", "WHERE ward = 'A'"), ("ward, day", ""), ("day", "WHERE ward <> 'B'"))
    )
    assert [key.name for key in fixed.question.table.fixed] == ["ward"]
    assert fixed.epsilon_per_cell == finer.epsilon_per_cell == pytest.approx(other.epsilon_per_cell / 4, rel=1e-3)
    assert fixed.epsilon_per_unit == finer.epsilon_per_unit
    assert """"ward" AS text) COLLATE "C" IN ('A')""" in make_look(fixed, window=0, look=1).rewritten.sql
    of_a_length = planned(
        "SELECT ward FROM stays WHERE day = '2026-01-02' GROUP BY ward HAVING sum(cost) > 90000",
        tables=tables,
        window='{ column = "recorded_at", length = "1 day" }',
    )
    assert of_a_length.epsilon_per_cell == fixed.epsilon_per_cell


def test_a_unit_pays_for_as_many_groups_and_windows_as_it_is_in() -> None:
    """Twenty of the year's groups and windows, each at what one costs: 20 * .0702 = 1.40 at 10 % of 1,000."""
    plan = planned(OF_STAYS.replace("> 100", "> 999"), tolerance='"100"')
    assert _price(plan.epsilon_per_cell, tolerance=100) == pytest.approx(7.0901, abs=0.0001)
    assert plan.epsilon_per_unit == pytest.approx(20 * plan.epsilon_per_cell)
    assert plan.epsilon_per_unit == pytest.approx(1.404, abs=0.001)
    assert plan.time_column == "recorded_at"


def test_fewer_windows_than_a_unit_may_be_in_cost_a_unit_less() -> None:
    short = planned(OF_STAYS + " ", until='"2026-01-03"')
    assert short.epsilon_per_unit == pytest.approx(9 * short.epsilon_per_cell)


@in_turn(
    ("having", "early"),
    [
        ("count(*) > 400", True),
        ("count(*) >= 400", True),
        ("400 < count(*)", True),
        ("NOT count(*) <= 400", True),
        ("count(*) > 400 AND sum(cost) > 20000", True),
        ("count(*) > 400 OR sum(cost) > 20000", True),
        ("count(*) FILTER (WHERE severity > 3) > 100", True),
        ("sum(cost) >= 10000", True),
        ("2 * count(*) > 800", True),
        ("count(*) > 400 AND count(*) > 100", True),
        ("sum(CASE WHEN severity > 3 THEN cost END) > 20000", True),
    ],
)
def test_what_only_grows_alerts_early(having: str, early: bool) -> None:
    plan = planned(f"SELECT ward, day FROM visits GROUP BY ward, day HAVING {having}")
    assert plan.alerts_early is early
    assert set(plan.regimes) == {Regime.GROWING}


@pytest.mark.parametrize(
    "having",
    [
        "sum(cost) / count(DISTINCT patient_id) > 300 AND count(DISTINCT patient_id) >= 100",
        "sum(cost) > 300 * count(DISTINCT patient_id)",
        "count(DISTINCT patient_id) FILTER (WHERE cost > 100) > 0.3 * count(DISTINCT patient_id)",
    ],
)
def test_what_is_taken_off_for_each_unit_may_fall(having: str) -> None:
    sql = f"SELECT ward, day FROM stays GROUP BY ward, day HAVING {having}"
    less = "sum(cost) - 300 * count(DISTINCT patient_id)=90000"
    share = "count(DISTINCT patient_id) FILTER (WHERE cost > 100) - 0.3 * count(DISTINCT patient_id)=40"
    plan = planned(
        sql, tables=TABLES.replace("rows_per_unit = 1\n", "rows_per_unit = 3\n"), tolerance=f'"{less}, {share}, 30%"'
    )
    assert plan.regimes[0] is Regime.SIGNED
    assert not plan.alerts_early


def test_alternatives_of_rows_that_may_go_again_alert_early_and_conjunctions_do_not() -> None:
    """Each part of an AND could be true at a look of its own, and the whole at none."""
    having = "count(*) > 400 {} sum(cost) > 20000"
    either = f"SELECT ward, day FROM visits GROUP BY ward, day HAVING {having.format('OR')}"
    assert planned(either, tables=WITHOUT_PROMISE).alerts_early
    with pytest.raises(KeyholeError) as caught:
        planned(either.replace("OR", "AND"), tables=WITHOUT_PROMISE, alert='"early"')
    assert caught.value.code == "KH602"
    assert "append_only = true under [tables.visits]" in (caught.value.hint or "")


def test_a_ladder_costs_more_and_the_prices_of_others_stay() -> None:
    plain, ladder = planned(), planned(progressive="true")
    assert ladder.epsilon_per_cell > 1.2 * plain.epsilon_per_cell
    afresh = next(way for way in plain.ways if way.way is Way.AFRESH)
    assert ladder.find_way_epsilon(afresh) == pytest.approx(plain.find_way_epsilon(afresh))
    assert ladder.find_way_epsilon(ladder.way) == ladder.epsilon_per_cell


def test_a_close_is_one_look_at_the_price_of_one_question() -> None:
    plan = planned(alert='"close"', lateness='"10 minutes"')
    assert not plan.alerts_early
    assert plan.windows.looks == 1
    assert plan.windows.first_looks[0] == plan.windows.starts[0] + timedelta(days=1)
    assert plan.way.way is Way.CLOSE
    assert _price(plan.epsilon_per_cell, tolerance=40) == pytest.approx(3.96, abs=0.06)


@pytest.mark.parametrize("having", ["count(*) < 400", "sum(change) > 100", "count(*) BETWEEN 100 AND 400"])
def test_what_may_become_false_again_is_decided_at_the_close(having: str) -> None:
    plan = planned(f"SELECT ward, day FROM visits GROUP BY ward, day HAVING {having}")
    assert not plan.alerts_early
    assert plan.windows.looks == 1
    assert plan.way.way is Way.CLOSE
    assert 0 < plan.epsilon_per_cell < 5


def test_early_any_alerts_early_at_three_times_the_price() -> None:
    """18.575 in a signed sum's units of 10 rows' change, where one that grows would be 7.09."""
    sql = "SELECT ward, day FROM visits GROUP BY ward, day HAVING sum(change) > 1000"
    plan = planned(sql, early_any="true")
    assert plan.alerts_early
    assert plan.regimes == (Regime.SIGNED,)
    assert _price(plan.epsilon_per_cell / 10, tolerance=100) == pytest.approx(18.575, abs=0.001)
    assert any("an alert stays until its window closes" in warning for warning in plan.warnings)


WITH_EARLY_ANY = [
    ("count(*) < 400", 40, TABLES, Regime.GROWING),
    ("count(*) < 400", 40, WITHOUT_PROMISE, Regime.COMING_AND_GOING),
    ("count(*) > 400 AND count(*) FILTER (WHERE severity > 3) > 400", 40, WITHOUT_PROMISE, Regime.COMING_AND_GOING),
    ("count(*) BETWEEN 100 AND 400", 10, TABLES, Regime.SIGNED),
    ("count(*) > 400 OR count(*) FILTER (WHERE severity > 3) < 100", 10, TABLES, Regime.SIGNED),
]


@pytest.mark.parametrize(("having", "tolerance", "tables", "regime"), WITH_EARLY_ANY)
def test_early_any_is_one_alarm_on_any_condition(having: str, tolerance: int, tables: str, regime: Regime) -> None:
    """At the price of one alarm in the regime of its distance, at the narrowest of its tolerances."""
    sql = f"SELECT ward, day FROM visits GROUP BY ward, day HAVING {having}"
    plan, close = planned(sql, tables=tables, early_any="true"), planned(sql, tables=tables)
    assert (plan.alerts_early, close.alerts_early) == (True, False)
    assert (plan.windows.looks, plan.way.way, plan.way.regime) == (24, Way.ALARM, regime)
    price = price_alarm(looks=24, fnr=0.05, fpr=0.1, regime=regime)
    assert plan.way.price == pytest.approx(price)
    at_most = _price(plan.epsilon_per_cell, tolerance=tolerance)
    assert 0.97 * price < at_most <= price * (1 + 1e-9)
    assert any("an alert stays until its window closes" in warning for warning in plan.warnings)


@pytest.mark.parametrize("having", ["avg(cost) > 400", "avg(cost) < 400 AND count(*) > 100", "stddev_pop(cost) > 900"])
def test_early_any_watches_means_and_what_is_made_of_squares(having: str) -> None:
    plan = planned(f"SELECT ward, day FROM visits GROUP BY ward, day HAVING {having}", early_any="true")
    assert (plan.alerts_early, plan.way.regime) == (True, Regime.SIGNED)
    assert plan.standing.fnr is not None
    assert plan.standing.fnr <= 0.05


@pytest.mark.parametrize(
    ("having", "told"), [("count(*) < 400", True), ("count(*) > 400 AND sum(cost) > 20000", False)]
)
def test_append_only_is_named_where_it_would_halve_the_price(having: str, told: bool) -> None:
    sql = f"SELECT ward, day FROM visits GROUP BY ward, day HAVING {having}"
    plan = planned(sql, tables=WITHOUT_PROMISE, early_any="true")
    assert any("write append_only = true" in warning for warning in plan.warnings) is told
    assert plan.way.regime is Regime.COMING_AND_GOING


def test_early_any_changes_nothing_where_a_condition_stays_true() -> None:
    assert planned(early_any="true").fingerprint == planned().fingerprint
    assert planned(early_any="true").epsilon_per_cell == planned().epsilon_per_cell


def test_what_is_watched_as_a_whole_is_another_monitor() -> None:
    """Than the same one decided at the close."""
    sql = "SELECT ward, day FROM visits GROUP BY ward, day HAVING count(*) < 400"
    assert planned(sql, early_any="true").fingerprint != planned(sql).fingerprint


@pytest.mark.parametrize("joined", ["AND", "OR"])
def test_more_thresholds_cost_more_and_no_more_than_twice(joined: str) -> None:
    """Two alike that one unit moves both: 12.741 for an alarm on the whole, 15.566 for one each; 7.09 one alone."""
    both = f"{SQL} {joined} count(*) FILTER (WHERE severity > 3) > 400"
    plan = planned(both, tolerance='"40"')
    assert _price(plan.epsilon_per_cell, tolerance=40) == pytest.approx(12.741, abs=0.001)
    assert (plan.way.way, plan.way.regime) == (Way.ALARM_WHOLE, Regime.COMING_AND_GOING)
    (each,) = (way for way in plan.ways if way.way is Way.ALARM_EACH)
    assert _price(plan.find_way_epsilon(each), tolerance=40) == pytest.approx(15.566, abs=0.001)
    assert not any("stays until its window closes" in warning for warning in plan.warnings), "it stays true"
    assert plan.fingerprint != planned(SQL, tolerance='"40"').fingerprint


def test_an_alarm_for_each_threshold_is_taken_where_that_is_cheaper() -> None:
    """The second threshold's tolerance is a quarter of the first one's: it decides the price of the whole."""
    plan = planned(f"{SQL} AND count(*) FILTER (WHERE severity > 3) > 100")
    assert plan.way.way is Way.ALARM_EACH
    assert plan.way.price < next(way.price for way in plan.ways if way.way is Way.ALARM_WHOLE)
    rough = planned(f"{SQL} AND count(*) FILTER (WHERE severity > 3) > 100", progressive="true")
    assert rough.way.way is Way.ALARM_EACH
    assert rough.epsilon_per_cell > plan.epsilon_per_cell


SAME = [
    ({"comment": '"Wards that are full"'}, True),
    ({"analysts": '["dashboard"]'}, True),
    ({"every": '"30 minutes"'}, False),
    ({"lateness": '"5 minutes"'}, False),
    ({"until": '"2026-12-30"'}, False),
    ({"from": '"2026-01-02"'}, False),
    ({"fnr": "0.04"}, False),
    ({"fpr": "0.2"}, False),
    ({"tolerance": '"11%"'}, False),
    ({"tolerance": '"10.0%"'}, True),
    ({"alert": '"early"'}, True),
    ({"alert": '"close"'}, False),
    ({"progressive": "true"}, False),
]


@pytest.mark.parametrize(("keys", "same"), SAME)
def test_a_fingerprint_is_of_all_that_matters(keys: dict[str, str], same: bool) -> None:
    assert (planned(**keys).fingerprint == planned().fingerprint) is same


def test_a_fingerprint_is_of_the_question_and_the_table() -> None:
    prints = {
        planned().fingerprint,
        planned(SQL.replace("400", "500")).fingerprint,
        planned(SQL.replace("GROUP BY", "WHERE severity > 2 GROUP BY")).fingerprint,
        planned(tables=WITHOUT_PROMISE).fingerprint,
        planned(name="other").fingerprint,
        planned(
            tables=TABLES.replace("append_only = true\n", 'append_only = true\narrived = "arrived_at"\n', 1)
        ).fingerprint,
    }
    assert len(prints) == 6
    assert (
        planned("  SELECT day, ward FROM visits GROUP BY 1, 2 HAVING NOT count(*) <= 400 ;").fingerprint not in prints
    )
    assert planned(SQL.lower()).fingerprint == planned().fingerprint


@pytest.mark.parametrize(
    "sql",
    [
        "select day, ward from visits group by 1, 2 having count(*) > 400;",
        "SELECT v.ward, v.day FROM visits AS v GROUP BY v.ward, v.day HAVING count(*) > 400",
        "SELECT ward, day FROM public.visits -- every ward\n GROUP BY ward, day HAVING 400 < count(*)",
        "SELECT DISTINCT ward, day FROM visits GROUP BY ward, day HAVING count(1) >= 401",
        "SELECT ward, day FROM visits WHERE day >= date '2026-01-01' GROUP BY ward, day HAVING sum(1) > 400",
        "WITH v AS (SELECT * FROM visits) SELECT ward, day FROM v GROUP BY ward, day HAVING count(*) > 400",
        "  SELECT ward, day FROM (SELECT ward, day FROM visits) AS v GROUP BY ward, day HAVING count(*) > 400  ",
    ],
)
def test_a_question_is_read_as_people_write_it(sql: str) -> None:
    plan = planned(sql)
    assert plan.alerts_early
    assert set(plan.question.keys.names) == {"ward", "day"}
    assert plan.keys.size == 3
    assert plan.epsilon_per_cell == pytest.approx(planned().epsilon_per_cell, rel=0.05)


def test_plans_are_equal() -> None:
    assert planned() == planned()


@pytest.mark.parametrize(
    ("condition", "keys", "digest"),
    [
        ("count(*) > 400", {}, "fa93bdb42f"),
        ("count(*) > 400", {"progressive": "true"}, "87bab8ba17"),
        ("count(*) > 400 AND sum(cost) > 5000", {}, "d4801ad044"),
        ("count(*) < 100", {"alert": '"close"'}, "7f894823ed"),
        ("avg(cost) > 100", {"alert": '"close"'}, "e20f9fe481"),
        ("count(*) > 400", {"mechanism": '"pegasus"', "epsilon": "0.5"}, "eeb2fce82b"),
    ],
)
def test_states_of_running_monitors_stay_readable(condition: str, keys: dict[str, str], digest: str) -> None:
    """A state is recognised by the digest of its calibration: with another digest, it cannot be read any more."""
    plan = planned(f"SELECT ward, day FROM visits GROUP BY ward, day HAVING {condition}", **keys)
    assert isinstance(plan.standing, StandingAlarms | StandingDecision | StandingStream)
    assert plan.standing.digest.hex().startswith(digest)
