"""Secrets put together from many answers: bits of people from random counts, histograms from a threshold test that has
no limit. All data are made up.

The second attack is on what was published as the sparse vector technique and is not private at any finite loss: one
noisy threshold, exact values compared with it, as often as one likes. Comparing all differences of two counts tells
which counts are larger than which, so equal counts fall into one part; half of epsilon then counts each part.

Reference: Chen's thesis, algorithms 5 to 7, tables 3.1 to 3.3.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.protocol import Noise
from mechanisms.risk.reconstruction import reconstruct_bits, single_out_victim, track_victim
from tests.mechanisms.audit.broken import without_limit

Integers = npt.NDArray[np.int64]

PEOPLE = 128
BUDGETS = ((1.0, 128), (2.0, 128), (4.0, 128), (8.0, 128), (16.0, 128), (64.0, 128), (64.0, 512))
"""Epsilon of all counts together, and how many there are."""

CELLS = 2048
EPSILONS = (Fraction(1, 10), Fraction(1, 2), Fraction(1))
_FAILS = 0.05
_SMALL = 5
_EXPONENT = 1.2  # of the law of counts: small ones all occur, as in most real histograms
_LARGEST = 200


@dataclass(frozen=True, slots=True)
class BitsRow:
    """One way to ask: the part of all bits that was guessed right, and what no attack exceeds."""

    attack: str
    epsilon: float | None
    right: float
    bound: float


@dataclass(frozen=True, slots=True)
class HistogramRow:
    """At one epsilon: the part of all cells, and of those of 5 or less, whose count was found to the unit."""

    epsilon: Fraction
    by_threshold: float
    small_by_threshold: float
    by_noisy_counts: float
    small_by_noisy_counts: float


def find_bits(*, runs: int, seed: int, noise: Noise) -> Iterator[BitsRow]:
    """Random counts at each budget; and the ways that need one count or two."""
    for counts in (PEOPLE // 2, PEOPLE):
        exact = reconstruct_bits(people=PEOPLE, counts=counts, epsilon=None, runs=runs, seed=seed, noise=noise)
        yield BitsRow(f"{counts} exact counts", None, exact.right_share, exact.bound)
    for epsilon, counts in BUDGETS:
        noisy = reconstruct_bits(people=PEOPLE, counts=counts, epsilon=epsilon, runs=runs, seed=seed, noise=noise)
        yield BitsRow(f"{counts} noisy counts", epsilon, noisy.right_share, noisy.bound)
    for name, attack in (
        ("two counts that differ by the victim", track_victim),
        ("one count of the victim", single_out_victim),
    ):
        found = attack(1.0)
        yield BitsRow(name, 1.0, found.right_share, found.bound)


def find_histograms(*, runs: int, seed: int, noise: Noise) -> Iterator[HistogramRow]:
    """By the broken test; and by Laplace noise of the whole epsilon on every count, rounded."""
    counts = draw_histogram(seed=seed)
    for epsilon in EPSILONS:
        found = []
        for _ in range(runs):
            broken = reconstruct_histogram(counts, epsilon=epsilon, noise=noise)
            honest = np.maximum(counts + noise.draw_discrete_laplace(rate=epsilon, size=counts.size), 0)
            hits = [estimate == counts for estimate in (broken, honest)]
            found.append([part for hit in hits for part in (hit.mean(), hit[counts <= _SMALL].mean())])
        yield HistogramRow(epsilon, *np.mean(found, axis=0).tolist())


def draw_histogram(*, seed: int, cells: int = CELLS) -> Integers:
    """Counts of a law with a long tail: most are small, and all small ones occur."""
    values = np.arange(_LARGEST + 1)
    chances = (values + 1.0) ** -_EXPONENT
    return np.random.default_rng(seed).choice(values, size=cells, p=chances / chances.sum())


def reconstruct_histogram(counts: Integers, *, epsilon: Fraction, noise: Noise) -> Integers:
    """Algorithm 7 on the test without a limit or noise on values: half of epsilon for each step."""
    half = epsilon / 2
    parts = partition_cells(counts, epsilon=half, noise=noise)
    sums = np.bincount(parts, weights=counts).astype(np.int64)
    noisy = sums + noise.draw_discrete_laplace(rate=half, size=sums.size)
    return np.asarray(np.rint(noisy / np.bincount(parts)), dtype=np.int64)[parts]


def partition_cells(counts: Integers, *, epsilon: Fraction, noise: Noise) -> Integers:
    """Algorithm 6: cells are in one part if the test says the same of their differences to every other cell."""
    threshold = math.ceil(math.log(1 / _FAILS) / epsilon)
    differences = (counts[np.newaxis, :] - counts[:, np.newaxis]).reshape(1, -1)
    larger = without_limit(differences - threshold, threshold_rate=epsilon, query_rate=None, noise=noise)
    _, parts = np.unique(larger.reshape(len(counts), -1), axis=0, return_inverse=True)
    return np.asarray(parts.reshape(-1), dtype=np.int64)
