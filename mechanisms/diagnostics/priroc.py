"""PriROC: a ROC curve over privately found thresholds, or over 1,024 fixed ones, as published and repaired.

The print splits its epsilon between true and false positives. A row is one or the other, so here both get all of it.
Thresholds are medians of medians in whole cells (`private_edges.py`), because the published ones lose too much. Counts
are taken over privately chosen intervals as in the print, with a repaired choice (`interval_partition.py`).

| here | the thesis |
|---|---|
| levels | s |
| THRESHOLDS_SHARE | epsilon_1 / epsilon |

References: Chen's thesis, section 4.4 (PriROC). Proof: docs/proofs/score_histogram.md.
"""

from fractions import Fraction

import numpy as np

from mechanisms.diagnostics.interval_partition import release_intervals
from mechanisms.diagnostics.private_edges import find_edges
from mechanisms.diagnostics.score_histogram import ScoreHistogram, compute_laplace_variance, cut_cells_equally
from mechanisms.formula import Integers
from mechanisms.protocol import Noise

THRESHOLDS_SHARE = Fraction(1, 5)  # as printed
LEVELS = 10  # as printed
FIXED_BINS = 1 << 10  # as printed


def release_priroc(counts: Integers, *, epsilon: Fraction, most_rows: int, noise: Noise) -> ScoreHistogram:
    """Release a histogram with thresholds by medians of medians, ten levels of them.

    Guarantee: `epsilon`-differential privacy under adding or removing one unit of `most_rows` rows at most, exactly.

    Parameters:
        counts: rows by cell and outcome, int64 of shape (cells, 2); private.

    Raises:
        Unachievable: the noise lies outside the range of exact sampling.
    """
    share = epsilon * THRESHOLDS_SHARE
    edges = find_edges(counts.sum(axis=1), levels=LEVELS, epsilon=share, most_rows=most_rows, noise=noise)
    return _release_counts(counts, edges, epsilon=epsilon - share, most_rows=most_rows, noise=noise)


def release_priroc_fix(counts: Integers, *, epsilon: Fraction, most_rows: int, noise: Noise) -> ScoreHistogram:
    """Release a histogram with fixed thresholds, one for each cell, but at most 1,024.

    Guarantee and parameters as for `release_priroc`.
    """
    edges = cut_cells_equally(len(counts), bins=FIXED_BINS)
    return _release_counts(counts, edges, epsilon=epsilon, most_rows=most_rows, noise=noise)


def _release_counts(
    counts: Integers, edges: tuple[int, ...], *, epsilon: Fraction, most_rows: int, noise: Noise
) -> ScoreHistogram:
    joined = np.add.reduceat(counts, edges[:-1], axis=0)
    by_outcome = [
        release_intervals(joined[:, outcome], epsilon=epsilon, most_rows=most_rows, noise=noise) for outcome in (0, 1)
    ]
    return ScoreHistogram(edges, np.stack(by_outcome, axis=1), compute_laplace_variance(float(epsilon / most_rows)))
