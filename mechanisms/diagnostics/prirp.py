"""PriRP: residuals beside predictions on a grid between symmetric private bounds, as published.

Each bound is the first of doubling candidates with enough rows within it (`doubling_bounds.py`), at half of their
share. The number of rows is public here. The print uses the true number.

References: Chen's thesis, section 4.3 (PriRP). Proof: docs/proofs/score_histogram.md.
"""

from fractions import Fraction

import numpy as np

from mechanisms.diagnostics.residual_grid import ResidualGrid, cut_range_evenly, draw_grid, fold_middle, split_grid
from mechanisms.formula import Integers
from mechanisms.protocol import Noise
from mechanisms.published.doubling_bounds import find_first_covering_candidate, list_doubling_candidates

THETA = Fraction(95, 100)  # of the rows within each bound, as printed
_KEPT = 0.95**2  # within both


def release_prirp(counts: Integers, *, rows: int, epsilon: Fraction, most_rows: int, noise: Noise) -> ResidualGrid:
    """Release symmetric bounds of predictions and of residuals, and a grid of counts between them.

    Guarantee: `epsilon`-differential privacy under adding or removing one unit of `most_rows` rows at most, exactly.

    Parameters:
        counts: rows by fine cell of prediction and of residual, int64 of two even lengths, zero in the middle; private.
        rows: the approximate number of rows, which is public.

    Raises:
        Unachievable: the noise lies outside the range of exact sampling.
    """
    shares = split_grid(epsilon, rows=rows, kept=_KEPT)
    edges = []
    for axis in (1, 0):
        folded = fold_middle(counts.sum(axis=axis))
        candidates = list_doubling_candidates(1, greatest=len(folded))
        within = np.cumsum(folded)[np.array(candidates) - 1]
        index = find_first_covering_candidate(
            np.array([within], dtype=np.int64),
            wanted=round(THETA * rows),
            epsilon=shares.bounds / (2 * most_rows),
            noise=noise,
        )[0]
        bound = candidates[int(index)]
        edges.append(cut_range_evenly(len(folded) - bound, len(folded) + bound, parts=shares.side))
    grid = ResidualGrid(predictions=edges[0], residuals=edges[1], counts=np.zeros((0, 0)), variance=0.0)
    return draw_grid(grid, counts, rate=shares.cells / most_rows, noise=noise)
