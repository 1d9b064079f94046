"""The owner's verbs: grants, settlements, windows, approvals, pruning, publications, export.

Each decision is an event with its author and reason.

References: docs/proofs/accounting.md, theorem 7, for the promise that still holds.
"""

import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import get_args

from accountant.errors import LedgerMisuse
from accountant.events.events import Event, check_chain
from accountant.events.export import ExportedEvent, export_events
from accountant.events.monitor_events import MonitorEnded, MonitorPaused, MonitorResumed, MonitorStarted
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
from accountant.store.journal import Journal, parse_events
from accountant.store.waiting import WaitingQuestion
from accountant.verbs.endings import find_open_charge

Decision = OwnerEvent | MonitorStarted | MonitorPaused | MonitorResumed | MonitorEnded
"""The decisions of an owner, with who and why."""

_DRAWN = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class PathSizes:
    """The number of stored path states of one table and data version, and their total size in bytes."""

    table: str
    version: str
    state_count: int
    size_bytes: int


class Owner:
    """The verbs of the ledger that only the data owner uses."""

    def __init__(self, journal: Journal, *, clock: Callable[[], datetime]) -> None:
        self._journal = journal
        self._clock = clock

    def write_grant(self, grant: Grant, *, by: str, why: str, once: str | None = None) -> str:
        """Write a grant that raises a cap from now on, and return its id, by which it can be revoked.

        A cap that the policy does not set stays unset. `once` is the id for the grant: 32 random hexadecimal digits of
        a sender who may send the same request twice. If a grant has that id already, nothing is written.

        Guarantee: the losses on a balance never exceed the policy's cap plus everything that was ever granted on it.
        """
        identity = _choose_id(once)
        with self._journal.begin_write() as (transaction, _):
            if not transaction.has_event(Granted.__name__, identity):
                self._journal.append_event(transaction, Granted(identity, self._clock(), by, why, grant))
        return identity

    def revoke_grant(self, grant_id: str, *, by: str, why: str) -> None:
        """End a grant. Losses that the grant allowed stay spent. Raise `LedgerMisuse` if the grant is not in force."""
        with self._journal.begin_write() as (transaction, balances):
            if grant_id not in balances.grants:
                raise LedgerMisuse("no such grant is in force")
            self._journal.append_event(transaction, Revoked(grant_id, self._clock(), by, why))

    def list_impossible_checks(self) -> tuple[str, ...]:
        """Return the checks that `verify` could not make on the ledger's database, as sentences."""
        with self._journal.begin_log_read() as transaction:
            return transaction.list_impossible_checks()

    def list_grants(self) -> dict[str, Grant]:
        """Return the grants in force, oldest first, by id."""
        with self._journal.begin_read() as (_, balances):
            return dict(balances.grants)

    def settle_reservation(self, reservation_id: str, *, untouched: bool, by: str, why: str) -> None:
        """Close an open reservation whose process is dead.

        Its worst case is spent for good. It is refunded if the owner says (`untouched`) that its question never touched
        data. If the process is alive after all, it can no longer commit, and withholds its answer. Raise `LedgerMisuse`
        if the reservation is not open, `MonitorNotEnded` if it is that of a monitor.
        """
        with self._journal.begin_write() as (transaction, balances):
            find_open_charge(transaction, balances, reservation_id)
            self._journal.append_event(
                transaction, Settled(reservation_id, self._clock(), by, why, untouched=untouched)
            )

    def open_window(self, *, by: str, why: str, once: str | None = None) -> str:
        """Start all balances again, except for open reservations.

        Return the window's id. `once` is as in `write_grant`.

        Guarantee: the caps hold for each window by itself. Over all windows together they add up: after n windows the
        bound is n times the cap. Noise paths can no longer be continued. Stored answers stay. Raise `MonitorNotEnded`
        if a monitor runs or is paused: its windows were charged to the balances that would start again.
        """
        identity = _choose_id(once)
        with self._journal.begin_write() as (transaction, balances):
            if not transaction.has_event(WindowOpened.__name__, identity):
                balances.monitors.check_all_monitors_ended()
                self._journal.append_event(transaction, WindowOpened(identity, self._clock(), by, why))
        return identity

    def approve_question(self, question: str, *, by: str, why: str) -> bool:
        """Approve the question of this fingerprint. Return True if it was not approved before."""
        with self._journal.begin_write() as (transaction, balances):
            if question in balances.approved:
                return False
            self._journal.append_event(transaction, Approved(question, self._clock(), by, why))
            transaction.waiting.delete_question(question)
            return True

    def decline_question(self, question: str, *, by: str, why: str) -> bool:
        """Decline a question that waits for approval. Return True if it was waiting.

        This forbids nothing: if the question is asked again, it waits again.
        """
        with self._journal.begin_write() as (transaction, _):
            if not transaction.waiting.find_questions(question):
                return False
            self._journal.append_event(
                transaction, Declined(uuid.uuid4().hex, self._clock(), by, why, question=question)
            )
            transaction.waiting.delete_question(question)
            return True

    def find_waiting_questions(self, question: str | None = None) -> tuple[WaitingQuestion, ...]:
        """Return the questions that wait for the owner's approval, the newest first; or one, by its fingerprint.

        Of each analyst the newest hundred are kept.
        """
        with self._journal.begin_log_read() as transaction:
            return transaction.waiting.find_questions(question)

    def measure_paths(self) -> tuple[PathSizes, ...]:
        """Return the number and size of the stored noise paths, for each table and data version."""
        with self._journal.begin_read() as (transaction, _):
            return tuple(PathSizes(*row) for row in transaction.measure_paths())

    def prune_paths(self, table: str, version: str, *, by: str, why: str) -> None:
        """Delete a table's noise paths on one data version. They can no longer be continued. Balances do not change."""
        with self._journal.begin_write() as (transaction, _):
            event = Pruned(uuid.uuid4().hex, self._clock(), by, why, table=table, version=version)
            record = self._journal.append_event(transaction, event)
            transaction.delete_pruned_values(event=record.id, table=table, version=version)

    def record_publication(
        self,
        publication: str,
        *,
        table: str,
        version: str,
        method: str,
        file: str,
        file_hash: str,
        statement: str,
        by: str,
        why: str,
    ) -> bool:
        """Write to the ledger that a file is published which no budget covers, before anybody sees the file.

        Return False, and write nothing, if any process recorded that publication before.
        """
        with self._journal.begin_write() as (transaction, _):
            if transaction.read_events_of_kind(Published.__name__, about=publication):
                return False
            event = Published(
                publication,
                self._clock(),
                by,
                why,
                table=table,
                version=version,
                method=method,
                file=file,
                file_hash=file_hash,
                statement=statement,
            )
            self._journal.append_event(transaction, event)
            return True

    def find_publications(self, publication: str | None = None) -> tuple[Published, ...]:
        """Return the published files that no budget covers, the oldest first.

        With `publication`, return only the files of that publication.
        """
        with self._journal.begin_log_read() as transaction:
            records = transaction.read_events_of_kind(Published.__name__, about=publication)
            for record in records:
                check_chain([record], last_id=record.id - 1, last_hash=record.previous_hash)
            return tuple(event for event in parse_events(transaction, records) if isinstance(event, Published))

    def read_decisions(self) -> Iterator[OwnerEvent]:
        """Yield the owners' decisions, oldest first."""
        for _, event in self._journal.read_events():
            if isinstance(event, OwnerEvent):
                yield event

    def list_latest_decisions(self, *, limit: int) -> list[tuple[int, Decision]]:
        """Return the owners' latest decisions with their event numbers, the newest first.

        Decisions about monitors are among them. Each event is checked against its own hash. Raise `LedgerUnavailable`
        if it differs.
        """
        kinds = [kind.__name__ for kind in get_args(Decision)]
        with self._journal.begin_log_read() as transaction:
            records = transaction.read_newest_records(kinds, limit=limit)
            for record in records:
                check_chain([record], last_id=record.id - 1, last_hash=record.previous_hash)
            decided = zip(records, parse_events(transaction, records), strict=True)
            return [(record.id, event) for record, event in decided if isinstance(event, Decision)]

    def read_log(self) -> list[Event]:
        """Return all events of the ledger, the oldest first."""
        return [event for _, event in self._journal.read_events()]

    def export_events(self) -> Iterator[ExportedEvent]:
        """Return every event as a flat record, oldest first."""
        return export_events(self._journal.read_events())

    def find_newest_event(self) -> tuple[int, str]:
        """Return the number and hash of the last event.

        If both are kept elsewhere, `has_event` shows later if the ledger was cut off.
        """
        return self._journal.find_newest_event()

    def has_event(self, number: int, event_hash: str) -> bool:
        """Return True if event `number` of this ledger has that hash, so that no event up to it is lost."""
        records = [record for record, _ in self._journal.read_events()[number - 1 : number]] if number > 0 else []
        return [record.hash for record in records] == [event_hash]


def _choose_id(once: str | None) -> str:
    """Return the given id of an event, or a new one.

    Raise `LedgerMisuse` for an id that is not 32 hexadecimal digits.
    """
    if once is None:
        return uuid.uuid4().hex
    if not _DRAWN.fullmatch(once):
        raise LedgerMisuse("an id has 32 hexadecimal digits")
    return once
