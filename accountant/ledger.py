"""The ledger: reserve the worst case durably, run, commit the loss, release a reservation that never ran.

Guarantee (docs/proofs/accounting.md): whatever interleaving of threads, processes, crashes and restarts, everything
that was reserved and not released is counted, and no reservation is granted unless every balance covers it.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import datetime, timedelta
from types import MappingProxyType, TracebackType

from accountant.balances.dependencies import Knowledge, assume_nothing
from accountant.balances.filter import find_headroom, find_shortage
from accountant.balances.fold import Balances
from accountant.balances.rehearsal import Rehearsal
from accountant.charges import Charge, PathState, Reservation, Spent, StoredAnswer, StoredPath, Wording
from accountant.errors import DeclineReason, LedgerMisuse, LedgerUnavailable, NotApproved, OverBudget, PathTaken
from accountant.events.digests import digest
from accountant.events.events import Committed, Released
from accountant.limits import Headroom, Limits
from accountant.reports import history
from accountant.reports.balance_report import BudgetReport, Reporter
from accountant.reports.burn_down import BurnDown, BurnDownReporter
from accountant.reports.history import AskedQuestion, Page
from accountant.store.attempts import Attempt
from accountant.store.journal import FaultHandler, Journal, ignore_fault
from accountant.store.store import TIMEOUT_MS, LedgerStore
from accountant.store.transaction import Transaction
from accountant.store.waiting import WaitingQuestion
from accountant.store.witness import Witness
from accountant.verbs.endings import find_open_charge, read_stored_answer
from accountant.verbs.exposures import Exposures
from accountant.verbs.idempotency import Idempotency
from accountant.verbs.in_flight import Repeated, Repetition
from accountant.verbs.monitor_verbs import Monitors
from accountant.verbs.owner import Owner
from accountant.verbs.reservation import reserve_charge
from accountant.verbs.verify import verify_ledger

# how long opening takes (events since then are folded: of 100,000 questions 23 s, docs/benchmarks.md) against how often
# all balances are written
SNAPSHOT_EVERY_EVENTS = 2_000
# room in the ledger against noise that later questions could have read: 32 MiB a path; set, not measured
MOST_PATH_BYTES = 1 << 25

NO_PATHS: Mapping[str, bytes] = MappingProxyType({})


class Ledger:
    """One open ledger.

    Safe to share between threads; processes open their own. `owner` has the owner's verbs, `idempotency` the requests
    that are answered once, `exposures` the source's names of its tables, and `monitors` the standing questions.
    """

    def __init__(
        self, journal: Journal, *, clock: Callable[[], datetime], knowledge: Knowledge = assume_nothing
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._knowledge = knowledge
        self._reporter = Reporter(journal, knowledge=knowledge)
        self._burn_downs = BurnDownReporter(journal, knowledge=knowledge)
        self._repetition = Repetition(clock=clock)
        self.owner = Owner(journal, clock=clock)
        self.idempotency = Idempotency(journal, clock=clock)
        self.exposures = Exposures(journal, clock=clock)
        self.monitors = Monitors(journal, clock=clock, knowledge=knowledge)

    @classmethod
    def open(
        cls,
        url: str,
        *,
        clock: Callable[[], datetime],
        snapshot_every: int = SNAPSHOT_EVERY_EVENTS,
        knowledge: Knowledge = assume_nothing,
        timeout_ms: int = TIMEOUT_MS,
        can_create: bool = True,
        witness: Witness | None = None,
        is_trusted: bool = False,
        on_fault: FaultHandler = ignore_fault,
    ) -> "Ledger":
        """Open the ledger at an SQLAlchemy URL (SQLite file or PostgreSQL) and migrate its schema.

        If `can_create`, make a missing ledger. `clock` gives the time (aware) of events, and decides nothing. Balances
        are stored once `snapshot_every` events came since, so that a long ledger opens fast. `knowledge` gives the
        public dependencies between columns, which checks and reports use. `timeout_ms` limits a verb's wait for other
        writers, and for a storage that does not answer. `witness` knows the last durable event. If `is_trusted`, the
        ledger is not compared with it until `accept_current_log`, so that an owner can inspect the ledger first.
        `on_fault` is called with each failure of the storage. Raise `NoLedger`, `LedgerBehind`, `LedgerUnavailable`.
        """
        store = LedgerStore.open(url, timeout_ms=timeout_ms, can_create=can_create)
        journal = Journal(
            store, snapshot_every=snapshot_every, witness=witness, on_fault=on_fault, is_trusted=is_trusted
        )
        try:
            with journal.begin_read():
                pass
            if not is_trusted:
                journal.check_witness(is_accepted=False)
            with suppress(LedgerUnavailable):
                journal.keep_snapshot()
        except BaseException:
            journal.close()
            raise
        return cls(journal, clock=clock, knowledge=knowledge)

    def check_witness(self) -> None:
        """Check the ledger against its witness, unless the ledger is trusted.

        Raise `LedgerBehind` if it lost events.
        """
        self._journal.check_witness(is_accepted=False)

    def accept_current_log(self) -> None:
        """Set the witness to the ledger's last event, whatever it knew before. Only the owner may decide this.

        Raise OSError if the witness cannot be written, `LedgerUnavailable`.
        """
        self._journal.check_witness(is_accepted=True)

    def close(self) -> None:
        """Close the storage. Open reservations stay reserved."""
        self._journal.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def reserve(
        self,
        charge: Charge,
        limits: Limits,
        *,
        attempt: Attempt | None = None,
        once_within: timedelta | None = None,
        wording: Wording | None = None,
    ) -> Reservation:
        """Reserve the worst case durably. Only then may data be touched. `wording` is kept with the reservation.

        With `once_within` an analyst is not charged twice for a question. `Repeated` is raised, and nothing written, if
        an answer to it on its data version is stored, or if the same analyst has it under way. It is under way if an
        open reservation for it is held by `hold_in_flight` in this process, or was made by another process within that
        time.

        The row of an idempotent `attempt` gets the reservation. `AttemptTaken` is raised, and nothing written, if
        another attempt has taken its place.

        A charge with `path_continuation` is granted only if each path is still in the named state and nobody else
        continues it. Otherwise `PathTaken` is raised: ask with new noise. Raise `OverBudget` if a balance does not
        cover the charge. Raise `NotApproved`, and `LedgerMisuse` for a charge that is not shared (`charge_reader` and
        `charge_reading` make those). In all these cases nothing is written. Raise `LedgerUnavailable` if it is unknown
        whether the reservation was written. If it was, it counts as spent.

        A charge with a Rényi curve keeps it if that leaves a unit more room. The charge of the returned reservation
        shows it. With a curve, all noise must be drawn at its finest rates, and the worst case must be committed. With
        `looks`, the commit may have fewer looks of any key, with their curve of one unit.
        """
        if not charge.shared:
            raise LedgerMisuse("only what was released before can be charged to its reader alone")
        with self._journal.begin_write() as (transaction, balances):
            self._repetition.check_not_repeated(transaction, balances, charge, within=once_within)
            if charge.path_continuation is not None and not balances.paths.are_free(charge.path_continuation.paths):
                raise PathTaken("a noise path was continued by another question, or is gone")
            return self._grant_reservation(transaction, balances, charge, limits, attempt=attempt, wording=wording)

    def commit(
        self, reservation: Reservation, spent: Spent, answer: bytes | None, *, paths: Mapping[str, bytes] = NO_PATHS
    ) -> None:
        """Replace the reserved worst case by the ex-post loss, and store the released answer (if given) with it.

        `paths` are the noise paths of the run, by identity. If the question continued a path, the whole path is given.
        A continued path that is not given, or is larger than `MOST_PATH_BYTES`, is removed. No path is stored if the
        reservation continues paths and a budget window opened since. Raise `LedgerMisuse`, and write nothing, if the
        reservation is not open or does not cover `spent`.
        """
        kept = {identity: body for identity, body in sorted(paths.items()) if len(body) <= MOST_PATH_BYTES}
        with self._journal.begin_write() as (transaction, balances):
            charge = find_open_charge(transaction, balances, reservation.id)
            balances.check_covers(reservation.id, spent)
            if not balances.keeps_paths(reservation.id):
                kept = {}
            event = Committed(
                reservation=reservation.id,
                at=self._clock(),
                spent=spent,
                answer=None if answer is None else digest(answer),
                reads=None,
                paths=tuple((identity, digest(body)) for identity, body in kept.items()),
            )
            transaction.store_noise_paths(
                reservation=reservation.id,
                event=self._commit(transaction, charge, event, answer),
                table=charge.family.table,
                version=charge.family.version,
                bodies=kept,
            )

    def release(self, reservation: Reservation) -> None:
        """Give the reservation back. The caller guarantees that its question never touched data.

        Raise `LedgerMisuse`, and write nothing, if the reservation is not open.
        """
        with self._journal.begin_write() as (transaction, balances):
            find_open_charge(transaction, balances, reservation.id)
            self._journal.append_event(transaction, Released(reservation.id, self._clock()))

    def hold_in_flight(self, reservation: Reservation) -> AbstractContextManager[None]:
        """Mark a reservation as in flight while the block runs, up to its commit.

        Equal questions of the analyst then wait for its answer. If the block fails, they no longer wait, and the
        reservation stays open and spent.
        """
        return self._repetition.hold_in_flight(reservation.id)

    def find_answer(
        self, fingerprint: str, version: str, *, analyst: str, once_within: timedelta | None = None
    ) -> StoredAnswer | None:
        """Return the stored answer to a question on a data version: one that `analyst` has paid for, else the first.

        With `once_within`, as in `reserve`, raise `Repeated` if the analyst has paid for none and has the question in
        flight. The analyst should then get that question's own answer, not another analyst's.
        """
        with self._journal.begin_read() as (transaction, balances):
            return self._find_answer(transaction, balances, fingerprint, version, analyst, once_within)

    def find_answer_or_paths(
        self,
        fingerprint: str,
        version: str,
        *,
        analyst: str,
        once_within: timedelta | None,
        list_identities: Callable[[], Iterable[str]],
    ) -> StoredAnswer | Mapping[str, StoredPath]:
        """Return what `find_answer` returns, else what `find_paths` returns, at the same moment.

        `list_identities` is called only if there is no answer. Raise `Repeated` as `find_answer` does.
        """
        with self._journal.begin_read() as (transaction, balances):
            found = self._find_answer(transaction, balances, fingerprint, version, analyst, once_within)
            return _find_paths(transaction, balances, list_identities(), version) if found is None else found

    def _find_answer(
        self,
        transaction: Transaction,
        balances: Balances,
        fingerprint: str,
        version: str,
        analyst: str,
        once_within: timedelta | None,
    ) -> StoredAnswer | None:
        held = balances.paid_answers.get((analyst, fingerprint, version))
        found = transaction.find_answer(fingerprint=fingerprint, version=version, reservation=held)
        if held is None:
            self._repetition.check_not_in_flight(balances, fingerprint, version, analyst=analyst, within=once_within)
        return None if found is None else read_stored_answer(transaction, *found, is_held=held is not None)

    def charge_reader(
        self,
        charge: Charge,
        limits: Limits,
        *,
        answer: StoredAnswer,
        attempt: Attempt | None = None,
        once_within: timedelta | None = None,
        wording: Wording | None = None,
    ) -> Reservation | None:
        """Charge an analyst for reading a stored answer.

        The charge must be `answer.make_reading_charge(analyst)`, on the analyst's own balances only.

        Return None, and charge nothing, if the analyst has paid for this answer already. Raise `Repeated` if the
        analyst has paid for another answer to the question meanwhile, or has it under way, as in `find_answer`. Raise
        `OverBudget`, `NotApproved` (an answer may be older than the owner's threshold), and `LedgerMisuse` for any
        other charge.
        """
        if charge != answer.make_reading_charge(charge.analyst):
            raise LedgerMisuse("a stored answer is read at the loss it was released with, sparing the shared balances")
        with self._journal.begin_write() as (transaction, balances):
            question, version = charge.question, charge.family.version
            held = balances.paid_answers.get((charge.analyst, question, version))
            if held == answer.reservation:
                return None
            if held is not None:
                raise Repeated
            self._repetition.check_not_in_flight(
                balances, question, version, analyst=charge.analyst, within=once_within
            )
            reservation = self._grant_reservation(
                transaction, balances, charge, limits, attempt=attempt, wording=wording
            )
            spent = Spent(answer.spent.epsilon_nano, answer.spent.unit_epsilon_nano, answer.spent.keys)
            event = Committed(reservation.id, reservation.reserved_at, spent, None, reads=answer.reservation)
            self._commit(transaction, charge, event, None)
        return reservation

    def find_paths(self, identities: Iterable[str], version: str) -> Mapping[str, StoredPath]:
        """Return the newest state of the noise paths with these identities on a data version, by identity.

        Identities without a path are left out. A path with `is_taken` can be read but not continued.
        """
        with self._journal.begin_read() as (transaction, balances):
            return _find_paths(transaction, balances, identities, version)

    def charge_reading(
        self,
        charge: Charge,
        limits: Limits,
        *,
        spent: Spent,
        answer: bytes,
        reading: tuple[PathState, ...],
        attempt: Attempt | None = None,
        once_within: timedelta | None = None,
        wording: Wording | None = None,
    ) -> Reservation:
        """Charge an analyst's own balances for an answer from stored noise paths alone, and store the answer.

        `charge.shared` must be false, since these values were released before. No data is read, so reservation and
        commit are written together. Raise `OverBudget`, `NotApproved`; `PathTaken` if a state is no longer stored;
        `Repeated` as `reserve` does; `LedgerMisuse`, `LedgerUnavailable`.
        """
        if charge.shared or not reading:
            raise LedgerMisuse("what is read was released before, and says from which paths")
        if any(state.version != charge.family.version for state in reading):
            raise LedgerMisuse("a noise path is read on its own data version")
        spent.check_within_reservation(charge)
        with self._journal.begin_write() as (transaction, balances):
            self._repetition.check_not_repeated(transaction, balances, charge, within=once_within)
            if len(transaction.read_path_bodies(reading)) != len(set(reading)):
                raise PathTaken("a noise path is not in the store any more")
            reservation = self._grant_reservation(
                transaction, balances, charge, limits, attempt=attempt, wording=wording
            )
            event = Committed(
                reservation.id, reservation.reserved_at, spent, digest(answer), None, reading=tuple(sorted(reading))
            )
            self._commit(transaction, charge, event, answer)
        return reservation

    def find_headroom(self, charge: Charge, limits: Limits) -> Headroom:
        """Return the largest epsilon over the charge's keys, and the largest per-unit sum, that would fit now."""
        with self._journal.begin_read() as (_, balances):
            return find_headroom(balances, charge, limits, knowledge=self._knowledge)

    def find_known_headroom(self, charge: Charge, limits: Limits) -> Headroom:
        """Return the headroom after this process's last event. Nothing is read.

        Charges that other processes made since may be missing.
        """
        with self._journal.hold_known_balances() as balances:
            return find_headroom(balances, charge, limits, knowledge=self._knowledge)

    def find_shortage(self, charge: Charge, limits: Limits) -> OverBudget | None:
        """Return the first balance that does not cover a charge now, as `reserve` would find it.

        Return None if all cover it.
        """
        with self._journal.begin_read() as (_, balances):
            return find_shortage(balances, charge, limits, knowledge=self._knowledge)

    def begin_rehearsal(self, tables: frozenset[str]) -> Rehearsal:
        """Return a copy of the tables' balances, for testing which charges would fit one after the other.

        Nothing is ever written.
        """
        with self._journal.begin_read() as (_, balances):
            return Rehearsal(balances.copy(tables), tables=tables, knowledge=self._knowledge)

    def check_writable(self, *, room_bytes: int) -> None:
        """Check that the ledger can be written, without writing: the writers' lock is free, and the disk has room.

        An SQLite file must be able to grow by `room_bytes`. A database server's disk is not checked. Raise
        `LedgerUnavailable` if the ledger cannot be written.
        """
        self._journal.check_room(room_bytes=room_bytes)
        with self._journal.begin_write():
            pass

    @property
    def known_event_count(self) -> int:
        """Return the number of events when the log was last read. Nothing is read now."""
        return self._journal.folded_event_count

    def is_approved(self, question: str) -> bool:
        """Return True if the owner approved the question of this fingerprint."""
        with self._journal.begin_read() as (_, balances):
            return question in balances.approved

    def find_decline_reason(self, question: str) -> DeclineReason | None:
        """Return the owner's latest decision against the question of this fingerprint.

        Return None if it was never declined, or approved afterwards.
        """
        with self._journal.begin_read() as (_, balances):
            return balances.declined.get(question)

    def list_open_reservations(self) -> tuple[Reservation, ...]:
        """Return the questions' reservations that are neither committed, released nor settled, oldest first.

        Those of a dead process stay open and spent. Those of monitors are left out: they stay open until their monitors
        end.
        """
        with self._journal.begin_read() as (_, balances):
            return balances.list_open_questions()

    def report_balances(
        self, limits: Limits, *, analyst: str | None = None, covers_all_windows: bool = False
    ) -> BudgetReport:
        """Return the spent and remaining budget, per family and key, and per analyst.

        If an analyst is named, only that analyst's own charges count.

        The report covers the newest budget window, or all of them if `covers_all_windows`. The rest is then what it
        would be if no window had been opened. The first report reads the whole log, later ones read new events. Reports
        over all windows read the whole log every time.
        """
        report = self._reporter.report_all_windows if covers_all_windows else self._reporter.report_newest_window
        return report(limits, analyst=analyst)

    def report_burn_down(self, limits: Limits) -> BurnDown:
        """Return the budget spent over time by everybody together, and by each analyst.

        The first call on an open ledger reads the whole log, later calls read new events only.
        """
        return self._burn_downs.report_all_lines(limits)

    def read_history(self, *, analyst: str | None = None) -> tuple[AskedQuestion, ...]:
        """Return every question with its worst-case charge and its end, oldest first.

        If an analyst is named, only that analyst's questions are returned, and only their events are read.
        """
        if analyst is None:
            return history.list_questions((event for _, event in self._journal.read_events()), analyst=None)
        with self._journal.begin_log_read() as transaction:
            return history.list_analyst_questions(transaction, analyst)

    def read_page(self, *, analyst: str | None, before: str | None, limit: int, only_open: bool) -> Page:
        """Return the `limit` newest questions reserved before reservation `before`, and the number of older ones.

        The newest come first. `before` None means no limit. `analyst` and `only_open` restrict the questions. Only the
        events of these questions are read.
        """
        with self._journal.begin_read() as (transaction, balances):
            return history.read_page(
                transaction, balances, analyst=analyst, before=before, limit=limit, only_open=only_open
            )

    def find_questions(self, identity: str) -> tuple[AskedQuestion, ...]:
        """Return the questions whose reservation, or whose own id, starts with `identity`, oldest first."""
        with self._journal.begin_log_read() as transaction:
            return history.find_questions(transaction, identity)

    def store_waiting_question(self, waiting: NotApproved, charge: Charge, wording: Wording) -> None:
        """Store a question that waits for the owner's approval, with its text. Nothing is charged.

        Only the newest questions of each analyst are kept.
        """
        one = WaitingQuestion(
            question=waiting.question,
            analyst=charge.analyst,
            asked_at=self._clock(),
            table=charge.family.table,
            needed_nano=waiting.needed_nano,
            text=wording.text,
            guarantee=wording.guarantee,
        )
        with self._journal.begin_write() as (transaction, _):
            transaction.waiting.store_question(one)

    def verify_everything(self) -> int:
        """Read and check everything again: the chain of events, stored answers and paths, and the stored balances.

        Return the number of events. Raise `LedgerUnavailable` on the first fault.
        """
        with self._journal.begin_read() as (transaction, balances):
            return verify_ledger(transaction, balances)

    def _grant_reservation(
        self,
        transaction: Transaction,
        balances: Balances,
        charge: Charge,
        limits: Limits,
        *,
        attempt: Attempt | None,
        wording: Wording | None,
    ) -> Reservation:
        """Reserve the charge, if every balance covers it and its owner lets it be asked."""
        return reserve_charge(
            self._journal,
            transaction,
            balances,
            charge,
            limits,
            at=self._clock(),
            knowledge=self._knowledge,
            attempt=attempt,
            wording=wording,
        )

    def _commit(self, transaction: Transaction, charge: Charge, event: Committed, answer: bytes | None) -> int:
        """Append the commit of a reservation, store the answer (if given), and return the event's number."""
        record = self._journal.append_event(transaction, event)
        if answer is not None:
            transaction.add_answer(reservation=event.reservation, event=record.id, charge=charge, answer=answer)
        return record.id


def _find_paths(
    transaction: Transaction, balances: Balances, identities: Iterable[str], version: str
) -> Mapping[str, StoredPath]:
    heads = {
        PathState(identity, version, head.committed_by): head
        for identity in identities
        if (head := balances.paths.heads.get((identity, version))) is not None
    }
    return {
        state.identity: StoredPath(
            identity=state.identity,
            state=state,
            body=body,
            is_taken=heads[state].continued_by is not None,
            questions=heads[state].question_count,
        )
        for state, body in transaction.read_path_bodies(heads).items()
    }
