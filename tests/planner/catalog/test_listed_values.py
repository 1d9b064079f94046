"""What follows from a long list of values is computed once for the list, and never taken for another list's."""

from datetime import date, timedelta

import pytest

from planner.catalog import listed_values
from planner.catalog.catalog import Value
from planner.catalog.key_space import format_value, quote_in_row
from planner.catalog.listed_values import SHORT_LIST, digest_texts, format_values, remember_of_list


def test_a_long_list_is_computed_once_and_an_equal_one_anew() -> None:
    computed: list[tuple[Value, ...]] = []

    @remember_of_list
    def count(values: tuple[Value, ...], about: str) -> int:
        computed.append(values)
        return len(values)

    long = tuple(range(SHORT_LIST))
    equal = tuple(range(SHORT_LIST))
    for _ in range(3):
        assert count(long, "a") == count(equal, "a") == count(long, "b") == SHORT_LIST
    assert [values is long for values in computed] == [True, False, True]


def test_values_that_are_equal_and_read_differently_are_told_apart() -> None:
    zeros: tuple[Value, ...] = tuple(0 for _ in range(SHORT_LIST))
    falses: tuple[Value, ...] = tuple(False for _ in range(SHORT_LIST))
    assert zeros == falses
    assert (format_values(zeros)[0], format_values(falses)[0]) == ("0", "false")
    assert digest_texts(zeros) != digest_texts(falses)


def test_texts_are_those_of_each_value() -> None:
    days = tuple(date(2020, 1, 1) + timedelta(days=number) for number in range(SHORT_LIST))
    mixed: tuple[Value, ...] = (*days, "x", 7, True)
    for values in (days, mixed, ("a", "b"), (1, 2), (True, False)):
        assert format_values(values) == tuple(map(format_value, values))


def test_no_more_is_remembered_than_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_values, "MOST_VALUES", 3 * SHORT_LIST)
    computed = []

    @remember_of_list
    def note(values: tuple[Value, ...]) -> int:
        computed.append(values[0])
        return len(values)

    lists = [tuple(range(start, start + SHORT_LIST)) for start in range(5)]
    for values in (*lists, lists[4], lists[2], lists[0]):
        note(values)
    assert computed == [0, 1, 2, 3, 4, 0]
    assert note(tuple(range(9 * SHORT_LIST))) == 9 * SHORT_LIST


def test_a_value_that_would_read_as_two_stands_in_quotes() -> None:
    """In a row of values: blanks, what separates, quotes and nothing at all. Moments end by themselves."""
    plain = [
        "Cardiology",
        "2026-01-01",
        "2026-01-01 00:00:00",
        "2026-01-01 00:00:00.5",
        "-1.5",
        "true",
        "Köln",
        "[red]B",
    ]
    assert list(map(quote_in_row, plain)) == plain
    odd = ["Surgery, General", "O'Neill", "A/B", "a;b", "two words", "", " ", 'a"b', "2026-01-01 noon"]
    assert [quote_in_row(one) for one in odd] == [f"'{one}'" if "'" not in one else "'O''Neill'" for one in odd]
