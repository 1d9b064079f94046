"""Variances as sums of squares around centres: sensitivities by brute force, hints that work, no more than it needs."""

import itertools
import random
import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.formula import Formula, Integers, evaluate_formula, list_literals, relax_formula
from planner.errors import KeyholeError
from planner.functionals.row_range import find_row_range
from planner.functionals.sensitivity import find_exposures
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.question.condition import evaluate
from planner.question.question import Functional, Question
from tests.planner.asked import asked
from tests.worlds.retail import RETAIL

WARDS = "SELECT ward FROM visits GROUP BY ward HAVING "
FORMULAS = (
    "stddev_pop(age) > {t}",
    "var_pop(age) < {t} * {t}",
    "stddev(age) > {t} AND count(age) >= 10",
    "stddev_pop(age) FILTER (WHERE insured) > {t} AND count(*) > 100",
    "stddev_pop(age) FILTER (WHERE age < 60) > {t} OR avg(age) > 70",
    "stddev_pop(age) > {t} OR stddev_pop(age) FILTER (WHERE NOT insured) > {t}",
    "stddev_pop(age) < {t} OR sum(age) FILTER (WHERE insured) > 4000",
    "var_samp(2 * age - 3) <= 4 * {t} * {t} AND count(age) >= 10",
)


def drawn(random_: random.Random) -> Question:
    formula = random_.choice(FORMULAS).format(t=random_.choice([9, 12.5, 20, 31.75, 44]))
    return asked(WARDS + formula, tolerance="count=20, avg=4, sum=300, 60%", min_rows="100")


def added(functional: Functional, row: Mapping[str, int | bool | None]) -> int:
    found = 0
    for term in functional.terms:
        value = 1 if term.column is None else row[term.column]
        if value is not None and evaluate(term.condition, row) is True:
            found += term.coefficient * int(value) ** term.power
    return found


def holds(formula: Formula, sums: Integers) -> bool:
    return bool(evaluate_formula(formula, lambda cut: cut.evaluate(sums[cut.functional]), keys=1)[0])


ROWS = [{"age": age, "insured": insured} for age in (None, *range(111)) for insured in (None, True, False)]


@pytest.mark.parametrize("seed", range(12))
def test_no_row_changes_more_than_sensitivity_and_exposures_say(seed: int) -> None:
    """All rows that there can be, under twenty random ways to spend; a false alarm is impossible."""
    random_ = random.Random(seed)
    question = drawn(random_)
    changes = [[abs(added(functional, row)) for functional in question.functionals] for row in ROWS]
    parts = find_exposures(question)
    for index, functional in enumerate(question.functionals):
        assert max(change[index] for change in changes) == functional.sensitivity
        assert max(exposure[index] for exposure in parts) == 1
    for _ in range(20):
        spent = [Fraction(random_.randint(0, 9)) for _ in question.functionals]
        most = max(sum(e * part for e, part in zip(spent, exposure, strict=True)) for exposure in parts)
        for change in set(map(tuple, changes)):
            lost = sum(
                e * Fraction(moved, functional.sensitivity)
                for e, moved, functional in zip(spent, change, question.functionals, strict=True)
            )
            assert lost <= most


@pytest.mark.parametrize("threshold", ["8.75", "9", "8", "5"])
@pytest.mark.parametrize("variance", ["var_pop", "var_samp"])
def test_no_group_at_the_ends_of_the_range_is_missed(variance: str, threshold: str) -> None:
    """Groups of the least and largest value alone, whose squares may add up to the threshold just so."""
    narrow = "FILTER (WHERE age BETWEEN 0 AND 6)"
    having = f"{variance}(age) {narrow} < {threshold} AND count(age) {narrow} >= 50"
    question = asked(WARDS + having, tolerance="count=10, 60%", min_rows="50")
    for low, high in ((1000, 0), (0, 1000), (500, 500), (900, 100), (60, 940), (990, 10)):
        mean = Fraction(6 * high, low + high)
        squares = low * mean**2 + high * (6 - mean) ** 2
        qualifies = squares / (low + high - (variance == "var_samp")) < Decimal(threshold)
        rows = [({"age": 0, "insured": True}, low), ({"age": 6, "insured": True}, high)]
        sums = np.array([[sum(added(f, row) * times for row, times in rows)] for f in question.functionals])
        assert holds(question.formula, sums) or not qualifies


