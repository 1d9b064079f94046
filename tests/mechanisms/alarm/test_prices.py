"""Prices of ways to watch a window: the known ones to their last digit, and each by another way of computing it."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from mechanisms.alarm import prices
from mechanisms.alarm.calibration import price_alarm
from mechanisms.alarm.laplace_sums import add_quantiles, find_upper_quantile
from mechanisms.alarm.prices import (
    PricedWay,
    WatchedWindow,
    Way,
    price_block_noise,
    price_each_look,
    price_hopping_alarms,
    price_signed_tree,
    price_tick_noise,
    price_ways,
)
from mechanisms.alarm.shapes import Regime
from tests.effort import cases, rounds

FNR, FPR = 0.05, 0.1


def ways(
    length: int, hop: int, *, clearing: int, regime: Regime = Regime.GROWING, rows_stay: bool = True
) -> tuple[PricedWay, ...]:
    window = WatchedWindow(length=length, hop=hop)
    return price_ways(window, fnr=FNR, fpr=FPR, clearing=clearing, regime=regime, is_append_only=rows_stay)


def test_asked_afresh() -> None:
    for looks, price in ((1, 3.912), (24, 93.9), (168, 657.2), (365, 1427.9), (10_000, 39_120.2)):
        assert price_each_look(looks=looks, fnr=FNR, fpr=FPR) == pytest.approx(price, abs=0.06)


def test_noise_on_each_tick() -> None:
    for length, price in ((2, 5.67), (7, 10.82), (12, 14.23), (24, 20.20), (168, 53.61), (365, 79.05)):
        assert round(price_tick_noise(length=length, fnr=FNR, fpr=FPR), 2) == price
    assert round(price_tick_noise(length=10_000, fnr=FNR, fpr=FPR)) == 414


@pytest.mark.parametrize("terms", [1, 3, 24])
def test_sums_of_noise_by_their_law(terms: int) -> None:
    """Laplace noise of scale 1, convolved by powers of its characteristic function on a grid."""
    step, size = 0.01, 1 << 15
    grid = (np.arange(size) - size // 2) * step
    one = stats.laplace.cdf(grid + step / 2) - stats.laplace.cdf(grid - step / 2)
    law = np.fft.fftshift(np.fft.irfft(np.fft.rfft(np.fft.ifftshift(one)) ** terms, size))
    for chance in (0.05, 0.1, 0.001):
        reached = grid[np.searchsorted(np.cumsum(law), 1.0 - chance)]
        assert find_upper_quantile(chance, fine=terms) == pytest.approx(reached, abs=0.02)


def test_sums_of_two_kinds_of_noise_by_their_law() -> None:
    """Equal scales by the formula for equal ones, and unequal ones by a normal law where there are many terms."""
    for fine, coarse in ((1, 2), (2, 2), (5, 9)):
        for chance in (0.05, 0.1):
            equal = find_upper_quantile(chance, fine=fine + coarse)
            assert find_upper_quantile(chance, fine=fine, coarse=coarse, ratio=1 + 1e-9) == pytest.approx(
                equal, rel=1e-6
            )
    spread = math.sqrt(2 * (400 + 300 * 1.5**2))
    normal = spread * float(stats.norm.isf(0.05))
    assert find_upper_quantile(0.05, fine=400, coarse=300, ratio=1.5) == pytest.approx(normal, rel=2e-3)
    assert find_upper_quantile(0.5, fine=3) == 0.0


def test_noise_on_ticks_and_blocks() -> None:
    for length, price in ((60, 27.9), (168, 35.8), (365, 42.9), (10_000, 98.7)):
        assert round(price_block_noise(length=length, fnr=FNR, fpr=FPR)[0], 1) == price
    assert price_block_noise(length=1, fnr=FNR, fpr=FPR) == (add_quantiles(fnr=FNR, fpr=FPR, fine=1), 1)


@pytest.mark.parametrize(("length", "block"), cases((7, 24, 61), (2, 5, 9, 24), quick=6))
def test_every_window_is_put_together_from_ticks_and_blocks(length: int, block: int) -> None:
    """By brute force, wherever it ends: no window needs noise of a greater variance than the worst one."""
    variance, made = prices._find_worst_sum(length, block)
    worst = 0.0
    for end in range(10 * block * length, 10 * block * length + block):
        begin, sums = end - length, []
        for left, right in product((0, 1), (0, 1)):
            low, high = (begin // block + left) * block, (end // block + right) * block
            ticks, blocks = abs(begin - low) + abs(end - high), (high - low) // block
            if blocks >= 0:
                sums.append(ticks / made.loss_share_of_ticks**2 + blocks / (1 - made.loss_share_of_ticks) ** 2)
        worst = max(worst, min(sums))
    assert variance == pytest.approx(worst)


def test_trees_with_subtraction() -> None:
    for looks, price in ((24, 20.0), (168, 34.0), (365, 42.1), (10_000, 77.3)):
        assert round(price_signed_tree(looks=looks, fnr=FNR, fpr=FPR), 1) == price
    assert price_signed_tree(looks=1, fnr=FNR, fpr=FPR) == add_quantiles(fnr=FNR, fpr=FPR, fine=1)


@pytest.mark.parametrize(("looks", "degree", "levels"), [(24, 6, 2), (40, 3, 3), (100, 4, 3), (9, 2, 1)])
def test_nodes_of_a_tree_by_hand(looks: int, degree: int, levels: int) -> None:
    """Shortest ways from zero by steps of powers of the degree, up and down, found by spreading outward."""
    nodes, reached, steps = 0, {0}, [degree**level for level in range(levels)]
    waiting = set(range(1, looks + 1))
    while waiting:
        nodes += 1
        reached |= {at + sign * step for at in reached for step in steps for sign in (1, -1)}
        waiting -= reached
    assert prices._count_most_nodes(looks, degree, levels) == nodes


def test_hopping_windows() -> None:
    for length, hop, price in ((24, 12, 12.8), (168, 84, 16.7)):
        window = WatchedWindow(length=length, hop=hop)
        assert round(price_hopping_alarms(window, fnr=FNR, fpr=FPR, regime=Regime.GROWING), 1) == price


@pytest.mark.parametrize(("length", "price"), [(24, 19.1), (168, 23.0), (365, 24.6)])
def test_a_sliding_window_that_may_clear_late_is_an_alarm(length: int, price: float) -> None:
    found = ways(length, 1, clearing=length)
    assert (found[0].way, found[0].regime, round(found[0].price, 1)) == (Way.ALARM_PER_EPOCH, Regime.SLIDING, price)
    assert [one.price for one in found] == sorted(one.price for one in found)


@pytest.mark.parametrize(
    ("length", "way"), [(2, Way.TICK_NOISE), (24, Way.TICK_NOISE), (60, Way.BLOCK_NOISE), (365, Way.BLOCK_NOISE)]
)
def test_a_sliding_window_that_clears_at_once_is_noise(length: int, way: Way) -> None:
    found = ways(length, 1, clearing=0)
    assert found[0].way is way
    assert {one.way for one in found} == {Way.TICK_NOISE, Way.BLOCK_NOISE, Way.AFRESH}
    assert all(one.clearing_looks == 0 and one.is_per_look and one.regime is None for one in found)


def test_a_tumbling_window_is_an_alarm_where_it_may_stand_until_it_closes() -> None:
    assert [one.way for one in ways(24, 24, clearing=24)] == [Way.ALARM, Way.SIGNED_TREE, Way.AFRESH]
    assert [one.way for one in ways(24, 24, clearing=23)] == [Way.SIGNED_TREE, Way.AFRESH]
    first = ways(24, 24, clearing=24)[0]
    assert first.price == price_alarm(looks=24, fnr=FNR, fpr=FPR, regime=Regime.GROWING)
    assert (first.clearing_looks, first.is_per_look, first.regime) == (24, False, Regime.GROWING)


@pytest.mark.parametrize("regime", [Regime.COMING_AND_GOING, Regime.SIGNED])
def test_values_that_do_not_grow_have_alarms_of_their_regime(regime: Regime) -> None:
    for length, hop in ((24, 24), (24, 12)):
        found = ways(length, hop, clearing=24, regime=regime)
        alarm = next(one for one in found if one.regime is not None)
        times = length // hop
        assert alarm.price == times * price_alarm(looks=hop, fnr=FNR, fpr=FPR, regime=regime)
    assert all(one.way is not Way.ALARM_PER_EPOCH for one in ways(24, 1, clearing=24, regime=regime))


def test_noise_that_is_drawn_once_is_for_rows_that_stay() -> None:
    for hop, expected in ((24, [Way.ALARM, Way.AFRESH]), (1, [Way.AFRESH])):
        found = ways(24, hop, clearing=24, regime=Regime.COMING_AND_GOING, rows_stay=False)
        assert [one.way for one in found] == expected
    # a formula of either sign over rows that stay may have it all the same
    assert ways(24, 1, clearing=0, regime=Regime.SIGNED)[0].way is Way.TICK_NOISE


def test_a_hopping_window_clears_within_a_hop() -> None:
    assert [one.way for one in ways(24, 12, clearing=12)] == [Way.ALARM_PER_HOP, Way.AFRESH]
    assert [one.way for one in ways(24, 12, clearing=11)] == [Way.AFRESH]


def test_an_alarm_is_at_most_a_constant_above_what_is_possible() -> None:
    """And below every other way of a tumbling window, by a factor that grows with its looks."""
    above = math.log(1 / (4 * FNR) / (1 - FNR - FPR))
    for looks in (1, 24, 10_000):
        least = math.log(looks * (1 - FNR - FPR) / FPR)
        assert price_alarm(looks=looks, fnr=FNR, fpr=FPR, regime=Regime.GROWING) == pytest.approx(least + above)
    saved = [ways(looks, looks, clearing=looks) for looks in (24, 168, 365, rounds(10_000, quick=1_000))]
    factors = [second.price / first.price for first, second, *_ in saved]
    assert factors == sorted(factors)
    assert factors[0] > 2.8


@pytest.mark.parametrize(("length", "hop"), [(0, 1), (24, 5), (24, 25), (24, 0)])
def test_windows_fit_their_hops(length: int, hop: int) -> None:
    with pytest.raises(ValueError, match="hops"):
        WatchedWindow(length=length, hop=hop)
