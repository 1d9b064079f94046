"""Likelihoods of one observation for every true count from 0 on, up to a factor.

Each has a closed form: for the visible key set, a noisy value, the exact count, or nothing at all.

Reference: PET evaluation (thesis), equation 4.4, which takes the same from samples. Proof: docs/proofs/posterior.md.
"""

import math

import numpy as np
import numpy.typing as npt

from mechanisms.protocol import FunctionalTest
from mechanisms.threshold.one_shot import compute_acceptance
from mechanisms.threshold.three_zone import compute_exact_acceptance

Floats = npt.NDArray[np.float64]


def list_likelihoods_without_release(*, most: int) -> Floats:
    """Return the likelihood of each count if nothing is released: one for every count.

    >>> list_likelihoods_without_release(most=2).tolist()
    [1.0, 1.0, 1.0]
    """
    return np.ones(most + 1)


def list_likelihoods_of_exact_count(count: int, *, most: int) -> Floats:
    """Return the likelihood of each count if an exact count was released: one for that count, else zero.

    >>> list_likelihoods_of_exact_count(1, most=2).tolist()
    [0.0, 1.0, 0.0]
    """
    if not 0 <= count <= most:
        raise ValueError("a count lies between 0 and the most")
    found = np.zeros(most + 1)
    found[count] = 1.0
    return found


def list_likelihoods_of_noisy(value: float, *, rate: float, most: int) -> Floats:
    """Return the likelihood of each count, given a count released with Laplace noise of this rate.

    For discrete and continuous noise they fall by `exp(-rate)` per step. They are scaled so that the nearest count has
    likelihood one.

    >>> list_likelihoods_of_noisy(5, rate=math.log(2), most=2).tolist()
    [0.25, 0.5, 1.0]
    """
    if rate <= 0:
        raise ValueError("noise has a rate above 0")
    distances = np.abs(value - np.arange(most + 1))
    return np.asarray(np.exp(-rate * (distances - distances.min())))


def list_likelihoods_of_key(test: FunctionalTest, *, cut: int, most: int, is_returned: bool) -> Floats:
    """Return the likelihood of each count, given that a question `count > cut` returned the key, or did not.

    Guarantee: the law of what is visible, for a one-shot test and for the looks of a progressive one
    (docs/proofs/posterior.md).

    Parameters:
        test: as calibrated for the question.
        cut: the threshold, in whole counts.
    """
    if test.looks:
        steps = [(count - cut - 1) // test.block + 1 for count in range(most + 1)]
        accepted = np.array([compute_exact_acceptance(test, step) for step in steps])
    else:
        accepted = np.array([compute_acceptance(test, count - cut) for count in range(most + 1)])
    return accepted if is_returned else 1.0 - accepted


def compute_evidence_of_key(test: FunctionalTest) -> float:
    """Return the least likelihood ratio by which a returned key raises the odds that it qualifies.

    It compares a count that qualifies with one that fails by the tolerance.

    >>> from fractions import Fraction
    >>> test = FunctionalTest(0.5, Fraction(1, 2), 3, Fraction(1, 2), Fraction(1, 20), Fraction(1, 10), 5)
    >>> round(compute_evidence_of_key(test), 2)
    9.5
    """
    return math.inf if test.fpr <= 0 else float((1 - test.fnr) / test.fpr)
