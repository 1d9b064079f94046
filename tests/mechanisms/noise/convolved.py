"""The distribution of a sum of noises by plain convolution, value by value."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mechanisms.noise.noise_sum import Noises

_NEGLECTED = 45.0  # noise beyond it, in units of its width, weighs e^-45


@lru_cache(maxsize=64)
def law(noises: Noises) -> npt.NDArray[np.float64]:
    """Return the probability of every value, the middle entry that of 0."""
    found = np.ones(1)
    for one in noises:
        most = int(_NEGLECTED / one.rate) + 1
        masses = np.exp(-one.rate * np.abs(np.arange(-most, most + 1)))
        spaced = np.zeros(2 * most * one.times + 1)
        spaced[:: one.times] = masses / masses.sum()
        for _ in range(one.count):
            found = np.convolve(found, spaced)
    return found


def exact_tail(noises: Noises, value: int) -> float:
    """Return the probability of all values from one on."""
    chances = law(noises)
    first = max(0, value + chances.size // 2)
    return float(chances[first:].sum())
