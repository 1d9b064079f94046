"""Medians of medians by smooth sensitivity, as published, with corrected constants.

With noise from Cauchy's law, `6 S / epsilon` wide, the sensitivity `S` must be smooth to `epsilon / 6`. The print has
`8 S / epsilon` and `epsilon`, and loses a little too much. The noise is in floating point, so no release uses this. It
is here for comparison with `private_edges.py`, which is exact and in integers.

References: Chen's thesis, algorithm 12; K. Nissim, S. Raskhodnikova, A. Smith, Smooth sensitivity and sampling in
private data analysis, STOC 2007, section 2.3. Proof: docs/proofs/score_histogram.md.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mechanisms.diagnostics.score_histogram import Floats
from mechanisms.protocol import Noise

ADMISSIBLE = 6.0  # Cauchy's law: epsilon / 6 of smoothness, and 6 / epsilon of noise
_DIGITS = 53  # of a number between 0 and 1 in floating point


def find_recursive_medians(
    values: Sequence[float], *, low: float, high: float, levels: int, epsilon: Fraction, noise: Noise
) -> tuple[float, ...]:
    """Return `2**levels - 1` rising cuts between `low` and `high`.

    Guarantee: `epsilon`-differential privacy under adding or removing one value, but for floating point.

    Parameters:
        values: between `low` and `high`; private.
        levels: each splits every part in two, for `epsilon / levels`.
    """
    each = float(epsilon) / levels
    edges = [low, high]
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    for _ in range(levels):
        pairs = list(itertools.pairwise(edges))
        cuts = [
            _find_median(ordered[(ordered >= a) & (ordered < b)], a, b, epsilon=each, noise=noise) for a, b in pairs
        ]
        edges = sorted([*edges, *cuts])
    return tuple(edges[1:-1])


def compute_smooth_sensitivity(ordered: Floats, low: float, high: float, *, smoothness: float) -> float:
    """Return `max over k of exp(-k smoothness) max over t of (P[m+t] - P[m+t-k-1])`.

    `P` is padded with the interval's ends.
    """
    size = len(ordered)
    middle = size // 2
    largest = 0.0
    for distance in range(size + 1):
        decay = math.exp(-distance * smoothness)
        if decay * (high - low) <= largest:
            break
        ends = np.arange(middle, middle + distance + 2)
        spans = _pad_values(ordered, ends, low, high) - _pad_values(ordered, ends - distance - 1, low, high)
        largest = max(largest, decay * float(np.max(spans)))
    return largest


def _find_median(ordered: Floats, low: float, high: float, *, epsilon: float, noise: Noise) -> float:
    middle = float(_pad_values(ordered, np.array([len(ordered) // 2]), low, high)[0])
    width = ADMISSIBLE * compute_smooth_sensitivity(ordered, low, high, smoothness=epsilon / ADMISSIBLE) / epsilon
    found = middle + width * math.tan(math.pi * (_draw_uniform(noise) - 0.5))
    return found if low < found < high else (low + high) / 2


def _pad_values(
    ordered: Floats, places: np.ndarray[tuple[int, ...], np.dtype[np.int64]], low: float, high: float
) -> Floats:
    inside = np.clip(places, 0, max(len(ordered) - 1, 0))
    known = ordered[inside] if len(ordered) else np.full(len(places), high)
    return np.asarray(np.where(places < 0, low, np.where(places >= len(ordered), high, known)), dtype=np.float64)


def _draw_uniform(noise: Noise) -> float:
    """Return a number strictly between 0 and 1."""
    digits = noise.draw_bernoulli(probability=Fraction(1, 2), size=_DIGITS)
    whole = sum(1 << place for place, digit in enumerate(digits.tolist()) if digit)
    return (whole + 0.5) / float(1 << _DIGITS)
