"""PeGaSus's Smoothers, which estimate a tick from the noisy counts of its group so far. They read no private value.

| here | the thesis |
|---|---|
| `take_average`, `take_median`, `shrink_to_average` | equations 5.5, 5.6, 5.7 |
| group, latest, variance | the noisy counts of G, that of t, tau squared |

Equation 5.7 is misprinted: it adds the noisy count to its own shrunken distance from the average, which makes the
estimate worse than none, and it counts `n - 1` where the estimator has `n - 3`. Here the average is added, and a factor
below zero counts as zero (the positive part): small groups that happen to lie close together have such, far below. Of
fewer than four counts the estimator says nothing, and the noisy count stays as it is.

References: Chen's thesis, section 5.3.3; B. Efron, C. Morris, Stein's estimation rule and its competitors, 1973.
Proof: docs/proofs/streams.md.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

Smoother: TypeAlias = Callable[[Sequence[int], int, Fraction], Fraction]
"""From a group's noisy counts in ascending order, the latest of them and their noise's variance."""


def take_median(group: Sequence[int], latest: int, variance: Fraction) -> Fraction:
    """Return the median of the group's noisy counts, the published smoother.

    >>> [str(take_median(group, 0, Fraction(0))) for group in ([44, 56, 67], [44, 56])]
    ['56', '50']
    """
    del latest, variance
    size = len(group)
    return Fraction(group[(size - 1) // 2] + group[size // 2], 2)


def take_average(group: Sequence[int], latest: int, variance: Fraction) -> Fraction:
    """Return the mean of the group's noisy counts.

    >>> str(take_average([1, 2, 4], 4, Fraction(0)))
    '7/3'
    """
    del latest, variance
    return Fraction(sum(group), len(group))


def shrink_to_average(group: Sequence[int], latest: int, variance: Fraction) -> Fraction:
    """Return James and Stein's estimator (positive part): the latest count, shrunk towards the group's mean.

    >>> str(shrink_to_average([0, 0, 4, 8], 8, Fraction(11)))
    '27/4'
    """
    size, total = len(group), sum(group)
    spread = size * sum(count * count for count in group) - total * total  # n times the sum of squares about the mean
    if size < _LEAST_GROUP:
        return Fraction(latest)
    shrunk = (size - 3) * size * variance
    average = Fraction(total, size)
    return average if shrunk >= spread else average + (1 - shrunk / spread) * (latest - average)


_LEAST_GROUP = 4  # the estimator's own: of three counts or fewer it shrinks nothing
