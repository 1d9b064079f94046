"""The same question is bound once. With other values, settings or day, or of another policy, it is another question."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pytest

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog
from planner.question.question import Question
from planner.values.constant import ParameterValue
from proxy.open_policy.service import OWNER
from proxy.pipeline import messages
from proxy.pipeline.messages import Asked, read_bare_question
from proxy.pipeline.text_cache import SHORT_CHARACTERS, ObjectCache
from tests.worlds.retail import retail

TODAY = date(2012, 1, 1)
SQL = "SELECT country, month FROM sales GROUP BY country, month HAVING count(*) > $1"


class Binder:
    """Counts how often a question is bound."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.count = 0

    def bind(self, *given: object, **named: object) -> Question:
        self.count += 1
        return bind_question(*given, **named)  # type: ignore[arg-type]

    def ask(self, asked: Asked, catalog: Catalog | None = None) -> Question:
        catalog = catalog or self.catalog
        return asked.read_question(catalog, asked.read_accuracy(catalog))


@pytest.fixture
def binder(monkeypatch: pytest.MonkeyPatch) -> Binder:
    made = Binder(retail())
    monkeypatch.setattr(messages, "bind_question", made.bind)
    return made


def make_asked(catalog: Catalog, sql: str = SQL, *, parameters: Mapping[int, ParameterValue | None]) -> Asked:
    return Asked(read_bare_question(sql, catalog), {}, parameters, OWNER, TODAY)


def test_the_same_question_is_bound_once_and_is_the_same(binder: Binder) -> None:
    asked = make_asked(binder.catalog, parameters={1: 500})
    first, again = binder.ask(asked), binder.ask(replace(asked, parameters={1: 500}))
    assert again is first
    assert binder.count == 1


def test_whatever_the_binding_depends_on_makes_another_question(binder: Binder) -> None:
    """PostgreSQL computes with `1`, `1.0` and `1.00` in different types, although Python's are equal."""
    asked = make_asked(binder.catalog, parameters={1: 1})
    others = [
        asked,
        replace(asked, parameters={1: Decimal(1)}),
        replace(asked, parameters={1: Decimal("1.00")}),
        replace(asked, parameters={1: 2}),
        replace(asked, today=TODAY + timedelta(days=1)),
        replace(asked, is_utc=True),
        replace(asked, settings={"keyhole.tolerance": "20%"}),
        replace(asked, casts={(1, ("INT",)): 1}),
        replace(asked, question=replace(asked.question)),
    ]
    for one in (*others, *others):
        binder.ask(one)
    assert binder.count == len(others)
    binder.ask(asked, replace(binder.catalog))  # of a reloaded policy
    assert binder.count == len(others) + 1


def test_a_long_question_is_not_kept(binder: Binder) -> None:
    asked = make_asked(binder.catalog, SQL + " " * SHORT_CHARACTERS + "AND count(*) > 7", parameters={1: 5})
    assert binder.ask(asked) == binder.ask(asked)
    assert binder.count == 2


def test_only_the_last_are_kept_and_by_identity() -> None:
    made: list[str] = []
    cache: ObjectCache[int] = ObjectCache(2)

    def find(number: int, text: str) -> None:
        def make() -> int:
            made.append(text)
            return len(made)

        cache.find_or_make(objects[number], objects[0], text, make)

    objects = [[], [], []]  # type: ignore[var-annotated]
    for number, text in ((0, "a"), (1, "a"), (0, "a"), (2, "b"), (0, "a"), (1, "a")):
        find(number, text)
    assert made == ["a", "a", "b", "a"]
    find(1, "x" * (SHORT_CHARACTERS + 1))
    find(1, "x" * (SHORT_CHARACTERS + 1))
    assert len(made) == 6


def test_a_refusal_is_made_again() -> None:
    cache: ObjectCache[int] = ObjectCache(2)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            cache.find_or_make(cache, cache, "", lambda: 1 // 0)
