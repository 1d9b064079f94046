"""Formulas of alarms: what they cost, what they refuse, and that what has rung stays."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms.alarm.calibration import AlarmTask, calibrate_alarm
from mechanisms.alarm.run import draw_alarms, look_at_values
from mechanisms.alarm.shapes import Regime
from mechanisms.formula import FALSE, TRUE, AllOf, AnyOf, Cut, Formula, evaluate_formula
from mechanisms.protocol import Exposure, Unachievable
from mechanisms.standing.alarms import calibrate_standing_alarms, can_alarms_decide
from mechanisms.standing.standing_task import StandingTask
from mechanisms.threshold.joint_loss import expose_all_functionals, expose_functional_sets
from tests.in_turn import in_turn
from tests.seeded_noise import SeededNoise

GROWING, COMING = Regime.GROWING, Regime.COMING_AND_GOING


def above(functional: int, cut: int = 400, tolerance: int = 39) -> Cut:
    return Cut(functional, cut, above=True, tolerance=tolerance)


def below(functional: int) -> Cut:
    return Cut(functional, 5, above=False, tolerance=1)


BOTH, EITHER = AllOf((above(0), above(1))), AnyOf((above(0), above(1)))
MIXED = AnyOf((AllOf((above(0, 100, 9), above(1))), above(0, 900, 80)))


def watched(
    formula: Formula,
    *,
    exposures: tuple[Exposure, ...] = expose_all_functionals(2),
    regime: Regime = GROWING,
    looks: int = 24,
    progressive: bool = False,
) -> StandingTask:
    return StandingTask(
        formula=formula,
        sensitivities=(1, 1),
        exposures=exposures,
        regimes=(regime, regime),
        least_values=(0, 0),
        looks=looks,
        fnr=0.05,
        fpr=0.1,
        progressive=progressive,
    )


@pytest.mark.parametrize("formula", [BOTH, EITHER])
def test_two_equal_thresholds_cost_what_halving_a_rate_costs(formula: Formula) -> None:
    """2 ln 2400 for 24 looks, whichever of the rates is halved."""
    found = calibrate_standing_alarms(watched(formula))
    assert found.worst_case_epsilon * 40 == pytest.approx(2 * np.log(2400), abs=1e-9)
    assert 0.05 * (1 - 1e-11) < found.fnr <= 0.05
    assert 0.1 * (1 - 1e-11) < found.fpr <= 0.1


def test_one_threshold_is_its_alarm() -> None:
    """The same loss, and with the same secret digits the same looks at which it rings."""
    found = calibrate_standing_alarms(watched(above(0)))
    alarm = calibrate_alarm(
        AlarmTask(looks=24, cut=400, tolerance=39, sensitivity=1, fnr=0.05, fpr=0.1, regime=GROWING, least_value=0)
    )
    assert found.worst_case_epsilon == alarm.worst_case_epsilon
    state, states = found.draw_state(keys=60, noise=SeededNoise(1)), draw_alarms(keys=60, noise=SeededNoise(1))
    rang = []
    for look in range(1, 25):
        values = np.tile(np.arange(60, dtype=np.int64) * look // 2, (2, 1))
        looked = found.take_look(state, values, look=look, noise=SeededNoise(2))
        state, states = looked.state, look_at_values(alarm, states, values[0], look=look, noise=SeededNoise(2))
        assert looked.alerted.tolist() == [one.rang_at > 0 for one in states]
        rang.append(int(looked.alerted.sum()))
    assert rang[0] == 0 < rang[15] < rang[-1] < 60


def test_what_no_unit_changes_at_once_costs_once_where_values_grow() -> None:
    apart = expose_functional_sets([[0], [1]], functionals=2)
    together, single = (
        calibrate_standing_alarms(watched(EITHER, exposures=one)) for one in (expose_all_functionals(2), apart)
    )
    assert single.worst_case_epsilon == pytest.approx(together.worst_case_epsilon / 2, rel=1e-3)
    coming = [
        calibrate_standing_alarms(watched(EITHER, exposures=one, regime=COMING))
        for one in (expose_all_functionals(2), apart)
    ]
    assert coming[0].worst_case_epsilon == coming[1].worst_case_epsilon > 1.5 * together.worst_case_epsilon


def test_losses_of_parts_are_the_largest_sum_of_their_exposures() -> None:
    half, whole = Fraction(1, 2), Fraction(1)
    found = calibrate_standing_alarms(watched(BOTH, exposures=((whole, half), (half, whole))))
    assert found.worst_case_epsilon * 40 == pytest.approx(1.5 * np.log(2400), rel=1e-3)


def test_thresholds_of_one_functional_have_an_alarm_each() -> None:
    assert calibrate_standing_alarms(watched(MIXED)).literals == (above(0, 100, 9), above(1), above(0, 900, 80))


def test_a_threshold_with_two_tolerances_has_one_alarm_for_the_least() -> None:
    found = calibrate_standing_alarms(watched(AnyOf((AllOf((above(0), above(1))), above(0, 400, 20)))))
    assert found.literals == (above(0, 400, 20), above(1))


def test_a_formula_with_many_literals_keeps_its_rates_over_the_tree() -> None:
    wide = AnyOf(tuple(AllOf((above(0, 10 * n, 9), above(1, 10 * n, 9))) for n in range(1, 9)))
    found = calibrate_standing_alarms(watched(wide))
    assert len(found.ladders) == 16
    assert found.fnr <= 0.05
    assert found.fpr <= 0.1


@pytest.mark.parametrize(("formula", "answer"), [(TRUE, True), (FALSE, False)])
def test_a_constant_formula_is_answered_and_costs_nothing(formula: Formula, answer: bool) -> None:
    found = calibrate_standing_alarms(watched(formula))
    looked = found.take_look(
        found.draw_state(keys=3, noise=SeededNoise(1)), np.zeros((2, 3), dtype=np.int64), look=2, noise=SeededNoise(1)
    )
    assert looked.alerted.tolist() == [answer] * 3
    assert found.compute_spent_losses(looked.state).tolist() == [0.0] * 3
    assert found.worst_case_epsilon == 0.0


@in_turn(
    "task",
    [
        watched(below(0)),
        watched(AllOf((above(0), below(1)))),
        watched(AnyOf((above(0), below(1)))),
        watched(BOTH, regime=COMING),
        watched(MIXED, regime=COMING),
        replace(watched(BOTH), regimes=(GROWING, COMING)),
        replace(watched(BOTH), monotone=False),
    ],
)
def test_what_alarms_do_not_decide_is_refused(task: StandingTask) -> None:
    with pytest.raises(Unachievable, match="AND and OR"):
        calibrate_standing_alarms(task)


def test_rates_that_promise_nothing_are_refused() -> None:
    with pytest.raises(Unachievable, match="promise nothing"):
        calibrate_standing_alarms(replace(watched(BOTH), fnr=0.5, fpr=0.5))


def test_values_that_fall_may_be_joined_by_or() -> None:
    assert can_alarms_decide(AnyOf((above(0), AllOf((above(1),)))), (COMING, COMING))
    assert can_alarms_decide(AnyOf((above(0), AllOf((above(1), above(1, 500))))), (COMING, GROWING))
    assert not can_alarms_decide(AllOf((above(0), above(1))), (COMING, GROWING))


def test_a_literal_out_of_reach_is_named() -> None:
    sharp = AllOf((above(0), Cut(1, 400, above=True, tolerance=0)))
    with pytest.raises(Unachievable) as refused:
        calibrate_standing_alarms(replace(watched(sharp), fnr=1e-200, fpr=1e-200))
    assert refused.value.functional == 1


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("formula", [BOTH, EITHER, MIXED])
def test_a_key_that_is_in_the_answer_stays_and_costs_no_more(formula: Formula, progressive: bool) -> None:
    """The first key never comes near, the second crosses one of both, the others both, ever further."""
    found = calibrate_standing_alarms(watched(formula, progressive=progressive))
    noise, steps = SeededNoise(11), np.array([[0, 30, 30, 60, 90, 200], [0, 0, 30, 60, 90, 200]], dtype=np.int64)
    state = found.draw_state(keys=6, noise=noise)
    assert found.compute_spent_losses(state).tolist() == [0.0] * 6
    before, spent = np.zeros(6, dtype=np.bool_), np.zeros(6)
    for look in (1, 2, 3, 5, 8, 13, 20, 21, 22, 23, 24):
        looked = found.take_look(state, steps * look, look=look, noise=noise)
        assert not np.any(before & ~looked.alerted)
        after = found.compute_spent_losses(looked.state)
        assert np.all(spent <= after)
        assert np.all((after == spent) | ~before)
        state, before, spent = looked.state, looked.alerted, after
    exact = evaluate_formula(formula, lambda cut: cut.evaluate(24 * steps[cut.functional]), keys=6)
    assert before.tolist() == exact.tolist()
    assert np.all(spent <= found.worst_case_epsilon)
    if progressive:
        assert spent[0] < found.worst_case_epsilon
    else:
        assert np.all(spent == found.worst_case_epsilon)


def test_a_look_that_is_repeated_on_the_same_state_is_the_same_look() -> None:
    found = calibrate_standing_alarms(watched(BOTH))
    drawn = found.draw_state(keys=50, noise=SeededNoise(5))
    values = np.tile(np.arange(370, 420, dtype=np.int64), (2, 1))
    first, again = (found.take_look(drawn, values, look=3, noise=SeededNoise(seed)) for seed in (1, 2))
    assert first.state == again.state
    assert first.alerted.tolist() == again.alerted.tolist()
    assert 0 < first.alerted.sum() < 50


def test_looks_out_of_order_and_values_of_others_are_refused() -> None:
    found = calibrate_standing_alarms(watched(BOTH))
    values = np.zeros((2, 3), dtype=np.int64)
    state = found.take_look(found.draw_state(keys=3, noise=SeededNoise(1)), values, look=4, noise=SeededNoise(1)).state
    for look in (0, 3, 4, 25):
        with pytest.raises(ValueError, match="order"):
            found.take_look(state, values, look=look, noise=SeededNoise(1))
    for wrong in (values[:1], values[:, :2]):
        with pytest.raises(ValueError, match="functional"):
            found.take_look(state, wrong, look=5, noise=SeededNoise(1))


@in_turn(
    "wrong",
    [
        {"looks": 0},
        {"looks": 10**6},
        {"sensitivities": (0, 1)},
        {"least_values": (0,)},
        {"exposures": expose_all_functionals(3)},
        {"fnr": 0.0},
        {"formula": above(2)},
        {"formula": above(0, 4, -1)},
    ],
)
def test_tasks_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"standing question|error rates|literal"):
        replace(watched(BOTH), **wrong)
