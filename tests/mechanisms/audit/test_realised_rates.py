"""Realised error rates against hand counts, and their bound from noisy values against adversarial data."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mechanisms.audit.realised_rates import bound_realised_fpr, count_realised_rates
from mechanisms.formula import AllOf, AnyOf, Cut, Formula, Integers
from tests.effort import cases
from tests.seeded_noise import SeededNoise

RATE = Fraction(1, 2)
KEYS = 400
RUNS = 500
DELTA = 0.05
FALSE_ALARM = 1e-8
GRID = tuple((shift, shift) for shift in (0, 4, 8, 16))

ABOVE = Cut(functional=0, cut=100, above=True, tolerance=5)
BELOW = Cut(functional=1, cut=50, above=False, tolerance=5)
FORMULAS: dict[str, Formula] = {
    "one": ABOVE,
    "both": AllOf((ABOVE, BELOW)),
    "either": AnyOf((ABOVE, BELOW)),
    "interval": AllOf((ABOVE, Cut(functional=0, cut=102, above=False, tolerance=5))),
    "outside": AnyOf((ABOVE, Cut(functional=0, cut=98, above=False, tolerance=5))),
}


def test_rates_are_counted_as_the_papers_and_the_contract_do() -> None:
    values = np.array([[101, 101, 100, 96, 95, 10]], dtype=np.int64)
    passed = np.array([True, False, True, True, True, False])
    rates = count_realised_rates(ABOVE, values, passed)
    assert (rates.positives, rates.missed_positives, rates.fnr) == (2, 1, 0.5)
    assert (rates.negatives, rates.wrong_negatives, rates.fpr) == (4, 3, 0.75)
    assert (rates.relaxed_negatives, rates.wrong_relaxed_negatives, rates.fpr_beyond_tolerance) == (2, 1, 0.5)


def test_no_keys_of_a_kind_give_rate_zero() -> None:
    rates = count_realised_rates(ABOVE, np.array([[500]], dtype=np.int64), np.array([True]))
    assert (rates.fpr, rates.fpr_beyond_tolerance, rates.fnr) == (0.0, 0.0, 0.0)


def adversarial(data: str) -> Integers:
    values = np.empty((2, KEYS), dtype=np.int64)
    values[0], values[1] = 100, 51
    if data == "half":
        values[0, ::2], values[1, ::2] = 101, 50
    elif data == "one negative in ten":
        values[:] = np.array([[160], [0]])
        values[:, ::10] = np.array([[100], [51]])
    elif data == "spread":
        values[0] = np.arange(KEYS) - KEYS // 2 + 100
        values[1] = np.arange(KEYS)[::-1] - KEYS // 2 + 50
    return values


@pytest.mark.parametrize(
    ("formula", "data"), cases(FORMULAS, ["at the threshold", "half", "one negative in ten", "spread"], quick=4)
)
def test_the_bound_fails_no_oftener_than_promised(formula: str, data: str) -> None:
    """500 runs, the greediest answer: every key with a literal that holds on the noisy values, loosened by ten.

    The number of failures is at most binomial with delta = .05; false alarm at most 1e-8 a case, 2e-7 over all.
    """
    question = FORMULAS[formula]
    values = adversarial(data)
    drawn = SeededNoise(11).draw_discrete_laplace(rate=RATE, size=RUNS * values.size).reshape(RUNS, *values.shape)
    failures = 0
    for own in drawn:
        noisy = values + own
        answer = (noisy[0] > 90) | (noisy[1] <= 60)
        truth = count_realised_rates(question, values, answer)
        bound = bound_realised_fpr(
            question, noisy, answer, rates=[[float(RATE)], [float(RATE)]], shifts=GRID, delta=DELTA
        )
        failures += truth.wrong_negatives > bound.false_positives or truth.negatives < bound.negatives
    assert failures <= stats.binom.isf(FALSE_ALARM, RUNS, DELTA)


def test_the_bound_is_of_use_far_from_the_threshold() -> None:
    values = np.full((1, 1000), 300, dtype=np.int64)
    values[0, ::2] = -100
    noisy = values + SeededNoise(5).draw_discrete_laplace(rate=RATE, size=1000)
    bound = bound_realised_fpr(ABOVE, noisy, np.asarray(noisy[0] > 100), rates=[[0.5]], shifts=GRID, delta=1e-6)
    assert bound.fpr < 0.02
    assert bound.negatives > 490


def test_looks_add_their_tails() -> None:
    values = np.full((1, 1000), 300, dtype=np.int64)
    passed = np.ones(1000, dtype=np.bool_)
    once = bound_realised_fpr(ABOVE, values, passed, rates=[[0.5]], shifts=GRID, delta=0.01)
    twice = bound_realised_fpr(ABOVE, values, passed, rates=[[0.1, 0.5]], shifts=GRID, delta=0.01)
    assert twice.false_positives > once.false_positives


def test_bad_grids_and_deltas_are_refused() -> None:
    passed = np.ones(1, dtype=np.bool_)
    for shifts, delta in (((), 0.1), (GRID, 0.0), (GRID, 1.0)):
        with pytest.raises(ValueError, match="grid of shifts"):
            bound_realised_fpr(
                ABOVE, np.zeros((2, 1), dtype=np.int64), passed, rates=[[0.5], [0.5]], shifts=shifts, delta=delta
            )
