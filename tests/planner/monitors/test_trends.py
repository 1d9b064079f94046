"""Windows compared with earlier ones: which are read, how a unit changes what is watched, and all that it is charged.

Losses are measured in small worlds: one ward, a few days, three looks a day. The law of each alarm is that of
`law_by_hand`, in fractions. A unit's loss is the sum over all alarms, each at the outcome that reveals most.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest

from mechanisms.alarm.shapes import Regime
from mechanisms.formula import Integers
from mechanisms.standing.alarms import StandingAlarms
from mechanisms.standing.close import StandingDecision
from planner.errors import KeyholeError
from planner.monitors.explain import describe_monitor, explain_monitor, make_monitor_json
from planner.monitors.monitor_looks import make_look
from planner.monitors.monitor_plan import MonitorPlan
from tests.effort import rounds
from tests.in_turn import in_turn
from tests.mechanisms.alarm.law_by_hand import outcomes_by_hand
from tests.worlds.monitored import TABLES, planned

LOOKS = 3
DAYS = 3
ALONG = "OVER (PARTITION BY ward ORDER BY day"
LAG = f"lag(count(*)) {ALONG})"
ARRIVING = TABLES.replace("append_only = true\n", 'append_only = true\narrived = "arrived_at"\n', 1)
CHANGING = TABLES.replace("append_only = true\n", 'immutable = ["ward", "day"]\n', 1)
PATIENTS = "count(DISTINCT patient_id)"


def _plan(having: str, *, table: str = "visits", where: str = "", tables: str = ARRIVING, **keys: str) -> MonitorPlan:
    written = {"from": '"2026-02-01"', "until": '"2026-02-03"', "every": '"8 hours"', "tolerance": '"6"', **keys}
    sql = f"SELECT ward, day FROM {table} {where} GROUP BY ward, day HAVING {having}"
    return planned(sql, tables=tables, **written)


# --- what is read and weighed


@in_turn(
    ("having", "weights"),
    [
        (f"count(*) > {LAG} + 50", [{(0, 0): 1, (0, 1): -1}]),
        (f"count(*) > 1.3 * {LAG} AND {LAG} >= 100", [{(0, 0): 10, (0, 1): -13}, {(0, 1): 1}]),
        (f"sum(count(*)) {ALONG} ROWS 2 PRECEDING) > 50", [{(0, 0): 1, (0, 1): 1, (0, 2): 1}]),
        (
            f"count(*) > 2 * avg(count(*)) {ALONG} ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) + 9",
            [{(0, 0): 3, (0, 1): -2, (0, 2): -2, (0, 3): -2}],
        ),
        (f"count(*) > lag(count(*), 7) {ALONG}) + 50", [{(0, 0): 1, (0, 7): -1}]),
        (f"count(*) > first_value(count(*)) {ALONG} ROWS 1 PRECEDING) + 50", [{(0, 0): 1, (0, 1): -1}]),
        (f"count(*) > {LAG} + 50 AND sum(cost) > 900", [{(0, 0): 1, (0, 1): -1}, {(1, 0): 1}]),
    ],
)
def test_a_threshold_reads_the_same_earlier_windows_in_each(
    having: str, weights: list[dict[tuple[int, int], int]]
) -> None:
    plan = _plan(having)
    assert plan.trend is not None
    assert [dict(one) for one in plan.trend.weights] == weights
    back = max(earlier for one in weights for _, earlier in one)
    assert plan.trend.back == back
    days = plan.question.keys.values[1]
    assert [str(day) for day in days[back:]] == ["2026-02-01", "2026-02-02", "2026-02-03"]
    assert len(days) == back + DAYS == back + len(plan.windows.starts)
    assert set(plan.trend.earlier) == {0, *(earlier for one in weights for _, earlier in one)}
    look = make_look(plan, window=1, look=2)
    assert look.keys.values[1] == tuple(days[back + 1 - earlier] for earlier in plan.trend.earlier)
    for functional, one in zip(plan.question.functionals, weights, strict=True):
        of_a_row = [plan.trend.sums[place].sensitivity * abs(weight) for (place, _), weight in one.items()]
        assert functional.sensitivity == sum(of_a_row)


def test_a_mean_that_every_window_has_in_full_is_counted_in_the_coarsest_steps() -> None:
    """As a question it would count in parts that fit the shorter means at the calendar's beginning as well."""
    plan = _plan(f"count(*) > 2 * avg(count(*)) {ALONG} ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) + 9", tolerance='"6"')
    (functional,) = plan.question.functionals
    assert float(functional.unit_size) == pytest.approx(1 / 3)
    assert isinstance(plan.standing, StandingAlarms)
    (literal,) = plan.standing.literals
    assert (literal.cut, literal.tolerance) == (27, 18)


