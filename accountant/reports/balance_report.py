"""The report for an owner: spent and left by family and key, by analyst and by unit."""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product

import numpy as np

from accountant.balances.account import Account, KnownAccount
from accountant.balances.dependencies import Knowledge, assume_nothing
from accountant.balances.fold import Balances
from accountant.balances.grants import apply_grants
from accountant.charges import Cells, Family, NanoArray, Reservation
from accountant.errors import BalanceScope
from accountant.events.events import GENESIS, Event, Record, Reserved
from accountant.events.owner_events import WindowOpened
from accountant.limits import Limits
from accountant.monitor_model import MonitorRun
from accountant.store.deadline import Deadline
from accountant.store.journal import Journal
from accountant.unit_balance import UnitLoss

# for whoever waits while another thread reads the whole log for the first report: millions of events
_FIRST_REPORT_MS = 600_000


@dataclass(frozen=True, slots=True)
class FamilyBalance:
    """One family's keys. `spent_nano` is the family's own; `lost_nano` and `left_nano` count overlapping families too.

    All are per key in the order of `list_keys()`, in 1e-9 epsilon. `spent_nano` is a sum of pure losses. `lost_nano` is
    the balance, for the limits' `cell_delta` if they have one. A question over key k fits the per-predicate balance if
    its worst case is at most `left_nano` of k. `cap_nano` is the cap of each key. `tightest_scope` is the
    scope of the tightest balance, for the key with the least left: everybody's, or the analyst's own. Anybody's odds on
    a unit in a key changed by at most `odds_nano`. That and `lost_nano` hold except with the `cell_delta` if the family
    `is_by_curve`.
    """

    family: Family
    cells: Cells
    spent_nano: tuple[int, ...]
    lost_nano: tuple[int, ...]
    left_nano: tuple[int, ...]
    cap_nano: int
    tightest_scope: BalanceScope = BalanceScope.PER_PREDICATE
    odds_nano: int = 0
    is_by_curve: bool = False

    def list_keys(self) -> Iterator[tuple[str, ...]]:
        """Return every key ever charged in this family, one value per grouping column."""
        return product(*(values for _, values in self.cells.columns))


@dataclass(frozen=True, slots=True)
class AnalystBalance:
    """The balance of one analyst: the number of questions reserved or read, and the losses by them.

    `most_spent_nano` is the largest loss of a cell, and `unit_spent_nano` the loss of a unit.
    """

    analyst: str
    questions: int
    most_spent_nano: int
    unit_spent_nano: int


@dataclass(frozen=True, slots=True)
class TableBalance:
    """The balance of one table: the sum over its questions of each one's cost to a unit.

    For unit "row", each question counts with the cost to the key that lost most.

    `left_nano` is None without a cap; `cap_nano` counts grants.
    """

    table: str
    spent_nano: int
    cap_nano: int | None
    left_nano: int | None


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """Balances at one moment, of one budget window or of all `window_count`.

    The budget window was opened at `window_opened_at` (None: it is the first). `unit_spent_nano` is the unit's balance,
    for the limits' `delta` if they have one; `unit_loss` has its parts. `unit_cap_nano` and `unit_left_nano` are None
    without a cap. `tightest_unit_scope` is the scope of the balance with `unit_left_nano`. Reservations in
    `open_reservations` count at their worst case. So do the windows of `running_monitors`, the runs that have not
    ended. Caps include grants. In one analyst's report, the caps on a key and on a unit are the lower ones of the
    policy's and the analyst's own.
    """

    families: tuple[FamilyBalance, ...]
    tables: tuple[TableBalance, ...]
    analysts: tuple[AnalystBalance, ...]
    unit_spent_nano: int
    unit_loss: UnitLoss
    unit_cap_nano: int | None
    unit_left_nano: int | None
    tightest_unit_scope: BalanceScope
    open_reservations: tuple[Reservation, ...]
    running_monitors: tuple[MonitorRun, ...]
    window_count: int
    window_opened_at: datetime | None


@dataclass(slots=True)
class Tally:
    """The fold of the log that reports read.

    It has balances with each family's own sums, the times when budget windows were opened, and each analyst's number
    of questions. It covers the newest budget window, or all of them if `covers_all_windows`.
    """

    balances: Balances = field(init=False)
    window_starts: list[datetime] = field(default_factory=list)
    questions_by_analyst: Counter[str] = field(default_factory=Counter)

    covers_all_windows: bool = False

    def __post_init__(self) -> None:
        self.balances = Balances(keeps_families=True, covers_all_windows=self.covers_all_windows)

    def apply_event(self, event: Event) -> None:
        """Add one event to the tally."""
        self.balances.apply_event(event)
        if isinstance(event, WindowOpened):
            self.window_starts.append(event.at)
        if isinstance(event, Reserved):
            self.questions_by_analyst[event.charge.analyst] += 1


