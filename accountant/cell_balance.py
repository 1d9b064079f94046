"""The balances of a question's cells: sums of pure losses, some of which may count as Rényi divergences instead.

Guarantee: as that of `accountant/unit_balance.py`, for each cell. A bound on a cell's loss is one on each record in it:
at each order the largest sum over its records, and of these the least over all orders.

Proof: docs/proofs/renyi.md.
"""

from dataclasses import dataclass

import numpy as np

from accountant.charges import MOST_CAP_NANO, NanoArray
from accountant.unit_balance import search_largest_by_curve
from mechanisms.threshold.renyi import ORDERS, Curve, bound_curve, convert_to_epsilon, convert_to_tail_bound

_NO_CELL = -(2**62)  # below every loss: no cell has the class


@dataclass(frozen=True, slots=True)
class CellLosses:
    """Bounds on the losses of a question's cells, in 1e-9 epsilon.

    `sums` has the pure sum of each cell, without questions charged by curve. `classes` has one row for each different
    sum of these: their pure loss, then their divergence at each order. It is None if there are none. `numbers` has each
    cell's row. If it is None, a single row is that of all cells, and several rows are those of the cells in order.
    """

    sums: NanoArray
    classes: NanoArray | None = None
    numbers: NanoArray | None = None

    def add_pure(self, losses: NanoArray) -> "CellLosses":
        """Return the losses after more pure loss in each cell."""
        return CellLosses(self.sums + losses, self.classes, self.numbers)

    def find_balances(self, delta: float | None, *, nano: int = 0, curve: Curve | None = None) -> NanoArray:
        """Return each cell's balance, after one more question of pure loss `nano`, by `curve` if that is not None.

        A balance is the pure sum, or if smaller the pure rest plus the epsilon of the curves for `delta`.
        """
        return self._find_least_sums(None if delta is None else convert_to_epsilon(delta), nano=nano, curve=curve)

    def bound_odds_changes(self, delta: float | None) -> NanoArray:
        """Return for each cell a bound, in 1e-9, on the change of the logarithm of anybody's odds, up or down.

        Each bound fails with probability `delta` at most.
        """
        return self._find_least_sums(None if delta is None else convert_to_tail_bound(delta / 2), nano=0, curve=None)

    def keep_largest(self) -> "CellLosses":
        """Return the losses of few cells among these, which no other cell exceeds."""
        if self.classes is None or len(self.classes) == 1:
            return CellLosses(self.sums.reshape(-1).max(keepdims=True), self.classes)
        if self.numbers is None:
            return CellLosses(self.sums.reshape(-1), self.classes)
        largest = np.full(len(self.classes), _NO_CELL, dtype=np.int64)
        np.maximum.at(largest, self.numbers.reshape(-1), self.sums.reshape(-1))
        used = largest > _NO_CELL
        return CellLosses(largest[used], self.classes[used])

    def count_further_questions(self, nano: int, curve: Curve | None, *, cap_nano: int, delta: float | None) -> int:
        """Return the number of further questions with this loss and curve that fit below a cap in every cell."""
        if self.numbers is not None:
            return self.keep_largest().count_further_questions(nano, curve, cap_nano=cap_nano, delta=delta)
        left = cap_nano - self.sums.reshape(-1)
        counts = _count_fits(left if self.classes is None else left - self.classes[:, 0], nano)
        if delta is not None and (curve is not None or self.classes is not None):
            each = (nano,) * len(ORDERS) if curve is None else curve
            for order, (added, more) in enumerate(zip(convert_to_epsilon(delta), each, strict=True), start=1):
                known = 0 if self.classes is None else self.classes[:, order]
                counts = np.maximum(counts, _count_fits(left - known - added, more))
        return int(counts.min())

    def _find_least_sums(self, added: Curve | None, *, nano: int, curve: Curve | None) -> NanoArray:
        if self.classes is None and (curve is None or added is None):
            return np.asarray(self.sums + nano)
        classes = np.zeros((1, 1 + len(ORDERS)), dtype=np.int64) if self.classes is None else self.classes
        least = classes[:, 0] + nano
        if added is not None:
            by_order = classes[:, 1:] + np.array((nano,) * len(ORDERS) if curve is None else curve, dtype=np.int64)
            least = np.minimum(least, (by_order + np.array(added, dtype=np.int64)).min(axis=1))
        if len(least) == 1:
            return np.asarray(self.sums + least[0])
        return np.asarray(self.sums + (least.reshape(self.sums.shape) if self.numbers is None else least[self.numbers]))


NO_CELL_LOSSES = CellLosses(np.zeros(1, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class CellRoom:
    """The losses of a question's cells below a cap, with the `delta` of the balance. Use `from_losses`."""

    largest: CellLosses
    cap_nano: int
    delta: float

    @staticmethod
    def from_losses(losses: CellLosses, *, cap_nano: int, delta: float) -> "CellRoom":
        """Return the room in which every cell fits."""
        return CellRoom(losses.keep_largest(), cap_nano, delta)

    @property
    def left_nano(self) -> int:
        """Return the rest of the cell that has lost most; below zero if the cap was lowered."""
        return self.cap_nano - int(self.largest.find_balances(self.delta).max())

    def compute_needed_amount(self, charge_nano: int, curve: Curve | None) -> int:
        """Return the amount by which a question raises the largest balance of its cells."""
        after = self.largest.find_balances(self.delta, nano=charge_nano, curve=curve)
        return int(after.max()) - (self.cap_nano - self.left_nano)

    def count_further_questions(self, charge_nano: int, curve: Curve | None) -> int:
        """Return the number of further questions like this that fit."""
        return self.largest.count_further_questions(charge_nano, curve, cap_nano=self.cap_nano, delta=self.delta)

    def find_largest_by_curve(self, in_cell: int) -> int:
        """Return the largest loss of a group, in 1e-9, that fits by its curve, if a cell loses it `in_cell` times.

        The result fits for any noise of the question.
        """
        left = self.left_nano

        def fits(nano: int) -> bool:
            of_cell = in_cell * nano
            return self.compute_needed_amount(of_cell, bound_curve(of_cell, groups=1)) <= left

        return search_largest_by_curve(fits, cap_nano=self.cap_nano) if left > 0 else 0


def _count_fits(left: NanoArray, each: int) -> NanoArray:
    if each == 0:
        return np.where(left < 0, 0, MOST_CAP_NANO)
    return np.floor_divide(np.maximum(left, 0), each)
