"""What others' ways of answering at every look cost: `epsilon * (tolerance + 1)` for values that only grow by rows.

Each answers at every one of `looks` looks whether a count is above its cut. Missed at a look: with probability `fnr`.
Trees and matrices promise `fpr` for each look, sparse vectors for all looks together, as an alarm does.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

from mechanisms.alarm.laplace_sums import add_quantiles

DELTA = 1e-6
TOLERANCE = 100  # of the matrix mechanism, whose price depends on it

_GRID = 20_001  # points of an integral over the threshold's noise: right to three places
_REACH = 40.0  # scales of noise that an integral covers

Floats = npt.NDArray[np.float64]


def compute_lower_bound(looks: int, *, fnr: float, fpr: float) -> float:
    """Below this no mechanism without a delta keeps an alarm's contract."""
    return math.log(looks * (1.0 - fnr - fpr) / fpr)


def price_binary_tree(looks: int, *, fnr: float, fpr: float) -> float:
    """Chan, Shi and Song: a row is in one node of each level, a look adds as many nodes as its number has ones."""
    levels = looks.bit_length()
    nodes = max(look.bit_count() for look in range(1, looks + 1))
    return levels * add_quantiles(fnr=fnr, fpr=fpr, fine=nodes)


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Noise on the threshold and on each look, two-sided or one-sided, and the part of the loss that the threshold has.

    `monotone`: a row moves all looks one way, so that a look's noise has the whole of the other part.
    """

    threshold_one_sided: bool
    look_one_sided: bool
    monotone: bool
    part: float | None

    def price(self, looks: int, *, fnr: float, fpr: float) -> float:
        """With the part given, or the best one."""
        if self.part is not None:
            return self._price(self.part, looks, fnr, fpr)
        found = optimize.minimize_scalar(
            lambda part: self._price(part, looks, fnr, fpr), bounds=(0.05, 0.95), method="bounded"
        )
        return float(found.fun)

    def _price(self, part: float, looks: int, fnr: float, fpr: float) -> float:
        threshold, look = part, (1.0 - part) * (1.0 if self.monotone else 0.5)
        noise = np.linspace(0.0 if self.threshold_one_sided else -_REACH / threshold, _REACH / threshold, _GRID)
        density = np.exp(-threshold * np.abs(noise)) * threshold * (1.0 if self.threshold_one_sided else 0.5)
        steps = noise[1] - noise[0]

        def expect(values: Floats) -> float:
            weighted = density * values
            return float((np.sum(weighted) - 0.5 * (weighted[0] + weighted[-1])) * steps)

        def below(distance: float) -> Floats:
            """The chance that a look's noise is less than the threshold's and a distance, for each of the latter."""
            reached = noise + distance
            falling = np.exp(-look * np.abs(reached))
            if self.look_one_sided:
                return np.where(reached > 0.0, 1.0 - falling, 0.0)
            return np.where(reached > 0.0, 1.0 - 0.5 * falling, 0.5 * falling)

        missed = _find_zero(lambda distance: expect(below(distance)) - fnr)
        wrong = _find_zero(lambda distance: fpr - expect(1.0 - below(distance) ** looks))
        return wrong - missed


PUBLISHED = SparseVector(threshold_one_sided=False, look_one_sided=False, monotone=False, part=0.5)
"""Noise of twice and four times the sensitivity: one positive, half of the loss each."""
MONOTONE = SparseVector(threshold_one_sided=False, look_one_sided=False, monotone=True, part=None)
"""Lyu, Su and Li: half of the noise where all looks move one way."""
EXPONENTIAL = SparseVector(threshold_one_sided=False, look_one_sided=True, monotone=True, part=None)
"""Liu and others: one-sided noise on the looks."""
ONE_SIDED = SparseVector(threshold_one_sided=True, look_one_sided=True, monotone=True, part=None)
"""One-sided noise on the threshold as well, which growing values allow: the least that we found."""


def price_matrix(looks: int, *, fnr: float, fpr: float) -> float:
    """Running sums by the square root of their matrix, with Gaussian noise and a delta of one in a million."""
    terms = np.cumprod(np.concatenate(([1.0], 1.0 - 0.5 / np.arange(1, looks))))
    norm = float(np.sum(terms**2))  # of a row times that of a column, each the root of it
    sigma = (TOLERANCE + 1) / (stats.norm.isf(fnr) + stats.norm.isf(fpr)) / norm
    epsilon: float = optimize.brentq(lambda one: _compute_gaussian_delta(one, sigma) - DELTA, 1e-6, 50.0)
    return epsilon * (TOLERANCE + 1)


def _compute_gaussian_delta(epsilon: float, sigma: float) -> float:
    """Balle and Wang: the delta of Gaussian noise, exactly."""
    near, far = 0.5 / sigma - epsilon * sigma, -0.5 / sigma - epsilon * sigma
    return float(stats.norm.cdf(near) - math.exp(epsilon + stats.norm.logcdf(far)))


def _find_zero(excess: Callable[[float], float]) -> float:
    """Where a rising function is zero."""
    found: float = optimize.brentq(excess, -400.0, 400.0, xtol=1e-6)
    return found
