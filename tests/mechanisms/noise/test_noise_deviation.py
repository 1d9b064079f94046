"""The bounds on the error of a standard deviation of noisy numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mechanisms.noise.noise_deviation import find_greatest_excess, find_greatest_shortfall
from tests.effort import rounds
from tests.seeded_noise import SeededNoise

SHARES = (0.1, 0.0125, 0.002)


@pytest.mark.parametrize("cells", [1, 2, 13, 60])
def test_the_root_of_mean_squares_exceeds_its_bound_about_as_often_as_promised(cells: int) -> None:
    """100,000 times (quick: 30,000). With probabilities as promised each count is too high with a probability below
    1e-6. They are at least nine tenths of what is allowed, or each is too low with a probability below 1e-6."""
    many = rounds(100_000, quick=30_000)
    drawn = np.random.default_rng(cells).laplace(size=(many, cells))
    roots = np.sqrt((drawn * drawn).mean(axis=1))
    for share in SHARES:
        beyond = int((roots > find_greatest_excess(cells, share)).sum())
        assert stats.binom.ppf(1e-6, many, 0.9 * share) <= beyond <= stats.binom.isf(1e-6, many, share)


def test_a_bound_of_one_noise_is_its_own_quantile() -> None:
    for share in (*SHARES, 1e-7, 1e-12):
        exact = -math.log(share)
        assert exact * (1 - 1e-9) <= find_greatest_excess(1, share) <= 1.01 * exact


def test_many_cells_stay_near_the_deviation_of_one() -> None:
    """Squares are rounded up to steps, of which many cells have few."""
    for cells in (4_096, 16_384, 16_385, 100_000):
        assert math.sqrt(2) < find_greatest_excess(cells, 0.01) <= 1.1 * math.sqrt(2)


@pytest.mark.parametrize("rate", [Fraction(1, 50), Fraction(1), Fraction(4)])
def test_discrete_noise_is_within_the_bounds_of_continuous_noise(rate: Fraction) -> None:
    """20,000 times (quick: 5,000) ten noises, with weights in three directions. With probabilities as promised each
    count is too high with a probability below 1e-6."""
    many, cells, share = rounds(20_000, quick=5_000), 10, 0.05
    noises = SeededNoise(3).draw_discrete_laplace(rate=rate, size=many * cells).reshape(many, cells)
    most = stats.binom.isf(1e-6, many, share)
    roots = np.sqrt((noises.astype(np.float64) ** 2).mean(axis=1))
    assert (roots > find_greatest_excess(cells, share) / float(rate) + 0.5).sum() <= most
    for weights in ([1.0] + [0.0] * 9, [1.0] * 10, [3.0, 1.0, 1.0] + [0.0] * 7):
        towards = noises @ (np.array(weights) / np.linalg.norm(weights))
        assert (towards > find_greatest_shortfall(share) / float(rate)).sum() <= most
