"""Sums and ratios with numbers of privacy units: no unit moves one further than is said, and some move it as far."""

import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest

from benchmarks.oracle.judging import parse_question
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, RowCap
from planner.errors import KeyholeError
from planner.functionals.functional_identity import identify_sum
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.question.plan import Plan
from planner.question.question import Measure
from planner.question.unit_groups import count_unit_groups
from planner.rankings.mean_scores import compute_scores
from planner.statements.settings import read_accuracy
from tests.effort import cases, rounds
from tests.planner.asked import TODAY, asked, asking, refusal
from tests.planner.groups.test_truth import CATALOG, LINES, STORED, drawn_lines
from tests.rows_at_once import insert

WANTED = read_accuracy({"keyhole.tolerance": "1"}, CATALOG.defaults)
FILTER = "FILTER (WHERE gift)"
UNITS = "count(DISTINCT person)"
RATIOS = (
    f"sum(n) / {UNITS} > 3",
    f"sum(n) * 1.0 / {UNITS} > 39.5",
    f"sum(n)::numeric / {UNITS} > -7.25",
    f"sum(price) {FILTER} / {UNITS} {FILTER} > 12.5",
    f"count(*) / {UNITS} >= 2",
    f"count(n) * 1.0 / {UNITS} > 1.5",
    f"sum(n + 2) * 1.0 / {UNITS} > 3",
    f"sum(2 * price - 1) {FILTER} / {UNITS} {FILTER} > 100",
    f"count(*) {FILTER} * 1.0 / {UNITS} > 0.4",
    f"sum(CASE WHEN gift THEN n ELSE 0 END) * 1.0 / {UNITS} < 2.5",
    f"sum(n) > 3 * {UNITS}",
    f"3 * {UNITS} - count(n) {FILTER} >= 2",
    f"{UNITS} {FILTER} * 1.0 / {UNITS} > 0.3",
    f"100.0 * count(DISTINCT CASE WHEN n > 5 THEN person END) / {UNITS} {FILTER} <= 45",
    f"{UNITS} {FILTER} - 2 * {UNITS} FILTER (WHERE n > 5) + {UNITS} FILTER (WHERE gift AND n > 5) > 1",
)
CITIES = "SELECT city FROM lines GROUP BY city HAVING "


def _world(groups: int, rows: int, *, capped: bool) -> Catalog:
    declared = {"n": (Decimal(-30), Decimal(40)), "price": (Decimal(0), Decimal(60))}
    columns = tuple(replace(one, per_unit=declared.get(one.name)) for one in LINES.columns)
    cap = RowCap(rows, "code") if capped else None
    table = replace(LINES, columns=columns, groups_per_unit=groups, rows_per_unit=rows, row_cap=cap)
    return replace(CATALOG, tables=(table,))


def _plan(having: str, catalog: Catalog) -> Plan:
    (question,) = asking(CITIES + having, catalog).questions
    return plan_question(bind_question(question, catalog, accuracy=WANTED, parameters={}, today=TODAY), dialect=DUCKDB)


def _totals(opened: Any, sql: str) -> dict[Any, tuple[int, ...]]:
    return {row[0]: tuple(int(one or 0) for one in row[1:]) for row in opened.execute(sql).fetchall()}


@pytest.mark.parametrize(("having", "capped", "bounds"), cases(RATIOS, [False, True], [(1, 2), (2, 5)], quick=8))
def test_a_unit_moves_it_no_further_than_is_said(having: str, capped: bool, bounds: tuple[int, int]) -> None:
    """Of units with more rows, totals and groups than the bounds admit; a rollup of the rows that count says the
    same. At quick one case in seven."""
    groups, rows = bounds
    made = _plan(f"{having} AND {UNITS} > 2", _world(groups, rows, capped=capped))
    for seed in range(rounds(20, quick=1)):
        opened = drawn_lines(seed)
        whole = _totals(opened, made.rewritten.sql)
        kept = made.rewritten.rollup
        assert kept is not None
        assert _totals(opened, f"WITH rolled AS (\n{kept.build}\n),\n{kept.sql}") == whole
        for person in random.Random(seed).sample(range(40), 8):
            opened.execute("BEGIN")
            opened.execute("DELETE FROM lines WHERE person = ?", [person])
            _check(made, whole, _totals(opened, made.rewritten.sql))
            opened.execute("ROLLBACK")


