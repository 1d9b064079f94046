"""Generalised personal groups: values of public columns are merged if the sensitive column does not distinguish them.

Two values are joined if a chi-square test of two samples with unequal totals does not reject that their records have
the sensitive values in the same shares. Joins are transitive. All of this reads the data, and none of it is private.

The paper says that the test has `m` degrees of freedom for `m` sensitive values. It has `m - 1`, with which the paper's
own table comes out.

References: Han, chapter 4, equation 4.3 and table 4.3.
"""

from collections.abc import Iterator

import numpy as np

from mechanisms.formula import Integers

LEVEL = 0.05
"""How often values that do not differ are kept apart."""


def merge_values(counts: Integers) -> tuple[tuple[int, ...], ...]:
    """Return for each value of each public column the index of the merged value to which it belongs.

    A value without records is not merged.

    Parameters:
        counts: records, int64 of shape (values of the first public column, ..., values of the sensitive one).

    >>> counts = np.array([[300, 100], [310, 90], [100, 300]])
    >>> merge_values(counts)
    ((0, 0, 1),)
    """
    public = range(counts.ndim - 1)
    return tuple(_merge_column(counts.sum(axis=tuple(other for other in public if other != axis))) for axis in public)


def merge_counts(counts: Integers, merged: tuple[tuple[int, ...], ...]) -> Integers:
    """Return the counts of the same records over merged values."""
    for axis, numbers in enumerate(merged):
        shape = (*counts.shape[:axis], max(numbers) + 1, *counts.shape[axis + 1 :])
        found = np.zeros(shape, dtype=np.int64)
        np.add.at(np.moveaxis(found, axis, 0), np.array(numbers), np.moveaxis(counts, axis, 0))
        counts = found
    return counts


def compute_chi_square(first: Integers, second: Integers) -> float:
    """Return the chi-square statistic of two rows of counts, by equation 4.3.

    It is `sum (sqrt(n2/n1) o1 - sqrt(n1/n2) o2)^2 / (o1 + o2)`, over values that occur.

    >>> round(compute_chi_square(np.array([30, 10]), np.array([60, 20])), 9)
    0.0
    """
    totals = first.sum(), second.sum()
    larger = np.sqrt(totals[1] / totals[0])
    both = first + second
    some = both > 0
    return float((((larger * first - second / larger) ** 2)[some] / both[some]).sum())


def _merge_column(samples: Integers) -> tuple[int, ...]:
    """Merge the values of one column. `samples` counts records by its values and the sensitive value."""
    # here, since every command reads this file and few compute this
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    number = len(samples)
    pairs = np.array(list(_list_similar_values(samples)), dtype=np.int64).reshape(-1, 2)
    links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(number, number))
    _, labels = connected_components(links, directed=False)
    order: dict[int, int] = {}
    return tuple(order.setdefault(int(label), len(order)) for label in labels)


def _list_similar_values(samples: Integers) -> Iterator[tuple[int, int]]:
    """Yield the pairs of values that the test does not distinguish."""
    from scipy.special import chdtri  # here, as above

    limit = float(chdtri(samples.shape[1] - 1, LEVEL))
    inhabited = np.flatnonzero(samples.sum(axis=1)).tolist()
    for place, one in enumerate(inhabited):
        yield from (
            (one, other) for other in inhabited[:place] if compute_chi_square(samples[one], samples[other]) <= limit
        )
