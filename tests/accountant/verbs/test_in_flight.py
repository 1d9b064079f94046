"""A question that is asked several times at once is reserved once, in either store, whoever else asks the same."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from accountant.charges import NANO, Charge, Reservation
from accountant.ledger import Ledger
from accountant.limits import Limits
from accountant.store.attempts import Attempt
from accountant.verbs.in_flight import Repeated
from tests.accountant.balances.test_noise_paths import drawn
from tests.accountant.examples import all_of, charge, limits

WITHIN = timedelta(seconds=30)
MOMENT = datetime(2026, 3, 1, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = MOMENT

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(ledger_url: str, clock: Clock) -> Iterator[Ledger]:
    with Ledger.open(ledger_url, clock=clock) as opened:
        yield opened


@pytest.fixture
def other(ledger_url: str, ledger: Ledger, clock: Clock) -> Iterator[Ledger]:
    """The same ledger as another process has it open."""
    with Ledger.open(ledger_url, clock=clock) as opened:
        yield opened


def once(ledger: Ledger, asked: Charge, caps: Limits | None = None) -> Reservation:
    return ledger.reserve(asked, limits(99 * NANO) if caps is None else caps, once_within=WITHIN)


def is_repeated(ledger: Ledger, asked: Charge) -> bool:
    """Whether looking and reserving both say so; they write nothing then."""
    events = ledger.verify_everything()
    version = asked.family.version
    try:
        assert ledger.find_answer(asked.question, version, analyst=asked.analyst, once_within=WITHIN) is None
    except Repeated:
        with pytest.raises(Repeated):
            once(ledger, asked)
        assert ledger.verify_everything() == events
        return True
    ledger.release(once(ledger, asked))
    return False


def test_what_its_analyst_has_under_way_is_reserved_by_nobody_else_and_told_to_nobody_else(
    ledger: Ledger, other: Ledger
) -> None:
    first = once(ledger, charge())
    for one in (ledger, other):
        assert is_repeated(one, charge())
        assert not is_repeated(one, charge(analyst="bob"))
        assert not is_repeated(one, charge(question="q2"))
        assert not is_repeated(one, charge(version="v2"))
        assert one.find_answer("q1", "v1", analyst="ann") is None
    ledger.commit(first, all_of(first.charge), None)
    assert not is_repeated(other, charge())


def test_it_comes_before_the_balances_that_the_first_has_used(ledger: Ledger) -> None:
    once(ledger, charge(NANO), limits(NANO))
    with pytest.raises(Repeated):
        once(ledger, charge(NANO), limits(NANO))


def test_what_is_answered_is_reserved_by_nobody(ledger: Ledger, other: Ledger) -> None:
    """Whoever asks: the answer is in store for every analyst, at its price."""
    first = once(ledger, charge())
    ledger.commit(first, all_of(first.charge), b"FR")
    for analyst in ("ann", "bob"):
        with pytest.raises(Repeated):
            once(other, charge(analyst=analyst))
        stored = other.find_answer("q1", "v1", analyst=analyst, once_within=WITHIN)
        assert stored is not None
        assert stored.is_held == (analyst == "ann")
    assert other.verify_everything() == 2
    once(other, charge(version="v2"))


def test_what_is_read_of_noise_paths_is_read_once(ledger: Ledger, other: Ledger) -> None:
    state = drawn(ledger, losses=[NANO] * 3)
    asked = charge(NANO, question="q2", analyst="bob", shared=False)

    def read(one: Ledger) -> None:
        one.charge_reading(asked, limits(), spent=all_of(asked), answer=b"FR", reading=(state,), once_within=WITHIN)

    read(ledger)
    with pytest.raises(Repeated):
        read(other)
    assert other.verify_everything() == 4


@pytest.mark.parametrize("seconds", [30, 3600, -30, -3600])
def test_who_cannot_be_at_work_any_more_is_waited_for_no_longer(
    ledger: Ledger, other: Ledger, clock: Clock, seconds: int
) -> None:
    """Failed or dead; or, where it lies ahead, made by a clock that nobody can wait for."""
    once(ledger, charge())
    clock.now = MOMENT + timedelta(seconds=seconds) * (1 - 1e-6)
    assert is_repeated(other, charge()) == (abs(seconds) == 30)
    clock.now = MOMENT + timedelta(seconds=seconds)
    assert not is_repeated(other, charge())


def test_what_failed_stays_spent_and_is_waited_for_no_longer(ledger: Ledger, other: Ledger) -> None:
    failed = once(ledger, charge(NANO))
    with suppress(ZeroDivisionError), ledger.hold_in_flight(failed):
        assert is_repeated(ledger, charge(NANO))
        raise ZeroDivisionError
    assert not is_repeated(ledger, charge(NANO))
    assert [one.id for one in ledger.list_open_reservations()] == [failed.id]
    assert is_repeated(other, charge(NANO))  # which does not know it, and waits until its time is over


def test_what_is_at_work_in_this_process_is_waited_for_however_old_it_is(
    ledger: Ledger, other: Ledger, clock: Clock
) -> None:
    first = once(ledger, charge())
    with ledger.hold_in_flight(first):
        clock.now += 2 * WITHIN
        assert is_repeated(ledger, charge())
        assert not is_repeated(other, charge())  # which cannot know
        ledger.commit(first, all_of(first.charge), None)
        assert not is_repeated(ledger, charge())
    assert not is_repeated(ledger, charge())


def test_an_attempt_that_was_repeated_has_reserved_nothing(ledger: Ledger) -> None:
    first = once(ledger, charge())
    attempt = ledger.idempotency.begin_attempt("ann", "k", request="r", lease=WITHIN, keep=WITHIN)
    assert isinstance(attempt, Attempt)
    with pytest.raises(Repeated):
        ledger.reserve(charge(), limits(), attempt=attempt, once_within=WITHIN)
    ledger.release(first)
    ledger.reserve(charge(), limits(), attempt=attempt, once_within=WITHIN)


def test_a_reader_who_came_to_hold_another_answer_is_told_that_one_and_not_charged(ledger: Ledger) -> None:
    """Ann's answer was found for bob; before he was charged for it, an own run of his ended."""
    own = ledger.reserve(charge(analyst="bob"), limits())
    hers = ledger.reserve(charge(), limits())
    ledger.commit(hers, all_of(hers.charge), b"hers")
    found = ledger.find_answer("q1", "v1", analyst="bob")
    assert found is not None
    assert (found.answer, found.is_held) == (b"hers", False)
    ledger.commit(own, all_of(own.charge), b"his")
    with pytest.raises(Repeated):
        ledger.charge_reader(found.make_reading_charge("bob"), limits(), answer=found)
    assert ledger.verify_everything() == 4
    again = ledger.find_answer("q1", "v1", analyst="bob", once_within=WITHIN)
    assert again is not None
    assert (again.answer, again.is_held) == (b"his", True)
    assert ledger.charge_reader(again.make_reading_charge("bob"), limits(), answer=again) is None


