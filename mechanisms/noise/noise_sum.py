"""The distribution of a sum of many independent discrete Laplace noises with whole weights, from above.

A value that is read off several noisy cells has such noise: a month less the month before, a group less its share of
the total of all groups. Where the sum takes few values its distribution is inverted exactly. Wider noise is compared
with the continuous noise of which it is rounded.

Guarantee: `bound_upper_tail` is never below the probability. Where the sum is inverted exactly it is above it by at
most 2e-9. Proof: docs/proofs/cell_readings.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

MOST_POINTS = 1 << 17
"""Values over which a distribution is inverted: a few thousandths of a second, and half a MB that is kept."""

_LEAST_TERMS, _MOST_TERMS = 1 << 10, 1 << 14  # of the series of continuous noise: each costs some nanoseconds a value
_ROUNDED = 7.0  # -ln of the probability that rounding moves a sum further: a thousandth of a tail, and of the reach
_BEYOND = 1e-12  # the probability outside of the values over which a distribution is inverted
_ROUNDING = 1e-9  # what sums of so many floats, and rates of a dozen digits, may be off
_ALMOST = 1e-8  # below it the inverted distribution is too coarse, and Markov's inequality reaches every share
_GUESSES = 8  # of a quantile of wide noise before its range is halved: about four settle it
_TINIEST = 1e-300  # in place of a tail of zero, which has no logarithm
_PARTS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)  # of the largest exponent at which moments exist


@dataclass(frozen=True, slots=True)
class WeightedNoise:
    """Independent discrete Laplace noises of the same size: `count` draws at a rate, each multiplied by `times`."""

    times: int
    count: int
    rate: float


Noises: TypeAlias = tuple[WeightedNoise, ...]


@lru_cache(maxsize=1 << 12)
def bound_upper_tail(noises: Noises, value: int) -> float:
    """Return an upper bound of `P(sum >= value)`.

    >>> one = (WeightedNoise(times=1, count=1, rate=0.5),)
    >>> round(bound_upper_tail(one, 3), 4), round(bound_upper_tail(one, -2), 4)
    (0.1389, 0.8611)
    >>> round(bound_upper_tail((*one, WeightedNoise(times=2, count=1, rate=0.25)), 3), 4)
    0.3775
    """
    step = gcd(*(one.times for one in noises))
    if value <= 0:  # the distribution is symmetric, and what is continuous bounds one side alone
        if _count_points(_divide_noises(noises, step)) > MOST_POINTS:
            return 1.0
        return min(1.0, 1.0 - bound_upper_tail(noises, 1 - value) + 2.0 * (_BEYOND + _ROUNDING))
    steps = -(-value // step)
    if len(noises) == 1 and noises[0].count == 1:
        rate = noises[0].rate
        return math.exp(-rate * steps) / (1.0 + math.exp(-rate))
    reduced = _divide_noises(noises, step)
    if _count_points(reduced) > MOST_POINTS:
        found = bound_continuous_tail(reduced, steps)
    else:
        tails = _bound_tails(reduced)
        found = float(tails[steps]) if steps < tails.size else _BEYOND + _ROUNDING
    return found if found > _ALMOST else min(found, _bound_by_moments(reduced, steps))


def bound_largest_tail(kinds: Sequence[Noises], value: int) -> float:
    """Return an upper bound of `P(sum >= value)` that holds for each of several sums of noises.

    A narrow sum is left out if Markov's inequality shows that a wider one reaches the value more often.

    >>> one, two = (WeightedNoise(times=2, count=1, rate=0.5),), (WeightedNoise(times=1, count=2, rate=0.5),)
    >>> bound_largest_tail((two, one), 9) == bound_upper_tail(one, 9)
    True
    """
    found = 0.0
    for noises in _sort_by_width(kinds):
        if found < (1.0 if value <= 0 else _bound_by_moments(noises, value)):
            found = max(found, bound_upper_tail(noises, value))
    return found


def find_largest_quantile(kinds: Sequence[Noises], share: float) -> int:
    """Return the least value, at least 1, that each sum of noises reaches with probability `share` at most."""
    found = 0
    for noises in _sort_by_width(kinds):
        if not found or (_bound_by_moments(noises, found) > share and bound_upper_tail(noises, found) > share):
            found = find_upper_quantile(noises, share)
    return found


def find_upper_quantile(noises: Noises, share: float) -> int:
    """Return the least value, at least 1, that the sum reaches with probability `share` at most.

    >>> find_upper_quantile((WeightedNoise(times=1, count=1, rate=0.5),), 0.05)
    6
    """
    step = gcd(*(one.times for one in noises))
    reduced = _divide_noises(noises, step)
    low, high = 0, max(1, round(_measure_width(reduced)))
    before, last = (0, 0.5), (high, bound_upper_tail(reduced, high))
    while last[1] > share:
        low, high = high, 2 * high
        before, last = last, (high, bound_upper_tail(reduced, high))
    guesses = _GUESSES if _count_points(reduced) > MOST_POINTS else 0  # where a tail is looked up, halving is faster
    while high - low > 1:
        middle = _guess_quantile(before, last, share) if guesses else None
        middle = (low + high) // 2 if middle is None else min(max(middle, low + 1), high - 1)
        before, last, guesses = last, (middle, bound_upper_tail(reduced, middle)), max(0, guesses - 1)
        low, high = (middle, high) if last[1] > share else (low, middle)
    return step * (high - 1) + 1


def _guess_quantile(before: tuple[int, float], last: tuple[int, float], share: float) -> int | None:
    """Return where the tail would fall to a share if its logarithm were linear through two points, or None."""
    falls = [math.log(max(tail, _TINIEST) / share) for _, tail in (before, last)]
    if falls[0] == falls[1]:
        return None
    return math.ceil(last[0] - falls[1] * (last[0] - before[0]) / (falls[1] - falls[0]))


def merge_equal_noises(noises: Sequence[WeightedNoise]) -> Noises:
    """Return the noises in ascending order, with noises of equal rate and size counted together.

    >>> merge_equal_noises([WeightedNoise(2, 1, 0.5), WeightedNoise(1, 3, 0.5), WeightedNoise(2, 4, 0.5)])
    (WeightedNoise(times=1, count=3, rate=0.5), WeightedNoise(times=2, count=5, rate=0.5))
    """
    counts: dict[tuple[int, float], int] = {}
    for one in noises:
        counts[one.times, one.rate] = counts.get((one.times, one.rate), 0) + one.count
    return tuple(WeightedNoise(times, count, rate) for (times, rate), count in sorted(counts.items()))


def _reduce_noises(noises: Noises, value: int) -> tuple[Noises, int]:
    step = gcd(*(one.times for one in noises))
    return _divide_noises(noises, step), -(-value // step)


def _divide_noises(noises: Noises, step: int) -> Noises:
    return noises if step == 1 else tuple(WeightedNoise(one.times // step, one.count, one.rate) for one in noises)


def _sort_by_width(kinds: Sequence[Noises]) -> list[Noises]:
    return sorted(kinds, key=_measure_width, reverse=True)


def _measure_width(noises: Noises) -> float:
    """Return about the standard deviation of a sum."""
    return math.sqrt(sum(one.count * (one.times / one.rate) ** 2 for one in noises))


def bound_continuous_tail(noises: Noises, value: int) -> float:
    """Return an upper bound of `P(sum >= value)`, for any weights of at most the given ones, whole or not.

    It bounds the sum of continuous noises, of which the discrete ones are rounded values. The rounding errors do not
    depend on the discrete sum. Smaller weights make a sum of continuous noises narrower.
    """
    nearer = value - math.sqrt(_ROUNDED * sum(one.count * one.times**2 for one in noises))
    if nearer <= 0.0:
        return 1.0
    half, factors, beyond = _expand_series(noises)
    if nearer >= half:
        return 2.0 * _BEYOND
    angles = np.arange(1, factors.size + 1) * (math.pi * nearer / half)
    tail = 0.5 - 0.5 * nearer / half - float(factors @ np.sin(angles)) + beyond
    return min(1.0, tail / -math.expm1(-_ROUNDED))


@lru_cache(maxsize=64)
def _expand_series(noises: Noises) -> tuple[float, npt.NDArray[np.float64], float]:
    """Return half the period of a sum of continuous noises, the factors of its sines, and all that they leave out."""
    half = _bound_spread_by_moments(noises, _log_continuous_moment)
    wide = [(one.times / one.rate, one.count) for one in noises]
    terms = _LEAST_TERMS
    while (left := _bound_rest(wide, half, terms)) > _BEYOND and terms < _MOST_TERMS:
        terms *= 2
    places = np.arange(1, terms + 1)
    logs = np.zeros(terms)
    for width, count in wide:
        logs -= count * np.log1p((width * math.pi / half * places) ** 2)
    return half, np.exp(logs) / (math.pi * places), left + _BEYOND + _ROUNDING


def _bound_rest(wide: Sequence[tuple[float, int]], half: float, terms: int) -> float:
    """Return an upper bound of the series beyond so many terms: each noise's part falls from there as a power."""
    squares = [((width * math.pi * terms / half) ** 2, count) for width, count in wide]
    power = sum(count * square / (1.0 + square) for square, count in squares)
    return math.exp(-sum(count * math.log1p(square) for square, count in squares)) / (2.0 * math.pi * power)


