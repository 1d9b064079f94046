"""One question asked several times at the same moment: paid once, read once, answered for all who asked.

What waits says so through its `Withdrawn`, so that no test guesses how long it takes to begin to wait.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_bytes
from threading import Event

import psycopg
import pytest

from accountant.verbs.in_flight import Repeated
from mechanisms.noise.exact import ExactNoise
from planner.errors import KeyholeError
from proxy.cli.check import refresh
from proxy.open_policy.service import Service
from proxy.pipeline import claim as charging
from proxy.pipeline import ledger_verbs as spending
from proxy.pipeline import stages as pipeline
from proxy.pipeline.duplicate_wait import WaitPolicy
from proxy.pipeline.messages import Answer
from tests.end_to_end.certainty import asked
from tests.worlds import shop
from tests.worlds.house import (
    House,
    Lock,
    command,
    eventually,
    locked,
    most_spent,
    notices,
    opened,
    write_policy,
)

COST = pytest.approx(0.0767, abs=1e-4)
SQLITE = pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
OTHER = shop.BUSY.replace("sales", "sales WHERE quantity > -1")


class Withdrawn(Event):
    """Says when somebody begins to wait for it: a question that waits for another one, until it is withdrawn."""

    def __init__(self) -> None:
        super().__init__()
        self.is_waited_for = False

    def wait(self, timeout: float | None = None) -> bool:
        self.is_waited_for = True
        return super().wait(timeout)


@dataclass(frozen=True)
class Asker:
    """One question in a thread of its own, and how it is withdrawn."""

    withdrawn: Withdrawn
    answer: Future[Answer]

    @property
    def waits(self) -> bool:
        return self.withdrawn.is_waited_for


@dataclass(frozen=True)
class Shop:
    """Two services over one ledger, as two processes have them, and the lock on what they read."""

    here: Service
    there: Service
    policy: Path
    lock: Lock
    threads: ThreadPoolExecutor

    def ask(self, service: Service, sql: str = shop.BUSY, who: str = "ada") -> Asker:
        withdrawn = Withdrawn()
        question = replace(asked(service, sql), analyst=service.find_analyst(who), withdrawn=withdrawn)
        plan = pipeline.plan_asked_question(service, question)
        return Asker(withdrawn, self.threads.submit(pipeline.answer, service, plan, question))

    @property
    def events(self) -> int:
        return self.here.ledger.verify_everything()

    @property
    def spent(self) -> float:
        return most_spent(command("budget", self.policy), "sales")


@contextmanager
def a_shop(policy: Path, source_url: str) -> Iterator[Shop]:
    """The lock is the first thing to go, so that no thread outlives a test that fails."""
    with (
        Service.open(policy) as here,
        Service.open(policy) as there,
        ThreadPoolExecutor(8) as threads,
        locked(source_url, "sales") as lock,
    ):
        yield Shop(here, there, policy, lock, threads)


@pytest.fixture
def policy(source_url: str, ledger_url: str, tmp_path: Path) -> Path:
    """With a time limit that no test outlives: nobody goes on because time is up."""
    return write_policy(tmp_path, source=source_url, ledger=ledger_url, bobs=900.0, timeout_ms=600_000)


def test_in_threads_and_processes_it_is_paid_once_and_read_once(policy: Path, source_url: str) -> None:
    with a_shop(policy, source_url) as here:
        first = here.ask(here.here)
        here.lock.wait_for_somebody()
        others = [here.ask(service) for service in (here.here, here.there) for _ in range(2)]
        eventually(lambda: all(one.waits for one in others))
        assert not first.waits
        here.lock.wait_for_somebody(1)  # nobody else reads
        assert here.events == 1
        here.lock.release()
        answers = [one.answer.result() for one in (first, *others)]
        assert [one.is_reused for one in answers] == [False, True, True, True, True]
        assert {one.keys.keys for one in answers} == {tuple(shop.BUSY_STORES)}
        assert here.events == 2
        assert here.spent == COST


def test_of_many_that_begin_together_one_pays(policy: Path, source_url: str) -> None:
    with a_shop(policy, source_url) as here:
        many = [here.ask(service) for service in (here.here, here.there) for _ in range(4)]
        here.lock.wait_for_somebody(1)
        eventually(lambda: sum(one.waits for one in many) == 7)
        here.lock.wait_for_somebody(1)
        here.lock.release()
        assert sorted(one.answer.result().is_reused for one in many) == [False] + [True] * 7
        assert here.events == 2


@SQLITE
def test_other_questions_other_analysts_and_other_data_wait_for_nobody(policy: Path, source_url: str) -> None:
    """That somebody waits would tell that another analyst asks the same."""
    with a_shop(policy, source_url) as here:
        all_of_them = [here.ask(here.here)]
        here.lock.wait_for_somebody(1)
        all_of_them.append(here.ask(here.here, who="bob"))
        here.lock.wait_for_somebody(2)
        all_of_them.append(here.ask(here.there, OTHER))
        here.lock.wait_for_somebody(3)
        refresh(policy, "sales")
        all_of_them.append(here.ask(here.there))
        here.lock.wait_for_somebody(4)
        here.lock.release()
        assert not any(one.waits for one in all_of_them)
        *before, after = all_of_them
        assert all("data version changed" in str(one.answer.exception()) for one in before)
        assert not after.answer.result().is_reused
        assert here.events == 5


@SQLITE
def test_an_answer_that_came_while_a_question_waited_for_its_turn_is_told(policy: Path, source_url: str) -> None:
    """Bob looked for an answer before ada had one; it is looked for again where he would be charged."""
    with a_shop(policy, source_url) as here, ExitStack() as turns:
        here.lock.release()
        for analyst in ("cy", "dora"):
            with suppress(KeyholeError):  # once all turns are taken
                while True:
                    turns.enter_context(here.here.source.take_turn(analyst=analyst, timeout_ms=1))
        bob = here.ask(here.here, who="bob")
        turned = here.here.telemetry.registry
        eventually(lambda: turned.get_sample_value("keyhole_source_turns", {"state": "waiting"}) == 1)
        assert not here.ask(here.there).answer.result().is_reused
        spent = here.spent
        turns.close()
        assert bob.answer.result().is_reused
        assert here.spent == spent == COST
        assert [one.charge.shared for one in here.here.ledger.read_history(analyst="bob")] == [False]


@SQLITE
def test_a_question_that_waits_for_its_turn_while_the_version_changes_is_refused_unspent(
    policy: Path, source_url: str
) -> None:
    with a_shop(policy, source_url) as here, ExitStack() as turns:
        here.lock.release()
        for analyst in ("cy", "dora"):
            with suppress(KeyholeError):  # once all turns are taken
                while True:
                    turns.enter_context(here.here.source.take_turn(analyst=analyst, timeout_ms=1))
        late = here.ask(here.here)
        turned = here.here.telemetry.registry
        eventually(lambda: turned.get_sample_value("keyhole_source_turns", {"state": "waiting"}) == 1)
        refresh(policy, "sales")
        turns.close()
        with pytest.raises(KeyholeError, match="the data version changed") as refusal:
            late.answer.result()
        assert "Nothing was spent" in (refusal.value.detail or "")
        assert here.events == 0


class FailingOnce(ExactNoise):
    """The system's noise, which fails the first time that it is asked for."""

    def __init__(self, draw: Callable[[int], bytes]) -> None:
        self.failed = False

        def failing(size: int) -> bytes:
            if self.failed:
                return draw(size)
            self.failed = True
            raise ZeroDivisionError

        super().__init__(failing)


