"""What is read as empty tables gives what PostgreSQL gives over their rows; all else stays a question or refused."""

from collections.abc import Iterator
from itertools import pairwise
from random import Random

import psycopg
import pytest

from planner.errors import KeyholeError
from planner.extract.outer_query import Asking, write_outer_sql
from planner.parser.lexer import read_tokens
from planner.statements.classify import classify
from tests.effort import rounds
from tests.in_turn import in_turn
from tests.worlds.retail import retail

_SELECTED = (
    "*",
    "1 AS one",
    "count(*)",
    "count(*) AS n, max(1)",
    "(SELECT count(*) FROM visits)",
    "row_number() OVER ()",
)
_CONDITIONS = (
    "false",
    "1 = 0",
    "1 <> 1",
    "NULL",
    "NOT true",
    "'a' = 'b'",
    "false AND EXISTS (SELECT FROM visits)",
    "EXISTS (SELECT FROM visits) AND 0 > 1",
    "(1 = 0 AND true)",
    "1 = 0 OR true",
    "1 = 0 OR EXISTS (SELECT FROM visits)",
    "NOT false",
    "NOT (1 = 0)",
    "(1 = 0) IS NOT TRUE",
    "(1 = 0) IS FALSE",
    "NULL IS NULL",
    "true",
    "1 = '1'",
    "1 BETWEEN 2 AND 3 OR 1 = 1",
    "CASE WHEN false THEN false ELSE true END",
)
_TAILS = (
    "LIMIT 0",
    "ORDER BY 1 LIMIT 0",
    "LIMIT 0 OFFSET 1",
    "FETCH FIRST 0 ROWS ONLY",
    "OFFSET 0",
    "OFFSET (SELECT count(*) FROM visits)",
    "LIMIT 1",
    "LIMIT ALL",
    "LIMIT NULL",
    "LIMIT (0 + 1)",
    "LIMIT 0 + 1",
    "LIMIT (SELECT count(*) FROM visits)",
    "FETCH FIRST ROW ONLY",
    "FETCH FIRST 1 ROWS WITH TIES",
)
_AFTER = ("GROUP BY ()", "HAVING count(*) = 0", "HAVING count(*) >= (SELECT count(*) FROM visits)", "GROUP BY 1")


def _query(draw: Random, depth: int) -> str:
    kind = draw.random() if depth else 1.0
    if kind < 0.2:
        operation = draw.choice(("UNION ALL", "UNION", "EXCEPT", "INTERSECT"))
        left, right = _query(draw, depth - 1), _query(draw, depth - 1)
        return _cut(draw, f"({left}) {operation} {draw.choice((right, f'({right})'))}")
    if kind < 0.3:
        return _cut(draw, f"WITH w AS ({_query(draw, depth - 1)}) SELECT count(*) AS one FROM w {_where(draw)}")
    if kind < 0.5:
        return f"({_query(draw, depth - 1)}) {draw.choice(_TAILS)}"
    return _select(draw, depth)


def _select(draw: Random, depth: int) -> str:
    if draw.random() < 0.1:
        return _cut(draw, f"SELECT ward FROM visits {_where(draw)} GROUP BY ward HAVING count(*) < 5")
    source = draw.choice(("visits", "visits v", "public.visits", "regions", "visits JOIN regions ON true"))
    if depth and draw.random() < 0.6:
        source = f"({_query(draw, depth - 1)}) q"
        if draw.random() < 0.3:
            source = f"{draw.choice(('regions', 'visits'))} LEFT JOIN LATERAL {source} ON true"
    after = draw.choice(_AFTER) if draw.random() < 0.2 else ""
    return _cut(draw, f"SELECT {draw.choice(_SELECTED)} FROM {source} {_where(draw)} {after}")


def _where(draw: Random) -> str:
    return f"WHERE {draw.choice(_CONDITIONS)}" if draw.random() < 0.6 else ""


