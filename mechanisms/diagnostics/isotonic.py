"""Isotonic regression: the nearest numbers that do not fall, by least squares in one pass."""

import numpy as np

from mechanisms.diagnostics.score_histogram import Floats


def fit_isotonic(values: Floats) -> Floats:
    """Return the non-decreasing numbers with the least sum of squared differences from `values`.

    >>> fit_isotonic(np.array([1.0, 3.0, 2.0, 4.0])).tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        mean, size = float(value), 1
        while means and means[-1] > mean:
            others = sizes.pop()
            mean = (means.pop() * others + mean * size) / (others + size)
            size += others
        means.append(mean)
        sizes.append(size)
    return np.repeat(np.array(means), sizes)
