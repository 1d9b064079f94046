"""PriBRP: binned residuals over privately found and merged bins, as published and repaired.

In the print, the noise on a bin's sum of predictions fits the width of the bin, but a removed row takes its whole
prediction away. In a bin from .9 to .93 that sum loses 5.4, not the claimed .175. Here predictions are summed from the
bin's lower end. The print replaces rows, which changes two bins. Here rows are added or removed, which changes one.
Thresholds are medians of medians in whole cells (`private_edges.py`), and all other numbers are in whole cells, too.

| here | the thesis |
|---|---|
| levels | s = floor(log2 sqrt n) |
| least | theta' |
| SHARES | epsilon_1, epsilon_2, epsilon_3, as parts of epsilon |

References: Chen's thesis, section 4.5 (PriBRP). Proof: docs/proofs/score_histogram.md.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms.diagnostics.private_edges import find_edges
from mechanisms.formula import Integers
from mechanisms.noise.exact import check_rate
from mechanisms.protocol import Noise

SHARES = (Fraction(15, 100), Fraction(15, 100), Fraction(70, 100))  # as printed
_GAMMA = 0.9  # of the print: with this probability a bin is large enough


@dataclass(frozen=True, slots=True)
class ResidualBin:
    """One released bin.

    Parameters:
        low, high: its first cell, and the cell after its last.
        size: the noisy number of rows.
        score: the mean prediction, in cells, cut to the bin.
        outcome: the mean outcome, cut to 0 and 1.
    """

    low: int
    high: int
    size: int
    score: float
    outcome: float


def release_pribrp(
    counts: Integers, *, rows: int, epsilon: Fraction, most_rows: int, noise: Noise
) -> tuple[ResidualBin, ...]:
    """Release bins from the lowest scores to the highest, each with its mean prediction and outcome.

    Guarantee: `epsilon`-differential privacy under adding or removing one unit of `most_rows` rows at most, exactly.

    Parameters:
        counts: rows by cell and outcome, int64 of shape (cells, 2); private.
        rows: the approximate number of rows, which is public.

    Raises:
        Unachievable: the noise lies outside the range of exact sampling.
    """
    thresholds, merging, sums = (epsilon * share / most_rows for share in SHARES)
    levels = max(1, math.floor(math.log2(max(rows, 4)) / 2))
    totals = counts.sum(axis=1)
    fine = find_edges(totals, levels=levels, epsilon=thresholds, most_rows=1, noise=noise)
    least = round(rows / 2 ** (levels + 1) + 4 * math.log(2 / _GAMMA) / float(merging))
    edges = merge_bins(np.add.reduceat(totals, fine[:-1]), fine, least=least, epsilon=merging, noise=noise)
    bins = itertools.pairwise(edges)
    return tuple(summarise_bin(counts, low, high, epsilon=sums, noise=noise) for low, high in bins)


def merge_bins(
    sizes: Integers, edges: tuple[int, ...], *, least: int, epsilon: Fraction, noise: Noise
) -> tuple[int, ...]:
    """Return the edges of runs of bins from the left, each with about `least` rows or more.

    Guarantee: `epsilon`-private for one row more or less: the row is in one run, and raises or lowers all sizes of that
    run.
    """
    check_rate(epsilon / 2)
    kept, start = [edges[0]], 0
    while start < len(sizes):
        passed = _find_first_large_size(np.cumsum(sizes[start:]), least=least, epsilon=epsilon, noise=noise)
        if passed is None:
            break
        start += passed + 1
        kept.append(edges[start])
    return (*kept[:-1], edges[-1]) if len(kept) > 1 else (edges[0], edges[-1])


def _find_first_large_size(sizes: Integers, *, least: int, epsilon: Fraction, noise: Noise) -> int | None:
    """Return the index of the first large size, by a sparse vector over growing sizes, or None.

    The threshold and each size have noise of the same rate. One row moves all sizes in one direction.
    """
    rate = epsilon / 2
    threshold = least + int(noise.draw_discrete_laplace(rate=rate, size=1)[0])
    passing = np.flatnonzero(sizes + noise.draw_discrete_laplace(rate=rate, size=len(sizes)) >= threshold)
    return int(passing[0]) if passing.size else None


def summarise_bin(counts: Integers, low: int, high: int, *, epsilon: Fraction, noise: Noise) -> ResidualBin:
    """Return size, mean prediction and mean outcome of the cells `low` to `high`: `epsilon`-private for one row."""
    inside = counts[low:high]
    size = int(inside.sum()) + _draw_laplace(noise, epsilon / 2)
    above_low = int(inside.sum(axis=1) @ np.arange(high - low)) + _draw_laplace(
        noise, epsilon / (4 * max(1, high - low - 1))
    )
    positive = int(inside[:, 1].sum()) + _draw_laplace(noise, epsilon / 4)
    divisor = max(size, 1)
    return ResidualBin(
        low=low,
        high=high,
        size=size,
        score=low + 0.5 + min(max(above_low / divisor, 0.0), float(high - low - 1)),
        outcome=min(max(positive / divisor, 0.0), 1.0),
    )


def _draw_laplace(noise: Noise, rate: Fraction) -> int:
    return int(noise.draw_discrete_laplace(rate=rate, size=1)[0])


def list_residuals(bins: tuple[ResidualBin, ...], *, width: float, low: float) -> Iterator[tuple[float, float]]:
    """Yield the mean prediction and the mean residual of each bin, in units of the scores. A cell is `width` wide."""
    for one in bins:
        score = low + width * one.score
        yield score, one.outcome - score
