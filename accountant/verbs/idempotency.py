"""Requests that spend once, however often they are sent, whatever dies in between.

Guarantee: of all attempts under one key of one analyst at most one reserves. A key is stored before anything is
reserved. Its row gets the reservation in the transaction that reserves, and only from the attempt that the row names.
So the row shows later if the first attempt has spent, and on which data version. This holds until the key expires,
which is counted from the start of its request.

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
    """The key was used for another request. Nothing was written."""


class TooManyKeys(LedgerError):
    """The analyst has the greatest allowed number of keys. Nothing was written."""


class AttemptState(StrEnum):
    """The state of an earlier attempt.

    Its response is stored, or its answer is, or it may still be running, or it has spent budget and left no answer.
    """

    ENDED = "ended"
    ANSWERED = "answered"
    RUNNING = "running"
    SPENT = "spent"


@dataclass(frozen=True, slots=True)
class EarlierAttempt:
    """An earlier attempt under the same key, because of which no other one may begin.

    `reservation` is the id of its reservation. `answer` is the reservation that stores the answer in its `response`, or
    the answer that it committed.
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

    def begin_attempt(
        self, analyst: str, key: str, *, request: str, lease: timedelta, keep: timedelta
    ) -> Attempt | EarlierAttempt:
        """Begin an attempt under a key, or return the attempt that had the key before.

        `request` is the SHA-256 of the request. The attempt is written to the ledger's database.

        An attempt that has reserved nothing for `lease` counts as dead: it is replaced, and can no longer reserve. So
        does one that began more than `lease` in the future, by a wrong clock. Keys older than `keep` are deleted.
        Raise `OtherRequest`, `TooManyKeys`, `LedgerUnavailable`.
        """
        now = self._clock()
        with self._journal.begin_write() as (transaction, _):
            rows = transaction.attempts
            rows.delete_rows_before(now - keep)
            attempt = Attempt(analyst, key, uuid.uuid4().hex, now)
            row = rows.find_row(analyst, key)
            if row is None:
                if rows.count_keys(analyst) >= MOST_KEYS_OF_AN_ANALYST:
                    raise TooManyKeys
                rows.add(attempt, request=request)
                return attempt
            if row.request != request:
                raise OtherRequest
            earlier = _describe_earlier_attempt(transaction, row, is_running=abs(now - row.begun_at) < lease)
            if earlier is None:
                rows.replace_attempt(attempt)
                return attempt
            return earlier

    def store_response(self, attempt: Attempt, *, response: bytes, answer: str | None) -> None:
        """Store the response. `answer` is the reservation that stores the response's key set, if there is one."""
        with self._journal.begin_write() as (transaction, _):
            transaction.attempts.store_response(attempt, response=response, answer=answer)

    def store_refusal(self, attempt: Attempt, *, response: bytes) -> None:
        """Store a refusal if its attempt had reserved; otherwise make the key usable again.

        If the attempt's answer was committed, nothing is stored, and the key returns that answer. This happens if the
        storage reported a failure but had written the commit.
        """
        with self._journal.begin_write() as (transaction, _):
            rows = transaction.attempts
            rows.delete_unreserved_attempt(attempt)
            row = rows.find_row(attempt.analyst, attempt.key)
            if row is not None and find_ending(transaction, row.reservation) != COMMITTED:
                rows.store_response(attempt, response=response, answer=None)

    def find_answer(self, reservation: str, *, analyst: str) -> StoredAnswer | None:
        """Return the answer that a reservation stored, if the analyst has paid for it or read it; None else."""
        with self._journal.begin_read() as (transaction, balances):
            found = transaction.read_answer(reservation)
            if found is None:
                return None
            answer = read_stored_answer(transaction, *found, is_held=True)
            asked = (analyst, answer.charge.question, answer.charge.family.version)
            return answer if answer.analyst == analyst or balances.paid_answers.get(asked) == reservation else None


def _describe_earlier_attempt(transaction: Transaction, row: AttemptRow, *, is_running: bool) -> EarlierAttempt | None:
    """Return the attempt of a row. Return None if it is dead and has spent nothing."""
    became = find_ending(transaction, row.reservation)
    if row.response is not None:
        state, answer = AttemptState.ENDED, row.answer
    elif row.reservation is not None and became == COMMITTED:
        state, answer = AttemptState.ANSWERED, _locate_answer(transaction, row.reservation)
    elif is_running:
        state, answer = AttemptState.RUNNING, None
    elif row.reservation is None or became == RELEASED:
        return None
    else:
        state, answer = AttemptState.SPENT, None
    return EarlierAttempt(state, row.begun_at, row.reservation, answer, row.response)


def _locate_answer(transaction: Transaction, reservation: str) -> str:
    """Return the reservation that stores a committed question's answer.

    It is the question's own, or the one whose answer the question read.
    """
    for event in parse_events(transaction, transaction.read_events_of_reservations([reservation])):
        if isinstance(event, Committed) and event.reservation == reservation:
            return event.reads or reservation
    raise LedgerUnavailable("a committed reservation has no end")
