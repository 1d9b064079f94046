"""Statements that read places of a ranking, over random worlds: what they show around exact places is PostgreSQL's own.

Every group of the domain has rows and no two are level, so that PostgreSQL's answer is the one that noise would give
were it nothing. What is under test is how far down a statement is found to read: a place too few would show.
"""

import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest

from planner.bind.bind_question import bind_question
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking, write_outer_sql
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.question.plan import Plan
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from proxy.pipeline.messages import KeySet
from proxy.shadow.array import write_array_literal
from tests.effort import rounds
from tests.end_to_end.certainty import exact_ranking
from tests.planner.asked import TODAY
from tests.worlds.retail import COUNTRIES, MONTHS, retail

CATALOG = retail()
WORLDS = rounds(8, quick=2)
STATEMENTS = rounds(150, quick=20)  # in each world
_TABLE = "CREATE TABLE sales (country text, month date, amount numeric(10, 2), quantity integer, customer_id integer)"
_FILL = "INSERT INTO sales SELECT %s, %s, 20, 1, n FROM generate_series(1, %s) AS s(n)"

_COMPARED = (
    "{w} <= {n}", "{w} < {n}", "{w} = {n}", "{n} >= {w}", "({w}) > {n}", "{n} <= {w}", "{w} <> {n}", "NOT {w} > {n}",
    "{w} BETWEEN {n} AND {m}", "{w} IN (1, {n})", "{w} <= {n} OR {w} > {m}", "{w} % 2 = 0", "{w} = {n} + 1",
    "CASE WHEN {w} <= {n} THEN 'a' WHEN {w} <= {m} THEN 'b' ELSE 'c' END", "{w} >= {n} AND {w} < {m}",
)  # fmt: skip
_SHOWN = (
    "{w}", "{w} + 1", "{w}::text", "ntile({m}) OVER ({o})", "ntile({m}) OVER ({o}) = 1",
    "percent_rank() OVER ({o}) <= .3", "cume_dist() OVER ({o})", "coalesce({w}, 0)",
)  # fmt: skip
_AROUND = (
    "SELECT {k}, c FROM ({inner}) q ORDER BY {k}",
    "SELECT {k} FROM ({inner}) q WHERE {c} ORDER BY {k}",
    "SELECT {k}, c FROM ({inner}) q WHERE c <= {n} ORDER BY {k}",
    "SELECT {k}, c FROM ({inner}) q WHERE country <> 'Norway' AND c <= {n} ORDER BY {k}",
    "SELECT {k} FROM ({inner}) AS q WHERE q.c > {n} AND {m} >= q.c ORDER BY {k}",
    "SELECT {k} FROM ({inner}) AS q WHERE q.c > {n} ORDER BY {k}",
    "WITH q AS ({inner}) SELECT country, count(*) FROM q WHERE c <= {n} GROUP BY country ORDER BY 1",
    "WITH q AS ({inner}), p AS (SELECT {k}, c AS d FROM q) SELECT {k} FROM p WHERE d BETWEEN {n} AND {m} ORDER BY {k}",
    "WITH q AS ({inner}), p AS (SELECT * FROM q) SELECT {k} FROM p WHERE c = {n} ORDER BY {k}",
    "WITH q AS ({inner}) SELECT a.country, b.c FROM q a JOIN q b ON a.c = b.c + 1 WHERE a.c <= {n} ORDER BY 1, 2",
    "SELECT max(c), min(country) FROM ({inner}) q WHERE c < {m}",
    "SELECT {k}, rank() OVER (ORDER BY c, {k}) FROM ({inner}) q ORDER BY {k}",
    "SELECT {k} FROM ({inner}) q ORDER BY c, {k} LIMIT {n}",
    "SELECT {k} FROM ({inner}) q ORDER BY c, {k} LIMIT {n} OFFSET 1",
    "SELECT {k} FROM ({inner}) q ORDER BY c DESC, {k} LIMIT {n}",
    "SELECT {k}, CASE WHEN c <= {n} THEN 'top' END FROM ({inner}) q ORDER BY {k}",
    "SELECT {k} FROM ({inner}) q WHERE c <= {n} OR country = 'France' ORDER BY {k}",
    "SELECT s.c FROM (SELECT {k}, c FROM ({inner}) q WHERE c <= {m}) s WHERE s.c >= {n} ORDER BY 1",
    "({inner}) ORDER BY c, {k} LIMIT {n}",
    "SELECT country FROM ({inner}) q WHERE c <= {n} UNION SELECT 'none' ORDER BY 1",
)  # fmt: skip


@pytest.fixture(scope="module")
def worlds(postgres_url: str) -> Iterator[list[psycopg.Connection[Any]]]:
    connections = [psycopg.connect(postgres_url) for _ in range(WORLDS)]
    for seed, connection in enumerate(connections):
        drawn = random.Random(seed)
        sizes = [2**place for place in range(4)]  # so that no two countries and no two months come level
        connection.execute("CREATE TEMPORARY" + _TABLE.removeprefix("CREATE"))
        drawn.shuffle(sizes)
        months = list(range(13))
        drawn.shuffle(months)
        for size, country in zip(sizes, COUNTRIES, strict=True):
            for number, month in zip(months, MONTHS, strict=True):
                connection.execute(_FILL, (country, month, 14 * size + number))
    yield connections
    for connection in connections:
        connection.close()


