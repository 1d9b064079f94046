"""Probabilities of `K + times * L`, a weighted sum of two independent discrete Laplace noises of different rates.

Guarantee: to a relative 1e-12, also where it is tiny (held against sums over all values in tests). Where one noise is a
sum's and the other a count's, that is what a mean's threshold is read off. Proof: docs/proofs/common_sums.md.
"""

import math

from mechanisms.noise import discrete_laplace


def compute_upper_tail(rate: float, value: int, *, times: int, beside: float) -> float:
    """Return `P(K + times * L >= value)`, where the noise K has the rate `rate` and the noise L has the rate `beside`.

    Both noises are symmetric, so the sign of `times` does not matter. With `times` 0 it is the tail of K.

    >>> [round(compute_upper_tail(0.5, 3, times=times, beside=0.25), 4) for times in (2, 0)]
    [0.3775, 0.1389]
    """
    if times == 0:
        return discrete_laplace.compute_upper_tail(rate, value)
    if value <= 0:
        return 1.0 - compute_upper_tail(rate, 1 - value, times=times, beside=beside)
    step = abs(times)
    last = (value - 1) // step  # up to this L the other noise has to reach beyond zero
    front = -math.expm1(-beside) / (1.0 + math.exp(-beside)) / (1.0 + math.exp(-rate))
    both = beside + step * rate
    below = front * math.exp(-rate * value - both) / -math.expm1(-both)
    within = front * _sum_geometric(-rate * value, step * rate - beside, last + 1)
    all_above = math.exp(-beside * (last + 1)) / (1.0 + math.exp(-beside))
    over = rate * (1 - value + step * (last + 1)) + beside * (last + 1)
    return below + within + all_above - front * math.exp(-over) / -math.expm1(-both)


def compute_lower_tail(rate: float, value: int, *, times: int, beside: float) -> float:
    """Return `P(K + times * L <= value)`, for noises as in `compute_upper_tail`. The distribution is symmetric."""
    return compute_upper_tail(rate, -value, times=times, beside=beside)


def _sum_geometric(first: float, growth: float, terms: int) -> float:
    """Return the sum of `exp(first + growth * n)` for `n` from 0 to `terms - 1`, the largest term taken out."""
    if growth == 0.0:
        return terms * math.exp(first)
    if growth > 0.0:
        first, growth = first + growth * (terms - 1), -growth
    return math.exp(first) * math.expm1(growth * terms) / math.expm1(growth)
