"""Monitors by computed keys: which there are, in how many groups a unit is, and that taking one away moves no more."""

import random
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pytest

from planner.errors import KeyholeError
from planner.extract.extract import declare_monitor
from planner.monitors.explain import explain_monitor
from planner.monitors.monitor_looks import make_look
from planner.monitors.monitor_plan import MonitorLook, MonitorPlan
from planner.question.unit_groups import count_unit_groups
from tests.effort import cases, rounds
from tests.worlds.monitored import OF_A_DAY, TABLES, declared, planned

TIMES = TABLES.replace("[tables.calendar]", "[tables.visits.columns.seen_at]\n\n[tables.calendar]")
HOPPING = '{ column = "recorded_at", length = "1 day", hop = "12 hours" }'
BY_DAY = '"day"'
OF_STAYS = TIMES.replace("[tables.visits.columns.seen_at]", "[tables.stays.columns.recorded_at]")
PATIENTS = 12


@pytest.mark.parametrize(
    ("keys", "window", "groups", "columns"),
    [
        ("ward, cost > 100 AS dear, day", BY_DAY, 9, "ward, dear, day, alerted_at, window_closes"),
        ("floor(cost / 1000) * 1000 AS step, day", BY_DAY, 7, "step, day, alerted_at, window_closes"),
        ("cost - 1 > 10 AS odd", OF_A_DAY, 3, "odd, window_start, alerted_at, window_closes"),
        ("ward, extract(dow FROM reported) AS dow", OF_A_DAY, 21, "ward, dow, window_start, alerted_at, window_closes"),
        ("extract(hour FROM seen_at) < 12 AS early, day", BY_DAY, 2, "early, day, alerted_at, window_closes"),
        (
            "CASE WHEN ward = 'A' AND cost > 9 THEN 1 ELSE 2 END AS k, day",
            BY_DAY,
            2,
            "k, day, alerted_at, window_closes",
        ),
        ("upper(ward) AS name, day", BY_DAY, 3, "name, day, alerted_at, window_closes"),
    ],
)
def test_what_groups_are_computed_of(keys: str, window: str, groups: int, columns: str) -> None:
    sql = f"SELECT {keys} FROM visits GROUP BY {_list_places(keys)} HAVING count(*) > 400"
    made = declared(sql, window=window, tables=TIMES)
    assert planned(sql, window=window, tables=TIMES).keys.size == groups
    assert ", ".join(declare_monitor(made.monitors[0], made).names) == columns


@pytest.mark.parametrize(
    ("keys", "window", "code", "said"),
    [
        ("extract(dow FROM seen_at)", OF_A_DAY, "KH601", "an expression, which is made of the windows' column seen_at"),
        ("date_trunc('week', day)", BY_DAY, "KH601", "an expression of day, whose values are to be the windows"),
        ("cost > 9, CASE WHEN day > '2026-02-01' THEN 1 END", BY_DAY, "KH601", "Group by day itself"),
        ("severity + 1", OF_A_DAY, "KH202", "restrict it in WHERE"),
        ("cost > 100 AS alerted_at, day", BY_DAY, "KH602", 'two columns of its relation would be called "alerted_at"'),
        (f"cost IN ({', '.join(map(str, range(40)))})", OF_A_DAY, "KH602", "Give it a name: SELECT ... AS name."),
    ],
)
def test_what_their_calendar_rules_out(keys: str, window: str, code: str, said: str) -> None:
    sql = f"SELECT {keys} FROM visits GROUP BY {_list_places(keys)} HAVING count(*) > 400"
    with pytest.raises(KeyholeError) as refused:
        planned(sql, window=window, tables=TIMES)
    assert refused.value.code == code
    assert said in f"{refused.value.message} {refused.value.hint}"


def test_rows_that_may_move_are_told_by_the_columns_that_keys_read() -> None:
    tables = TIMES.replace("append_only = true\n", "", 1)
    sql = "SELECT ward, cost > severity AS dear, day FROM visits GROUP BY 1, 2, 3 HAVING count(*) > 400"
    with pytest.raises(KeyholeError) as refused:
        planned(sql, tables=tables)
    assert 'immutable = ["cost", "day", "severity", "ward"]' in str(refused.value.hint)


KEYS = (
    ("ward, cost > 100 AS dear", HOPPING),
    ("floor(cost / 1000) AS step, day", BY_DAY),
    ("CASE WHEN ward = 'A' AND cost > 2000 THEN 1 WHEN cost > 4000 THEN 2 END AS kind, day", BY_DAY),
    ("CASE WHEN ward IN ('A', 'B') THEN 1 END AS kind, extract(dow FROM admitted) AS dow", HOPPING),
    ("extract(hour FROM recorded_at) < 12 AS early, cost > 2500 AS dear, day", BY_DAY),
    ("left(ward, 1) AS first, length(ward) + cost / 5000 > 2 AS long", HOPPING),
)


