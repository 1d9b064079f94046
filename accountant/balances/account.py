"""The account of one circle of readers: the losses that it may have learned, per cell, per unit and per table."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from accountant.balances.cell_sums import (
    CellSums,
    Partition,
    Sums,
    SumsDifference,
    find_charged_cells,
    find_version,
    make_partition,
    merge_moving_labels,
)
from accountant.balances.curve_sums import CurveSums
from accountant.balances.dependencies import Knowledge, assume_nothing, select_table_knowledge
from accountant.balances.other_versions import OtherVersions
from accountant.balances.overlap import bound_cell_losses
from accountant.balances.table_losses import TableLosses
from accountant.balances.variable_elimination import EXACT_GRID
from accountant.cell_balance import CellLosses
from accountant.charges import LIVE, ROW_UNIT, Cells, Charge, Family, NanoArray, Spent, is_lasting
from accountant.unit_balance import NO_UNIT_LOSS, UnitLoss
from mechanisms.threshold.renyi import NO_CURVE


@dataclass(frozen=True, slots=True)
class AccountChange:
    """Amounts added to an account for one charge: to each key, to the unit's balance, and to the table's.

    `lasting_amounts` are the amounts of the cells under which the charge is kept (`merge_moving_labels`). `curves` is
    the number of added questions with the charge's Rényi curve, if it has one. `looks` has what the looks that ran
    cost, in the place of all looks, `look_count` times: 1, or -1 for the reverse.
    """

    amounts: NanoArray | int
    lasting_amounts: NanoArray | int
    unit_nano: int
    table_nano: int
    curves: int = 0
    looks: "LooksThatRan | None" = None
    look_count: int = 1

    @staticmethod
    def from_losses(charge: Charge, *, before: Spent, after: Spent, curves: int = 0) -> "AccountChange":
        """Return the difference of two losses of the charge's keys."""
        first, then = before.read_amounts(charge.cells), after.read_amounts(charge.cells)
        lasting_first, lasting_then = (merge_moving_labels(charge.family, one) for one in (first, then))
        amounts = then - first
        alike = lasting_first is first and lasting_then is then
        return AccountChange(
            amounts=amounts,
            lasting_amounts=amounts if alike else lasting_then - lasting_first,
            unit_nano=after.unit_epsilon_nano - before.unit_epsilon_nano,
            table_nano=after.largest_losses.table_nano - before.largest_losses.table_nano,
            curves=curves,
        )

    def with_looks(self, charge: Charge, spent: Spent) -> "AccountChange":
        """Return the change with the looks that ran, if the charge was reserved by looks."""
        if not charge.looks or (spent.largest_losses == charge.own_amounts and spent.keys is None):
            return self
        lasting = merge_moving_labels(charge.family, spent.read_amounts(charge.cells))
        return replace(self, looks=LooksThatRan(lasting, spent))

    @property
    def is_reduction(self) -> bool:
        """Return True if a loss of a key changes, or the unit's loss falls."""
        return bool(np.any(self.amounts)) or self.unit_nano < 0

    def __sub__(self, other: "AccountChange") -> "AccountChange":
        return AccountChange(
            self.amounts - other.amounts,
            self.lasting_amounts - other.lasting_amounts,
            self.unit_nano - other.unit_nano,
            self.table_nano - other.table_nano,
            self.curves - other.curves,
        )

    def __neg__(self) -> "AccountChange":
        amounts = -self.amounts
        lasting = amounts if self.lasting_amounts is self.amounts else -self.lasting_amounts
        return AccountChange(
            amounts, lasting, -self.unit_nano, -self.table_nano, -self.curves, self.looks, -self.look_count
        )


@dataclass(frozen=True, slots=True)
class LooksThatRan:
    """The loss of a question by looks, per cell under which it is kept, and as it was committed."""

    lasting_losses: NanoArray | int
    spent: Spent

    def list_rows(self, charge: Charge) -> tuple[NanoArray, NanoArray | None]:
        """Return what each number of looks saves of a cell's pure loss and curve, and this number less one per cell."""
        every = [(look.epsilon_nano, *(look.cell_renyi or NO_CURVE)) for look in charge.looks]
        rows = np.array(every[-1], dtype=np.int64) - np.array(every, dtype=np.int64)
        ends = np.array([look.epsilon_nano for look in charge.looks], dtype=np.int64)
        places = np.searchsorted(ends, self.lasting_losses)
        return (rows[[int(places)]], None) if isinstance(self.lasting_losses, int) else (rows, places)


