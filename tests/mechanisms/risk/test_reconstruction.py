"""Attacks that are really tried stay below their bounds, and find as much as was published."""

from fractions import Fraction

import pytest

from mechanisms.risk.reconstruction import reconstruct_bits, single_out_victim, track_victim
from tests.seeded_noise import SeededNoise


@pytest.mark.parametrize(
    ("epsilon", "counts", "published"), [(1.0, 128, 0.507), (16.0, 128, 0.605), (64.0, 128, 0.802)]
)
def test_random_counts_find_as_many_bits_as_was_published(epsilon: float, counts: int, published: float) -> None:
    """Six seeded cells, 768 bits: a band of .08 is four standard deviations, and these draws stay within it."""
    attack = reconstruct_bits(people=128, counts=counts, epsilon=epsilon, runs=6, seed=1, noise=SeededNoise(1))
    assert attack.right_share == pytest.approx(published, abs=0.08)
    assert attack.right_share < attack.bound


def test_exact_counts_find_every_bit_as_soon_as_there_are_enough() -> None:
    every = reconstruct_bits(people=64, counts=80, epsilon=None, runs=3, seed=1, noise=SeededNoise(1))
    assert every.right_share == 1.0
    half = reconstruct_bits(people=64, counts=32, epsilon=None, runs=6, seed=1, noise=SeededNoise(1))
    assert 0.7 < half.right_share < 0.92


def test_the_tracker_is_as_good_as_in_draws() -> None:
    """20,000 seeded differences: off by more than .02 with probability below 1e-7, were they drawn anew."""
    noise = SeededNoise(2)
    with_him, without = (noise.draw_discrete_laplace(rate=Fraction(1, 2), size=20_000) for _ in range(2))
    right = (with_him - without <= 0).mean()  # his bit is zero: the difference is noise
    assert track_victim(1.0).right_share == pytest.approx(right, abs=0.02)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_attacks_stand_in_order(epsilon: float) -> None:
    assert (
        0.5
        < track_victim(epsilon).right_share
        < single_out_victim(epsilon).right_share
        == single_out_victim(epsilon).bound
    )


def test_the_single_count_reaches_the_bound_in_draws() -> None:
    """20,000 seeded draws: as above."""
    noise = SeededNoise(3).draw_discrete_laplace(rate=Fraction(1), size=20_000)
    assert single_out_victim(1.0).right_share == pytest.approx((noise <= 0).mean(), abs=0.02)


@pytest.mark.parametrize("wrong", [0, -1])
def test_attacks_need_people(wrong: int) -> None:
    with pytest.raises(ValueError, match="people"):
        reconstruct_bits(people=wrong, counts=1, epsilon=1.0, runs=1, seed=1, noise=SeededNoise(1))
    with pytest.raises(ValueError, match="loss"):
        track_victim(0.0)
