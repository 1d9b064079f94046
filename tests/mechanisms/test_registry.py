"""Every mechanism by name, run on worst-case data, and the baselines it is compared with."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from mechanisms.formula import FALSE, TRUE, AllOf, AnyOf, Cut, Formula, Integers
from mechanisms.noise.exact import make_system_noise
from mechanisms.protocol import Calibration, DecisionTask, Unachievable
from mechanisms.registry import BOUNDED, DEFAULT, DENYING, MECHANISMS, price_baselines
from mechanisms.threshold.joint_loss import expose_all_functionals
from mechanisms.threshold.one_shot import compute_acceptance, compute_rejection
from tests.effort import cases
from tests.in_turn import in_turn
from tests.seeded_noise import SeededNoise

KEYS = 60_000
FALSE_ALARM = 1e-8


def count(functional: int, cut: int = 100, tolerance: int = 10, above: bool = True) -> Cut:
    return Cut(functional=functional, cut=cut, above=above, tolerance=tolerance)


def task_of(formula: Formula, functionals: int, *, fnr: float = 0.05, fpr: float = 0.1) -> DecisionTask:
    return DecisionTask(
        formula=formula,
        sensitivities=(1,) * functionals,
        exposures=expose_all_functionals(functionals),
        fnr=fnr,
        fpr=fpr,
        most_positives=2,
    )


FORMULAS: dict[str, tuple[Formula, int]] = {
    "one": (count(0), 1),
    "below": (count(0, above=False), 1),
    "both": (AllOf((count(0), count(1))), 2),
    "either": (AnyOf((count(0), count(1, 40, 5, above=False))), 2),
    "interval": (AllOf((count(0, 100, 10), count(0, 103, 10, above=False))), 1),
    "mixed": (
        AnyOf((AllOf((count(0), count(1))), AllOf((count(1), count(2))), AllOf((count(0), count(2))))),
        3,
    ),
}


def at(distances: dict[int, int], functionals: int) -> Integers:
    """Keys all alike; the number is the functional's true value."""
    values = np.zeros((functionals, KEYS), dtype=np.int64)
    for functional, value in distances.items():
        values[functional] = value
    return values


# true values at which missing (or returning) is most probable, per formula
JUST_TRUE = {
    "one": {0: 101},
    "below": {0: 100},
    "both": {0: 101, 1: 101},
    "either": {0: 101, 1: 46},
    "interval": {0: 101},
    "mixed": {0: 101, 1: 101, 2: 90},
}
STILL_FALSE = {
    "one": {0: 90},
    "below": {0: 111},
    "both": {0: 90, 1: 400},
    "either": {0: 90, 1: 46},
    "interval": {0: 90},
    "mixed": {0: 90, 1: 90, 2: 400},
}


def calibrated(name: str, formula: str) -> Calibration:
    return MECHANISMS[name].calibrate(task_of(*FORMULAS[formula]))


ONE_SHOT = frozenset({"keyhole", "tslm", "nlm", "naive", "probe_one_phase"})
NO_BOUND = frozenset({"dppwlm", "probe_ent"})  # as published they promise no rate
SPARSE = frozenset({"svt", "svt_generalised"})  # test_sparse_vector has them: no key stands alone
ON_ANY_FORMULA = tuple(name for name in MECHANISMS if name != "svt")


@in_turn("formula", FORMULAS)
@in_turn("name", ["keyhole", "tslm", "naive", "probe_one_phase"])
def test_false_negatives_at_the_worst_case(name: str, formula: str) -> None:
    """60,000 keys one unit beyond every threshold; false alarm 1e-8 per case, 24 cases."""
    calibration = calibrated(name, formula)
    values = at(JUST_TRUE[formula], FORMULAS[formula][1])
    outcome = MECHANISMS[name].decide(calibration, values, noise=SeededNoise(sum(map(ord, name + formula))))
    missed = int((~outcome.passed).sum())
    assert calibration.fnr is not None
    assert calibration.fnr <= 0.05
    assert stats.binom.sf(missed - 1, KEYS, calibration.fnr) > FALSE_ALARM


@pytest.mark.parametrize(("name", "formula"), cases(sorted(set(MECHANISMS) - NO_BOUND - SPARSE), FORMULAS, quick=21))
def test_false_positives_at_the_worst_case(name: str, formula: str) -> None:
    """60,000 keys where the relaxed formula is only just false; false alarm 1e-8 per case, 54 cases."""
    calibration = calibrated(name, formula)
    values = at(STILL_FALSE[formula], FORMULAS[formula][1])
    outcome = MECHANISMS[name].decide(calibration, values, noise=SeededNoise(sum(map(ord, name + formula)) + 1))
    returned = int(outcome.passed.sum())
    assert calibration.fpr is not None
    assert calibration.fpr <= 0.1
    assert stats.binom.sf(returned - 1, KEYS, calibration.fpr) > FALSE_ALARM
    if name in ONE_SHOT:
        assert (outcome.epsilon == calibration.worst_case_epsilon).all()
    else:
        assert (outcome.epsilon <= calibration.worst_case_epsilon).all()
        assert (outcome.epsilon > 0).all()


def test_the_single_test_uses_all_of_its_contract() -> None:
    """60,000 keys at each critical value: the default's rates are the contract's, not less; false alarm 1e-8 each."""
    calibration = calibrated("keyhole", "one")
    for value, rate in ((101, 0.05), (90, 0.1)):
        passed = MECHANISMS["keyhole"].decide(calibration, at({0: value}, 1), noise=make_system_noise()).passed
        wrong = int((~passed).sum() if value == 101 else passed.sum())
        assert stats.binom.cdf(wrong, KEYS, rate) > FALSE_ALARM
        assert stats.binom.sf(wrong - 1, KEYS, rate) > FALSE_ALARM


