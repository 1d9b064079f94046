"""How like a right model's plot a released plot of residuals is, and whether it tells wrong models from right ones.

A plot is 10 x 10 cells over the true plot of the ideal law, a tenth wider on each side. The published distance from it
is half of the differences of all cells, with what the released plot has outside.

Reference: Chen's thesis, section 4.3 (PriRP): laws I, H and N, and Sim.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import stats

from benchmarks.diagnostics.data import Floats, Law, draw_linear
from mechanisms.diagnostics.prirp import release_prirp
from mechanisms.diagnostics.residual_grid import ResidualGrid, release_residuals
from mechanisms.formula import Integers
from mechanisms.protocol import Noise

INFORMATION = (500, 1000, 5000)
"""Rows times epsilon, of 5,000 rows."""

LAWS: tuple[Law, ...] = ("I", "H", "N")
_ROWS = 5000
_PREDICTION, _RESIDUAL = 0.25, 1 / 16  # width of a fine cell: a plot has hundreds of them each way
_FINE = 1024  # cells each way, 0 in the middle: predictions to 128, residuals to 32
_SIDE = 10
_WIDER = 0.1
_METHODS: dict[str, Callable[..., ResidualGrid]] = {"three bounds": release_residuals, "prirp": release_prirp}


@dataclass(frozen=True, slots=True)
class ResidualRow:
    """One method: the mean distance from the ideal plot by law, and how well the distance tells laws H and N from I."""

    information: int
    method: str
    distances: tuple[float, float, float]
    separations: tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class IdealPlot:
    """The true plot of a model that is right: edges in both directions, and the part of the rows in each cell."""

    predictions: Floats
    residuals: Floats
    shares: Floats

    @staticmethod
    def draw(*, seed: int) -> "IdealPlot":
        """Of the ideal law."""
        predicted, residual = draw_linear("I", rows=_ROWS, generator=np.random.default_rng(seed))
        edges = [_widen(values) for values in (predicted, residual)]
        counts, *_ = np.histogram2d(predicted, residual, bins=edges)
        return IdealPlot(edges[0], edges[1], counts / _ROWS)

    def measure(self, grid: ResidualGrid) -> float:
        """The distance of a released grid: 0 where it is this plot, 1 where they share nothing."""
        counts = np.maximum(grid.counts, 0)
        total = float(counts.sum())
        if total <= 0:
            return 1.0
        rows = _measure_overlap(self.predictions, (np.array(grid.predictions) - _FINE // 2) * _PREDICTION)
        columns = _measure_overlap(self.residuals, (np.array(grid.residuals) - _FINE // 2) * _RESIDUAL)
        found = rows @ (counts / total) @ columns.T
        return 0.5 * float(np.abs(self.shares - found).sum() + 1 - found.sum())


def compare_plots(*, runs: int, seed: int, noise_of: Callable[[int], Noise]) -> Iterator[ResidualRow]:
    """Both methods at each amount of information."""
    ideal = IdealPlot.draw(seed=seed)
    generator = np.random.default_rng(seed + 1)
    tables = {law: [_count(*draw_linear(law, rows=_ROWS, generator=generator)) for _ in range(runs)] for law in LAWS}
    for information in INFORMATION:
        epsilon = Fraction(information, _ROWS)
        for method, release in _METHODS.items():
            found = [
                [
                    ideal.measure(release(table, rows=_ROWS, epsilon=epsilon, most_rows=1, noise=noise_of(run)))
                    for run, table in enumerate(tables[law], start=place * runs)
                ]
                for place, law in enumerate(LAWS)
            ]
            right, *wrong = found
            first, second = (float(stats.ks_2samp(right, other).statistic) for other in wrong)
            means = tuple(float(np.mean(one)) for one in found)
            yield ResidualRow(information, method, (means[0], means[1], means[2]), (first, second))


def _widen(values: Floats) -> Floats:
    low, high = float(values.min()), float(values.max())
    more = _WIDER * (high - low)
    return np.linspace(low - more, high + more, _SIDE + 1)


def _count(predicted: Floats, residual: Floats) -> Integers:
    """Rows by fine cell; what lies outside is in the last one."""
    places = [
        np.clip(np.floor(values / width).astype(np.int64) + _FINE // 2, 0, _FINE - 1)
        for values, width in ((predicted, _PREDICTION), (residual, _RESIDUAL))
    ]
    return np.bincount(places[0] * _FINE + places[1], minlength=_FINE * _FINE).reshape(_FINE, _FINE)


def _measure_overlap(edges: Floats, released: Floats) -> Floats:
    """Of each released interval the part that lies in each cell between the edges."""
    low = np.maximum(edges[:-1, np.newaxis], released[np.newaxis, :-1])
    high = np.minimum(edges[1:, np.newaxis], released[np.newaxis, 1:])
    return np.asarray(np.maximum(high - low, 0) / np.diff(released)[np.newaxis, :])
