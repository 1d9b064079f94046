"""Requests that spend once, however often they are sent, whatever dies in between.

Guarantee: of all attempts under one key of one analyst at most one reserves. A key is written down before anything is
reserved; the reservation is written into its row in the transaction that reserves, and only by the attempt that the row
names. So whoever finds the row later knows whether the first attempt has spent, and on which data version. It holds
until the key expires, which is counted from when its request began.

References: docs/decisions/0011-asking-once.md.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from accountant.charges import StoredAnswer
from accountant.errors import LedgerError, LedgerUnavailable
from accountant.events.events import Committed
from accountant.store.attempts import Attempt, AttemptRow
from accountant.store.journal import Journal, parse_events
from accountant.store.transaction import Transaction
from accountant.verbs.endings import COMMITTED, RELEASED, find_ending, read_stored_answer

# room in the ledger against keys that one analyst may have at a time; set, not measured
MOST_KEYS_OF_AN_ANALYST = 50_000


class OtherRequest(LedgerError):
    """The key stands for another request. Nothing was written."""


class TooManyKeys(LedgerError):
    """The analyst has as many keys as anybody may have. Nothing was written."""


class AttemptState(StrEnum):
    """The state of an earlier attempt.

    Its response is known, its answer is stored, it may still be running, or it has spent and left no answer.
    """

    ENDED = "ended"
    ANSWERED = "answered"
    RUNNING = "running"
    SPENT = "spent"


@dataclass(frozen=True, slots=True)
class EarlierAttempt:
    """An attempt under the same key that stands in the way of another one.

    `reservation` is what it reserved; `answer` where the answer in its `response` is stored, or the answer it came to.
    """

    state: AttemptState
    begun_at: datetime
    reservation: str | None
    answer: str | None
    response: bytes | None = field(repr=False)


class Idempotency:
    """The keys of one open ledger. Safe to share between threads and processes."""

    def __init__(self, journal: Journal, *, clock: Callable[[], datetime]) -> None:
        self._journal = journal
        self._clock = clock

    def begin(
        self, analyst: str, key: str, *, request: str, lease: timedelta, keep: timedelta
    ) -> Attempt | EarlierAttempt:
        """Begin an attempt under a key, or return the attempt that had the key before.

        `request` is the SHA-256 of the request. The attempt is written to the ledger's database.

        Anybody who has reserved nothing for `lease` is taken for dead, and can reserve nothing any more; so is who
        began later than that from now, under a clock that was wrong. Keys older than `keep` are forgotten. Raises
        `OtherRequest`, `TooManyKeys`, `LedgerUnavailable`.
        """
        now = self._clock()
        with self._journal.begin_write() as (transaction, _):
            rows = transaction.attempts
            rows.forget_before(now - keep)
            attempt = Attempt(analyst, key, uuid.uuid4().hex, now)
            row = rows.find(analyst, key)
            if row is None:
                if rows.count(analyst) >= MOST_KEYS_OF_AN_ANALYST:
                    raise TooManyKeys
                rows.add(attempt, request=request)
                return attempt
            if row.request != request:
                raise OtherRequest
            earlier = _describe_earlier(transaction, row, still_running=abs(now - row.begun_at) < lease)
            if earlier is None:
                rows.take_over(attempt)
                return attempt
            return earlier

    def end(self, attempt: Attempt, *, response: bytes, answer: str | None) -> None:
        """Keep what was told; `answer` is the reservation under which the key set in it is stored, if it is."""
        with self._journal.begin_write() as (transaction, _):
            transaction.attempts.end(attempt, response=response, answer=answer)

    def fail(self, attempt: Attempt, *, response: bytes) -> None:
        """Keep a refusal where something was reserved before it; else the key is free again.

        Where the answer was committed nothing is kept: the refusal did not know of it, as a storage that failed may
        have written all the same, and the key stands for that answer.
        """
        with self._journal.begin_write() as (transaction, _):
            rows = transaction.attempts
            rows.forget_unpaid(attempt)
            row = rows.find(attempt.analyst, attempt.key)
            if row is not None and find_ending(transaction, row.reservation) != COMMITTED:
                rows.end(attempt, response=response, answer=None)

    def find_answer(self, reservation: str, *, analyst: str) -> StoredAnswer | None:
        """Return the answer that a reservation stored, if the analyst has paid for it or read it; None else."""
        with self._journal.begin_read() as (transaction, balances):
            found = transaction.read_answer(reservation)
            if found is None:
                return None
            answer = read_stored_answer(transaction, *found, is_held=True)
            asked = (analyst, answer.charge.question, answer.charge.family.version)
            return answer if answer.analyst == analyst or balances.paid_answers.get(asked) == reservation else None


def _describe_earlier(transaction: Transaction, row: AttemptRow, *, still_running: bool) -> EarlierAttempt | None:
    """Return a row's attempt; None for one that is dead and has spent nothing."""
    became = find_ending(transaction, row.reservation)
    if row.response is not None:
        state, answer = AttemptState.ENDED, row.answer
    elif row.reservation is not None and became == COMMITTED:
        state, answer = AttemptState.ANSWERED, _locate_answer(transaction, row.reservation)
    elif still_running:
        state, answer = AttemptState.RUNNING, None
    elif row.reservation is None or became == RELEASED:
        return None
    else:
        state, answer = AttemptState.SPENT, None
    return EarlierAttempt(state, row.begun_at, row.reservation, answer, row.response)


def _locate_answer(transaction: Transaction, reservation: str) -> str:
    """Return the place of the answer that a committed reservation paid for: its own, or the one that it read."""
    for event in parse_events(transaction, transaction.read_events_about([reservation])):
        if isinstance(event, Committed) and event.reservation == reservation:
            return event.reads or reservation
    raise LedgerUnavailable("a committed reservation has no end")
