"""Private edges that cut rows into bins of about equal size: medians of medians, each by a noisy maximum in integers.

The published recursion (Kaplan, Schnapp, Stemmer) ranks candidates by their distance from a wanted rank, so the number
of rows must be public. Here a candidate's score is minus the difference between the numbers of rows left and right of
it. One row more changes it by one, and the number of rows need not be public.

References: H. Kaplan, S. Schnapp, U. Stemmer, Differentially private approximate quantiles, ICML 2022; R. McKenna,
D. Sheldon, Permute-and-flip, NeurIPS 2020 (one-sided noise). Proof: docs/proofs/score_histogram.md.
"""

import itertools
from fractions import Fraction

import numpy as np

from mechanisms.formula import Integers
from mechanisms.noise.exact import check_rate
from mechanisms.protocol import Noise


def find_edges(counts: Integers, *, levels: int, epsilon: Fraction, most_rows: int, noise: Noise) -> tuple[int, ...]:
    """Return ascending edges, from 0 to the number of cells, of up to `2**levels` bins with about equally many rows.

    Guarantee: `epsilon`-differential privacy under adding or removing one unit of `most_rows` rows at most, exactly.
    The number of draws depends on the edges alone. Proof: docs/proofs/score_histogram.md.

    Parameters:
        counts: rows by cell, int64 of shape (cells,); private.
        levels: each splits every part in two, for `epsilon / levels`; at least 1.

    Raises:
        Unachievable: the noise lies outside the range of exact sampling.
    """
    rate = epsilon / (2 * levels * most_rows)
    check_rate(rate)
    edges = [0, len(counts)]
    for _ in range(levels):
        cuts = [_find_median(counts[low:high], rate=rate, noise=noise) for low, high in itertools.pairwise(edges)]
        edges = sorted({*edges, *(low + cut for low, cut in zip(edges, cuts, strict=False))})
    return tuple(edges)


def find_noisy_maximum(scores: Integers, *, rate: Fraction, noise: Noise) -> int:
    """Return the index of the greatest score after one-sided noise is added to each.

    Among equal ones, return the first.

    Guarantee: `2 * rate`-private where one unit changes each score by one at most.
    """
    return int(np.argmax(scores + noise.draw_geometric(rate=rate, size=len(scores))))


def _find_median(counts: Integers, *, rate: Fraction, noise: Noise) -> int:
    """Return a cut with about as many rows before as after it, or 0 if there is only one cell."""
    if len(counts) < 2:
        return 0
    before = np.cumsum(counts)
    scores = -np.abs(2 * before[:-1] - before[-1])
    return 1 + find_noisy_maximum(scores, rate=rate, noise=noise)
