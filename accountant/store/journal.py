"""The log under the ledger's verbs: one transaction at a time, the fold kept up with it, snapshots now and then."""

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
    """Tell nobody: anybody who asked is told."""


class Journal:
    """Events in, balances out. Safe to share between threads.

    Guarantee: whoever reads waits for no writer: not while that waits for another one's lock, nor while the storage
    makes durable what it wrote. Nobody waits longer for another thread than for the storage itself. Balances are those
    of the whole log up to the event they are handed out with: docs/proofs/accounting.md, theorems 5 and 8.

    `snapshot_every`: how many events may lie behind the stored snapshot before a newer one is stored. `witness` knows
    the last durable event from before, and follows each one; with `trust` not before `check_witness`. `on_fault` is
    called with each failure.
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
        self._forget()

    def make_deadline(self) -> Deadline:
        """Return the deadline by which a caller that comes now must be let in."""
        return self._store.make_deadline()

    def close(self) -> None:
        """Store a snapshot if one is due, and close the storage."""
        with suppress(LedgerUnavailable):
            self.keep_snapshot()
        self._store.close()

    def check_room(self, *, room_bytes: int) -> None:
        """Check that the storage could grow by so much. Raise `LedgerUnavailable` if it could not."""
        self._store.check_room(room_bytes=room_bytes)

    @contextmanager
    def begin_write(self) -> Iterator[tuple[Transaction, Balances]]:
        """Open one serialised transaction with the balances before it.

        It is durable when the block ends, undone if the block raises.

        Raises `LedgerUnavailable`, also where it is unknown whether it became durable: nothing then is told that must
        be, and the next look at the log says what there is.
        """
        deadline = self.make_deadline()
        with self._report_faults(), deadline.hold(self._writers):
            with self._store.begin_write(deadline) as transaction, deadline.hold(self._folding):
                self._written.clear()
                balances = self._catch_up(transaction)
                if self._witness is not None and not self._trust:
                    self._check_mark(transaction, self._witness.read())
                yield transaction, balances
            if self._witness is not None and self._written and not self._trust:  # only here is it durable
                newest, _ = self._written[-1]
                self._held = Mark(newest.id, newest.hash)
                self._advance(self._held)
            self._fold_written(deadline)

    @contextmanager
    def begin_read(self) -> Iterator[tuple[Transaction, Balances]]:
        """Open a view of what is committed at one moment, with its balances.

        Raise `LedgerUnavailable` if it cannot be read.
        """
        deadline = self.make_deadline()
        with self._report_faults(), deadline.hold(self._folding), self._store.begin_read(deadline) as transaction:
            yield transaction, self._catch_up(transaction)

    @contextmanager
    def begin_log_read(self) -> Iterator[Transaction]:
        """Open a view of what is committed at one moment, without balances. No writer of this process waits for it."""
        with self._report_faults(), self._store.begin_read(self.make_deadline()) as transaction:
            yield transaction

    def check_witness(self, *, is_accepted: bool) -> None:
        """Hold the ledger against its witness before anything else is done with it, and bring the witness up to date.

        With `accept` the ledger as it is takes the place of whatever the witness has seen. Raises `LedgerBehind`,
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
            self._witness.replace(newest)
        elif newest > (mark or NOTHING):
            self._advance(newest)

    def append(self, transaction: Transaction, event: Event) -> Record:
        """Append after everything seen by this transaction. The fold follows once the transaction is durable."""
        domains: dict[Domain, str] = {}
        if isinstance(event, Reserved):
            domains = transaction.store_domains(values for _, values in event.charge.cells.columns)
        last_id, last_hash = transaction.newest
        record = make_record(event, number=last_id + 1, previous_hash=last_hash, domains=domains)
        transaction.append(record)
        self._written.append((record, event))
        return record

    def read_events(self) -> list[tuple[Record, Event]]:
        """Return the whole log, its chain checked."""
        return self.read_events_after(0, GENESIS)

    def read_events_after(self, number: int, event_hash: str) -> list[tuple[Record, Event]]:
        """Return the log after event `number` of that hash, its chain checked; 0 and `GENESIS` for all of it.

        Raises `LedgerUnavailable` where that event is not there any more.
        """
        with self.begin_log_read() as transaction:
            records = transaction.read_records_after(number, event_hash)
            check_chain(records, last_id=number, last_hash=event_hash)
            return list(zip(records, parse_events(transaction, records), strict=True))

    @property
    def size(self) -> int:
        """Return the number of folded events. Nothing is read."""
        return self._last_id

    def find_newest(self) -> tuple[int, str]:
        """Return the number and hash of the last event."""
        with self.begin_read() as (transaction, _):
            return transaction.newest

    def _check_mark(self, transaction: Transaction, mark: Mark | None) -> None:
        """Raise `LedgerBehind` unless the transaction, which has seen the whole log, has the marked event.

        Anybody who writes has the queue's head: every event that can be marked by then is in the log.
        """
        if mark is None or mark in (self._held, NOTHING):
            return
        number, newest_hash = transaction.newest
        found = newest_hash if mark.number == number else transaction.find_hash(mark.number)
        if found != mark.hash:
            raise LedgerBehind(known=mark.number, newest=number)
        self._held = mark

    def _advance(self, mark: Mark) -> None:
        if self._witness is not None and not self._witness.advance(mark):
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
        """Store the balances as they are, if many events (and an eighth of the log) lie behind the stored snapshot."""
        if self._last_id - self._snapshot_id < max(self._snapshot_every, self._last_id // 8):
            return
        deadline = self.make_deadline()
        with deadline.hold(self._writers), self._store.begin_write(deadline) as transaction:
            with deadline.hold(self._folding):
                content = pack_balances(self._catch_up(transaction))
            number, last_hash = transaction.newest
            transaction.replace_snapshot(Snapshot(number, last_hash, digest(content), zlib.compress(content, 1)))
            self._snapshot_id = number

    def _forget(self) -> None:
        self._balances = Balances()
        self._last_id = 0
        self._last_hash = GENESIS
        self._snapshot_id = 0

    def _catch_up(self, transaction: Transaction) -> Balances:
        """Return the fold over every committed event. The last event folded is read again: it must still be there."""
        if not self._last_id:
            self._start_from_snapshot(transaction)
        records = transaction.read_records_after(self._last_id, self._last_hash)
        if records:
            check_chain(records, last_id=self._last_id, last_hash=self._last_hash)
            self._continue_fold(list(zip(records, parse_events(transaction, records), strict=True)))
        transaction.newest = (self._last_id, self._last_hash)
        return self._balances

    def _start_from_snapshot(self, transaction: Transaction) -> None:
        """Continue from stored balances of this very chain; what is not that is passed over."""
        for snapshot in transaction.read_snapshots():
            with suppress(LedgerUnavailable):
                self._balances = unpack_balances(open_snapshot(snapshot))
                self._last_id = self._snapshot_id = snapshot.event
                self._last_hash = snapshot.hash
                return

    def _fold_written(self, deadline: Deadline) -> None:
        """Fold what is durable now, as far as no reader has met it in the log yet.

        Where one looks at the fold for too long, it stays in the log, and the next who looks folds it.
        """
        with suppress(LedgerUnavailable), deadline.hold(self._folding):
            if self._written and self._last_id + 1 == self._written[0][0].id:
                self._continue_fold(self._written)

    def _continue_fold(self, written: Sequence[tuple[Record, Event]]) -> None:
        try:
            for record, event in written:
                self._balances.apply(event)
                self._last_id, self._last_hash = record.id, record.hash
        except BaseException:
            self._forget()
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
    """Return the whole log, its chain checked."""
    records = transaction.read_records_after(0, GENESIS)
    check_chain(records, last_id=0, last_hash=GENESIS)
    return list(zip(records, parse_events(transaction, records), strict=True))


def parse_events(transaction: Transaction, records: Sequence[Record]) -> list[Event]:
    """Return the events of records that are in the log."""
    domains = transaction.read_domains(records)
    return [parse_event(record, domains=domains) for record in records]
