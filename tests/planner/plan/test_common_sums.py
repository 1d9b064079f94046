"""Questions about one mean or share with several thresholds: what is read off common sums, and when."""

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from mechanisms.formula import AllOf, AnyOf
from mechanisms.keyhole.common_sums import read_functionals
from mechanisms.threshold.joint_loss import list_sum_rates
from planner.explain.document import explain_json
from planner.explain.render import explain_text
from planner.functionals.common_sums import find_common_sums
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.plan.question_identity import identify_paths
from planner.question.condition import evaluate
from planner.question.plan import APART, Plan
from planner.question.question import Functional, Question
from tests.effort import rounds
from tests.planner.asked import asked
from tests.worlds.questions import ACCURACY, CAPPED, CLIPPED, above, average, below, count, question

GUARDED = "count(cost) >= 300 AND"


def mean_question(*thresholds: float, mechanism: str = "progressive", tolerance: str = "10%") -> Question:
    """Costs whose mean is none of the ranges between neighbouring thresholds, typed in SQL."""
    low, high = thresholds
    having = f"{GUARDED} (avg(cost) > {high} OR avg(cost) < {low})"
    return asked(
        f"SELECT ward FROM visits GROUP BY ward HAVING {having}",
        mechanism=mechanism,
        tolerance=tolerance,
        min_rows="300",
    )


@pytest.mark.parametrize("mechanism", ["keyhole", "progressive"])
def test_two_thresholds_of_a_mean_and_its_count_are_read_off_two_sums(mechanism: str) -> None:
    made = plan_question(mean_question(800, 1000.5, mechanism=mechanism), dialect=DUCKDB)
    assert len(made.question.functionals) == 3
    assert len(made.question.common) == 2
    assert made.question.computed_functionals == made.question.common
    assert made.worst_case_epsilon < 0.9 * made.calibration.compared[APART]
    common = made.calibration.task.common
    assert common is not None
    assert sorted(map(len, common.readings)) == [1, 2, 2]
    assert " AS f1" in made.rewritten.sql
    assert " AS f2" not in made.rewritten.sql


@pytest.mark.parametrize(
    "having",
    [
        "count(cost) >= 300 AND avg(cost) BETWEEN 800.5 AND 1000",
        "count(cost) >= 300 AND (avg(cost) < 800 OR avg(cost) > 1200.25 AND avg(age) > 30)",
        "count(*) > 300 AND 1.0 * count(*) FILTER (WHERE age > 60) / count(*) BETWEEN 0.5 AND 0.72",
        "count(cost) >= 300 AND avg(cost - 2 * age) > 0 AND avg(cost - 2 * age) < 500",
    ],
)
def test_functionals_are_what_the_sums_say_for_any_rows(having: str) -> None:
    """40 groups of up to 30 rows each (quick: 10), of values within the bounds, exact integers on both sides."""
    random_ = Random(12)
    made = asked(f"SELECT ward FROM visits GROUP BY ward HAVING {having}", min_rows="300", tolerance="10%, avg=5")
    found = find_common_sums(made)
    assert found is not None
    for _ in range(rounds(40, quick=10)):
        rows = [
            {name: random_.randint(0, 100) for name in ("cost", "age") if random_.random() < 0.8}
            for _ in range(random_.randint(0, 30))
        ]
        given = [{"cost": None, "age": None} | row for row in rows]
        values, sums = (
            np.array([[sum(_added(one, row) for row in given)] for one in functionals], dtype=np.int64)
            for functionals in (made.functionals, found.sums)
        )
        assert np.array_equal(read_functionals(found.common, sums), values)


def _added(functional: Functional, row: dict[str, int | None]) -> int:
    """What a row adds, its values in whole steps of each column's grid."""
    total = 0
    for term in functional.terms:
        value = 1 if term.column is None else row[term.column]
        if value is not None and evaluate(term.condition, row):
            total += term.coefficient * value**term.power
    return total


@pytest.mark.parametrize("mechanism", ["keyhole", "progressive"])
@pytest.mark.parametrize(("low", "high"), [(48, 52), (20, 30), (0, 3)])
def test_no_row_loses_more_than_the_plan_says(mechanism: str, low: int, high: int) -> None:
    """Every row from 0 to 100 moves the sums; the worst of them costs the worst case."""
    wanted = replace(ACCURACY, mechanism=mechanism)
    formula = AllOf((AnyOf((above(0, 0, 300), below(1, 0, 300))), above(2, 300, 100)))
    made = plan_question(question(formula, average(high), average(low), count(), accuracy=wanted), dialect=DUCKDB)
    assert made.question.common
    losses = []
    for value in range(101):
        loss = Fraction(0)
        for one, rate in zip(made.question.common, list_sum_rates(made.calibration), strict=True):
            change = sum(term.coefficient * (value if term.power else 1) for term in one.terms)
            assert abs(change) <= one.sensitivity
            loss += rate * abs(change)
        losses.append(loss)
    assert max(losses) <= Fraction(made.worst_case_epsilon)
    if low:  # a middle of 1.5 is between whole steps, and a row of 0 or 100 is not the worst one
        assert float(max(losses)) == pytest.approx(made.worst_case_epsilon, rel=1e-9)


