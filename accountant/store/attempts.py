"""The table of idempotent requests: a row for each idempotency key of an analyst, outside the chain of events."""

from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from accountant.errors import LedgerUnavailable
from accountant.events.digests import digest_row

_attempts = sa.Table(
    "attempts",
    sa.MetaData(),
    *(sa.Column(name, sa.Text, primary_key=True) for name in ("analyst", "key")),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("request", "attempt", "begun_at")),
    *(sa.Column(name, sa.Text) for name in ("reservation", "answer")),
    sa.Column("response", sa.LargeBinary),
    sa.Column("digest", sa.Text),
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One process's right to answer an analyst's request.

    It lasts until another attempt replaces `id` in the request's row.
    """

    analyst: str
    key: str
    id: str
    begun_at: datetime


class AttemptTaken(Exception):
    """Another attempt has taken over, because this one took too long, or its key has expired. Nothing was written."""


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """The stored row of a request: its SHA-256, its current attempt, and that attempt's reservation and response."""

    request: str
    attempt: str
    begun_at: datetime
    reservation: str | None
    answer: str | None
    response: bytes | None


class Attempts:
    """Read and write access to the stored attempts, inside one transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def find_row(self, analyst: str, key: str) -> AttemptRow | None:
        """Return the stored row of a key."""
        here = (_attempts.c.analyst == analyst) & (_attempts.c.key == key)
        row = self._connection.execute(sa.select(_attempts).where(here)).one_or_none()
        if row is None:
            return None
        begun_at = datetime.fromisoformat(row.begun_at)
        return AttemptRow(row.request, row.attempt, begun_at, row.reservation, row.answer, row.response)

    def count_keys(self, analyst: str) -> int:
        """Return the number of an analyst's keys."""
        chosen = sa.select(sa.func.count()).select_from(_attempts).where(_attempts.c.analyst == analyst)
        return int(self._connection.scalar(chosen) or 0)

    def add(self, attempt: Attempt, *, request: str) -> None:
        """Remember a request before anything is reserved for it."""
        row = {
            "analyst": attempt.analyst,
            "key": attempt.key,
            "request": request,
            "attempt": attempt.id,
            "begun_at": _write_moment(attempt.begun_at),
        }
        self._connection.execute(_attempts.insert(), row)
        self._update_digest(attempt)

    def replace_attempt(self, attempt: Attempt) -> None:
        """Replace an attempt that has reserved nothing. The replaced one can no longer reserve."""
        here = (_attempts.c.analyst == attempt.analyst) & (_attempts.c.key == attempt.key)
        self._connection.execute(
            _attempts.update()
            .where(here)
            .values(attempt=attempt.id, begun_at=_write_moment(attempt.begun_at), reservation=None)
        )
        self._update_digest(attempt)

    def reserve(self, attempt: Attempt, reservation: str) -> None:
        """Store an attempt's reservation in its row, in the transaction that reserves.

        Raise `AttemptTaken` if another attempt has taken over, or if this one has reserved before.
        """
        changed = self._connection.execute(
            _attempts.update()
            .where(_attempts.c.attempt == attempt.id, _attempts.c.reservation.is_(None), _attempts.c.response.is_(None))
            .values(reservation=reservation)
        )
        if changed.rowcount != 1:
            raise AttemptTaken
        self._update_digest(attempt)

    def store_response(self, attempt: Attempt, *, response: bytes, answer: str | None) -> None:
        """Store the response, and the reservation under which its answer is stored."""
        self._connection.execute(
            _attempts.update().where(_attempts.c.attempt == attempt.id).values(response=response, answer=answer)
        )
        self._update_digest(attempt)

    def delete_unreserved_attempt(self, attempt: Attempt) -> None:
        """Forget an attempt that has reserved nothing."""
        self._connection.execute(
            _attempts.delete().where(_attempts.c.attempt == attempt.id, _attempts.c.reservation.is_(None))
        )

    def check_rows(self) -> None:
        """Raise `LedgerUnavailable` unless every row is as it was written."""
        for *cells, written in self._connection.execute(sa.select(_attempts)):
            if digest_row(cells) != written:
                raise LedgerUnavailable("a request that is answered once is not what was written")

    def _update_digest(self, attempt: Attempt) -> None:
        """Update the digest of the attempt's row, if it still exists, in the transaction that changed it."""
        here = _attempts.c.attempt == attempt.id
        row = self._connection.execute(sa.select(_attempts).where(here)).one_or_none()
        if row is not None:
            self._connection.execute(_attempts.update().where(here).values(digest=digest_row(row[:-1])))

    def delete_rows_before(self, moment: datetime) -> None:
        """Delete the rows of requests that began before a moment."""
        self._connection.execute(_attempts.delete().where(_attempts.c.begun_at < _write_moment(moment)))


def _write_moment(moment: datetime) -> str:
    """Return moments as text that sorts in their order."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
