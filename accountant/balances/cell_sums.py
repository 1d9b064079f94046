"""Sums of charges over a growing grid of key values."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np

from accountant.charges import ROW_UNIT, Charge, Family, NanoArray, is_lasting
from accountant.errors import refuse_cells

# memory of one partition against the questions it can take: eight bytes a cell, so 512 MB; set by that, not measured
MOST_CELLS = 1 << 26


@dataclass(frozen=True, slots=True, order=True)
class CellAxis:
    """One axis of keys, also called their label.

    Two keys of different families are known to be disjoint only if they differ on an axis with the same label. For
    unit "row", the label of a column that may change has its data version: a row may have another value in another
    version. The label of an immutable column has none. For other units the promise is per cell label, so no label has a
    version.
    """

    column: str
    unit: str
    version: str


Partition = tuple[CellAxis, ...]


def make_partition(family: Family) -> Partition:
    """Return the axes of a family's keys, in the order of its columns.

    The filter is no axis: filters always overlap.
    """
    moves = family.unit == ROW_UNIT
    return tuple(
        CellAxis(
            column=column,
            unit=family.unit,
            version=name_moving_version(family.version) if moves and column not in family.immutable else "",
        )
        for column in family.columns
    )


def name_moving_version(version: str) -> str:
    """Return the text for a data version in the labels of columns that may change."""
    return f"={version}"


def find_version(partition: Partition) -> str:
    """Return the data version in the partition's labels, "" if no label has one."""
    return max((label.version for label in partition), default="")


def find_charged_cells(charge: Charge) -> tuple[Partition, list[tuple[str, ...]]]:
    """Return the labels under which a charge is kept, and its key values on them.

    Guarantee: a charge on a data version of a single question is kept only under labels without a version, with the
    most that a row can have lost. No later question uses that version, so no check needs the other labels.
    Proof: docs/proofs/accounting.md, theorem 2, live versions.
    """
    labelled = zip(make_partition(charge.family), (values for _, values in charge.cells.columns), strict=True)
    lasting = is_lasting(charge.family.version)
    kept = [(label, values) for label, values in labelled if lasting or not label.version]
    return tuple(label for label, _ in kept), [values for _, values in kept]


def merge_moving_labels(family: Family, amounts: NanoArray | int) -> NanoArray | int:
    """Return losses per key for the labels of `find_charged_cells`.

    On a data version of a single question, each result is the largest loss over the labels that are dropped.
    """
    if isinstance(amounts, int) or is_lasting(family.version):
        return amounts
    moving = tuple(axis for axis, label in enumerate(make_partition(family)) if label.version)
    return np.asarray(amounts.max(axis=moving)) if moving else amounts


class Sums(Protocol):
    """A readable grid of summed charges, by key value."""

    @property
    def axes(self) -> Sequence[tuple[str, ...]]:
        """The key values of each axis."""

    def select(self, axes: Sequence[tuple[str, ...]]) -> NanoArray:
        """Return the sums on the product of `axes`, zero where nothing was charged. The array is read-only."""


@dataclass(frozen=True, slots=True)
class SumsDifference:
    """The sums of `minuend` minus those of `subtracted`.

    Each charged cell of `subtracted` is charged in `minuend` too.
    """

    minuend: Sums
    subtracted: Sums

    @property
    def axes(self) -> Sequence[tuple[str, ...]]:
        """The key values of each axis."""
        return self.minuend.axes

    def select(self, axes: Sequence[tuple[str, ...]]) -> NanoArray:
        """Return the difference on the product of `axes`."""
        return self.minuend.select(axes) - self.subtracted.select(axes)