def test_a_row_is_charged_for_all_windows_that_read_it() -> None:
    """Compared with the day before a count costs twice what it costs alone, with the week's mean twice as well."""
    alone, lag = _plan("count(*) > 50"), _plan(f"count(*) > {LAG} + 50")
    assert lag.epsilon_per_cell == pytest.approx(2 * alone.epsilon_per_cell)
    mean = _plan(f"count(*) > avg(count(*)) {ALONG} ROWS BETWEEN 7 PRECEDING AND 1 PRECEDING) + 50")
    assert mean.epsilon_per_cell == pytest.approx(2 * alone.epsilon_per_cell * 7 * 7 / (6 * 7 + 1), rel=1e-6)
    for text in (describe_monitor(lag), "\n".join(explain_monitor(lag))):
        assert "where a row counts in 2 windows" in text
    assert make_monitor_json(mean)["windows"]["earlier_read"] == [7, 6, 5, 4, 3, 2, 1]
    assert make_monitor_json(alone)["windows"]["earlier_read"] == []
    assert "where a row counts" not in describe_monitor(alone)


def test_a_source_may_skip_what_lies_outside_of_windows_that_are_apart() -> None:
    """The range of the stored time stands beside the list of days, which are computed from it."""
    sql = make_look(_plan(f"count(*) > lag(count(*), 7) {ALONG}) + 50"), window=0, look=1).rewritten.sql
    assert "IN (DATE '2026-01-25', DATE '2026-02-01')" in sql
    assert """"seen_at" AS timestamp) >= TIMESTAMP '2026-01-25 00:00:00'""" in sql


def test_a_value_that_no_row_of_its_window_changes_is_looked_at_once() -> None:
    """The size of the day before, which is fixed before the day begins: 24 looks would cost 1.8 times as much."""
    both, late = (
        _plan(f"count(*) > 1.3 * {LAG} AND {LAG} >= 100", every='"1 hour"', **keys)
        for keys in ({}, {"tables": CHANGING})
    )
    assert isinstance(both.standing, StandingAlarms)
    assert [ladder.task.looks for ladder in both.standing.ladders] == [24, 1]
    assert both.trend is not None
    assert late.trend is not None
    assert (both.trend.constant, late.trend.constant) == (frozenset((1,)), frozenset[int]())


# --- when it alerts


@in_turn(
    ("having", "keys", "early"),
    [
        (f"count(*) > {LAG} + 50", {}, True),
        (f"count(*) > 1.3 * {LAG} AND {LAG} >= 100", {}, True),
        (f"count(*) > 1.3 * {LAG} AND {LAG} >= 100", {"tables": TABLES}, False),
        (f"count(*) > {LAG} + 50 OR count(*) > 400", {"tables": TABLES}, True),
        (f"count(*) > {LAG} + 50", {"alert": '"close"'}, False),
        (f"count(*) < {LAG} - 50", {}, False),
        (f"{LAG} > count(*) + 50", {}, False),
        (f"sum(change) > lag(sum(change)) {ALONG}) + 50", {}, False),
        (f"count(*) > {LAG} + 50", {"tables": CHANGING}, True),
        (f"count(*) > {LAG} + 50 AND count(*) > 99", {"tables": CHANGING}, False),
    ],
)
def test_a_trend_alerts_early_if_no_row_of_its_window_lowers_it(having: str, keys: dict[str, str], early: bool) -> None:
    assert _plan(having, **keys).alerts_early is early


