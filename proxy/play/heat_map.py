"""The ten colours of a heat map, as the thesis draws it. Usual counts lie within two standard deviations of the mean.

Eight colours divide the usual range. The first and the last are for counts outside it.

Reference: PET evaluation (Ghayyur's thesis), chapter 4.
"""

import numpy as np
import numpy.typing as npt

COLOURS = 10  # as in the thesis
LEAST_SPREAD = 0.5
"""People: a place that is always empty has some colours as well."""

Floats = npt.NDArray[np.float64]


def colour_counts(
    counts: npt.NDArray[np.floating] | npt.NDArray[np.integer], *, mean: Floats | float, spread: Floats | float
) -> npt.NDArray[np.int64]:
    """Return the number of each count's colour, from 0.

    >>> colour_counts(np.array([-9, 6, 10, 14, 99]), mean=10.0, spread=2.0).tolist()
    [0, 1, 5, 9, 9]
    """
    wide = np.maximum(spread, LEAST_SPREAD)
    inside = (counts - mean + 2 * wide) / (4 * wide) * (COLOURS - 2)
    return np.asarray(np.clip(np.floor(inside) + 1, 0, COLOURS - 1), dtype=np.int64)
