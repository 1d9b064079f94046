"""The probability that one of some keys overtakes one of others that are truly ahead: extremes of equal noise.

It is `P(max of M draws >= min of N draws + distance)`, for independent discrete Laplace draws of one rate. It is
computed in one pass over the law of the maximum. If that has too many values, neighbouring values are joined and count
as the last of them, so the result is never below the probability. Computed in floating point, so callers keep `MARGIN`.

| here | the proof |
|---|---|
| behind, ahead | M, N |
| distance | d |

Proof: docs/proofs/ranking.md.
"""

from math import ceil, exp, expm1, log, log1p

import numpy as np
import numpy.typing as npt

MARGIN = 1e-9  # relative; rounding loses some 1e-12 (docs/proofs/ranking.md)

_BLOCKS = 1 << 13  # of the law: chances too large by 1 % at most where it is longer, against 1 ms a chance
_NEGLIGIBLE = 25.0  # of a logarithm: what lies beyond counts as if the worst happened, one part in 1e10

Floats = npt.NDArray[np.float64]


def bound_overtaken(*, rate: float, behind: int, ahead: int, distance: int) -> float:
    """Return an upper bound on the probability that one of `behind` keys overtakes one of `ahead` keys.

    With `behind` draws on one side and `ahead` draws on the other, it is `P(max of the first >= min of the second +
    distance)`. The bound is less than 1 % above it.

    Guarantee: an upper bound, apart from rounding of at most `MARGIN` (docs/proofs/ranking.md).

    Parameters:
        rate: of the noise, per unit of the distance.
        behind, ahead: numbers of independent draws, >= 1.
        distance: >= 1.

    One key a hundred behind five others, and the five hundred behind one:

    >>> [round(bound_overtaken(rate=0.05, behind=b, ahead=a, distance=100), 3) for b, a in ((1, 5), (500, 1))]
    [0.044, 0.735]
    """
    low = -ceil((_NEGLIGIBLE + log(ahead)) / rate)
    high = distance + ceil((_NEGLIGIBLE + log(behind)) / rate)
    ends = np.floor(np.linspace(low, high, min(_BLOCKS, high - low) + 1))
    below = _compute_log_at_most(rate, ends) * behind
    masses = np.empty(ends.size)
    masses[0] = exp(below[0])
    masses[1:] = np.exp(below[1:]) * -np.expm1(below[:-1] - below[1:])
    overtaken = -np.expm1(ahead * _compute_log_at_most(rate, distance - 1 - ends))
    return min(1.0, float(masses @ overtaken) - expm1(float(below[-1])))


def compute_swap_probability(*, rate: float, distance: int) -> float:
    """Return the probability that noise swaps two keys: `P(K >= K' + distance)` for two draws.

    It is the probability that a key is ranked before, or level with, a key that is truly `distance` ahead.

    Parameters:
        rate: of the noise, per unit of the distance.
        distance: >= 1.

    >>> round(compute_swap_probability(rate=0.05, distance=100), 4)
    0.012
    """
    decay, short = exp(-rate), -expm1(-rate)
    spread = decay / short + (1.0 + decay * decay) / (short * (1.0 + decay))
    return exp(-rate * distance) * short / (1.0 + decay) ** 2 * (distance + spread)


def _compute_log_at_most(rate: float, values: Floats) -> Floats:
    """Return `ln P(K <= value)`, accurate even if the probability or its complement is tiny."""
    spread = log1p(exp(-rate))
    falling = np.minimum(values, -1.0) * rate - spread
    rising = np.log1p(-np.exp(-(np.maximum(values, 0.0) + 1.0) * rate - spread))
    return np.where(values < 0.0, falling, rising)