TWO_NUMBERS = f"({UNITS} FILTER (WHERE n > 2) - 2 * {UNITS} FILTER (WHERE n > 4)) * 1.0 / {UNITS}"
RANKED = (
    f"sum(n) * 1.0 / {UNITS}",
    f"sum(price) {FILTER} / {UNITS} {FILTER}",
    f"count(*) {FILTER} * 1.0 / {UNITS}",
    f"{UNITS} {FILTER} * 1.0 / {UNITS}",
    f"({UNITS} {FILTER} - 2 * {UNITS} FILTER (WHERE n > 5)) * 1.0 / {UNITS}",
)


@pytest.mark.parametrize(
    ("ratio", "order", "capped", "bounds"),
    cases(RANKED, ["ASC", "DESC"], [False, True], [(1, 2), (2, 5)], quick=4),
)
def test_a_unit_moves_a_rank_no_further(ratio: str, order: str, capped: bool, bounds: tuple[int, int]) -> None:
    """The score of a group that is large enough is the ratio of what counts, in steps from the end that comes last."""
    groups, rows = bounds
    world, wanted = _world(groups, rows, capped=capped), replace(WANTED, min_rows=3, is_min_rows_set=True)
    (embedded,) = asking(f"SELECT city FROM lines GROUP BY city ORDER BY {ratio} {order} LIMIT 2", world).questions
    made = plan_question(bind_question(embedded, world, accuracy=wanted, parameters={}, today=TODAY), dialect=DUCKDB)
    ranked = made.question.ranked
    assert ranked is not None
    assert ranked.mean is not None

    def scores(totals: dict[Any, tuple[int, ...]]) -> dict[Any, int]:
        found = compute_scores(ranked, np.array([*zip(*totals.values(), strict=True)], dtype=np.int64))
        return dict(zip(totals, map(int, found), strict=True))

    nothing = (0,) * 2
    for seed in range(rounds(20, quick=1)):
        opened = drawn_lines(seed)
        whole = _totals(opened, made.rewritten.sql)
        for person in random.Random(seed).sample(range(40), 8):
            opened.execute("BEGIN")
            opened.execute("DELETE FROM lines WHERE person = ?", [person])
            left = _totals(opened, made.rewritten.sql)
            opened.execute("ROLLBACK")
            before, after = (scores({key: one.get(key, nothing) for key in whole}) for one in (whole, left))
            moved = [abs(before[key] - after[key]) for key in whole if before[key] != after[key]]
            assert len(moved) <= count_unit_groups(made.question)
            assert max(moved, default=0) <= ranked.functional.sensitivity


@pytest.mark.parametrize(
    ("ratio", "order", "expected"),
    [
        (f"sum(n) * 1.0 / {UNITS}", "DESC", {"Bonn": 4, "Kiel": 2}),
        (f"sum(n) * 1.0 / {UNITS}", "ASC", {"Bonn": 4, "Kiel": 2}),
        (f"count(*) FILTER (WHERE n > 5) * 1.0 / {UNITS}", "DESC", {"Bonn": Fraction(1, 3), "Kiel": 0}),
        (f"{UNITS} FILTER (WHERE n > 2) * 1.0 / {UNITS}", "ASC", {"Bonn": Fraction(2, 3), "Kiel": Fraction(1, 3)}),
        (TWO_NUMBERS, "DESC", {"Bonn": 0, "Kiel": Fraction(-1, 3)}),
        (TWO_NUMBERS, "ASC", {"Bonn": 0, "Kiel": Fraction(-1, 3)}),
    ],
)
def test_groups_are_ranked_by_what_the_ratio_is(ratio: str, order: str, expected: dict[str, Fraction]) -> None:
    world, wanted = _world(2, 5, capped=False), replace(WANTED, min_rows=3, is_min_rows_set=True)
    (embedded,) = asking(f"SELECT city FROM lines GROUP BY city ORDER BY {ratio} {order} LIMIT 1", world).questions
    made = plan_question(bind_question(embedded, world, accuracy=wanted, parameters={}, today=TODAY), dialect=DUCKDB)
    ranked = made.question.ranked
    assert ranked is not None
    assert ranked.mean is not None
    with duckdb.connect() as opened:
        opened.execute(f"CREATE TABLE lines ({STORED})")
        rows = [(1, "Bonn", 1), (1, "Bonn", 2), (2, "Bonn", 3), (3, "Bonn", 6), (4, "Kiel", 1), (5, "Kiel", 5)]
        insert(opened, "lines (person, city, n)", [*rows, (6, "Kiel", None)])
        totals = _totals(opened, made.rewritten.sql)
    found = compute_scores(ranked, np.array([*zip(*totals.values(), strict=True)], dtype=np.int64))
    worst, step = Fraction(ranked.mean.worst_value), Fraction(ranked.functional.unit_size)
    assert all(worst <= one if order == "DESC" else worst >= one for one in expected.values())  # comes last
    for key, score in zip(totals, found, strict=True):
        if key in expected:
            assert 0 <= expected[key] - worst - int(score) * step < step