def report_balances(
    tally: Tally, limits: Limits, *, analyst: str | None, knowledge: Knowledge = assume_nothing
) -> BudgetReport:
    """Return a report over everybody's charges, or over one analyst's own.

    For one analyst, only that analyst's losses are spent. The rest is the smaller one of the shared and the own
    balance. Other analysts' losses are not shown. `knowledge` gives the public dependencies between columns.
    """
    balances, questions, windows = tally.balances, tally.questions_by_analyst, tally.window_starts
    account = balances.shared if analyst is None else balances.find_account(analyst)
    unit_left, unit_limit = _find_remaining_unit_balance(balances, limits, analyst=analyst)
    return BudgetReport(
        families=tuple(_list_family_balances(balances, account, limits, knowledge, analyst=analyst)),
        tables=tuple(_list_table_balances(balances, account, limits, analyst=analyst)),
        analysts=tuple(
            AnalystBalance(
                name,
                questions[name],
                find_largest_key_loss(own, knowledge, delta=limits.cell_delta),
                own.unit_loss.find_balance(limits.delta),
            )
            for name, own in sorted(balances.analysts.items())
            if analyst in (None, name)
        ),
        unit_spent_nano=account.unit_loss.find_balance(limits.delta),
        unit_loss=account.unit_loss,
        unit_cap_nano=_find_unit_cap(balances, limits, analyst=analyst),
        unit_left_nano=unit_left,
        tightest_unit_scope=unit_limit,
        open_reservations=tuple(
            item for item in balances.list_open_questions() if analyst in (None, item.charge.analyst)
        ),
        running_monitors=tuple(
            balances.monitors.make_run(one)
            for one in balances.monitors.list_unended()
            if analyst in (None, one.charge.analyst)
        ),
        window_count=len(windows) + 1,
        window_opened_at=windows[-1] if windows and not tally.covers_all_windows else None,
    )


class Reporter:
    """A maker of reports on a growing ledger. It keeps its last fold and adds the events since.

    Threads may share it. The first report of the newest budget window reads the whole log, later ones read new events
    only. Reports over all windows read the whole log every time.
    """

    def __init__(self, journal: Journal, *, knowledge: Knowledge) -> None:
        self._journal = journal
        self._knowledge = knowledge
        self._lock = threading.Lock()
        self._drop_tally()

    def _drop_tally(self) -> None:
        self._tally = Tally()
        self._last = (0, GENESIS)

    def report_newest_window(self, limits: Limits, *, analyst: str | None) -> BudgetReport:
        """Return the report of the newest window.

        Raise `LedgerUnavailable` if the log cannot be read. If the storage hangs, the error is raised without delay: a
        caller waits for another thread's work, but not for a storage that does not reply.
        """
        self._journal.find_newest_event()
        deadline = self._journal.make_deadline() if self._last[0] else Deadline(_FIRST_REPORT_MS)
        with deadline.hold_lock(self._lock):
            self._fold_new_events(self._journal.read_events_after(*self._last))
            return report_balances(self._tally, limits, analyst=analyst, knowledge=self._knowledge)

    def report_all_windows(self, limits: Limits, *, analyst: str | None) -> BudgetReport:
        """Return the report over all windows. Raise `LedgerUnavailable` if the log cannot be read."""
        tally = Tally(covers_all_windows=True)
        for _, event in self._journal.read_events():
            tally.apply_event(event)
        return report_balances(tally, limits, analyst=analyst, knowledge=self._knowledge)

    def _fold_new_events(self, written: Sequence[tuple[Record, Event]]) -> None:
        try:
            for record, event in written:
                self._tally.apply_event(event)
                self._last = (record.id, record.hash)
        except BaseException:
            self._drop_tally()
            raise


def _list_families(account: Account) -> Iterator[tuple[Family, Cells]]:
    order = sorted(
        account.families or {}, key=lambda family: (family.table, family.columns, family.filter, family.version)
    )
    for family in order:
        yield family, Cells(tuple(zip(family.columns, (account.families or {})[family].axes, strict=True)))


