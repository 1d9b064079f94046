"""The waiting of a question: for its turn at the source, or for the same question that its analyst already asked.

Guarantee: a waiting question holds no connection, lock or turn that another question needs, and has spent nothing. It
only ever waits for questions of the same analyst.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event

from accountant.verbs.in_flight import Repeated
from planner.question.plan import Plan
from proxy.open_policy.service import Service
from proxy.pipeline import ledger_verbs
from proxy.pipeline.claim import Claim, make_current_claim
from proxy.pipeline.messages import Answer, Asked
from proxy.pipeline.noise_reuse import StoredNoise
from proxy.pipeline.question_refusals import refuse_duplicate

AnswerFromData = Callable[[Service, Claim, StoredNoise, "WaitPolicy"], Answer]
_LEAST_S, _MOST_S = 0.005, 0.25  # a question takes some 20 ms, a slow one four looks a second at the ledger
_PART = 4  # a look after every quarter of the time waited so far


def answer_after_duplicates(service: Service, plan: Plan, asked: Asked, answer_from_data: AnswerFromData) -> Answer:
    """Return the constant or stored answer, if there is one. Otherwise call `answer_from_data`.

    If an equal question of the same analyst is in flight, wait for its answer. If the data version changes meanwhile,
    the question counts as a different one.
    """
    claim = make_current_claim(service, plan, asked)
    if not plan.reads_data:
        return Answer.make_constant(plan, version=claim.version)
    patience = WaitPolicy(asked, timeout_ms=service.catalog.statement_timeout_ms)
    while True:
        with patience.wait_for_duplicate():
            stored = ledger_verbs.find_answer_or_noise(service, claim)
            if isinstance(stored, Answer):
                return stored
            if patience.waited and claim.version != service.find_version(plan.question.table):
                claim = make_current_claim(service, plan, asked)
                continue
            return answer_from_data(service, claim, stored, patience)


class WaitPolicy:
    """The limit on a question's waiting before it reserves: `timeout_ms` in total, counted from construction."""

    def __init__(self, asked: Asked, *, timeout_ms: int) -> None:
        self._asked = asked
        self._started = time.monotonic()
        self._timeout_s = timeout_ms / 1000
        self._withdrawn = asked.withdrawn or Event()
        self._is_late = False
        self.waited = False

    @property
    def left_ms(self) -> int:
        """Return the remaining milliseconds."""
        return max(0, round(1000 * (self._timeout_s - self._passed_s)))

    @property
    def _passed_s(self) -> float:
        return time.monotonic() - self._started

    @contextmanager
    def take_turn(self, service: Service) -> Iterator[None]:
        """Hold a turn at the source during the block. Raise KH409, KH411, KH501 and KH503."""
        analyst = self._asked.analyst.name
        service.failures.check(analyst)
        with service.take_turn(analyst=analyst, timeout_ms=self.left_ms):
            self._asked.check_not_withdrawn()
            yield

    @contextmanager
    def wait_for_duplicate(self) -> Iterator[None]:
        """Run the block. If the block raises `Repeated`, suppress the error and wait a short time.

        `Repeated` means that the same question is being answered or was just answered. The caller then runs the block
        again. Raise KH409 as soon as the question is withdrawn. Raise KH501 if the block has run once more after the
        time limit.
        """
        try:
            yield
        except Repeated:
            self.waited = True
        else:
            return
        left_s = self._timeout_s - self._passed_s
        if left_s <= 0 and self._is_late:
            raise refuse_duplicate()
        self._is_late = left_s <= 0
        self._withdrawn.wait(max(0.0, min(max(self._passed_s / _PART, _LEAST_S), _MOST_S, left_s)))
        self._asked.check_not_withdrawn()
