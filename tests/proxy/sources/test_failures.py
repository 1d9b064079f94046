"""Failures of the source are told at the timeout, counted per analyst, and never for ever."""

import time

import pytest

from planner.errors import KeyholeError
from proxy.sources.failures import MOST_FAILURES, SourceFailures


def fail(failures: SourceFailures, analyst: str, *, timeout_ms: int = 0) -> None:
    with pytest.raises(KeyholeError, match="KH501"), failures.held_until(timeout_ms, analyst=analyst):
        raise KeyholeError("KH501", "the source could not answer")


def test_a_failure_is_not_told_before_the_timeout() -> None:
    failures = SourceFailures()
    started = time.monotonic()
    fail(failures, "ann", timeout_ms=200)
    assert time.monotonic() - started >= 0.2  # a promise of the code, not a measurement of its speed


def test_an_answer_is_not_held_back_or_counted() -> None:
    failures = SourceFailures()
    for _ in range(2 * MOST_FAILURES):
        with failures.held_until(10**9, analyst="ann"):
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
