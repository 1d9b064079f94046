"""From SQL to questions: pairs under tests/spec, and SQL's own answers on small tables as the oracle."""

import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.formula import AnyOf, Booleans, Formula, Integers, list_literals
from mechanisms.formula import evaluate_formula as evaluate_formula
from planner.catalog.catalog import Value
from planner.errors import KeyholeError
from planner.functionals.functional import make_literals
from planner.functionals.guards import holds_at_zero
from planner.question.condition import evaluate
from planner.question.question import Functional, Question
from tests.effort import rounds
from tests.in_turn import in_turn
from tests.planner.asked import asked, refusal
from tests.planner.rendering import question_text
from tests.planner.spec import pairs
from tests.worlds.retail import retail


@in_turn(("sql", "outcome"), pairs("questions.sql"))
def test_question(sql: str, outcome: str) -> None:
    if outcome.startswith("KH"):
        code = outcome.split()[0]
        with pytest.raises(KeyholeError) as refusal:
            asked(sql, guard="refuse")
        assert refusal.value.code == code
    else:
        assert question_text(asked(sql)) == outcome


@given(
    st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
    st.fractions(min_value=-30, max_value=30, max_denominator=6),
)
def test_literals_say_what_the_comparison_says_for_every_integer(operator: str, at: Fraction) -> None:
    formula = make_literals(0, operator, at, tolerance=0)
    values = np.arange(-40, 41, dtype=np.int64)
    held = _holds(formula, values)
    for value, found in zip(values, held, strict=True):
        exact = {
            "=": value == at,
            "<>": value != at,
            "<": value < at,
            "<=": value <= at,
            ">": value > at,
            ">=": value >= at,
        }
        assert bool(found) == exact[operator]


def _holds(formula: Formula, values: Integers) -> Booleans:
    return evaluate_formula(formula, lambda cut: cut.evaluate(values), keys=len(values))


Row = dict[str, Value | None]


def _total(functional: Functional, rows: list[Row], grids: dict[str, Fraction]) -> int:
    """The functional on unbounded rows whose values lie on the grid."""
    total = 0
    for row in rows:
        for term in functional.terms:
            value = row[term.column] if term.column else 1
            if value is None or evaluate(term.condition, row) is not True:
                continue
            if not term.power:
                total += term.coefficient
                continue
            assert isinstance(value, int | Decimal)
            assert term.column is not None
            steps = Fraction(value) / grids[term.column]
            assert steps.denominator == 1
            total += term.coefficient * int(steps)
    return total


def _decided(question: Question, rows: list[Row], grids: dict[str, Fraction]) -> bool:
    kept = [row for row in rows if evaluate(question.where, row) is True]
    values = np.array([[_total(functional, kept, grids)] for functional in question.functionals], dtype=np.int64)

    decided = evaluate_formula(question.formula, lambda cut: cut.evaluate(values[cut.functional]), keys=1)
    return bool(decided[0])


_GRIDS = {"age": Fraction(1), "cost": Fraction(1, 2)}


def _atom(random_: random.Random) -> str:
    operator = random_.choice(["=", "<>", "<", "<=", ">", ">="])
    where = random_.choice(["", "", " FILTER (WHERE insured)", " FILTER (WHERE age > 2 OR age IS NULL)"])
    aggregate, low, high = random_.choice(
        [
            (f"count(*){where}", 0, 5),
            (f"count(age){where}", 0, 5),
            (f"sum(age){where}", 0, 12),
            (f"sum(cost){where}", 0, 6),
            (f"avg(age){where}", 0, 5),
            (f"avg(cost){where}", 0, 3),
            ("sum(CASE WHEN insured THEN 1 ELSE 0 END)", 0, 4),
            ("sum(CASE WHEN age > 2 THEN cost END)", 0, 4),
            ("count(CASE WHEN age > 2 THEN cost END)", 0, 4),
        ]
    )
    threshold = random_.choice([f"{random_.uniform(low, high):.1f}", str(random_.randint(low, high))])
    if random_.random() < 0.2:
        return f"{aggregate} {random_.choice(['', 'NOT '])}BETWEEN {threshold} AND {high}"
    return f"{aggregate} {operator} {threshold}"


