"""The sparse vector: exact tails, its contract on worst-case data, its limit, and its exact loss on short streams."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from mechanisms.formula import TRUE, AllOf, AnyOf, Cut, Formula
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.noise.discrete_laplace import compute_mass, compute_upper_tail
from mechanisms.protocol import DecisionTask, Unachievable
from mechanisms.published.sparse_vector import (
    GeneralisedSparseVector,
    SparseVector,
    choose_weights,
    compute_difference_tail,
    compute_signed_distance,
    run_sparse_vector,
)
from mechanisms.threshold.joint_loss import expose_all_functionals
from tests.seeded_noise import SeededNoise

FALSE_ALARM = 1e-8
FIRST = Cut(functional=0, cut=100, above=True, tolerance=20)
SECOND = Cut(functional=1, cut=40, above=False, tolerance=15)


def task_of(formula: Formula, *, sensitivity: int = 1, fnr: float = 0.05, fpr: float = 0.1) -> DecisionTask:
    return DecisionTask(
        formula=formula,
        sensitivities=(sensitivity, sensitivity),
        exposures=expose_all_functionals(2),
        fnr=fnr,
        fpr=fpr,
    )


@pytest.mark.parametrize(("threshold_rate", "query_rate"), [(0.8, 0.1), (3.0, 1.0), (0.02, 0.01), (12.0, 0.3)])
def test_the_tail_of_the_difference_is_the_convolution(threshold_rate: float, query_rate: float) -> None:
    span = math.ceil(45 / threshold_rate)
    for distance in (-7, -1, 0, 1, 2, 3, 10, 40):
        summed = math.fsum(
            compute_mass(threshold_rate, j) * compute_upper_tail(query_rate, distance + j)
            for j in range(-span, span + 1)
        )
        exact = compute_difference_tail(distance, threshold_rate=threshold_rate, query_rate=query_rate)
        assert exact == pytest.approx(summed, rel=1e-10)


@pytest.mark.parametrize("formula", [FIRST, SECOND, AllOf((FIRST, SECOND)), AnyOf((FIRST, SECOND))])
def test_the_distance_is_positive_where_the_formula_holds(formula: Formula) -> None:
    grid = np.array(list(product(range(97, 104), range(37, 44))), dtype=np.int64).T
    first, second = grid[0] > 100, grid[1] <= 40
    expected = {FIRST: first, SECOND: second, AllOf((FIRST, SECOND)): first & second}.get(formula, first | second)
    assert np.array_equal(compute_signed_distance(formula, grid) > 0, expected)
    moved = compute_signed_distance(formula, grid + np.array([[1], [-1]]))
    assert np.max(np.abs(moved - compute_signed_distance(formula, grid))) <= 1


def test_both_rates_hold_at_the_worst_distances() -> None:
    """20000 questions of one key: at c + 1 and at c - tolerance; false alarm 2e-8."""
    task = task_of(AllOf((FIRST, SECOND)))
    calibration = GeneralisedSparseVector(most_positives=2).calibrate(task)
    test = calibration.tests[0]
    runs = 20_000
    for distance, wrong_if, share in ((1, False, 0.05), (-15, True, 0.1)):
        answers = run_sparse_vector(
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

    noises = range(-250, 251)
    masses = np.array([compute_mass(threshold_rate, j) for j in noises])
    tails = {
        distance: np.array([compute_upper_tail(query_rate, j - distance) for j in noises]) for distance in (-1, 0, 1)
    }

    def law(distances: tuple[int, ...]) -> dict[tuple[bool, ...], float]:
        found: dict[tuple[bool, ...], float] = {}
        for answers in product((False, True), repeat=len(distances)):
            chances, positives, shown = masses, 0, []
            for answer, distance in zip(answers, distances, strict=True):
                chances = chances * (tails[distance] if answer else 1.0 - tails[distance])
                shown.append(answer and positives < most_positives)
                positives += answer
            found[tuple(shown)] = found.get(tuple(shown), 0.0) + float(chances.sum())
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
    calibration = GeneralisedSparseVector(most_positives=2).calibrate(task_of(AnyOf((FIRST, low))))
    assert any("always holds" in note for note in calibration.notes)


def test_impossible_limits_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        SparseVector(most_positives=0)
    with pytest.raises(Unachievable, match="wider tolerance"):
        SparseVector(most_positives=1000).calibrate(task_of(Cut(functional=0, cut=1, above=True, tolerance=0)))


def test_the_limit_is_the_tasks_and_there_has_to_be_one() -> None:
    for mechanism in (SparseVector(), GeneralisedSparseVector()):
        with pytest.raises(Unachievable, match="needs a limit"):
            mechanism.calibrate(task_of(FIRST))
        calibration = mechanism.calibrate(replace(task_of(FIRST), most_positives=4))
        assert calibration.whole_question
        assert calibration.task.most_positives == 4
    limited = SparseVector(most_positives=4).calibrate(task_of(FIRST))
    assert limited.task.most_positives == 4
    assert limited == SparseVector().calibrate(replace(task_of(FIRST), most_positives=4))


def test_the_published_form_takes_one_threshold_and_names_the_form_that_takes_more() -> None:
    for formula in (AllOf((FIRST, SECOND)), AnyOf((FIRST, SECOND)), AllOf((FIRST, replace(FIRST, cut=120)))):
        with pytest.raises(Unachievable, match="this question has 2") as refusal:
            SparseVector(most_positives=2).calibrate(task_of(formula))
        assert refusal.value.instead == GeneralisedSparseVector.name
        assert GeneralisedSparseVector(most_positives=2).calibrate(task_of(formula)).worst_case_epsilon > 0


def test_both_forms_are_the_same_on_one_threshold() -> None:
    published, general = SparseVector(most_positives=3), GeneralisedSparseVector(most_positives=3)
    values = np.tile(np.arange(60, 140, dtype=np.int64), (2, 1))
    made = [mechanism.calibrate(task_of(SECOND)) for mechanism in (published, general)]
    assert replace(made[0], mechanism=general.name) == made[1]
    assert np.array_equal(
        published.decide(made[0], values, noise=SeededNoise(5)).passed,
        general.decide(made[1], values, noise=SeededNoise(5)).passed,
    )


def test_the_whole_answer_covers_a_unit_in_every_group_where_the_keys_one_by_one_do_not() -> None:
    """Where it pays: one positive, a unit in five groups or more, against the one-shot test for each of them."""
    task = task_of(Cut(functional=0, cut=100, above=True, tolerance=10))
    whole = SparseVector(most_positives=1).calibrate(task).worst_case_epsilon
    alone = Keyhole().calibrate(task).worst_case_epsilon
    assert 4 * alone < whole < 5 * alone


COARSE = Cut(functional=1, cut=6000, above=True, tolerance=900)


@pytest.mark.parametrize("kind", [AllOf, AnyOf])
def test_units_of_different_size_come_to_one_scale(kind: type[AllOf] | type[AnyOf]) -> None:
    """A unit of 1 and one of 60, in all moves from all values around both thresholds."""
    task = replace(task_of(kind((FIRST, COARSE))), sensitivities=(1, 60), most_positives=1)
    scale = choose_weights(task)
    assert scale == (60, 1)
    values = np.array(list(product(range(97, 104), range(5900, 6100, 7))), dtype=np.int64).T
    before = compute_signed_distance(task.formula, values, weights=scale)
    assert np.array_equal(before > 0, compute_signed_distance(task.formula, values) > 0)
    for step in product((-1, 0, 1), (-60, 0, 60)):
        after = compute_signed_distance(task.formula, values + np.array([step]).T, weights=scale)
        assert np.max(np.abs(after - before)) <= 60
    assert choose_weights(replace(task, formula=FIRST)) == choose_weights(replace(task, formula=COARSE)) == (1, 1)


@pytest.mark.parametrize("tolerance", [0, 5, 1 << 40, (1 << 62) - 1])
def test_weights_keep_every_distance_in_range(tolerance: int) -> None:
    wide = replace(COARSE, tolerance=tolerance, cut=0)
    task = replace(task_of(AnyOf((FIRST, wide))), sensitivities=(1 << 50, 3), most_positives=1)
    scale = choose_weights(task)
    assert min(scale) >= 1
    edges = np.array([[-(1 << 62), 1 << 62, 0], [-(1 << 62), 0, 1 << 62]])
    for cut in (FIRST, wide):
        found = compute_signed_distance(cut, edges, weights=scale)
        assert np.array_equal(found > 0, edges[cut.functional] > cut.cut)
        assert np.max(np.abs(found)) <= 1 << 61


def test_both_rates_hold_on_units_of_different_size() -> None:
    """20000 questions of one key, both conditions just true, then either just false; false alarm 3e-8."""
    task = replace(task_of(AllOf((FIRST, COARSE))), sensitivities=(1, 60), most_positives=1)
    test = GeneralisedSparseVector().calibrate(task).tests[0]
    noise = SeededNoise(9)
    runs = 20_000
    for values, wrong_if, share in (((101, 6001), False, 0.05), ((80, 10**6), True, 0.1), ((10**6, 5100), True, 0.1)):
        distance = compute_signed_distance(
            task.formula, np.array([values], dtype=np.int64).T, weights=choose_weights(task)
        )
        answers = run_sparse_vector(
            np.full((runs, 1), distance[0]),
            least=min(choose_weights(task)) - test.shift,
            threshold_rate=2 * test.rate,
            query_rate=test.rate,
            most_positives=1,
            noise=noise,
        )
        assert np.sum(answers == wrong_if) <= stats.binom.isf(FALSE_ALARM, runs, share)
