"""Noise paths over key grids: bytes and back, parts in any order, growth that spares other keys, own thresholds."""

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.formula import TRUE
from mechanisms.protocol import NoisePath
from planner.catalog.catalog import Value
from planner.catalog.key_space import KeySpace
from planner.functionals.per_key_offsets import LIMIT, subtract_offsets
from planner.question.question import Offsets, Question
from proxy.pipeline.key_paths import MOST_VALUES, KeyPath, UnknownPath, from_bytes
from tests.worlds.questions import CLIPPED, COUNTRIES, MONTHS, count, question

RATES = (Fraction(1, 64), Fraction(3, 32), Fraction(7, 8))


def over(columns: dict[str, tuple[Value, ...]], *, taken: Offsets | None = None) -> Question:
    """A question about one count, grouped by columns with these values, less what is taken off per key."""
    space = KeySpace(columns=tuple(CLIPPED.get_column(name) for name in columns), values=tuple(columns.values()))
    functional = replace(count(), offsets=taken)
    return replace(question(TRUE, count(), table=CLIPPED), keys=space, functionals=(functional,))


WHOLE = over({"country": COUNTRIES, "month": MONTHS})


@st.composite
def paths(draw: st.DrawFn, keys: int = WHOLE.keys.size, rates: int = 2) -> NoisePath:
    """A path as a run leaves it: zero where nothing was revealed."""
    reached = np.array(draw(st.lists(st.integers(0, rates), min_size=keys, max_size=keys)), dtype=np.int8)
    values = draw(st.lists(st.integers(-(2**60), 2**60), min_size=keys * rates, max_size=keys * rates))
    shown = np.arange(rates)[:, None] < reached
    return NoisePath(RATES[:rates], np.where(shown, np.array(values).reshape(rates, keys), 0), reached)


def same(one: NoisePath, other: NoisePath) -> bool:
    return (
        one.rates == other.rates
        and np.array_equal(one.values, other.values)
        and np.array_equal(one.reached, other.reached)
    )


@given(paths())
def test_bytes_and_back(path: NoisePath) -> None:
    drawn = KeyPath.from_run(WHOLE, 0, path, top=RATES[1], is_all_revealed=False)
    body = drawn.to_bytes()
    assert body is not None
    again = from_bytes(body)
    assert again.axes == drawn.axes
    assert same(again.path, drawn.path)
    assert again.reserved.tolist() == [2] * WHOLE.keys.size
    assert again.revealed.tolist() == [0] * WHOLE.keys.size


@given(paths(), st.integers(0, 300), st.integers(0, 255))
def test_damaged_bytes_are_refused_or_are_a_path(path: NoisePath, place: int, byte: int) -> None:
    body = bytearray(KeyPath.from_run(WHOLE, 0, path, top=RATES[1], is_all_revealed=False).to_bytes() or b"")
    body[place % len(body)] = byte
    with suppress(UnknownPath):
        assert isinstance(from_bytes(bytes(body)), KeyPath)


@pytest.mark.parametrize("body", [b"", b"\0\0\0\0", b"\x02\0\0\0{}", b"\xff\xff\xff\x7f{}"])
def test_what_is_no_path_is_refused(body: bytes) -> None:
    with pytest.raises(UnknownPath):
        from_bytes(body)


@given(paths(), st.data())
def test_keys_are_found_in_any_order_and_part(path: NoisePath, data: st.DataObject) -> None:
    drawn = KeyPath.from_run(WHOLE, 0, path, top=RATES[1], is_all_revealed=False)
    countries = tuple(data.draw(st.permutations(COUNTRIES)))[: data.draw(st.integers(1, len(COUNTRIES)))]
    months = tuple(data.draw(st.permutations(MONTHS)))[: data.draw(st.integers(1, len(MONTHS)))]
    part = over({"month": months, "country": countries})
    here = drawn.find_places(part.keys)
    assert here is not None
    read = drawn.select_question(part, 0, here)
    for index, (month, country) in enumerate(product(months, countries)):
        there = COUNTRIES.index(country) * len(MONTHS) + MONTHS.index(month)
        assert read.reached[index] == path.reached[there]
        assert np.array_equal(read.values[:, index], path.values[:, there])


def test_keys_that_are_not_on_the_path_are_not_found() -> None:
    part = over({"country": COUNTRIES[:1], "month": MONTHS})
    path = NoisePath(RATES[:1], np.zeros((1, part.keys.size), dtype=np.int64), np.ones(part.keys.size, dtype=np.int8))
    drawn = KeyPath.from_run(part, 0, path, top=RATES[0], is_all_revealed=True)
    assert drawn.find_places(WHOLE.keys) is None
    assert drawn.find_places(over({"country": COUNTRIES[:1]}).keys) is None


@given(paths(), paths(keys=len(MONTHS), rates=3))
def test_growth_at_some_keys_leaves_the_others_alone(path: NoisePath, further: NoisePath) -> None:
    """What is reserved grows where the question asked, and nowhere else: the others were never paid for."""
    drawn = KeyPath.from_run(WHOLE, 0, path, top=RATES[1], is_all_revealed=False)
    part = over({"month": MONTHS, "country": COUNTRIES[1:2]})
    here = drawn.find_places(part.keys)
    assert here is not None
    grown = drawn.continue_with(part, 0, here, further, top=RATES[2], is_all_revealed=False)
    others = np.setdiff1d(np.arange(WHOLE.keys.size), here)
    assert np.array_equal(grown.path.values[:2, others], path.values[:, others])
    assert not grown.path.values[2, others].any()
    assert np.array_equal(grown.path.reached[others], path.reached[others])
    assert same(grown.select_question(part, 0, here), further)
    assert set(grown.reserved[others]) == {2}
    assert set(grown.reserved[here]) == {3}


@given(paths(), st.lists(st.integers(0, LIMIT // 2), min_size=len(MONTHS), max_size=len(MONTHS)))
def test_what_a_question_takes_off_per_key_is_not_in_the_path(path: NoisePath, steps: list[int]) -> None:
    """Noise on counts less their groups' own thresholds is noise on counts: read with other thresholds it is exactly
    what would have been drawn there."""
    with_own = over({"country": COUNTRIES, "month": MONTHS}, taken=Offsets(key="month", steps=tuple(steps), text="own"))
    stored = KeyPath.from_run(with_own, 0, path, top=RATES[1], is_all_revealed=False)
    here = stored.find_places(with_own.keys)
    assert here is not None
    assert same(stored.select_question(with_own, 0, here), path)
    plain = stored.select_question(WHOLE, 0, here)
    exact = np.arange(WHOLE.keys.size, dtype=np.int64)[None, :] * 1000
    noise = path.values - subtract_offsets(with_own, exact)
    shown = np.arange(2)[:, None] < path.reached
    assert np.array_equal(plain.values, np.where(shown, subtract_offsets(WHOLE, exact) + noise, 0))


def test_a_path_that_is_too_large_is_not_kept() -> None:
    """By the number of its values, which is public; how well they compress is not."""
    months = tuple(range(MOST_VALUES // 2 + 1))
    part = over({"month": months})
    path = NoisePath(RATES[:2], np.zeros((2, part.keys.size), dtype=np.int64), np.zeros(part.keys.size, dtype=np.int8))
    assert KeyPath.from_run(part, 0, path, top=RATES[1], is_all_revealed=False).to_bytes() is None