@pytest.mark.parametrize("table", [CLIPPED, CAPPED])
def test_units_of_several_rows_are_bounded_sum_by_sum(table: object) -> None:
    """A unit of 20 rows, clipped, or of five, chosen, moves both sums by all of its rows."""
    assert table in (CLIPPED, CAPPED)
    bounded = CLIPPED if table is CLIPPED else CAPPED
    rows = 20 if table is CLIPPED else 5
    means = [replace(average(at), sensitivity=100 * rows) for at in (40, 60)]
    if table is CLIPPED:
        means = [
            replace(one, unit_range=(-at * rows, (100 - at) * rows)) for one, at in zip(means, (40, 60), strict=True)
        ]
    formula = AnyOf((above(1, 0, 2000), below(0, 0, 2000)))
    made = plan_question(replace(question(formula, *means), table=bounded), dialect=DUCKDB)
    total, counted = made.question.common
    assert (total.sensitivity, counted.sensitivity) == (50 * rows, rows)
    assert counted.unit_range == ((0, rows) if table is CLIPPED else None)
    rates = list_sum_rates(made.calibration)
    assert Fraction(made.worst_case_epsilon) >= rates[0] * 50 * rows + rates[1] * rows


def test_it_is_another_question_than_with_noise_apart_and_leaves_no_noise() -> None:
    made = plan_question(mean_question(800, 1000), dialect=DUCKDB)
    apart = replace(made.question, common=())
    assert identify_paths(made.question, digest="digest") == (None,) * 3
    assert None not in identify_paths(apart, digest="digest")
    assert made.fingerprint == plan_question(mean_question(800, 1000), dialect=DUCKDB).fingerprint


@pytest.mark.parametrize(
    "having",
    [
        "avg(cost) > 1000",
        "avg(cost) > 1000 OR avg(age) < 20",
        "count(cost) >= 300 AND (avg(cost) > 4900 OR avg(cost) < 100)",  # so far apart that the count costs too much
        "count(*) > 300 AND count(*) < 900",
    ],
)
def test_what_gains_nothing_keeps_noise_of_its_own(having: str) -> None:
    made = plan_question(asked(f"SELECT ward FROM visits GROUP BY ward HAVING {having}"), dialect=DUCKDB)
    assert made.question.common == ()
    assert made.calibration.task.common is None


def test_published_mechanisms_test_every_threshold_by_itself() -> None:
    made = plan_question(mean_question(800, 1000, mechanism="tslm"), dialect=DUCKDB)
    assert made.question.common == ()


def test_explain_shows_both_sums_and_what_they_save() -> None:
    made: Plan = plan_question(mean_question(800, 1000), dialect=DUCKDB)
    text = "\n".join(explain_text(made, left=None))
    assert "read off the sums of" in text
    assert "the sum of avg(cost) less 900 for each of its rows; epsilon" in text
    assert "Noise of A, B, C: the count of avg(cost); epsilon" in text
    assert "each threshold on noise of its own" in text
    document = explain_json(made, left=None)
    assert document["apart_epsilon"] > document["worst_case_epsilon"]
    assert [len(one["read_by"]) for one in document["common_sums"]] == [2, 3]
    assert sum(one["epsilon"] for one in document["common_sums"]) == pytest.approx(document["separate_sums_epsilon"])


def test_bands_of_a_mean_share_two_sums() -> None:
    """Three thresholds for little more than what one of them costs."""
    bands, one = (
        plan_question(
            asked(f"SELECT ward, {shown} FROM visits GROUP BY ward HAVING count(cost) >= 300", min_rows="300"),
            dialect=DUCKDB,
        )
        for shown in ("avg(cost) > 900 AS a, avg(cost) > 950 AS b, avg(cost) > 1000 AS c", "avg(cost) > 950")
    )
    assert len(bands.question.common) == 2
    assert bands.worst_case_epsilon < 1.6 * one.worst_case_epsilon
    assert bands.worst_case_epsilon < 0.5 * bands.calibration.compared[APART]
