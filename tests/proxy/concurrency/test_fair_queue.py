"""One analyst's questions, however many and slow, leave places to the others."""

import gc
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import ExitStack
from itertools import count

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from proxy.concurrency.fair_queue import FairQueue, FairTurns
from proxy.concurrency.thread_pool import WorkerPool
from proxy.observe.telemetry import Telemetry

ANALYSTS = st.sampled_from(["ada", "bob", "eve"])


class Lines(RuleBasedStateMachine):
    """A line beside the plainest account of who waits and who has a place."""

    def __init__(self) -> None:
        super().__init__()
        self.places = 0
        self.line: FairQueue[int] = FairQueue(0)
        self.numbers = count()
        self.waiting: list[tuple[str, int]] = []
        self.at_work: list[tuple[str, int]] = []
        self.passed_by: dict[str, Counter[str]] = {}

    @initialize(places=st.integers(1, 6))
    def open(self, places: int) -> None:
        self.places, self.line = places, FairQueue(places)

    @property
    def share(self) -> int:
        return (self.places + 1) // 2

    def admit(self) -> None:
        for one in self.line.admit():
            self.waiting.remove(one)
            without_place = {analyst for analyst, _ in self.waiting} - {analyst for analyst, _ in self.at_work}
            self.at_work.append(one)
            self.passed_by.pop(one[0], None)
            for other in without_place - {one[0]}:
                self.passed_by.setdefault(other, Counter())[one[0]] += 1

    @rule(analyst=ANALYSTS, several=st.integers(1, 8))
    def come(self, analyst: str, several: int) -> None:
        for _ in range(several):
            one = (analyst, next(self.numbers))
            self.waiting.append(one)
            self.line.join(*one)
            self.admit()

    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        if self.at_work:
            analyst, _ = one = data.draw(st.sampled_from(self.at_work))
            self.at_work.remove(one)
            self.line.free_place(analyst)
            self.admit()

    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        everybody = [*self.waiting, *self.at_work]
        if everybody:
            one = data.draw(st.sampled_from(everybody))
            assert self.line.leave(*one) == (one in self.waiting)
            if one in self.waiting:
                self.waiting.remove(one)
                if one[0] not in {analyst for analyst, _ in self.waiting}:
                    self.passed_by.pop(one[0], None)

    @invariant()
    def nobody_has_more_than_half_and_no_place_is_free_in_vain(self) -> None:
        having = Counter(analyst for analyst, _ in self.at_work)
        assert len(self.at_work) <= self.places
        assert max(having.values(), default=0) <= self.share
        if len(self.at_work) < self.places:
            assert all(having[analyst] == self.share for analyst, _ in self.waiting)
        assert self.line.is_empty == (not self.waiting and not self.at_work)

    @invariant()
    def whoever_has_no_place_is_passed_by_at_most_once_by_each(self) -> None:
        having = {analyst for analyst, _ in self.at_work}
        for analyst in {analyst for analyst, _ in self.waiting} - having:
            assert max(self.passed_by.get(analyst, Counter()).values(), default=0) <= 1


TestLines = Lines.TestCase


def test_a_turn_is_for_whoever_waits_when_half_are_taken_by_one() -> None:
    turns = FairTurns(4)
    with ExitStack() as held:
        assert [held.enter_context(turns.take_turn("ada", timeout_ms=1)) for _ in range(3)] == [True, True, False]
        assert [held.enter_context(turns.take_turn(other, timeout_ms=1)) for other in ("bob", "eve")] == [True, True]
        with turns.take_turn("fay", timeout_ms=1) as has_turn:
            assert not has_turn
    with turns.take_turn("ada", timeout_ms=1) as has_turn:
        assert has_turn


def test_a_thread_that_waits_gets_the_turn_that_becomes_free() -> None:
    turns, heard = FairTurns(1), Future[bool]()

    def second() -> None:
        with turns.take_turn("bob", timeout_ms=60_000) as has_turn:
            heard.set_result(has_turn)

    with turns.take_turn("ada", timeout_ms=1):
        waiting = threading.Thread(target=second)
        waiting.start()
        assert not heard.done()
    waiting.join()
    assert heard.result()


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()


def test_questions_of_others_are_answered_while_one_analyst_has_many_in_line(gate: threading.Event) -> None:
    pool = WorkerPool(4, telemetry=Telemetry())
    ada, bob = pool.make_executor("ada"), pool.make_executor("bob")
    slow = [ada.submit(gate.wait) for _ in range(50)]
    assert [bob.submit(abs, -number).result() for number in range(9)] == list(range(9))
    assert not any(one.done() for one in slow)
    gate.set()
    pool.shutdown()
    assert all(one.result() for one in slow)
    with pytest.raises(RuntimeError, match="shut"):
        ada.submit(abs, 1)


def test_what_an_answer_holds_is_gone_with_it(gate: threading.Event) -> None:
    """And not at some later collection of garbage: it may be large."""
    pool, made = WorkerPool(1, telemetry=Telemetry()), list[weakref.ref[set[int]]]()

    def answer() -> set[int]:
        gate.wait()
        large = set[int]()
        made.append(weakref.ref(large))
        return large

    gc.disable()
    try:
        future = pool.make_executor("ada").submit(answer)
        gate.set()
        assert future.result() == set()
        del future
        pool.shutdown()
        assert made[0]() is None
    finally:
        gc.enable()


def test_a_share_of_the_pool_keeps_its_order_and_hands_on_what_is_raised(gate: threading.Event) -> None:
    pool, done = WorkerPool(1, telemetry=Telemetry()), list[int]()
    ada = pool.make_executor("ada")
    first = ada.submit(gate.wait)
    note: Callable[[int], None] = done.append
    others = [ada.submit(note, number) for number in range(5)]
    assert others[2].cancel()
    assert not first.cancel()
    wrong = ada.submit(divmod, 1, 0)
    gate.set()
    wait([wrong])
    assert isinstance(wrong.exception(), ZeroDivisionError)
    assert done == [0, 1, 3, 4]
    pool.shutdown()