def statement(drawn: random.Random) -> str:
    """A random statement that ranks."""
    keys = drawn.choice(("country", "month", "country, month", "month, country"))
    value = drawn.choice(("count(*)", "sum(amount)", "2 * count(*)", "count(*) FILTER (WHERE quantity = 1)"))
    way = drawn.choice(("", " DESC", " DESC NULLS LAST", " ASC"))
    parts = [f"PARTITION BY {one} " for one in keys.split(", ")] if "," in keys else []
    n, m = drawn.randrange(5), drawn.randrange(5, 9)
    having = drawn.choice(("", "", " HAVING count(*) > 25"))
    table = f"FROM sales GROUP BY {keys}{having}"
    if drawn.random() < 0.15:
        on = drawn.choice(keys.split(", "))
        return f"SELECT DISTINCT ON ({on}) {keys} {table} ORDER BY {on}, {value}{way}"
    if drawn.random() < 0.15:
        return f"SELECT {keys} {table} ORDER BY {value}{way} LIMIT {n} OFFSET {drawn.randrange(4)}"
    behind = drawn.choice(("", ", country")) if "country" in keys else ""
    order = f"{drawn.choice(['', '', *parts])}ORDER BY {value}{way}{behind}"
    window = f"{drawn.choice(('rank', 'row_number', 'dense_rank'))}() OVER ({order})"
    around = drawn.choice(_AROUND) if drawn.random() < 0.7 else ""
    items = _SHOWN[:1] if around and drawn.random() < 0.8 else (*_COMPARED, *_SHOWN)
    item = drawn.choice(items).format(w=window, o=order, n=n, m=m)
    if not around:
        return f"SELECT {keys}, {item} AS c {table} ORDER BY {keys}"
    if "country" not in keys:
        keys, table = "country", table.replace("month", "country")
        item = item.replace("month", "country")
    pushed = f"SELECT {keys}, {item.replace(value, 'v')} AS c FROM (SELECT {keys}, {value} AS v {table}) g"
    inner = pushed if drawn.random() < 0.3 else f"SELECT {keys}, {item} AS c {table}"
    compared = drawn.choice(_COMPARED).format(w="c", n=n, m=m)
    return around.format(k=keys, inner=inner, c=compared, n=n, m=m)


@pytest.mark.parametrize("number", range(WORLDS))
def test_around_exact_places_a_statement_shows_what_postgresql_does(
    worlds: list[psycopg.Connection[Any]], number: int
) -> None:
    """At least half of what is drawn is a statement to PostgreSQL. No noise is drawn: there are no false alarms."""
    drawn, connection, judged = random.Random(100 + number), worlds[number], 0
    for _ in range(STATEMENTS):
        sql = statement(drawn)
        try:
            with connection.transaction(), connection.execute(sql.encode()) as cursor:
                wanted, columns = cursor.fetchall(), _columns(cursor)
        except psycopg.Error:
            continue
        answer = _answer(sql, connection)
        if answer is None:
            continue
        found, shown = answer
        assert shown == columns, sql
        assert found == wanted, sql
        judged += 1
    assert judged >= STATEMENTS / 2


def _answer(
    sql: str, connection: psycopg.Connection[Any]
) -> tuple[list[tuple[Any, ...]], list[tuple[str, int]]] | None:
    """Rows and columns; None where a size of a subquery cannot be moved, and is refused."""
    try:
        asking = classify(sql, CATALOG)
    except KeyholeError as refusal:
        if refusal.code == "KH101" and " AS v " in sql:
            return None
        raise
    assert isinstance(asking, Asking)
    (part,) = asking.questions
    question = bind_question(part, CATALOG, accuracy=read_accuracy({}, CATALOG.defaults), parameters={}, today=TODAY)
    made = plan_question(question, dialect=POSTGRES)
    relation = _exact_keys(made, sql, connection)
    outer = write_outer_sql(asking, first_parameter=1)
    arrays = {array.number: write_array_literal(relation.arrays[array.column]) for array in outer.arrays}
    written = re.sub(r"\$(\d+)::text\[\]", lambda found: f"{arrays[int(found[1])]}::text[]", outer.sql)
    with connection.execute(written.encode()) as cursor:
        return cursor.fetchall(), _columns(cursor)


def _exact_keys(made: Plan, sql: str, connection: psycopg.Connection[Any]) -> KeySet:
    keys = made.question.keys
    grouped = ", ".join(keys.names)
    rows = {
        row[:-1]: row[-1] for row in connection.execute(f"SELECT {grouped}, count(*) FROM sales GROUP BY {grouped}")
    }
    values = np.array([rows[keys.get_key(place)] for place in range(keys.size)])
    passed = values > 25 if "HAVING" in sql else np.ones(keys.size, dtype=np.bool_)
    assert made.ranking is not None
    assert made.question.ranked is not None
    partition = keys.number_values(made.question.ranked.partition)
    return KeySet.from_passed(made, passed, (), exact_ranking(made.ranking, values, passed, partition))


def _columns(cursor: psycopg.Cursor[Any]) -> list[tuple[str, int]]:
    return [(one.name, one.type_code) for one in cursor.description or ()]
