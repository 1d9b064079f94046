"""Sums of many noises with whole weights, against their distribution by plain convolution."""

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.noise import noise_sum
from mechanisms.noise.noise_sum import (
    Noises,
    WeightedNoise,
    bound_largest_tail,
    bound_upper_tail,
    find_largest_quantile,
    find_upper_quantile,
    merge_equal_noises,
)
from tests.effort import examples, rounds
from tests.mechanisms.noise.convolved import exact_tail

ABOVE = 2.1e-9  # an exact tail may be higher by as much

sums_of_noise = st.lists(
    st.builds(WeightedNoise, times=st.integers(1, 6), count=st.integers(1, 3), rate=st.floats(0.3, 4.0)),
    min_size=1,
    max_size=3,
).map(merge_equal_noises)
wide_sums = st.lists(
    st.builds(WeightedNoise, times=st.integers(1, 3), count=st.integers(1, 2), rate=st.floats(0.08, 0.3)),
    min_size=2,
    max_size=3,
).map(merge_equal_noises)
places = st.floats(-3.0, 6.0)  # of a value, in standard deviations


def at_place(noises: Noises, place: float) -> int:
    """Return a value so many standard deviations from 0."""
    variance = sum(one.count * one.times**2 * 2.0 * math.exp(-one.rate) / math.expm1(-one.rate) ** 2 for one in noises)
    return round(place * math.sqrt(variance))


@contextmanager
def continuous_noise(*, terms: int = noise_sum._LEAST_TERMS) -> Iterator[None]:
    """Compare every sum of several noises with continuous noise, by series of at least so many terms."""
    noise_sum._expand_series.cache_clear()
    with (
        patch.object(noise_sum, "MOST_POINTS", 1),
        patch.object(noise_sum, "_LEAST_TERMS", terms),
        patch.object(noise_sum, "_MOST_TERMS", 16 * terms),
    ):
        yield
    noise_sum._expand_series.cache_clear()


@examples(300, quick=60)
@given(noises=sums_of_noise, place=places)
def test_a_tail_is_that_of_the_convolution(noises: Noises, place: float) -> None:
    value = at_place(noises, place)
    exact = exact_tail(noises, value)
    assert exact - 1e-14 <= bound_upper_tail(noises, value) <= exact + ABOVE


@examples(100)
@given(noises=sums_of_noise, place=places, wider=st.integers(2, 5), beyond=st.integers(0, 4))
def test_tails_are_symmetric_fall_and_keep_to_their_lattice(
    noises: Noises, place: float, wider: int, beyond: int
) -> None:
    """A sum of multiples of a number is beyond a value from the next multiple on."""
    value = at_place(noises, place)
    assert 1.0 <= bound_upper_tail(noises, value) + bound_upper_tail(noises, 1 - value) <= 1.0 + 2 * ABOVE
    assert bound_upper_tail(noises, value + 1) <= bound_upper_tail(noises, value) + ABOVE
    scaled = tuple(WeightedNoise(one.times * wider, one.count, one.rate) for one in noises)
    between = value * wider - beyond % wider
    assert bound_upper_tail(scaled, between) == pytest.approx(bound_upper_tail(noises, value), abs=ABOVE)


@examples(100)
@given(noises=sums_of_noise | wide_sums, place=st.floats(0.1, 6.0), terms=st.sampled_from((1 << 4, 1 << 10)))
def test_continuous_noise_is_never_below_and_not_far_above(noises: Noises, place: float, terms: int) -> None:
    """Its tail is at most that of a value nearer by twice what rounding moves. Short series are above it as well."""
    value = at_place(noises, place)
    moved = 2.0 * math.sqrt(7.0 * sum(one.count * one.times**2 for one in noises))
    with continuous_noise(terms=terms):
        found = bound_upper_tail(noises, value)
    assert found >= exact_tail(noises, value) - 1e-14
    if value > moved and terms > 16 and len(noises) + noises[0].count > 2:
        assert found <= 1.002 * exact_tail(noises, math.floor(value - moved)) + 1e-7


@examples(100)
@given(noises=sums_of_noise | wide_sums, place=st.floats(0.1, 6.0))
def test_quick_bounds_are_never_below(noises: Noises, place: float) -> None:
    value = max(1, at_place(noises, place))
    assert noise_sum._bound_by_moments(noises, value) >= exact_tail(noises, value)


@examples(100)
@given(kinds=st.lists(sums_of_noise, min_size=1, max_size=4), place=places, share=st.floats(1e-6, 0.4))
def test_of_several_sums_the_most_likely_decides(kinds: list[Noises], place: float, share: float) -> None:
    value = at_place(kinds[0], place)
    largest = max(exact_tail(noises, value) for noises in kinds)
    assert largest - 1e-14 <= bound_largest_tail(kinds, value) <= largest + ABOVE
    assert find_largest_quantile(kinds, share) == max(find_upper_quantile(noises, share) for noises in kinds)


