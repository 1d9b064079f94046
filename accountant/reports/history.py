"""The history of questions, read from the log: all of them, or one page.

A page reads only the events of its questions and checks each against its own hash. `verify` checks that none is
missing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from accountant.balances.fold import Balances
from accountant.charges import Amounts, Charge, Spent, Wording
from accountant.events.events import Committed, Event, Released, Reserved, check_chain
from accountant.events.monitor_events import MonitorEnded, MonitorStarted
from accountant.events.owner_events import Settled, WindowOpened
from accountant.store.journal import parse_events
from accountant.store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """One question's history.

    `status` is open (stays spent), committed, read (a stored answer, noise paths, or a monitor), released, or settled
    (by an owner, at its worst case). A monitor's reservation is standing while the monitor runs or is paused, and then
    ended. `monitor` is its name. `largest_losses` is its cost to the key that lost most and to a unit, once it has
    ended.

    `spent` is the ex-post cost once the question is committed or read. `read_reservation` is the reservation whose
    answer it read. `window_number` is the number, from 1, of the budget window it was reserved in. `settled_by` and
    `settled_why` are an owner's words. `wording` is None for questions from before texts were kept.
    """

    asked_at: datetime
    charge: Charge
    status: str
    spent: Spent | None = None
    reservation: str = ""
    read_reservation: str | None = None
    window_number: int = 1
    settled_by: str | None = None
    settled_why: str | None = None
    wording: Wording | None = None
    monitor: str | None = None
    largest_losses: Amounts | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some questions, the newest first, and how many older ones there are."""

    questions: tuple[AskedQuestion, ...]
    older_count: int


def list_questions(events: Iterable[Event], *, analyst: str | None) -> tuple[AskedQuestion, ...]:
    """Return every reservation with its end, oldest first; one analyst's own if named."""
    asked: dict[str, AskedQuestion] = {}
    window = 1
    for event in events:
        match event:
            case Reserved(reservation=reservation, at=at, charge=charge, wording=wording):
                if analyst in (None, charge.analyst):
                    asked[reservation] = AskedQuestion(
                        asked_at=at,
                        charge=charge,
                        status="open",
                        reservation=reservation,
                        window_number=window,
                        wording=wording,
                    )
            case Committed(reservation=reservation, spent=spent, reads=reads) if reservation in asked:
                status = "committed" if asked[reservation].charge.shared else "read"
                asked[reservation] = replace(asked[reservation], status=status, spent=spent, read_reservation=reads)
            case Released(reservation=reservation) if reservation in asked:
                asked[reservation] = replace(asked[reservation], status="released")
            case Settled(reservation=reservation, by=by, why=why, untouched=untouched) if reservation in asked:
                status = "released" if untouched else "settled"
                asked[reservation] = replace(asked[reservation], status=status, settled_by=by, settled_why=why)
            case MonitorStarted(run=run, monitor=monitor) if run in asked:
                asked[run] = replace(asked[run], status="standing", monitor=monitor)
            case MonitorEnded(run=run, spent=most) if run in asked:
                asked[run] = replace(asked[run], status="ended", largest_losses=most)
            case WindowOpened():
                window += 1
            case _:
                pass
    return tuple(asked.values())


def read_page(
    transaction: Transaction,
    balances: Balances,
    *,
    analyst: str | None,
    before: str | None,
    limit: int,
    only_open: bool,
) -> Page:
    """Return the `limit` newest questions reserved before reservation `before`, and the number of older ones.

    `before` None means no limit. `analyst` and `only_open` restrict the questions. Raise `LedgerUnavailable` if the log
    cannot be read.
    """
    first = None if before is None else transaction.find_event_number(before)
    if not only_open:
        shown = transaction.list_reservations(analyst=analyst, before=first, limit=limit)
        count = transaction.count_reservations(analyst=analyst, before=first)
        return Page(_read_questions(transaction, shown), count - len(shown))
    # few, and known from the balances
    mine = [item.id for item in balances.list_open_questions() if analyst in (None, item.charge.analyst)]
    if before is not None:
        mine = [identity for identity in mine if transaction.find_event_number(identity) < (first or 0)]
    return Page(_read_questions(transaction, mine[-limit:]), max(0, len(mine) - limit))


def list_analyst_questions(transaction: Transaction, analyst: str) -> tuple[AskedQuestion, ...]:
    """Return all questions of one analyst, the oldest first."""
    shown = transaction.list_reservations(analyst=analyst, before=None, limit=None)
    return _read_questions(transaction, shown)[::-1]


def find_questions(transaction: Transaction, identity: str) -> tuple[AskedQuestion, ...]:
    """Return the questions whose reservation id, or own id, starts with this text, the oldest first."""
    return _read_questions(transaction, transaction.find_reservations(identity))[::-1]


def _read_questions(transaction: Transaction, reservations: list[str]) -> tuple[AskedQuestion, ...]:
    """Return the questions of some reservations, the newest first."""
    records = transaction.read_events_of_reservations(reservations)
    for record in records:
        check_chain([record], last_id=record.id - 1, last_hash=record.previous_hash)
    return list_questions(parse_events(transaction, records), analyst=None)[::-1]
