"""A NOTICE says which rows are in no group of a computed key, and nothing where every row is in one."""

import pytest

from planner.bind.question import ask
from planner.extract.outer_query import Asking
from planner.statements.classify import classify
from planner.statements.settings import accuracy
from tests.planner.asked import TODAY
from tests.worlds.analysts import analysts


def _told(key: str, name: str = "readings", where: str = "") -> tuple[str, ...]:
    catalog = analysts(name)
    statement = classify(f"SELECT {key} FROM {name} {where} GROUP BY 1 HAVING count(*) > 500", catalog)
    assert isinstance(statement, Asking)
    wanted = accuracy({}, catalog.defaults)
    asked = ask(statement.questions[0], catalog, accuracy=wanted, parameters={}, today=TODAY, utc=True)
    return tuple(one for one in asked.warnings if "no group" in one)


@pytest.mark.parametrize(
    "key",
    [
        "error_code IS NOT NULL",
        "error_code LIKE 'W%'",
        "error_code LIKE 'W%' OR error_code = 'x'",
        "CASE WHEN error_code LIKE 'W%' THEN 'w' WHEN error_code LIKE 'E%' THEN 'e' ELSE 'o' END",
        "CASE WHEN error_code LIKE 'W1%' THEN 'w' WHEN error_code LIKE 'W%' THEN 'e' ELSE 'o' END",
    ],
)
def test_nothing_is_said_where_every_text_is_in_a_group(key: str) -> None:
    assert not _told(key)


def test_parts_of_times_are_named_as_they_are_written() -> None:
    (told,) = _told("extract(dow FROM borrowed_at)", "loans")
    assert told == "rows without borrowed_at are in no group of extract(dow FROM borrowed_at)"


def test_who_asks_for_null_as_a_group_is_told_that_there_is_none() -> None:
    (told,) = _told("CASE WHEN language IS NULL THEN 'none' ELSE 'some' END", "loans")
    assert told.startswith("rows without language are in no group, although CASE WHEN language IS NULL")


def test_combinations_without_an_example_are_told() -> None:
    """A text that begins with both `a_b` and `aab` is found; whether one ends with two letters is not looked into."""
    (told,) = _told("CASE WHEN error_code LIKE '_b' THEN 1 WHEN error_code LIKE '_c' THEN 2 ELSE 3 END")
    assert told.startswith("values of error_code of which no example was found are in no group of CASE")