@pytest.mark.parametrize("operator", [">", ">="])
def test_no_group_at_the_ends_of_the_range_is_returned_beyond_the_tolerance(operator: str) -> None:
    """One centre, from which the ends are exactly as far as it reaches: all such groups have the same sum of squares,
    whatever their variance."""
    narrow = "FILTER (WHERE age BETWEEN 0 AND 10)"
    having = f"var_samp(age) {narrow} {operator} 37.5 AND count(age) {narrow} >= 5"
    question = asked(WARDS + having, tolerance="count=0, var_samp=7.5, 10%", min_rows="5")
    relaxed = relax_formula(question.formula)
    for low, high in itertools.product(range(1, 9), repeat=2):
        mean = Fraction(10 * high, low + high)
        squares = low * mean**2 + high * (10 - mean) ** 2
        rows = [({"age": 0, "insured": True}, low), ({"age": 10, "insured": True}, high)]
        sums = np.array([[sum(added(f, row) * times for row, times in rows)] for f in question.functionals])
        assert squares / (low + high - 1) >= 30 or not holds(relaxed, sums), (low, high)


def test_the_range_of_a_quadratic_is_that_of_its_values() -> None:
    """Vertices inside, outside and between whole steps, both signs, with and without rows that have no value."""
    random_ = random.Random(7)
    for _ in range(200):
        (functional,) = asked(WARDS + "avg(age) > 65", tolerance="10").functionals
        one, other = functional.terms
        column = one.column or other.column
        square, slope, constant = (random_.randint(-9, 9) for _ in range(3))
        terms = [
            replace(one, column=column, coefficient=square, power=2),
            replace(one, column=column, coefficient=slope * 7, power=1),
            replace(one, column=column, coefficient=constant * 5, power=0),
        ]
        low = random_.randint(-20, 10)
        high = low + random_.randint(0, 20)
        values = [square * x * x + 7 * slope * x + 5 * constant for x in range(low, high + 1)]
        found = find_row_range(terms, ranges={"age": (low, high)}, table=RETAIL.tables[1])
        assert found == (min(0, *values), max(0, *values))


def test_what_one_row_cannot_change_in_full_costs_less() -> None:
    made = plan_question(asked(WARDS + "stddev_pop(age) > 10", tolerance="30%", min_rows="200"), dialect=POSTGRES)
    separate = sum(test.epsilon for test in made.calibration.tests)
    assert made.worst_case_epsilon < 0.7 * separate


@pytest.mark.parametrize(
    "having",
    ["var_pop(age) > 5", "stddev_pop(cost) < 12", "variance(cost) > 9 AND count(cost) >= 10", "stddev_pop(cost) < 0.5"],
)
def test_too_many_centres_are_refused_with_what_would_do(having: str) -> None:
    """The tolerance of the hint is tried, and where none helps the range of the hint."""
    with pytest.raises(KeyholeError) as refused:
        asked(WARDS + having, tolerance="1%")
    assert refused.value.code == "KH211"
    hint = refused.value.hint or ""
    found = re.search(r"SET keyhole.tolerance = '(.*)';", hint)
    assert found
    narrower = re.search(r"FILTER \(WHERE .*\)", hint)
    if narrower:
        having = re.sub(r"(\w+\(cost\))", rf"\1 {narrower.group()}", having)
    made = asked(WARDS + having, tolerance=found.group(1))
    assert 1 <= len(made.functionals) <= 64


