"""The loss of one key: what mixtures of exposures cover, rounded up, and no more than the exact joint law allows."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.formula import AllOf, AnyOf, Cut
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.keyhole.progressive import Progressive
from mechanisms.noise.discrete_laplace import compute_mass
from mechanisms.protocol import DecisionTask, Exposure, Mechanism
from mechanisms.threshold.joint_loss import (
    compute_joint_loss,
    compute_joint_losses,
    drop_dominated_exposures,
    expose_all_functionals,
    expose_functional_sets,
)
from tests.effort import examples
from tests.seeded_noise import SeededNoise

PARTS = st.builds(Fraction, st.integers(0, 7), st.just(7))
EXPOSURES = st.lists(st.tuples(PARTS, PARTS, PARTS), min_size=1, max_size=8).map(
    lambda found: (*found, *expose_functional_sets(((0,), (1,), (2,)), functionals=3))
)
EPSILONS = st.lists(st.fractions(0, 5, max_denominator=1000), min_size=3, max_size=3)


def test_the_dearest_exposure() -> None:
    losses = [Fraction(1), Fraction(2), Fraction(1, 2)]
    assert compute_joint_loss(losses, expose_functional_sets(((0, 2), (1,)), functionals=3)) == 2
    assert compute_joint_loss(losses, expose_all_functionals(3)) == Fraction(7, 2)
    assert compute_joint_loss(
        losses, [(Fraction(1), Fraction(1, 3), Fraction(0)), (Fraction(0), Fraction(0), Fraction(1))]
    ) == (Fraction(5, 3))
    with pytest.raises(ValueError, match="at once"):
        compute_joint_loss(losses[:2], expose_functional_sets(((0,),), functionals=2))
    with pytest.raises(ValueError, match="at once"):
        compute_joint_loss([Fraction(2), Fraction(1, 1000)], expose_functional_sets(((0,),), functionals=2))


@given(exposures=EXPOSURES, epsilons=EPSILONS)
def test_leaving_out_what_others_cover_changes_no_loss(
    exposures: tuple[Exposure, ...], epsilons: list[Fraction]
) -> None:
    kept = drop_dominated_exposures(exposures)
    assert set(kept) <= set(exposures)
    assert compute_joint_loss(epsilons, kept) == compute_joint_loss(epsilons, exposures)
    for one in kept:
        assert not any(all(map(Fraction.__le__, one, other)) for other in kept if other != one)


@given(exposures=EXPOSURES, epsilons=EPSILONS)
def test_losses_of_many_keys_are_rounded_up(exposures: tuple[Exposure, ...], epsilons: list[Fraction]) -> None:
    rounded = [math.nextafter(float(epsilon), math.inf) for epsilon in epsilons]
    found = compute_joint_losses({f: np.full(2, loss) for f, loss in enumerate(rounded)}, exposures, keys=2)
    exact = compute_joint_loss(epsilons, exposures)
    assert all(Fraction(float(one)) >= exact for one in found)
    assert found == pytest.approx(float(exact), rel=1e-12, abs=1e-300)


def widest_ratio(rate: Fraction, value: int, neighbour: int) -> float:
    """The largest log-ratio of the laws of `value + K` and `neighbour + K`, either way; by listing."""
    reach = range(min(value, neighbour) - 30, max(value, neighbour) + 31)
    laws = [[compute_mass(float(rate), seen - at) for seen in reach] for at in (value, neighbour)]
    return max(abs(math.log(here / there)) for here, there in zip(*laws, strict=True))


def worst_ratio(mechanism: Mechanism, task: DecisionTask, rows: Sequence[tuple[int, ...]]) -> tuple[float, float]:
    """The largest log-ratio of the joint law of all noisy values when one of the rows comes or goes, at any true
    values; and what the calibration says. Noises are independent, so the log-ratios of the values add up."""
    calibration = mechanism.calibrate(task)
    worst = 0.0
    for row in rows:
        ratio = 0.0
        for test, change in zip(calibration.tests, row, strict=True):
            starts = range(test.block)
            ratio += max(widest_ratio(test.rate, at // test.block, (at + change) // test.block) for at in starts)
        worst = max(worst, ratio)
    return worst, calibration.worst_case_epsilon


FULL, EMPTY = Cut(functional=0, cut=40, above=True, tolerance=6), Cut(functional=1, cut=30, above=True, tolerance=6)
SHARED = AnyOf((AllOf((FULL, EMPTY)), Cut(functional=0, cut=90, above=True, tolerance=6)))
ROWS = [(value, 10 - value) for value in range(11)]  # a row of value x moves one sum by x and the other by 10 - x
CORNERS: tuple[Exposure, ...] = expose_functional_sets(((0,), (1,)), functionals=2)


@pytest.mark.parametrize("mechanism", [Keyhole(), Progressive()])
@pytest.mark.parametrize("formula", [AnyOf((FULL, EMPTY)), AllOf((FULL, EMPTY)), SHARED])
def test_no_row_changes_the_joint_law_by_more(mechanism: Mechanism, formula: AnyOf | AllOf) -> None:
    """Every row, not only those at the corners, and every alignment of blocks."""
    cornered = DecisionTask(
        formula=formula, sensitivities=(10, 10), exposures=CORNERS, fnr=0.05, fpr=0.1, blocks=frozenset()
    )
    whole = DecisionTask(
        formula=formula, sensitivities=(10, 10), exposures=expose_all_functionals(2), fnr=0.05, fpr=0.1
    )
    for task in (cornered, whole):
        worst, claimed = worst_ratio(mechanism, task, ROWS)
        assert worst <= claimed * (1 + 1e-9)


def test_blocks_beside_corners_would_break_the_claim() -> None:
    """The check above can fail: the row 5 is half of either corner, but moves both block indices by a whole step."""
    unsound = DecisionTask(
        formula=AnyOf((FULL, EMPTY)), sensitivities=(10, 10), exposures=CORNERS, fnr=0.05, fpr=0.1, blocks=None
    )
    assert all(test.block > 1 for test in Keyhole().calibrate(unsound).tests)
    worst, claimed = worst_ratio(Keyhole(), unsound, ROWS)
    assert worst > 1.5 * claimed


@given(exposures=EXPOSURES)
@examples(20)
def test_the_worst_case_is_the_joint_loss_of_the_tests(exposures: tuple[Exposure, ...]) -> None:
    formula = AnyOf((FULL, EMPTY, Cut(functional=2, cut=5, above=False, tolerance=3)))
    task = DecisionTask(
        formula=formula, sensitivities=(10, 10, 4), exposures=exposures, fnr=0.05, fpr=0.1, blocks=frozenset()
    )
    for mechanism in (Keyhole(), Progressive()):
        calibration = mechanism.calibrate(task)
        losses = [test.rate * size for test, size in zip(calibration.tests, task.sensitivities, strict=True)]
        assert Fraction(calibration.worst_case_epsilon) >= compute_joint_loss(losses, exposures)
        assert calibration.worst_case_epsilon == pytest.approx(float(compute_joint_loss(losses, exposures)))
        plain = mechanism.calibrate(
            DecisionTask(
                formula=formula,
                sensitivities=(10, 10, 4),
                exposures=expose_all_functionals(3),
                fnr=0.05,
                fpr=0.1,
                blocks=frozenset(),
            )
        )
        assert calibration.worst_case_epsilon <= plain.worst_case_epsilon * (1 + 1e-3)


def test_a_key_loses_the_joint_loss_of_the_looks_it_took() -> None:
    """A key that stops early loses at most the worst case, and the plain sum is never exceeded."""
    parts = ((Fraction(1), Fraction(1, 19)), (Fraction(7, 13), Fraction(1)))
    task = DecisionTask(
        formula=AnyOf((FULL, EMPTY)), sensitivities=(10, 10), exposures=parts, fnr=0.05, fpr=0.1, blocks=frozenset()
    )
    calibration = Progressive().calibrate(task)
    values = np.array([np.arange(-2000, 2000, 40), np.full(100, -3000)], dtype=np.int64)
    outcome = Progressive().decide(calibration, values, noise=SeededNoise(5))
    assert outcome.epsilon.max() <= calibration.worst_case_epsilon
    assert outcome.epsilon.min() < calibration.worst_case_epsilon
    assert outcome.epsilon.min() > 0
