"""When a plan gives up noise on blocks, so that other thresholds can share what it leaves."""

from dataclasses import replace

import pytest

from mechanisms.formula import AllOf, AnyOf
from mechanisms.keyhole.progressive import Progressive
from mechanisms.protocol import Calibration, DecisionTask, Foreseen
from planner.explain.render import explain_text
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan import build, calibrate
from planner.plan.build import plan
from planner.plan.shareable_noise import MOST_FOR_SHARING
from planner.question.model import Accuracy, Question
from planner.question.plan import Plan
from tests.worlds.questions import ACCURACY, ROWS, above, average, question, total

APART = replace(ACCURACY, reuse=False)
PROGRESSIVE = replace(ACCURACY, mechanism="progressive")


def sum_above(tolerance: int, *, accuracy: Accuracy = ACCURACY, refresh: str = "static") -> Question:
    """One threshold on a sum that one row can change by 100."""
    table = replace(ROWS, refresh=refresh)
    return question(above(0, 5000, tolerance), total(table=table), table=table, accuracy=accuracy)


def in_blocks(made: Plan) -> list[bool]:
    return [test.block > 1 for test in made.calibration.tests]


@pytest.mark.parametrize("mechanism", ["keyhole", "progressive"])
@pytest.mark.parametrize("tolerance", [0, 30, 60, 95, 99, 100, 130, 150, 199, 200, 250, 301, 1000])
def test_a_question_never_costs_more_than_the_factor(tolerance: int, mechanism: str) -> None:
    """And is told what it would cost in blocks, which is what it costs where nothing is shared."""
    shared, apart = (
        plan(sum_above(tolerance, accuracy=replace(one, mechanism=mechanism)), dialect=DUCKDB)
        for one in (ACCURACY, APART)
    )
    assert apart.sharing is None
    if shared.sharing is None:
        assert shared.calibration == apart.calibration
        return
    assert in_blocks(apart) == [True]
    assert in_blocks(shared) == [False]
    assert shared.sharing.functionals == {0}
    assert shared.sharing.epsilon_in_blocks == apart.worst_case_epsilon
    assert apart.worst_case_epsilon < shared.worst_case_epsilon <= MOST_FOR_SHARING * apart.worst_case_epsilon


@pytest.mark.parametrize("mechanism", ["keyhole", "progressive"])
def test_blocks_go_where_the_tolerance_is_twice_the_sensitivity_and_stay_below_a_half(mechanism: str) -> None:
    wanted = replace(ACCURACY, mechanism=mechanism)
    assert in_blocks(plan(sum_above(250, accuracy=wanted), dialect=DUCKDB)) == [False]
    assert in_blocks(plan(sum_above(50, accuracy=wanted), dialect=DUCKDB)) == [True]


@pytest.mark.parametrize("refresh", ["hourly", "explicit", "daily 02:00"])
def test_other_data_versions_that_last_are_shared_too(refresh: str) -> None:
    assert plan(sum_above(250, refresh=refresh), dialect=DUCKDB).sharing is not None


def test_what_nobody_can_read_again_keeps_its_blocks() -> None:
    live = plan(sum_above(250, refresh="live"), dialect=DUCKDB)
    assert (in_blocks(live), live.sharing) == ([True], None)


def test_each_functional_is_weighed_by_itself() -> None:
    """The mean's tolerance is far below what a row changes, so that its blocks stay; the sum's go."""
    made = plan(question(AllOf((above(0, 5000, 250), above(1, 0, 3))), total(), average(65)), dialect=DUCKDB)
    assert made.sharing is not None
    place = next(i for i, one in enumerate(made.question.functionals) if one.name == "sum(amount)")
    assert made.sharing.functionals == {place}
    assert in_blocks(made)[place] is False
    assert in_blocks(made)[1 - place] is True
    assert made.calibration.task.blocks == frozenset({1 - place})


def test_sharing_is_no_part_of_what_a_question_is() -> None:
    """A released answer serves both, for nothing."""
    shared, apart = (plan(sum_above(250, accuracy=one), dialect=DUCKDB) for one in (ACCURACY, APART))
    assert shared.fingerprint == apart.fingerprint


def test_explain_says_so_and_what_it_costs_otherwise() -> None:
    text = "\n".join(explain_text(plan(sum_above(250), dialect=DUCKDB), left=None))
    assert "noise on the sum, so that other thresholds can share it" in text
    assert "with keyhole.reuse = off" in text
    assert "one threshold alone" not in text
    apart = "\n".join(explain_text(plan(sum_above(250, accuracy=APART), dialect=DUCKDB), left=None))
    assert "noise on blocks of 100 steps" in apart
    assert "share it" not in apart


@pytest.mark.parametrize("both", [AllOf, AnyOf])
@pytest.mark.parametrize("tolerance", [(20, 3), (130, 3), (150, 40), (199, 60), (205, 130), (250, 140), (1000, 300)])
def test_bounds_decide_as_the_calibrations_would(
    tolerance: tuple[int, int], both: type[AllOf | AnyOf], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal calibrations, and the same is told of what was given up, whether or not blocks were calibrated."""
    formula = both((above(0, 5000, tolerance[0]), above(1, 0, tolerance[1])))
    asked = question(formula, total(), average(65), accuracy=PROGRESSIVE)
    foreseen = plan(asked, dialect=DUCKDB)
    build._plan.cache_clear()
    monkeypatch.setattr(calibrate, "shareable_foreseen", lambda *_: None)
    calibrated = plan(asked, dialect=DUCKDB)
    assert (foreseen.calibration, foreseen.sharing) == (calibrated.calibration, calibrated.sharing)


def test_blocks_that_are_surely_given_up_are_not_calibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("calibrated in blocks")

    monkeypatch.setattr(Progressive, "calibrate_foreseen", refuse)
    assert plan(sum_above(257, accuracy=PROGRESSIVE), dialect=DUCKDB).sharing is not None


def test_what_was_calibrated_to_foresee_the_choice_is_not_calibrated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the bounds tell which blocks would go, and only the cheapest calibration whether that is worth it."""
    calibrated: list[DecisionTask] = []
    foresee, calibrate_task = Progressive.foresee, Progressive.calibrate

    def see_no_epsilon(self: Progressive, task: DecisionTask) -> Foreseen | None:
        found = foresee(self, task)
        return None if found is None else replace(found, least_epsilon=0.0)

    def note(self: Progressive, task: DecisionTask) -> Calibration:
        calibrated.append(task)
        return calibrate_task(self, task)

    monkeypatch.setattr(Progressive, "foresee", see_no_epsilon)
    monkeypatch.setattr(Progressive, "calibrate", note)
    made = plan(sum_above(259, accuracy=PROGRESSIVE), dialect=DUCKDB)
    assert made.sharing is not None
    assert len(calibrated) == 1
