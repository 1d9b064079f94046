"""The select list of a scorecard: read where it means the same without a database, and only there.

tests/end_to_end/answers/test_scorecards.py compares what is read with PostgreSQL.
"""

import pytest

from planner.plan.question_identity import find_fingerprint
from planner.scorecard.select_list import read_select_list
from tests.in_turn import in_turn
from tests.planner.asked import asked, asking


def _read(sql: str) -> tuple[tuple[str, ...], list[object]] | None:
    """The names, and the row of a key for which every predicate is true."""
    (question,) = asking(sql).questions
    shown = read_select_list(question)
    truths = ["true"] * len(question.predicates)
    return None if shown is None else (shown.names, list(shown.show(["France", *truths])))


@in_turn(
    "item",
    [
        "upper(country)",
        "country || 'x'",
        "coalesce(country, 'none')",
        "CASE WHEN country = 'France' THEN 1 END",
        "CASE WHEN count(*) > 1 THEN country ELSE 'small' END",
        "CASE WHEN count(*) > 1 THEN 1 ELSE 2.5 END",
        "CASE WHEN count(*) > 1 THEN 1 ELSE '2' END",
        "CASE count(*) > 1 WHEN true THEN 1 END",
        "(count(*) > 1)::text",
        "(count(*) > 1)::int::bigint",
        "1 + 2.5",
        "12345678901",
        "1 - (count(*) > 1)::int",
        "date '2011-01-01'",
        "(count(*) > 1) = (count(*) > 2)",
        "CASE WHEN count(*) > 1 THEN NULL END AND true",
        "NOT coalesce(NULL, NULL)",
    ],
)
def test_what_only_postgresql_can_run_is_left_to_it(item: str) -> None:
    assert _read(f"SELECT country, {item}, count(*) > 5 FROM sales GROUP BY country") is None


def test_rows_that_distinct_would_take_away_are_not_shown() -> None:
    assert _read("SELECT DISTINCT count(*) > 5 FROM sales GROUP BY country") is None
    assert _read("SELECT country FROM sales GROUP BY country HAVING count(*) > 5") is None


def test_a_key_under_another_type_is_not_shown_as_it_is_stored() -> None:
    assert _read("SELECT date_trunc('month', invoice_date), count(*) > 5 FROM sales GROUP BY 1") is None


def test_names_are_the_items_own() -> None:
    named = "é" * 40
    shown = _read(f'SELECT country AS "Land", count(*) > 5 AS "{named}", count(*) > 5 FROM sales GROUP BY country')
    assert shown == (("Land", "é" * 31, "?column?"), ["France", True, True])


@pytest.mark.parametrize(
    ("shown", "names"),
    [
        ("sum(amount) > 5 AS big, count(*) > 7", ("big", "predicate 2")),
        ("sum(amount) > 5 AS big, count(*) > 7 AS big", ("big", "predicate 2")),
        ('sum(amount) > 5 AS country, count(*) > 7 AS "predicate 1"', ("predicate 1", "predicate 2")),
        ("sum(amount) > 5, (sum(amount) > 5) AS big, sum(amount) > 5 AS large", ("big",)),
        ("(sum(amount) > 5)::int AS big, NOT count(*) > 7 AS small", ("predicate 1", "small")),
    ],
)
def test_predicates_are_called_what_the_analyst_calls_them(shown: str, names: tuple[str, ...]) -> None:
    """Where that is a name of its own; it is no part of what the question is."""
    sql = f"SELECT country, {shown} FROM sales GROUP BY country"
    assert asked(sql, min_rows="1").predicate_names == names


def test_names_are_no_part_of_the_question() -> None:
    sql = "SELECT country, sum(amount) > 5{} FROM sales GROUP BY country"
    assert find_fingerprint(asked(sql.format(" AS big"))) == find_fingerprint(asked(sql.format("")))
