"""Sums of charges over a growing grid of key values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from accountant.errors import LedgerMisuse
from accountant.model import ROW_UNIT, Family, NanoArray

MOST_CELLS = 1 << 26


@dataclass(frozen=True, slots=True, order=True)
class Label:
    """One axis along which keys can be told apart.

    Two keys of different families are known to be disjoint only when they differ on an axis with the same label. For
    unit "row" a column that may change carries its data version, since a row may have moved in between; an immutable
    column does not. For other units the promise is per cell label, so the column alone counts.
    """

    column: str
    unit: str
    version: str


Partition = tuple[Label, ...]


def partition_of(family: Family) -> Partition:
    """The axes of a family's keys, in the order of its columns. The filter is no axis: filters always overlap."""
    moves = family.unit == ROW_UNIT
    return tuple(
        Label(
            column=column,
            unit=family.unit,
            version=f"={family.version}" if moves and column not in family.immutable else "",
        )
        for column in family.columns
    )


class Sums(Protocol):
    """Sums of charges over a grid of key values, to be read."""

    @property
    def axes(self) -> Sequence[tuple[str, ...]]:
        """The key values of each axis."""

    def on(self, axes: Sequence[tuple[str, ...]]) -> NanoArray:
        """The sums on the product of `axes`, zero where nothing was charged. Not to be written to."""


@dataclass(frozen=True, slots=True)
class SumsLess:
    """The sums of `whole` less those of `less`, which is charged nowhere that `whole` is not."""

    whole: Sums
    less: Sums

    @property
    def axes(self) -> Sequence[tuple[str, ...]]:
        """The key values of each axis."""
        return self.whole.axes

    def on(self, axes: Sequence[tuple[str, ...]]) -> NanoArray:
        """The difference on the product of `axes`."""
        return self.whole.on(axes) - self.less.on(axes)


class CellSums:
    """Summed losses of each cell of a partition; cells never charged are zero and take no room."""

    __slots__ = ("_places", "array", "axes")

    def __init__(self, *, dimensions: int) -> None:
        self.axes: list[tuple[str, ...]] = [()] * dimensions
        self._places: list[dict[str, int]] = [{} for _ in range(dimensions)]
        self.array: NanoArray = np.zeros((0,) * dimensions, dtype=np.int64)

    def cells_after(self, axes: Sequence[tuple[str, ...]]) -> int:
        """How many cells the grid has once `axes` are covered."""
        size = 1
        for known, places, values in zip(self.axes, self._places, axes, strict=True):
            new = 0 if values == known else sum(value not in places for value in values)
            size *= len(known) + new
        return size

    def add(self, axes: Sequence[tuple[str, ...]], amount: int | NanoArray) -> None:
        """Add `amount` (one number, or an array of the product's shape) to the product of `axes`."""
        if all(values == known for known, values in zip(self.axes, axes, strict=True)):
            self.array += amount
            return
        self._grow(axes)
        places = [
            np.fromiter((known[value] for value in values), dtype=np.intp, count=len(values))
            for known, values in zip(self._places, axes, strict=True)
        ]
        self.array[np.ix_(*places)] += amount

    def on(self, axes: Sequence[tuple[str, ...]]) -> NanoArray:
        """The sums on the product of `axes`, zero where nothing was charged. Not to be written to."""
        if all(values == known for known, values in zip(self.axes, axes, strict=True)):
            return self.array
        result = np.zeros(tuple(len(values) for values in axes), dtype=np.int64)
        there: list[list[int]] = []
        here: list[list[int]] = []
        for known, values in zip(self._places, axes, strict=True):
            found = [(place, index) for index, value in enumerate(values) if (place := known.get(value, -1)) >= 0]
            there.append([place for place, _ in found])
            here.append([index for _, index in found])
        if all(there):
            result[np.ix_(*here)] = self.array[np.ix_(*there)]
        return result

    def _grow(self, axes: Sequence[tuple[str, ...]]) -> None:
        if self.cells_after(axes) > MOST_CELLS:
            raise LedgerMisuse(f"a partition of more than {MOST_CELLS} cells")
        padding = []
        for axis, values in enumerate(axes):
            places = self._places[axis]
            new = tuple(value for value in values if value not in places)
            places.update({value: len(places) + offset for offset, value in enumerate(new)})
            self.axes[axis] += new
            padding.append((0, len(new)))
        if any(after for _, after in padding):
            self.array = np.pad(self.array, padding)
