"""A table of noisy counts over public cells, and synthetic rows made from it.

Every cell of the public domains has a noisy count, even without rows. So the table does not show which cells are empty.
Rows are made from the noisy counts alone, and cost nothing more.

References: docs/proofs/published_tables.md.
"""

from fractions import Fraction

import numpy as np

from mechanisms.formula import Integers
from mechanisms.noise.exact import check_rate
from mechanisms.protocol import Noise


def release_table(counts: Integers, *, epsilon: Fraction, most_rows: int, noise: Noise) -> Integers:
    """Release noisy counts. Some may be negative, and sums over many cells are unbiased only with these.

    Guarantee: `epsilon`-differential privacy in each cell and, of a unit that is in `G` of them, `G * epsilon`, under
    adding or removing one unit of `most_rows` rows at most in a cell, exactly. Proof: docs/proofs/published_tables.md.

    Parameters:
        counts: rows by cell, int64 of any shape; private.
        most_rows: the most rows of one unit that count in one cell, at least 1.

    Raises:
        Unachievable: the noise lies outside the range of exact sampling.
    """
    rate = epsilon / most_rows
    check_rate(rate)
    return counts + noise.draw_discrete_laplace(rate=rate, size=counts.size).reshape(counts.shape)


def make_rows(noisy: Integers) -> Integers:
    """Return the number of synthetic rows of each cell: none below zero, with the sum of the noisy counts.

    These are the numbers nearest to the noisy counts. Every cell is lowered by the same amount, but not below zero,
    until the sum is right. The remaining rows go to the cells with the largest remainders, the first among equal ones.
    Nothing is random, so the same noisy counts give the same rows.

    Guarantee: a function of the noisy counts alone, so it costs nothing. Proof: docs/proofs/published_tables.md.

    >>> make_rows(np.array([40, -3, 2, 1, 12])).tolist()
    [40, 0, 1, 0, 11]
    >>> make_rows(np.array([-4, 3])).tolist()
    [0, 0]
    """
    total = int(noisy.sum())
    if total <= 0:
        return np.zeros_like(noisy)
    flat = noisy.ravel()
    falling = np.sort(flat)[::-1]
    over = np.cumsum(falling) - total  # what the first few have too much, were the others zero
    kept = int(np.flatnonzero(falling * np.arange(1, len(flat) + 1) > over)[-1]) + 1
    excess = int(over[kept - 1])
    lowered, part = divmod(excess, kept)  # of each kept cell: so many whole rows, and a part of one of `kept`
    whole = np.maximum(flat - lowered - (part > 0), 0)
    chosen = np.flatnonzero(flat * kept > excess)
    # all remainders of kept cells are equal: the largest noisy counts are rounded up first
    order = chosen[np.argsort(-flat[chosen], kind="stable")]
    whole[order[: total - int(whole.sum())]] += 1
    return whole.reshape(noisy.shape)
