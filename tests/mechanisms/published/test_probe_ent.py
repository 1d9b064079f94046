"""ProBE-Ent: what an early exit leaves to later occurrences, what its looks cost, and what is denied."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.formula import AllOf, AnyOf, Cut, Formula, Integers, evaluate_formula
from mechanisms.protocol import DecisionTask, Outcome, Unachievable
from mechanisms.published.probe import PHASES_RESERVED
from mechanisms.published.probe_ent import ProbeEnt
from mechanisms.threshold.joint_loss import expose_all_functionals
from tests.effort import examples
from tests.seeded_noise import SeededNoise

BETA = 0.05


def above(functional: int, tolerance: int = 40, cut: int = 100) -> Cut:
    return Cut(functional=functional, cut=cut, above=True, tolerance=tolerance)


def below(functional: int, tolerance: int = 40, cut: int = 100) -> Cut:
    return Cut(functional=functional, cut=cut, above=False, tolerance=tolerance)


def task_of(formula: Formula, functionals: int) -> DecisionTask:
    return DecisionTask(
        formula=formula,
        sensitivities=(1,) * functionals,
        exposures=expose_all_functionals(functionals),
        fnr=BETA,
        fpr=0.1,
    )


def decided(mechanism: ProbeEnt, task: DecisionTask, values: Integers, *, seed: int) -> Outcome:
    return mechanism.decide(mechanism.calibrate(task), values, noise=SeededNoise(seed))


def crowded() -> Integers:
    """500 keys, most far below, some near: a first look alone would return too many."""
    return np.array([[101] * 20 + [85] * 60 + [0] * 418 + [400] * 2])


def test_an_early_exit_leaves_its_share_to_the_others() -> None:
    """Appendix C, example C.1: three looks, four conjuncts of equal weight; each is done after its first look, so that
    `beta_rem = beta - beta_1 / 3` is split over three, and so on. Keys lie 300 from the thresholds, 20 times the noise:
    a chance below 1e-6 that any stays undecided."""
    task = task_of(AllOf(tuple(above(place, tolerance=20) for place in range(4))), 4)
    values = np.full((4, 300), -200, dtype=np.int64)
    values[:, :5] = 400
    outcome = decided(ProbeEnt(looks=3), task, values, seed=1)
    assert outcome.passed.tolist() == [True] * 5 + [False] * 295
    remaining, expected = BETA, 0.0
    for left in (4, 3, 2, 1):
        share = remaining / left
        expected += math.log(3 / (2 * share)) / 10
        remaining -= share / 3
    assert outcome.epsilon == pytest.approx(np.full(300, expected), rel=1e-6)
    without = 4 * math.log(3 * 4 / (2 * BETA)) / 10
    assert expected < without
    assert ProbeEnt(looks=3).calibrate(task).worst_case_epsilon == pytest.approx(PHASES_RESERVED * without, rel=1e-6)


def test_a_skipped_conjunct_costs_nothing() -> None:
    values = np.full((2, 50), -2000, dtype=np.int64)
    task = task_of(AllOf((above(0), above(1))), 2)
    outcome = decided(ProbeEnt(), task, values, seed=2)
    assert not outcome.passed.any()
    assert outcome.epsilon == pytest.approx(np.full(50, math.log(4 * 2 / (2 * BETA)) / 20), rel=1e-6)


def test_keys_stop_at_different_losses() -> None:
    """Decided keys pay the first look alone; undecided ones are refined up to the level that `u'` asks for."""
    task, mechanism = task_of(above(0), 1), ProbeEnt(most_epsilon=50.0)
    first = math.log(4 / (2 * BETA)) / 20
    answered = 0
    for seed in range(10):
        outcome = decided(mechanism, task, crowded(), seed=seed)
        if outcome.denied:
            continue
        answered += 1
        assert outcome.epsilon.min() == pytest.approx(first, rel=1e-6)
        assert outcome.epsilon.max() > 2 * first
        assert np.unique(outcome.epsilon).size <= 5
        assert outcome.passed[-2:].all()
    assert answered >= 5


def test_a_denial_is_paid_for() -> None:
    task = task_of(above(0), 1)
    outcome = decided(ProbeEnt(), task, np.full((1, 100), 100), seed=3)
    assert outcome.denied
    assert not outcome.passed.any()
    assert outcome.epsilon == pytest.approx(np.full(100, math.log(4 / (2 * BETA)) / 20), rel=1e-6)


def test_a_limit_denies_before_drawing() -> None:
    task = task_of(above(0), 1)
    outcome = decided(ProbeEnt(most_epsilon=0.01), task, crowded(), seed=4)
    assert outcome.denied
    assert (outcome.epsilon == 0).all()


@given(st.integers(0, 10_000))
@examples(25)
def test_no_key_loses_more_than_was_reserved(seed: int) -> None:
    """Random trees and data, some denied, some not."""
    random = np.random.default_rng(seed)

    def tree(depth: int) -> Formula:
        if depth == 0 or random.random() < 0.3:
            kind = above if random.random() < 0.6 else below
            return kind(int(random.integers(3)), int(random.integers(1, 60)), int(random.integers(0, 120)))
        children = tuple(tree(depth - 1) for _ in range(int(random.integers(1, 3))))
        return AllOf(children) if random.random() < 0.5 else AnyOf(children)

    task = task_of(tree(2), 3)
    values = random.integers(-150, 200, size=(3, int(random.integers(0, 40))))
    for mechanism in (ProbeEnt(), ProbeEnt(looks=2, fine_steps=1, most_epsilon=random.uniform(0.1, 30))):
        calibration = mechanism.calibrate(task)
        outcome = mechanism.decide(calibration, values, noise=SeededNoise(seed))
        assert calibration.fnr is None
        assert calibration.fpr is None
        assert (outcome.epsilon <= calibration.worst_case_epsilon).all()
        assert (outcome.epsilon >= 0).all()
        assert not (outcome.denied and outcome.passed.any())


def test_answers_follow_the_tree() -> None:
    """Keys 500 from every threshold are decided right, whatever the tree; wrong with a probability below 1e-9."""
    tree = AllOf((AnyOf((above(0, 10), below(1, 10))), AnyOf((above(2, 10), above(0, 10)))))
    values = np.random.default_rng(9).choice([-400, 600], size=(3, 600))
    truth = evaluate_formula(tree, lambda cut: cut.evaluate(values[cut.functional]), keys=600)
    outcome = decided(ProbeEnt(), task_of(tree, 3), values, seed=10)
    assert not outcome.denied
    assert (outcome.passed == truth).all()


def test_parameters_are_checked() -> None:
    for looks, steps in ((1, 3), (4, 0)):
        with pytest.raises(ValueError, match="at least two looks"):
            ProbeEnt(looks=looks, fine_steps=steps)
    with pytest.raises(ValueError, match="positive and finite"):
        ProbeEnt(most_epsilon=math.inf)
    with pytest.raises(Unachievable, match="tolerance"):
        ProbeEnt().calibrate(task_of(above(0, tolerance=0), 1))
    with pytest.raises(Unachievable, match="no room"):
        ProbeEnt().calibrate(task_of(above(0, tolerance=1 << 45), 1))
