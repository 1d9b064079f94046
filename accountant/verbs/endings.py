"""What became of a reservation, as the log tells."""

from accountant.events.events import Committed, Released
from accountant.events.owner_events import Settled
from accountant.store.journal import events_of
from accountant.store.transaction import Transaction

COMMITTED = "committed"
RELEASED = "released"


def how_it_ended(transaction: Transaction, reservation: str | None) -> str | None:
    """How a reservation ended; None where it is open, or never was. An owner's settlement spends its worst case."""
    if reservation is None:
        return None
    for event in events_of(transaction, transaction.events_about([reservation])):
        match event:
            case Committed():
                return COMMITTED
            case Released() | Settled(untouched=True):
                return RELEASED
            case Settled():
                return "settled"
            case _:
                pass
    return None
