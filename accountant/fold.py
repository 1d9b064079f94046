"""Balances as a pure fold over events.

`fold(events)` depends on the events alone; `apply` continues a fold, so a shell may keep one and feed it what is new.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from accountant.errors import LedgerUnavailable
from accountant.events import Committed, Event, Released, Reserved
from accountant.model import ROW_UNIT, Cells, Charge, Family, NanoArray, Reservation, Spent
from accountant.overlap import EXACT_GRID, spent_on
from accountant.sums import CellSums, Partition, Sums, SumsLess, partition_of


@dataclass(slots=True)
class Account:
    """What one circle of readers (everybody, or one analyst) may have learned: per cell of each table, and per unit.

    Families whose keys are told apart along the same axes share one partition. `families` keeps each family's own sums
    beside them, for reports; None when nobody asks for them.
    """

    tables: dict[str, dict[Partition, CellSums]] = field(default_factory=dict)
    unit_nano: int = 0
    families: dict[Family, CellSums] | None = None

    def add(self, charge: Charge, amount: int | NanoArray, *, unit_nano: int) -> None:
        """Add `amount` (negative to give back) to every key of the charge, and `unit_nano` to the unit's balance."""
        axes = [values for _, values in charge.cells.columns]
        partition = partition_of(charge.family)
        partitions = self.tables.setdefault(charge.family.table, {})
        if partition not in partitions:
            partitions[partition] = CellSums(dimensions=len(axes))
        partitions[partition].add(axes, amount)
        if self.families is not None:
            if charge.family not in self.families:
                self.families[charge.family] = CellSums(dimensions=len(axes))
            self.families[charge.family].add(axes, amount)
        if charge.family.unit != ROW_UNIT:
            self.unit_nano += unit_nano

    def spent_on(self, family: Family, cells: Cells, *, exact_grid: int = EXACT_GRID) -> NanoArray:
        """An upper bound on what each key has lost, in 1e-9 epsilon, shape `cells.shape`."""
        return spent_on(self.tables.get(family.table, {}), partition_of(family), cells, exact_grid=exact_grid)


@dataclass(frozen=True, slots=True)
class Known:
    """A shared balance as one analyst may know it: everybody's charges at their worst case, less the own refunds."""

    worst: Account
    refunds: Account

    @property
    def unit_nano(self) -> int:
        """The unit's balance."""
        return self.worst.unit_nano - self.refunds.unit_nano

    def spent_on(self, family: Family, cells: Cells) -> NanoArray:
        """An upper bound on what each key has lost, in 1e-9 epsilon, shape `cells.shape`."""
        back = self.refunds.tables.get(family.table, {})
        sums: dict[Partition, Sums] = {
            partition: SumsLess(whole, back[partition]) if partition in back else whole
            for partition, whole in self.worst.tables.get(family.table, {}).items()
        }
        return spent_on(sums, partition_of(family), cells)


@dataclass(slots=True)
class Balances:
    """The fold: accounts, open reservations, and what became of the closed ones.

    `shared` is what everybody together may have learned, ex post; `worst` the same with every question that ran at its
    worst case, and `refunds` what each analyst's own questions cost less than that. `held` maps (analyst, question,
    version) to the reservation whose stored answer that analyst has paid for or read.
    """

    shared: Account = field(init=False)
    worst: Account = field(default_factory=Account)
    refunds: dict[str, Account] = field(default_factory=dict)
    analysts: dict[str, Account] = field(default_factory=dict)
    open: dict[str, Reservation] = field(default_factory=dict)
    closed: dict[str, str] = field(default_factory=dict)
    held: dict[tuple[str, str, str], str] = field(default_factory=dict)

    per_family: bool = False

    def __post_init__(self) -> None:
        self.shared = self._new_account()

    def _new_account(self) -> Account:
        return Account(families={} if self.per_family else None)

    def account(self, analyst: str) -> Account:
        """The analyst's own account, empty if nothing was ever charged to it."""
        return self.analysts.get(analyst) or self._new_account()

    def known_to(self, analyst: str) -> Known:
        """The shared balance in which other analysts' refunds do not show."""
        return Known(worst=self.worst, refunds=self.refunds.get(analyst) or Account())

    def apply(self, event: Event) -> None:
        """Continue the fold by one event."""
        match event:
            case Reserved(reservation=reservation, at=at, charge=charge):
                if reservation in self.open or reservation in self.closed:
                    raise LedgerUnavailable(f"reservation {reservation} was written twice")
                self.open[reservation] = Reservation(reservation, charge, at)
                self._add(charge, charge.epsilon_nano, unit_nano=charge.unit_epsilon_nano)
                if charge.shared:
                    self.worst.add(charge, charge.epsilon_nano, unit_nano=charge.unit_epsilon_nano)
            case Committed(reservation=reservation, spent=spent, answer=answer, reads=reads):
                charge = self._close(reservation, "committed")
                spent.check_covered_by(charge)
                self._give_back(charge, spent)
                if charge.shared:
                    self._refund(charge, spent)
                source = reads or (reservation if answer is not None else None)
                if source is not None:
                    self.held.setdefault((charge.analyst, charge.question, charge.family.version), source)
            case Released(reservation=reservation):
                charge = self._close(reservation, "released")
                self._give_back(charge, Spent.uniform(0, unit_epsilon_nano=0))
                if charge.shared:
                    self.worst.add(charge, -charge.epsilon_nano, unit_nano=-charge.unit_epsilon_nano)

    def _close(self, reservation: str, how: str) -> Charge:
        if reservation not in self.open:
            raise LedgerUnavailable(f"reservation {reservation} was closed twice, or never opened")
        self.closed[reservation] = how
        return self.open.pop(reservation).charge

    def _give_back(self, charge: Charge, spent: Spent) -> None:
        self._add(
            charge,
            spent.amounts(charge.cells) - charge.epsilon_nano,
            unit_nano=spent.unit_epsilon_nano - charge.unit_epsilon_nano,
        )

    def _refund(self, charge: Charge, spent: Spent) -> None:
        amounts = charge.epsilon_nano - spent.amounts(charge.cells)
        unit_nano = charge.unit_epsilon_nano - spent.unit_epsilon_nano
        if np.any(amounts) or unit_nano:
            self.refunds.setdefault(charge.analyst, Account()).add(charge, amounts, unit_nano=unit_nano)

    def _add(self, charge: Charge, amount: int | NanoArray, *, unit_nano: int) -> None:
        if charge.analyst not in self.analysts:
            self.analysts[charge.analyst] = self._new_account()
        self.analysts[charge.analyst].add(charge, amount, unit_nano=unit_nano)
        if charge.shared:
            self.shared.add(charge, amount, unit_nano=unit_nano)


def fold(events: Iterable[Event], *, per_family: bool = False) -> Balances:
    """All events to balances, each family's own sums with them if asked for."""
    balances = Balances(per_family=per_family)
    for event in events:
        balances.apply(event)
    return balances