@SQLITE
def test_where_the_first_fails_one_goes_on_and_the_others_wait_for_that(
    policy: Path, source_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What failed stays paid, and nobody waits for it any more."""
    with a_shop(policy, source_url) as here:
        monkeypatch.setattr(here.here, "noise", FailingOnce(token_bytes))
        first = here.ask(here.here)
        here.lock.wait_for_somebody()
        others = [here.ask(here.here) for _ in range(3)]
        eventually(lambda: all(one.waits for one in others))
        here.lock.release()
        with pytest.raises(ZeroDivisionError):
            first.answer.result()
        assert sorted(one.answer.result().is_reused for one in others) == [False, True, True]
        assert here.events == 3
        assert len(here.here.ledger.list_open_reservations()) == 1


class HeldBack(ExactNoise):
    """The system's noise, which comes once it is released."""

    def __init__(self) -> None:
        self.released = Event()

        def late(size: int) -> bytes:
            self.released.wait()
            return token_bytes(size)

        super().__init__(late)


@SQLITE
def test_an_own_question_under_way_is_waited_for_though_another_analyst_has_an_answer(
    policy: Path, source_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else bob would pay for ada's answer and for his own, and be told both."""
    noise = HeldBack()
    with a_shop(policy, source_url) as here:
        monkeypatch.setattr(here.there, "noise", noise)
        first = here.ask(here.there, who="bob")
        here.lock.wait_for_somebody(1)
        adas = here.ask(here.here)
        here.lock.wait_for_somebody(2)
        here.lock.release()
        try:
            assert not adas.answer.result().is_reused
            again = here.ask(here.here, who="bob")
            eventually(lambda: again.waits or again.answer.done())
            assert not again.answer.done()
        finally:
            noise.released.set()
        assert not first.answer.result().is_reused
        assert again.answer.result().reservation == first.answer.result().reservation
        assert [one.charge.shared for one in here.here.ledger.read_history(analyst="bob")] == [True]


@SQLITE
def test_new_data_meanwhile_refuse_the_first_and_are_what_the_second_is_asked_about(
    policy: Path, source_url: str
) -> None:
    """Both were asked on the old data: who waits has paid nothing for these, and pays for the new ones."""
    with a_shop(policy, source_url) as here:
        first = here.ask(here.here)
        here.lock.wait_for_somebody()
        second = here.ask(here.here)
        eventually(lambda: second.waits)
        new = refresh(policy, "sales")
        here.lock.release()
        with pytest.raises(KeyholeError, match="the data version changed"):
            first.answer.result()
        assert second.answer.result().version == new
        versions = [one.charge.family.version for one in here.here.ledger.read_history()]
        assert [version == new for version in versions] == [False, True]


@SQLITE
def test_who_waits_can_be_withdrawn_and_has_spent_nothing(policy: Path, source_url: str) -> None:
    with a_shop(policy, source_url) as here:
        first = here.ask(here.here)
        here.lock.wait_for_somebody()
        second = here.ask(here.here)
        eventually(lambda: second.waits)
        second.withdrawn.set()
        with pytest.raises(KeyholeError, match="KH409"):
            second.answer.result()
        assert not first.answer.done()
        assert here.events == 1
        here.lock.release()
        assert not first.answer.result().is_reused


@SQLITE
def test_who_waits_holds_nothing_that_others_need(policy: Path, source_url: str) -> None:
    """Five wait, more than the source has connections for one analyst, and another question is answered at once."""
    with a_shop(policy, source_url) as here:
        first = here.ask(here.here)
        here.lock.wait_for_somebody()
        waiting = [here.ask(here.here) for _ in range(5)]
        eventually(lambda: all(one.waits for one in waiting))
        answer = here.ask(here.here, shop.WARDS).answer.result()
        assert answer.keys.keys == tuple(shop.BUSY_WARDS)
        assert not first.answer.done()
        here.lock.release()
        assert all(one.answer.result().is_reused for one in waiting)


@SQLITE
def test_through_sessions(policy: Path, source_url: str) -> None:
    """A dashboard's sessions; one of them is closed while it waits, another one cancels and asks something else."""
    with opened(policy) as house, ThreadPoolExecutor(3) as threads, ExitStack() as sessions:
        one, two, three = (sessions.enter_context(house.connect()) for _ in range(3))
        lock = sessions.enter_context(locked(source_url, "sales"))
        running = threads.submit(one.execute, shop.BUSY)
        lock.wait_for_somebody()
        heard = notices(two)
        again = threads.submit(two.execute, shop.BUSY)
        late = threads.submit(three.execute, shop.BUSY)
        eventually(lambda: at_work(house) == 3)
        three.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled, match="KH409"):
            late.result()
        assert three.execute(shop.WARDS).fetchall() == shop.BUSY_WARDS
        assert not running.done()
        lock.release()
        assert [answer.result().fetchall() for answer in (running, again)] == [shop.BUSY_STORES] * 2
        assert any("nothing is spent" in line for line in heard)
        assert house.events == 4  # the wards' two with them
        assert house.most_spent("sales") == COST


def at_work(house: House) -> float | None:
    """In how many threads questions are answered."""
    return house.service.telemetry.registry.get_sample_value("keyhole_question_workers", {"state": "busy"})


@SQLITE
def test_what_was_reserved_in_a_process_that_died_is_waited_for_no_longer_than_it_may_take(
    source_url: str, ledger_url: str, tmp_path: Path
) -> None:
    policy = write_policy(tmp_path, source=source_url, ledger=ledger_url, timeout_ms=2000)
    with Service.open(policy) as service:
        question = asked(service, shop.BUSY)
        plan = pipeline.plan_asked_question(service, question)
        with Service.open(policy) as dying:
            claim = charging.make_claim(
                plan, dying.catalog, asked=question, version=dying.find_version(plan.question.table)
            )
            dying.ledger.reserve(claim.charge, claim.limits)
        assert not pipeline.answer(service, plan, question).is_reused
        assert service.ledger.verify_everything() == 3


@SQLITE
def test_an_answer_that_is_found_as_time_is_up_is_told(policy: Path, source_url: str) -> None:
    """Bob's turn came at the last moment, and ada's answer before it: nothing says that anybody had asked before."""
    with a_shop(policy, source_url) as here:
        here.lock.release()
        adas = here.ask(here.here).answer.result()
        question = replace(asked(here.here, shop.BUSY), analyst=here.here.find_analyst("bob"))
        plan = pipeline.plan_asked_question(here.here, question)
        claim = charging.make_claim(plan, here.here.catalog, asked=question, version=adas.version)
        patience = WaitPolicy(question, timeout_ms=0)
        told = None
        with patience.wait_for_duplicate():
            spending.reserve(here.here, claim, None)
        with patience.wait_for_duplicate():
            told = spending.find_answer_or_noise(here.here, claim)
        assert isinstance(told, Answer)
        assert told.is_reused


@SQLITE
def test_a_wait_has_an_end(policy: Path) -> None:
    """What another process never ends is not waited for without end; nothing is spent."""
    with Service.open(policy) as service:
        question = asked(service, shop.BUSY)
        patience = WaitPolicy(question, timeout_ms=1)

        def repeat() -> None:
            while True:
                with patience.wait_for_duplicate():
                    raise Repeated

        with pytest.raises(KeyholeError, match="KH501") as refusal:
            repeat()
        assert refusal.value.detail is not None
        assert "spent nothing" in refusal.value.detail
