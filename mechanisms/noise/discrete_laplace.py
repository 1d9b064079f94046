"""Probabilities of the discrete Laplace law `P(K = j) = (1 - a) / (1 + a) * a**abs(j)`, `a = exp(-rate)`."""

import math


def compute_mass(rate: float, value: int) -> float:
    """Return the probability that noise of a rate has a value: `P(K = value)`.

    >>> round(compute_mass(0.5, 0), 4), round(compute_mass(0.5, 3) / compute_mass(0.5, 4), 4) == round(math.exp(0.5), 4)
    (0.2449, True)
    """
    decay = math.exp(-rate)
    return -math.expm1(-rate) / (1.0 + decay) * math.exp(-rate * abs(value))


def compute_upper_tail(rate: float, value: int) -> float:
    """Return the probability that noise is at least a value, `P(K >= value)`, to a relative 1e-14 even if it is tiny.

    >>> round(compute_upper_tail(0.5, 1), 4), f"{compute_upper_tail(0.5, 1000):.3g}"
    (0.3775, '4.43e-218')
    """
    if value >= 1:
        return math.exp(-rate * value) / (1.0 + math.exp(-rate))
    return 1.0 - math.exp(-rate * (1 - value)) / (1.0 + math.exp(-rate))


def compute_lower_tail(rate: float, value: int) -> float:
    """Return the probability that noise is at most a value, `P(K <= value)`. The distribution is symmetric."""
    return compute_upper_tail(rate, -value)
