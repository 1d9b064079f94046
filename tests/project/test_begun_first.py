"""What lasts longest is begun first, and nothing is lost over it."""

from pathlib import Path

import pytest

from tests.begun_first import LONGEST, begin_with_longest

TESTS = Path(__file__).parents[1]


def _file(item: str) -> str:
    return item.partition("::")[0]


@pytest.mark.parametrize("file", LONGEST)
def test_what_is_named_is_there_and_named_once(file: str) -> None:
    assert (TESTS / file).is_file()
    assert LONGEST.count(file) == 1


def test_what_lasts_longest_comes_first_and_nothing_is_lost() -> None:
    others = [f"a/test_{number % 17}.py::test_{number}" for number in range(90)]
    longest = [f"{file}::test_{number}" for file in LONGEST for number in range(2)]
    ordered = begin_with_longest([*others, *longest[::2], *longest[1::2]], file_of=_file)
    assert ordered == [*longest, *others]


def test_where_nothing_lasts_long_the_order_stays() -> None:
    items = [f"a/test_{number}.py::test" for number in range(10)]
    assert begin_with_longest(items, file_of=_file) == items
