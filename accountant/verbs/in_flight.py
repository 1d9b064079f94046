"""One question asked several times at once: the second asker does not reserve, but looks at what the first left.

Guarantee: what is under way is told to the analyst who asks it alone; who else asks the same has no part in it.

References: docs/decisions/0011-asking-once.md.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from accountant.balances.fold import Balances
from accountant.charges import Charge
from accountant.store.transaction import Transaction


class Repeated(Exception):
    """The question has an answer in store by now, or its analyst has it under way. Nothing was written: look again.

    `reservation` is the id of the one under way; None if there is an answer.
    """

    def __init__(self, reservation: str | None = None) -> None:
        super().__init__(reservation)
        self.reservation = reservation


class Repetition:
    """The guard against repeated questions.

    It reads the open reservations, whichever process made them: the outcome of those of this process, and the age of
    the others.
    """

    def __init__(self, *, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._is_at_work: dict[str, bool] = {}  # false for what failed in this process

    @contextmanager
    def hold_in_flight(self, reservation: str) -> Iterator[None]:
        """Mark the reservation as under way while the block runs, however long; after a failure it is not."""
        with self._lock:
            self._is_at_work[reservation] = True
        try:
            yield
        except BaseException:
            with self._lock:
                self._is_at_work[reservation] = False
            raise
        with self._lock:
            del self._is_at_work[reservation]

    def check_first(
        self, transaction: Transaction, balances: Balances, charge: Charge, *, within: timedelta | None
    ) -> None:
        """Raise `Repeated` if an answer to the charge's question is stored, or as `check_not_under_way` does.

        A question that may be repeated without limit raises nothing.
        """
        if within is None:
            return
        question, version = charge.question, charge.family.version
        held = balances.paid_answers.get((charge.analyst, question, version))
        if transaction.find_answer(fingerprint=question, version=version, reservation=held) is not None:
            raise Repeated
        self.check_not_under_way(balances, question, version, analyst=charge.analyst, within=within)

    def check_not_under_way(
        self, balances: Balances, question: str, version: str, *, analyst: str, within: timedelta | None
    ) -> None:
        """Raise `Repeated` if the analyst has an open reservation for the question on that data version.

        The question is under way in this process, or was reserved elsewhere recently.

        One of those that is older has failed, or died; so has one that was made later than that from now, by another
        clock.
        """
        if within is None:
            return
        now = self._clock()
        with self._lock:
            under_way = next(
                (
                    each.id
                    for each in balances.list_open_questions()
                    if each.charge.question == question
                    and (each.charge.analyst, each.charge.family.version) == (analyst, version)
                    and self._is_at_work.get(each.id, abs(now - each.reserved_at) < within)
                ),
                None,
            )
        if under_way is not None:
            raise Repeated(under_way)
