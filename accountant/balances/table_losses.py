"""Bounds on the losses of a table's keys, in which questions charged by curve count as pure losses or by order.

Guarantee: at each order, and in pure terms, the bound is at least the sum over the questions of every record in the
key. Each of these sums is one more family of sums over the same cells, so theorem 2 holds for it.
Proof: docs/proofs/renyi.md.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from accountant.balances.cell_sums import Partition, Sums, find_version, make_partition, name_moving_version
from accountant.balances.curve_sums import NOTHING, CurveSums
from accountant.balances.dependencies import TableKnowledge
from accountant.balances.other_versions import OtherVersionLosses, OtherVersions
from accountant.balances.overlap import bound_cell_losses
from accountant.cell_balance import CellLosses
from accountant.charges import Cells, Family, NanoArray

PURE = -1  # the column of sums in which all questions count their pure loss
REST = 0  # the one without the questions by curve; from 1 on, they count their divergence at an order
_COLUMNS = (PURE, *range(1, len(NOTHING)))
# memory against reading each order again: classes of cells in two or more partitions at once; set, not measured
_MOST_CLASSES = 1 << 16


@dataclass(frozen=True, slots=True)
class TableLosses:
    """The sums of one table, in pure terms and by curve, with what is cached of its other data versions.

    `curves` has the part of `sums` from questions charged by curve, before what `refunded_curves` has. `change_counts`
    grows, per data version, with every change of its sums. `find_other_versions` has the cache for sums of one column.
    """

    sums: Mapping[Partition, Sums]
    curves: Mapping[Partition, CurveSums]
    change_counts: Mapping[str, int]
    find_other_versions: Callable[[int], OtherVersions]
    among: TableKnowledge
    refunded_curves: Mapping[Partition, CurveSums] = field(default_factory=dict)

    def bound_losses(self, family: Family, cells: Cells, *, column: int = PURE) -> NanoArray:
        """Return an upper bound on what each key has lost, in 1e-9 epsilon, shape `cells.shape`."""
        here, rest = self._split_versions(family, column)
        return bound_cell_losses(here, make_partition(family), cells, rest=rest, among=self.among)

    def bound_losses_by_curve(self, family: Family, cells: Cells, *, delta: float | None) -> CellLosses:
        """Return upper bounds on what each key has lost, in which curves count if there is a `delta`."""
        if delta is None or not self.curves:
            return CellLosses(self.bound_losses(family, cells))
        found = self._bound_by_class(family, cells)
        if found is not None:
            return found
        columns = [self.bound_losses(family, cells, column=column) for column in _COLUMNS]
        return CellLosses(
            np.zeros(cells.shape_by_column, dtype=np.int64), np.stack([one.reshape(-1) for one in columns], axis=1)
        )

    def _bound_by_class(self, family: Family, cells: Cells) -> CellLosses | None:
        """Return the bounds in classes of keys. Return None if that is not known to be as good as order by order.

        It is if all records in a key have lost the same by curve, except in other versions without a fixed label. These
        add one number at each order.
        """
        asked, version = make_partition(family), name_moving_version(family.version)
        here = {member: sums for member, sums in self.curves.items() if find_version(member) in (version, "")}
        others = [member for member in self.curves if member not in here]
        members_by_version = [member for member in self.sums if find_version(member) in map(find_version, others)]
        if not all(set(member) <= set(asked) for member in here) or not all(
            label.version for member in members_by_version for label in member
        ):
            return None
        numbers: NanoArray = np.zeros((1,) * len(asked), dtype=np.int64)
        table = np.array([NOTHING], dtype=np.int64)
        members = [(member, curves, sign) for member in here for curves, sign in self._list_curves(member)]
        for member, curves, sign in members:
            if len(table) * len(curves.rows) > _MOST_CLASSES:
                return None
            columns = [values for label, (_, values) in zip(asked, cells.columns, strict=True) if label in member]
            common = curves.find_common_class(columns)
            if common is not None:
                table = table + sign * curves.rows[common]
                continue
            shape = [len(size) if label in member else 1 for label, (_, size) in zip(asked, cells.columns, strict=True)]
            numbers = numbers * len(curves.rows) + curves.numbers.select(columns).reshape(shape)
            table = (table[:, None, :] + sign * curves.rows[None, :, :]).reshape(-1, len(NOTHING))
        if others:
            totals = [self._split_versions(family, column)[1].largest_nano for column in _COLUMNS]
            table = table + (np.array(totals) - self._split_versions(family, REST)[1].largest_nano)
        sums = self.bound_losses(family, cells, column=REST)
        return CellLosses(sums, table, None if len(table) == 1 else np.broadcast_to(numbers, sums.shape))

    def _list_curves(self, partition: Partition) -> list[tuple[CurveSums, int]]:
        """Return the curves of a partition that count, and those that count no more, with a sign."""
        found = [(self.curves[partition], 1)]
        return [*found, (self.refunded_curves[partition], -1)] if partition in self.refunded_curves else found

    def _split_versions(self, family: Family, column: int) -> tuple[dict[Partition, Sums], OtherVersionLosses]:
        sums: Mapping[Partition, Sums] = self.sums
        if column != PURE and self.curves:
            sums = _SumsOfColumn(sums, {member: self._list_curves(member) for member in self.curves}, column)
        return self.find_other_versions(column if self.curves else PURE).split_versions(
            sums, self.change_counts, name_moving_version(family.version)
        )


@dataclass(frozen=True, slots=True)
class _SumsOfColumn(Mapping[Partition, Sums]):
    """The sums of one table at one column."""

    pure: Mapping[Partition, Sums]
    curves: Mapping[Partition, Sequence[tuple[CurveSums, int]]]
    column: int

    def __getitem__(self, partition: Partition) -> Sums:
        pure = self.pure[partition]
        return _CellsOfColumn(pure, self.curves[partition], self.column) if partition in self.curves else pure

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.pure)

    def __len__(self) -> int:
        return len(self.pure)


@dataclass(frozen=True, slots=True)
class _CellsOfColumn:
    """The sums of one partition, in which the questions charged by curve count at an order, or (`REST`) not at all."""

    pure: Sums
    curves: Sequence[tuple[CurveSums, int]]
    column: int

    @property
    def axes(self) -> Sequence[tuple[str, ...]]:
        """The key values of each axis."""
        return self.pure.axes

    def select(self, axes: Sequence[tuple[str, ...]]) -> NanoArray:
        """Return the sums on the product of `axes`, zero where nothing was charged."""
        found = self.pure.select(axes)
        for curves, sign in self.curves:
            table = curves.rows
            change = -table[:, 0] if self.column == REST else table[:, self.column] - table[:, 0]
            common = curves.find_common_class(axes)
            found = found + sign * change[curves.numbers.select(axes) if common is None else common]
        return found
