"""Questions out of the log, one page at a time: only the events of those that are shown are read. Pure but for reading.

Each event is held against its own hash. That none is missing between them is the chain's matter: `verify` reads it all.
"""

from dataclasses import dataclass

from accountant.balances.fold import Balances
from accountant.events.events import check_chain
from accountant.reports.report import AskedQuestion, history
from accountant.store.journal import events_of
from accountant.store.store import Transaction


@dataclass(frozen=True, slots=True)
class Page:
    """Some questions, the newest first, and how many older ones there are."""

    questions: tuple[AskedQuestion, ...]
    older: int


def page(
    transaction: Transaction,
    balances: Balances,
    *,
    analyst: str | None,
    before: str | None,
    limit: int,
    only_open: bool,
) -> Page:
    """The `limit` newest questions that were reserved before reservation `before` (None: of all); of one analyst, and
    those alone that are open, if so asked. Raises `LedgerUnavailable`."""
    first = None if before is None else transaction.number_of(before)
    if not only_open:
        shown = transaction.reserved(analyst=analyst, before=first, limit=limit)
        count = transaction.count_reserved(analyst=analyst, before=first)
        return Page(_questions(transaction, shown), count - len(shown))
    # few, and known from the balances
    mine = [item.id for item in balances.open.values() if analyst in (None, item.charge.analyst)]
    if before is not None:
        mine = [identity for identity in mine if transaction.number_of(identity) < (first or 0)]
    return Page(_questions(transaction, mine[-limit:]), max(0, len(mine) - limit))


def of_analyst(transaction: Transaction, analyst: str) -> tuple[AskedQuestion, ...]:
    """All questions of one analyst, the oldest first."""
    shown = transaction.reserved(analyst=analyst, before=None, limit=None)
    return _questions(transaction, shown)[::-1]


def starting_with(transaction: Transaction, identity: str) -> tuple[AskedQuestion, ...]:
    """The questions whose reservation, or whose own id, starts like that, the oldest first."""
    return _questions(transaction, transaction.reserved_as(identity))[::-1]


def _questions(transaction: Transaction, reservations: list[str]) -> tuple[AskedQuestion, ...]:
    """The questions of some reservations, the newest first."""
    records = transaction.events_about(reservations)
    for record in records:
        check_chain([record], last_id=record.id - 1, last_hash=record.previous_hash)
    return history(events_of(transaction, records), analyst=None)[::-1]
