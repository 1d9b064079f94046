"""Uniform perturbation and SPS: the laws that are drawn, and what is kept."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mechanisms.publishing.binomials import draw_binomials, spread_records_evenly
from mechanisms.publishing.reconstruction_privacy import Criterion, compute_published_size
from mechanisms.publishing.sampled_perturbation import find_allowed_sizes, sample_and_perturb
from mechanisms.publishing.uniform_perturbation import (
    compute_attribute_epsilon,
    estimate_counts,
    estimate_share,
    perturb_uniformly,
)
from tests.seeded_noise import SeededNoise

FALSE_ALARM = 1e-8


@pytest.mark.parametrize(
    ("retention", "values", "epsilon"), [(0.2, 10, 1.2528), (0.5, 2, 1.0986), (0.5, 50, 3.9318), (0.8, 2, 2.1972)]
)
def test_the_loss_of_a_value(retention: float, values: int, epsilon: float) -> None:
    assert compute_attribute_epsilon(retention=retention, values=values) == pytest.approx(epsilon, abs=5e-5)


def test_the_loss_of_a_value_is_the_ratio_that_is_drawn() -> None:
    """200,000 records of each of three values, published: a chi-square of each law, and the ratio of two to within a
    hundredth. False alarm 1e-8 each; the seed is fixed."""
    number, retention = 200_000, Fraction(2, 5)
    published = perturb_uniformly(np.eye(3, dtype=np.int64) * number, retention=retention, noise=SeededNoise(5))
    law = np.full((3, 3), 0.2) + 0.4 * np.eye(3)
    for seen, expected in zip(published, law, strict=True):
        assert stats.chisquare(seen, expected * number).pvalue > FALSE_ALARM
    ratio = published[0, 0] / published[1, 0]
    assert np.log(ratio) == pytest.approx(compute_attribute_epsilon(retention=0.4, values=3), abs=0.02)


def test_groups_keep_their_sizes_and_nobody_is_moved_between_them() -> None:
    counts = np.array([[5, 0, 9, 1], [0, 0, 0, 0], [1, 0, 0, 0], [100, 2, 3, 4]])
    for seed in range(20):
        published = perturb_uniformly(counts, retention=Fraction(1, 3), noise=SeededNoise(seed))
        assert published.sum(axis=1).tolist() == counts.sum(axis=1).tolist()
        assert published.min() >= 0
    assert perturb_uniformly(counts, retention=Fraction(1), noise=SeededNoise(1)).tolist() == counts.tolist()


def test_estimates_are_right_on_average() -> None:
    """400 seeded draws of 500 records: the mean of a share has a standard deviation of .003; .02 is far beyond."""
    counts, noise = np.array([[400, 60, 40]]), SeededNoise(9)
    published = [perturb_uniformly(counts, retention=Fraction(1, 2), noise=noise) for _ in range(400)]
    found = np.mean([estimate_counts(one, retention=0.5)[0] for one in published], axis=0)
    assert found == pytest.approx([400, 60, 40], abs=10)
    assert estimate_share(float(published[0][0, 0]), 500, retention=0.5, values=3) * 500 == pytest.approx(
        estimate_counts(published[0], retention=0.5)[0, 0]
    )


def test_binomials_and_even_spreads() -> None:
    """100,000 records each: chi-square at a false alarm of 1e-8; the seed is fixed."""
    noise = SeededNoise(11)
    drawn = draw_binomials(np.array([[0, 100_000], [3, 0]]), probability=Fraction(1, 10), noise=noise)
    assert (drawn[0, 0], drawn[1, 1]) == (0, 0)
    assert drawn[1, 0] <= 3
    assert stats.binomtest(int(drawn[0, 1]), 100_000, 0.1).pvalue > FALSE_ALARM
    spread = spread_records_evenly(np.array([100_000, 0]), over=7, noise=noise)
    assert spread.sum(axis=1).tolist() == [100_000, 0]
    assert stats.chisquare(spread[0]).pvalue > FALSE_ALARM


ASKED = Criterion(retention=0.5, value_count=2, relative_error=0.3, least_tail=0.3, uses_exact_tails=False)


def test_small_groups_are_perturbed_and_large_ones_thinned() -> None:
    """Sizes are kept to within what scaling rounds, a standard deviation of half the root of the thinned size."""
    counts = np.array([[70, 30], [7_600, 2_400], [0, 0], [116, 0]])
    found = sample_and_perturb(counts, ASKED, noise=SeededNoise(3))
    assert found.is_thinned.tolist() == [False, True, False, True]
    assert found.published_counts[0].sum() == 100
    assert found.published_counts[2].sum() == 0
    assert found.published_counts[1].sum() == pytest.approx(10_000, abs=60)
    copies = 10_000 // 117
    assert found.published_counts[1, 0] / copies == pytest.approx(0.63 * 117, abs=30)  # of 117 kept ones, not of 10,000
    assert find_allowed_sizes(counts, ASKED)[1] == compute_published_size(ASKED, 0.76)


def test_thinned_groups_are_estimated_rightly_on_average() -> None:
    """300 seeded draws: a share of .76 with a standard deviation of .085 each, .005 of the mean."""
    noise = SeededNoise(4)
    counts = np.array([[7_600, 2_400]])
    found = [sample_and_perturb(counts, ASKED, noise=noise).published_counts for _ in range(300)]
    shares = [estimate_counts(one, retention=0.5)[0, 0] / one.sum() for one in found]
    assert np.mean(shares) == pytest.approx(0.76, abs=0.03)
    assert np.std(shares) == pytest.approx(0.085, rel=0.3)


def test_a_criterion_that_allows_nothing_leaves_a_group_out() -> None:
    nothing = Criterion(retention=0.7, value_count=2, relative_error=0.3, least_tail=0.3, uses_exact_tails=True)
    found = sample_and_perturb(np.array([[76, 24]]), nothing, noise=SeededNoise(1))
    assert found.is_thinned.tolist() == [True]
    assert found.published_counts.tolist() == [[0, 0]]
