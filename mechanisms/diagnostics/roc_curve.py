"""ROC, AUC with its error, KS and precision-recall of a released histogram. This is post-processing and costs nothing.

| here | the formulas |
|---|---|
| positives, negatives | P_b, N_b by bin, of sums n1, n0 |
| below_positive, below_negative | F1, F0: the share of a class below the middle of a bin |
| area | A |

References: docs/proofs/score_histogram.md (the errors of the area and of the rates).
"""

import math
from dataclasses import dataclass

import numpy as np

from mechanisms.diagnostics.isotonic import fit_isotonic
from mechanisms.diagnostics.score_histogram import Floats, ScoreHistogram

MOST_IN_ONE_BIN = 0.5
"""A bin that holds more than this part of the rows hides the order of its scores: the curve is no use then."""


@dataclass(frozen=True, slots=True, eq=False)
class RocCurve:
    """A ROC curve of `bins + 1` points, from (0, 0) at the strictest threshold to (1, 1).

    Parameters:
        edges: for each point the cell from which a score counts as positive, falling. The first is the number of cells.
        false_positives, true_positives: shares of the negatives and of the positives, rising.
        false_sds, true_sds: the standard deviations of these shares due to noise.
        precision: the share of true positives among all rows that count as positive, or 1 if none do.
        area: under the curve, by trapezoids.
        noise_sd: the standard deviation of the area due to noise.
        binning_bias: the most by which scores that share a bin may change the area.
        positives, negatives: noisy numbers of each.
        largest_bin: the part of all rows in the fullest bin.
    """

    edges: tuple[int, ...]
    false_positives: Floats
    true_positives: Floats
    false_sds: Floats
    true_sds: Floats
    precision: Floats
    area: float
    noise_sd: float
    binning_bias: float
    positives: float
    negatives: float
    largest_bin: float

    @property
    def separation(self) -> float:
        """The largest distance of the two classes' distribution functions (Kolmogorov, Smirnov)."""
        return float(np.max(np.abs(self.true_positives - self.false_positives)))

    @property
    def is_saturated(self) -> bool:
        """True if one bin has more than `MOST_IN_ONE_BIN` of the rows, so that the curve hides their order."""
        return self.largest_bin > MOST_IN_ONE_BIN


def make_roc_curve(histogram: ScoreHistogram) -> RocCurve | None:
    """Return the ROC curve of a histogram, or None if noise leaves no positive or no negative row."""
    summed = [fit_isotonic(np.cumsum(histogram.counts[::-1, outcome])).clip(min=0.0) for outcome in (0, 1)]
    negatives, positives = (float(one[-1]) for one in summed)
    if min(negatives, positives) < 1.0:
        return None
    false, true = (np.concatenate([[0.0], one / one[-1]]) for one in summed)
    taken = np.concatenate([[0.0], summed[0] + summed[1]])
    precision = np.divide(np.concatenate([[0.0], summed[1]]), taken, out=np.ones_like(taken), where=taken > 0)
    area = float(np.sum(np.diff(false) * (true[1:] + true[:-1]) / 2))
    shares = np.diff(false), np.diff(true)
    rows = shares[0] * negatives + shares[1] * positives
    return RocCurve(
        edges=tuple(reversed(histogram.edges)),
        false_positives=false,
        true_positives=true,
        false_sds=_compute_sds_of_shares(histogram, false, rows=negatives),
        true_sds=_compute_sds_of_shares(histogram, true, rows=positives),
        precision=precision,
        area=area,
        noise_sd=_compute_sd_of_area(histogram, false, true, area=area, positives=positives, negatives=negatives),
        binning_bias=float(np.sum(shares[0] * shares[1])) / 2,
        positives=positives,
        negatives=negatives,
        largest_bin=float(np.max(rows)) / (positives + negatives),
    )


def _compute_sds_of_shares(histogram: ScoreHistogram, shares: Floats, *, rows: float) -> Floats:
    # of s = S / (S + R), with noise on each of the bins in S and in R
    above = np.arange(len(shares))
    bins = above * (1 - shares) ** 2 + above[::-1] * shares**2
    return np.sqrt(histogram.variance * bins) / rows


def _compute_sd_of_area(
    histogram: ScoreHistogram, false: Floats, true: Floats, *, area: float, positives: float, negatives: float
) -> float:
    # shares below the middle of each bin, highest bin first
    below_negative = 1 - (false[1:] + false[:-1]) / 2
    below_positive = 1 - (true[1:] + true[:-1]) / 2
    moved_by_positive = np.sum((below_negative - area) ** 2) / positives**2
    moved_by_negative = np.sum((1 - below_positive - area) ** 2) / negatives**2
    return math.sqrt(histogram.variance * float(moved_by_positive + moved_by_negative))