@dataclass(slots=True)
class Account:
    """The losses that one audience may have learned: everybody together, or one analyst.

    Families with the same axes share one partition. A data version of a single question is kept only as the most that
    its rows can have lost (`find_charged_cells`), so an account of a live table does not grow with its questions.
    `families` has each family's own sums, for reports (None: not needed). All live versions are one family there.
    `table_nano` is, per table, the sum over questions of each one's cost to a unit, or (for unit "row") to the key that
    lost most. `change_counts` counts, per table and data version, how often `add` changed its sums in this process.
    From it `other_versions` sees which of its cached sums are out of date. `curves` has what questions charged by curve
    cost the cells of a partition; their pure losses are in `tables` too. Each order has its own `other_versions`.
    """

    tables: dict[str, dict[Partition, CellSums]] = field(default_factory=dict)
    unit_loss: UnitLoss = NO_UNIT_LOSS
    table_nano: dict[str, int] = field(default_factory=dict)
    curves: dict[str, dict[Partition, CurveSums]] = field(default_factory=dict)
    families: dict[Family, CellSums] | None = None
    change_counts: dict[str, dict[str, int]] = field(default_factory=dict, compare=False, repr=False)
    other_versions: dict[tuple[str, Knowledge, int], OtherVersions] = field(
        default_factory=dict, compare=False, repr=False
    )

    def copy(self, tables: frozenset[str]) -> "Account":
        """Return a copy with these tables and the units. Changes of the copy do not affect this account."""
        return Account(
            tables={
                table: {partition: sums.copy() for partition, sums in partitions.items()}
                for table, partitions in self.tables.items()
                if table in tables
            },
            unit_loss=self.unit_loss,
            curves={
                table: {partition: sums.copy() for partition, sums in partitions.items()}
                for table, partitions in self.curves.items()
                if table in tables
            },
            table_nano={table: spent for table, spent in self.table_nano.items() if table in tables},
            change_counts={table: dict(known) for table, known in self.change_counts.items() if table in tables},
        )

    def add(self, charge: Charge, change: AccountChange) -> None:
        """Change every key of the charge, and the balances of the unit and the table."""
        table = charge.family.table
        partition, axes = find_charged_cells(charge)
        partitions = self.tables.setdefault(table, {})
        if partition not in partitions:
            partitions[partition] = CellSums(dimensions=len(axes))
        partitions[partition].add(axes, change.lasting_amounts)
        if change.curves and charge.cell_renyi is not None:
            curves = self.curves.setdefault(table, {})
            if partition not in curves:
                curves[partition] = CurveSums(dimensions=len(axes))
            curves[partition].add(axes, charge.epsilon_nano, charge.cell_renyi, times=change.curves)
        if change.looks is not None:
            self._give_back_looks(charge, change.looks, partition, axes, times=-change.look_count)
        changes, version = self.change_counts.setdefault(table, {}), find_version(partition)
        changes[version] = changes.get(version, 0) + 1
        if self.families is not None:
            family, keys = merge_live_versions(charge.family), [values for _, values in charge.cells.columns]
            if family not in self.families:
                self.families[family] = CellSums(dimensions=len(keys))
            self.families[family].add(keys, change.amounts)
        if charge.family.unit != ROW_UNIT:
            self.unit_loss = self.unit_loss.add_question(change.unit_nano, None)
            if change.curves and charge.renyi is not None:
                self.unit_loss = self.unit_loss.move_to_curves(
                    charge.unit_epsilon_nano, charge.renyi, times=change.curves
                )
        self.table_nano[table] = self.table_nano.get(table, 0) + change.table_nano

    def _give_back_looks(
        self, charge: Charge, looks: LooksThatRan, partition: Partition, axes: list[tuple[str, ...]], *, times: int
    ) -> None:
        """Add what the looks that did not run saved, so many `times`: -1 takes it from what was reserved."""
        if charge.cell_renyi is not None:
            curves = self.curves.setdefault(charge.family.table, {})
            if partition not in curves:
                curves[partition] = CurveSums(dimensions=len(axes))
            rows, places = looks.list_rows(charge)
            curves[partition].add_rows(axes, times * rows, places)
        ran = looks.spent
        if charge.renyi is not None and ran.renyi is not None:
            saved = tuple(reserved - more for reserved, more in zip(charge.renyi, ran.renyi, strict=True))
            self.unit_loss = self.unit_loss.move_to_curves(
                charge.unit_epsilon_nano - ran.unit_epsilon_nano, saved, times=times
            )

    def bound_losses(
        self,
        family: Family,
        cells: Cells,
        *,
        exact_grid: int = EXACT_GRID,
        knowledge: Knowledge = assume_nothing,
    ) -> NanoArray:
        """Return an upper bound on what each key has lost, in 1e-9 epsilon, shape `cells.shape`."""
        if exact_grid != EXACT_GRID:
            among = select_table_knowledge(family.table, knowledge)
            sums = self.tables.get(family.table, {})
            return bound_cell_losses(sums, make_partition(family), cells, exact_grid=exact_grid, among=among)
        return self.select_table(family.table, knowledge).bound_losses(family, cells)

    def bound_losses_by_curve(
        self, family: Family, cells: Cells, *, delta: float | None, knowledge: Knowledge = assume_nothing
    ) -> CellLosses:
        """Return upper bounds on what each key has lost, in which curves count if there is a `delta`."""
        return self.select_table(family.table, knowledge).bound_losses_by_curve(family, cells, delta=delta)

    def select_table(self, table: str, knowledge: Knowledge) -> TableLosses:
        """Return the sums of one table, under the known dependencies of its columns."""
        return TableLosses(
            sums=self.tables.get(table, {}),
            curves=self.curves.get(table, {}),
            change_counts=self.change_counts.get(table, {}),
            find_other_versions=partial(self.find_other_versions, table, knowledge),
            among=select_table_knowledge(table, knowledge),
        )

    def find_other_versions(self, table: str, knowledge: Knowledge, column: int) -> OtherVersions:
        """Return the cached losses of a table's other data versions, under the known dependencies of its columns.

        `column` is that of the sums: at one order, or `PURE`.
        """
        if (table, knowledge, column) not in self.other_versions:
            self.other_versions[table, knowledge, column] = OtherVersions(
                among=select_table_knowledge(table, knowledge)
            )
        return self.other_versions[table, knowledge, column]

    def read_table_loss(self, table: str) -> int:
        """Return the table's balance."""
        return self.table_nano.get(table, 0)


