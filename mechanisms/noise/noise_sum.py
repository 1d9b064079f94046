"""The distribution of a sum of many independent discrete Laplace noises with whole weights, from above.

A value that is read off several noisy cells has such noise: a month less the month before, a group less its share of
the total of all groups. Where the sum takes few values its distribution is inverted exactly. Wider noise is put onto a
coarser lattice, which is at most so much larger as its steps and the weights are.

Guarantee: `bound_upper_tail` is never below the probability. Where the sum is inverted exactly it is above it by at
most 2e-9. Proof: docs/proofs/cell_readings.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

MOST_POINTS = 1 << 20
"""Values over which a distribution is inverted: a twentieth of a second, and 4 MB that are kept."""

_COARSE_POINTS = 1 << 19  # of the lattice onto which wider noise is put: its steps cost a few thousandths of the reach
_BEYOND = 1e-12  # the probability outside of the values over which a distribution is inverted
_ROUNDING = 1e-9  # what sums of so many floats, and rates of a dozen digits, may be off
_PARTS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)  # of the largest exponent at which moments exist


@dataclass(frozen=True, slots=True)
class Weighted:
    """Some noises alike: `count` independent discrete Laplace noises of a rate, each `times` as large, `times >= 1`."""

    times: int
    count: int
    rate: float


Noises: TypeAlias = tuple[Weighted, ...]


def bound_upper_tail(noises: Noises, value: int) -> float:
    """Return an upper bound of `P(sum >= value)`.

    >>> one = (Weighted(times=1, count=1, rate=0.5),)
    >>> round(bound_upper_tail(one, 3), 4), round(bound_upper_tail(one, -2), 4)
    (0.1389, 0.8611)
    >>> round(bound_upper_tail((Weighted(times=1, count=1, rate=0.5), Weighted(times=2, count=1, rate=0.25)), 3), 4)
    0.3775
    """
    if value <= 0:  # the distribution is symmetric, and what is coarser bounds one side alone
        step = gcd(*(one.times for one in noises))
        if _points(_divide(noises, step)) > MOST_POINTS:
            return 1.0
        return min(1.0, 1.0 - bound_upper_tail(noises, 1 - value) + 2.0 * (_BEYOND + _ROUNDING))
    if len(noises) == 1 and noises[0].count == 1:
        rate, steps = noises[0].rate, -(-value // noises[0].times)
        return math.exp(-rate * steps) / (1.0 + math.exp(-rate))
    step = gcd(*(one.times for one in noises))
    reduced, steps = _divide(noises, step), -(-value // step)
    if _points(reduced) > MOST_POINTS:
        reduced, lattice, beyond = _coarsen(reduced)
        steps = math.ceil((steps - beyond) / lattice)
        if steps <= 0:
            return 1.0
    tails = _tails(reduced)
    return float(tails[steps]) if steps < tails.size else _BEYOND + _ROUNDING


def find_least_reach(noises: Noises, share: float) -> int:
    """Return the least value of at least 1 that the sum reaches with probability `share` at most.

    >>> find_least_reach((Weighted(times=1, count=1, rate=0.5),), 0.05)
    6
    """
    low, high = 0, 1
    while bound_upper_tail(noises, high) > share:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bound_upper_tail(noises, middle) > share else (low, middle)
    return high


def merge_equal_noises(noises: Sequence[Weighted]) -> Noises:
    """Return the noises in ascending order, with noises of equal rate and size counted together.

    >>> merge_equal_noises([Weighted(2, 1, 0.5), Weighted(1, 3, 0.5), Weighted(2, 4, 0.5)])
    (Weighted(times=1, count=3, rate=0.5), Weighted(times=2, count=5, rate=0.5))
    """
    counts: dict[tuple[int, float], int] = {}
    for one in noises:
        counts[one.times, one.rate] = counts.get((one.times, one.rate), 0) + one.count
    return tuple(Weighted(times, count, rate) for (times, rate), count in sorted(counts.items()))


def _divide(noises: Noises, step: int) -> Noises:
    return tuple(Weighted(one.times // step, one.count, one.rate) for one in noises)


@lru_cache(maxsize=256)
def _coarsen(noises: Noises) -> tuple[Noises, float, float]:
    """Return noises of weight 1 on a coarser lattice, its step, and by how much the sum may be beyond theirs.

    With an exponential variable X of mean `times / rate`, `times * floor(X / times)` and `step * floor(X / step)` are
    geometric on their lattices, and both are less than a step of their own below X. A discrete Laplace noise is the
    difference of two.
    """
    step = max(one.times / one.rate for one in noises) * _coarse_rate(sum(one.count for one in noises))
    rounded = [Weighted(1, one.count, float(f"{one.rate * step / one.times:.12g}")) for one in noises]
    beyond = sum(one.count * (one.times + step) for one in noises)
    return merge_equal_noises(rounded), step, beyond


def _coarse_rate(count: int) -> float:
    """Return the rate of the widest of some noises at which they need about `_COARSE_POINTS`."""
    alike = (Weighted(1, count, 1e-3),)
    return 1e-3 * _spread(alike) * 2.2 / _COARSE_POINTS


@lru_cache(maxsize=256)
def _spread(noises: Noises) -> float:
    """Return a value that the sum exceeds with `_BEYOND / 2` at most.

    Markov's inequality for `exp(t * sum)`, at the best of a few t.
    """
    largest = min(one.rate / one.times for one in noises)
    bounds = []
    for part in _PARTS:
        at = part * largest
        moment = sum(one.count * _log_moment(one.rate, at * one.times) for one in noises)
        bounds.append((moment - math.log(_BEYOND / 2.0)) / at)
    return min(bounds)


def _log_moment(rate: float, at: float) -> float:
    """Return `ln E exp(at * K)` of discrete Laplace noise of a rate above `at`."""
    below = math.expm1(-rate) ** 2
    return -math.log1p(-4.0 * math.exp(-rate) * math.sinh(0.5 * at) ** 2 / below)


def _points(noises: Noises) -> int:
    """Return the power of two over which the distribution is inverted: it wraps around beyond the spread."""
    return 1 << max(6, math.ceil(2.0 * _spread(noises) + 2.0).bit_length())


@lru_cache(maxsize=16)
def _tails(noises: Noises) -> npt.NDArray[np.float64]:
    """Return an upper bound of `P(sum >= value)` by value, up to the spread, from the characteristic function."""
    points = _points(noises)
    angles = np.arange(points // 2 + 1) * (2.0 * math.pi / points)
    logs = np.zeros(angles.size)
    for one in noises:
        below = math.expm1(-one.rate) ** 2
        logs -= one.count * np.log1p(4.0 * math.exp(-one.rate) * np.sin(0.5 * one.times * angles) ** 2 / below)
    masses = np.fft.irfft(np.exp(logs), n=points)[: points // 2]
    tails: npt.NDArray[np.float64] = np.cumsum(masses[::-1])[::-1]
    return np.minimum(1.0, tails + _BEYOND + _ROUNDING)
