"""Medians of medians by a noisy maximum: its loss by enumeration, its law, its bins; published constants."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from mechanisms.diagnostics.private_edges import find_edges, find_noisy_maximum
from mechanisms.diagnostics.recursive_medians import ADMISSIBLE, compute_smooth_sensitivity, find_recursive_medians
from tests.effort import rounds
from tests.seeded_noise import SeededNoise

FALSE_ALARM = 1e-8
Floats = npt.NDArray[np.float64]


def law_of_maximum(scores: Sequence[int], rate: float) -> Floats:
    """The exact law of the index, by the winning value: it is `top`, the others lie below, or at most at it."""
    values = np.asarray(scores)
    tops = np.arange(values.min(), values.max() + math.ceil(60 / rate))
    masses = np.where(tops >= values[:, np.newaxis], -math.expm1(-rate) * np.exp(-rate * (tops - values[:, None])), 0)
    upto = np.where(tops >= values[:, np.newaxis], -np.expm1(-rate * (tops - values[:, None] + 1)), 0)
    below = np.where(tops > values[:, np.newaxis], -np.expm1(-rate * (tops - values[:, None])), 0)
    return np.array(
        [
            float(np.sum(masses[i] * np.prod(below[:i], axis=0) * np.prod(upto[i + 1 :], axis=0)))
            for i in range(len(values))
        ]
    )


def cut_scores(counts: Sequence[int]) -> list[int]:
    return [-abs(sum(counts[:place]) - sum(counts[place:])) for place in range(1, len(counts))]


def test_the_loss_of_a_noisy_maximum_by_exact_enumeration() -> None:
    """Random rows in up to six cells and one row more: no loss above 2 rates, and one comes near. No false alarm."""
    generator = np.random.default_rng(61)
    largest = 0.0
    for _ in range(rounds(2_000, quick=200)):
        counts = generator.integers(0, 6, size=int(generator.integers(3, 7))).tolist()
        more = list(counts)
        more[int(generator.integers(0, len(counts)))] += 1
        rate = float(generator.choice([0.05, 0.3, 1.0]))
        here, there = (law_of_maximum(cut_scores(one), rate) for one in (counts, more))
        assert here.sum() == pytest.approx(1.0, abs=1e-9)
        largest = max(largest, float(np.max(np.abs(np.log(here / there)))) / (2 * rate))
    assert 0.8 < largest <= 1 + 1e-9


def test_a_noisy_maximum_follows_its_law() -> None:
    """3,000 draws and more, chi-square; false alarm 1e-8."""
    scores = np.array([-3, 0, -1, -1, -7])
    noise = SeededNoise(62)
    draws = rounds(20_000, quick=3_000)
    found = [find_noisy_maximum(scores, rate=Fraction(1, 3), noise=noise) for _ in range(draws)]
    expected = law_of_maximum(scores.tolist(), 1 / 3) * draws
    assert stats.chisquare(np.bincount(found, minlength=5), expected, sum_check=False).pvalue > FALSE_ALARM


def test_with_little_noise_bins_are_of_equal_size() -> None:
    counts = np.random.default_rng(63).poisson(np.linspace(0, 20, 256))
    edges = find_edges(counts, levels=3, epsilon=Fraction(100), most_rows=1, noise=SeededNoise(64))
    sizes = np.add.reduceat(counts, edges[:-1])
    assert (edges[0], edges[-1], len(sizes)) == (0, 256, 8)
    assert sizes.max() - sizes.min() < 0.2 * sizes.mean()


def test_where_there_is_nothing_to_cut_there_are_fewer_bins() -> None:
    assert find_edges(np.array([5]), levels=4, epsilon=Fraction(1), most_rows=1, noise=SeededNoise(1)) == (0, 1)
    edges = find_edges(np.array([5, 5, 5]), levels=4, epsilon=Fraction(1), most_rows=1, noise=SeededNoise(1))
    assert edges == (0, 1, 2, 3)


def brute_sensitivity(ordered: Sequence[float], *, low: float, high: float, smoothness: float, grid: Floats) -> float:
    """The largest `exp(-k b)` times a move of the median, over databases made by adding k values of a grid."""

    def median(values: Sequence[float]) -> float:
        return sorted(values)[len(values) // 2] if values else high

    largest, layer = 0.0, {tuple(ordered)}
    for distance in range(3):
        following = set()
        for values in layer:
            neighbours = [tuple(sorted((*values, float(one)))) for one in grid]
            neighbours += [values[:place] + values[place + 1 :] for place in range(len(values))]
            following.update(neighbours)
            for other in neighbours:
                moved = abs(median(values) - median(other))
                largest = max(largest, math.exp(-distance * smoothness) * moved)
        layer = following
    return largest


def test_the_smooth_sensitivity_is_smooth_and_no_less_than_any_move() -> None:
    """Small lists, by brute force over neighbours at up to two steps. No false alarm."""
    generator = np.random.default_rng(65)
    grid = np.linspace(0, 1, 4)
    for _ in range(rounds(40, quick=6)):
        ordered = np.sort(generator.choice(grid, size=int(generator.integers(1, 4))))
        for smoothness in (0.1, 0.5):
            here = compute_smooth_sensitivity(ordered, 0.0, 1.0, smoothness=smoothness)
            least = brute_sensitivity(ordered.tolist(), low=0.0, high=1.0, smoothness=smoothness, grid=grid)
            assert here >= least - 1e-12
            for value in grid:
                more = compute_smooth_sensitivity(np.sort(np.append(ordered, value)), 0.0, 1.0, smoothness=smoothness)
                assert abs(math.log(here / more)) <= smoothness + 1e-9


def loss_of_cauchy(one: Floats, other: Floats, *, epsilon: float, smoothness: float, times: float) -> float:
    """The largest logarithm of the ratio of the two densities of a noisy median."""
    at = np.linspace(-400, 401, 40_001)
    logs = []
    for values in (one, other):
        width = times * compute_smooth_sensitivity(values, 0.0, 1.0, smoothness=smoothness) / epsilon
        middle = values[len(values) // 2]
        logs.append(-np.log(width) - np.log1p(((at - middle) / width) ** 2))
    return float(np.max(np.abs(logs[0] - logs[1])))


@pytest.mark.parametrize("epsilon", [0.05, 0.2])
def test_the_repaired_constants_lose_no_more_than_epsilon_and_the_printed_ones_may(epsilon: float) -> None:
    """Densities on small lists: with smoothness epsilon and 8 S / epsilon a change of S by exp(epsilon) alone is paid
    in full, before the median moves; with epsilon / 6 and 6 S / epsilon both together are within epsilon."""
    generator = np.random.default_rng(66)
    printed, repaired = 0.0, 0.0
    for _ in range(rounds(40, quick=4)):
        values = np.sort(generator.random(int(generator.integers(5, 40))))
        for value in (0.0, 0.5, 1.0):
            more = np.sort(np.append(values, value))
            printed = max(printed, loss_of_cauchy(values, more, epsilon=epsilon, smoothness=epsilon, times=8.0))
            repaired = max(
                repaired,
                loss_of_cauchy(values, more, epsilon=epsilon, smoothness=epsilon / ADMISSIBLE, times=ADMISSIBLE),
            )
    assert repaired <= epsilon
    assert printed > repaired


def test_published_medians_lie_in_order_within_the_interval() -> None:
    values = np.random.default_rng(67).random(2000)
    found = find_recursive_medians(
        values.tolist(), low=0.0, high=1.0, levels=3, epsilon=Fraction(9), noise=SeededNoise(68)
    )
    assert len(found) == 7
    assert all(0 < before <= after < 1 for before, after in pairwise(found))
    assert found == pytest.approx([place / 8 for place in range(1, 8)], abs=0.1)
