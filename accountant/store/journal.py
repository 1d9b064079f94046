"""The log under the ledger's verbs: one write transaction at a time, the current fold, and occasional snapshots."""

import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from accountant.balances.fold import Balances
from accountant.errors import LedgerBehind, LedgerError, LedgerMisuse, LedgerUnavailable, WitnessNotKept
from accountant.events.digests import Domain, digest
from accountant.events.events import GENESIS, Event, Record, Reserved, check_chain, make_record, parse_event
from accountant.store.deadline import Deadline
from accountant.store.snapshot import pack_balances, unpack_balances
from accountant.store.store import LedgerStore
from accountant.store.transaction import Snapshot, Transaction
from accountant.store.witness import NOTHING, Mark, Witness

FaultHandler = Callable[[LedgerError], None]


def ignore_fault(fault: LedgerError) -> None:
    """Do nothing. The caller gets the fault as an exception anyway."""


class Journal:
    """The log of events with its current fold, the balances. Safe to share between threads.

    Guarantee: a reader waits for no writer: not while the writer waits for another one's lock, nor while the storage
    makes its events durable. No wait for another thread is longer than one for the storage itself. The returned
    balances are those of the whole log up to the returned event: docs/proofs/accounting.md, theorems 5 and 8.

    `snapshot_every` is the number of new events after which a snapshot is stored. `witness` knows the last durable
    event from earlier processes, and records each new one. If `is_trusted`, it does so only after `check_witness`.
    `on_fault` is called with each failure of the storage.
    """

    def __init__(
        self,
        store: LedgerStore,
        *,
        snapshot_every: int,
        witness: Witness | None = None,
        on_fault: FaultHandler = ignore_fault,
        is_trusted: bool = False,
    ) -> None:
        self._store = store
        self._trust = is_trusted
        self._witness = witness
        self._held = NOTHING  # the mark that this ledger was found to have; only writers change it
        self._on_fault = on_fault
        self._snapshot_every = snapshot_every
        self._writers = threading.Lock()  # taken first, and held until what was written is durable
        self._folding = threading.RLock()  # whoever has it looks at the fold, or continues it
        self._written: list[tuple[Record, Event]] = []  # by the writer who has its lock
        self._snapshot_id = 0
        self._own_id = 0  # of the last event that this process made durable
        self._drop_fold()

    def make_deadline(self) -> Deadline:
        """Return the deadline for all waits of a caller that comes now."""
        return self._store.make_deadline()

    def close(self) -> None:
        """Store a snapshot if one is due, and close the storage."""
        with suppress(LedgerUnavailable):
            self.keep_snapshot()
        self._store.close()

    def check_room(self, *, room_bytes: int) -> None:
        """Check that the storage can grow by `room_bytes`. Raise `LedgerUnavailable` if it cannot."""
        self._store.check_room(room_bytes=room_bytes)

    @contextmanager
    def begin_write(self) -> Iterator[tuple[Transaction, Balances]]:
        """Open one serialised transaction with the balances before it.

        The transaction is durable when the block ends, and undone if the block raises.

        Raise `LedgerUnavailable`, also if it is unknown whether the transaction became durable. The caller then must
        not rely on it; the next read of the log shows whether it is there.
        """
        deadline = self.make_deadline()
        with self._report_faults(), deadline.hold_lock(self._writers):
            with self._store.begin_write(deadline) as transaction, deadline.hold_lock(self._folding):
                self._written.clear()
                balances = self._fold_committed_events(transaction)
                if self._witness is not None and not self._trust:
                    self._check_mark(transaction, self._witness.read())
                yield transaction, balances
            if self._written:  # only here is it durable
                self._own_id = self._written[-1][0].id
            if self._witness is not None and self._written and not self._trust:
                newest, _ = self._written[-1]
                self._held = Mark(newest.id, newest.hash)
                self._advance_witness(self._held)
            self._fold_durable_events(deadline)

    @contextmanager
    def begin_read(self) -> Iterator[tuple[Transaction, Balances]]:
        """Open a read-only view of all committed events at one moment, with its balances.

        Raise `LedgerUnavailable` if it cannot be read.
        """
        deadline = self.make_deadline()
        with self._report_faults(), deadline.hold_lock(self._folding), self._store.begin_read(deadline) as transaction:
            yield transaction, self._fold_committed_events(transaction)

    @contextmanager
    def hold_known_balances(self) -> Iterator[Balances]:
        """Hold the balances up to the last event that this process has written, or up to a later event.

        Nothing is read, unless a reader kept this process's own events out of the fold. Events of other processes may
        be missing, so that these balances are for information alone. Raise `LedgerUnavailable` if the storage fails.
        """
        with self._report_faults(), self.make_deadline().hold_lock(self._folding):
            if self._last_id >= self._own_id:
                yield self._balances
                return
            with self.begin_read() as (_, balances):
                yield balances

    @contextmanager
    def begin_log_read(self) -> Iterator[Transaction]:
        """Open a read-only view of all committed events at one moment, without balances.

        No writer of this process waits for it.
        """
        with self._report_faults(), self._store.begin_read(self.make_deadline()) as transaction:
            yield transaction

    def check_witness(self, *, is_accepted: bool) -> None:
        """Compare the ledger with its witness before any other use, and update the witness.

        If `is_accepted`, store the ledger's last event in the witness without comparing. Raise `LedgerBehind`,
        `LedgerUnavailable`, OSError.
        """
        if self._witness is None:
            return
        mark = None if is_accepted else self._witness.read()  # before the look: what is durable later is not in that
        with self.begin_read() as (transaction, _):
            self._check_mark(transaction, mark)
            newest = Mark(*transaction.newest)
        self._trust = False
        if is_accepted:
            self._witness.replace_mark(newest)
        elif newest > (mark or NOTHING):
            self._advance_witness(newest)

    def append_event(self, transaction: Transaction, event: Event) -> Record:
        """Append an event after everything that this transaction has seen.

        The fold follows once the transaction is durable.
        """
        domains: dict[Domain, str] = {}
        if isinstance(event, Reserved):
            domains = transaction.store_domains(values for _, values in event.charge.cells.columns)
        last_id, last_hash = transaction.newest
        record = make_record(event, number=last_id + 1, previous_hash=last_hash, domains=domains)
        transaction.append_record(record)
        self._written.append((record, event))
        return record

    def read_events(self) -> list[tuple[Record, Event]]:
        """Return the whole log, and check its chain."""
        return self.read_events_after(0, GENESIS)

    def read_events_after(self, number: int, event_hash: str) -> list[tuple[Record, Event]]:
        """Return the events after the one with this number and hash, and check their chain.

        With 0 and `GENESIS`, return the whole log. Raise `LedgerUnavailable` if that event is no longer there.
        """
        with self.begin_log_read() as transaction:
            records = transaction.read_records_after(number, event_hash)
            check_chain(records, last_id=number, last_hash=event_hash)
            return list(zip(records, parse_events(transaction, records), strict=True))

    @property
    def folded_event_count(self) -> int:
        """Return the number of folded events. Nothing is read."""
        return self._last_id

    def find_newest_event(self) -> tuple[int, str]:
        """Return the number and hash of the last event."""
        with self.begin_read() as (transaction, _):
            return transaction.newest

    def _check_mark(self, transaction: Transaction, mark: Mark | None) -> None:
        """Raise `LedgerBehind` unless the log contains the marked event. The transaction has read the whole log.

        A writer holds the writers' lock, so every event that can be marked is in the log by then.
        """
        if mark is None or mark in (self._held, NOTHING):
            return
        number, newest_hash = transaction.newest
        found = newest_hash if mark.event_number == number else transaction.find_hash(mark.event_number)
        if found != mark.event_hash:
            raise LedgerBehind(known=mark.event_number, newest=number)
        self._held = mark

    def _advance_witness(self, mark: Mark) -> None:
        if self._witness is not None and not self._witness.record_event(mark):
            self._on_fault(WitnessNotKept(f"the ledger's witness {self._witness.path.name} cannot be written"))

    @contextmanager
    def _report_faults(self) -> Iterator[None]:
        try:
            yield
        except LedgerError as error:
            if isinstance(error, LedgerUnavailable) or type(error) is LedgerMisuse:
                self._on_fault(error)
            raise

    def keep_snapshot(self) -> None:
        """Store the current balances if many events, and an eighth of the log, came after the stored snapshot."""
        if self._last_id - self._snapshot_id < max(self._snapshot_every, self._last_id // 8):
            return
        deadline = self.make_deadline()
        with deadline.hold_lock(self._writers), self._store.begin_write(deadline) as transaction:
            with deadline.hold_lock(self._folding):
                content = pack_balances(self._fold_committed_events(transaction))
            number, last_hash = transaction.newest
            transaction.replace_snapshot(Snapshot(number, last_hash, digest(content), zlib.compress(content, 1)))
            self._snapshot_id = number

    def _drop_fold(self) -> None:
        self._balances = Balances()
        self._last_id = 0
        self._last_hash = GENESIS
        self._snapshot_id = 0

    def _fold_committed_events(self, transaction: Transaction) -> Balances:
        """Return the fold over every committed event.

        The last folded event is read again. Raise `LedgerUnavailable` if it is no longer there.
        """
        if not self._last_id:
            self._start_from_snapshot(transaction)
        records = transaction.read_records_after(self._last_id, self._last_hash)
        if records:
            check_chain(records, last_id=self._last_id, last_hash=self._last_hash)
            self._continue_fold(list(zip(records, parse_events(transaction, records), strict=True)))
        transaction.newest = (self._last_id, self._last_hash)
        return self._balances

    def _start_from_snapshot(self, transaction: Transaction) -> None:
        """Start from the newest stored snapshot of this chain of events. Other snapshots are skipped."""
        for snapshot in transaction.read_snapshots():
            with suppress(LedgerUnavailable):
                self._balances = unpack_balances(open_snapshot(snapshot))
                self._last_id = self._snapshot_id = snapshot.event_number
                self._last_hash = snapshot.hash
                return

    def _fold_durable_events(self, deadline: Deadline) -> None:
        """Fold the events that became durable, unless a reader has folded them already.

        If a reader holds the fold until the deadline, the events are left in the log for the next reader.
        """
        with suppress(LedgerUnavailable), deadline.hold_lock(self._folding):
            if self._written and self._last_id + 1 == self._written[0][0].id:
                self._continue_fold(self._written)

    def _continue_fold(self, written: Sequence[tuple[Record, Event]]) -> None:
        try:
            for record, event in written:
                self._balances.apply_event(event)
                self._last_id, self._last_hash = record.id, record.hash
        except BaseException:
            self._drop_fold()
            raise


def open_snapshot(snapshot: Snapshot) -> bytes:
    """Return a snapshot's content. Raise `LedgerUnavailable` unless it matches its digest."""
    try:
        content = zlib.decompress(snapshot.body)
    except (zlib.error, TypeError) as error:  # SQLite keeps a text where bytes should be
        raise LedgerUnavailable("a snapshot cannot be read") from error
    if digest(content) != snapshot.digest:
        raise LedgerUnavailable("a snapshot is not the one that was stored")
    return content


def read_all_events(transaction: Transaction) -> list[tuple[Record, Event]]:
    """Return the whole log, and check its chain."""
    records = transaction.read_records_after(0, GENESIS)
    check_chain(records, last_id=0, last_hash=GENESIS)
    return list(zip(records, parse_events(transaction, records), strict=True))


def parse_events(transaction: Transaction, records: Sequence[Record]) -> list[Event]:
    """Return the events of records that are in the log."""
    domains = transaction.read_domains(records)
    return [parse_event(record, domains=domains) for record in records]
