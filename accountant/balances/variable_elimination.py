"""The largest sum of tables over all values of some labels, by eliminating one label after the other.

Guarantee: the result is, everywhere, at least the largest sum over all values of the eliminated labels. It is equal to
it while no step needs a grid of more than `exact_grid` cells, and all steps less than `MOST_WORK` additions. A larger
step is cut into parts whose maxima are added. All tables are non-negative. Proof: docs/proofs/accounting.md, theorem 2.

References: Dechter, Bucket elimination, AIJ 113 (1999); Dechter and Rish, Mini-buckets, JACM 50 (2003).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from math import prod

import numpy as np
import numpy.typing as npt

from accountant.balances.cell_sums import CellAxis
from accountant.charges import NanoArray

# exactness against memory and time: a grid of 8 MB. What is cut to less than it needs comes out too large, on average
# by 0.5 % at a half and by 2 % at a 64th of the grid (docs/benchmarks.md)
EXACT_GRID = 1 << 20
# exactness against time: after so many additions of cells in one elimination no more tables are added up, so that a
# check ends; set by the order of magnitude, not measured
MOST_WORK = 1 << 25

Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Factor:
    """A table of numbers over labels. `array` has a number for each combination of the labels' sorted `places`.

    All other combinations are zero.
    """

    places: Mapping[CellAxis, Places]
    array: NanoArray


@dataclass(frozen=True, slots=True)
class Elimination:
    """The factors that remain. If `is_exact`, their sum is the exact maximum; otherwise it is an upper bound."""

    factors: Sequence[Factor]
    is_exact: bool


def eliminate_labels(
    labels: Iterable[CellAxis], factors: Sequence[Factor], domains: Mapping[CellAxis, Places], *, exact_grid: int
) -> Elimination:
    """Return factors whose sum is at least the largest sum of `factors` over all values of `labels`.

    Labels are eliminated one by one, the one with the smallest grid first. Only factors with that label are added up.
    """
    held: dict[int, Factor] = {}
    holders: dict[CellAxis, set[int]] = {label: set() for label in labels}
    numbers = count()

    def hold(factor: Factor) -> None:
        number = next(numbers)
        held[number] = factor
        for label in factor.places.keys() & holders.keys():
            holders[label].add(number)

    def cost(label: CellAxis) -> tuple[int, CellAxis]:
        return _count_cells(_join_places([held[number] for number in sorted(holders[label])], domains)), label

    for factor in factors:
        hold(factor)
    work, exact = 0, True
    queue = [cost(label) for label in holders]
    heapify(queue)
    while queue:
        expected, label = heappop(queue)
        now = cost(label)
        if now[0] > expected:
            heappush(queue, now)
            continue
        bucket = [(number, held.pop(number)) for number in sorted(holders.pop(label))]
        for number, factor in bucket:
            for other in factor.places.keys() & holders.keys():
                holders[other].discard(number)
        parts = _split_bucket([factor for _, factor in bucket], domains, exact_grid if work < MOST_WORK else 0)
        exact = exact and len(parts) <= 1
        for part in parts:
            summed = _sum_factors(part, domains)
            work += summed.array.size * len(part)
            array = np.asarray(summed.array.max(axis=list(summed.places).index(label)))
            hold(Factor({one: at for one, at in summed.places.items() if one != label}, array))
    return Elimination(list(held.values()), exact)


def _split_bucket(bucket: Sequence[Factor], domains: Mapping[CellAxis, Places], exact_grid: int) -> list[list[Factor]]:
    """Split the bucket into parts with grids of at most `exact_grid` cells. A larger single factor is its own part."""
    if _count_cells(_join_places(bucket, domains)) <= exact_grid:
        return [list(bucket)] if bucket else []
    parts: list[list[Factor]] = []
    for factor in sorted(bucket, key=lambda one: one.array.size, reverse=True):
        for part in parts:
            if _count_cells(_join_places([*part, factor], domains)) <= exact_grid:
                part.append(factor)
                break
        else:
            parts.append([factor])
    return parts


def _join_places(factors: Sequence[Factor], domains: Mapping[CellAxis, Places]) -> dict[CellAxis, Places]:
    """Return the places of each label at which the factors' sum may differ from zero.

    A factor without a label has the same values at all of its places.
    """
    union = dict(factors[0].places) if factors else {}
    for factor in factors[1:]:
        for label in (*union, *(one for one in factor.places if one not in union)):
            known, places = union.get(label, domains[label]), factor.places.get(label, domains[label])
            if known is not places and not np.array_equal(known, places):
                known = np.union1d(known, places)
            union[label] = known
    return union


def _count_cells(places: Mapping[CellAxis, Places]) -> int:
    return prod(len(at) for at in places.values())


def _sum_factors(factors: Sequence[Factor], domains: Mapping[CellAxis, Places]) -> Factor:
    if len(factors) == 1:
        return factors[0]
    places = _join_places(factors, domains)
    grid = np.zeros([len(at) for at in places.values()], dtype=np.int64)
    for factor in factors:
        add_factor(grid, factor, list(places.values()), order=tuple(places))
    return Factor(places, grid)


def add_factor(grid: NanoArray, factor: Factor, axes: Sequence[Places], *, order: Sequence[CellAxis]) -> None:
    """Add a factor to a grid whose labels are `order`, at the places `axes`.

    It is repeated along labels that it lacks.
    """
    labels = list(factor.places)
    array = factor.array.transpose([labels.index(label) for label in order if label in factor.places])
    array = array.reshape([len(factor.places[label]) if label in factor.places else 1 for label in order])
    inside = []
    for label, axis in zip(order, axes, strict=True):
        at = factor.places.get(label)
        whole = at is None or at is axis or len(at) == len(axis)
        inside.append(None if whole or at is None else np.searchsorted(axis, at))
    if all(at is None for at in inside):
        grid += array
        return
    grid[np.ix_(*(np.arange(len(axis)) if at is None else at for at, axis in zip(inside, axes, strict=True)))] += array
