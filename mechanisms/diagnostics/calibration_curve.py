"""Calibration of a released histogram: outcomes beside scores by bin, with bands, and the expected error.

Bins are joined from the left until each has enough rows for the noise. Joining depends on the noisy counts alone, so
all of this is post-processing.

References: A. Gelman, Y. Goegebeur et al., Diagnostic checks for discrete data regression models using posterior
predictive simulations, Applied Statistics 49, 2000 (binned residuals); docs/proofs/score_histogram.md.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mechanisms.diagnostics.score_histogram import ScoreHistogram

LEAST_ROWS = 20.0  # of a bin, as is customary for binned residuals
_LEAST_PER_EPSILON = 6.0  # six times the scale of the noise: a share is then known to about a quarter
_BAND = 1.96  # standard errors on either side: about 95 % of the bins of a calibrated model lie within


@dataclass(frozen=True, slots=True)
class CalibratedBin:
    """Some neighbouring bins, joined into one.

    Parameters:
        low, high: its first cell, and the cell after its last.
        rows: noisy.
        score: the mean middle of its bins.
        outcome: the share of positive outcomes, noisy; it may lie outside 0 to 1.
        band: a bound on the residual of a calibrated model, which holds in about 95 of 100 cases.
    """

    low: int
    high: int
    rows: float
    score: float
    outcome: float
    band: float

    @property
    def residual(self) -> float:
        """The share of positive outcomes minus the score."""
        return self.outcome - self.score

    @property
    def is_outside_band(self) -> bool:
        """True if the residual lies outside the band."""
        return abs(self.residual) > self.band


def make_calibration_curve(
    histogram: ScoreHistogram, *, middles: Sequence[float], epsilon_per_count: float
) -> tuple[CalibratedBin, ...]:
    """Return the joined bins from the lowest scores to the highest, or none if there are too few rows for one.

    Parameters:
        middles: the middle score of each bin.
        epsilon_per_count: the rate of the noise.
    """
    least = max(LEAST_ROWS, _LEAST_PER_EPSILON / epsilon_per_count)
    joined = list(_join_bins(histogram.counts.sum(axis=1).tolist(), least))
    return tuple(_make_bin(histogram, middles, start, stop) for start, stop in joined)


def compute_expected_error(bins: Sequence[CalibratedBin]) -> float | None:
    """Return the mean distance of outcomes from scores, by rows: the expected calibration error.

    Return None without bins.
    """
    rows = sum(one.rows for one in bins)
    return sum(one.rows * abs(one.residual) for one in bins) / rows if bins else None


def _join_bins(rows: Sequence[float], least: float) -> Iterator[tuple[int, int]]:
    """Yield runs of bins with enough rows. The remaining bins at the end belong to the last run."""
    runs: list[tuple[int, int]] = []
    start, found = 0, 0.0
    for place, count in enumerate(rows):
        found += count
        if found >= least:
            runs.append((start, place + 1))
            start, found = place + 1, 0.0
    if runs:
        runs[-1] = (runs[-1][0], len(rows))
    yield from runs


def _make_bin(histogram: ScoreHistogram, middles: Sequence[float], start: int, stop: int) -> CalibratedBin:
    counts = histogram.counts[start:stop]
    negative, positive = (float(one) for one in counts.sum(axis=0))
    rows = max(negative + positive, 1.0)
    weights = counts.sum(axis=1).clip(min=0.0).tolist()
    weighed = sum(weights) or 1.0
    score = sum(weight * middle for weight, middle in zip(weights, middles[start:stop], strict=True)) / weighed
    outcome = positive / rows
    share = min(max(outcome, 0.0), 1.0)
    of_noise = (stop - start) * histogram.variance * ((1 - share) ** 2 + share**2) / rows**2
    of_rows = max(share * (1 - share), score * (1 - score)) / rows
    return CalibratedBin(
        low=histogram.edges[start],
        high=histogram.edges[stop],
        rows=rows,
        score=score,
        outcome=outcome,
        band=_BAND * math.sqrt(of_noise + of_rows),
    )
