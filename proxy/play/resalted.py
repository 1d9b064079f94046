"""TTL: devices are counted by a hash whose salt is changed regularly. It promises nothing.

A device that stays through a change of salt is counted again. The thesis does not say how long people stay. Here it is
uniform, up to ten minutes.

Reference: PET evaluation (Ghayyur's thesis), chapter 4.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

LONGEST_STAY = 10.0
"""Minutes."""

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def count_resalted(counts: Integers, *, period: float, generator: np.random.Generator) -> Integers:
    """Return the number of devices that are counted, for each true number of people.

    A device gets a new salt after `period` minutes, and is then counted again.

    Parameters:
        counts: true ones, of any shape.
        period: minutes for which a salt lives.
        generator: draws how long each person stays. This is not noise that protects anybody.

    >>> count_resalted(np.array([0, 3]), period=20.0, generator=np.random.default_rng(0)).tolist()
    [0, 3]
    """
    found = [int(count_salts(generator.uniform(0, LONGEST_STAY, count), period).sum()) for count in counts.ravel()]
    return np.array(found, dtype=np.int64).reshape(counts.shape)


def count_salts(stays: Floats, period: float) -> Integers:
    """Return the number of salts during each stay, which is the number of times that the person is counted."""
    return np.asarray(1 + np.floor(stays / period), dtype=np.int64)


@lru_cache(maxsize=32)
def tabulate_resalted(period: float, most: int) -> Floats:
    """Return the probability that some number of people (row) is counted as another (column), both up to `most`.

    Everybody is counted at least once.
    """
    law = np.zeros(math.floor(LONGEST_STAY / period) + 2)
    for times in range(1, len(law)):
        law[times] = max(0.0, min(times * period, LONGEST_STAY) - (times - 1) * period) / LONGEST_STAY
    table = np.zeros((most + 1, most + 1))
    table[0, 0] = 1.0
    for people in range(1, most + 1):
        table[people] = np.convolve(table[people - 1], law)[: most + 1]
    return table
