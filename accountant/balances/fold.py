"""The balances: a pure fold over the events. Nothing here reads a clock or a file."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from accountant.balances.account import Account, AccountChange, KnownAccount
from accountant.balances.monitor_balances import MonitorRuns
from accountant.balances.noise_paths import NoisePaths, Refund
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
    """The fold of the log: accounts and open reservations. How closed reservations ended is in the log.

    `shared` is the ex-post loss to everybody together. `worst_case` is the same with each committed question at the
    public part of its worst case. `refunds` has, by analyst, the difference between the analyst's own questions at
    their worst case and at their real cost. `paid_answers` maps (analyst, question, version) to the reservation of a
    stored answer that the analyst has paid for or read. It leaves out versions of a single question. `declined` has the
    owner's last decision against questions that were not approved since. `cut_continuations` has the original charges
    of open reservations that continued paths when a budget window opened: these store no paths. Monitors that have not
    ended have open reservations too. The accounts cover the newest budget window, or all of them if
    `covers_all_windows`.
    """

    shared: Account = field(init=False)
    worst_case: Account = field(default_factory=Account)
    refunds: dict[str, Account] = field(default_factory=dict)
    analysts: dict[str, Account] = field(default_factory=dict)
    open_reservations: dict[str, Reservation] = field(default_factory=dict)
    paid_answers: dict[tuple[str, str, str], str] = field(default_factory=dict)
    paths: NoisePaths = field(default_factory=NoisePaths)
    grants: dict[str, Grant] = field(default_factory=dict)
    approved: set[str] = field(default_factory=set)
    declined: dict[str, DeclineReason] = field(default_factory=dict)
    cut_continuations: dict[str, Charge] = field(default_factory=dict)
    monitors: MonitorRuns = field(default_factory=MonitorRuns)

    keeps_families: bool = False
    covers_all_windows: bool = False

    def __post_init__(self) -> None:
        self.shared = self._new_account()

    def _new_account(self) -> Account:
        return Account(families={} if self.keeps_families else None)

    def copy(self, tables: frozenset[str]) -> "Balances":
        """Return a copy of the accounts of these tables and of all else, without the figures that only reports need.

        Events applied to the copy do not change this fold.
        """
        other = Balances(
            worst_case=self.worst_case.copy(tables),
            refunds={analyst: account.copy(tables) for analyst, account in self.refunds.items()},
            analysts={analyst: account.copy(tables) for analyst, account in self.analysts.items()},
            open_reservations=dict(self.open_reservations),
            paid_answers=dict(self.paid_answers),
            paths=self.paths.copy(),
            grants=dict(self.grants),
            approved=set(self.approved),
            declined=dict(self.declined),
            cut_continuations=dict(self.cut_continuations),
            covers_all_windows=self.covers_all_windows,
        )
        other.shared = self.shared.copy(tables)
        return other

    def find_account(self, analyst: str) -> Account:
        """Return the account with the charges of one analyst alone, empty if the analyst was never charged."""
        return self.analysts.get(analyst) or self._new_account()

    def make_known_account(self, analyst: str) -> KnownAccount:
        """Return the shared balance without other analysts' refunds."""
        return KnownAccount(worst_case=self.worst_case, refunds=self.refunds.get(analyst) or Account())

    def sum_withdrawn_refunds(self, charge: Charge) -> Account:
        """Return, as an account, the analyst's own refunds that end when the charge is reserved.

        They are refunds of questions whose paths the charge continues.
        """
        account = Account()
        for refund in self.paths.find_withdrawn(
            () if charge.path_continuation is None else charge.path_continuation.paths
        ):
            if refund.charge.analyst == charge.analyst:
                account.add(refund.charge, _make_refund_change(refund))
        return account

    def list_open_questions(self) -> tuple[Reservation, ...]:
        """Return the open reservations of questions.

        Reservations of monitors are left out: they stay open until their monitors end.
        """
        return tuple(one for identity, one in self.open_reservations.items() if identity not in self.monitors.runs)

    def keeps_paths(self, reservation: str) -> bool:
        """Return True if the commit of an open reservation may store paths.

        It may not if it continued paths of an earlier budget window.
        """
        return reservation not in self.cut_continuations

    def check_covers(self, reservation: str, spent: Spent) -> None:
        """Raise `LedgerMisuse` unless a loss is within an open reservation's current and original charge."""
        charge = self.open_reservations[reservation].charge
        spent.check_within_reservation(charge)
        spent.check_within_reservation(self.cut_continuations.get(reservation, charge))

    def apply_event(self, event: Event) -> None:
        """Add one event to the fold."""
        try:
            if isinstance(event, MonitorEvent):
                self._apply_to_monitor(event)
            else:
                self._apply_to_questions(event)
        except LedgerMisuse as error:
            raise LedgerUnavailable("an event is there that no verb writes after those before it") from error

    def _apply_to_monitor(self, event: MonitorEvent) -> None:
        self.monitors.apply_event(event, self.open_reservations)
        match event:
            case MonitorWindowClosed(run=run, window=window, spent=spent):
                account = self.monitors.runs[run]
                if spent is not None and account.is_refunded_at_close:
                    charge, change = account.make_window_charge(window), account.make_close_change(spent)
                    self.shared.add(charge, change)
                    self._find_or_add_account(charge.analyst).add(charge, change)
                    self._find_or_add_refunds(charge.analyst).add(charge, -change)
            case MonitorEnded(run=run):
                self._end_monitor(run)
            case _:
                pass

    def _end_monitor(self, run: str) -> None:
        account = self.monitors.runs[run]
        charge = self._close(run)
        change, public = account.make_end_changes()
        self.shared.add(charge, change)
        self._find_or_add_account(charge.analyst).add(charge, change)
        self.worst_case.add(charge, public)
        self._find_or_add_refunds(charge.analyst).add(charge, public - change)
        of_reader = account.make_reader_change()
        for analyst in sorted(account.readers):
            reading = replace(charge, analyst=analyst, shared=False)
            self._find_or_add_account(analyst).add(reading, of_reader)

    def _apply_to_questions(self, event: OwnerEvent | Reserved | Committed | Released) -> None:
        match event:
            case Reserved(reservation=reservation, at=at, charge=charge):
                self._reserve(Reservation(reservation, charge, at))
            case Committed(reservation=reservation):
                self.monitors.check_monitor_ended(reservation)
                self._commit(event)
            case Released(reservation=reservation):
                self.monitors.check_monitor_ended(reservation)
                self._release(reservation)
            case Settled(reservation=reservation, untouched=untouched):
                self.monitors.check_monitor_ended(reservation)
                self._settle_reservation(reservation, untouched=untouched)
            case Granted(grant_id=identity, grant=grant):
                self.grants[identity] = grant
            case Revoked(grant_id=identity):
                self._revoke_grant(identity)
            case Approved(question=question):
                self.approved.add(question)
                self.declined.pop(question, None)
            case Declined(question=question, at=at, why=why):
                self.declined[question] = DeclineReason(at, why)  # it changes no balance, and forbids nothing
            case WindowOpened():
                self.monitors.check_all_monitors_ended()
                self._start_window()
            case Pruned(table=table, version=version):
                self.paths.remove_paths_of_version(table, version)
            case Published():
                pass  # no balance covers it

    def _reserve(self, reservation: Reservation) -> None:
        if reservation.id in self.open_reservations:
            raise LedgerUnavailable(f"reservation {reservation.id} was written twice")
        charge = reservation.charge
        if charge.path_continuation is not None and not self.paths.are_free(charge.path_continuation.paths):
            raise LedgerUnavailable(f"reservation {reservation.id} continues a path that was not free")
        self.open_reservations[reservation.id] = reservation
        self._add_worst_case(charge)
        if charge.path_continuation is not None:
            for refund in self.paths.reserve(charge.path_continuation.paths, reservation.id):
                self._apply_refund(refund, counts_again=False)

    def _add_worst_case(self, charge: Charge) -> None:
        self._charge_analyst(charge, before=NOTHING_SPENT, after=_spend_worst_case(charge.own_amounts), curves=1)
        if charge.shared:
            shared = _spend_worst_case(charge.shared_amounts)
            self.shared.add(charge, AccountChange.from_losses(charge, before=NOTHING_SPENT, after=shared, curves=1))
            known = _spend_worst_case(charge.known_amounts)
            self.worst_case.add(charge, AccountChange.from_losses(charge, before=NOTHING_SPENT, after=known, curves=1))

    def _commit(self, event: Committed) -> None:
        spent = event.spent
        paths = dict(event.paths) if self.keeps_paths(event.reservation) else {}
        charge = self._close(event.reservation)
        spent.check_within_reservation(charge)
        change = AccountChange.from_losses(charge, before=_spend_worst_case(charge.own_amounts), after=spent)
        change = change.with_looks(charge, spent)
        self._find_or_add_account(charge.analyst).add(charge, change)
        if charge.shared:
            if charge.path_continuation is not None:
                before = _spend_worst_case(charge.shared_amounts)
                change = AccountChange.from_losses(charge, before=before, after=spent.find_shared_part(charge))
            elif change.is_reduction or change.looks is not None:
                self._find_or_add_refunds(charge.analyst).add(charge, -change)
            self.shared.add(charge, change)
        self.paths.record_paths(charge, event.reservation, replace(spent, fresh=None), paths)
        self.paths.count_reading(event.reading)
        if event.reads in self.monitors.runs:
            self.monitors.runs[event.reads].readers.add(charge.analyst)
            return
        source = event.reads or (event.reservation if event.answer is not None else None)
        if source is not None and is_lasting(charge.family.version):
            self.paid_answers.setdefault((charge.analyst, charge.question, charge.family.version), source)

    def _release(self, reservation: str) -> None:
        charge = self._close(reservation)
        self._charge_analyst(charge, before=_spend_worst_case(charge.own_amounts), after=NOTHING_SPENT, curves=-1)
        if charge.shared:
            shared = _spend_worst_case(charge.shared_amounts)
            self.shared.add(charge, AccountChange.from_losses(charge, before=shared, after=NOTHING_SPENT, curves=-1))
            known = _spend_worst_case(charge.known_amounts)
            self.worst_case.add(charge, AccountChange.from_losses(charge, before=known, after=NOTHING_SPENT, curves=-1))
        if charge.path_continuation is not None:
            for refund in self.paths.release_paths(charge.path_continuation.paths, reservation):
                self._apply_refund(refund, counts_again=True)

    def _settle_reservation(self, reservation: str, *, untouched: bool) -> None:
        if untouched:
            self._release(reservation)
            return
        charge = self._close(reservation)
        if charge.path_continuation is not None:
            self.paths.remove_continued_paths(charge.path_continuation.paths)

    def _revoke_grant(self, grant: str) -> None:
        if self.grants.pop(grant, None) is None:
            raise LedgerUnavailable(f"grant {grant} was revoked without being in force")

    def _start_window(self) -> None:
        """Empty the accounts for a new budget window, and charge all open reservations again.

        An open reservation may still touch data, so it is charged in full. It no longer continues any path.
        """
        for identity, reservation in self.open_reservations.items():
            if reservation.charge.path_continuation is not None:
                self.cut_continuations.setdefault(identity, reservation.charge)
        if self.covers_all_windows:
            return
        self.shared, self.worst_case = self._new_account(), Account()
        self.refunds, self.analysts, self.paths = {}, {}, NoisePaths()
        for identity, reservation in self.open_reservations.items():
            self.open_reservations[identity] = replace(
                reservation, charge=replace(reservation.charge, path_continuation=None)
            )
            self._add_worst_case(self.open_reservations[identity].charge)

    def _close(self, reservation: str) -> Charge:
        if reservation not in self.open_reservations:
            raise LedgerUnavailable(f"reservation {reservation} was closed twice, or never opened")
        self.cut_continuations.pop(reservation, None)
        return self.open_reservations.pop(reservation).charge

    def _apply_refund(self, refund: Refund, *, counts_again: bool) -> None:
        """Add a question's refund to its analyst's refunds, or subtract it unless it `counts_again`."""
        saved = _make_refund_change(refund)
        self._find_or_add_refunds(refund.charge.analyst).add(refund.charge, saved if counts_again else -saved)

    def _find_or_add_refunds(self, analyst: str) -> Account:
        return self.refunds.setdefault(analyst, Account())

    def _charge_analyst(self, charge: Charge, *, before: Spent, after: Spent, curves: int = 0) -> AccountChange:
        change = AccountChange.from_losses(charge, before=before, after=after, curves=curves)
        self._find_or_add_account(charge.analyst).add(charge, change)
        return change

    def _find_or_add_account(self, analyst: str) -> Account:
        if analyst not in self.analysts:
            self.analysts[analyst] = self._new_account()
        return self.analysts[analyst]


def _spend_worst_case(amounts: Amounts) -> Spent:
    return Spent.from_uniform(amounts.epsilon_nano, unit_epsilon_nano=amounts.unit_epsilon_nano)


def _make_refund_change(refund: Refund) -> AccountChange:
    charge = refund.charge
    return AccountChange.from_losses(charge, before=refund.spent, after=_spend_worst_case(charge.own_amounts))


def fold(events: Iterable[Event], *, keeps_families: bool = False, covers_all_windows: bool = False) -> Balances:
    """Fold all events to balances, of the newest budget window or of all windows.

    With `keeps_families`, also keep each family's own sums.
    """
    balances = Balances(keeps_families=keeps_families, covers_all_windows=covers_all_windows)
    for event in events:
        balances.apply_event(event)
    return balances