def test_a_wider_tolerance_and_a_narrower_range_need_fewer_centres() -> None:
    def centres(having: str, tolerance: str) -> int:
        return len(asked(WARDS + having, tolerance=tolerance).functionals)

    narrow = "stddev_pop(age) FILTER (WHERE age BETWEEN 20 AND 60) > 10"
    assert centres("stddev_pop(age) > 10", "50%") < centres("stddev_pop(age) > 10", "20%")
    assert centres(narrow, "20%") < centres("stddev_pop(age) > 10", "20%")
    assert centres("stddev_pop(age) < 54", "30%") == 1


def test_where_it_is_settled_nothing_is_spent() -> None:
    for having in ("stddev_pop(age) > 55", "var_pop(age) < 0", "stddev(age) >= 78", "stddev(age) > NULL"):
        made = plan_question(asked(WARDS + having), dialect=POSTGRES)
        assert (made.worst_case_epsilon, made.question.functionals) == (0.0, ())


def test_a_sample_of_one_value_is_no_sample() -> None:
    """A count of one guards the variance over all rows, not the one over a sample; its tolerance leaves two rows."""
    with pytest.raises(KeyholeError, match="fewer than 2 values"):
        asked(WARDS + "stddev(age) > 40 AND count(age) >= 1", tolerance="count=9, 30%", guard="refuse")
    made = asked(WARDS + "stddev(age) > 40 AND count(age) >= 10", tolerance="count=20, 30%")
    (guard,) = (cut for cut in list_literals(made.formula) if made.functionals[cut.functional].name == "count(age)")
    assert guard.cut - guard.tolerance == 1
    made = asked(WARDS + "stddev_pop(age) >= 40 AND count(age) >= 10", tolerance="count=20, 30%")
    (guard,) = (cut for cut in list_literals(made.formula) if made.functionals[cut.functional].name == "count(age)")
    assert guard.cut - guard.tolerance == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("var_pop(age) > 900", "sqrt(var_pop(age)) > 30"),
        ("stddev_pop(age) > 30", "NOT 2 * stddev_pop(age)::numeric <= 60"),
        ("variance(age) > 900 AND count(age) > 20", "30 < sqrt(var_samp(age)) AND count(age) > 20"),
        ("stddev(age) < 30 AND count(age) > 20", "stddev_samp(age) < 30 AND count(age) > 20"),
    ],
)
def test_other_words_are_the_same_question(one: str, other: str) -> None:
    first = plan_question(asked(WARDS + one, tolerance="var_pop=459, variance=459, 30%"), dialect=DUCKDB)
    second = plan_question(asked(WARDS + other, tolerance="30%"), dialect=DUCKDB)
    assert first.fingerprint == second.fingerprint


def test_another_centre_is_another_question() -> None:
    """What is asked depends on the tolerance by the centres alone, and these are part of what makes a question."""
    found = {
        plan_question(asked(WARDS + f"stddev_pop(age) > {t}", tolerance=tolerance), dialect=DUCKDB).fingerprint
        for t in (30, 31)
        for tolerance in ("30%", "40%")
    }
    assert len(found) == 4


def test_totals_of_units_have_variances_too() -> None:
    sql = (
        "SELECT country FROM (SELECT country, month, customer_id, count(*) AS n FROM sales GROUP BY 1, 2, 3) v "
        "GROUP BY country HAVING stddev_pop(n) > 30"
    )
    made = plan_question(asked(sql, tolerance="50%"), dialect=POSTGRES)
    assert all(functional.sensitivity <= 100**2 for functional in made.question.functionals)


def test_a_fine_grid_is_refused_before_integers_overflow() -> None:
    visits = RETAIL.tables[1]
    wide = replace(visits.get_column("cost"), bounds=(Decimal(0), Decimal(10**9)), grid=Decimal("0.01"))
    columns = tuple(wide if column.name == "cost" else column for column in visits.columns)
    catalog = replace(RETAIL, tables=(replace(visits, columns=columns),))
    with pytest.raises(KeyholeError) as refused:
        asked(WARDS + "stddev_pop(cost) > 300000000", tolerance="50%", catalog=catalog)
    assert refused.value.code == "KH208"
    assert "grid" in refused.value.message