class CellSums:
    """The summed losses of each cell of a partition. Values that were never charged take no memory."""

    __slots__ = ("_indexes", "array", "axes")

    def __init__(self, *, dimensions: int) -> None:
        self.axes: list[tuple[str, ...]] = [()] * dimensions
        self.array: NanoArray = np.zeros((0,) * dimensions, dtype=np.int64)
        # made when an axis is first charged for other values than those it has: most never are
        self._indexes: dict[int, dict[str, int]] = {}

    def copy(self) -> "CellSums":
        """Return a copy. Changes of the copy do not affect these sums."""
        other = CellSums(dimensions=len(self.axes))
        other.axes, other.array = list(self.axes), self.array.copy()
        return other

    def _number_values(self, axis: int) -> dict[str, int]:
        """Return the place of each key value on an axis."""
        if axis not in self._indexes:
            self._indexes[axis] = {value: place for place, value in enumerate(self.axes[axis])}
        return self._indexes[axis]

    def _find_new_values(self, axis: int, values: tuple[str, ...]) -> tuple[str, ...]:
        """Return the values that the axis does not have yet."""
        known = self.axes[axis]
        if not known:
            return values
        if values is known or values == known:
            return ()
        places = self._number_values(axis)
        return tuple(value for value in values if value not in places)

    def count_cells_with_axes(self, axes: Sequence[tuple[str, ...]]) -> int:
        """Return the number of cells of the grid after adding the values of `axes`."""
        return prod(len(self.axes[axis]) + len(self._find_new_values(axis, values)) for axis, values in enumerate(axes))

    def has_same_values(self, axes: Sequence[tuple[str, ...]]) -> bool:
        """Return True if the grid has these values on its axes, in this order."""
        return all(values is known or values == known for known, values in zip(self.axes, axes, strict=True))

    def add(self, axes: Sequence[tuple[str, ...]], amount: int | NanoArray) -> None:
        """Add `amount` to each cell in the product of `axes`: one number, or an array of the product's shape."""
        self.add_axis_values(axes)
        if self.has_same_values(axes):
            self.array += amount
            return
        places = [
            np.fromiter((known[value] for value in values), dtype=np.intp, count=len(values))
            for known, values in ((self._number_values(axis), values) for axis, values in enumerate(axes))
        ]
        self.array[np.ix_(*places)] += amount

    def select(self, axes: Sequence[tuple[str, ...]]) -> NanoArray:
        """Return the sums on the product of `axes`, zero where nothing was charged. The array is read-only."""
        if self.has_same_values(axes):
            return self.array
        result = np.zeros(tuple(len(values) for values in axes), dtype=np.int64)
        there: list[list[int]] = []
        here: list[list[int]] = []
        for axis, values in enumerate(axes):
            known = self._number_values(axis)
            found = [(place, index) for index, value in enumerate(values) if (place := known.get(value, -1)) >= 0]
            there.append([place for place, _ in found])
            here.append([index for _, index in found])
        if all(there):
            result[np.ix_(*here)] = self.array[np.ix_(*there)]
        return result

    def add_axis_values(self, axes: Sequence[tuple[str, ...]]) -> None:
        """Add the values of `axes` that the grid lacks, with sums of zero."""
        new = [self._find_new_values(axis, values) for axis, values in enumerate(axes)]
        if not any(new):
            return
        if prod(len(known) + len(more) for known, more in zip(self.axes, new, strict=True)) > MOST_CELLS:
            raise refuse_cells(MOST_CELLS)
        for axis, more in enumerate(new):
            known = len(self.axes[axis])
            if axis in self._indexes:
                self._indexes[axis].update({value: known + offset for offset, value in enumerate(more)})
            self.axes[axis] = self.axes[axis] + more if known else more
        self.array = np.pad(self.array, [(0, len(more)) for more in new])


class OpenSums:
    """Sums over a grid of key values. On each axis, one more place at the end stands for every other value."""

    __slots__ = ("_indexes", "array", "axes")

    def __init__(self, axes: Sequence[tuple[str, ...]], array: NanoArray) -> None:
        """Take the sums. On every axis, `array` has one place more than `axes` has values."""
        self.axes = tuple(axes)
        self.array = array
        self._indexes: dict[int, dict[str, int]] = {}

    def select(self, axes: Sequence[tuple[str, ...]]) -> NanoArray:
        """Return the sums of the cells in the product of `axes`, zero for values without a sum.

        The array is read-only.
        """
        return np.asarray(self._select_with_open_places(axes)[(slice(-1),) * len(self.axes)])

    def count_cells_with(self, other: "OpenSums") -> int:
        """Return the number of cells of the grid after adding the values of `other`."""
        return prod(len(axis) + 1 for axis in self._join_axes(other))

    def add(self, other: "OpenSums", *, times: int) -> None:
        """Add other sums, multiplied by `times`. Values of an axis that only one side has are kept."""
        axes = self._join_axes(other)
        array = self._select_with_open_places(axes) + times * other._select_with_open_places(axes)
        indexes = self._indexes if axes == self.axes else {}
        self.axes, self.array, self._indexes = axes, array, indexes

    def _join_axes(self, other: "OpenSums") -> tuple[tuple[str, ...], ...]:
        return tuple(
            known
            if known == values
            else known + tuple(value for value in values if value not in self._number_values(axis))
            for axis, (known, values) in enumerate(zip(self.axes, other.axes, strict=True))
        )

    def _number_values(self, axis: int) -> dict[str, int]:
        if axis not in self._indexes:
            self._indexes[axis] = {value: place for place, value in enumerate(self.axes[axis])}
        return self._indexes[axis]

    def _select_with_open_places(self, axes: Sequence[tuple[str, ...]]) -> NanoArray:
        """Return the sums on the product of `axes`, each extended by a place for every other value."""
        if all(values is known or values == known for known, values in zip(self.axes, axes, strict=True)):
            return self.array
        at = []
        for axis, values in enumerate(axes):
            places, other = self._number_values(axis), len(self.axes[axis])
            at.append(np.array([*(places.get(value, other) for value in values), other], dtype=np.intp))
        return np.asarray(self.array[np.ix_(*at)])
