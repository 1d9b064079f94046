"""How many groups can come wrongly: upper bounds, held against what the mechanisms do."""

import re

import numpy as np
import pytest
from scipy.stats import binom

from mechanisms.registry import MECHANISMS
from planner.explain.guarantee import write_guarantee_json
from planner.explain.render import explain_text
from planner.explain.rounded_numbers import write_share
from planner.explain.wrong_groups import count_wrong_groups, round_up
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.question.plan import Plan
from tests.effort import rounds
from tests.planner.asked import asked
from tests.seeded_noise import SeededNoise

GROUPS = rounds(40_000, quick=8_000)
FALSE_ALARM = 1e-9


def told_chances(made: Plan) -> list[str]:
    return [one for one in made.warnings if "a probability of up to" in one]


def planned(formula: str, *, mechanism: str = "keyhole", tolerance: str = "10%") -> Plan:
    sql = f"SELECT ward, day FROM visits GROUP BY ward, day HAVING {formula}"
    return plan_question(asked(sql, mechanism=mechanism, tolerance=tolerance), dialect=POSTGRES)


def returned(made: Plan, values: list[int], seed: int) -> float:
    """The share of groups with these values that come."""
    sums = np.array([[value] * GROUPS for value in values], dtype=np.int64)
    outcome = MECHANISMS[made.calibration.mechanism].decide(made.calibration, sums, noise=SeededNoise(seed))
    return float(np.mean(outcome.passed))


@pytest.mark.parametrize("mechanism", ["keyhole", "progressive"])
@pytest.mark.parametrize("formula", ["count(*) > 200", "count(*) > 200 AND count(DISTINCT age) > 40"])
def test_groups_twice_as_far_come_no_more_often_than_is_said(mechanism: str, formula: str) -> None:
    """40,000 groups, 8,000 at quick; a false alarm has a probability of 1e-9."""
    made = planned(formula, mechanism=mechanism)
    told = count_wrong_groups(made)
    assert told is not None
    assert told.far is not None
    assert told.near == pytest.approx(0.1 * 30)
    assert told.far < told.near / 2
    values = [160 if functional.name == "count(*)" else 32 for functional in made.question.functionals]
    most = binom.isf(FALSE_ALARM, GROUPS, told.far / told.keys) / GROUPS
    assert returned(made, values, 5) <= most


@pytest.mark.parametrize("mechanism", ["keyhole", "progressive"])
@pytest.mark.parametrize(
    ("formula", "tolerance"),
    [("avg(age) > 60", "10%"), ("count(*) > 3", "count=5"), ("count(*) <= 3 OR avg(age) > 60", "10%")],
)
def test_a_group_without_rows_comes_no_more_often_than_the_warning_says(
    mechanism: str, formula: str, tolerance: str
) -> None:
    """40,000 groups, 8,000 at quick; a false alarm has a probability of 1e-9. They may qualify, too."""
    made = planned(formula, mechanism=mechanism, tolerance=tolerance)
    warnings = told_chances(made)
    if formula.startswith("count(*) <="):
        assert not warnings
        return
    (warning,) = warnings
    assert warning in made.warnings
    chance = float(warning.partition("a probability of up to ")[2].partition(",")[0])
    assert returned(made, [0], 6) <= (1 if chance >= 1 else binom.isf(FALSE_ALARM, GROUPS, chance) / GROUPS)


@pytest.mark.parametrize("formula", ["count(*) > 200", "count(age) >= 50 AND avg(age) > 60", "count(*) < 20"])
def test_nothing_is_warned_of_where_groups_without_rows_fail_or_qualify(formula: str) -> None:
    made = planned(formula)
    assert not told_chances(made)
    assert not any("without any rows" in warning for warning in made.warnings)


def test_explain_and_json_say_how_many() -> None:
    made = planned("count(*) > 200")
    lines = [line for line in explain_text(made, left=None) if line.startswith("  Wrong groups: ")]
    assert lines[0].startswith("  Wrong groups: up to 3 among 30 on average, if all were just beyond the slack, 0.0")
    assert write_guarantee_json(made)["wrong_groups_at_most"] == 3.0
    assert count_wrong_groups(planned("count(*) >= 0")) is None


