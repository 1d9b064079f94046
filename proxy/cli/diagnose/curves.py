"""The curves of one group's released histogram of scores: an ROC curve or a calibration, with the effect of noise."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mechanisms.diagnostics.calibration_curve import CalibratedBin, compute_expected_error, make_calibration_curve
from mechanisms.diagnostics.pribrp import ResidualBin
from mechanisms.diagnostics.roc_curve import RocCurve, make_roc_curve
from mechanisms.diagnostics.score_histogram import ScoreHistogram
from planner.question.scores import ScoreAxis

SURE = 1.96
"""Standard deviations on either side of what is told: about 95 in 100 lie within."""

_ALL_NOISE = 0.5  # of an area, on either side: every area there is

_NO_CURVE = "noise leaves no positive or no negative row: ask with more epsilon, or of larger groups"
_NO_BINS = "there are too few rows for one bin that noise does not drown"
_SATURATED = "one bin holds more than half of the rows, and hides the order of their scores: ask with --method adaptive"


@dataclass(frozen=True, slots=True)
class GroupRoc:
    """One group's ROC curve; None if noise leaves no curve."""

    name: str
    curve: RocCurve | None
    axis: ScoreAxis

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return warnings about the curve."""
        if self.curve is None:
            return (_NO_CURVE,)
        return (_SATURATED,) if self.curve.is_saturated else ()

    def make_row(self) -> tuple[str, ...]:
        """Return the table row: group, area, its errors by noise and by bins, separation, numbers of each outcome."""
        one = self.curve
        if one is None:
            return (self.name, "none", "", "", "", "", "")
        return (
            self.name,
            f"{one.area:.3f}",
            describe_noise(one.noise_sd),
            _describe_error(one.binning_bias),
            f"{one.separation:.3f}",
            f"{max(one.positives, 0):,.0f}",
            f"{max(one.negatives, 0):,.0f}",
        )

    def list_points(self) -> Iterator[tuple[str, ...]]:
        """Yield the points of the curve, the strictest first.

        Each has the score from which a row counts as positive, and the three rates there.
        """
        if self.curve is None:
            return
        one = self.curve
        for edge, false, true, precision in zip(
            one.edges, one.false_positives, one.true_positives, one.precision, strict=True
        ):
            yield f"{self.axis.find_edge(edge):.4g}", f"{false:.3f}", f"{true:.3f}", f"{precision:.3f}"

    def make_document(self) -> dict[str, Any]:
        """Return the curve as a JSON document, with the standard deviations of its noise."""
        if self.curve is None:
            return {"area": None, "warnings": list(self.warnings)}
        one = self.curve
        return {
            "area": one.area,
            "area_noise_sd": one.noise_sd,
            "area_binning_bias": one.binning_bias,
            "separation": one.separation,
            "positives": one.positives,
            "negatives": one.negatives,
            "thresholds": [self.axis.find_edge(edge) for edge in one.edges],
            "false_positive_rate": one.false_positives.tolist(),
            "true_positive_rate": one.true_positives.tolist(),
            "false_positive_noise_sd": one.false_sds.tolist(),
            "true_positive_noise_sd": one.true_sds.tolist(),
            "precision": one.precision.tolist(),
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class PlottedBin:
    """A bin of neighbouring scores: its number of rows, their mean score and mean outcome.

    The residual of a calibrated model stays within `band`. `band` is None if the method gives none.
    """

    low: float
    high: float
    rows: float
    score: float
    outcome: float
    band: float | None

    @property
    def residual(self) -> float:
        """The share of positive outcomes minus the mean score."""
        return self.outcome - self.score

    @property
    def is_off(self) -> bool:
        """Return True if noise and chance do not explain the residual."""
        return self.band is not None and abs(self.residual) > self.band


@dataclass(frozen=True, slots=True)
class GroupCalibration:
    """One group's bins. `error` is the expected calibration error; None if the method gives none."""

    name: str
    bins: tuple[PlottedBin, ...]
    error: float | None
    saturated: bool

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return warnings about the bins."""
        return ((_NO_BINS,) if not self.bins else ()) + ((_SATURATED,) if self.saturated else ())

    def make_row(self) -> tuple[str, ...]:
        """Return the table row: group, number of bins, how many are off, expected calibration error, rows."""
        off = "" if any(one.band is None for one in self.bins) else str(sum(one.is_off for one in self.bins))
        error = "" if self.error is None else f"{self.error:.3f}"
        return self.name, str(len(self.bins)), off, error, f"{max(sum(one.rows for one in self.bins), 0):,.0f}"

    def list_points(self) -> Iterator[tuple[str, ...]]:
        """Yield each bin: its scores, rows, mean score and outcome, and its residual with the band."""
        for one in self.bins:
            band = "" if one.band is None else _describe_error(one.band)
            told = f"{one.low:.4g} to {one.high:.4g}", f"{max(one.rows, 0):,.0f}", f"{one.score:.3f}"
            yield (*told, f"{one.outcome:.3f}", f"{one.residual:+.3f}", band, "off" if one.is_off else "")

    def make_document(self) -> dict[str, Any]:
        """Return the bins as a JSON document."""
        bins = [
            {
                "low": one.low,
                "high": one.high,
                "rows": one.rows,
                "mean_score": one.score,
                "mean_outcome": one.outcome,
                "residual": one.residual,
                "band": one.band,
                "off": None if one.band is None else one.is_off,
            }
            for one in self.bins
        ]
        return {"expected_calibration_error": self.error, "bins": bins, "warnings": list(self.warnings)}


def read_roc(name: str, released: ScoreHistogram, axis: ScoreAxis) -> GroupRoc:
    """Return the curve of a released histogram."""
    return GroupRoc(name, make_roc_curve(released), axis)


def read_calibration(
    name: str, released: ScoreHistogram | tuple[ResidualBin, ...], axis: ScoreAxis, *, epsilon_per_count: float
) -> GroupCalibration:
    """Return the bins of a released histogram, joined if noise is too large for them. PriBRP's bins stay as they are.

    Parameters:
        epsilon_per_count: the rate of the noise on a histogram's counts.
    """
    if not isinstance(released, ScoreHistogram):
        plain = [
            PlottedBin(
                axis.find_edge(one.low),
                axis.find_edge(one.high),
                one.size,
                axis.find_place(one.score),
                one.outcome,
                None,
            )
            for one in released
        ]
        return GroupCalibration(name, tuple(plain), None, saturated=False)
    edges = released.edges
    middles = [axis.find_place((low + high) / 2) for low, high in pairwise(edges)]
    found = make_calibration_curve(released, middles=middles, epsilon_per_count=epsilon_per_count)
    curve = make_roc_curve(released)
    saturated = curve is not None and curve.is_saturated
    return GroupCalibration(
        name, tuple(_make_bin(one, axis) for one in found), compute_expected_error(found), saturated
    )


def _make_bin(one: CalibratedBin, axis: ScoreAxis) -> PlottedBin:
    return PlottedBin(axis.find_edge(one.low), axis.find_edge(one.high), one.rows, one.score, one.outcome, one.band)


def describe_noise(noise_sd: float) -> str:
    """Return an area's error from noise as text. If it allows every possible area, the text says so."""
    return _describe_error(SURE * noise_sd) if SURE * noise_sd < _ALL_NOISE else "all of it"


def _describe_error(half: float) -> str:
    return f"+-{half:.3f}" if half >= 0.0005 else "<0.001"
