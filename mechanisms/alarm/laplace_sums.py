"""Quantiles of sums of independent Laplace noise.

They are computed in floating point, right to some 1e-9. They serve to compare prices, and no promise rests on them.
Every command imports this module and few call it, so scipy is imported inside the functions.
"""

import math
from functools import lru_cache

import numpy as np

_MOST_POINTS = 1 << 16  # of an integral: it needs hundreds for many terms, some ten thousand for three
_NEGLIGIBLE = 1e-13  # of a characteristic function and of a tail: what is left out of an integral
_BEYOND = 1e-10  # chances that a tail, computed to 1e-13, no longer tells: bounded from above instead
_REACH = 60.0  # scales that one term hardly ever reaches, exp(-60); sums get as many standard deviations besides


@lru_cache(maxsize=1024)
def find_upper_quantile(chance: float, *, fine: int, coarse: int = 0, ratio: float = 1.0) -> float:
    """Return the least `x >= 0` that a sum of noise exceeds with probability at most `chance`.

    Below a chance of 1e-10 it returns a slightly larger bound.

    Parameters:
        fine, coarse: the numbers of terms of scale 1 and of scale `ratio`, at least one in all.

    >>> round(find_upper_quantile(0.05, fine=1), 4), round(find_upper_quantile(0.05, fine=1, coarse=1), 4)
    (2.3026, 3.2718)
    """
    if chance >= 0.5:
        return 0.0
    if chance < _BEYOND:
        return _bound_quantile(chance, fine, coarse, ratio)
    from scipy import optimize

    scale = math.sqrt(2.0 * (fine + coarse * ratio**2))
    most = _REACH * max(1.0, ratio) + 40.0 * scale
    found: float = optimize.brentq(lambda x: _compute_tail(x, fine, coarse, ratio) - chance, 0.0, most, xtol=1e-10)
    return found


def _bound_quantile(chance: float, fine: int, coarse: int, ratio: float) -> float:
    """Return Chernoff's upper bound on the quantile, the least over all `t` of the moment generating function."""
    from scipy import optimize

    def bound(t: float) -> float:
        growth = -fine * math.log1p(-(t**2)) - (coarse * math.log1p(-((t * ratio) ** 2)) if coarse else 0.0)
        return (growth - math.log(chance)) / t

    most = 1.0 / max(1.0, ratio if coarse else 1.0)
    found = optimize.minimize_scalar(bound, bounds=(most * 1e-9, most * (1.0 - 1e-9)), method="bounded")
    return float(bound(float(found.x)))


def add_quantiles(*, fnr: float, fpr: float, fine: int, coarse: int = 0, ratio: float = 1.0) -> float:
    """Return the sum of two quantiles of the same noise, at `fnr` and at `fpr`.

    Two values at this distance can be separated with these error rates by a threshold on the noisy value.

    >>> round(add_quantiles(fnr=0.05, fpr=0.1, fine=24), 1)
    20.2
    """
    missed, wrong = (find_upper_quantile(chance, fine=fine, coarse=coarse, ratio=ratio) for chance in (fnr, fpr))
    return missed + wrong


def _compute_tail(x: float, fine: int, coarse: int, ratio: float) -> float:
    if ratio == 1.0:
        return _compute_tail_of_equals(x, fine + coarse)
    return _invert_tail(x, fine, coarse, ratio)


def _compute_tail_of_equals(x: float, terms: int) -> float:
    """Return the upper tail of a sum of equal Laplace noises.

    The sum is the difference of two gamma variables. It is above `x` if a Poisson variable of mean `x` and a negative
    binomial variable add up to less than the number of terms.
    """
    from scipy import special

    arrived = np.arange(terms)
    left = special.nbdtr(terms - 1 - arrived, terms, 0.5)
    return float(np.sum(np.exp(special.xlogy(arrived, x) - special.gammaln(arrived + 1) - x) * left))


def _invert_tail(x: float, fine: int, coarse: int, ratio: float) -> float:
    """Return the upper tail by Gil-Pelaez's inversion of the characteristic function.

    The grid is fine enough for the aliasing error to be negligible.
    """
    spread = math.sqrt(2.0 * (fine + coarse * ratio**2))
    step = math.pi / (_REACH * max(1.0, ratio) + 20.0 * spread)
    grid = step * np.arange(1, _MOST_POINTS + 1)
    law = np.exp(-fine * np.log1p(grid**2) - coarse * np.log1p((grid * ratio) ** 2))
    kept = max(1, int(np.count_nonzero(law > _NEGLIGIBLE)))
    waves = np.sin(grid[:kept] * x) / grid[:kept] * law[:kept]
    return 0.5 - step / math.pi * (0.5 * x + float(np.sum(waves)))
