"""EstimateFPs: its equations, the narrower tolerance it gives, and data on which its claim fails."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mechanisms.formula import Cut
from mechanisms.protocol import DecisionTask
from mechanisms.published.estimate_fps import EstimatedFps, estimate_fps, find_uncertain_keys, narrow_tolerance
from mechanisms.published.probe import Probe
from mechanisms.threshold.joint_loss import expose_all_functionals
from tests.seeded_noise import SeededNoise

ALL_RETURNED = np.ones(8, dtype=np.bool_)
DISTANCES = np.array([-30, -20, -10, -9, 0, 10, 11, 50])


def test_equations_22_and_23_by_hand() -> None:
    """Of eight keys three are rejected (z <= -10), five reported, two of them definite (z > 10)."""
    positive = DISTANCES > -10
    estimate = estimate_fps(DISTANCES, shift=10, share=0.05, returned=positive)
    assert estimate.false_positives == pytest.approx(5 - 0.95 * 2)
    assert estimate.negatives == pytest.approx((3 - 0.05 * 8) / 0.95)
    assert estimate.count_excess(fpr=0.1) == 3
    assert EstimatedFps(false_positives=1.0, negatives=10.0).count_excess(fpr=0.1) == 0


def test_settled_keys_are_left_out() -> None:
    """A positive that an AND dropped is no false positive; a negative that an OR returned is no negative."""
    returned = np.array([True, False, False, False, True, True, False, True])
    estimate = estimate_fps(DISTANCES, shift=10, share=0.05, returned=returned)
    assert estimate.false_positives == pytest.approx(3 - 0.95)
    assert estimate.negatives == pytest.approx((2 - 0.4) / 0.95)
    assert find_uncertain_keys(DISTANCES, shift=10, returned=returned).tolist() == [False] * 4 + [
        True,
        True,
        False,
        False,
    ]


def test_negatives_are_never_fewer_than_none() -> None:
    assert estimate_fps(np.full(8, 99), shift=10, share=0.05, returned=ALL_RETURNED).negatives == 0.0


@given(
    st.lists(st.integers(-60, 60), min_size=1, max_size=40),
    st.integers(1, 50),
    st.integers(1, 40),
)
def test_the_excess_lies_left_of_the_narrower_region(values: list[int], shift: int, excess: int) -> None:
    distances = np.array(values)
    everything = np.ones(distances.size, dtype=np.bool_)
    tolerance = narrow_tolerance(distances, shift=shift, excess=excess, returned=everything)
    inside = np.sort(distances[find_uncertain_keys(distances, shift=shift, returned=everything)])
    if tolerance is None:
        assert inside.size <= excess or inside[excess] >= 0
    else:
        assert 1 <= tolerance < shift
        assert np.count_nonzero(inside < -tolerance) <= excess <= np.count_nonzero(inside <= -tolerance)


def test_a_key_just_below_the_threshold_is_returned_though_the_estimate_accepts() -> None:
    """Theorem 5.1 fails: one key at the threshold (false) among 1,000 at zero, alpha = .1, 400 questions. None is
    denied, and it is returned at least four times in five. It is returned with probability above .94, so a false
    alarm has probability below 1e-20. At the far end of the tolerance the contract's own promise holds: 1e-7."""
    task = DecisionTask(
        formula=Cut(functional=0, cut=100, above=True, tolerance=40),
        sensitivities=(1,),
        exposures=expose_all_functionals(1),
        fnr=0.05,
        fpr=0.1,
    )
    calibration = Probe().calibrate(task)
    assert calibration.fpr is not None
    values = np.zeros((1, 1002), dtype=np.int64)
    values[0, :2] = 100, 60
    noise = SeededNoise(1)
    outcomes = [Probe().decide(calibration, values, noise=noise) for _ in range(400)]
    assert not any(outcome.denied for outcome in outcomes)
    assert sum(outcome.passed[0] for outcome in outcomes) > 8 * task.fpr * 400
    beyond = sum(outcome.passed[1] for outcome in outcomes)
    assert stats.binom.sf(beyond - 1, 400, calibration.fpr) > 1e-7


def test_the_estimate_is_no_upper_bound_on_average() -> None:
    """100,000 negatives at the threshold, share .4: 60 % are returned, 36 % estimated. Each of both counts has a
    standard deviation below .0016 of the keys: a ratio above .65 has probability below 1e-20."""
    keys, share = 100_000, 0.4
    shift = 10
    rate = Fraction(223144, 10_000_000)  # ln(1 / .8) / 10
    distances = SeededNoise(2).draw_discrete_laplace(rate=rate, size=keys)
    returned = distances > -shift
    estimate = estimate_fps(distances, shift=shift, share=share, returned=returned)
    assert estimate.false_positives < 0.65 * np.count_nonzero(returned)
