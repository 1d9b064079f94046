"""Residuals against predictions of a linear model as a noisy grid: three private bounds, then plain noise on cells.

Rows are counted in fine cells of public width. The bounds are whole numbers of these cells. The published plot
(`prirp.py`) takes symmetric bounds for predictions, which leaves half of a box empty.

References: Chen's thesis, section 4.3 (PriRP), for the shares and the number of cells; docs/proofs/score_histogram.md.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mechanisms.diagnostics.score_histogram import Floats, compute_laplace_variance
from mechanisms.formula import Integers
from mechanisms.noise.exact import check_rate
from mechanisms.protocol import Noise
from mechanisms.publishing.private_bounds import find_first_passing_candidate, list_candidates

CUT = Fraction(1, 50)  # of the rows beyond each of three bounds: together about what the published plot leaves out
_MOST_SHARE = Fraction(3, 10)  # of epsilon, into bounds, as printed
_ENOUGH = 470  # rows times the epsilon of all bounds at which a scan stops where it should, by the thesis
_LEAST_CELLS, _MOST_CELLS = 6, 48  # a side
_BETA = 0.05  # a scan stops too early with about this probability, where rows are many
_LEAST_TARGET = 2  # times the scale of the noise: with less a scan runs on past the last row, with more it cuts rows


@dataclass(frozen=True, slots=True, eq=False)
class ResidualGrid:
    """A released grid.

    Parameters:
        predictions, residuals: rising edges in fine cells. The middle of the residuals' cells is a residual of 0.
        counts: noisy, of shape (cells of predictions, cells of residuals).
        variance: of the noise on each.
    """

    predictions: tuple[int, ...]
    residuals: tuple[int, ...]
    counts: Floats
    variance: float


@dataclass(frozen=True, slots=True)
class GridShares:
    """The split of epsilon between bounds and cells, with the number of cells of a side."""

    bounds: Fraction
    cells: Fraction
    side: int


def split_grid(epsilon: Fraction, *, rows: int, kept: float = 0.9) -> GridShares:
    """Return the published split of the loss.

    It depends on the public number of rows. Bounds get the part `min(.3, 470 / (epsilon n))`. A side of the grid has
    `sqrt(kept n epsilon_2 / 10)` cells.
    """
    share = min(_MOST_SHARE, Fraction(_ENOUGH) / (epsilon * max(rows, 1)))
    cells = epsilon * (1 - share)
    side = round(math.sqrt(kept * rows * float(cells) / 10))
    return GridShares(epsilon * share, cells, min(max(side, _LEAST_CELLS), _MOST_CELLS))


def release_residuals(counts: Integers, *, rows: int, epsilon: Fraction, most_rows: int, noise: Noise) -> ResidualGrid:
    """Release lower and upper bounds of predictions, a bound of residuals, and a grid of counts between them.

    Guarantee: `epsilon`-differential privacy under adding or removing one unit of `most_rows` rows at most, exactly.
    Proof: docs/proofs/score_histogram.md.

    Parameters:
        counts: rows by fine cell of prediction and of residual, int64 of two even lengths; private.
        rows: the approximate number of rows, which is public.

    Raises:
        Unachievable: the noise lies outside the range of exact sampling.
    """
    shares = split_grid(epsilon, rows=rows)
    each = shares.bounds / (3 * most_rows)
    by_prediction, by_residual = counts.sum(axis=1), fold_middle(counts.sum(axis=0))
    high = scan_cells(by_prediction, rows=rows, epsilon=each, noise=noise)
    low = len(by_prediction) - scan_cells(by_prediction[::-1], rows=rows, epsilon=each, noise=noise)
    far = scan_cells(by_residual, rows=rows, epsilon=each, noise=noise)
    if low >= high:
        low, high = 0, len(by_prediction)  # nothing was found: as far as is public
    middle = len(by_residual)
    grid = ResidualGrid(
        predictions=cut_range_evenly(low, high, parts=shares.side),
        residuals=cut_range_evenly(middle - far, middle + far, parts=shares.side),
        counts=np.zeros((0, 0)),
        variance=0.0,
    )
    return draw_grid(grid, counts, rate=shares.cells / most_rows, noise=noise)


def scan_cells(counts: Integers, *, rows: int, epsilon: Fraction, noise: Noise) -> int:
    """Return a number of cells, at least one, beyond which few rows lie.

    It is `epsilon`-private for one row more or less.
    """
    candidates = list_candidates(len(counts))[1:]
    behind = counts.sum() - np.cumsum(counts)[np.array(candidates) - 1]
    rate = epsilon / 2
    check_rate(rate)
    offset = math.log(2 * len(candidates) / _BETA) / float(rate)
    target = max(math.floor(CUT * rows - Fraction(offset)), math.ceil(_LEAST_TARGET / rate))
    index = find_first_passing_candidate(np.array([behind], dtype=np.int64), target=target, rate=rate, noise=noise)[0]
    return candidates[int(index)]


def fold_middle(counts: Integers) -> Integers:
    """Return the counts by distance from the middle. The number of cells is even."""
    half = len(counts) // 2
    return np.asarray(counts[half:] + counts[:half][::-1])


def cut_range_evenly(low: int, high: int, *, parts: int) -> tuple[int, ...]:
    """Return whole-number edges that cut `low` to `high` into `parts` parts, as equal as possible.

    There are fewer parts if the range has fewer whole numbers.
    """
    return tuple(dict.fromkeys(low + round(Fraction((high - low) * part, parts)) for part in range(parts + 1)))


def draw_grid(grid: ResidualGrid, counts: Integers, *, rate: Fraction, noise: Noise) -> ResidualGrid:
    """Return the grid with noisy counts. Rows outside the edges are left out."""
    check_rate(rate)
    prediction, residual = grid.predictions, grid.residuals
    inside = counts[prediction[0] : prediction[-1], residual[0] : residual[-1]]
    joined = np.add.reduceat(inside, np.array(prediction[:-1]) - prediction[0], axis=0)
    joined = np.add.reduceat(joined, np.array(residual[:-1]) - residual[0], axis=1)
    drawn = noise.draw_discrete_laplace(rate=rate, size=joined.size).reshape(joined.shape)
    return replace(grid, counts=(joined + drawn).astype(np.float64), variance=compute_laplace_variance(float(rate)))
