"""Quantiles and standard deviations of the cells of a group's reading, in exact integers.

A quantile between two cells, and a root, are no whole numbers. So a reading that has them is counted in half steps, and
all its factors are even. An odd number of half steps stands for everything between two whole steps. Thresholds are
whole steps, so comparisons with them are exact.

Proof: docs/proofs/cell_readings.md.
"""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.formula import Integers
from mechanisms.protocol import Deviation, Quantile

_SMALL = 1 << 31  # the product of two such numbers is an int64


def may_lie_between_cells(statistic: Quantile | Deviation | None) -> bool:
    """Return True for a statistic of whole numbers whose value may lie between them."""
    return isinstance(statistic, Deviation) or (isinstance(statistic, Quantile) and statistic.interpolated)


def locate_quantile(quantile: Quantile, cells: int) -> tuple[int, Fraction]:
    """Return the position of a quantile among ascending cells, and the part of the way to the next cell, from 0 to 1.

    PostgreSQL multiplies a share and a number of cells as doubles before it takes a cell.

    >>> locate_quantile(Quantile(Fraction(9, 10), interpolated=True), 12)
    (9, Fraction(9, 10))
    >>> locate_quantile(Quantile(Fraction(7, 100)), 100)
    (7, Fraction(0, 1))
    """
    if quantile.interpolated:
        place = quantile.share * (cells - 1)
        return math.floor(place), place - math.floor(place)
    return max(0, math.ceil(float(quantile.share) * cells) - 1), Fraction(0)


def count_moving_cells(quantile: Quantile, cells: int) -> tuple[int, int]:
    """Return how many cells can each raise a quantile by large noise alone, and how many can lower it.

    >>> median = Quantile(Fraction(1, 2), interpolated=True)
    >>> count_moving_cells(Quantile(Fraction(1)), 12), count_moving_cells(median, 12)
    ((12, 1), (7, 7))
    """
    low, part = locate_quantile(quantile, cells)
    return low + 1 + bool(part), cells - low


def compute_statistics(cells: Integers, statistic: Quantile | Deviation, times: int) -> Integers:
    """Return `times` the statistic of each row of cells. If it may lie between cells, count it in half steps."""
    if isinstance(statistic, Deviation):
        return _compute_deviations(cells, statistic, times)
    low, part = locate_quantile(statistic, cells.shape[1])
    ascending = np.partition(cells, [low, low + 1] if part else [low], axis=1)
    if not part:
        return times * ascending[:, low]
    top, below = part.numerator, part.denominator
    pairs = zip(ascending[:, low].tolist(), ascending[:, low + 1].tolist(), strict=True)
    found = [_count_halves(times * ((below - top) * first + top * second), 2 * below) for first, second in pairs]
    return np.array(found, dtype=np.int64)


def _count_halves(number: int, divisor: int) -> int:
    """Return the sum of the two whole numbers next to `number / divisor`, one at or below it and one at or above it."""
    return number // divisor - (-number) // divisor


def _compute_deviations(cells: Integers, statistic: Deviation, times: int) -> Integers:
    number = cells.shape[1]
    apart = cells - cells.min(axis=1, keepdims=True)
    exact: npt.NDArray[np.object_] | Integers = apart
    if int(apart.max(initial=0)) * number >= _SMALL:
        exact = apart.astype(object)
    squares = (number * (exact * exact).sum(axis=1) - exact.sum(axis=1) ** 2).tolist()
    divisor = 4 * number * (number - 1 if statistic.is_sample else number)
    sign = 1 if times > 0 else -1
    found = [sign * _double_root(times * times * one, divisor) if one else statistic.if_equal or 0 for one in squares]
    return np.array(found, dtype=np.int64)


def _double_root(number: int, divisor: int) -> int:
    """Return the sum of the whole numbers on both sides of the root of `number / divisor`.

    >>> _double_root(9, 1), _double_root(10, 1), _double_root(9, 4)
    (6, 7, 3)
    """
    low = math.isqrt(number // divisor)
    return 2 * low + (low * low * divisor < number)
