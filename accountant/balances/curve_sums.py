"""Sums of Rényi curves over a growing grid of key values.

A question charged by curve charges each of its keys the same curve. So the cells of a partition have few different sums
of curves. Each different sum is stored once, as a class, and each cell has the number of its class.

Guarantee: every class's sum is exact, and class 0 has nothing. No two classes have the same sum.

Proof: docs/proofs/renyi.md.
"""

from collections.abc import Sequence

import numpy as np

from accountant.balances.cell_sums import CellSums
from accountant.charges import NanoArray
from mechanisms.threshold.renyi import ORDERS, Curve

Row = tuple[int, ...]
"""The sum of the pure losses of questions charged by curve, then the sum of their divergences at each order."""

NOTHING: Row = (0,) * (1 + len(ORDERS))


class CurveSums:
    """The summed curves of each cell of a partition. Values that were never charged by curve take no memory.

    `numbers` has the number of each cell's class, and `rows` the sum of each class, in ascending order.
    """

    __slots__ = ("_counts", "numbers", "rows")

    def __init__(self, *, dimensions: int) -> None:
        self.numbers = CellSums(dimensions=dimensions)
        self.rows: NanoArray = np.array([NOTHING], dtype=np.int64)
        self._counts: NanoArray = np.zeros(1, dtype=np.int64)  # the cells of each class; that of class 0 has no meaning

    @staticmethod
    def from_classes(numbers: CellSums, rows: NanoArray) -> "CurveSums":
        """Return the sums with these classes, and the class number of each cell."""
        found = CurveSums(dimensions=len(numbers.axes))
        found.numbers, found.rows = numbers, rows
        found._counts = np.bincount(numbers.array.reshape(-1), minlength=len(rows))
        if len(found._counts) > len(rows) or rows[0].any():
            raise ValueError("a cell has no class, or the first class has a sum")
        return found

    def copy(self) -> "CurveSums":
        """Return a copy. Changes of the copy do not affect these sums."""
        other = CurveSums(dimensions=len(self.numbers.axes))
        other.numbers, other.rows, other._counts = self.numbers.copy(), self.rows.copy(), self._counts.copy()
        return other

    def find_common_class(self, axes: Sequence[tuple[str, ...]]) -> int | None:
        """Return the class of all cells in the product of `axes`. Return None if it takes a look at each cell."""
        if len(self.rows) != 2 or self._counts[1] != self.numbers.array.size or not self.numbers.has_same_values(axes):
            return None
        return 1

    def add(self, axes: Sequence[tuple[str, ...]], pure_nano: int, curve: Curve, *, times: int) -> None:
        """Add a question's pure loss and curve to the product of `axes`, so many `times`; -1 subtracts it."""
        self.add_rows(axes, times * np.array([(pure_nano, *curve)], dtype=np.int64), None)

    def add_rows(self, axes: Sequence[tuple[str, ...]], rows: NanoArray, places: NanoArray | None) -> None:
        """Add to each cell of the product of `axes` one of the rows.

        `places` has the row's place for each cell. If it is None, there is one row.
        """
        self.numbers.add_axis_values(axes)
        common = self.find_common_class(axes) if places is None else None
        if common is not None and (self.rows[common] + rows[0]).any():
            self.rows = self.rows + np.stack([np.zeros_like(rows[0]), rows[0]])
            return
        # each pair of a class that there was and a row becomes a class of its own, before equal ones are joined
        before = self.numbers.select(axes)
        pairs = before * len(rows) + (0 if places is None else places)
        counts = np.bincount(pairs.reshape(-1), minlength=len(self.rows) * len(rows))
        found = np.flatnonzero(counts)
        known = len(self.rows)
        numbers = np.zeros(counts.size, dtype=np.int64)
        numbers[found] = known + np.arange(found.size)
        self.numbers.add(axes, numbers[pairs] - before)
        every = np.concatenate([self.rows, self.rows[found // len(rows)] + rows[found % len(rows)]])
        used = np.bincount(self.numbers.array.reshape(-1), minlength=len(every)) > 0
        used[0] = True
        self.rows, joined = np.unique(every[used], axis=0, return_inverse=True)
        numbers = np.zeros(len(every), dtype=np.int64)
        numbers[used] = joined.reshape(-1)
        self.numbers.array = numbers[self.numbers.array]
        self._counts = np.bincount(self.numbers.array.reshape(-1), minlength=len(self.rows))
