"""Diagnostics as they are printed or published as code, which lose more than they claim: for the auditor to find."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np

from mechanisms.diagnostics.interval_partition import count_parts_of_cost
from mechanisms.formula import Integers
from mechanisms.protocol import Noise


def printed_sum(counts: Integers, low: int, high: int, *, epsilon: Fraction, noise: Noise) -> int:
    """PriBRP's sum of a bin's predictions in cells, from zero, with noise for the width of the bin."""
    total = int(counts[low:high].sum(axis=1) @ np.arange(low, high))
    return total + int(noise.draw_discrete_laplace(rate=epsilon / (4 * (high - low)), size=1)[0])


def public_reach(length: int, *, cells: int) -> Fraction | None:
    """The scale of the noise in DAWA's public code, in parts: half of what it takes; none on single cells."""
    return None if length == 1 else count_parts_of_cost(cells) * (2 - Fraction(1, length) - Fraction(1, cells))


def draw_partitions(
    counts: Integers,
    *,
    reach: Callable[[int], Fraction | int | None],
    floor: bool,
    samples: int,
    noise: Noise,
) -> Integers:
    """Which partition of four cells costs least, by its place in `PARTITIONS`, side by side; epsilon 1, and 1 for the
    counts. With `floor` no cost is below 0."""
    unit = count_parts_of_cost(len(counts))
    costs = {}
    for low, high in sorted({pair for edges in PARTITIONS for pair in pairwise(edges)}):
        part, scale = counts[low:high], reach(high - low)
        true = int(np.abs(len(part) * part - part.sum()).sum()) * (unit // len(part)) + unit
        drawn = 0 if scale is None else noise.draw_discrete_laplace(rate=Fraction(1) / scale, size=samples)
        noisy = np.full(samples, true) + drawn
        costs[low, high] = np.maximum(noisy, 0) if floor and scale is not None else noisy
    totals = np.stack([sum(costs[pair] for pair in pairwise(edges)) for edges in PARTITIONS])
    return np.asarray(totals.argmin(axis=0), dtype=np.int64)[:, np.newaxis]


PARTITIONS = ((0, 4), (0, 2, 4), (0, 1, 2, 4), (0, 2, 3, 4), (0, 1, 3, 4), (0, 1, 2, 3, 4))
