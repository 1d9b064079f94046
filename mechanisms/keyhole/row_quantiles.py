"""Quantiles of rows that are read off noisy counts of rows in public bins, and how often they err.

Every row is in one bin. The bin of a quantile is found by bisection on noisy counts. A right side that must not be too
high asks for a slightly lower rank, and one that must not be too low for a higher rank. The middle of the bin stands
for the quantile.

Guarantee: the middle is more than `reach` beyond the quantile, on the side where an error would miss a key, at
most as often as `bound_rank_error` says. On the other side, the same holds for the quantile of a rank that is lower or
higher by `slack`. Proof: docs/proofs/row_quantiles.md.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.formula import Booleans, Cut, Integers
from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE
from mechanisms.noise.noise_sum import WeightedNoise, bound_continuous_tail, bound_upper_tail, merge_equal_noises
from mechanisms.protocol import CellNoise, MeanPair, RowQuantile, Unachievable
from mechanisms.threshold.one_shot import round_rate_up

_LARGE = 2.0**61  # from here on products of counts need integers of any length
_NEAR = 1.002  # what the rate of bins may be above the least
_HALF = Fraction(1, 2)  # the share of a median, at which all noises count alike


def bound_quantile_error(pair: MeanPair, kinds: Iterable[Sequence[CellNoise]]) -> float:
    """Return an upper bound of the chance that a quantile is read off a bin too far on one side, for any kind of key.

    Parameters:
        kinds: the noises of all bins, by kind.
    """
    noises = (
        merge_equal_noises([WeightedNoise(one.times, one.count, float(one.rate)) for one in kind]) for kind in kinds
    )
    return max(bound_rank_error(pair, one) for one in noises)


def bound_rank_error(pair: MeanPair, noises: tuple[WeightedNoise, ...]) -> float:
    """Return an upper bound of the chance that bisection ends in a bin too far on one side.

    Parameters:
        noises: those of all bins.
    """
    one = pair.quantile
    assert one is not None
    room = one.slack * pair.other_rows / 2 - 1
    beyond = math.floor(room / max(one.share, 1 - one.share)) + 1
    if room <= 0:
        return 1.0
    tail = bound_upper_tail(noises, beyond) if one.share == _HALF else bound_continuous_tail(noises, beyond - 1)
    return min(1.0, count_bisections(one) * tail)


def count_bisections(one: RowQuantile) -> int:
    """Return the most bins that a bisection looks at."""
    return (one.bins - 1).bit_length()


def find_width_error(pair: MeanPair) -> int:
    """Return the steps by which the middle of a bin differs from its ends, times the quantile's factor."""
    assert pair.quantile is not None
    return math.ceil(abs(pair.quantile.times) * pair.quantile.reach / pair.step)


def find_farthest_side(pair: MeanPair) -> Fraction:
    """Return how far from 0 a multiple of a quantile may be; 0 if none is read."""
    if pair.quantile is None:
        return Fraction(0)
    one = pair.quantile
    return abs(one.times) * (abs(one.first) + one.bins * one.width)


def find_bin_rate(pair: MeanPair, kinds: Iterable[Sequence[tuple[int, int, int]]], share: float) -> Fraction:
    """Return the least rate of the bins' noise, nearly, at which bisection errs with a share at most.

    Parameters:
        kinds: by kind of key, the bins with the weight and the number of their noises.

    Raises:
        Unachievable: no rate suffices.
    """
    count = max(sum(number for _, _, number in kind) for kind in kinds)

    def suffices(rate: float) -> bool:
        noises = (WeightedNoise(1, count, float(round_rate_up(rate))),)
        return bound_rank_error(pair, noises) <= share

    low, high = float(LEAST_RATE), 2.0 * float(LEAST_RATE)
    while not suffices(high):
        low, high = high, 2.0 * high
        if high > GREATEST_RATE:
            raise Unachievable(
                "a quantile of so few rows has no place in a range of ranks so narrow",
                remedy="Demand more rows by a count beside it, or ask for a quantile nearer to the median.",
            )
    while high > low * _NEAR:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return round_rate_up(high)


def find_right_sides(pair: MeanPair, cut: Cut, counts: Sequence[Integers]) -> tuple[npt.NDArray[np.float64], Booleans]:
    """Return the right side of each key, with the quantile of its bins as a literal reads it, and True for all keys.

    Parameters:
        counts: the noisy rows in each bin, by key.
    """
    one = pair.quantile
    assert one is not None
    places = find_bins(one, counts, moved=_find_shift(pair, cut))
    sides = [float(one.times * (one.first + place * one.width) + pair.constant) for place in range(one.bins)]
    return np.array(sides)[places], np.ones(places.size, dtype=np.bool_)


def _find_shift(pair: MeanPair, cut: Cut) -> Fraction:
    """Return how many rows beyond the quantile's rank a literal asks for: fewer if it must not read it too high."""
    one = pair.quantile
    assert one is not None
    half = one.slack * pair.other_rows / 2
    return -half if cut.above == (one.times > 0) else half


def find_bins(one: RowQuantile, counts: Sequence[Integers], *, moved: Fraction) -> Integers:
    """Return the place of the bin with the quantile, by key, at a rank that is moved by a number of rows.

    >>> one = RowQuantile(Fraction(1), Fraction(1, 2), Fraction(1, 10), Fraction(5), Fraction(10), Fraction(5), bins=4)
    >>> counts = [np.array([count]) for count in (10, 30, 20, 20)]
    >>> [int(find_bins(one, counts, moved=moved)[0]) for moved in (Fraction(0), Fraction(1), Fraction(-31))]
    [1, 2, 0]
    """
    by = math.lcm(one.share.denominator, moved.denominator)
    share, bar = int(one.share * by), int(moved * by)
    binned = np.array(counts, dtype=np.int64)
    is_large = float(np.abs(binned).max(initial=0)) * one.bins * by >= _LARGE
    up_to = np.cumsum(binned.astype(object) if is_large else binned, axis=0)
    low = np.zeros(up_to.shape[1], dtype=np.int64)
    high = np.full(up_to.shape[1], one.bins - 1, dtype=np.int64)
    keys = np.arange(up_to.shape[1])
    for _ in range(count_bisections(one)):
        middle = (low + high) // 2
        reached = np.asarray(up_to[middle, keys] * by >= bar + up_to[-1] * share, dtype=np.bool_)
        reached |= low == high
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    return high
