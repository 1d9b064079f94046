"""The smallest group in which an attacker learns a share, from counts with discrete noise at a given loss.

There are two attackers. The published one counts the group and its holders of the value, each at half of the loss. The
better one counts the holders and the others. No row is in both counts, so each may have the whole loss.

References: C. Han, Differential privacy and its limits (thesis), chapter 3, for the first. Proof of the second, and of
what follows from parallel counts: docs/proofs/disclosure.md.
"""

import math
from enum import Enum

import numpy as np
import numpy.typing as npt

_REACH = 45.0  # of noise, in units of one over its rate: beyond lies less than 1e-19
_INCLUSIVE = 1e-9  # an end of an interval that is whole but for rounding is in it
_ONE_BY_ONE = 512  # group sizes that are tried in turn, where shares rounded to whole rows jitter; then by halves

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class SharePair(Enum):
    """The pair of counts that an attacker asks for."""

    GROUP_AND_HOLDERS = "group and holders, half each"
    HOLDERS_AND_OTHERS = "holders and others, all of it each"


def compute_chance_by_ratio(width: float, *, group: int, holders: int, group_rate: float, holders_rate: float) -> float:
    """Return the probability that the ratio of two noisy counts is near the true share.

    It is near if it differs by at most `width` times the share. This is `CP_tau` for discrete noise.

    Guarantee: exact to 1e-15, for independent discrete Laplace noise of these rates.
    Proof: docs/proofs/disclosure.md.

    Parameters:
        width: tau, above 0.
        group, holders: the true counts, 0 < holders <= group.

    >>> round(compute_chance_by_ratio(0.2, group=500, holders=250, group_rate=0.1, holders_rate=0.1), 4)
    0.9909
    """
    low, high = _bound_share(width, group, holders)
    sizes = _list_reachable_counts(group, group_rate)
    first, last = np.minimum(low * sizes, high * sizes), np.maximum(low * sizes, high * sizes)
    chance = _compute_probability_between(holders_rate, _round_sum_up(first) - holders, _round_sum_down(last) - holders)
    return float(np.sum(np.where(sizes != 0, _compute_masses(group_rate, sizes - group) * chance, 0.0)))


def compute_chance_by_disjoint(width: float, *, group: int, holders: int, rate: float) -> float:
    """Return the probability that an estimate from two disjoint noisy counts is near the true share.

    The estimate is `Y / (Y + W)`, and each count has the whole rate. If a share of one is within the width, there is no
    upper limit, since an estimate above one is taken as one.

    Guarantee: as for `compute_chance_by_ratio` (docs/proofs/disclosure.md).

    >>> round(compute_chance_by_disjoint(0.2, group=50, holders=40, rate=1.0), 5)
    0.99991
    """
    low, high = _bound_share(width, group, holders)
    others = _list_reachable_counts(group - holders, rate)
    least = _round_sum_up(np.float64(low / (1 - low)) * others) - holders
    if high >= 1:
        chance = np.where(others > 0, _compute_tails(rate, least), _compute_tails(rate, 1 - others - holders))
    else:
        most = _round_sum_down(np.float64(high / (1 - high)) * others) - holders
        chance = np.where(others > 0, _compute_probability_between(rate, least, most), 0.0)
    return float(np.sum(_compute_masses(rate, others - (group - holders)) * chance))


def compute_chance(width: float, *, group: int, holders: int, epsilon: float, pair: SharePair) -> float:
    """Return the probability that an estimate from the given pair of counts is near the true share.

    Guarantee: as for `compute_chance_by_ratio` (docs/proofs/disclosure.md).
    """
    if pair is SharePair.HOLDERS_AND_OTHERS:
        return compute_chance_by_disjoint(width, group=group, holders=holders, rate=epsilon)
    return compute_chance_by_ratio(
        width, group=group, holders=holders, group_rate=epsilon / 2, holders_rate=epsilon / 2
    )


def find_least_group(share: float, *, width: float, certainty: float, epsilon: float, pair: SharePair) -> int:
    """Return the size of the smallest group in which the share is learned to within `width` with the given certainty.

    Guarantee: exact up to 512 rows. Larger sizes are found by bisection, which assumes that certainty grows with size.
    Rounding to whole rows makes this wrong by a few rows at most. Proof: docs/proofs/disclosure.md.

    Parameters:
        share: of the group that has the value, 0 < share <= 1.
        certainty: a probability, below 1.
        epsilon: the loss, above 0.

    >>> [find_least_group(0.5, width=0.2, certainty=0.7, epsilon=2.0, pair=pair) for pair in SharePair]
    [14, 4]
    """
    if not 0 < share <= 1 or not 0 < certainty < 1 or not 0 < epsilon < math.inf:
        raise ValueError("a share and a certainty are between 0 and 1, and a loss is above 0")

    def is_learned(group: int) -> bool:
        holders = min(group, round(share * group))
        return (
            holders > 0 and compute_chance(width, group=group, holders=holders, epsilon=epsilon, pair=pair) >= certainty
        )

    for group in range(2, _ONE_BY_ONE):
        if is_learned(group):
            return group
    high = _ONE_BY_ONE
    while not is_learned(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_learned(middle) else (middle, high)
    return high


def _bound_share(width: float, group: int, holders: int) -> tuple[float, float]:
    if not 0 < holders <= group or width <= 0:
        raise ValueError("a share above zero is learned to within a width above zero")
    share = holders / group
    return (1 - width) * share, (1 + width) * share


def _list_reachable_counts(count: int, rate: float) -> Integers:
    far = math.ceil(_REACH / rate)
    return np.arange(count - far, count + far + 1, dtype=np.int64)


def _round_sum_up(values: Floats) -> Floats:
    return np.asarray(np.ceil(values - _INCLUSIVE), dtype=np.float64)


def _round_sum_down(values: Floats) -> Floats:
    return np.asarray(np.floor(values + _INCLUSIVE), dtype=np.float64)


def _compute_masses(rate: float, values: Integers) -> Floats:
    decay = math.exp(-rate)
    return np.asarray(-math.expm1(-rate) / (1 + decay) * np.exp(-rate * np.abs(values)))


def _compute_tails(rate: float, values: Floats | Integers) -> Floats:
    """Return `P(K >= value)`."""
    decay = math.exp(-rate)
    above = np.exp(-rate * np.maximum(values, 0)) / (1 + decay)
    below = 1 - np.exp(-rate * np.maximum(1 - values, 0)) / (1 + decay)
    return np.asarray(np.where(values >= 1, above, below))


def _compute_probability_between(rate: float, first: Floats, last: Floats) -> Floats:
    return np.asarray(np.where(last >= first, _compute_tails(rate, first) - _compute_tails(rate, last + 1), 0.0))
