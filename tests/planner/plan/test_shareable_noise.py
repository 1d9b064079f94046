"""When a plan gives up noise on blocks, so that other thresholds can share what it leaves."""

import math
from dataclasses import replace

import pytest

from mechanisms.formula import AllOf
from planner.explain.render import explain_text
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.question.plan import Plan
from planner.question.question import Accuracy, Question
from tests.worlds.questions import ACCURACY, ROWS, above, average, question, total

APART = replace(ACCURACY, allows_reuse=False)


def sum_above(tolerance: int, *, accuracy: Accuracy = ACCURACY, refresh: str = "static") -> Question:
    """One threshold on a sum that one row can change by 100."""
    table = replace(ROWS, refresh=refresh)
    return question(above(0, 5000, tolerance), total(table=table), table=table, accuracy=accuracy)


def in_blocks(made: Plan) -> list[bool]:
    return [test.block > 1 for test in made.calibration.tests]


@pytest.mark.parametrize("mechanism", ["keyhole", "progressive"])
def test_a_wider_tolerance_never_costs_more_with_noise_to_share_or_without(mechanism: str) -> None:
    """One row changes the sum by 100. What blocks would cost is told, and what a question without sharing costs."""
    before = {True: math.inf, False: math.inf}
    for tolerance in (0, 30, 60, 95, 99, 100, 130, 150, 199, 200, 201, 206, 250, 299, 301, 1000):
        shared, apart = (
            plan_question(sum_above(tolerance, accuracy=replace(one, mechanism=mechanism)), dialect=DUCKDB)
            for one in (ACCURACY, APART)
        )
        assert apart.sharing is None
        for made in (shared, apart):
            reuse = made.asked_question.accuracy.allows_reuse
            assert made.worst_case_epsilon <= before[reuse]
            before[reuse] = made.worst_case_epsilon
        if tolerance < 2 * 100:
            assert in_blocks(shared) == [True]
            assert shared.calibration.tests == apart.calibration.tests
        if shared.sharing is not None:
            assert in_blocks(shared) == [False]
            assert shared.sharing.functionals == {0}
            assert shared.sharing.epsilon_in_blocks == apart.worst_case_epsilon
            assert apart.worst_case_epsilon < shared.worst_case_epsilon <= 1.6 * apart.worst_case_epsilon


@pytest.mark.parametrize("mechanism", ["keyhole", "progressive"])
def test_blocks_go_where_the_tolerance_is_over_twice_the_sensitivity_and_stay_below(mechanism: str) -> None:
    wanted = replace(ACCURACY, mechanism=mechanism)
    assert in_blocks(plan_question(sum_above(250, accuracy=wanted), dialect=DUCKDB)) == [False]
    assert in_blocks(plan_question(sum_above(199, accuracy=wanted), dialect=DUCKDB)) == [True]


@pytest.mark.parametrize("refresh", ["hourly", "explicit", "daily 02:00"])
def test_other_data_versions_that_last_are_shared_too(refresh: str) -> None:
    assert plan_question(sum_above(250, refresh=refresh), dialect=DUCKDB).sharing is not None


def test_what_nobody_can_read_again_keeps_its_blocks() -> None:
    live = plan_question(sum_above(250, refresh="live"), dialect=DUCKDB)
    assert (in_blocks(live), live.sharing) == ([True], None)


def test_each_functional_is_weighed_by_itself() -> None:
    """The mean's tolerance is far below what a row changes, so that its blocks stay; the sum's go."""
    made = plan_question(question(AllOf((above(0, 5000, 250), above(1, 0, 3))), total(), average(65)), dialect=DUCKDB)
    assert made.sharing is not None
    place = next(i for i, one in enumerate(made.question.functionals) if one.name == "sum(amount)")
    assert made.sharing.functionals == {place}
    assert in_blocks(made)[place] is False
    assert in_blocks(made)[1 - place] is True


def test_sharing_is_no_part_of_what_a_question_is() -> None:
    """A released answer serves both, for nothing."""
    shared, apart = (plan_question(sum_above(250, accuracy=one), dialect=DUCKDB) for one in (ACCURACY, APART))
    assert shared.fingerprint == apart.fingerprint


def test_explain_says_so_and_what_it_costs_otherwise() -> None:
    text = "\n".join(explain_text(plan_question(sum_above(250), dialect=DUCKDB), left=None))
    assert "noise on the sum, so that other thresholds can share it" in text
    assert "with keyhole.reuse = off" in text
    assert "one threshold alone" not in text
    apart = "\n".join(explain_text(plan_question(sum_above(250, accuracy=APART), dialect=DUCKDB), left=None))
    assert "noise on blocks of 100 steps" in apart
    assert "share it" not in apart
