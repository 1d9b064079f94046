"""Shares read off noisy counts: the published lemma against its published values and against draws."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from mechanisms.risk.disclosure import apply_rule_of_thumb, compute_chance_within, compute_jump, compute_ratio_at_most
from mechanisms.risk.share_learning import (
    SharePair,
    compute_chance_by_disjoint,
    compute_chance_by_ratio,
    find_least_group,
)
from tests.in_turn import in_turn

CHANCES = [
    (1000, 0.5, (0.9995, 0.9752, 0.8244, 0.2569, 0.0513)),
    (1000, 0.7, (1.0, 0.9926, 0.8967, 0.3131, 0.0579)),
    (1000, 0.9, (1.0, 0.9970, 0.9323, 0.3558, 0.0617)),
    (100, 0.5, (0.4685, 0.2569, 0.1345, 0.0513, 0.0447)),
]


@pytest.mark.parametrize(("group", "share", "published"), CHANCES)
def test_lemma_2_has_its_published_values(group: int, share: float, published: tuple[float, ...]) -> None:
    found = [
        compute_chance_within(0.2, group=group, holders=group * share, scale=25 / epsilon)
        for epsilon in (2, 1, 0.5, 0.1, 0.01)
    ]
    assert found == pytest.approx(published, abs=5.01e-5)


def least_ratio(width: float, share: float) -> float:
    """The group size, in scales of the noise, from which the share is learned 7 times in 10."""
    low, high = 1.0, 100.0
    for _ in range(50):
        middle = (low + high) / 2
        learned = compute_chance_within(width, group=middle, holders=share * middle, scale=1.0) >= 0.7
        low, high = (low, middle) if learned else (middle, high)
    return high


@in_turn(
    ("width", "share", "published"),
    [
        (0.2, 0.3, 21.61),
        (0.2, 0.5, 14.33),
        (0.2, 0.7, 11.39),
        (0.2, 0.84, 10.21),
        (0.2, 0.9, 9.82),
        (0.1, 0.5, 28.61),
        (0.3, 0.5, 9.58),
    ],
)
def test_how_many_scales_a_group_needs(width: float, share: float, published: float) -> None:
    assert least_ratio(width, share) == pytest.approx(published, abs=0.005)


LAWS = [(100.0, 50.0, 10.0), (100.0, 80.0, 40.0), (20.0, 3.0, 15.0), (1000.0, 900.0, 25.0)]


@pytest.mark.parametrize(("group", "holders", "scale"), LAWS)
def test_lemma_2_is_the_law_of_the_ratio(group: float, holders: float, scale: float) -> None:
    """10^6 seeded draws each, at 12 places: .001 is two standard deviations at most, and these draws stay within it."""
    drawn = np.random.default_rng(11).laplace(0, scale, (2, 1_000_000))
    ratios = np.sort((holders + drawn[1]) / (group + drawn[0]))
    places = [-2.0, -1.0, -0.3, 0.0, 0.1, 0.5, holders / group, 0.9, 1.0, 1.2, 2.0, 5.0]
    for z in places:
        expected = np.searchsorted(ratios, z, side="right") / ratios.size
        assert compute_ratio_at_most(z, group=group, holders=holders, scale=scale) == pytest.approx(
            expected, abs=1e-3
        ), z


@in_turn("z", [-1.0, 0.0, 1.0])
@in_turn(("group", "holders", "scale"), LAWS)
def test_the_singularities_are_removable(z: float, group: float, holders: float, scale: float) -> None:
    at, below, above = (
        compute_ratio_at_most(z + step, group=group, holders=holders, scale=scale) for step in (0.0, -1e-4, 1e-4)
    )
    assert math.isfinite(at)
    assert below <= at <= above
    assert above - below < 0.02


def test_a_share_whose_upper_end_is_one_is_no_exception() -> None:
    """tau .25 around 80 % ends at z = 1."""
    at = compute_chance_within(0.25, group=100, holders=80, scale=10)
    assert at == pytest.approx(compute_chance_within(0.25 + 1e-5, group=100, holders=80, scale=10), abs=1e-4)
    assert 0.7 < at < 0.8


def test_the_ratio_is_a_distribution() -> None:
    places = np.concatenate([np.linspace(-3, 3, 400), [1.0, -1.0, 0.0]])
    found = [compute_ratio_at_most(float(z), group=40, holders=12, scale=9) for z in np.sort(places)]
    assert all(before <= after + 1e-9 for before, after in pairwise(found))
    assert 0 <= found[0] <= found[-1] <= 1
    assert compute_ratio_at_most(-1e9, group=40, holders=12, scale=9) < 0.01
    assert compute_ratio_at_most(1e9, group=40, holders=12, scale=9) > 0.99


def test_discrete_counts_have_their_published_chances() -> None:
    discrete = compute_chance_by_ratio(0.2, group=500, holders=250, group_rate=0.1, holders_rate=0.1)
    assert discrete == pytest.approx(0.9909, abs=5e-5)
    finer = compute_chance_by_ratio(0.2, group=50, holders=40, group_rate=0.5, holders_rate=0.5)
    assert finer == pytest.approx(0.9640, abs=5e-5)
    assert compute_chance_by_disjoint(0.2, group=50, holders=40, rate=1.0) == pytest.approx(0.99991, abs=5e-6)


def test_fine_noise_is_nearly_continuous() -> None:
    discrete = compute_chance_by_ratio(0.2, group=5000, holders=1500, group_rate=0.004, holders_rate=0.004)
    assert discrete == pytest.approx(compute_chance_within(0.2, group=5000, holders=1500, scale=250), abs=2e-3)


def draw(rate: float, size: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    chosen = np.random.default_rng(seed)
    chance = -math.expm1(-rate)
    return np.asarray(chosen.geometric(chance, size) - chosen.geometric(chance, size))


@pytest.mark.parametrize(("group", "holders", "rate"), [(20, 6, 0.6), (9, 8, 0.9), (4, 2, 2.0), (12, 12, 0.7)])
def test_the_disjoint_attacker_is_as_good_as_in_draws(group: int, holders: int, rate: float) -> None:
    """10^5 seeded draws: off by more than .01 with probability below 1e-9, were they drawn anew."""
    have, have_not = holders + draw(rate, 100_000, 1), group - holders + draw(rate, 100_000, 2)
    share = holders / group
    low, high = 0.8 * share, 1.2 * share
    together = have + have_not
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = have / together
    if high >= 1:
        right = (together > 0) & (estimate >= low - 1e-12)
    else:
        right = (have_not > 0) & (estimate >= low - 1e-12) & (estimate <= high + 1e-12)
    assert compute_chance_by_disjoint(0.2, group=group, holders=holders, rate=rate) == pytest.approx(
        right.mean(), abs=0.01
    )


SIZES = {
    0.5: ((86, 32), (58, 18), (43, 7)),
    1.0: ((42, 12), (28, 8), (20, 6)),
    2.0: ((18, 6), (14, 4), (11, 2)),
}


@pytest.mark.parametrize("epsilon", SIZES)
def test_the_least_groups_are_the_published_ones(epsilon: float) -> None:
    for share, published in zip((0.3, 0.5, 0.8), SIZES[epsilon], strict=True):
        found = tuple(
            find_least_group(share, width=0.2, certainty=0.7, epsilon=epsilon, pair=pair) for pair in SharePair
        )
        assert found == published


def test_large_groups_are_found_by_halves() -> None:
    size = find_least_group(0.5, width=0.1, certainty=0.7, epsilon=0.05, pair=SharePair.GROUP_AND_HOLDERS)
    assert size == pytest.approx(28.61 * 2 / 0.05, rel=0.01)


def test_jumps_and_the_rule_of_thumb() -> None:
    assert compute_jump(group=339, holders=284, base_rate=0.24892) == pytest.approx(0.8378 / 0.24892, abs=2e-3)
    found = [[apply_rule_of_thumb(group=size, scale=b) for size in (5000, 1000, 500, 200, 100)] for b in (10, 200)]
    assert found == [pytest.approx([8e-6, 2e-4, 8e-4, 0.005, 0.02]), pytest.approx([0.0032, 0.08, 0.32, 2, 8])]


def test_what_is_no_share_is_refused() -> None:
    with pytest.raises(ValueError, match="share"):
        compute_chance_within(0.2, group=10, holders=0, scale=1)
    with pytest.raises(ValueError, match="share"):
        compute_chance_by_disjoint(0.2, group=10, holders=11, rate=1)
    with pytest.raises(ValueError, match="group"):
        compute_ratio_at_most(0.5, group=0, holders=0, scale=1)
    with pytest.raises(ValueError, match="base rate"):
        compute_jump(group=10, holders=1, base_rate=0)
    with pytest.raises(ValueError, match="share"):
        find_least_group(0.0, width=0.2, certainty=0.7, epsilon=1, pair=SharePair.HOLDERS_AND_OTHERS)
