"""How far curves are off, and whether calibration tells a wrong model from a right one: ours beside the published."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from scipy import stats

from benchmarks.diagnostics.data import Floats, Model, Scored, draw_logistic, read_scored
from mechanisms.diagnostics.calibration_curve import make_calibration_curve
from mechanisms.diagnostics.pribrp import list_residuals, release_pribrp
from mechanisms.diagnostics.priroc import release_priroc, release_priroc_fix
from mechanisms.diagnostics.roc_curve import make_roc_curve
from mechanisms.diagnostics.score_histogram import ScoreHistogram, cut_cells_equally, release_adaptive, release_scores
from mechanisms.protocol import Noise

EPSILONS = (Fraction(1, 10), Fraction(3, 10), Fraction(1))
SIZES = ((385, 299), (747, 2253))
"""Positives and negatives: the thesis's Twitter data, and Adult's own share in 3,000."""

INFORMATION = (1000, 2000, 5000, 10_000)
"""Rows times epsilon at which calibration is compared, of 5,000 rows."""

ROWS = (500, 1000, 1500, 2000, 2500, 3000, 3500)
"""Rows at which the thesis tells its models apart by the plot without noise (its table 4.5)."""

_ROWS = 5000
_BINS = 32
_NO_CURVE = 0.5  # the error of saying nothing, where noise leaves no positive or no negative row


@dataclass(frozen=True, slots=True)
class AreaRow:
    """The mean error of the area under the curve, and the mean of what the curve says of its own standard deviation."""

    rows: int
    epsilon: Fraction
    method: str
    error: float
    told: float


@dataclass(frozen=True, slots=True)
class SeparationRow:
    """The largest distance of the shapes' distribution functions under the two models: 1 tells them apart always.

    `information` is rows times epsilon; without noise, rows.
    """

    information: int
    method: str
    separation: float


def compare_areas(
    *, runs: int, seed: int, noise_of: Callable[[int], Noise], saturated: bool = False
) -> Iterator[AreaRow]:
    """Every method on both sizes at each epsilon; with `saturated` scores, nearly all of which one equal bin has."""
    whole = read_scored(seed=seed).saturate() if saturated else read_scored(seed=seed)
    for positives, negatives in SIZES:
        sample = whole.sample(positives=positives, negatives=negatives, generator=np.random.default_rng(seed))
        truth = compute_area_by_ranks(sample)
        for epsilon in EPSILONS:
            for method, release in _list_curves(sample, epsilon).items():
                found = [make_roc_curve(release(noise=noise_of(run))) for run in range(runs)]
                errors = [_NO_CURVE if one is None else abs(one.area - truth) for one in found]
                told = [one.noise_sd for one in found if one is not None]
                error = float(np.mean(errors))
                yield AreaRow(positives + negatives, epsilon, method, error, float(np.mean(told or [np.nan])))


def compare_separation(*, runs: int, seed: int, noise_of: Callable[[int], Noise]) -> Iterator[SeparationRow]:
    """How well the shape of residuals tells model M2 from M1: by the released bins of each method."""
    models: tuple[Model, ...] = ("M1", "M2")
    generator = np.random.default_rng(seed)
    tables = {model: [draw_logistic(model, rows=_ROWS, generator=generator) for _ in range(runs)] for model in models}
    for information in INFORMATION:
        epsilon = Fraction(information, _ROWS)
        for method, shape in (("32 bins", _measure_our_shape), ("pribrp, repaired", _measure_shape_of_pribrp)):
            found = [
                [shape(table, epsilon, noise_of(place * runs + run)) for run, table in enumerate(tables[model])]
                for place, model in enumerate(models)
            ]
            yield SeparationRow(information, method, float(stats.ks_2samp(*found).statistic))


def separate_without_noise(*, runs: int, seed: int) -> Iterator[SeparationRow]:
    """The same by the plot that the data have: bins of equally many rows, and how steep residuals are on both sides."""
    models: tuple[Model, ...] = ("M1", "M2")
    generator = np.random.default_rng(seed)
    for rows in ROWS:
        found = [
            [_measure_steepness(draw_logistic(model, rows=rows, generator=generator)) for _ in range(runs)]
            for model in models
        ]
        yield SeparationRow(rows, "without noise", float(stats.ks_2samp(*found).statistic))


def compute_area_by_ranks(table: Scored) -> float:
    """The area under the curve without bins or noise."""
    ranks = stats.rankdata(table.scores)
    positives = int(table.outcomes.sum())
    above = float(ranks[table.outcomes == 1].sum()) - positives * (positives + 1) / 2
    return above / (positives * (len(ranks) - positives))


def measure_shape(scores: Sequence[float], off: Sequence[float], weights: Sequence[float]) -> float:
    """The slope of residuals right of one half less that left of it: about 0 where the model is right."""
    left, right = _compute_slopes(scores, off, weights)
    return right - left


def _compute_slopes(scores: Sequence[float], off: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    """How residuals rise left and right of one half."""
    below = np.asarray(scores) < 0.5
    found = []
    for side in (below, ~below):
        x, y, w = (np.asarray(values, dtype=np.float64)[side] for values in (scores, off, weights))
        found.append(_compute_slope(x, y, w) if len(x) > 1 else 0.0)
    return found[0], found[1]


def _measure_steepness(table: Scored) -> float:
    """The thesis's distance from the plot of a right model, which is flat on both sides."""
    order = np.argsort(table.scores)
    parts = np.array_split(order, round(len(order) ** 0.5))
    scores = [float(table.scores[part].mean()) for part in parts]
    off = [float((table.outcomes[part] - table.scores[part]).mean()) for part in parts]
    left, right = _compute_slopes(scores, off, [1.0] * len(parts))
    return abs(left) + abs(right)


def _compute_slope(x: Floats, y: Floats, w: Floats) -> float:
    centred = x - np.sum(w * x) / np.sum(w)
    spread = float(np.sum(w * centred**2))
    return float(np.sum(w * centred * y)) / spread if spread else 0.0


def _list_curves(sample: Scored, epsilon: Fraction) -> dict[str, Callable[..., ScoreHistogram]]:
    cells = sample.count_cells()
    found: dict[str, Callable[..., ScoreHistogram]] = {
        f"{bins} bins": partial(
            release_scores, cells, edges=cut_cells_equally(len(cells), bins=bins), epsilon=epsilon, most_rows=1
        )
        for bins in (16, 32)
    }
    others = {"adaptive": release_adaptive, "priroc": release_priroc, "priroc_fix": release_priroc_fix}
    for name, release in others.items():
        found[name] = partial(release, cells, epsilon=epsilon, most_rows=1)
    return found


def _measure_our_shape(table: Scored, epsilon: Fraction, noise: Noise) -> float:
    edges = cut_cells_equally(1024, bins=_BINS)
    histogram = release_scores(table.count_cells(), edges=edges, epsilon=epsilon, most_rows=1, noise=noise)
    middles = [(place + 0.5) / _BINS for place in range(_BINS)]
    bins = make_calibration_curve(histogram, middles=middles, epsilon_per_count=float(epsilon))
    return measure_shape([one.score for one in bins], [one.residual for one in bins], [one.rows for one in bins])


def _measure_shape_of_pribrp(table: Scored, epsilon: Fraction, noise: Noise) -> float:
    bins = release_pribrp(table.count_cells(), rows=_ROWS, epsilon=epsilon, most_rows=1, noise=noise)
    points = list(list_residuals(bins, width=1 / 1024, low=0.0))
    return measure_shape([x for x, _ in points], [y for _, y in points], [max(one.size, 1) for one in bins])
