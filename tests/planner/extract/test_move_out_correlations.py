"""Questions that say which outer columns they equal, over random worlds with NULL in the columns of both sides: around
exact answers they show what PostgreSQL does."""

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.effort import rounds
from tests.planner.exact_answers import exact_answer, list_columns
from tests.worlds.retail import COUNTRIES, MONTHS, retail

CATALOG = retail()
WORLDS = rounds(6, quick=2)
STATEMENTS = rounds(300, quick=40)  # in each world
_TABLES = """
CREATE TEMPORARY TABLE sales (country text, month date, amount numeric(10, 2), quantity integer);
CREATE TEMPORARY TABLE outside (name text, since date)
"""

_OUTSIDE = ("outside c", "(VALUES ('France', date '2011-01-01'), ('Mars', NULL), (NULL, NULL)) AS c(name, since)")
_AROUND = (
    "SELECT c.name, c.since FROM {outside} WHERE {n}EXISTS ({exists}) ORDER BY 1, 2",
    "SELECT c.name, EXISTS ({exists}) FROM {outside} ORDER BY 1, 2",
    "SELECT count(*) FROM {outside} WHERE c.since IS NULL OR {n}EXISTS ({exists})",
    "SELECT c.name, c.since FROM {outside} WHERE c.name {n}IN ({rows}) ORDER BY 1, 2",
    "SELECT c.name, c.since FROM {outside} WHERE c.name <> ALL ({rows}) ORDER BY 1, 2",
    "SELECT c.name, c.since, q.* FROM {outside}, LATERAL ({rows}) AS q ORDER BY 1, 2, 3",
    "SELECT c.name, (SELECT max(q.country) FROM ({rows}) AS q) FROM {outside} ORDER BY 1, 2",
    "WITH d AS (SELECT * FROM {outside}) SELECT * FROM d c LEFT JOIN LATERAL ({rows}) q ON true ORDER BY 1, 2, 3",
)


@pytest.fixture(scope="module")
def worlds(postgres_url: str) -> Iterator[list[psycopg.Connection[Any]]]:
    connections = [psycopg.connect(postgres_url) for _ in range(WORLDS)]
    for seed, connection in enumerate(connections):
        drawn = random.Random(seed)
        connection.execute(_TABLES)
        for country in (*COUNTRIES, None):
            for month in MONTHS[:3]:
                for quantity in range(drawn.randrange(12)):
                    row = (country, drawn.choice((month, month, None)), 20, quantity % 4)
                    connection.execute("INSERT INTO sales VALUES (%s, %s, %s, %s)", row)
        for _ in range(8):
            outer = (drawn.choice((*COUNTRIES, "Mars", None)), drawn.choice((*MONTHS[:3], None)))
            connection.execute("INSERT INTO outside VALUES (%s, %s)", outer)
    yield connections
    for connection in connections:
        connection.close()


def statement(drawn: random.Random) -> str:
    """A random statement with a correlated question in it."""
    place = drawn.choice(("s.country = c.name", "c.name = country", "(s.country = coalesce(c.name, 'France'))"))
    time = drawn.choice(("s.month = c.since", "c.since = s.month"))
    wheres = drawn.choice(([place], [place], [time], [place, time]))
    wheres = [*wheres, *drawn.choice(((), (), ("quantity > 1",), ("(quantity > 2 OR s.quantity < 1)",)))]
    drawn.shuffle(wheres)
    where = " AND ".join(wheres)
    having = f"HAVING {drawn.choice(('count(*)', 'sum(s.quantity)'))} > {drawn.randrange(12)}"
    having += drawn.choice(("", "", f" AND count(*) FILTER (WHERE quantity > 1) <= {drawn.randrange(9)}"))
    group = drawn.choice(
        ("", "GROUP BY s.country", "GROUP BY month", "GROUP BY country, s.month", "GROUP BY s.month, 1")
    )
    cut = drawn.choice(("", "", " ORDER BY country LIMIT 1", " ORDER BY s.country DESC OFFSET 1"))
    shown = "country" if "1" in group else drawn.choice(("1", "NULL"))
    exists = f"SELECT {shown} FROM sales s WHERE {where} {group} {having}"
    grouped = drawn.choice(("s.country", "1", "country, s.month"))
    distinct = drawn.choice(("", "DISTINCT "))
    rows = f"SELECT {distinct}s.country FROM sales AS s WHERE {where} GROUP BY {grouped} {having}{cut}"
    negated = drawn.choice(("", "NOT "))
    return drawn.choice(_AROUND).format(exists=exists, rows=rows, n=negated, outside=drawn.choice(_OUTSIDE))


@pytest.mark.parametrize("number", range(WORLDS))
def test_questions_about_outer_rows_show_what_postgresql_does(
    worlds: list[psycopg.Connection[Any]], number: int
) -> None:
    """No noise is drawn: there are no false alarms."""
    drawn, connection = random.Random(200 + number), worlds[number]
    for _ in range(STATEMENTS):
        sql = statement(drawn)
        with connection.execute(sql.encode()) as cursor:
            wanted, columns = cursor.fetchall(), list_columns(cursor)
        found, shown = exact_answer(sql, CATALOG, connection)
        assert shown == columns, sql
        assert found == wanted, sql
