"""The owner's verbs: grants, settlements, windows, approvals, pruning, publications, export. Each is an event with who
and why.

What is promised in spite of them: docs/proofs/accounting.md, theorem 7.
"""

import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import get_args

from accountant.errors import LedgerMisuse
from accountant.events.events import Event, check_chain
from accountant.events.export import Exported, export
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
from accountant.store.journal import Journal, events_of
from accountant.store.waiting import WaitingQuestion
from accountant.verbs.endings import charge_of_open

Decision = OwnerEvent | MonitorStarted | MonitorPaused | MonitorResumed | MonitorEnded
"""What an owner decides, with who and why."""

_DRAWN = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class PathSizes:
    """Noise paths in the store, by table and data version: how many states, and their bytes."""

    table: str
    version: str
    states: int
    size_bytes: int


class Owner:
    """What only the data owner does with a ledger."""

    def __init__(self, journal: Journal, *, clock: Callable[[], datetime]) -> None:
        self._journal = journal
        self._clock = clock

    def grant(self, grant: Grant, *, by: str, why: str, once: str | None = None) -> str:
        """Raise a cap from now on; the grant's id, for its revocation. A cap that the policy does not set stays unset.

        `once` is the id to give it, 32 random hexadecimal digits of whoever may send the same wish twice: where a grant
        has it already, nothing is written.

        Guarantee: everything a balance covers is protected with the policy's cap and all that was ever granted on it.
        """
        identity = _identity(once)
        with self._journal.writing() as (transaction, _):
            if not transaction.has_event(Granted.__name__, identity):
                self._journal.append(transaction, Granted(identity, self._clock(), by, why, grant))
        return identity

    def revoke(self, grant_id: str, *, by: str, why: str) -> None:
        """End a grant. What was spent within it stays spent. Raises `LedgerMisuse` when it is not in force."""
        with self._journal.writing() as (transaction, balances):
            if grant_id not in balances.grants:
                raise LedgerMisuse("no such grant is in force")
            self._journal.append(transaction, Revoked(grant_id, self._clock(), by, why))

    def list_unchecked(self) -> tuple[str, ...]:
        """What `verify` could not ask of the ledger's database, as sentences."""
        with self._journal.looking() as transaction:
            return transaction.list_unchecked()

    def grants(self) -> dict[str, Grant]:
        """The grants in force, oldest first, by id."""
        with self._journal.reading() as (_, balances):
            return dict(balances.grants)

    def settle(self, reservation_id: str, *, untouched: bool, by: str, why: str) -> None:
        """Close an open reservation whose process is dead: spent for good at its worst case, or (on the owner's word
        that its question never touched data) given back.

        A process that is not dead after all cannot commit it any more, and withholds its answer. Raises `LedgerMisuse`
        when the reservation is not open, `MonitorStands` when it is that of a monitor.
        """
        with self._journal.writing() as (transaction, balances):
            charge_of_open(transaction, balances, reservation_id)
            self._journal.append(transaction, Settled(reservation_id, self._clock(), by, why, untouched=untouched))

    def open_window(self, *, by: str, why: str, once: str | None = None) -> str:
        """Let all balances start anew, but for what is open; the window's id. `once` is as in `grant`.

        Guarantee: the caps hold for each window by itself. Over all windows together they add up: after n windows the
        bound is n times the cap. Noise paths are continued no longer; stored answers stay. Raises `MonitorStands` where
        a monitor runs or is paused: its windows were charged to the balances that would begin anew.
        """
        identity = _identity(once)
        with self._journal.writing() as (transaction, balances):
            if not transaction.has_event(WindowOpened.__name__, identity):
                balances.monitors.check_none_stands()
                self._journal.append(transaction, WindowOpened(identity, self._clock(), by, why))
        return identity

    def approve(self, question: str, *, by: str, why: str) -> bool:
        """Let the question of this fingerprint be asked; whether it had not been approved before."""
        with self._journal.writing() as (transaction, balances):
            if question in balances.approved:
                return False
            self._journal.append(transaction, Approved(question, self._clock(), by, why))
            transaction.waiting.remove(question)
            return True

    def decline(self, question: str, *, by: str, why: str) -> bool:
        """Let a question wait for approval no longer; whether it had waited. Nothing is forbidden by that: whoever asks
        it again waits again."""
        with self._journal.writing() as (transaction, _):
            if not transaction.waiting.find(question):
                return False
            self._journal.append(transaction, Declined(uuid.uuid4().hex, self._clock(), by, why, question=question))
            transaction.waiting.remove(question)
            return True

    def find_waiting(self, question: str | None = None) -> tuple[WaitingQuestion, ...]:
        """The questions that were refused until the owner approves them, the newest first; or one, by its fingerprint.
        Of each analyst the newest hundred are kept."""
        with self._journal.looking() as transaction:
            return transaction.waiting.find(question)

    def path_sizes(self) -> tuple[PathSizes, ...]:
        """The noise paths in the store, by table and data version."""
        with self._journal.reading() as (transaction, _):
            return tuple(PathSizes(*row) for row in transaction.path_sizes())

    def prune(self, table: str, version: str, *, by: str, why: str) -> None:
        """Remove a table's noise paths on one data version. They are continued no longer; balances stay as they are."""
        with self._journal.writing() as (transaction, _):
            event = Pruned(uuid.uuid4().hex, self._clock(), by, why, table=table, version=version)
            record = self._journal.append(transaction, event)
            transaction.prune(event=record.id, table=table, version=version)

    def publish(
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
        """Write down, before anybody sees it, a file that no budget covers; False where that publication was made
        before, by this process or another, and nothing is written."""
        with self._journal.writing() as (transaction, _):
            if transaction.events_of_kind(Published.__name__, about=publication):
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
            self._journal.append(transaction, event)
            return True

    def find_published(self, publication: str | None = None) -> tuple[Published, ...]:
        """The files that no budget covers, the oldest first; or the one of a publication."""
        with self._journal.looking() as transaction:
            records = transaction.events_of_kind(Published.__name__, about=publication)
            for record in records:
                check_chain([record], last_id=record.id - 1, last_hash=record.previous_hash)
            return tuple(event for event in events_of(transaction, records) if isinstance(event, Published))

    def events(self) -> Iterator[OwnerEvent]:
        """What owners decided, oldest first."""
        for _, event in self._journal.events():
            if isinstance(event, OwnerEvent):
                yield event

    def list_decided(self, *, limit: int) -> list[tuple[int, Decision]]:
        """What owners decided last, the newest first, by the events' numbers; of monitors what they did with them. Each
        event is held against its own hash. Raises `LedgerUnavailable`."""
        kinds = [kind.__name__ for kind in get_args(Decision)]
        with self._journal.looking() as transaction:
            records = transaction.newest_of(kinds, limit=limit)
            for record in records:
                check_chain([record], last_id=record.id - 1, last_hash=record.previous_hash)
            decided = zip(records, events_of(transaction, records), strict=True)
            return [(record.id, event) for record, event in decided if isinstance(event, Decision)]

    def all_events(self) -> list[Event]:
        """The whole log."""
        return [event for _, event in self._journal.events()]

    def export(self) -> Iterator[Exported]:
        """Every event as a flat record, oldest first."""
        return export(self._journal.events())

    def newest(self) -> tuple[int, str]:
        """Number and hash of the last event: keep them elsewhere, and `holds` tells whether a ledger was cut off."""
        return self._journal.newest()

    def holds(self, number: int, event_hash: str) -> bool:
        """Whether event `number` of this ledger has that hash: then it has lost nothing up to there."""
        records = [record for record, _ in self._journal.events()[number - 1 : number]] if number > 0 else []
        return [record.hash for record in records] == [event_hash]


def _identity(once: str | None) -> str:
    """An id for an event. Raises `LedgerMisuse` for one that nobody would draw by chance."""
    if once is None:
        return uuid.uuid4().hex
    if not _DRAWN.fullmatch(once):
        raise LedgerMisuse("an id has 32 hexadecimal digits")
    return once
