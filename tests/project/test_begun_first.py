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


@pytest.mark.parametrize("processes", [2, 3, 4, 7])
@pytest.mark.parametrize("others", [0, 5, 90, 1001])
def test_every_part_begins_with_what_lasts_longest(others: int, processes: int) -> None:
    """The parts are those that xdist makes: each the whole share of what is left."""
    items = [f"a/test_{number % 17}.py::test_{number}" for number in range(others)]
    items += [f"{file}::test_{number}" for file in sorted(LONGEST) for number in range(2)]
    ordered = begin_with_longest(items, file_of=_file, processes=processes)
    assert sorted(ordered) == sorted(items)
    left = ordered
    for process in range(processes):
        size = len(left) // (processes - process)
        part, left = left[:size], left[size:]
        if others >= 90:  # else there are parts of these files alone
            assert [*dict.fromkeys(map(_file, part))][: len(LONGEST[process::processes])] == [
                *LONGEST[process::processes]
            ]
    assert left == []
    assert [item for item in ordered if _file(item) not in LONGEST] == items[:others]


def test_where_nothing_lasts_long_the_order_stays() -> None:
    items = [f"a/test_{number}.py::test" for number in range(10)]
    assert begin_with_longest(items, file_of=_file, processes=4) == items