def _choose_account(balances: Balances, limits: Limits, *, analyst: str | None) -> Account | KnownAccount:
    return (
        balances.make_known_account(analyst) if analyst is not None and limits.separates_analysts else balances.shared
    )


def _list_family_balances(
    balances: Balances, account: Account, limits: Limits, knowledge: Knowledge, *, analyst: str | None
) -> Iterator[FamilyBalance]:
    everybody = _choose_account(balances, limits, analyst=analyst)
    for family, cells in _list_families(account):
        caps = apply_grants(limits, balances.grants.values(), table=family.table, analyst=analyst)
        losses = account.bound_losses_by_curve(family, cells, delta=limits.cell_delta, knowledge=knowledge)
        lost = losses.find_balances(limits.cell_delta)
        cap, limit = caps.per_predicate_nano, BalanceScope.PER_PREDICATE
        left = cap - find_key_balances(everybody, family, cells, knowledge, delta=limits.cell_delta)
        if analyst is not None and caps.analyst_per_predicate_nano is not None:
            cap = min(cap, caps.analyst_per_predicate_nano)
            own_left = caps.analyst_per_predicate_nano - lost
            if own_left.size and own_left.min() < left.min():
                limit = BalanceScope.ANALYST_PER_PREDICATE
            left = np.minimum(left, own_left)
        own = (account.families or {})[family].array
        yield FamilyBalance(
            family=family,
            cells=cells,
            spent_nano=tuple(own.reshape(-1).tolist()),
            lost_nano=tuple(lost.reshape(-1).tolist()),
            left_nano=tuple(np.maximum(left, 0).reshape(-1).tolist()),
            cap_nano=cap,
            tightest_scope=limit,
            odds_nano=int(losses.bound_odds_changes(limits.cell_delta).max(initial=0)),
            is_by_curve=losses.classes is not None,
        )


def _list_table_balances(
    balances: Balances, account: Account, limits: Limits, *, analyst: str | None
) -> Iterator[TableBalance]:
    everybody = _choose_account(balances, limits, analyst=analyst)
    for table, spent in sorted(account.table_nano.items()):
        cap = apply_grants(limits, balances.grants.values(), table=table, analyst=analyst).per_table_nano
        left = None if cap is None else max(0, cap - everybody.read_table_loss(table))
        yield TableBalance(table=table, spent_nano=spent, cap_nano=cap, left_nano=left)


def find_key_balances(
    account: Account | KnownAccount, family: Family, cells: Cells, knowledge: Knowledge, *, delta: float | None
) -> NanoArray:
    """Return the balance of each key, in 1e-9 epsilon, for the `delta` of cells."""
    return account.bound_losses_by_curve(family, cells, delta=delta, knowledge=knowledge).find_balances(delta)


def find_largest_key_loss(account: Account, knowledge: Knowledge, *, delta: float | None) -> int:
    """Return the balance of the key that lost most, in 1e-9 epsilon, for the `delta` of cells."""
    lost = (
        find_key_balances(account, family, cells, knowledge, delta=delta) for family, cells in _list_families(account)
    )
    return max((int(one.max()) for one in lost), default=0)


def _find_unit_cap(balances: Balances, limits: Limits, *, analyst: str | None) -> int | None:
    caps = apply_grants(limits, balances.grants.values(), table=None, analyst=analyst)
    own = None if analyst is None else caps.analyst_per_unit_nano
    return min((cap for cap in (caps.per_unit_nano, own) if cap is not None), default=None)


def _find_remaining_unit_balance(
    balances: Balances, limits: Limits, *, analyst: str | None
) -> tuple[int | None, BalanceScope]:
    """Return what is left of a unit, None without a cap, and whose balance that is."""
    caps = apply_grants(limits, balances.grants.values(), table=None, analyst=analyst)
    left = []
    if caps.per_unit_nano is not None:
        spent = _choose_account(balances, limits, analyst=analyst).unit_loss.find_balance(limits.delta)
        left.append((caps.per_unit_nano - spent, BalanceScope.PER_UNIT))
    if analyst is not None and caps.analyst_per_unit_nano is not None:
        spent = balances.find_account(analyst).unit_loss.find_balance(limits.delta)
        left.append((caps.analyst_per_unit_nano - spent, BalanceScope.ANALYST_PER_UNIT))
    if not left:
        return None, BalanceScope.PER_UNIT
    least, limit = min(left, key=lambda one: one[0])
    return max(0, least), limit
