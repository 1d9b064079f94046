"""Which keys a WHERE fixes, and what follows for the bounds."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.bind.fixed_keys import narrow_by_fixed_keys
from planner.bind.unit_join import apply_bounds
from planner.catalog.catalog import Catalog, Column, Derivation, FixedKey, Grouping, SqlType, Table, Value
from planner.explain.render import explain_text
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.question.condition import ALWAYS, And, Compare, Condition, Within, evaluate
from tests.effort import examples
from tests.in_turn import in_turn
from tests.planner.asked import asked
from tests.planner.bind.test_groupings import DAYS, SALES
from tests.worlds.stays import people

MONTHS = tuple(dict.fromkeys(day.replace(day=1) for day in DAYS))
DECLARED = replace(SALES, groupings=(Grouping(("store", "month"), 9, 2, ()),))
BOUGHT = "bought"
PERIODS = ("week", "month", "hour")


def _fixed(where: Condition, table: Table = DECLARED, keys: Sequence[str] = ("store",)) -> dict[str, tuple[Value, ...]]:
    columns = [table.get_column(name) for name in keys]
    found = narrow_by_fixed_keys(table, apply_bounds(table, columns), keys=columns, where=where)
    return {key.name: key.values for key in found.fixed}


@in_turn(
    ("where", "months"),
    [
        (Compare("month", "=", MONTHS[1]), MONTHS[1:2]),
        (Within("month", MONTHS[1:3]), MONTHS[1:3]),
        (And((Within("month", MONTHS[:3]), Compare("month", ">", MONTHS[0]))), MONTHS[1:3]),
        (And((Compare("day", ">=", date(2026, 2, 10)), Compare("day", "<", date(2026, 3, 1)))), MONTHS[1:2]),
        (And((Compare("day", ">", date(2026, 1, 31)), Compare("day", "<=", date(2026, 3, 1)))), MONTHS[1:3]),
        (Compare("day", "=", date(2026, 2, 10)), MONTHS[1:2]),
        (
            And(
                (*(Compare("day", ">=", day) for day in MONTHS[:2]), *(Compare("day", "<", day) for day in MONTHS[2:]))
            ),
            MONTHS[1:2],  # the last of two beginnings, and the first of two ends
        ),
        (Within("day", (date(2026, 2, 10), date(2026, 3, 10))), MONTHS[1:3]),
        (
            And((Compare(BOUGHT, ">=", datetime(2026, 2, 1)), Compare(BOUGHT, "<", datetime(2026, 3, 1)))),
            MONTHS[1:2],
        ),
        (
            And((Compare(BOUGHT, ">", datetime(2026, 1, 31, 23, 59, 59, 999999)), Compare("day", "<", MONTHS[2]))),
            MONTHS[:2],  # a time may be finer than a microsecond
        ),
    ],
)
def test_a_list_or_a_range_of_a_calendar_fixes_its_periods(where: Condition, months: tuple[date, ...]) -> None:
    assert _fixed(where) == {"month": months}


@in_turn(
    "where",
    [
        ALWAYS,
        Compare("month", ">=", MONTHS[1]),
        Compare("day", "<", MONTHS[1]),
        Compare("month", "=", date(2030, 1, 1)),
        Within("month", (MONTHS[1], date(2030, 1, 1))),
        And((Compare("day", ">=", date(2025, 12, 31)), Compare("day", "<", MONTHS[2]))),
        And((Compare("day", ">=", MONTHS[2]), Compare("day", "<", MONTHS[1]))),
        And((Compare("day", ">=", date(2026, 1, 1)), Compare("day", ">", date.max))),
        Compare("sex", "=", "f"),
    ],
)
def test_nothing_else_does(where: Condition) -> None:
    assert _fixed(where) == {}


def test_a_period_that_is_not_declared_in_between_is_no_range() -> None:
    fewer = replace(DECLARED.get_column("month"), domain=(MONTHS[0], MONTHS[2]))
    table = replace(DECLARED, columns=tuple(fewer if one.name == "month" else one for one in DECLARED.columns))
    assert _fixed(And((Compare("day", ">=", MONTHS[0]), Compare("day", "<=", MONTHS[2]))), table) == {}


def test_only_keys_that_narrow_a_bound_stay_fixed() -> None:
    both = And((Compare("month", "=", MONTHS[1]), Compare("sex", "=", "f")))
    assert _fixed(both) == {"month": MONTHS[1:2]}
    assert _fixed(both, keys=("store", "month")) == {}
    assert _fixed(Within("month", MONTHS), replace(DECLARED, groupings=(Grouping(("store",), 2, 2, ()),))) == {}


@pytest.mark.parametrize(
    ("groupings", "months", "rows"),
    [
        ((Grouping(("store", "month"), 9, 2, ()),), 1, 2),
        ((Grouping(("store", "month"), 9, 2, ()),), 3, 6),
        ((Grouping(("store", "month"), 2, 2, ()),), 3, 4),  # a unit is in 2 of the finer groups at most
        ((Grouping(("month",), 9, 5, ()),), 2, 10),  # of all stores together
        ((Grouping(("store", "month"), 9, 2, ()), Grouping(("store",), 3, 3, ())), 2, 3),  # what is declared without
        ((Grouping(("store", "month"), None, 10, ()),), 3, 20),  # no more than the table's own
    ],
)
def test_rows_are_those_of_as_many_finer_groups(groupings: tuple[Grouping, ...], months: int, rows: int) -> None:
    table = replace(SALES, groupings=groupings)
    keys = [table.get_column("store")]
    where = Within("month", MONTHS[:months])
    assert narrow_by_fixed_keys(table, apply_bounds(table, keys), keys=keys, where=where).rows_per_unit == rows


def test_totals_of_both_signs_follow_from_whole_groups_alone() -> None:
    ranges = (("amount", (Decimal(0), Decimal(50))), ("balance", (Decimal(-20), Decimal(50))))

    def bounded(keys: str, where: Condition) -> list[tuple[int, int]]:
        table = replace(SALES, groupings=(Grouping(tuple(keys.split(", ")), 9, None, ranges),))
        columns = [table.get_column("store")]
        found = narrow_by_fixed_keys(table, apply_bounds(table, columns), keys=columns, where=where)
        totals = [found.get_column(name).per_unit for name in ("amount", "balance")]
        return [(int(low), int(high)) for low, high in (total for total in totals if total is not None)]

    two = Within("month", MONTHS[:2])
    assert bounded("store, month", two) == [(0, 100), (-40, 100)]
    assert bounded("month", two) == [(0, 100), (-(10**6), 10**6)]


def _with_grouping_by_day() -> Catalog:
    catalog, by_day = people(), Grouping(("ward", "day"), 6, 3, ())
    return replace(
        catalog,
        tables=tuple(replace(one, groupings=(by_day,)) if one.name == "stays" else one for one in catalog.tables),
    )


def test_a_join_has_the_bounds_of_the_member_whose_key_is_fixed() -> None:
    catalog = _with_grouping_by_day()
    sql = "SELECT s.ward FROM stays s JOIN patients p USING (patient_id){} GROUP BY s.ward HAVING count(*) > 90"
    whole = asked(sql.format(""), catalog=catalog)
    one_day = asked(sql.format(" WHERE s.day = '2026-01-02'"), catalog=catalog)
    assert one_day.functionals[0].sensitivity * 6 == whole.functionals[0].sensitivity
    assert one_day.table.fixed == (FixedKey("day", (date(2026, 1, 2),)),)


def test_explain_says_which_questions_a_rollup_serves() -> None:
    sql = "SELECT ward FROM stays WHERE day IN ({}) GROUP BY ward HAVING count(*) > 90"
    told = [
        [
            line
            for line in explain_text(plan_question(question, dialect=DUCKDB), left=None)
            if line.startswith("  Rollup, ")
        ]
        for days in ("'2026-01-02'", "'2026-01-02', '2026-01-03'")
        for question in [asked(sql.format(days), catalog=_with_grouping_by_day())]
    ]
    assert [line.endswith("for all questions by (ward) whose WHERE fixes day") for line in told[0]] == [True]
    assert told[1] == []


def test_totals_per_unit_are_those_of_the_fixed_key() -> None:
    catalog = _with_grouping_by_day()
    sql = (
        "SELECT ward FROM (SELECT ward, patient_id, count(*) AS n FROM stays {} GROUP BY ward, patient_id) v "
        "GROUP BY ward HAVING sum(n) > 100"
    )
    assert asked(sql.format(""), catalog=catalog).functionals[0].sensitivity == 18
    assert asked(sql.format("WHERE day = '2026-01-02'"), catalog=catalog).functionals[0].sensitivity == 3


def _hour() -> Column:
    first = datetime(2026, 1, 1)
    hours = tuple(first + timedelta(hours=i) for i in range(48))
    derivation = Derivation("date_trunc", "hour", BOUGHT)
    return Column("hour", SqlType.TIMESTAMP, "timestamp without time zone", domain=hours, derivation=derivation)


WITH_HOURS = replace(SALES, columns=(*SALES.columns, _hour()))


def _row(time: datetime) -> dict[str, Value | None]:
    day = time.date()
    row: dict[str, Value | None] = {BOUGHT: time, "day": day, "month": day.replace(day=1)}
    return row | {"week": day - timedelta(day.weekday()), "hour": time.replace(minute=0, second=0, microsecond=0)}


_times = st.builds(
    lambda day, second: datetime(2026, 1, 1) + timedelta(days=day, seconds=second),
    st.integers(-3, 70),
    st.sampled_from([0, 1, 3600, 43200, 86399]),
)


@st.composite
def _conditions(draw: st.DrawFn) -> Condition:
    parts: list[Condition] = []
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from([BOUGHT, "day", "week", "month", "hour"]))
        times = draw(st.lists(_times, min_size=1, max_size=3))
        values = sorted({value for time in times if (value := _row(time)[name]) is not None})
        operators = st.sampled_from(["=", "<", "<=", ">", ">="])
        listed = draw(st.booleans())
        parts.append(Within(name, tuple(values)) if listed else Compare(name, draw(operators), values[0]))
    return And(tuple(parts))


@examples(3000, quick=300)
@given(where=_conditions(), times=st.lists(_times, min_size=1, max_size=8), key=st.sampled_from(PERIODS))
def test_every_row_that_where_keeps_has_one_of_the_values(where: Condition, times: list[datetime], key: str) -> None:
    table = replace(WITH_HOURS, groupings=(Grouping(("store", key), None, 1, ()),), rows_per_unit=10**6)
    fixed = _fixed(where, table)
    for row in map(_row, times):
        if evaluate(where, row) is True:
            assert all(row[name] in values for name, values in fixed.items())