@pytest.mark.parametrize(
    ("ranked_by", "signed"),
    [
        (f"{UNITS} {FILTER} - {UNITS} FILTER (WHERE n > 5)", True),
        (f"sum(n) - 3 * {UNITS}", True),
        (f"count(*) - 3 * {UNITS}", True),
        (f"{UNITS} {FILTER} + 2 * {UNITS} FILTER (WHERE n > 5)", False),
        (f"count(*) + 3 * {UNITS}", False),
    ],
)
def test_a_ranking_says_whether_a_unit_may_raise_some_groups_and_lower_others(ranked_by: str, signed: bool) -> None:
    world = _world(2, 5, capped=False)
    (embedded,) = asking(f"SELECT city FROM lines GROUP BY city ORDER BY {ranked_by} DESC LIMIT 2", world).questions
    ranked = bind_question(embedded, world, accuracy=WANTED, parameters={}, today=TODAY).ranked
    assert ranked is not None
    assert ranked.has_both_signs is signed


def test_a_count_beside_a_number_for_each_unit_says_nothing_of_how_large_groups_are() -> None:
    catalog = _world(2, 5, capped=False)
    for counted, rows in (("count(n)", 300), (f"count(n) + 5 * {UNITS}", catalog.defaults.min_rows)):
        (embedded,) = asking(f"{CITIES}avg(n) > 3 AND {counted} > 299", catalog).questions
        question = bind_question(
            embedded, catalog, accuracy=replace(WANTED, tolerance="1, count=0"), parameters={}, today=TODAY
        )
        (mean,) = (one for one in question.functionals if one.name.startswith("avg"))
        assert mean.rows == rows


def test_units_of_either_kind_do_not_say_that_there_are_values() -> None:
    catalog = _world(2, 5, capped=False)
    valued = f"{UNITS} FILTER (WHERE n > 5)"
    for counted, added in ((valued, False), (f"{valued} + {UNITS} {FILTER}", True)):
        (embedded,) = asking(f"{CITIES}avg(n) >= 3 AND {counted} > 10", catalog).questions
        warnings = bind_question(embedded, catalog, accuracy=WANTED, parameters={}, today=TODAY).warnings
        assert any("count(n) >= " in one for one in warnings) is added, counted


def _check(made: Plan, whole: dict[Any, tuple[int, ...]], without: dict[Any, tuple[int, ...]]) -> None:
    nothing = (0,) * len(made.question.functionals)
    pairs = [(whole.get(key, nothing), without.get(key, nothing)) for key in {*whole, *without}]
    moved = [(before, after) for before, after in pairs if before != after]
    assert len(moved) <= count_unit_groups(made.question)
    for before, after in moved:
        for functional, first, second in zip(made.question.functionals, before, after, strict=True):
            assert abs(first - second) <= functional.sensitivity


