"""An engine that does not stop is not waited for, and keeps its turn; an answer waits for its moment."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from planner.errors import KeyholeError
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.messages import Answer, Asked, read_bare_question
from proxy.sources import public_moments
from proxy.sources.failures import SourceFailures
from proxy.sources.open import QUESTIONS
from tests.effort import PATIENCE_S
from tests.worlds.house import House, eventually, hurried


class Stuck:
    """The real source, whose questions wait inside until they are let go: no interrupt reaches them."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.go = threading.Event()
        self.reading = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def read_aggregates(self, *arguments: Any, **named: Any) -> Any:
        self.reading += 1
        assert self.go.wait(PATIENCE_S)
        return self._source.read_aggregates(*arguments, **named)


@contextmanager
def stuck(service: Service) -> Iterator[Stuck]:
    """The service's source gets stuck in every question."""
    real, failures = service.source, service.failures
    found = Stuck(real)
    service.source, service.failures = found, SourceFailures()
    try:
        yield found
    finally:
        found.go.set()
        service.source, service.failures = real, failures


def ask(service: Service, threshold: int) -> Answer:
    """A question that no other test asks: what is stored would be told at once."""
    asked = Asked(
        question=read_bare_question(
            f"SELECT store FROM sales GROUP BY store HAVING count(*) > {threshold}", service.catalog
        ),
        settings={"keyhole.reuse": "off"},
        parameters={},
        analyst=service.find_analyst("ada"),
        today=date(2026, 1, 1),
        is_utc=True,
    )
    return pipeline.answer(service, pipeline.plan_asked_question(service, asked), asked)


def test_who_waits_for_an_engine_is_told_at_the_timeout_and_the_engine_keeps_its_turn(house: House) -> None:
    service, share = house.service, QUESTIONS // 2
    with stuck(service) as source, hurried(service, limit_ms=50):
        for threshold in range(share):
            with pytest.raises(KeyholeError) as caught:
                ask(service, 1510 + threshold)
            assert caught.value.code == "KH501"
            assert "stays spent" in str(caught.value.hint)
        assert source.reading == share
        before = house.events
        with pytest.raises(KeyholeError) as caught:
            ask(service, 1630)
        assert caught.value.code == "KH501"
        assert "Nothing was spent" in str(caught.value.hint) + str(caught.value.detail)
        assert source.reading == share
        assert house.events == before
    eventually(lambda: has_turn(service))
    assert ask(service, 1630).keys.arrays == (("north", "south"),)


def has_turn(service: Service) -> bool:
    """Whether the analyst may ask the source something again."""
    try:
        with service.take_turn(analyst="ada", timeout_ms=0):
            return True
    except KeyholeError:
        return False


def test_everything_that_can_be_seen_of_an_answer_waits_for_its_moment(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit, which shows in balances and to the same question, the turn and the answer: all behind the wait."""
    service = house.service
    unhurried, before = service.catalog, house.events
    seen: list[int] = []

    def look_and_sleep(seconds: float) -> None:
        seen.append(house.events)
        time.sleep(seconds)

    clock = SimpleNamespace(monotonic=time.monotonic, sleep=look_and_sleep)
    monkeypatch.setattr(public_moments, "time", clock)
    service.catalog = replace(unhurried, release_every_ms=400)
    started = time.monotonic()
    try:
        answer = ask(service, 1720)
    finally:
        service.catalog = unhurried
    assert time.monotonic() - started >= 0.4  # a promise of the code, not a measurement of its speed
    assert answer.keys.arrays == (("north", "south"),)
    assert seen == [before + 1]  # reserved, and not committed
    assert house.events == before + 2
