"""What comes of reading is told at moments that no row decides; failures are counted per analyst, and never for ever.

The clock is the test's own: how long the machine takes for anything does not enter.
"""

import threading
from contextlib import ExitStack

import pytest

from planner.errors import KeyholeError
from proxy.sources import public_moments
from proxy.sources.failures import MOST_FAILURES, SourceFailures
from proxy.sources.public_moments import PublicMoments
from tests.effort import PATIENCE_S


def fail(failures: SourceFailures, analyst: str) -> None:
    with pytest.raises(KeyholeError, match="KH501"), failures.count_failure(analyst):
        raise KeyholeError("KH501", "the source could not answer")


def test_an_answer_is_not_counted() -> None:
    failures = SourceFailures()
    for _ in range(2 * MOST_FAILURES):
        with failures.count_failure("ann"):
            pass
    failures.check("ann")


def test_too_many_failures_of_one_analyst_are_refused_and_nobody_elses() -> None:
    failures = SourceFailures()
    for _ in range(MOST_FAILURES):
        failures.check("ann")
        fail(failures, "ann")
    with pytest.raises(KeyholeError) as caught:
        failures.check("ann")
    assert caught.value.code == "KH503"
    failures.check("bob")


def test_failures_are_forgotten_after_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = SourceFailures()
    for _ in range(MOST_FAILURES):
        fail(failures, "ann")
    monkeypatch.setattr("proxy.sources.failures.WINDOW_S", 0.0)
    failures.check("ann")


class Clock:
    """A clock that moves when somebody sleeps, or when it is told to."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def read_for(self, seconds: float, *, fails: bool = False) -> int:
        self.now_s += seconds
        if fails:
            raise KeyholeError("KH501", "the source could not answer")
        return 7


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(public_moments, "time", clock)
    return clock


def told_at(clock: Clock, *, every_ms: int, reads_s: float, fails: bool = False, timeout_ms: int = 10_000) -> float:
    """After how many seconds the outcome of so long a reading is told."""
    started = clock.now_s
    moments = PublicMoments(timeout_ms=timeout_ms, every_ms=every_ms)
    try:
        with ExitStack() as keeping, moments.delay_release():
            moments.read(lambda: clock.read_for(reads_s, fails=fails), keeping=keeping)
    except KeyholeError:
        assert fails
    return clock.now_s - started


@pytest.mark.parametrize("reads_s", [0.001, 0.03, 9.5])
def test_a_failure_is_told_at_the_timeout_whenever_it_happened(clock: Clock, reads_s: float) -> None:
    assert told_at(clock, every_ms=0, reads_s=reads_s, fails=True) == pytest.approx(10.0)


def test_an_answer_is_told_at_once_unless_the_owner_wants_moments(clock: Clock) -> None:
    assert told_at(clock, every_ms=0, reads_s=0.03) == pytest.approx(0.03)


@pytest.mark.parametrize(("reads_s", "told_s"), [(0.001, 0.25), (0.249, 0.25), (0.251, 0.5), (1.9, 2.0)])
def test_answers_are_told_at_multiples_alone(clock: Clock, reads_s: float, told_s: float) -> None:
    assert told_at(clock, every_ms=250, reads_s=reads_s) == pytest.approx(told_s)


@pytest.mark.parametrize("reads_s", [0.001, 9.9])
def test_failures_are_told_at_the_first_multiple_from_the_timeout_on(clock: Clock, reads_s: float) -> None:
    assert told_at(clock, every_ms=3000, reads_s=reads_s, fails=True) == pytest.approx(12.0)


def test_what_fails_behind_the_reading_is_told_at_a_multiple(clock: Clock) -> None:
    started, moments = clock.now_s, PublicMoments(timeout_ms=10_000, every_ms=250)
    clock.now_s += 0.3
    with pytest.raises(ValueError, match="behind"), moments.delay_release():
        raise ValueError("behind the reading")
    assert clock.now_s - started == pytest.approx(0.5)


def test_an_engine_that_does_not_stop_is_not_waited_for_and_keeps_its_turn_until_it_has() -> None:
    stopping, left = threading.Event(), threading.Event()

    def read() -> int:
        assert stopping.wait(PATIENCE_S)
        return 7

    moments = PublicMoments(timeout_ms=1, every_ms=0)
    with ExitStack() as keeping:
        keeping.callback(left.set)
        with pytest.raises(KeyholeError) as caught, moments.delay_release():
            moments.read(read, keeping=keeping)
    assert caught.value.code == "KH501"
    assert not left.is_set()
    stopping.set()
    assert left.wait(PATIENCE_S)


def test_the_turn_is_given_back_with_an_answer() -> None:
    left = threading.Event()
    moments = PublicMoments(timeout_ms=round(1000 * PATIENCE_S), every_ms=0)
    with ExitStack() as keeping:
        keeping.callback(left.set)
        assert moments.read(lambda: 7, keeping=keeping) == 7
        assert not left.is_set()
    assert left.is_set()
