"""The groups that a comparison with others reads, and the comparisons in which one group counts: for EXPLAIN."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.formula import Integers
from mechanisms.keyhole.taken_cells import weigh_noises
from mechanisms.protocol import CommonSums, Unachievable, UsedCells
from planner.question.plan import Plan

_MOST_STEPS = 1 << 24  # in which readers are counted: a tenth of a second


@dataclass(frozen=True, slots=True)
class GroupsRead:
    """Two numbers about one common sum and the comparisons that read it.

    `read` is the most groups whose value one comparison reads. `readers` is the most groups whose comparisons read one
    group's value.
    """

    read: int
    readers: int

    @property
    def text(self) -> str:
        """The two numbers as a phrase for EXPLAIN."""
        return (
            f"a comparison reads up to {self.read:,} group{'' if self.read == 1 else 's'}, "
            f"and a group counts in up to {self.readers:,} of them"
        )


def count_groups_read(plan: Plan, place: int) -> GroupsRead | None:
    """Return the numbers for one common sum.

    Return None if every group reads only its own value, or if counting is slow.
    """
    common = plan.calibration.task.common
    if common is None or not common.cells:
        return None
    try:
        kinds = [kind for one in range(len(common.readings)) for kind in weigh_noises(common, one)]
        statistics = [
            math.prod(common.shape[axis] for axis in where.summed_axes) * max(map(len, where.used_places), default=1)
            for reading, cells in zip(common.readings, common.cells, strict=True)
            for (at, _), where in zip(reading, cells, strict=True)
            if where.statistic is not None and at == place
        ]
    except Unachievable:
        return None
    read = max((*(sum(count for at, _, count in kind if at == place) for kind in kinds), *statistics), default=0)
    readers = _count_readers(common, place)
    return None if readers is None or readers < 2 else GroupsRead(read, readers)


def _count_readers(common: CommonSums, place: int) -> int | None:
    """Return the most groups whose readings have one group's value of a sum. Return None if counting is long."""
    parts = [
        where
        for reading, cells in zip(common.readings, common.cells, strict=True)
        for (one, times), where in zip(reading, cells, strict=True)
        if one == place and times
    ]
    calendars = sorted({where.axis for where in parts if where.axis is not None})
    axes = sorted({*calendars, *(axis for where in parts for axis in where.summed_axes)})
    grid, places = [common.shape[axis] for axis in axes], [common.shape[axis] for axis in calendars]
    if math.prod(grid) * math.prod(places) * len(parts) > _MOST_STEPS:
        return None
    readers = [_list_readers(where, common.shape) for where in parts]
    found = 0
    for at in np.ndindex(*places):
        own = dict(zip(calendars, at, strict=True))
        marks = np.zeros(grid, dtype=np.bool_)
        for where, along in zip(parts, readers, strict=True):
            marks[np.ix_(*(_find_readers(where, along, axis, own.get(axis, 0), common.shape) for axis in axes))] = True
        found = max(found, int(marks.sum()))
    return found


def _list_readers(where: UsedCells, shape: Sequence[int]) -> Sequence[Integers]:
    """Return, for each place on a reading's calendar, the places that take it."""
    if where.axis is None:
        return ()
    found: list[list[int]] = [[] for _ in range(shape[where.axis])]
    for reader, taken in enumerate(where.used_places):
        for own in taken:
            found[own].append(reader)
    return [np.array(one, dtype=np.int64) for one in found]


def _find_readers(where: UsedCells, along: Sequence[Integers], axis: int, own: int, shape: Sequence[int]) -> Integers:
    """Return the places on an axis whose readings take in the place `own`."""
    if axis in where.summed_axes:
        return np.arange(shape[axis])
    return along[own] if where.axis == axis else np.array([own])