@pytest.mark.parametrize("share", [0.1, 0.001])
@pytest.mark.parametrize(
    "noises",
    [
        merge_equal_noises([WeightedNoise(1, 12, 0.003)]),
        merge_equal_noises([WeightedNoise(5, 1, 0.002), WeightedNoise(6, 1, 0.002)]),
        merge_equal_noises([WeightedNoise(1, 1, 2e-4), WeightedNoise(2, 30, 2e-3)]),
        merge_equal_noises([WeightedNoise(27, 1, 2e-3), WeightedNoise(1, 27, 2e-3)]),
    ],
)
def test_continuous_noise_costs_a_hundredth_of_the_reach(noises: Noises, share: float) -> None:
    with patch.object(noise_sum, "MOST_POINTS", 1 << 20):
        exact = find_upper_quantile(noises, share)
    with continuous_noise():
        assert exact <= find_upper_quantile(noises, share) <= 1.01 * exact


@pytest.mark.parametrize("count", [2, 12])
def test_the_reach_of_wide_noise_grows_with_its_width(count: int) -> None:
    """A millionth of a rate is compared with continuous noise, a thousandth is not."""
    narrow, wide = (find_upper_quantile((WeightedNoise(1, count, rate),), 0.01) * rate for rate in (1e-3, 1e-6))
    assert 0.998 * narrow <= wide <= 1.004 * narrow


@examples(100)
@given(noises=sums_of_noise, share=st.floats(1e-6, 0.4))
def test_a_reach_is_the_least_value_with_a_tail_of_at_most_a_share(noises: Noises, share: float) -> None:
    found = find_upper_quantile(noises, share)
    assert found >= 1
    assert exact_tail(noises, found) <= share
    if found > 1:
        assert exact_tail(noises, found - 1) > share - ABOVE


@pytest.mark.parametrize("share", [1e-9, 1e-13, 1e-100, 1e-300])
@pytest.mark.parametrize("noises", [(WeightedNoise(1, 2, 0.5),), (WeightedNoise(1, 1, 0.5), WeightedNoise(3, 2, 1e-6))])
def test_every_share_is_reached(noises: Noises, share: float) -> None:
    """The inverted distribution has an error of a billionth, so that it reaches none of these."""
    found = find_upper_quantile(noises, share)
    alone = min(one.rate / one.times for one in noises)
    assert math.log(1.0 / share) <= found * alone <= 3.0 * math.log(1.0 / share)


@examples(60, quick=20)
@given(noises=sums_of_noise, value=st.integers(1, 60))
def test_the_bound_of_far_tails_is_above_the_convolution(noises: Noises, value: int) -> None:
    """Up to the rounding of the convolution."""
    assert noise_sum._bound_by_moments(noises, value) >= exact_tail(noises, value) - 1e-15


def test_alike_noises_are_counted_together() -> None:
    one, other = WeightedNoise(1, 1, 0.5), WeightedNoise(2, 2, 0.5)
    assert merge_equal_noises([other, one, one, WeightedNoise(1, 1, 0.25)]) == (
        WeightedNoise(1, 1, 0.25),
        WeightedNoise(1, 2, 0.5),
        other,
    )


def cell_loss(weights: tuple[int, ...], tolerance: int) -> float:
    """Return the least rate of one noise a cell at which a reading errs at (.05, .1) within a tolerance."""
    low, high = 1e-3, 1.0
    while high > 1.0001 * low:
        rate = (low * high) ** 0.5
        noises = merge_equal_noises([WeightedNoise(weight, 1, rate) for weight in weights])
        enough = find_upper_quantile(noises, 0.05) + find_upper_quantile(noises, 0.1) <= tolerance + 2
        low, high = (low, rate) if enough else (rate, high)
    return high


@pytest.mark.parametrize(
    ("weights", "tolerance", "loss"),
    [
        pytest.param((1, 1), 100, 0.0564, id="a difference"),
        pytest.param((1,) * 3, 100, 0.0697, id="three months"),
        pytest.param((1,) * 6, 100, 0.0994, id="six months"),
        pytest.param((1,) * 12, 100, 0.1422, id="twelve months"),
        pytest.param((5, 6), 500, 0.0625, id="growth"),
    ],
)
def test_cells_lose_what_the_theory_says(weights: tuple[int, ...], tolerance: int, loss: float) -> None:
    assert cell_loss(weights, tolerance) == pytest.approx(loss, abs=6e-5)


def test_the_quantile_of_wide_noise_is_that_of_bisection_for_a_third_of_the_tails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tails: list[int] = []

    def count(noises: Noises, value: int) -> float:
        tails.append(value)
        return bound_upper_tail(noises, value)

    monkeypatch.setattr(noise_sum, "bound_upper_tail", count)
    drawn, guessed, halved = random.Random(5), 0, 0
    for _ in range(rounds(200, quick=40)):
        noises = merge_equal_noises(
            [
                WeightedNoise(drawn.choice((1, 2, 7, 500)), drawn.choice((1, 5, 499)), 10 ** drawn.uniform(-6, -4))
                for _ in range(drawn.choice((1, 2, 3)))
            ]
        )
        share = 10 ** drawn.uniform(-6, -0.4)
        found = find_upper_quantile(noises, share)
        guessed += len(tails)
        tails.clear()
        low, high = 0, 1
        while count(noises, high) > share:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if count(noises, middle) > share else (low, middle)
        halved += len(tails)
        tails.clear()
        assert found == high, (noises, share)
    assert 3 * guessed < halved