def _cut(draw: Random, sql: str) -> str:
    return f"{sql} {draw.choice(_TAILS)}" if draw.random() < 0.5 else sql


def _idle(sql: str) -> str | None:
    """What runs, over no answers, in place of a statement in which no row of a private table can matter."""
    try:
        statement = classify(sql, retail())
    except KeyholeError:
        return None
    if not isinstance(statement, Asking) or not statement.is_constantly_empty:
        return None
    outer = write_outer_sql(statement, first_parameter=9)
    text = outer.sql
    for array in reversed(outer.arrays):
        text = text.replace(f"${array.number}::text[]", "'{}'::text[]")
    return text


@pytest.fixture(scope="module")
def full(postgres_url: str) -> Iterator[psycopg.Connection]:
    """The private tables with rows in them, in one schema; in another, which is empty of them, the public table."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        catalog = retail()
        private = [("private_of_emptiness", each.name, each.columns) for each in catalog.tables]
        public = [("public_of_emptiness", each.name, each.columns) for each in catalog.public_tables]
        connection.execute("CREATE SCHEMA private_of_emptiness")
        connection.execute("CREATE SCHEMA public_of_emptiness")
        for schema, name, columns in (*private, *public):
            body = ", ".join(f'"{column.name}" {column.declared}' for column in columns)
            connection.execute(f'CREATE TABLE {schema}."{name}" ({body})'.encode())
        connection.execute("INSERT INTO private_of_emptiness.visits (ward) VALUES ('A'), ('A'), ('B')")
        connection.execute("INSERT INTO public_of_emptiness.regions VALUES ('France', 'EU'), ('Norway', NULL)")
        yield connection
        connection.execute("DROP SCHEMA private_of_emptiness, public_of_emptiness CASCADE")


def test_no_row_of_a_private_table_could_have_changed_what_is_answered_without_it(full: psycopg.Connection) -> None:
    draw = Random(20260101)
    compared = 0
    cases = rounds(2_500, quick=125)
    for _ in range(cases):
        sql = _query(draw, 2)
        outer = _idle(sql)
        if outer is None:
            continue
        full.execute("SET search_path TO private_of_emptiness, public_of_emptiness")
        try:
            wanted = full.execute(sql.replace("public.", "").encode())
        except psycopg.Error:
            continue  # PostgreSQL refuses it
        described = [(column.name, column.type_code) for column in wanted.description or ()]
        rows = sorted(wanted.fetchall(), key=repr)
        full.execute("SET search_path TO public_of_emptiness")
        found = full.execute(outer.encode())
        assert [(column.name, column.type_code) for column in found.description or ()] == described, sql
        assert sorted(found.fetchall(), key=repr) == rows, sql
        compared += 1
    assert compared > cases // 9


@in_turn(
    "sql",
    [
        "SELECT * FROM sales LIMIT 0",
        "TABLE sales LIMIT 0",
        'SELECT * FROM "public"."sales" WHERE 1=0',
        'SELECT TRUE AS "_" FROM "public"."sales" WHERE 1 <> 1 LIMIT 0',
        "SELECT public.sales.country, sales.month FROM sales WHERE false",
        "SELECT * FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) q LIMIT 0",
        "SELECT s.*, r.region FROM sales s JOIN regions r ON r.name = s.country WHERE NULL",
        "SELECT country FROM sales WHERE quantity > $1 GROUP BY country HAVING stddev(amount) > $2 LIMIT 0",
        "WITH s AS (SELECT * FROM sales) SELECT * FROM s WHERE 1 = 0",
        "SELECT ward FROM visits UNION ALL SELECT country FROM sales LIMIT 0",
        "SELECT name FROM regions WHERE EXISTS (SELECT FROM sales WHERE false)",
        'DECLARE "SQL_CUR0x1" CURSOR WITH HOLD FOR SELECT * FROM sales LIMIT 0',
        "EXPLAIN (FORMAT JSON) SELECT * FROM sales LIMIT 0",
    ],
)
def test_probes_of_private_tables_ask_nothing(sql: str) -> None:
    outer = _idle(sql)
    assert outer is not None
    before = pairwise(token.value for token in read_tokens(outer))
    assert not {("from", "sales"), ("join", "sales"), ("from", "visits"), ("table", "sales")} & set(before)


@in_turn(
    "sql",
    [
        "SELECT * FROM sales LIMIT 1",
        "SELECT * FROM sales LIMIT 0 + 5",
        "SELECT * FROM sales LIMIT NULL",
        "SELECT * FROM sales LIMIT ALL",
        "SELECT * FROM sales LIMIT $1",
        "SELECT * FROM sales LIMIT '0'",
        "SELECT * FROM sales LIMIT 0.4",
        "SELECT * FROM sales LIMIT (SELECT 0)",
        "SELECT * FROM sales OFFSET 0",
        "SELECT * FROM sales WHERE $1",
        "SELECT * FROM sales WHERE 1 = $1",
        "SELECT * FROM sales WHERE 1 = 0 OR quantity > 3",
        "SELECT * FROM sales WHERE NOT 1 = 0",
        "SELECT * FROM sales WHERE quantity <> quantity",
        "SELECT * FROM sales WHERE current_date < '2020-01-01'",
        "SELECT * FROM sales WHERE (SELECT false)",
        "SELECT * FROM sales UNION ALL (SELECT * FROM sales LIMIT 0)",
        "(SELECT * FROM sales LIMIT 0) UNION ALL SELECT * FROM sales",
        "SELECT * FROM sales, (SELECT 1 LIMIT 0) nothing",
        "WITH s AS (SELECT * FROM sales) (SELECT * FROM s LIMIT 0) UNION ALL SELECT * FROM s",
        "SELECT (SELECT count(*) FROM sales) FROM regions WHERE false",
        "SELECT count(*) FROM regions WHERE false HAVING EXISTS (SELECT FROM sales)",
        "SELECT count(*) FROM regions WHERE false OFFSET (SELECT count(*) FROM sales)",
        "SELECT count(*) FROM regions WHERE false ORDER BY (SELECT count(*) FROM sales)",
        "SELECT * FROM sales TABLESAMPLE SYSTEM (10) LIMIT 0",
        "SELECT * FROM ONLY sales LIMIT 0",
        "EXPLAIN ANALYZE SELECT * FROM sales LIMIT 0",
        "SELECT * INTO copied FROM sales LIMIT 0",
        "CREATE TABLE copied AS SELECT * FROM sales LIMIT 0",
        "INSERT INTO regions SELECT country, country FROM sales LIMIT 0",
        "WITH gone AS (DELETE FROM sales RETURNING *) SELECT * FROM gone LIMIT 0",
        "COPY (SELECT * FROM sales) TO STDOUT",
    ],
)
def test_whatever_may_show_a_row_is_refused_as_before(sql: str) -> None:
    with pytest.raises(KeyholeError, match="KH10"):
        classify(sql, retail())


def test_an_empty_branch_beside_a_question_leaves_the_question() -> None:
    question = "SELECT country FROM sales GROUP BY country HAVING count(*) > 50"
    statement = classify(f"{question} UNION ALL (SELECT ward FROM visits LIMIT 0)", retail())
    assert isinstance(statement, Asking)
    assert [part.text for part in statement.questions] == [question]
    assert not statement.is_constantly_empty


@pytest.mark.parametrize("condition", ["false", "quantity > 1"])
def test_a_whole_table_is_a_row_even_of_nothing(condition: str) -> None:
    sql = f"SELECT true FROM sales WHERE {condition} HAVING count(*) < 5"
    found = [classify(text, retail()) for text in (sql, f"{sql} LIMIT 0")]
    assert [isinstance(statement, Asking) and statement.is_constantly_empty for statement in found] == [False, True]
