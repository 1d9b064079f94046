"""One question asked several times at once: whoever comes second does not reserve, but looks at what the first left.

Guarantee: what is under way is told to the analyst who asks it alone; who else asks the same has no part in it.
"""

import threading
from datetime import datetime, timedelta

from accountant.fold import Balances
from accountant.model import Charge
from accountant.store import Transaction


class Repeated(Exception):
    """The question has an answer in store by now, or its analyst has it under way. Nothing was written: look again."""


class Repetition:
    """Knows what is under way by the open reservations, whichever process made them, and by what failed in this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failed: set[str] = set()

    def give_up(self, reservation: str) -> None:
        """Nobody is to wait for a reservation any more, whose question failed and stays open, and spent."""
        with self._lock:
            self._failed.add(reservation)

    def check_first(
        self, transaction: Transaction, balances: Balances, charge: Charge, *, now: datetime, within: timedelta
    ) -> None:
        """Raise `Repeated` where an answer to the charge's question is in store, or where `is_under_way`."""
        question, version = charge.question, charge.family.version
        held = balances.held.get((charge.analyst, question, version))
        stored = transaction.answer(fingerprint=question, version=version, reservation=held)
        if stored is not None or self.is_under_way(
            balances, question, version, analyst=charge.analyst, now=now, within=within
        ):
            raise Repeated

    def is_under_way(
        self, balances: Balances, question: str, version: str, *, analyst: str, now: datetime, within: timedelta
    ) -> bool:
        """Whether the analyst has an open reservation for the question on that data version, made no longer ago.

        One that is older has failed, or died; so has one that was made later than that from now, by another clock.
        """
        with self._lock:
            return any(
                each.charge.question == question
                and (each.charge.analyst, each.charge.family.version) == (analyst, version)
                and abs(now - each.reserved_at) < within
                and each.id not in self._failed
                for each in balances.open.values()
            )
