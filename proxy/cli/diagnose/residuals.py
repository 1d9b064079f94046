"""The residuals in one group's released grid: how far and where predictions are wrong."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from mechanisms.diagnostics.residual_grid import ResidualGrid
from mechanisms.diagnostics.score_histogram import Floats
from planner.question.scores import ScoreAxis
from proxy.cli.diagnose.curves import SURE

_SHOWN = 12  # cells of a side that are drawn: their numbers can be read
_LEAST_ROWS = 20.0  # of a strip: with fewer its mean says nothing


@dataclass(frozen=True, slots=True)
class ResidualStrip:
    """A strip of neighbouring predictions: its rows, their mean residual, and half the length of its error bar."""

    low: float
    high: float
    rows: float
    residual: float
    error: float


@dataclass(frozen=True, slots=True, eq=False)
class GroupResiduals:
    """One group's released counts by prediction and residual, at the resolution of the plot, and its strips.

    `predictions` and `residuals` are the edges of the cells of `counts`.
    """

    name: str
    predictions: tuple[float, ...]
    residuals: tuple[float, ...]
    counts: Floats
    strips: tuple[ResidualStrip, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return warnings about the plot."""
        return () if self.strips else ("no range of predictions has rows enough: ask with more epsilon",)

    def make_row(self) -> tuple[str, ...]:
        """Return the table row: group, rows, and the ranges of predictions and residuals."""
        rows = f"{max(float(self.counts.sum()), 0):,.0f}"
        ends = [f"{one[0]:.4g} to {one[-1]:.4g}" for one in (self.predictions, self.residuals)]
        return self.name, rows, *ends

    def list_points(self) -> Iterator[tuple[str, ...]]:
        """Yield each strip: its predictions, rows, mean residual and its error."""
        for one in self.strips:
            told = f"{one.low:.4g} to {one.high:.4g}", f"{one.rows:,.0f}"
            yield (*told, f"{one.residual:+.4g}", f"+-{one.error:.2g}")

    def make_document(self) -> dict[str, Any]:
        """Return the grid as a JSON document."""
        return {
            "predictions": list(self.predictions),
            "residuals": list(self.residuals),
            "counts": self.counts.tolist(),
            "strips": [
                {"low": s.low, "high": s.high, "rows": s.rows, "mean_residual": s.residual, "error": s.error}
                for s in self.strips
            ],
            "warnings": list(self.warnings),
        }


def read_residuals(name: str, released: ResidualGrid, prediction: ScoreAxis, residual: ScoreAxis) -> GroupResiduals:
    """Return a released grid in the unit of predictions. Join neighbouring cells to the resolution that is drawn."""
    across = [prediction.find_place(edge) for edge in released.predictions]
    up = [residual.find_place(edge) for edge in released.residuals]
    strips = _make_strips(released, across, up)
    columns, rows = _choose_edges(len(across) - 1), _choose_edges(len(up) - 1)
    joined = np.add.reduceat(released.counts, columns[:-1], axis=0)
    joined = np.add.reduceat(joined, rows[:-1], axis=1)
    return GroupResiduals(
        name,
        tuple(across[place] for place in columns),
        tuple(up[place] for place in rows),
        joined,
        tuple(strips),
    )


def _choose_edges(cells: int) -> list[int]:
    """Return the positions of the kept edges, from 0 to the number of cells."""
    return sorted({round(cells * place / _SHOWN) for place in range(_SHOWN + 1)})


def _make_strips(released: ResidualGrid, across: list[float], up: list[float]) -> Iterator[ResidualStrip]:
    middles = np.array([(low + high) / 2 for low, high in pairwise(up)])
    for low, high in pairwise(_choose_edges(len(across) - 1)):
        counts = released.counts[low:high].sum(axis=0)
        rows = float(counts.sum())
        spread = math.sqrt(released.variance * (high - low) * len(middles))
        if rows < max(_LEAST_ROWS, SURE * spread):
            continue
        mean = float(counts @ middles) / rows
        error = SURE * math.sqrt(released.variance * (high - low) * float(np.sum((middles - mean) ** 2))) / rows
        yield ResidualStrip(across[low], across[high], rows, mean, error)
