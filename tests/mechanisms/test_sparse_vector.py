"""The sparse vector: exact tails, its contract on worst-case data, its limit, and its exact loss on short streams."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from mechanisms.discrete_laplace import mass, upper_tail
from mechanisms.formula import TRUE, AllOf, AnyOf, Cut, Formula
from mechanisms.protocol import DecisionTask, Unachievable
from mechanisms.sparse_vector import SparseVector, difference_tail, signed_distance, sparse_vector
from tests.seeded_noise import SeededNoise

FALSE_ALARM = 1e-8
FIRST = Cut(functional=0, cut=100, above=True, tolerance=20)
SECOND = Cut(functional=1, cut=40, above=False, tolerance=15)


def task_of(formula: Formula, *, sensitivity: int = 1, fnr: float = 0.05, fpr: float = 0.1) -> DecisionTask:
    return DecisionTask(
        formula=formula,
        sensitivities=(sensitivity, sensitivity),
        affected_together=(frozenset((0, 1)),),
        fnr=fnr,
        fpr=fpr,
    )


@pytest.mark.parametrize(("threshold_rate", "query_rate"), [(0.8, 0.1), (3.0, 1.0), (0.02, 0.01), (12.0, 0.3)])
def test_the_tail_of_the_difference_is_the_convolution(threshold_rate: float, query_rate: float) -> None:
    span = math.ceil(45 / threshold_rate)
    for distance in (-7, -1, 0, 1, 2, 3, 10, 40):
        summed = math.fsum(
            mass(threshold_rate, j) * upper_tail(query_rate, distance + j) for j in range(-span, span + 1)
        )
        exact = difference_tail(distance, threshold_rate=threshold_rate, query_rate=query_rate)
        assert exact == pytest.approx(summed, rel=1e-10)


@pytest.mark.parametrize("formula", [FIRST, SECOND, AllOf((FIRST, SECOND)), AnyOf((FIRST, SECOND))])
def test_the_distance_is_positive_where_the_formula_holds(formula: Formula) -> None:
    grid = np.array(list(product(range(97, 104), range(37, 44))), dtype=np.int64).T
    first, second = grid[0] > 100, grid[1] <= 40
    expected = {FIRST: first, SECOND: second, AllOf((FIRST, SECOND)): first & second}.get(formula, first | second)
    assert np.array_equal(signed_distance(formula, grid) > 0, expected)
    moved = signed_distance(formula, grid + np.array([[1], [-1]]))
    assert np.max(np.abs(moved - signed_distance(formula, grid))) <= 1


def test_both_rates_hold_at_the_worst_distances() -> None:
    """20000 questions of one key: at c + 1 and at c - tolerance; false alarm 2e-8."""
    task = task_of(AllOf((FIRST, SECOND)))
    calibration = SparseVector(most_positives=2).calibrate(task)
    test = calibration.tests[0]
    runs = 20_000
    for distance, wrong_if, share in ((1, False, 0.05), (-15, True, 0.1)):
        answers = sparse_vector(
            np.full((runs, 1), distance, dtype=np.int64),
            least=1 - test.shift,
            threshold_rate=4 * test.rate,
            query_rate=test.rate,
            most_positives=2,
            noise=SeededNoise(3),
        )
        assert np.sum(answers == wrong_if) <= stats.binom.isf(FALSE_ALARM, runs, share)
    assert calibration.fnr is None
    assert calibration.fpr is not None
    assert 0.05 < calibration.fpr <= 0.1


def test_no_more_positives_than_the_limit_and_in_order() -> None:
    mechanism = SparseVector(most_positives=3)
    task = task_of(FIRST)
    values = np.full((2, 50), 10_000, dtype=np.int64)
    calibration = mechanism.calibrate(task)
    outcome = mechanism.decide(calibration, values, noise=SeededNoise(1))
    assert np.flatnonzero(outcome.passed).tolist() == [0, 1, 2]
    assert np.all(outcome.epsilon == calibration.worst_case_epsilon)
    five = replace(task, most_positives=5)
    assert mechanism.decide(mechanism.calibrate(five), values, noise=SeededNoise(1)).passed.sum() == 5
    with pytest.raises(Unachievable):
        mechanism.calibrate(replace(task, most_positives=0))


@pytest.mark.parametrize("most_positives", [1, 2])
def test_the_exact_loss_of_whole_streams_and_of_one_key(most_positives: int) -> None:
    """Every transcript of four queries by summation over the noisy threshold, so no false alarm.

    All queries moved at once, in any directions, cost at most the whole loss; one query alone at most `r2 D`.
    """
    query_rate = 0.2
    threshold_rate = 2 * most_positives * query_rate

    def law(distances: tuple[int, ...]) -> dict[tuple[bool, ...], float]:
        found: dict[tuple[bool, ...], float] = {}
        for j in range(-250, 251):
            chances = [upper_tail(query_rate, j - distance) for distance in distances]
            for answers in product((False, True), repeat=len(distances)):
                chance, positives, shown = mass(threshold_rate, j), 0, []
                for answer, positive in zip(answers, chances, strict=True):
                    chance *= positive if answer else 1.0 - positive
                    shown.append(answer and positives < most_positives)
                    positives += answer
                found[tuple(shown)] = found.get(tuple(shown), 0.0) + chance
        return found

    base = law((0, 0, 0, 0))
    for step in product((-1, 0, 1), repeat=4):
        if step == (0, 0, 0, 0):
            continue
        moved = law(step)
        ratio = max(abs(math.log(moved[shown] / base[shown])) for shown in base)
        whole = threshold_rate + 2 * most_positives * query_rate
        alone = query_rate if sum(map(abs, step)) == 1 else whole
        assert ratio <= min(whole, alone) + 1e-9


def test_the_loss_is_the_noise_actually_drawn() -> None:
    for sensitivity in (1, 7):
        calibration = SparseVector(most_positives=4).calibrate(task_of(FIRST, sensitivity=sensitivity))
        rate = calibration.tests[0].rate
        assert Fraction(calibration.worst_case_epsilon) >= sensitivity * (8 * rate + 2 * 4 * rate)


def test_a_constant_formula_draws_nothing() -> None:
    mechanism = SparseVector(most_positives=2)
    calibration = mechanism.calibrate(task_of(TRUE))
    outcome = mechanism.decide(calibration, np.zeros((2, 3), dtype=np.int64), noise=SeededNoise(1))
    assert outcome.passed.all()
    assert not outcome.epsilon.any()


def test_a_tautology_within_tolerance_says_so() -> None:
    low = Cut(functional=0, cut=100, above=False, tolerance=20)
    assert any(
        "always holds" in note for note in SparseVector(most_positives=2).calibrate(task_of(AnyOf((FIRST, low)))).notes
    )


def test_impossible_limits_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        SparseVector(most_positives=0)
    with pytest.raises(Unachievable, match="wider tolerance"):
        SparseVector(most_positives=1000).calibrate(task_of(Cut(functional=0, cut=1, above=True, tolerance=0)))
