"""Balances are a pure fold over the events. Nothing here reads a clock or a file."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from accountant.balances.account import Account, AccountChange, KnownAccount
from accountant.balances.monitor_balances import MonitorRuns
from accountant.balances.noise_paths import Paths, Refund
from accountant.charges import NOTHING_SPENT, Amounts, Charge, Reservation, Spent, is_lasting
from accountant.errors import DeclineReason, LedgerMisuse, LedgerUnavailable
from accountant.events.events import Committed, Event, Released, Reserved
from accountant.events.monitor_events import MonitorEnded, MonitorEvent, MonitorWindowClosed
from accountant.events.owner_events import (
    Approved,
    Declined,
    Grant,
    Granted,
    OwnerEvent,
    Pruned,
    Published,
    Revoked,
    Settled,
    WindowOpened,
)


@dataclass(slots=True)
class Balances:
    """The fold: accounts, and open reservations. The end of the closed ones is in the log.

    `shared` is what everybody together may have learned, ex post; `worst` the same with every question that ran at its
    worst case as far as that is public, and `refunds` what each analyst's own questions cost less than that. `held`
    maps (analyst, question, version) to the reservation whose stored answer that analyst has paid for or read, where
    another question may have that version. `declined` has the owner's last word against questions that were not
    approved since. `ended`
    has the charges, as reserved, of open reservations that continued paths when a window opened: they leave none. The
    reservations of `monitors` that have not ended are open, and those of no question. All accounts are of the newest
    window, or with `all_windows` of all of them.
    """

    shared: Account = field(init=False)
    worst: Account = field(default_factory=Account)
    refunds: dict[str, Account] = field(default_factory=dict)
    analysts: dict[str, Account] = field(default_factory=dict)
    open: dict[str, Reservation] = field(default_factory=dict)
    held: dict[tuple[str, str, str], str] = field(default_factory=dict)
    paths: Paths = field(default_factory=Paths)
    grants: dict[str, Grant] = field(default_factory=dict)
    approved: set[str] = field(default_factory=set)
    declined: dict[str, DeclineReason] = field(default_factory=dict)
    ended: dict[str, Charge] = field(default_factory=dict)
    monitors: MonitorRuns = field(default_factory=MonitorRuns)

    per_family: bool = False
    all_windows: bool = False

    def __post_init__(self) -> None:
        self.shared = self._new_account()

    def _new_account(self) -> Account:
        return Account(families={} if self.per_family else None)

    def copy(self, tables: frozenset[str]) -> "Balances":
        """Return a copy for these tables, units and paths, without the figures that only reports need.

        Continuing the copy does not change this fold.
        """
        other = Balances(
            worst=self.worst.copy(tables),
            refunds={analyst: account.copy(tables) for analyst, account in self.refunds.items()},
            analysts={analyst: account.copy(tables) for analyst, account in self.analysts.items()},
            open=dict(self.open),
            held=dict(self.held),
            paths=self.paths.copy(),
            grants=dict(self.grants),
            approved=set(self.approved),
            declined=dict(self.declined),
            ended=dict(self.ended),
            all_windows=self.all_windows,
        )
        other.shared = self.shared.copy(tables)
        return other

    def account(self, analyst: str) -> Account:
        """Return the analyst's own account, empty if nothing was ever charged to it."""
        return self.analysts.get(analyst) or self._new_account()

    def known_to(self, analyst: str) -> KnownAccount:
        """Return the shared balance without other analysts' refunds."""
        return KnownAccount(worst_case=self.worst, refunds=self.refunds.get(analyst) or Account())

    def counted_again(self, charge: Charge) -> Account:
        """Return the analyst's own refunds that no longer count once a charge that continues paths is reserved."""
        account = Account()
        for refund in self.paths.would_withdraw(() if charge.continuing is None else charge.continuing.paths):
            if refund.charge.analyst == charge.analyst:
                account.add(refund.charge, _refund_change(refund))
        return account

    def questions(self) -> tuple[Reservation, ...]:
        """Return the open reservations of questions.

        Reservations of monitors are left out: they stay open as long as their monitors stand.
        """
        return tuple(one for identity, one in self.open.items() if identity not in self.monitors.runs)

    def keeps_paths(self, reservation: str) -> bool:
        """Return True if an open reservation may leave paths.

        It may not where it continues a charge of an older window.
        """
        return reservation not in self.ended

    def check_covers(self, reservation: str, spent: Spent) -> None:
        """Raise `LedgerMisuse` unless an open reservation covers a loss: as it counts now, and as it was reserved."""
        charge = self.open[reservation].charge
        spent.check_covered_by(charge)
        spent.check_covered_by(self.ended.get(reservation, charge))

    def apply(self, event: Event) -> None:
        """Continue the fold by one event."""
        try:
            if isinstance(event, MonitorEvent):
                self._apply_to_monitor(event)
            else:
                self._apply_to_questions(event)
        except LedgerMisuse as error:
            raise LedgerUnavailable("an event is there that no verb writes after those before it") from error

    def _apply_to_monitor(self, event: MonitorEvent) -> None:
        self.monitors.apply(event, self.open)
        match event:
            case MonitorWindowClosed(run=run, window=window, spent=spent):
                account = self.monitors.runs[run]
                if spent is not None and account.refunds_at_close:
                    charge, change = account.charge_of(window), account.change_of_close(spent)
                    self.shared.add(charge, change)
                    self._account_of(charge.analyst).add(charge, change)
                    self._refunds_of(charge.analyst).add(charge, -change)
            case MonitorEnded(run=run):
                self._end_monitor(run)
            case _:
                pass

    def _end_monitor(self, run: str) -> None:
        account = self.monitors.runs[run]
        charge = self._close(run)
        change, public = account.changes_of_end()
        self.shared.add(charge, change)
        self._account_of(charge.analyst).add(charge, change)
        self.worst.add(charge, public)
        self._refunds_of(charge.analyst).add(charge, public - change)
        of_reader = account.change_of_reader()
        for analyst in sorted(account.readers):
            reading = replace(charge, analyst=analyst, shared=False)
            self._account_of(analyst).add(reading, of_reader)

    def _apply_to_questions(self, event: OwnerEvent | Reserved | Committed | Released) -> None:
        match event:
            case Reserved(reservation=reservation, at=at, charge=charge):
                self._reserve(Reservation(reservation, charge, at))
            case Committed(reservation=reservation):
                self.monitors.check_ended(reservation)
                self._commit(event)
            case Released(reservation=reservation):
                self.monitors.check_ended(reservation)
                self._release(reservation)
            case Settled(reservation=reservation, untouched=untouched):
                self.monitors.check_ended(reservation)
                self._settle(reservation, untouched=untouched)
            case Granted(grant_id=identity, grant=grant):
                self.grants[identity] = grant
            case Revoked(grant_id=identity):
                self._revoke(identity)
            case Approved(question=question):
                self.approved.add(question)
                self.declined.pop(question, None)
            case Declined(question=question, at=at, why=why):
                self.declined[question] = DeclineReason(at, why)  # it changes no balance, and forbids nothing
            case WindowOpened():
                self.monitors.check_none_stands()
                self._start_anew()
            case Pruned(table=table, version=version):
                self.paths.prune(table, version)
            case Published():
                pass  # no balance covers it

    def _reserve(self, reservation: Reservation) -> None:
        if reservation.id in self.open:
            raise LedgerUnavailable(f"reservation {reservation.id} was written twice")
        charge = reservation.charge
        if charge.continuing is not None and not self.paths.are_free(charge.continuing.paths):
            raise LedgerUnavailable(f"reservation {reservation.id} continues a path that was not free")
        self.open[reservation.id] = reservation
        self._add_worst_case(charge)
        if charge.continuing is not None:
            for refund in self.paths.take(charge.continuing.paths, reservation.id):
                self._refund(refund, back=False)

    def _add_worst_case(self, charge: Charge) -> None:
        self._own(charge, before=NOTHING_SPENT, after=_worst(charge.own_amounts), curves=1)
        if charge.shared:
            shared = _worst(charge.shared_amounts)
            self.shared.add(charge, AccountChange.from_losses(charge, before=NOTHING_SPENT, after=shared, curves=1))
            known = _worst(charge.known_amounts)
            self.worst.add(charge, AccountChange.from_losses(charge, before=NOTHING_SPENT, after=known, curves=1))

    def _commit(self, event: Committed) -> None:
        spent = event.spent
        paths = dict(event.paths) if self.keeps_paths(event.reservation) else {}
        charge = self._close(event.reservation)
        spent.check_covered_by(charge)
        change = self._own(charge, before=_worst(charge.own_amounts), after=spent)
        if charge.shared:
            if charge.continuing is not None:
                before = _worst(charge.shared_amounts)
                change = AccountChange.from_losses(charge, before=before, after=spent.to_everybody(charge))
            elif change.is_reduction:
                self._refunds_of(charge.analyst).add(charge, -change)
            self.shared.add(charge, change)
        self.paths.store(charge, event.reservation, replace(spent, fresh=None), paths)
        self.paths.count_reading(event.reading)
        if event.reads in self.monitors.runs:
            self.monitors.runs[event.reads].readers.add(charge.analyst)
            return
        source = event.reads or (event.reservation if event.answer is not None else None)
        if source is not None and is_lasting(charge.family.version):
            self.held.setdefault((charge.analyst, charge.question, charge.family.version), source)

    def _release(self, reservation: str) -> None:
        charge = self._close(reservation)
        self._own(charge, before=_worst(charge.own_amounts), after=NOTHING_SPENT, curves=-1)
        if charge.shared:
            shared = _worst(charge.shared_amounts)
            self.shared.add(charge, AccountChange.from_losses(charge, before=shared, after=NOTHING_SPENT, curves=-1))
            known = _worst(charge.known_amounts)
            self.worst.add(charge, AccountChange.from_losses(charge, before=known, after=NOTHING_SPENT, curves=-1))
        if charge.continuing is not None:
            for refund in self.paths.give_back(charge.continuing.paths, reservation):
                self._refund(refund, back=True)

    def _settle(self, reservation: str, *, untouched: bool) -> None:
        if untouched:
            self._release(reservation)
            return
        charge = self._close(reservation)
        if charge.continuing is not None:
            self.paths.leave(charge.continuing.paths)

    def _revoke(self, grant: str) -> None:
        if self.grants.pop(grant, None) is None:
            raise LedgerUnavailable(f"grant {grant} was revoked without being in force")

    def _start_anew(self) -> None:
        """Empty accounts.

        An open reservation may touch data from now on: it is charged in full, and continues nothing.
        """
        for identity, reservation in self.open.items():
            if reservation.charge.continuing is not None:
                self.ended.setdefault(identity, reservation.charge)
        if self.all_windows:
            return
        self.shared, self.worst = self._new_account(), Account()
        self.refunds, self.analysts, self.paths = {}, {}, Paths()
        for identity, reservation in self.open.items():
            self.open[identity] = replace(reservation, charge=replace(reservation.charge, continuing=None))
            self._add_worst_case(self.open[identity].charge)

    def _close(self, reservation: str) -> Charge:
        if reservation not in self.open:
            raise LedgerUnavailable(f"reservation {reservation} was closed twice, or never opened")
        self.ended.pop(reservation, None)
        return self.open.pop(reservation).charge

    def _refund(self, refund: Refund, *, back: bool) -> None:
        """Count what a question cost less than its worst case for its analyst, or count it no longer."""
        saved = _refund_change(refund)
        self._refunds_of(refund.charge.analyst).add(refund.charge, saved if back else -saved)

    def _refunds_of(self, analyst: str) -> Account:
        return self.refunds.setdefault(analyst, Account())

    def _own(self, charge: Charge, *, before: Spent, after: Spent, curves: int = 0) -> AccountChange:
        change = AccountChange.from_losses(charge, before=before, after=after, curves=curves)
        self._account_of(charge.analyst).add(charge, change)
        return change

    def _account_of(self, analyst: str) -> Account:
        if analyst not in self.analysts:
            self.analysts[analyst] = self._new_account()
        return self.analysts[analyst]


def _worst(amounts: Amounts) -> Spent:
    return Spent.uniform(amounts.epsilon_nano, unit_epsilon_nano=amounts.unit_epsilon_nano)


def _refund_change(refund: Refund) -> AccountChange:
    charge = refund.charge
    return AccountChange.from_losses(charge, before=refund.spent, after=_worst(charge.own_amounts))


def fold(events: Iterable[Event], *, per_family: bool = False, all_windows: bool = False) -> Balances:
    """Fold all events to balances, of the newest window or of all; with each family's own sums if asked."""
    balances = Balances(per_family=per_family, all_windows=all_windows)
    for event in events:
        balances.apply(event)
    return balances
