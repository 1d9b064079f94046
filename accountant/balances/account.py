"""The account of one circle of readers: the losses that it may have learned, per cell, per unit and per table."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

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
    name_moving_version,
)
from accountant.balances.dependencies import Knowledge, assume_nothing, select_table_knowledge
from accountant.balances.other_versions import OtherVersions
from accountant.balances.overlap import bound_cell_losses
from accountant.balances.variable_elimination import EXACT_GRID
from accountant.charges import LIVE, ROW_UNIT, Cells, Charge, Family, NanoArray, Spent, is_lasting
from accountant.unit_balance import NO_UNIT_LOSS, UnitLoss


@dataclass(frozen=True, slots=True)
class AccountChange:
    """Amounts added to an account for one charge: to each key, to the unit's balance, and to the table's.

    `lasting_amounts` are the amounts of the cells under which the charge is kept (`merge_moving_labels`). `curves` is
    the number of added questions with the charge's Rényi curve, if it has one.
    """

    amounts: NanoArray | int
    lasting_amounts: NanoArray | int
    unit_nano: int
    table_nano: int
    curves: int = 0

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
        return AccountChange(amounts, lasting, -self.unit_nano, -self.table_nano, -self.curves)


@dataclass(slots=True)
class Account:
    """The losses that one circle of readers (everybody, or one analyst) may have learned.

    Families with the same axes share one partition. A data version of a single question is kept only as the most that
    its rows can have lost (`find_charged_cells`), so an account of a live table does not grow with its questions.
    `families` has each family's own sums, for reports (None: not needed). All live versions are one family there.
    `table_nano` is, per table, the sum over questions of each one's cost to a unit, or (for unit "row") to the key that
    lost most. `change_counts` counts, per table and data version, how often `add` changed its sums in this process.
    From it `other_versions` sees which of its cached sums are out of date.
    """

    tables: dict[str, dict[Partition, CellSums]] = field(default_factory=dict)
    unit_loss: UnitLoss = NO_UNIT_LOSS
    table_nano: dict[str, int] = field(default_factory=dict)
    families: dict[Family, CellSums] | None = None
    change_counts: dict[str, dict[str, int]] = field(default_factory=dict, compare=False, repr=False)
    other_versions: dict[tuple[str, Knowledge], OtherVersions] = field(default_factory=dict, compare=False, repr=False)

    def copy(self, tables: frozenset[str]) -> "Account":
        """Return a copy with these tables and the units; changing it does not change this one."""
        return Account(
            tables={
                table: {partition: sums.copy() for partition, sums in partitions.items()}
                for table, partitions in self.tables.items()
                if table in tables
            },
            unit_loss=self.unit_loss,
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

    def bound_losses(
        self,
        family: Family,
        cells: Cells,
        *,
        exact_grid: int = EXACT_GRID,
        knowledge: Knowledge = assume_nothing,
    ) -> NanoArray:
        """Return an upper bound on what each key has lost, in 1e-9 epsilon, shape `cells.shape`."""
        sums, partition = self.tables.get(family.table, {}), make_partition(family)
        among = select_table_knowledge(family.table, knowledge)
        if exact_grid != EXACT_GRID:
            return bound_cell_losses(sums, partition, cells, exact_grid=exact_grid, among=among)
        here, rest = self.find_other_versions(family.table, knowledge).split_versions(
            sums, self.change_counts.get(family.table, {}), name_moving_version(family.version)
        )
        return bound_cell_losses(here, partition, cells, rest=rest, among=among)

    def find_other_versions(self, table: str, knowledge: Knowledge) -> OtherVersions:
        """Return the cached losses of a table's other data versions, under the known dependencies of its columns."""
        if (table, knowledge) not in self.other_versions:
            self.other_versions[table, knowledge] = OtherVersions(among=select_table_knowledge(table, knowledge))
        return self.other_versions[table, knowledge]

    def read_table_loss(self, table: str) -> int:
        """Return the table's balance."""
        return self.table_nano.get(table, 0)


def merge_live_versions(family: Family) -> Family:
    """Return the family as reports show it: all data versions of a live table are merged into one."""
    return family if is_lasting(family.version) else replace(family, version=LIVE)


@dataclass(frozen=True, slots=True)
class SumsAfterRefunds(Mapping[Partition, Sums]):
    """The sums of one table less what was refunded of them."""

    charged: Mapping[Partition, CellSums]
    refunded: Mapping[Partition, CellSums]

    def __getitem__(self, partition: Partition) -> Sums:
        whole = self.charged[partition]
        return SumsDifference(whole, self.refunded[partition]) if partition in self.refunded else whole

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.charged)

    def __len__(self) -> int:
        return len(self.charged)


@dataclass(frozen=True, slots=True)
class KnownAccount:
    """The shared balance as one analyst may know it: all charges at their worst case, less this analyst's refunds."""

    worst_case: Account
    refunds: Account

    @property
    def unit_loss(self) -> UnitLoss:
        """Return what a unit has lost. A loss charged by curve is never refunded."""
        return self.worst_case.unit_loss.add_question(-self.refunds.unit_loss.pure_nano, None)

    def bound_losses(self, family: Family, cells: Cells, *, knowledge: Knowledge = assume_nothing) -> NanoArray:
        """Return an upper bound on what each key has lost, in 1e-9 epsilon, shape `cells.shape`."""
        table, partition = family.table, make_partition(family)
        if table not in self.refunds.tables:
            return self.worst_case.bound_losses(family, cells, knowledge=knowledge)
        worst, back = self.worst_case.change_counts.get(table, {}), self.refunds.change_counts.get(table, {})
        changes = {version: worst.get(version, 0) + back.get(version, 0) for version in worst.keys() | back.keys()}
        here, rest = self.refunds.find_other_versions(table, knowledge).split_versions(
            SumsAfterRefunds(self.worst_case.tables.get(table, {}), self.refunds.tables[table]),
            changes,
            name_moving_version(family.version),
        )
        return bound_cell_losses(here, partition, cells, rest=rest, among=select_table_knowledge(table, knowledge))

    def read_table_loss(self, table: str) -> int:
        """Return the table's balance."""
        return self.worst_case.read_table_loss(table) - self.refunds.read_table_loss(table)
