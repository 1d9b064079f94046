"""Statements with windows over a question's groups, over random worlds: around exact truths they show what PostgreSQL
does.

Every group of the domain has rows, so that PostgreSQL's answer is the one that noise would give were it nothing.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from planner.errors import KeyholeError
from tests.effort import rounds
from tests.planner.exact_answers import exact_answer, list_columns
from tests.worlds.retail import COUNTRIES, MONTHS, retail

CATALOG = replace(retail(), defaults=replace(retail().defaults, numbers="null"))
WORLDS = rounds(6, quick=2)
STATEMENTS = rounds(300, quick=40)  # in each world
_TABLE = "CREATE TEMPORARY TABLE sales (country text, month date, amount numeric(10, 2), quantity integer)"
_FILL = "INSERT INTO sales SELECT %s, %s, 20, n %% 5 FROM generate_series(1, %s) AS s(n)"

_FUNCTIONS = (
    "lag({p})", "lead({p}, 2, false)", "first_value({p})", "last_value({p})", "nth_value({p}, 2)", "bool_or({p})",
    "bool_and({p})", "sum(({p})::int)", "count(*) FILTER (WHERE {k} IS NOT NULL)",
    "avg(CASE WHEN {p} THEN 1 ELSE 0 END)",
    "count(*)", "row_number()", "rank()", "lag({k})", "max({k})", "ntile(2)",
)  # fmt: skip
_FRAMES = ("", "", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", " ROWS UNBOUNDED PRECEDING")
_ITEMS = (
    "{w}", "{w} AS c", "CASE WHEN {p} AND {b} THEN 'both' ELSE 'one' END", "{p} AND NOT {b}", "({p}) <> {b}",
    "({p}) IS DISTINCT FROM {b}", "coalesce({b}, {p})", "({w})::text", "greatest({w}, {w})", "count(*) AS n, {b}",
)  # fmt: skip
_AROUND = (
    "{inner} ORDER BY {k}",
    "{inner} ORDER BY {b}, {k} LIMIT 3",
    "{inner} WINDOW v AS (PARTITION BY 1 ORDER BY {k}) ORDER BY {k}",
    "SELECT DISTINCT {b} FROM sales GROUP BY {k} ORDER BY 1",
    "SELECT * FROM ({inner}) AS q ORDER BY {k}",
    "WITH q AS ({inner}) SELECT count(*), min(country) FROM q",
)


@pytest.fixture(scope="module")
def worlds(postgres_url: str) -> Iterator[list[psycopg.Connection[Any]]]:
    connections = [psycopg.connect(postgres_url) for _ in range(WORLDS)]
    for seed, connection in enumerate(connections):
        drawn = random.Random(seed)
        connection.execute(_TABLE)
        for country in COUNTRIES:
            for month in MONTHS:
                connection.execute(_FILL, (country, month, drawn.randrange(1, 20)))
    yield connections
    for connection in connections:
        connection.close()


def statement(drawn: random.Random) -> str:
    """A random statement with windows over predicates and keys."""
    keys = drawn.choice(("country", "month, country", "country, month"))
    most = 20 if "," in keys else 200
    predicates = [f"count(*) > {drawn.randrange(most)}", f"count(*) FILTER (WHERE quantity > 1) <= {most // 3}"]
    having = drawn.choice(("", "", f" HAVING count(*) > {most // 4}"))
    parted = drawn.choice(("", "PARTITION BY country ", f"PARTITION BY {predicates[0]} "))
    order = drawn.choice((keys, f"{predicates[1]} DESC, {keys}", f"upper(country), {keys} DESC"))
    over = f"({parted}ORDER BY {order}{drawn.choice(_FRAMES)})"
    call = drawn.choice(_FUNCTIONS).format(p=drawn.choice(predicates), k=keys.split(", ")[0])
    window = f"{call} OVER {over}"
    boolean = f"{drawn.choice(('lag', 'bool_or', 'lead'))}({drawn.choice(predicates)}) OVER {over}"
    item = drawn.choice(_ITEMS).format(w=window, p=drawn.choice(predicates), b=boolean)
    around = drawn.choice(_AROUND)
    inner = f"SELECT {keys}, {item} FROM sales GROUP BY {keys}{having}"
    if " WINDOW v " in around:
        inner = f"SELECT {keys}, lag({predicates[0]}) OVER v, {item} FROM sales GROUP BY {keys}{having}"
    return around.format(inner=inner, k=keys, b=boolean)


@pytest.mark.parametrize("number", range(WORLDS))
def test_windows_show_around_exact_truths_what_postgresql_does(
    worlds: list[psycopg.Connection[Any]], number: int
) -> None:
    """At least half of what is drawn is a statement to PostgreSQL. No noise is drawn: there are no false alarms."""
    drawn, connection, judged = random.Random(100 + number), worlds[number], 0
    for _ in range(STATEMENTS):
        sql = statement(drawn)
        try:
            with connection.transaction(), connection.execute(sql.encode()) as cursor:
                wanted, columns = cursor.fetchall(), list_columns(cursor)
        except psycopg.Error:
            continue
        try:
            found, shown = exact_answer(sql, CATALOG, connection)
        except KeyholeError as error:
            if error.code == "KH104":  # it shows and asks for no threshold
                continue
            raise
        assert shown == columns, sql
        numbers = {place for place, (name, _) in enumerate(columns) if name == "n"}  # whose sizes nobody is told
        assert found == [
            tuple(None if place in numbers else value for place, value in enumerate(row)) for row in wanted
        ], sql
        judged += 1
    assert judged >= STATEMENTS / 2
