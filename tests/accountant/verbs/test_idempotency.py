"""Requests under one key spend once: any interleaving, any death, both stores."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from accountant.charges import Cells, Charge, Family, Spent
from accountant.ledger import Ledger
from accountant.limits import Limits
from accountant.store.attempts import Attempt, AttemptTaken
from accountant.verbs import idempotency
from accountant.verbs.idempotency import AttemptState, EarlierAttempt, OtherRequest, TooManyKeys

LEASE, KEEP = timedelta(minutes=1), timedelta(days=7)
FAMILY = Family("visits", "row", ("ward",), "", "v1", frozenset())
CELLS = Cells((("ward", ("A", "B")),))
CHARGE = Charge("question", "ada", FAMILY, CELLS, 1000, 0, shared=True)
LIMITS = Limits(
    per_predicate_nano=10**12,
    per_unit_nano=None,
    per_query_nano=None,
    analyst_per_predicate_nano=None,
    analyst_per_unit_nano=None,
    separates_analysts=False,
)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(ledger_url: str, clock: Clock) -> Iterator[Ledger]:
    with Ledger.open(ledger_url, clock=clock) as opened:
        yield opened


def begin(ledger: Ledger, key: str = "k", *, analyst: str = "ada", request: str = "r") -> Attempt | EarlierAttempt:
    return ledger.idempotency.begin_attempt(analyst, key, request=request, lease=LEASE, keep=KEEP)


def begun(ledger: Ledger, key: str = "k") -> Attempt:
    attempt = begin(ledger, key)
    assert isinstance(attempt, Attempt)
    return attempt


def earlier(ledger: Ledger, key: str = "k") -> EarlierAttempt:
    found = begin(ledger, key)
    assert isinstance(found, EarlierAttempt)
    return found


def test_the_first_goes_ahead_and_others_learn_what_became_of_it(ledger: Ledger, clock: Clock) -> None:
    attempt = begun(ledger)
    assert earlier(ledger).state is AttemptState.RUNNING
    reservation = ledger.reserve(CHARGE, LIMITS, attempt=attempt)
    assert earlier(ledger).state is AttemptState.RUNNING
    ledger.commit(reservation, Spent.from_uniform(500, unit_epsilon_nano=0), b"answer")
    found = earlier(ledger)
    assert (found.state, found.answer, found.reservation) == (AttemptState.ANSWERED, reservation.id, reservation.id)
    ledger.idempotency.store_response(attempt, response=b"told", answer=reservation.id)
    clock.now += timedelta(days=6)
    found = earlier(ledger)
    assert (found.state, found.response, found.answer) == (AttemptState.ENDED, b"told", reservation.id)
    assert ledger.verify_everything() == 2


def test_who_died_before_reserving_is_replaced_and_can_spend_nothing_any_more(ledger: Ledger, clock: Clock) -> None:
    late = begun(ledger)
    clock.now += LEASE + timedelta(seconds=1)
    attempt = begun(ledger)
    with pytest.raises(AttemptTaken):
        ledger.reserve(CHARGE, LIMITS, attempt=late)
    assert ledger.verify_everything() == 0
    ledger.reserve(CHARGE, LIMITS, attempt=attempt)
    ledger.idempotency.store_refusal(late, response=b"late")
    assert earlier(ledger).response is None


def test_who_died_after_reserving_has_spent(ledger: Ledger, clock: Clock) -> None:
    reservation = ledger.reserve(CHARGE, LIMITS, attempt=begun(ledger))
    clock.now += LEASE + timedelta(seconds=1)
    found = earlier(ledger)
    assert (found.state, found.reservation) == (AttemptState.SPENT, reservation.id)
    ledger.release(reservation)
    begun(ledger)


def test_a_refusal_that_spent_nothing_frees_the_key(ledger: Ledger) -> None:
    ledger.idempotency.store_refusal(begun(ledger), response=b"refused")
    attempt = begun(ledger)
    ledger.reserve(CHARGE, LIMITS, attempt=attempt)
    ledger.idempotency.store_refusal(attempt, response=b"failed")
    found = earlier(ledger)
    assert (found.state, found.response) == (AttemptState.ENDED, b"failed")


def test_a_refusal_hides_no_answer_that_was_committed(ledger: Ledger) -> None:
    """The storage failed, as far as the one who asked could tell, and had written all the same."""
    attempt = begun(ledger)
    reservation = ledger.reserve(CHARGE, LIMITS, attempt=attempt)
    ledger.commit(reservation, Spent.from_uniform(500, unit_epsilon_nano=0), b"answer")
    ledger.idempotency.store_refusal(attempt, response=b"not available")
    found = earlier(ledger)
    assert (found.state, found.answer, found.response) == (AttemptState.ANSWERED, reservation.id, None)


def test_a_key_stands_for_one_request_of_one_analyst(ledger: Ledger) -> None:
    begun(ledger)
    with pytest.raises(OtherRequest):
        begin(ledger, request="another")
    assert isinstance(begin(ledger, analyst="bob", request="another"), Attempt)


def test_keys_expire(ledger: Ledger, clock: Clock) -> None:
    reservation = ledger.reserve(CHARGE, LIMITS, attempt=begun(ledger))
    clock.now += KEEP
    assert earlier(ledger).reservation == reservation.id
    clock.now += timedelta(microseconds=1)
    begun(ledger)


def test_a_clock_that_was_wrong_blocks_no_key(ledger: Ledger, clock: Clock) -> None:
    """Begun in a year that has not come: taken for dead, and taken over. It can reserve nothing any more."""
    clock.now += timedelta(days=3650)
    late = begun(ledger)
    clock.now -= timedelta(days=3650)
    begun(ledger)
    with pytest.raises(AttemptTaken):
        ledger.reserve(CHARGE, LIMITS, attempt=late)
    clock.now -= LEASE / 2
    assert earlier(ledger).state is AttemptState.RUNNING


def test_one_attempt_reserves_once(ledger: Ledger) -> None:
    attempt = begun(ledger)
    ledger.reserve(CHARGE, LIMITS, attempt=attempt)
    with pytest.raises(AttemptTaken):
        ledger.reserve(CHARGE, LIMITS, attempt=attempt)
    assert ledger.verify_everything() == 1


def test_nobody_has_keys_without_end(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "MOST_KEYS_OF_AN_ANALYST", 3)
    for number in range(3):
        begun(ledger, str(number))
    with pytest.raises(TooManyKeys):
        begin(ledger, "3")
    assert earlier(ledger, "2").state is AttemptState.RUNNING
    assert isinstance(begin(ledger, "3", analyst="bob"), Attempt)


def test_only_who_paid_or_read_is_given_a_stored_answer(ledger: Ledger) -> None:
    reservation = ledger.reserve(CHARGE, LIMITS)
    assert ledger.idempotency.find_answer(reservation.id, analyst="ada") is None
    ledger.commit(reservation, Spent.from_uniform(500, unit_epsilon_nano=0), b"answer")
    ada = ledger.idempotency.find_answer(reservation.id, analyst="ada")
    assert ada is not None
    assert ada.answer == b"answer"
    assert ledger.idempotency.find_answer(reservation.id, analyst="bob") is None
    assert ledger.idempotency.find_answer("0" * 32, analyst="ada") is None
    found = ledger.find_answer("question", "v1", analyst="bob")
    assert found is not None
    attempt = ledger.idempotency.begin_attempt("bob", "k", request="r", lease=LEASE, keep=KEEP)
    assert isinstance(attempt, Attempt)
    ledger.charge_reader(found.make_reading_charge("bob"), LIMITS, answer=found, attempt=attempt)
    assert ledger.idempotency.find_answer(reservation.id, analyst="bob") is not None
    read = ledger.idempotency.begin_attempt("bob", "k", request="r", lease=LEASE, keep=KEEP)
    assert isinstance(read, EarlierAttempt)
    assert (read.state, read.answer) == (AttemptState.ANSWERED, reservation.id)
    assert read.reservation != reservation.id


def test_of_many_at_once_one_reserves(ledger_url: str) -> None:
    """Each with a store of its own, as other processes have."""
    ready = threading.Barrier(6)
    reserved: list[str] = []

    def repeat() -> None:
        with Ledger.open(ledger_url, clock=lambda: datetime.now(UTC)) as own:
            ready.wait()
            for _ in range(3):
                attempt = begin(own)
                if isinstance(attempt, Attempt):
                    reserved.append(own.reserve(CHARGE, LIMITS, attempt=attempt).id)

    threads = [threading.Thread(target=repeat) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reserved) == 1
    with Ledger.open(ledger_url, clock=lambda: datetime.now(UTC)) as own:
        assert [one.id for one in own.list_open_reservations()] == reserved