def test_nlm_misses_half_near_a_threshold_and_says_so() -> None:
    calibration = calibrated("nlm", "one")
    assert calibration.fnr is None
    assert any("Missed groups" in note for note in calibration.notes)
    assert compute_rejection(calibration.tests[0], 1) > 0.3
    assert compute_rejection(calibration.tests[0], 11) <= 0.05


def test_thresholds_on_one_value_keep_their_order() -> None:
    """S > 100 and not S > 103 on shared noise: no key is ever accepted above the higher cut and not above the lower."""
    low, high = count(0, 100, 1), count(0, 103, 1)
    task = task_of(AllOf((high, AnyOf((low,)))), 1)
    calibration = MECHANISMS["keyhole"].calibrate(task)
    values = np.random.default_rng(1).integers(90, 115, size=(1, 50_000))
    answers = [
        MECHANISMS["keyhole"].decide(
            replace(calibration, task=replace(task, formula=cut)), values, noise=SeededNoise(8)
        )
        for cut in (low, high)
    ]
    assert not (answers[1].passed & ~answers[0].passed).any()
    assert (answers[0].passed & ~answers[1].passed).any()


@in_turn("name", MECHANISMS)
def test_constants_draw_nothing_and_cost_nothing(name: str) -> None:
    for formula, expected in ((TRUE, True), (FALSE, False)):
        calibration = MECHANISMS[name].calibrate(task_of(formula, 2))
        outcome = MECHANISMS[name].decide(calibration, np.zeros((2, 7), dtype=np.int64), noise=SeededNoise(0))
        assert (outcome.passed == expected).all()
        assert outcome.passed.shape == (7,)
        assert (outcome.epsilon == 0).all()


@in_turn("name", ON_ANY_FORMULA)
def test_extreme_aggregates_do_not_overflow(name: str) -> None:
    calibration = calibrated(name, "mixed")
    edge = 2**62
    values = np.array([[edge, -edge, edge], [edge, -edge, -edge], [-edge, -edge, edge]])
    passed = MECHANISMS[name].decide(calibration, values, noise=make_system_noise()).passed
    assert passed.tolist() == [True, False, True]


@in_turn("name", ON_ANY_FORMULA)
def test_calibration_is_a_function_of_public_inputs(name: str) -> None:
    assert calibrated(name, "mixed") == calibrated(name, "mixed")


@pytest.mark.parametrize("name", ["tslm", "nlm", "naive", "probe_one_phase", "probe", "probe_ent"])
def test_published_tests_need_a_tolerance(name: str) -> None:
    with pytest.raises(Unachievable) as refusal:
        MECHANISMS[name].calibrate(task_of(AnyOf((count(0), count(1, 5, 0))), 2))
    assert refusal.value.functional == 1
    assert "tolerance" in refusal.value.reason


def test_one_look_costs_least_in_the_worst_case_and_the_default_hardly_more() -> None:
    assert DEFAULT == "progressive"
    for formula in FORMULAS:
        losses = {name: calibrated(name, formula).worst_case_epsilon for name in ON_ANY_FORMULA if name != "nlm"}
        assert min(losses, key=losses.__getitem__) == "keyhole"
        assert losses[DEFAULT] <= 1.08 * losses["keyhole"]


def test_comparison_uses_the_formula_as_typed() -> None:
    """Published losses: the sum over occurrences of w ln(1 / (2 share)) with w = 2 / tolerance."""
    typed = AnyOf((AllOf((count(0), count(1))), AllOf((count(0), count(2, tolerance=5)))))
    task = task_of(AllOf((count(0), AnyOf((count(1), count(2, tolerance=5))))), 3)
    weights = [0.2, 0.2, 0.2, 0.4]
    assert price_baselines(task, typed) == pytest.approx(
        {
            "naive": sum(weight * math.log(1 / (2 * 0.05 / 4)) for weight in weights),
            "probe": sum(weight * math.log(1 / (2 * 0.05 * weight)) for weight in weights),
        },
        rel=1e-6,
    )
    assert price_baselines(task, count(0, tolerance=0)) == {}


def test_reruns_charge_every_occurrence() -> None:
    calibration = calibrated("naive", "mixed")
    assert len(calibration.occurrences) == 6
    assert len(calibration.tests) == 3
    assert calibration.worst_case_epsilon == pytest.approx(sum(test.epsilon for test in calibration.occurrences))
    assert sum(test.epsilon for test in calibration.tests) == pytest.approx(calibration.worst_case_epsilon)
    for test in calibration.occurrences:
        assert compute_rejection(test, 1) <= test.fnr
        assert compute_acceptance(test, -test.tolerance) <= test.fpr


def test_those_that_keep_both_bounds_say_so_in_their_calibration() -> None:
    """Neither rate without a bound; whatever else is registered lacks one."""
    task = task_of(count(0), 1)
    bounded = set()
    for name, mechanism in MECHANISMS.items():
        made = mechanism.calibrate(task)
        if made.fnr is not None and made.fpr is not None:
            assert made.fnr <= task.fnr
            assert made.fpr <= task.fpr
            bounded.add(name)
    assert bounded == set(BOUNDED)


def test_the_mechanisms_that_may_stop_are_those_whose_calibration_says_so() -> None:
    task = task_of(count(0), 1)
    assert {name for name, mechanism in MECHANISMS.items() if mechanism.calibrate(task).deniable} == DENYING