@pytest.mark.parametrize(
    ("ratio", "values", "moved"),
    [
        (f"sum(n) * 1.0 / {UNITS} > 3", [60], 37),
        (f"sum(n) * 1.0 / {UNITS} > 39.5", [-20, -20], 139),  # halves
        (f"sum(n) * 1.0 / {UNITS} > -7.5", [60], 95),
        (f"sum(price) / {UNITS} > 50", [None], 5000),  # a unit without a value takes the threshold off alone
        (f"count(*) / {UNITS} >= 2", [1] * 9, 3),
        (f"sum(n) > 3 * {UNITS}", [60], 37),
        (f"count(*) FILTER (WHERE n > 5) > 3 * {UNITS}", [1], 3),
        (f"{UNITS} FILTER (WHERE n > 5) * 1.0 / {UNITS} > 0.3", [9], 7),  # tenths
        (f"{UNITS} FILTER (WHERE n > 5) * 1.0 / {UNITS} > 0.6", [1, 2], 3),  # fifths
        (f"{UNITS} FILTER (WHERE n > 5) > 2 * {UNITS} FILTER (WHERE n <= 5)", [1], 2),
    ],
)
def test_some_unit_moves_it_as_far(ratio: str, values: list[int | None], moved: int) -> None:
    made = _plan(f"{ratio} AND {UNITS} > 2", _world(1, 5, capped=False))
    taken = [one.measure is Measure.UNIT_SUM or bool(one.off_each_unit) for one in made.question.functionals]
    place = taken.index(True)
    with duckdb.connect() as opened:
        opened.execute(f"CREATE TABLE lines ({STORED})")
        insert(opened, "lines (person, city, n)", [(1, "Bonn", one) for one in values])
        found = _totals(opened, made.rewritten.sql)["Bonn"][place]
    assert abs(found) == moved == made.question.functionals[place].sensitivity


def test_a_unit_without_a_value_takes_off_the_whole_number() -> None:
    """Where whoever has values has 10 at least, and 40 at most: 20 off moves the sum by -20 .. 20, and not by -10."""
    world = _world(1, 5, capped=False)
    (table,) = world.tables
    columns = (replace(one, per_unit=(Decimal(10), Decimal(40))) if one.name == "n" else one for one in table.columns)
    made = _plan(
        f"sum(n) * 1.0 / {UNITS} > 20 AND {UNITS} > 2", replace(world, tables=(replace(table, columns=(*columns,)),))
    )
    (ratio,) = (one for one in made.question.functionals if one.off_each_unit)
    assert (ratio.sensitivity, ratio.unit_range) == (20, (-20, 20))


def test_the_number_of_units_is_set_typed_or_added() -> None:
    ratio = "sum(amount) / count(DISTINCT customer_id) > 300"
    ask_ = f"SELECT country, month FROM sales GROUP BY country, month HAVING {ratio}"
    typed = f"{ask_} AND count(DISTINCT customer_id) >= 70"
    made = plan_question(asked(ask_, min_rows="70"), dialect=DUCKDB)
    assert made.fingerprint == plan_question(asked(typed, min_rows="70"), dialect=DUCKDB).fingerprint
    assert any("AND count(DISTINCT customer_id) >= 70 was added" in one for one in asked(ask_, min_rows="70").warnings)
    refused = refusal(ask_, guard="refuse", min_rows="70")
    assert isinstance(refused, KeyholeError)
    assert (refused.code, refused.hint) == ("KH206", "Add: AND count(DISTINCT customer_id) >= 70")


def test_a_tolerance_of_the_whole_threshold_leaves_half_of_the_added_base() -> None:
    for tolerance in ("100%", "50%, count=100%", "count=100%"):
        question = asked(CITIES + f"sum(n) / {UNITS} > 3", catalog=_world(2, 3, capped=False), tolerance=tolerance)
        assert any("was added" in warning for warning in question.warnings)


def test_noise_of_different_thresholds_is_not_shared() -> None:
    def identities(number: int) -> list[str]:
        ratio = f"count(*) * 1.0 / count(DISTINCT customer_id) > {number}"
        sql = f"SELECT country, month FROM sales GROUP BY country, month HAVING {ratio}"
        return [identify_sum(one) for one in asked(sql).functionals]

    assert len({*identities(-1), *identities(1), *identities(2)}) == 4  # units are counted alike


def test_units_without_values_are_no_values_of_an_expression() -> None:
    """A group may have units, and no row with both numbers: SQL says NULL, though units are subtracted."""
    ratio = "sum(cost + fee) / count(DISTINCT person) < 4 AND count(DISTINCT person) >= 1"
    statement = f"SELECT ward FROM clipped GROUP BY ward HAVING {ratio}"
    with pytest.raises(KeyholeError) as refused:
        parse_question(statement)
    assert refused.value.code == "KH206"
    assert parse_question(f"{statement} AND count(cost + fee) >= 1") is not None