def merge_live_versions(family: Family) -> Family:
    """Return the family as reports show it: all data versions of a live table are merged into one."""
    return family if is_lasting(family.version) else replace(family, version=LIVE)


@dataclass(frozen=True, slots=True)
class SumsAfterRefunds(Mapping[Partition, Sums]):
    """The sums of one table's charges, minus the refunds of these charges."""

    charged_sums: Mapping[Partition, CellSums]
    refunded_sums: Mapping[Partition, CellSums]

    def __getitem__(self, partition: Partition) -> Sums:
        whole = self.charged_sums[partition]
        return SumsDifference(whole, self.refunded_sums[partition]) if partition in self.refunded_sums else whole

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.charged_sums)

    def __len__(self) -> int:
        return len(self.charged_sums)


@dataclass(frozen=True, slots=True)
class KnownAccount:
    """The shared balance as one analyst may know it: all charges at their worst case, less this analyst's refunds."""

    worst_case: Account
    refunds: Account

    @property
    def unit_loss(self) -> UnitLoss:
        """Return what a unit has lost."""
        return self.worst_case.unit_loss.subtract(self.refunds.unit_loss)

    def bound_losses(self, family: Family, cells: Cells, *, knowledge: Knowledge = assume_nothing) -> NanoArray:
        """Return an upper bound on what each key has lost, in 1e-9 epsilon, shape `cells.shape`."""
        return self.select_table(family.table, knowledge).bound_losses(family, cells)

    def bound_losses_by_curve(
        self, family: Family, cells: Cells, *, delta: float | None, knowledge: Knowledge = assume_nothing
    ) -> CellLosses:
        """Return upper bounds on what each key has lost, in which curves count if there is a `delta`."""
        return self.select_table(family.table, knowledge).bound_losses_by_curve(family, cells, delta=delta)

    def select_table(self, table: str, knowledge: Knowledge) -> TableLosses:
        """Return the sums of one table."""
        charged = self.worst_case.select_table(table, knowledge)
        if table not in self.refunds.tables:
            return charged
        worst, back = charged.change_counts, self.refunds.change_counts.get(table, {})
        return replace(
            charged,
            refunded_curves=self.refunds.curves.get(table, {}),
            sums=SumsAfterRefunds(self.worst_case.tables.get(table, {}), self.refunds.tables[table]),
            change_counts={
                version: worst.get(version, 0) + back.get(version, 0) for version in worst.keys() | back.keys()
            },
            find_other_versions=partial(self.refunds.find_other_versions, table, knowledge),
        )

    def read_table_loss(self, table: str) -> int:
        """Return the table's balance."""
        return self.worst_case.read_table_loss(table) - self.refunds.read_table_loss(table)