def _formula(random_: random.Random, depth: int) -> str:
    if depth == 0:
        return _atom(random_)
    parts = [_formula(random_, depth - 1) for _ in range(random_.randint(1, 3))]
    joined = f"({random_.choice([' AND ', ' OR ']).join(parts)})"
    return f"NOT {joined}" if random_.random() < 0.3 else joined


def test_formulas_agree_with_postgresql_on_every_group(postgres_url: str) -> None:
    """600 random formulas over 40 small groups with NULLs: where accepted, the integers say what PostgreSQL says."""
    random_ = random.Random(20260101)
    groups: list[list[Row]] = [
        [
            {
                "age": random_.choice([None, *range(6)]),
                "cost": random_.choice([None, *(Decimal(i) / 2 for i in range(7))]),
                "insured": random_.choice([None, True, False]),
            }
            for _ in range(random_.randint(1, 5))
        ]
        for _ in range(40)
    ]
    accepted = refused = 0
    cases = rounds(600, quick=50)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TEMP TABLE visits (ward integer, age integer, cost numeric, insured boolean)")
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO visits VALUES (%s, %s, %s, %s)",
                [(ward, row["age"], row["cost"], row["insured"]) for ward, rows in enumerate(groups) for row in rows],
            )
        for _ in range(cases):
            having = _formula(random_, random_.randint(0, 2))
            if random_.random() < 0.5:
                having = f"count(age) >= 1 AND count(*) FILTER (WHERE insured) >= 1 AND count(cost) > 0 AND {having}"
            sql = f"SELECT ward FROM visits GROUP BY ward HAVING {having}"
            error = refusal(sql, tolerance="1", guard="refuse")
            if error is not None:
                assert error.code in ("KH206", "KH220"), (having, error)
                refused += error.code == "KH206"
                if error.code == "KH220":
                    never = having if "is false for every group" in error.message else f"NOT ({having})"
                    wrong = connection.execute(f"SELECT ward FROM visits GROUP BY ward HAVING {never}").fetchall()
                    assert not wrong, (having, error)
                    continue
            accepted += error is None
            question = asked(sql, tolerance="1", min_rows="1")  # a guard that is added is of one value, as SQL's is
            found = connection.execute(sql).fetchall()
            mine = {ward for ward, rows in enumerate(groups) if _decided(question, rows, _GRIDS)}
            assert mine == {ward for (ward,) in found}, having
            assert "count" in having or not holds_at_zero(question.formula) or not question.functionals, having
    assert accepted > cases // 4
    assert refused > cases // 12


def test_a_guarding_count_stays_a_guard_under_its_tolerance() -> None:
    question = asked("SELECT ward FROM visits GROUP BY ward HAVING avg(age) >= 65 AND count(age) >= 3", tolerance="20")
    (count,) = [cut for cut in list_literals(question.formula) if cut.functional == 1]
    assert (count.cut, count.tolerance) == (2, 2)
    assert not count.relax().evaluate(np.array([0]))[0]
    free = asked("SELECT ward FROM visits GROUP BY ward HAVING avg(age) > 65 AND count(age) >= 3", tolerance="20")
    assert {cut.tolerance for cut in list_literals(free.formula)} == {20, 1000}


def test_the_band_of_an_average_is_in_its_own_unit() -> None:
    question = asked("SELECT ward FROM visits GROUP BY ward HAVING avg(age) > 60", min_rows="40", tolerance="10%")
    (atom,) = question.atoms
    assert (atom.lower, atom.upper) == (Decimal(54), Decimal(60))
    assert question.functionals[0].rows == 40
    assert next(list_literals(question.formula)).tolerance == 240


