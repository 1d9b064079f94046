"""The ledger: reserve the worst case durably, run, commit what it cost, release what never ran.

Guarantee (docs/proofs/accounting.md): whatever interleaving of threads, processes, crashes and restarts, everything
that was reserved and not released is counted, and no reservation is granted unless every balance covers it.
"""

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType

from accountant.errors import LedgerMisuse, LedgerUnavailable
from accountant.events import (
    GENESIS,
    Committed,
    Domain,
    Event,
    Record,
    Released,
    Reserved,
    check_chain,
    digest,
    event_of,
    record_of,
)
from accountant.filter import check_fits, what_fits
from accountant.fold import Balances, fold
from accountant.model import Charge, Left, Limits, Reservation, Spent, StoredAnswer
from accountant.report import BudgetReport, Question, history, report
from accountant.store import Store, Transaction


class Ledger:
    """One open ledger. Safe to share between threads; processes open their own."""

    def __init__(self, store: Store, *, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.RLock()
        self._written: list[tuple[Record, Event]] = []
        self._forget()

    @classmethod
    def open(cls, url: str, *, clock: Callable[[], datetime]) -> "Ledger":
        """Open or create the ledger at an SQLAlchemy URL (SQLite file or PostgreSQL), migrating its schema.

        `clock` gives the time (aware) that events are marked with; nothing is decided by it.
        Raises `LedgerUnavailable`.
        """
        ledger = cls(Store.open(url), clock=clock)
        try:
            with ledger._reading():
                return ledger
        except BaseException:
            ledger.close()
            raise

    def close(self) -> None:
        """Close the storage. What is open stays reserved."""
        self._store.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def reserve(self, charge: Charge, limits: Limits) -> Reservation:
        """Pay the worst case durably; only then may data be touched.

        Raises `OverBudget` when a balance does not cover it and `LedgerMisuse` for a charge that is not shared (those
        are for `charge_reader`), writing nothing; `LedgerUnavailable` when it is unknown whether it was written (if
        it was, it stands as spent).
        """
        if not charge.shared:
            raise LedgerMisuse("only a stored answer can be charged to its reader alone")
        with self._writing() as (transaction, balances):
            check_fits(balances, charge, limits)
            reservation = Reservation(uuid.uuid4().hex, charge, self._clock())
            self._append(transaction, Reserved(reservation.id, reservation.reserved_at, charge))
        return reservation

    def commit(self, reservation: Reservation, spent: Spent, answer: bytes | None) -> None:
        """Replace the reserved worst case by the ex-post loss, and store the released answer (if given) with it.

        Raises `LedgerMisuse`, changing nothing, when the reservation is not open or does not cover `spent`.
        """
        with self._writing() as (transaction, balances):
            charge = _open_charge(balances, reservation)
            spent.check_covered_by(charge)
            answer_digest = None if answer is None else digest(answer)
            record = self._append(
                transaction, Committed(reservation.id, self._clock(), spent, answer_digest, reads=None)
            )
            if answer is not None:
                transaction.add_answer(
                    reservation=reservation.id,
                    event=record.id,
                    fingerprint=charge.question,
                    version=charge.family.version,
                    analyst=charge.analyst,
                    answer=answer,
                )

    def release(self, reservation: Reservation) -> None:
        """Give the reservation back. Only for a question that never touched data; the caller answers for that.

        Raises `LedgerMisuse`, changing nothing, when the reservation is not open.
        """
        with self._writing() as (transaction, balances):
            _open_charge(balances, reservation)
            self._append(transaction, Released(reservation.id, self._clock()))

    def find_answer(self, fingerprint: str, version: str, *, analyst: str) -> StoredAnswer | None:
        """The stored answer to a question on a data version: the one `analyst` holds already, else the first."""
        with self._reading() as (transaction, balances):
            held = balances.held.get((analyst, fingerprint, version))
            found = transaction.answer(fingerprint=fingerprint, version=version, reservation=held)
            if found is None:
                return None
            answer, records = found
            match _events_of(transaction, records):
                case [Reserved(charge=charge), Committed(reservation=paid_by, spent=spent, answer=stored)] if (
                    stored == digest(answer)
                ):
                    return StoredAnswer(paid_by, charge, spent, answer, held=held is not None)
        raise LedgerUnavailable("a stored answer is not the one that was released")

    def charge_reader(self, charge: Charge, limits: Limits, *, answer: StoredAnswer) -> Reservation | None:
        """Charge an analyst for reading a stored answer: `answer.reading(analyst)`, on the analyst's own balances only.

        Returns None, charging nothing, when the analyst holds this answer already. Raises `OverBudget`, and
        `LedgerMisuse` for any other charge.
        """
        if charge != answer.reading(charge.analyst):
            raise LedgerMisuse("a stored answer is read at the loss it was released with, sparing the shared balances")
        with self._writing() as (transaction, balances):
            if balances.held.get((charge.analyst, charge.question, charge.family.version)) == answer.reservation:
                return None
            check_fits(balances, charge, limits)
            at = self._clock()
            reservation = Reservation(uuid.uuid4().hex, charge, at)
            self._append(transaction, Reserved(reservation.id, at, charge))
            self._append(transaction, Committed(reservation.id, at, answer.spent, None, reads=answer.reservation))
        return reservation

    def left_for(self, charge: Charge, limits: Limits) -> Left:
        """The largest epsilon over the charge's keys, and the largest per-unit sum, that would fit now."""
        with self._reading() as (_, balances):
            return what_fits(balances, charge, limits)

    def open_reservations(self) -> tuple[Reservation, ...]:
        """Reservations neither committed nor released, oldest first. A dead process's stay here, spent."""
        with self._reading() as (_, balances):
            return tuple(balances.open.values())

    def balances(self, limits: Limits, *, analyst: str | None = None) -> BudgetReport:
        """What is spent and left, per family and key, and per analyst; for one analyst's own charges if named."""
        return report(self._all_events(), limits, analyst=analyst)

    def history(self, *, analyst: str | None = None) -> tuple[Question, ...]:
        """Every question with its worst-case charge and what became of it, oldest first; one analyst's if named."""
        return history(self._all_events(), analyst=analyst)

    def _all_events(self) -> list[Event]:
        with self._store.reading() as transaction:
            records = list(transaction.records_from(1))
            check_chain(records, last_id=0, last_hash=GENESIS)
            return _events_of(transaction, records)

    def verify(self) -> int:
        """Read everything again: chain unbroken, answers the released ones, fold equal to the kept one.

        Returns the number of events. Raises `LedgerUnavailable` on the first fault.
        """
        with self._reading() as (transaction, balances):
            records = list(transaction.records_from(1))
            check_chain(records, last_id=0, last_hash=GENESIS)
            again = fold(_events_of(transaction, records))
            if again.open != balances.open or again.closed != balances.closed or again.held != balances.held:
                raise LedgerUnavailable("the balances kept are not the fold of the events")
            for reservation, event, answer in transaction.answers():
                match event_of(records[event - 1], domains={}):
                    case Committed(reservation=committed, answer=stored):
                        if (committed, stored) == (reservation, digest(answer)):
                            continue
                raise LedgerUnavailable("a stored answer is not the one that was released")
            return len(records)

    def _forget(self) -> None:
        self._balances = Balances()
        self._last_id = 0
        self._last_hash = GENESIS

    @contextmanager
    def _writing(self) -> Iterator[tuple[Transaction, Balances]]:
        with self._lock:
            self._written.clear()
            with self._store.writing() as transaction:
                yield transaction, self._caught_up(transaction)
            self._continue_fold(self._written)  # only here is it durable

    @contextmanager
    def _reading(self) -> Iterator[tuple[Transaction, Balances]]:
        with self._lock, self._store.reading() as transaction:
            yield transaction, self._caught_up(transaction)

    def _caught_up(self, transaction: Transaction) -> Balances:
        """The fold over every committed event. The last event folded is read again: it must still be there."""
        records = list(transaction.records_from(max(1, self._last_id)))
        if self._last_id:
            if not records or (records[0].id, records[0].hash) != (self._last_id, self._last_hash):
                raise LedgerUnavailable(
                    f"event {self._last_id} is gone: the ledger was replaced under a running process"
                )
            records = records[1:]
        if records:
            check_chain(records, last_id=self._last_id, last_hash=self._last_hash)
            self._continue_fold(list(zip(records, _events_of(transaction, records), strict=True)))
        transaction.newest = (self._last_id, self._last_hash)
        return self._balances

    def _continue_fold(self, written: Sequence[tuple[Record, Event]]) -> None:
        try:
            for record, event in written:
                self._balances.apply(event)
                self._last_id, self._last_hash = record.id, record.hash
        except BaseException:
            self._forget()
            raise

    def _append(self, transaction: Transaction, event: Event) -> Record:
        """Append after everything seen by this transaction. The fold follows once the transaction is durable."""
        domains: dict[Domain, str] = {}
        if isinstance(event, Reserved):
            domains = transaction.digests(values for _, values in event.charge.cells.columns)
        last_id, last_hash = transaction.newest
        record = record_of(event, number=last_id + 1, previous_hash=last_hash, domains=domains)
        transaction.append(record)
        self._written.append((record, event))
        return record


def _open_charge(balances: Balances, reservation: Reservation) -> Charge:
    if reservation.id in balances.open:
        return balances.open[reservation.id].charge
    raise LedgerMisuse(f"the reservation is {balances.closed.get(reservation.id, 'not in this ledger')}")


def _events_of(transaction: Transaction, records: list[Record]) -> list[Event]:
    domains = transaction.domains_of(records)
    return [event_of(record, domains=domains) for record in records]