def test_a_reader_with_an_own_run_under_way_waits_for_its_answer_and_is_not_charged(
    ledger: Ledger, other: Ledger
) -> None:
    """Else bob would pay for ann's answer and for his own, and be told both."""
    hers = ledger.reserve(charge(), limits())
    early = ledger.reserve(charge(analyst="bob"), limits())
    ledger.commit(hers, all_of(hers.charge), b"hers")
    ledger.release(early)
    found = other.find_answer("q1", "v1", analyst="bob", once_within=WITHIN)
    assert found is not None
    own = ledger.reserve(charge(analyst="bob"), limits())
    for one in (ledger, other):
        with pytest.raises(Repeated):
            one.find_answer("q1", "v1", analyst="bob", once_within=WITHIN)
        with pytest.raises(Repeated):
            one.charge_reader(found.make_reading_charge("bob"), limits(), answer=found, once_within=WITHIN)
        assert one.find_answer("q1", "v1", analyst="ann", once_within=WITHIN) is not None
        assert one.find_answer("q1", "v1", analyst="eve", once_within=WITHIN) is not None
    assert other.verify_everything() == 5
    with suppress(ZeroDivisionError), ledger.hold_in_flight(own):
        raise ZeroDivisionError
    assert ledger.find_answer("q1", "v1", analyst="bob", once_within=WITHIN) == found
    assert (
        ledger.charge_reader(found.make_reading_charge("bob"), limits(), answer=found, once_within=WITHIN) is not None
    )


def test_of_many_at_once_one_reserves(ledger_url: str) -> None:
    """Each with a store of its own, as other processes have."""
    ready = threading.Barrier(6)
    reserved: list[str] = []

    def ask() -> None:
        with Ledger.open(ledger_url, clock=lambda: datetime.now(UTC)) as own:
            ready.wait()
            for _ in range(3):
                try:
                    reserved.append(own.reserve(charge(), limits(99 * NANO), once_within=timedelta(days=1)).id)
                except Repeated:
                    continue

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Ledger.open(ledger_url, clock=lambda: datetime.now(UTC)) as own:
        assert [one.id for one in own.list_open_reservations()] == reserved
    assert len(reserved) == 1