@in_turn(
    ("plan", "regime"),
    [
        ({"having": f"count(*) > {LAG} + 50"}, Regime.GROWING),
        ({"having": f"count(*) > {LAG} + 50", "tables": CHANGING}, Regime.COMING_AND_GOING),
        ({"having": f"{PATIENTS} > lag({PATIENTS}) {ALONG}) + 50", "table": "stays"}, Regime.SIGNED),
        ({"having": f"sum({PATIENTS}) {ALONG} ROWS 2 PRECEDING) > 50", "table": "stays"}, Regime.GROWING),
    ],
)
def test_a_unit_of_several_days_may_raise_and_lower_a_value(plan: dict[str, str], regime: Regime) -> None:
    made = _plan(**plan)
    assert made.regimes == (regime,)
    assert made.alerts_early


# --- what a unit loses

World = list[list[list[int]]]
"""By sum and by day that is read, the value at each look of its own day. In later days it is the last of them."""


@dataclass(frozen=True)
class _Row:
    """A row of a unit: it is there between two moments, counted in looks from the horizon's beginning."""

    day: int
    there_from: int
    gone_at: int
    amounts: tuple[int, ...]


def _watch(plan: MonitorPlan, world: World, rows: Sequence[_Row], *, day: int) -> Integers:
    """The values of the functionals at each look of a day, shape (functionals, looks)."""
    assert plan.trend is not None
    back, seen = plan.trend.back, []
    for look in range(LOOKS):
        own = [
            [
                days[read][look if read == day + back else -1]
                + sum(
                    row.amounts[place]
                    for row in rows
                    if row.day == read - back and row.there_from <= day * LOOKS + look < row.gone_at
                )
                for read in plan.trend.list_windows(day)
            ]
            for place, days in enumerate(world)
        ]
        seen.append(
            plan.trend.compute_functionals(np.array(own, dtype=np.int64), shape=(1, len(plan.trend.earlier)))[:, 0]
        )
    return np.stack(seen, axis=1)


def _measure_loss(plan: MonitorPlan, world: World, rows: Sequence[_Row]) -> float:
    """The loss of a unit's rows by all alarms of all days together."""
    assert isinstance(plan.standing, StandingAlarms)
    lost = 0.0
    for day in range(DAYS):
        without, beside = _watch(plan, world, (), day=day), _watch(plan, world, rows, day=day)
        for literal, ladder in zip(plan.standing.literals, plan.standing.ladders, strict=True):
            (alarm,) = ladder.rungs
            looks = slice(0, ladder.task.looks)  # a value that does not change is looked at once
            one, other = (outcomes_by_hand(alarm, of[literal.functional].tolist()[looks]) for of in (without, beside))
            lost += max(abs(math.log(mine / theirs)) for mine, theirs in zip(one, other, strict=True))
    return lost


