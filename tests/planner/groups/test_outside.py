"""A NOTICE says which rows are in no group of a computed key, and nothing where every row is in one."""

import pytest

from planner.bind.bind_question import bind_question
from planner.extract.outer_query import Asking
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from tests.planner.asked import TODAY
from tests.worlds.analysts import analysts


def _told(key: str, name: str = "readings", where: str = "") -> tuple[str, ...]:
    catalog = analysts(name)
    statement = classify(f"SELECT {key} FROM {name} {where} GROUP BY 1 HAVING count(*) > 500", catalog)
    assert isinstance(statement, Asking)
    wanted = read_accuracy({}, catalog.defaults)
    asked = bind_question(statement.questions[0], catalog, accuracy=wanted, parameters={}, today=TODAY, is_utc=True)
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
    (told,) = _told(
        "date_trunc('month', returned_at)", "loans", "WHERE returned_at < '2024-03-01' AND returned_at >= '2024-01-01'"
    )
    assert told.endswith("2024-02-01 are in no group of date_trunc('month', returned_at)")


@pytest.mark.parametrize(
    ("key", "lost"),
    [
        ("CASE WHEN language IS NULL THEN 'none' ELSE 'some' END", "language"),
        ("coalesce(language, 'none')", "language"),
        ("coalesce(date_trunc('month', borrowed_at), '2000-01-01')", "borrowed_at"),
        ("coalesce(nullif(language, 'en'), NULL)", ""),
        ("upper(language)", ""),
        ("extract(dow FROM returned_at)", ""),
        ("coalesce(extract(dow FROM returned_at), -1)", ""),
        ("extract(hour FROM returned_at) < 12 AND coalesce(renewals, 0) > 2", ""),
    ],
)
def test_who_asks_for_null_as_a_group_is_told_where_there_is_none(key: str, lost: str) -> None:
    told = _told(key, "loans")
    assert [one.split(" are in no group, although ")[0] for one in told] == ([f"rows without {lost}"] if lost else [])


def test_combinations_without_an_example_are_told() -> None:
    """A text that begins with both `a_b` and `aab` is found; whether one ends with two letters is not looked into."""
    (told,) = _told("CASE WHEN error_code LIKE '_b' THEN 1 WHEN error_code LIKE '_c' THEN 2 ELSE 3 END")
    assert told.startswith("values of error_code of which no example was found are in no group of CASE")
