"""The end of a reservation, read from the log, and the answer that it paid for."""

from accountant.balances.fold import Balances
from accountant.charges import Charge, StoredAnswer
from accountant.errors import LedgerMisuse, report_changed_answer
from accountant.events.digests import digest
from accountant.events.events import Committed, Record, Released, Reserved
from accountant.events.monitor_events import MonitorEnded
from accountant.events.owner_events import Settled
from accountant.store.journal import parse_events
from accountant.store.transaction import Transaction

COMMITTED = "committed"
RELEASED = "released"


def find_ending(transaction: Transaction, reservation: str | None) -> str | None:
    """Return how a reservation ended. Return None if it is open, or never existed.

    An owner's settlement spends its worst case.
    """
    if reservation is None:
        return None
    for event in parse_events(transaction, transaction.read_events_of_reservations([reservation])):
        match event:
            case Committed():
                return COMMITTED
            case Released() | Settled(untouched=True):
                return RELEASED
            case Settled():
                return "settled"
            case MonitorEnded():
                return "ended"
            case _:
                pass
    return None


def find_open_charge(transaction: Transaction, balances: Balances, reservation: str) -> Charge:
    """Return the charge of a question's open reservation.

    Raise `MonitorNotEnded` for a monitor's reservation, which only `Monitors.end_run` may end. Raise `LedgerMisuse`,
    with the reservation's end in its text, if it is no longer open.
    """
    balances.monitors.check_monitor_ended(reservation)
    if reservation in balances.open_reservations:
        return balances.open_reservations[reservation].charge
    raise LedgerMisuse(f"the reservation is {find_ending(transaction, reservation) or 'not in this ledger'}")


def read_stored_answer(
    transaction: Transaction, answer: bytes, records: list[Record], *, is_held: bool
) -> StoredAnswer:
    """Return a stored answer with its cost, from its reservation's events.

    Raise `LedgerUnavailable` if it is not the committed answer.
    """
    match parse_events(transaction, records)[:2]:
        case [Reserved(charge=charge), Committed(reservation=paid_by, spent=spent, answer=committed)] if (
            committed == digest(answer)
        ):
            return StoredAnswer(paid_by, charge, spent, answer, is_held=is_held)
    raise report_changed_answer()
