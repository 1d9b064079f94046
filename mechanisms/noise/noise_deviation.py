"""The error of a standard deviation of some numbers, if each has independent discrete Laplace noise of one rate.

The deviation of noisy numbers is too high by that of their noise at most. It is too low by the part of the noise that
points in the direction of the numbers, which is much less.

Guarantee: the errors that are returned are exceeded with the given probability at most.
Proof: docs/proofs/cell_readings.md.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

_LEAST_POINTS, _MOST_POINTS = 1 << 15, 1 << 18  # of the sum of squares: at least 64 a number, some milliseconds
_MOST_CELLS = 1 << 14  # of more Chebyshev's inequality is as good
_TILT = 14.0  # of the last point: what wraps around counts less than a millionth
_ROUNDING = 3e-8  # what wraps around, and the rounding of floats that the tilt enlarges


def find_greatest_excess(cells: int, share: float) -> float:
    """Return a bound on the root of the mean square of several Laplace noises of rate 1.

    The noises exceed it with probability at most `share`. It is the least of three bounds, from the largest noise,
    from Chebyshev's inequality for the mean of the squares, and from the distribution of their sum.

    >>> round(find_greatest_excess(1, 0.05), 2), round(find_greatest_excess(50, 0.05), 2)
    (3.0, 1.78)
    """
    known = min(math.log(cells / share), math.sqrt(2.0 + math.sqrt(20.0 / (cells * share))))
    if cells > _MOST_CELLS:
        return known
    step, tails = _bound_sums_of_squares(cells)
    place = int(np.searchsorted(-tails, -share))
    return min(known, math.sqrt(place * step / cells)) if place < tails.size else known


@lru_cache(maxsize=32)
def find_greatest_shortfall(share: float) -> float:
    """Return a bound on a weighted sum of Laplace noises of rate 1. The squares of the weights add up to 1.

    The sum exceeds it with probability at most `share`. The bound is Markov's inequality for a single noise, at the
    best exponent. No other such sum has larger tails.

    >>> round(find_greatest_shortfall(0.05), 2)
    5.01
    """
    low, high = 0.0, 1.0
    while _bound_one(high) > share:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _bound_one(middle) > share else (low, middle)
    return high


def _bound_one(value: float) -> float:
    at = (math.sqrt(1.0 + value * value) - 1.0) / value
    return math.exp(-at * value) / (1.0 - at * at)


@lru_cache(maxsize=32)
def _bound_sums_of_squares(cells: int) -> tuple[float, npt.NDArray[np.float64]]:
    """Return a step, and upper bounds of the probability that squares of Laplace noises add up to so many steps.

    Each square is rounded up to whole steps.
    """
    points = min(_MOST_POINTS, max(_LEAST_POINTS, 1 << (64 * cells).bit_length()))
    reached = 2.0 * cells + 8.0 * math.sqrt(20.0 * cells) + (math.log(cells) + 20.0) ** 2
    step = reached / (points - cells)  # each square is rounded by up to a step
    beyond = np.exp(-np.sqrt(step * np.arange(points)))
    masses = np.zeros(points)
    masses[1:] = beyond[:-1] - beyond[1:]
    tilt = np.exp(np.arange(points) * (-_TILT / points))
    sums = np.fft.irfft(np.fft.rfft(masses * tilt) ** cells, n=points) / tilt
    below = np.concatenate(([0.0], np.cumsum(sums)[:-1]))
    tails: npt.NDArray[np.float64] = np.minimum.accumulate(np.minimum(1.0, 1.0 - below + _ROUNDING))
    return step, tails
