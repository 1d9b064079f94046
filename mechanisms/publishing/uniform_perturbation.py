"""Uniform perturbation: each record keeps its sensitive value with some probability, or gets a random value.

A record's other columns stay as they are, so presence is not protected. For the sensitive value alone it is local
randomised response.

| here | the paper |
|---|---|
| retention | p |
| values | m |
| floor of a value | q = (1 - p) / m |

References: Han, chapter 4; S. Warner, Randomized response, JASA 60 (309), 1965. Proof: docs/proofs/published_tables.md.
"""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.formula import Integers
from mechanisms.protocol import Noise
from mechanisms.publishing.binomials import draw_binomials, spread_records_evenly


def perturb_uniformly(counts: Integers, *, retention: Fraction, noise: Noise) -> Integers:
    """Return records by group and published value, from records by group and value. Groups keep their sizes.

    Guarantee: `compute_attribute_epsilon` for one record's sensitive value alone, and nothing for presence.
    Proof: docs/proofs/published_tables.md.

    Parameters:
        counts: int64 of shape (groups, values); records of a cell are interchangeable, so only the number that goes to
            each value is drawn.
        retention: from 0 to 1.
    """
    kept = draw_binomials(counts, probability=retention, noise=noise)
    return kept + spread_records_evenly((counts - kept).sum(axis=1), over=counts.shape[1], noise=noise)


def compute_attribute_epsilon(*, retention: float, values: int) -> float:
    """Return `ln(1 + p m / (1 - p))` for the retention p and m values.

    It is the largest logarithm of the factor by which one record's value changes the probability of a published value.

    Guarantee: the greatest ratio, attained. Proof: docs/proofs/published_tables.md.

    >>> cases = ((0.2, 10), (0.5, 2), (0.5, 50), (0.8, 2))
    >>> [round(compute_attribute_epsilon(retention=p, values=m), 4) for p, m in cases]
    [1.2528, 1.0986, 3.9318, 2.1972]
    """
    return math.log1p(retention * values / (1 - retention))


def estimate_share(published: float, size: int, *, retention: float, values: int) -> float:
    """Return the unbiased estimate `(O / n - q) / p` of a value's share in a group.

    `published` is the number of records in the group that were published with the value.

    >>> estimate_share(70, 100, retention=0.5, values=2)
    0.8999999999999999
    """
    return (published / size - (1 - retention) / values) / retention


def estimate_counts(published: Integers, *, retention: float) -> npt.NDArray[np.float64]:
    """Return the unbiased estimate of records by group and value, from published ones of shape (groups, values)."""
    floor = (1 - retention) / published.shape[1]
    return np.asarray((published - floor * published.sum(axis=1, keepdims=True)) / retention, dtype=np.float64)
