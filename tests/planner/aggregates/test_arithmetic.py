"""Every aggregate as a linear form: what the integers say is what PostgreSQL says, group by group, on small tables."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import psycopg
import pytest

from mechanisms.formula import evaluate_formula as evaluate_formula
from mechanisms.formula import list_literals
from planner.catalog.catalog import Value
from planner.question.condition import evaluate
from planner.question.question import Functional, Question
from tests.effort import rounds
from tests.in_turn import in_turn
from tests.planner.asked import asked, refusal
from tests.worlds.analysts import analysts

Row = dict[str, Value | None]
GRIDS = {"age": Fraction(1), "cost": Fraction(1, 2), "co2": Fraction(1), "pressure": Fraction(1, 2)}
GUARDS = "count(*) >= 1 AND count(age) >= 1 AND count(cost) >= 1 AND count(*) FILTER (WHERE insured) >= 1"


@dataclass(frozen=True)
class World:
    """Small groups with NULLs, and the same rows in PostgreSQL."""

    groups: list[list[Row]]
    connection: psycopg.Connection[tuple[object, ...]]

    def held(self, having: str, *, where: str = "true") -> set[int]:
        """The groups for which PostgreSQL says true; -1 is the group without rows."""
        text = f"SELECT ward FROM visits WHERE {where} GROUP BY ward HAVING {having}"
        found = self.connection.execute(text).fetchall()
        try:
            with self.connection.transaction():
                empty = self.connection.execute(f"SELECT 1 FROM visits WHERE false HAVING {having}").fetchall()
        except psycopg.errors.DivisionByZero:
            empty = []
        return {int(str(ward)) for (ward,) in found} | ({-1} if empty else set())

    def decided(self, question: Question, *, relaxed: bool = False) -> set[int]:
        """The groups for which the integers say true."""
        groups = dict(enumerate(self.groups)) | {-1: []}
        return {ward for ward, rows in groups.items() if decided(question, rows, relaxed=relaxed)}


@pytest.fixture(scope="module")
def world(postgres_url: str) -> Iterator[World]:
    random_ = random.Random(4711)
    groups: list[list[Row]] = [
        [
            {
                "age": random_.choice([None, *range(1, 8)]),
                "cost": random_.choice([None, *(Decimal(i) / 2 for i in range(7))]),
                "insured": random_.choice([None, True, False]),
            }
            for _ in range(random_.randint(1, 6))
        ]
        for _ in range(60)
    ]
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TEMP TABLE visits (ward integer, age integer, cost numeric, insured boolean)")
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO visits VALUES (%s, %s, %s, %s)",
                [(ward, row["age"], row["cost"], row["insured"]) for ward, rows in enumerate(groups) for row in rows],
            )
        yield World(groups, connection)


def total(functional: Functional, rows: list[Row]) -> int:
    """The functional on unbounded rows whose values lie on the grid."""
    result = 0
    for row in rows:
        for term in functional.terms:
            value = row[term.column] if term.column else 1
            if value is None or evaluate(term.condition, row) is not True:
                continue
            assert isinstance(value, int | Decimal)
            steps = Fraction(value) / GRIDS[term.column] if term.power and term.column else Fraction(1)
            result += int(term.coefficient * steps)
    return result


def decided(question: Question, rows: list[Row], *, relaxed: bool = False) -> bool:
    kept = [row for row in rows if evaluate(question.where, row) is True]
    values = np.array([[total(functional, kept)] for functional in question.functionals], dtype=np.int64)
    held = evaluate_formula(
        question.formula,
        lambda cut: (cut.relax() if relaxed else cut).evaluate(values[cut.functional]),
        keys=1,
    )
    return bool(held[0])


FILTERS = ("", "", " FILTER (WHERE insured)", " FILTER (WHERE age > 3 OR age IS NULL)", " FILTER (WHERE cost <= 1.5)")
ROWS = (
    "age", "cost", "age * 2", "-cost", "age + 1", "age - cost", "cost / 2", "coalesce(age, 0)", "coalesce(cost, 1.5)",
    "coalesce(age, cost, 2)", "CASE WHEN insured THEN age END", "CASE WHEN insured THEN age ELSE 0 END",
    "CASE WHEN age > 5 THEN 3 WHEN insured THEN cost ELSE age END", "CASE WHEN insured THEN 1 ELSE 0 END",
    "CASE WHEN insured THEN 1 END", "CASE insured WHEN true THEN 2 WHEN false THEN 1 END", "(age > 3)::int",
    "CASE WHEN age IS NULL THEN 2 ELSE NULL END", "age::numeric", "CASE WHEN cost > 1 THEN -cost ELSE age - 4 END",
)  # fmt: skip


def _aggregate(random_: random.Random) -> str:
    row, filter_ = random_.choice(ROWS), random_.choice(FILTERS)
    return random_.choice([f"count(*){filter_}", f"count({row}){filter_}", f"sum({row}){filter_}", f"sum({row})"])


def _number(random_: random.Random) -> str:
    return random_.choice([str(random_.randint(-2, 9)), f"{random_.uniform(-2, 9):.2f}", str(random_.randint(0, 4))])


def _atom(random_: random.Random) -> str:
    operator = random_.choice(["=", "<>", "<", "<=", ">", ">="])
    row, filter_, t = random_.choice(ROWS), random_.choice(FILTERS), _number(random_)
    one, other = _aggregate(random_), _aggregate(random_)
    column = random_.choice(["age", "cost"])
    share = random_.choice(["0.25", "0.5", "0.75", "1", "0.125"])
    extreme = random_.choice(["max", "min"])
    return random_.choice(
        [
            f"avg({row}){filter_} {operator} {t}",
            f"{t} {operator} 2 * avg({row}){filter_} - 1",
            f"{one} {operator} {random_.choice(['2 * ', '0.5 * ', ''])}{other}",
            f"{one} - {other} {operator} {t}",
            f"coalesce(sum({row}), 0) {operator} {other}",
            f"coalesce(avg({row}), 0) {operator} {t}",
            f"1.0 * {one} / count(*) {operator} {t}",
            f"100.0 * count(*){filter_} / nullif(count(*), 0) {operator} {random_.randint(0, 10) * 10}",
            f"{one} / nullif(count({column}){filter_}, 0)::numeric {operator} {t}",
            f"sum({row}){filter_} / sum(age)::numeric {operator} {t}",
            f"avg({row}) - avg({row}) {operator} avg({row}) - {t}",
            "avg(age) FILTER (WHERE age IS NOT NULL AND cost IS NOT NULL) "
            f"{operator} avg(cost) FILTER (WHERE age IS NOT NULL AND cost IS NOT NULL) + {t}",
            f"{extreme}({column}){filter_} {operator} {t}",
            f"{t} {operator} {extreme}({column})",
            f"percentile_disc({share}) WITHIN GROUP (ORDER BY {column}){filter_} {operator} {t}",
            f"round(avg({column}){filter_}, {random_.randint(0, 1)}) {operator} {t}",
            f"{random_.choice(['floor', 'ceil', 'round'])}(sum(cost){filter_}) {operator} {t}",
            f"CAST(avg({column}){filter_} AS {random_.choice(['numeric(9,1)', 'decimal(9)', 'int'])}) {operator} {t}",
            f"round({extreme}({column}){filter_}::numeric, {random_.randint(-1, 1)}) {operator} {t}",
            f"percentile_disc({share}) WITHIN GROUP (ORDER BY {column}){filter_}::numeric(9,0) {operator} {t}",
            f"count(*){filter_}::numeric(9,2) / count(*) {operator} {t}",
            f"{random_.choice(['', 'NOT '])}bool_and(age > {random_.randint(0, 5)}){filter_}",
            f"{random_.choice(['bool_or', 'every'])}(insured) = {random_.choice(['true', 'false'])}",
            f"{one} {random_.choice(['', 'NOT '])}BETWEEN {t} AND {_number(random_)}",
        ]
    )


def _formula(random_: random.Random, depth: int) -> str:
    if depth == 0:
        return _atom(random_)
    parts = [_formula(random_, depth - 1) for _ in range(random_.randint(1, 3))]
    joined = f"({random_.choice([' AND ', ' OR ']).join(parts)})"
    return f"NOT {joined}" if random_.random() < 0.3 else joined


def _agrees_with_a_guard_of_one(world: World, sql: str, having: str) -> None:
    """A guard that Keyhole adds for groups of at least one value changes nothing of what SQL says."""
    other = re.search(r"stddev\(|variance|_samp|/ sum\(", having)  # of two values at least, or with a base
    if other is None and refusal(sql, tolerance="1", min_rows="1") is None:
        assert world.decided(asked(sql, tolerance="1", min_rows="1")) == world.held(having), having


def test_formulas_agree_with_postgresql_on_every_group_and_on_none(world: World) -> None:
    """900 random formulas, 60 at quick, over 60 groups and one without rows: where accepted, the integers agree.

    Where bounds are said to decide a formula, PostgreSQL says the same of every group.
    """
    random_ = random.Random(20260102)
    accepted, refused = 0, {"KH206": 0, "KH204": 0, "KH220": 0}
    cases = rounds(900, quick=60)
    for number in range(cases):
        having = _formula(random_, 0 if number < cases * 5 // 9 else random_.randint(1, 2))
        if random_.random() < 0.6:
            having = f"{GUARDS} AND {having}"
        sql = f"SELECT ward FROM visits GROUP BY ward HAVING {having}"
        error = refusal(sql, tolerance="1", guard="refuse")
        if error is not None:
            assert error.code in refused, (having, error)
            refused[error.code] += 1
            if error.code == "KH206":
                _agrees_with_a_guard_of_one(world, sql, having)
            if error.code == "KH220":
                never = having if "is false for every group" in error.message else f"NOT ({having})"
                assert world.held(never) == set(), (having, error)
            continue
        accepted += 1
        question = asked(sql, tolerance="1")
        assert world.decided(question) == world.held(having), having
    assert accepted > cases * 3 // 10
    assert all(count > cases // 45 for count in refused.values()), refused


def test_comparisons_without_needless_guards_agree_with_postgresql(world: World) -> None:
    """On every group, with bases that the analyst typed: NULL is false also where nothing counts the values."""
    base = "AND sum(age) >= 4"
    for where, having, compared in (
        ("true", f"sum(cost) / sum(age) >= 0.5 {base}", 2),
        ("true", f"sum(cost) FILTER (WHERE insured) / sum(age) >= 0.25 {base}", 2),
        ("true", f"1.0 * sum(CASE WHEN insured THEN age ELSE 0 END) / sum(age) >= 0.5 {base}", 2),
        ("true", f"sum(cost) / sum(age) <= 0.5 AND count(cost) >= 1 {base}", 3),
        ("cost IS NOT NULL", f"sum(cost) / sum(age) < 0.5 {base}", 2),
        ("cost <= 1.5", "sum(age) - sum(cost) > 4", 1),
        ("age IS NOT NULL AND cost < 2", "avg(age) >= 3 AND count(*) >= 2", 2),
    ):
        question = asked(
            f"SELECT ward FROM visits WHERE {where} GROUP BY ward HAVING {having}", tolerance="10%", guard="refuse"
        )
        assert len(question.functionals) == compared
        assert world.decided(question) == world.held(having, where=where), having


def test_a_ratio_by_a_sum_of_either_sign_agrees_with_postgresql_on_every_group(world: World) -> None:
    """Each base in the text chooses a side. Of groups whose sum is nearer to 0 nothing is asked."""
    sums = {world.held(f"sum(age - 3) {sign} 0") != set() for sign in "<>"}
    assert sums == {True}, "groups on both sides"
    for operator, number in product(("<", "<=", ">", ">=", "="), ("0.25", "-0.5", "1", "-1")):
        ratio = f"sum(cost) / nullif(sum(age - 3), 0) {operator} {number}"
        for having in (
            f"{ratio} AND sum(age - 3) >= 1",
            f"{ratio} AND sum(age - 3) <= -1",
            f"({ratio} AND sum(age - 3) > 1) OR (NOT ({ratio}) AND sum(age - 3) < -2)",
        ):
            whole = f"count(cost) >= 1 AND count(age) >= 1 AND ({having})"
            question = asked(f"SELECT ward FROM visits GROUP BY ward HAVING {whole}", tolerance="0.01, count=0, sum=0")
            assert world.decided(question) == world.held(whole), whole


def test_a_ratio_needs_no_count_of_its_numerator_where_its_divisor_has_values() -> None:
    """All groups of two rows: without a co2, what each pressure takes off keeps the difference below 0."""
    sql = "SELECT site FROM readings GROUP BY site HAVING sum(co2) / sum(pressure) >= 2"
    question = asked(f"{sql} AND count(pressure) >= 1", catalog=analysts("readings"), guard="refuse", min_rows="1")
    assert len(question.functionals) == 2
    kinds: list[Row] = [
        {"co2": co2, "pressure": pressure}
        for co2 in (None, 0, 2000, 5000)
        for pressure in (None, Decimal(900), Decimal(1100))
    ]
    for rows in product(kinds, repeat=2):
        co2 = [Fraction(str(row["co2"])) for row in rows if row["co2"] is not None]
        pressure = [Fraction(str(row["pressure"])) for row in rows if row["pressure"] is not None]
        assert decided(question, list(rows)) == bool(co2 and pressure and sum(co2) / sum(pressure) >= 2)
        assert not decided(question, list(rows), relaxed=True) or bool(co2 and pressure)


@pytest.mark.parametrize("operator", [">", ">=", "<", "<=", "="])
@pytest.mark.parametrize("share", [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1)])
def test_an_interpolated_percentile_is_never_missed_and_at_most_one_row_off(
    world: World, operator: str, share: Fraction
) -> None:
    for threshold in ("1", "2.5", "3", "4", "6.75"):
        having = f"percentile_cont({float(share)}) WITHIN GROUP (ORDER BY age) {operator} {threshold}"
        having = f"{having} AND count(age) >= 1"
        question = asked(f"SELECT ward FROM visits GROUP BY ward HAVING {having}", tolerance="count=0, 1")
        found, held = world.decided(question), world.held(having)
        assert held <= found
        for ward in found - held:
            ages = [age for row in world.groups[ward] if (age := row["age"]) is not None]
            assert len(ages) > 1
            assert len(set(ages)) > 1


@pytest.mark.parametrize(
    ("having", "tolerance", "band"),
    [
        ("sum(age) / count(*)::numeric > 20", "10%", ("18", "20")),
        ("100.0 * count(*) FILTER (WHERE insured) / count(*) > 20", "2", ("18", "20")),
        ("count(*) FILTER (WHERE insured) * 1.0 / count(*) * 100 > 20", "2", ("18", "20")),
        ("2 * avg(age) > 40", "10%", ("18", "20")),
        ("percentile_disc(0.5) WITHIN GROUP (ORDER BY age) > 65", "10%", ("40", "50")),
        ("percentile_disc(0.9) WITHIN GROUP (ORDER BY age) > 65", "5", ("0", "10")),
        ("sum(age) > 2 * coalesce(sum(cost), 0)", "30", ("-30", "0")),
        ("max(age) > 65", "10%", ("0", "0")),
    ],
)
def test_the_band_is_in_the_unit_of_the_comparison(having: str, tolerance: str, band: tuple[str, str]) -> None:
    """For groups of at least 50 rows."""
    sql = f"SELECT ward FROM visits GROUP BY ward HAVING {having}"
    (atom,) = asked(sql, tolerance=tolerance, min_rows="50").atoms
    assert (atom.lower, atom.upper) == tuple(map(Decimal, band))
    assert atom.text.startswith(("sum", "max", "percentile", "100", "avg"))


def test_the_ratio_of_a_group_of_min_rows_rows_errs_within_its_band() -> None:
    """A group of 50 rows or more whose ratio is at most 18 is outside the tolerance of `> 20` within 2."""
    sql = "SELECT ward FROM visits GROUP BY ward HAVING sum(age) / count(*)::numeric > 20"
    question = asked(sql, tolerance="10%", min_rows="50")
    for rows, ratio, within in ((50, 18, False), (50, 19, True), (80, 18, False), (49, 18, True)):
        group: list[Row] = [{"age": ratio, "cost": None, "insured": None}] * rows
        assert decided(question, group, relaxed=True) is within
        assert not decided(question, group)


@pytest.mark.parametrize(
    ("having", "sensitivity"),
    [
        ("count(*) FILTER (WHERE age > 65) > count(*) FILTER (WHERE age < 5)", 1),
        ("count(*) FILTER (WHERE age > 65) * 1.0 / count(*) > 0.2", 4),  # steps of 1/5: 4 of those, or -1
        ("sum(age) / count(*)::numeric > 20", 90),
        ("avg(age) > 65", 65),
        ("sum(CASE WHEN insured THEN age ELSE -age END) > 20", 110),
        ("sum(age) > 2 * coalesce(sum(CASE WHEN insured THEN age END), 0)", 110),
        ("percentile_disc(0.9) WITHIN GROUP (ORDER BY age) > 65", 9),
        ("max(age) > 65", 1),
    ],
)
def test_sensitivities_are_those_of_one_row(having: str, sensitivity: int) -> None:
    question = asked(f"SELECT ward FROM visits GROUP BY ward HAVING {having}", tolerance="10")
    assert question.functionals[0].sensitivity == sensitivity


def test_a_count_of_the_analyst_and_an_extreme_share_their_noise() -> None:
    having = "max(age) > 65 OR count(*) FILTER (WHERE age > 65) > 10"
    question = asked(f"SELECT ward FROM visits GROUP BY ward HAVING {having}")
    assert len(question.functionals) == 1
    assert [cut.tolerance for cut in list_literals(question.formula)] == [0, 1]
    assert any("depends on one record" in warning for warning in question.warnings)


@in_turn(
    ("having", "code"),
    [
        ("count(*) FILTER (WHERE insured) / count(*) + 1 > 0.2", "KH204"),
        ("sum(age) / count(*) + 1 > 20", "KH204"),
        ("sum(age) / -sum(cost) > 20", "KH204"),
        ("sum(age) / sum(cost - 60) > 20", "KH206"),
        ("count(*) * count(*) > 20", "KH204"),
        ("1.0 / count(*) > 0.2", "KH204"),
        ("avg(age) > count(*)", "KH204"),
        ("avg(age) > avg(cost)", "KH206"),
        ("avg(age) > avg(cost) + 200", "KH204"),
        ("max(age) > min(age)", "KH208"),
        ("max(age) - min(age) > 5", "KH204"),
        ("var_pop(age) > 5", "KH211"),
        ("stddev(age) > 40", "KH206"),
        ("stddev(age) / avg(age) > 5", "KH204"),
        ("var_pop(age) > var_pop(cost)", "KH208"),
        ("sum(age) - sum(age) > 5", "KH204"),
        ("coalesce(avg(age), 0) < 65", "KH204"),
        ("sum(age) > 2 * sum(cost)", "KH206"),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY age) > 65", "KH206"),
        ("max(age) <= 65", "KH206"),
        ("bool_and(insured)", "KH206"),
        ("percentile_disc(0) WITHIN GROUP (ORDER BY age) > 65", "KH204"),
        ("percentile_disc(0.1) WITHIN GROUP (ORDER BY age DESC) > 65", "KH204"),
        ("sum(age / cost) > 5", "KH203"),
        ("sum(age / 2) > 5", "KH204"),
    ],
)
def test_refusals(having: str, code: str) -> None:
    error = refusal(f"SELECT ward FROM visits GROUP BY ward HAVING {having}", guard="refuse")
    assert error is not None
    assert error.code == code
    assert error.hint


@pytest.mark.parametrize(
    "having",
    ["count(*) FILTER (WHERE insured) / count(*) > 0.2", "max(age) <= 65", "avg(age) <= 65", "bool_and(insured)",
     "sum(CASE WHEN insured THEN age ELSE 0 END) < 65", "avg(coalesce(age, 0)) < 65 AND sum(cost) <= 3"],
)  # fmt: skip
def test_the_hint_is_a_question_that_works(having: str) -> None:
    """One hint after the other, each as it says, until the question is accepted."""
    for _ in range(3):
        error = refusal(f"SELECT ward FROM visits GROUP BY ward HAVING {having}", guard="refuse")
        if error is None:
            return
        assert error.hint is not None
        guard, ratio = error.hint.partition("Add: ")[2], error.hint.partition("decimal: ")[2]
        having = f"{having} {guard}" if guard else having.replace("count(*) FILTER (WHERE insured) / count(*)", ratio)
    assert refusal(f"SELECT ward FROM visits GROUP BY ward HAVING {having}") is None