@lru_cache(maxsize=256)
def _find_spread(noises: Noises) -> float:
    """Return a value that the sum exceeds with `_BEYOND / 2` at most."""
    return _bound_spread_by_moments(noises, _log_moment)


def _bound_spread_by_moments(noises: Noises, log_moment: Callable[[float, float], float]) -> float:
    """Return a value that a sum exceeds with `_BEYOND / 2` at most, by Markov's inequality at the best of a few t."""
    return min((moment - math.log(_BEYOND / 2.0)) / at for at, moment in _list_moments(noises, log_moment))


def _bound_by_moments(noises: Noises, value: int) -> float:
    """Return a quick upper bound of `P(sum >= value)`, by Markov's inequality."""
    reduced, steps = _reduce_noises(noises, value)
    exponent = min(moment - at * steps for at, moment in _list_moments(reduced, _log_moment))
    return math.exp(min(0.0, exponent + _ROUNDING * (1.0 + abs(exponent))))


def _list_moments(noises: Noises, log_moment: Callable[[float, float], float]) -> list[tuple[float, float]]:
    """Return a few t, each with the logarithm of the moment `E exp(t * sum)`."""
    largest = min(one.rate / one.times for one in noises)
    tried = (part * largest for part in _PARTS)
    return [(at, sum(one.count * log_moment(one.rate, at * one.times) for one in noises)) for at in tried]


