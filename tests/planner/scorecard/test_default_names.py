"""Numbers without an alias have the names that PostgreSQL gives them."""

from typing import Any

import psycopg
import pytest

from planner.extract.outer_query import Asking
from planner.statements.classify import classify
from tests.worlds.retail import retail

ITEMS = (
    "count(*)",
    "count(*) / 2",
    "count(*) / 0",
    "(count(*)) * 100.0",
    "-count(*)",
    "- (count(*))::int",
    "count(*)::int",
    "cast(count(*) AS numeric)",
    "(count(*) / 2)::int",
    "(count(*) / 2)::numeric(10, 2)",
    "(count(*) / 2)::bigint::float8",
    "cast(count(*) * 2 AS text)",
    "round(count(*) / 3.0, 1)",
    "round(count(*) / 3.0, 1) * 2",
    "mod(count(*), 7)",
    "count(*) % 7",
    "power(count(*), 2)",
    "count(*) FILTER (WHERE true)",
    "coalesce(sum(amount), 0)",
    "sum(amount) + sum(amount)",
    "CASE WHEN true THEN count(*) END",
    "(CASE WHEN true THEN count(*) END)::int",
    "greatest(count(*), 3)",
    "abs(count(*) - 3)::smallint",
)


@pytest.mark.parametrize("item", ITEMS)
def test_names_are_postgresqls(item: str, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as opened:
        theirs = _describe(opened, f"SELECT {item} FROM (SELECT 1 AS amount) AS sales")
    found = classify(
        f"SELECT country, {item} FROM sales GROUP BY country HAVING count(*) > 5", retail().replace_numbers("null")
    )
    assert isinstance(found, Asking)
    (question,) = found.questions
    assert question.numbers is not None
    assert [one.name for one in question.numbers.columns] == [theirs]


def _describe(opened: psycopg.Connection[Any], sql: str) -> str:
    described = opened.execute(sql.replace("/ 0", "/ 1")).description
    assert described is not None
    return described[0].name