def test_numbers_of_groups_are_never_rounded_down() -> None:
    assert [round_up(number) for number in (0.0, 0.0611, 0.5, 9.99, 10.0, 10.2, 6850.9)] == [
        "0",
        "0.062",
        "0.5",
        "10",
        "10",
        "11",
        "6,851",
    ]


def test_a_share_is_never_shown_above_what_is_promised() -> None:
    assert write_share(0.05000001, of=0.05) == "5.00 %"
    assert write_share(0.0500000001, of=0.5) == "5.00 %"
    assert write_share(0.02512, of=0.05) == "2.52 %"
    assert write_share(0.00001, of=0.00001) == "0.00100 %"


def shown(items: str, *, tolerance: str = "10%", more: str = "") -> Plan:
    sql = f"SELECT ward, day, {items} FROM visits GROUP BY ward, day {more}"
    return plan_question(asked(sql, tolerance=tolerance), dialect=POSTGRES)


def test_each_predicate_has_its_own_warnings_by_its_name() -> None:
    made = shown("avg(age) > 60 AS old, count(*) > 200 AS busy, NOT count(*) > 300 AS calm, count(*) <= 90")
    told = [one for one in made.warnings if "without" in one]
    old, others, rows = told
    assert rows.startswith("every value of")
    assert re.fullmatch(
        r"old: groups without rows lie within the tolerance and may be shown as true, each with a probability of up to "
        r"0\.\d+, up to \S+ of \S+ groups if all are empty; HAVING count\(age\) >= \d+ keeps them out",
        old,
    )
    assert others == "calm, predicate 4: groups without rows count as 0, and are true"
    assert not any(one.startswith("busy") for one in made.warnings)


def test_a_predicate_of_empty_groups_is_true_no_more_often_than_the_warning_says() -> None:
    """40,000 groups, 8,000 at quick; a false alarm has a probability of 1e-9."""
    made = shown("count(*) > 3 AS some, count(*) > 200 AS busy", tolerance="count=5")
    (warning,) = told_chances(made)
    assert warning.startswith("some: ")
    chance = float(warning.partition("a probability of up to ")[2].partition(",")[0])
    zeros = np.zeros((1, GROUPS), dtype=np.int64)
    outcome = MECHANISMS[made.calibration.mechanism].decide(made.calibration, zeros, noise=SeededNoise(7))
    most = 1 if chance >= 1 else binom.isf(FALSE_ALARM, GROUPS, chance) / GROUPS
    assert float(np.mean(outcome.predicates[0])) <= most


def test_a_guard_in_having_ends_the_warning_of_a_mean_as_it_says() -> None:
    """What is dragged is a predicate of a mean, which has no place for AND."""
    unguarded = shown("avg(age) > 60 AS old, avg(age) > 80 AS older")
    (hint,) = {one.partition("; ")[2].removesuffix(" keeps them out") for one in told_chances(unguarded)}
    assert hint.startswith("HAVING count(age) >= ")
    guarded = shown("avg(age) > 60 AS old, avg(age) > 80 AS older", more=hint)
    assert not [one for one in guarded.warnings if "without" in one]
    weak = shown("avg(age) > 60 AS old", tolerance="avg(age)=6, count=5", more="HAVING count(age) > 3")
    assert [one for one in weak.warnings if re.search(r"AND count\(age\) >= \d+ in HAVING keeps", one)]


def test_a_predicate_that_no_data_decide_is_said_to_be_one() -> None:
    made = shown("count(*) > 200 OR count(*) <= 300 AS either, count(*) > 300 AND count(*) <= 200, count(*) > 200")
    assert [one for one in made.warnings if "whatever" in one] == [
        "either is true for every group whatever the data: nothing is read or spent for it",
        "predicate 2 is false for every group whatever the data: nothing is read or spent for it",
    ]
