"""The only function that reserves: it checks a charge against all balances, then writes it."""

import uuid
from datetime import datetime

from accountant.balances.dependencies import Knowledge
from accountant.balances.filter import check_approved, check_fits
from accountant.balances.fold import Balances
from accountant.charges import Charge, Reservation, Wording
from accountant.events.events import Reserved
from accountant.limits import Limits
from accountant.store.attempts import Attempt
from accountant.store.journal import Journal
from accountant.store.transaction import Transaction


def reserve_charge(
    journal: Journal,
    transaction: Transaction,
    balances: Balances,
    charge: Charge,
    limits: Limits,
    *,
    at: datetime,
    knowledge: Knowledge,
    attempt: Attempt | None = None,
    wording: Wording | None = None,
) -> Reservation:
    """Reserve the charge in a write transaction, if every balance covers it and it needs no further approval.

    Raise `OverBudget`, `NotApproved`, `LedgerMisuse`, `AttemptTaken`.
    """
    charge = check_fits(balances, charge, limits, knowledge=knowledge)
    check_approved(balances, charge, limits)
    reservation = Reservation(uuid.uuid4().hex, charge, at)
    if attempt is not None:
        transaction.attempts.reserve(attempt, reservation.id)
    journal.append_event(transaction, Reserved(reservation.id, reservation.reserved_at, charge, wording))
    return reservation
