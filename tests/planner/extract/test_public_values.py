"""Subqueries that count or add up a public table, as the numbers that they are: PostgreSQL has the same values and
types for both."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from sqlglot import exp

from planner.extract.inline_public_lists import inline_public_values
from planner.extract.private_read import PrivateRead
from planner.parser.edits import Edit
from planner.parser.lexer import read_tokens
from planner.parser.tree import parse, read_name
from tests.worlds.analysts import analysts

CATALOG = analysts("clinic")


@pytest.fixture(scope="module")
def world(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url) as connection:
        for public in CATALOG.public_tables:
            columns = ", ".join(f'"{column.name}" {column.declared}' for column in public.columns)
            connection.execute(f"CREATE TEMPORARY TABLE {public.name} ({columns})".encode())
            values = ", ".join(["%s"] * len(public.columns))
            for row in public.rows:
                connection.execute(f"INSERT INTO {public.name} VALUES ({values})".encode(), row)
        yield connection


def _edits(sql: str) -> tuple[Edit, ...]:
    query = parse(sql, read_tokens(sql))
    select = query.tree
    assert isinstance(select, exp.Select)
    table = next(one for one in CATALOG.tables if one.name == "visits")
    node = next(one for one in select.find_all(exp.Table) if read_name(one.this) == "visits")
    return inline_public_values(PrivateRead(query, select, node, table, CATALOG))


@pytest.mark.parametrize(
    "subquery",
    [
        "SELECT count(*) FROM wards",
        "SELECT count(w.ward) * 2 FROM wards w WHERE w.acute",
        "SELECT sum(capacity) / count(*) FROM wards",
        "SELECT avg(capacity) FROM wards WHERE region <> 'north'",
        "SELECT avg(target) FROM wards AS x",
        "SELECT sum(target) AS total FROM wards",
        "SELECT max(capacity) - min(capacity) FROM wards",
        "SELECT -max(target) FROM wards WHERE capacity > 20",
        "SELECT min(opened) FROM wards",
        "SELECT round(avg(avg_temp), 1) FROM weather WHERE rain",
        "SELECT min(avg_temp) FROM weather",
        "SELECT count(*) FROM wards WHERE region = 'nowhere'",
    ],
)
def test_a_subquery_is_its_value(world: psycopg.Connection[Any], subquery: str) -> None:
    sql = f"SELECT ward FROM visits GROUP BY ward HAVING count(*) > 2 * ({subquery})"
    (edit,) = _edits(sql)
    assert sql[edit.start : edit.end] == f"({subquery})"
    told = [
        world.execute(f"SELECT {one} AS value, pg_typeof({one})".encode()).fetchone()
        for one in (f"({subquery})", edit.text)
    ]
    assert told[0] == told[1]


@pytest.mark.parametrize(
    "subquery",
    [
        "SELECT max(capacity) FROM wards WHERE region = 'nowhere'",
        "SELECT max(name) FROM wards",
        "SELECT avg(wind) FROM weather",
        "SELECT count(DISTINCT region) FROM wards",
        "SELECT sum(capacity) FILTER (WHERE acute) FROM wards",
        "SELECT max(capacity) FROM wards GROUP BY region LIMIT 1",
        "SELECT max(w.capacity) FROM wards w WHERE w.ward = visits.ward",
        "SELECT count(*) FROM visits",
        "SELECT capacity FROM wards WHERE ward = 'w1'",
        "SELECT max(capacity) OVER () FROM wards LIMIT 1",
    ],
)
def test_another_one_stays(subquery: str) -> None:
    assert _edits(f"SELECT ward FROM visits GROUP BY ward HAVING count(*) > 2 * ({subquery})") == ()


def test_a_column_of_its_own_keeps_its_name() -> None:
    assert _edits("SELECT ward, (SELECT count(*) FROM wards) FROM visits GROUP BY ward HAVING count(*) > 5") == ()
