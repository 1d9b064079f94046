"""Comparisons of means on exact sums: the truth that owners measure and tests expect.

The sums, cells and pairs are those of `cell_means.py`. Nothing here is released.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mechanisms.formula import Booleans, Integers
from mechanisms.keyhole.group_averages import AveragedGroups
from mechanisms.keyhole.row_deviations import exceeds_deviation
from mechanisms.keyhole.row_quantiles import find_bins
from mechanisms.protocol import MeanPair


def compare_exact_means(
    pair: MeanPair, sums: Sequence[Integers], groups: AveragedGroups | None = None
) -> tuple[Integers, Booleans]:
    """Return the sign of the difference of both sides for each key, and True for keys whose means have rows.

    It is exact, except that the middle of its bin stands for a quantile of rows.

    Parameters:
        groups: as for `decide_means`. Groups without rows have no mean.
    """
    if pair.quantile is not None:
        return _compare_quantiles(pair, sums)
    exact = [*zip(*(map(int, values) for values in sums), strict=True)]
    if groups is not None:
        averages = groups.average_exactly()
        exact = [(*one[:2], *_take_quotient(average)) for one, average in zip(exact, averages, strict=True)]
    found = [_compare_exact_mean(pair, *one) for one in exact]
    sign = np.array([one or 0 for one in found], dtype=np.int64)
    return sign, np.array([one is not None for one in found], dtype=np.bool_)


def _take_quotient(number: Fraction | None) -> tuple[int, int]:
    return (0, 0) if number is None else (number.numerator, number.denominator)


def _compare_exact_mean(
    pair: MeanPair, total: int, rows: int, other_total: int, other_rows: int, squares: int = 0
) -> int | None:
    """Return the sign of the difference of both sides. Return None if one of them has no value."""
    one = pair.deviation
    if rows <= 0 or other_rows <= (one is not None and one.is_sample):
        return None
    difference = Fraction(total, rows) - pair.other_factor * Fraction(other_total, other_rows) - pair.constant
    if one is not None:
        return exceeds_deviation(difference, one, (other_total, other_rows, squares))
    return (difference > 0) - (difference < 0)


def _compare_quantiles(pair: MeanPair, sums: Sequence[Integers]) -> tuple[Integers, Booleans]:
    """Return the signs with the middle of its bin for the quantile, and True for keys whose sides have rows."""
    one, rows, counts = pair.quantile, sums[1], sums[2:]
    assert one is not None
    places, known = find_bins(one, counts, moved=Fraction(0)), (rows > 0) & (np.sum(counts, axis=0) > 0)
    sign = np.zeros(rows.size, dtype=np.int64)
    for key in np.flatnonzero(known):
        right = one.times * (one.first + int(places[key]) * one.width) + pair.constant
        difference = Fraction(int(sums[0][key]), int(rows[key])) - right
        sign[key] = (difference > 0) - (difference < 0)
    return sign, np.asarray(known, dtype=np.bool_)
