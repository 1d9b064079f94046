"""The guard against paying twice for one question that is asked several times at once.

Guarantee: only the analyst who asked a question learns that it is under way. Another analyst who asks the same is
treated as if it were not.

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
    """The error for a question with a stored answer, or that its analyst already has in flight. Nothing was written.

    The caller should look for the answer again. `reservation` is the id of the open reservation, or None if there is an
    answer.
    """

    def __init__(self, reservation: str | None = None) -> None:
        super().__init__(reservation)
        self.reservation = reservation


class Repetition:
    """The guard against asking the same question twice at the same time.

    It reads the open reservations of all processes. It knows which of this process's questions still run. A reservation
    of another process counts as running while it is recent.
    """

    def __init__(self, *, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._is_at_work: dict[str, bool] = {}  # false for what failed in this process

    @contextmanager
    def hold_in_flight(self, reservation: str) -> Iterator[None]:
        """Mark the reservation as in flight while the block runs. After a failure it is no longer in flight."""
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

    def check_not_repeated(
        self, transaction: Transaction, balances: Balances, charge: Charge, *, within: timedelta | None
    ) -> None:
        """Raise `Repeated` if an answer to the charge's question is stored, or if `check_not_in_flight` raises it.

        Raise nothing if `within` is None: the question may then be repeated.
        """
        if within is None:
            return
        question, version = charge.question, charge.family.version
        held = balances.paid_answers.get((charge.analyst, question, version))
        if transaction.find_answer(fingerprint=question, version=version, reservation=held) is not None:
            raise Repeated
        self.check_not_in_flight(balances, question, version, analyst=charge.analyst, within=within)

    def check_not_in_flight(
        self, balances: Balances, question: str, version: str, *, analyst: str, within: timedelta | None
    ) -> None:
        """Raise `Repeated` if the analyst has an open reservation for the question on that data version.

        The reservation counts if this process still works on it, or if another process made it less than `within` ago.

        An older reservation of another process counts as dead. So does one that is more than `within` in the future, by
        another clock.
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
