"""A histogram over intervals that are chosen privately where neighbouring counts are alike, repaired.

The partition has the least noisy cost. The length of an interval is a power of two. Its cost is the sum of distances
from its mean plus the cost of its noise. The public code adds noise of scale `(2 - 1/length - 1/cells) / epsilon`, none
on single cells, and cuts costs at zero. That loses more than epsilon (tests/mechanisms/audit/test_diagnostics.py). Here
every interval has noise of scale `(4 - 2/length - 2/cells) / epsilon`. Costs are whole numbers of parts, with a power
of two as the number of parts of one.

References: C. Li, M. Hay, G. Miklau, Y. Wang, A data- and workload-aware algorithm for range queries under
differential privacy, PVLDB 7 (5), 2014. Proof: docs/proofs/score_histogram.md.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from mechanisms.diagnostics.score_histogram import Floats
from mechanisms.formula import Integers
from mechanisms.noise.exact import check_rate
from mechanisms.protocol import Noise

PARTITION_SHARE = Fraction(1, 4)  # of epsilon, as in the public code

Perturb = Callable[[Integers, int], Integers]
"""Adds noise to the costs of all intervals of a length."""


def release_intervals(counts: Integers, *, epsilon: Fraction, most_rows: int, noise: Noise) -> Floats:
    """Release counts by cell, each interval's noisy total spread evenly over its cells.

    Guarantee: `epsilon`-differential privacy under adding or removing one unit of `most_rows` rows at most, exactly.

    Raises:
        Unachievable: the noise lies outside the range of exact sampling.
    """
    share = epsilon * PARTITION_SHARE / most_rows
    rate = (epsilon * (1 - PARTITION_SHARE)) / most_rows
    check_rate(rate)
    edges = find_intervals(counts, epsilon=share, epsilon_of_counts=rate, noise=noise)
    totals = np.add.reduceat(counts, edges[:-1])
    lengths = np.diff(edges)
    noisy = totals + noise.draw_discrete_laplace(rate=rate, size=len(totals))
    return np.asarray(np.repeat(noisy / lengths, lengths), dtype=np.float64)


def find_intervals(
    counts: Integers, *, epsilon: Fraction, epsilon_of_counts: Fraction, noise: Noise
) -> tuple[int, ...]:
    """Return the edges of the partition of least noisy cost: `epsilon`-private for one row more or less."""
    cells = len(counts)
    if cells == 1:
        return (0, 1)
    unit = count_parts_of_cost(cells)

    def perturb(costs: Integers, length: int) -> Integers:
        drawn: Integers = noise.draw_discrete_laplace(
            rate=epsilon / compute_noise_scale(length, cells=cells), size=len(costs)
        )
        return np.asarray(costs + drawn)

    return find_least_partition(counts, of_noise=round(unit / epsilon_of_counts), perturb=perturb)


def count_parts_of_cost(cells: int) -> int:
    """Return the number of equal parts into which a cost of one is divided.

    The mean over 1, 2, 4, 8, ... cells is then a whole number of parts.
    """
    return _find_next_power_of_two(cells)


def compute_noise_scale(length: int, *, cells: int) -> int:
    """Return the scale of the noise on an interval's cost, in the parts of `count_parts_of_cost`.

    It is the most by which one row changes the difference between the interval's cost and the cost of any other
    partition.
    """
    unit = count_parts_of_cost(cells)
    return 4 * unit - 2 * unit // length - 2


def find_least_partition(counts: Integers, *, of_noise: int, perturb: Perturb) -> tuple[int, ...]:
    """Return the edges of the partition of least total cost. Among equal ones, return the first found.

    Parameters:
        of_noise: the cost of an interval's noise, in parts.
        perturb: adds noise to costs.
    """
    cells = len(counts)
    unit = count_parts_of_cost(cells)
    costs: dict[int, Integers] = {}
    length = 1
    while length <= cells:
        windows = np.lib.stride_tricks.sliding_window_view(counts, length)
        distances = np.abs(length * windows - windows.sum(axis=1, keepdims=True)).sum(axis=1)
        costs[length] = perturb(distances * (unit // length) + of_noise, length)
        length *= 2
    best = [0]
    came_from = [0]
    for end in range(1, cells + 1):
        found = min((best[end - size] + int(costs[size][end - size]), size) for size in costs if size <= end)
        best.append(found[0])
        came_from.append(end - found[1])
    edges = [cells]
    while edges[-1]:
        edges.append(came_from[edges[-1]])
    return tuple(reversed(edges))


def _find_next_power_of_two(cells: int) -> int:
    """Return the least power of two that is at least `cells`."""
    return 1 << max(0, cells - 1).bit_length()