def test_parameters_stand_for_constants() -> None:
    sql = "SELECT ward FROM visits WHERE age > $2 AND ward = $3 GROUP BY ward HAVING count(*) > $1 * 10"
    question = asked(sql, parameters={1: 5, 2: Decimal("2.5"), 3: "B"})
    assert question_text(question) == '[ward 1] where "age" > 2 f0 > 50 ~5; count(*) delta 1'
    nothing = asked(sql, parameters={1: None, 2: 1, 3: "B"})
    assert nothing.formula == AnyOf(())


def test_today_is_folded_and_said() -> None:
    question = asked("SELECT day FROM visits WHERE arrived >= current_date - 7 GROUP BY day HAVING count(*) > 50")
    assert question_text(question).startswith("[day 10] where \"arrived\" >= timestamp '2011-06-08 00:00:00'")
    assert any("current_date" in warning for warning in question.warnings)


@pytest.mark.parametrize(
    ("having", "warning"),
    [
        ("count(*) > 0", "count(*) > 0 has no tolerance, which is expensive"),
        ("count(*) < 10", "groups without rows count as 0 and qualify"),
        ("count(*) <> 10", "count(*) <> 10 holds for every group within its tolerance, so it promises nothing"),
        ("count(*) >= 0", "the formula is constant: the answer does not depend on the data"),
        (
            "avg(age) > 60",
            "groups without rows lie within the tolerance and may be returned; AND count(age) >= 100 keeps them out",
        ),
        ("count(*) > 3", "count(*) > 3: the tolerance is below one row and counts as zero"),
    ],
)
def test_warnings(having: str, warning: str) -> None:
    tolerance = "0, count=1, avg=100" if ">" not in having else "10%"
    tolerance = "1" if "<>" in having else "0" if having == "count(*) > 0" else tolerance
    question = asked(f"SELECT ward FROM visits GROUP BY ward HAVING {having}", tolerance=tolerance)
    assert warning in question.warnings, question.warnings


def test_too_many_keys_and_literals_are_refused() -> None:
    sql = "SELECT country, month FROM sales GROUP BY country, month HAVING count(*) > 100"
    with pytest.raises(KeyholeError, match="KH210"):
        asked(sql, catalog=replace(retail(), max_keys=51))
    assert asked(sql, catalog=replace(retail(), max_keys=52)).keys.size == 52
    many = " OR ".join(f"count(*) = {i}" for i in range(100, 200))
    with pytest.raises(KeyholeError, match="KH211"):
        asked(f"SELECT ward FROM visits GROUP BY ward HAVING {many}")


def test_bounding_follows_the_table() -> None:
    def first(table: str, having: str) -> Functional:
        return asked(f"SELECT country FROM {table} GROUP BY country HAVING {having}").functionals[0]

    assert (first("sales", "count(*) > 100").sensitivity, first("sales", "count(*) > 100").unit_range) == (
        100,
        (0, 100),
    )
    assert first("capped_sales", "count(*) > 100").sensitivity == 5
    assert first("capped_sales", "sum(amount) > 100").sensitivity == 5 * 50_000
    average = first("sales", "avg(quantity) > 90")
    assert average.unit_range == (100 * -90, 10 * (100 - 90)), "ten rows of 100 are what a unit may have"
    assert average.sensitivity == 100 * 90
    for threshold in (-2, 0.3, 7):
        exact = first("sales", f"avg(amount) > {threshold}") if threshold else None
        assert exact is not None
        assert exact.unit_range is not None
        ratio = Fraction(str(threshold)) * 100
        within = [
            ratio.denominator * total - ratio.numerator * rows
            for rows in range(101)
            for total in (max(-100_000, rows * -50_000), min(150_000, rows * 50_000))
        ]
        assert exact.unit_range == (min(within), max(within)), "units within all their bounds are never clipped"
