"""Readings of cells written out cell by cell, and calendars, frames and totals to read."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from math import lcm
from typing import TypeAlias

import numpy as np

from mechanisms.formula import Booleans, Cut, Formula, Integers
from mechanisms.keyhole.taken_cells import Weights
from mechanisms.protocol import OWN_CELL, Calibration, CommonSums, DecisionTask, Exposure, UsedCells
from mechanisms.threshold.joint_loss import expose_all_functionals

Key: TypeAlias = tuple[int, ...]
Part: TypeAlias = tuple[int, int, UsedCells]
"""A sum, how many times it counts, and in which cells."""


def lag(size: int, *, axis: int = 0, by: int = 1) -> UsedCells:
    """Return the cell that many places before, or after."""
    return UsedCells(
        axis=axis, used_places=tuple((place - by,) if 0 <= place - by < size else () for place in range(size))
    )


def frame(size: int, *, axis: int = 0, length: int | None = None, mean: bool = False) -> UsedCells:
    """Return the last cells up to a key's own, all of them without a length."""
    taken = tuple(tuple(range(0 if length is None else max(0, at - length + 1), at + 1)) for at in range(size))
    return UsedCells(axis=axis, used_places=taken, most_places=lcm(*map(len, taken)) if mean else 0)


def total(*axes: int) -> UsedCells:
    """Return all cells along some axes."""
    return UsedCells(summed_axes=axes)


def common_sums(
    shape: Sequence[int],
    *readings: Sequence[Part],
    sensitivities: tuple[int, ...] = (1,),
    exposures: tuple[Exposure, ...] | None = None,
) -> CommonSums:
    return CommonSums(
        sensitivities=sensitivities,
        exposures=exposures or expose_all_functionals(len(sensitivities)),
        readings=tuple(tuple((place, times) for place, times, _ in reading) for reading in readings),
        scales=(1,) * len(readings),
        cells=tuple(tuple(where for _, _, where in reading) for reading in readings),
        shape=tuple(shape),
    )


def cell_task(common: CommonSums, formula: Formula, *predicates: Formula) -> DecisionTask:
    functionals = len(common.readings)
    return DecisionTask(
        formula=formula,
        sensitivities=(1,) * functionals,
        exposures=expose_all_functionals(functionals),
        fnr=0.05,
        fpr=0.1,
        predicates=predicates,
        common=common,
    )


def difference(size: int) -> list[Part]:
    """Return the parts of a cell less the one before."""
    return [(0, 1, OWN_CELL), (0, -1, lag(size))]


def above(functional: int, cut: int, tolerance: int) -> Cut:
    return Cut(functional, cut, above=True, tolerance=tolerance)


def below(functional: int, cut: int, tolerance: int) -> Cut:
    return Cut(functional, cut, above=False, tolerance=tolerance)


def list_keys(common: CommonSums) -> list[Key]:
    return list(product(*map(range, common.shape)))


def _list_cells(where: UsedCells, key: Key, shape: Sequence[int]) -> Iterator[Key]:
    ways: list[Sequence[int]] = [
        range(size) if axis in where.summed_axes else where.used_places[own] if axis == where.axis else (own,)
        for axis, (own, size) in enumerate(zip(key, shape, strict=True))
    ]
    return iter(product(*ways))


def coefficients(common: CommonSums, functional: int, key: Key) -> Counter[tuple[int, Key]] | None:
    """Return how often each cell of each sum counts for a key; None if the key lacks one that no constant replaces."""
    found: Counter[tuple[int, Key]] = Counter()
    for (place, times), where in zip(common.readings[functional], common.cells[functional], strict=True):
        taken = where.used_places[key[where.axis]] if where.axis is not None else ()
        if where.axis is not None and not taken:
            if where.empty_value is None:
                return None
            continue
        each = where.most_places // len(taken) if where.most_places else 1
        for cell in _list_cells(where, key, common.shape):
            found[place, cell] += times * each
    return found


def weigh(found: Counter[tuple[int, Key]]) -> Weights:
    """Return the noises that have these coefficients, as `weigh_noises` lists them."""
    counts = Counter((place, abs(times)) for (place, _), times in found.items() if times)
    return tuple((place, times, count) for (place, times), count in sorted(counts.items()))


def read_plainly(common: CommonSums, functional: int, sums: Integers) -> tuple[list[int], Booleans]:
    """Return a reading of every key in integers without limits, and True for the keys that have all its cells."""
    places = {key: number for number, key in enumerate(list_keys(common))}
    values, present = [], []
    for key in places:
        found = coefficients(common, functional, key)
        present.append(found is not None)
        constant = sum(
            where.empty_value or 0
            for where in common.cells[functional]
            if where.axis is not None and not where.used_places[key[where.axis]]
        )
        values.append(
            constant + sum(times * int(sums[place][places[cell]]) for (place, cell), times in (found or {}).items())
        )
    return values, np.array(present, dtype=np.bool_)


def kinds_of_keys(common: CommonSums, functional: int) -> set[Weights]:
    """Return the noises of each kind of key whose value has any."""
    found = (coefficients(common, functional, key) for key in list_keys(common))
    return {weigh(one) for one in found if one is not None} - {()}


def shared_rates(made: Calibration) -> dict[int, float]:
    """Return the rate of each sum that is read, which all tests must agree on."""
    rates = {(noise.place, noise.rate) for test in made.tests for noise in test.cell_noises}
    found = {place: float(rate) for place, rate in rates}
    assert len(found) == len(rates)
    return found