def _log_moment(rate: float, at: float) -> float:
    """Return `ln E exp(at * K)` of discrete Laplace noise of a rate above `at`."""
    below = math.expm1(-rate) ** 2
    return -math.log1p(-4.0 * math.exp(-rate) * math.sinh(0.5 * at) ** 2 / below)


def _log_continuous_moment(rate: float, at: float) -> float:
    """Return `ln E exp(at * L)` of Laplace noise of a rate above `at`."""
    return -math.log1p(-((at / rate) ** 2))


def _count_points(noises: Noises) -> int:
    """Return the number of points, a power of two, at which the distribution of the sum is computed.

    The distribution wraps around at that number, which lies beyond the spread.
    """
    return 1 << max(6, math.ceil(2.0 * _find_spread(noises) + 2.0).bit_length())


@lru_cache(maxsize=64)
def _bound_tails(noises: Noises) -> npt.NDArray[np.float64]:
    """Return an upper bound of `P(sum >= value)` by value, up to the spread, from the characteristic function."""
    points = _count_points(noises)
    angles = np.arange(points // 2 + 1) * (2.0 * math.pi / points)
    logs = np.zeros(angles.size)
    for one in noises:
        below = math.expm1(-one.rate) ** 2
        logs -= one.count * np.log1p(4.0 * math.exp(-one.rate) * np.sin(0.5 * one.times * angles) ** 2 / below)
    masses = np.fft.irfft(np.exp(logs), n=points)[: points // 2]
    tails: npt.NDArray[np.float64] = np.cumsum(masses[::-1])[::-1]
    return np.minimum(1.0, tails + _BEYOND + _ROUNDING)
