"""A noisy joint histogram of scores and outcomes. Every curve is computed from it without further access to the data.

`counts[b, y]` is the number of rows with a score in bin `b` and the outcome `y`. A privacy unit counts with at most
`most_rows` rows. Each row is in one bin with one outcome, so every count gets the whole epsilon.

References: docs/proofs/score_histogram.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mechanisms.diagnostics.private_edges import find_edges
from mechanisms.formula import Integers
from mechanisms.noise.exact import check_rate
from mechanisms.protocol import Noise

Floats: TypeAlias = npt.NDArray[np.float64]

ADAPTIVE_SHARE = Fraction(1, 5)  # of epsilon, into edges: less and they are noise, more and the counts are
ADAPTIVE_LEVELS = 4  # 16 bins: each level halves what is left to find the next median in

_FEW, _MANY = 500, 10_000  # n * epsilon between which 32 bins err least; found on logistic scores of 684 to 5,000 rows


@dataclass(frozen=True, slots=True, eq=False)
class ScoreHistogram:
    """A released histogram. Its bins are runs of cells of equal width.

    Parameters:
        edges: rising cell numbers, from 0 to the number of cells; one more than there are bins.
        counts: noisy, of shape (bins, 2), by outcome 0 and 1. They may be negative.
        variance: of the noise on each of them.
    """

    edges: tuple[int, ...]
    counts: Floats
    variance: float

    def __post_init__(self) -> None:
        """Raise ValueError for edges out of order or counts of another shape."""
        if any(before >= after for before, after in zip(self.edges, self.edges[1:], strict=False)):
            raise ValueError("the edges of a histogram rise")
        if self.counts.shape != (len(self.edges) - 1, 2):
            raise ValueError("a histogram has two counts for each bin")


def choose_bins(rows: float, *, epsilon: float) -> int:
    """Return the number of equal bins with the least error.

    Fewer bins have less noise, and more bins have less error from their width. It depends only on public numbers.

    >>> [choose_bins(3000, epsilon=epsilon) for epsilon in (0.1, 1.0, 10.0)]
    [16, 32, 64]
    """
    information = rows * epsilon
    return 16 if information < _FEW else 32 if information <= _MANY else 64


def cut_cells_equally(cells: int, *, bins: int) -> tuple[int, ...]:
    """Return the edges of `bins` bins, as equal as whole cells allow. There are fewer bins if there are fewer cells.

    >>> cut_cells_equally(10, bins=4)
    (0, 2, 5, 8, 10)
    """
    return tuple(dict.fromkeys(round(Fraction(cells * place, bins)) for place in range(bins + 1)))


def release_scores(
    counts: Integers, *, edges: tuple[int, ...], epsilon: Fraction, most_rows: int, noise: Noise
) -> ScoreHistogram:
    """Release the joint histogram over public edges.

    Guarantee: `epsilon`-differential privacy under adding or removing one unit of `most_rows` rows at most, exactly.
    Proof: docs/proofs/score_histogram.md.

    Parameters:
        counts: rows by cell and outcome, int64 of shape (cells, 2); private.
        edges: as of `ScoreHistogram`, from 0 to the number of cells.

    Raises:
        Unachievable: the noise lies outside the range of exact sampling.
    """
    rate = epsilon / most_rows
    check_rate(rate)
    joined = np.add.reduceat(counts, edges[:-1], axis=0)
    drawn = noise.draw_discrete_laplace(rate=rate, size=joined.size).reshape(joined.shape)
    return ScoreHistogram(edges, (joined + drawn).astype(np.float64), compute_laplace_variance(float(rate)))


def release_adaptive(counts: Integers, *, epsilon: Fraction, most_rows: int, noise: Noise) -> ScoreHistogram:
    """Release the joint histogram over privately found edges, so that all bins have about the same number of rows.

    Scores that crowd into few cells need this.

    Guarantee, parameters and errors as for `release_scores`; a fifth of epsilon goes into the edges.
    """
    share = epsilon * ADAPTIVE_SHARE
    edges = find_edges(counts.sum(axis=1), levels=ADAPTIVE_LEVELS, epsilon=share, most_rows=most_rows, noise=noise)
    return release_scores(counts, edges=edges, epsilon=epsilon - share, most_rows=most_rows, noise=noise)


def compute_laplace_variance(rate: float) -> float:
    """Return the variance `2a / (1 - a)**2` of discrete Laplace noise, `a = exp(-rate)`.

    >>> round(compute_laplace_variance(1.0), 4)
    1.8413
    """
    decay = np.exp(-rate)
    return float(2 * decay / (1 - decay) ** 2)