def _plan(keys: str, window: str, groups: int, rows: int) -> MonitorPlan:
    bounds = f"max_groups_per_unit = {groups}\nrows_per_unit = {rows}"
    having = "count(*) > 40 AND sum(cost) > 400 AND count(DISTINCT patient_id) > 20"
    return planned(
        f"SELECT {keys} FROM stays GROUP BY {_list_places(keys)} HAVING {having}",
        window=window,
        tables=OF_STAYS.replace("max_groups_per_unit = 20\nrows_per_unit = 1", bounds),
        every='"6 hours"',
        tolerance='"50%"',
        until='"2026-01-02"',
    )


def _list_places(keys: str) -> str:
    """GROUP BY every item of a select list, by its place."""
    outside = re.sub(r"\([^()]*\)", "", keys)
    return ", ".join(str(place) for place, _ in enumerate(outside.split(","), start=1))


def _stays(seed: int) -> list[tuple[Any, ...]]:
    drawn = random.Random(seed)
    begin = datetime(2026, 1, 1)
    return [
        (
            drawn.choice([None, *range(PATIENTS)]),
            drawn.choice(["A", "B", "C", "D", None]),
            drawn.choice([None, begin + timedelta(days=drawn.randrange(9))]),
            begin + timedelta(hours=drawn.randrange(-6, 60)),
            drawn.choice([None, drawn.randrange(-100, 6000)]),
        )
        for _ in range(160)
    ]


Values = dict[tuple[Any, ...], list[tuple[int, ...]]]


def _look(opened: Any, looks: Sequence[Sequence[MonitorLook]]) -> Values:
    """By group and window, the values at each of the window's looks."""
    found: Values = {}
    for number, made in ((number, made) for window in looks for number, made in enumerate(window)):
        width = len(made.keys.columns)
        for row in opened.execute(made.rewritten.sql).fetchall():
            values = found.setdefault(row[:width], [(0,) * made.functionals] * number)
            values.append(tuple(int(one or 0) for one in row[width:]))
    return found


@pytest.mark.parametrize("asked", [asked for (asked,) in cases(KEYS, quick=3)], ids=lambda asked: asked[0])
def test_a_unit_changes_no_more_than_is_said(asked: tuple[str, str]) -> None:
    """Over all looks and windows: no more groups, none by more than its sensitivity, and never back."""
    for seed in range(rounds(40, quick=1)):
        plan = _plan(*asked, *random.Random(seed).choice([(1, 1), (2, 3), (3, 1)]))
        windows, numbers = range(len(plan.windows.starts)), range(1, plan.windows.looks + 1)
        looks = [[make_look(plan, window=window, look=look) for look in numbers] for window in windows]
        rows = _stays(seed)
        with duckdb.connect() as opened:
            opened.execute(
                "CREATE TABLE stays (patient_id bigint, ward text, admitted timestamp, recorded_at timestamp, "
                "cost decimal(10, 2))"
            )
            opened.executemany("INSERT INTO stays VALUES (?, ?, ?, ?, ?)", rows)
            whole = _look(opened, looks)
            for patient in random.Random(seed).sample(range(PATIENTS), 2):
                opened.execute("BEGIN")
                opened.execute("DELETE FROM stays WHERE patient_id = ?", [patient])
                without = _look(opened, looks)
                opened.execute("ROLLBACK")
                _check(plan, whole, without)


def _check(plan: MonitorPlan, whole: Values, without: Values) -> None:
    moved = 0
    for key in {*whole, *without}:
        nothing = [(0,) * len(plan.question.functionals)] * plan.windows.looks
        added = [
            tuple(a - b for a, b in zip(before, after, strict=True))
            for before, after in zip(whole.get(key, nothing), without.get(key, nothing), strict=True)
        ]
        moved += any(any(one) for one in added)
        for at, functional in enumerate(plan.question.functionals):
            steps = [0, *(one[at] for one in added)]
            assert steps == sorted(steps)
            assert steps[-1] <= functional.sensitivity
    assert moved <= count_unit_groups(plan.question)


def test_explain_says_which_bound_was_used() -> None:
    plan = _plan("ward, cost > 100 AS dear", HOPPING, 2, 3)
    assert count_unit_groups(plan.question) == 6
    lines = "\n".join(explain_monitor(plan))
    assert "in at most 6 of " in lines
    assert "Of groups, that is the owner's bound for declared keys, times the values of cost > 100 or the rows" in lines
    whole = _plan("ward", HOPPING, 2, 3)
    assert count_unit_groups(whole.question) == 2