def _draw_world(plan: MonitorPlan, chosen: Random) -> World:
    """Days whose values pass the thresholds by little, or miss them by little: alarms are least sure there."""
    assert plan.trend is not None
    assert isinstance(plan.standing, StandingAlarms)
    sums, back = len(plan.trend.sums), plan.trend.back
    world: World = [[[chosen.randrange(90, 111)] * LOOKS for _ in range(back)] for _ in range(sums)]
    for _ in range(DAYS):
        last = [chosen.randrange(90, 111) for _ in range(sums)]
        for literal in plan.standing.literals:
            weights = dict(plan.trend.weights[literal.functional])
            moving = [place for place in range(sums) if weights.get((place, 0))]
            rest = sum(
                weight * (world[place][-earlier][-1] if earlier else last[place])
                for (place, earlier), weight in weights.items()
                if earlier or place not in moving[:1]
            )
            aim = literal.cut + chosen.randrange(-literal.tolerance - 2, 3)
            if moving:
                last[moving[0]] = max(0, (aim - rest) // weights[moving[0], 0])
        for place in range(sums):
            early = sorted(max(0, last[place] - chosen.choice((0, 0, 1, 4))) for _ in range(LOOKS - 1))
            world[place].append([*early, last[place]])
    return world


def _draw_rows(plan: MonitorPlan, chosen: Random, *, days: int) -> tuple[_Row, ...]:
    """Rows of one unit, one in each of so many days, that may come late, and go if rows may be changed."""
    assert plan.trend is not None
    found = []
    for day in chosen.sample(range(-plan.trend.back, DAYS), days):
        amounts = tuple(chosen.choice((0, one.sensitivity, one.sensitivity)) for one in plan.trend.sums)
        comes = day * LOOKS + chosen.choice((0, 0, 0, 1, 2, 4))
        goes = DAYS * LOOKS if plan.question.table.append_only else comes + chosen.randrange(1, 6)
        found.append(_Row(day, comes, goes, amounts))
    return tuple(found)


CHARGED = [
    (f"count(*) > {LAG} + 50", {}, 0.99),
    (f"count(*) > 1.3 * {LAG} AND {LAG} >= 100", {}, 0.99),
    (f"count(*) > {LAG} + 50 OR count(*) > 120", {"tables": TABLES}, 0.99),
    (f"sum(count(*)) {ALONG} ROWS 2 PRECEDING) > 290", {}, 0.99),
    (f"count(*) > {LAG} + 50 AND count(*) FILTER (WHERE severity > 3) > 90", {}, 0.99),
    (f"count(*) > lag(count(*), 2) {ALONG}) + 50", {}, 0.99),
    (f"count(*) > {LAG} + 50", {"tables": CHANGING}, 0.5),
    (f"count(*) > {LAG} + 50 OR count(*) > 120", {"tables": CHANGING}, 0.5),
    (f"{PATIENTS} > lag({PATIENTS}) {ALONG}) + 50", {"table": "stays"}, 0.5),
    (f"{PATIENTS} > 1.3 * lag({PATIENTS}) {ALONG}) AND lag({PATIENTS}) {ALONG}) >= 100", {"table": "stays"}, 0.6),
    (f"sum({PATIENTS}) {ALONG} ROWS 2 PRECEDING) > 290", {"table": "stays"}, 0.99),
]


@in_turn(("having", "keys", "reached"), CHARGED)
def test_no_unit_loses_more_than_the_days_that_it_is_in_are_charged(
    having: str, keys: dict[str, str], reached: float
) -> None:
    """Rows of a day, or of up to all days that are read, which come at any look: both signs in one alarm among them.
    The charge is reached but for a part, so that no smaller one would do."""
    plan = _plan(having, where="WHERE ward = 'A'", **keys)
    assert plan.trend is not None
    chosen, worst = Random(len(having)), 0.0
    most = 1 if plan.question.table.is_row_unit else plan.trend.back + DAYS
    for number in range(rounds(4_000, quick=40)):
        days = 1 + number % most
        world, rows = _draw_world(plan, chosen), _draw_rows(plan, chosen, days=days)
        lost = _measure_loss(plan, world, rows)
        assert lost <= days * plan.epsilon_per_cell + 1e-9, (world, rows)
        worst = max(worst, lost / days / plan.epsilon_per_cell)
    assert worst >= reached


@pytest.mark.parametrize("table", ["visits", "stays"])
def test_at_the_close_a_unit_loses_at_most_what_its_days_are_charged(table: str) -> None:
    """Each day draws noise of its own on the difference, whose loss is its rate times the change."""
    counted = "count(*)" if table == "visits" else PATIENTS
    lag = f"lag({counted}) {ALONG})"
    plan = _plan(f"{counted} < 0.5 * {lag} AND {lag} >= 100", table=table, where="WHERE ward = 'A'")
    assert plan.trend is not None
    assert isinstance(plan.standing, StandingDecision)
    tests = plan.standing.calibration.tests
    assert {test.block for test in tests} == {1}
    chosen, worst = Random(3), 0.0
    for number in range(200):
        days = 1 if table == "visits" else 1 + number % 4
        world, rows = _draw_world_at_close(chosen), _draw_rows(plan, chosen, days=days)
        lost = 0.0
        for day in range(DAYS):
            moved = _watch(plan, world, rows, day=day)[:, -1] - _watch(plan, world, (), day=day)[:, -1]
            lost += sum(float(test.rate) * abs(int(by)) for test, by in zip(tests, moved, strict=True))
        assert lost <= days * plan.epsilon_per_cell + 1e-9
        worst = max(worst, lost / days / plan.epsilon_per_cell)
    assert worst == pytest.approx(1.0)


def _draw_world_at_close(chosen: Random) -> World:
    return [[[chosen.randrange(200)] * LOOKS for _ in range(1 + DAYS)]]


# --- what is refused

MEANS = f"avg(count(*)) {ALONG} ROWS BETWEEN 7 PRECEDING AND 1 PRECEDING)"
COARSE = "ROWS BETWEEN 6 PRECEDING AND CURRENT ROW"
REFUSED = [
    (
        "count(*) > 2 * avg(count(*)) OVER ()",
        {},
        "KH602",
        "compares a group with other groups",
        f"count(*) > {LAG} + 9",
    ),
    (
        "sum(cost) > 0.2 * (SELECT sum(cost) FROM visits)",
        {},
        "KH602",
        "compares a group with other groups",
        f"sum(cost) > {LAG} + 9",
    ),
    (f"count(*) > max(count(*)) {ALONG} ROWS 3 PRECEDING) + 9", {}, "KH602", "a largest", f"count(*) > {MEANS} + 9"),
    (
        f"avg(cost) > lag(avg(cost)) {ALONG}) + 2 AND lag(count(cost)) {ALONG}) >= 100 AND count(cost) >= 100",
        {"tolerance": '"10%"'},
        "KH602",
        "reads a mean of rows",
        f"count(*) > {MEANS} + 9",
    ),
    (f"count(*) > lead(count(*)) {ALONG}) + 9", {}, "KH602", "windows that come later", f"count(*) > {LAG} + 9"),
    (
        f"sum(count(*)) {ALONG}) > 900",
        {},
        "KH602",
        "reads other earlier windows at each",
        f"sum(count(*)) {ALONG} {COARSE}) > 900",
    ),
    (
        "sum(count(*)) OVER (PARTITION BY ward, date_trunc('month', day) ORDER BY day) > 900",
        {},
        "KH602",
        "reads other earlier windows at each",
        f"sum(count(*)) {ALONG} {COARSE}) > 900",
    ),
    (
        f"sum(count(*)) {ALONG} ROWS 99 PRECEDING) > 900",
        {"from": '"2026-06-01"', "until": '"2026-06-03"'},
        "KH602",
        "too far back, or too many",
        f"sum(count(*)) {ALONG} ROWS 60 PRECEDING) > 900",
    ),
    (f"count(*) > lag(count(*), 9999) {ALONG}) + 9", {}, "KH602", "does not depend on", f"count(*) > {LAG} + 9"),
    (f"count(*) > lag(count(*), 0) {ALONG}) + 9", {}, "KH602", "does not depend on data", f"count(*) > {LAG} + 9"),
]


@in_turn(("having", "keys", "code", "message", "instead"), REFUSED)
def test_what_no_alarm_compares_is_refused_with_something_to_ask_instead(
    having: str, keys: dict[str, str], code: str, message: str, instead: str
) -> None:
    with pytest.raises(KeyholeError) as caught:
        _plan(having, **keys)
    assert (caught.value.code, message in caught.value.message) == (code, True), caught.value
    assert caught.value.hint
    assert _plan(instead, **keys).trend is not None


@in_turn(
    ("keys", "message", "hint"),
    [
        ({"from": '"2026-01-01"'}, "too few earlier ones", 'from = "2026-01-02"'),
        (
            {"mechanism": '"pegasus"', "epsilon": "0.5"},
            'mechanism = "pegasus" watches no condition',
            "Remove mechanism",
        ),
        ({"progressive": "true"}, "progressive = true watches no condition", "Remove progressive"),
        ({"early_any": "true"}, "early_any watches no condition", "Remove early_any"),
    ],
)
def test_settings_that_no_trend_has_are_refused(keys: dict[str, str], message: str, hint: str) -> None:
    with pytest.raises(KeyholeError, match=message) as caught:
        _plan(f"count(*) > {LAG} + 50", **keys)
    assert caught.value.hint
    assert hint in caught.value.hint
    if "from" in keys:
        assert _plan(f"count(*) > {LAG} + 50", **{"from": hint.removeprefix("from = ")}).trend is not None


@in_turn(
    ("sql", "keys", "hint"),
    [
        (
            "SELECT day, reported FROM visits WHERE reported < '2026-01-05' GROUP BY day, reported "
            "HAVING count(*) > lag(count(*)) OVER (PARTITION BY day ORDER BY reported) + 9",
            {},
            "lag(count(*)) OVER (PARTITION BY reported ORDER BY day)",
        ),
        (
            "SELECT reported FROM visits GROUP BY reported "
            "HAVING count(*) > lag(count(*)) OVER (ORDER BY reported) + 9",
            {"window": '{ column = "seen_at", length = "1 day", sliding = true }'},
            'let its values be the windows, such as window = "day"',
        ),
    ],
)
def test_a_trend_along_another_key_than_the_windows_is_refused(sql: str, keys: dict[str, str], hint: str) -> None:
    with pytest.raises(KeyholeError, match="compares a group with other groups") as caught:
        planned(sql, **keys)
    assert caught.value.code == "KH602"
    assert hint in (caught.value.hint or "")


def test_an_early_alert_is_refused_where_the_condition_may_become_false_again() -> None:
    with pytest.raises(KeyholeError, match="may become false again") as caught:
        _plan(f"count(*) < {LAG} - 50", alert='"early"')
    assert 'alert = "close"' in (caught.value.hint or "")
    assert not _plan(f"count(*) < {LAG} - 50", alert='"close"').alerts_early
    late = f"count(*) > 1.3 * {LAG} AND {LAG} >= 100"
    assert any("arrived under [tables.visits]" in one for one in _plan(late, tables=TABLES).warnings)
    assert not any("arrived under" in one for one in _plan(late).warnings)


@in_turn(
    ("sql", "fits"),
    [
        ("SELECT day, q.ward FROM ({0}) q WHERE n > before + 50", True),
        ("WITH q AS ({0}) SELECT ward, day FROM q WHERE n > before + 50", True),
        ("SELECT ward, day FROM ({0}) q WHERE n > before + 50 ORDER BY day", False),
        ("SELECT DISTINCT ward, day FROM ({0}) q WHERE n > before + 50", False),
        ("SELECT ward FROM ({0}) q WHERE n > before + 50", False),
        ("SELECT day AS ward, ward AS day FROM ({0}) q WHERE n > before + 50", False),
        ("SELECT ward, day FROM ({0}) q WHERE n > before + 50 AND day > '2026-02-02'", False),
        ("SELECT ward, day FROM ({0}) q WHERE n > before + 50 LIMIT 3", False),
        ("SELECT ward, day, 1 FROM ({0}) q WHERE n > before + 50", False),
    ],
)
def test_a_text_may_show_the_keys_of_a_subquery_and_nothing_else(sql: str, fits: bool) -> None:
    grouped = f"SELECT ward, day, count(*) AS n, {LAG} AS before FROM visits GROUP BY ward, day"
    written = {"tables": ARRIVING, "from": '"2026-02-01"', "until": '"2026-02-03"'}
    if fits:
        assert planned(sql.format(grouped), **written).trend is not None
        return
    with pytest.raises(KeyholeError, match="nothing around it"):
        planned(sql.format(grouped), **written)
