"""Whatever a statement looks like: private tables are read inside recognised questions alone, or PostgreSQL refuses.

Statements are put together and damaged at random. What Keyhole accepts is run on the real shadow under the analyst's
role with empty answers. A view over what ran, made by the owner, tells which relations it reads.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from planner.errors import CATALOGUE, KeyholeError
from planner.extract.outer_query import Asking, write_outer_sql
from planner.parser.lexer import read_tokens
from planner.statements.classify import ExplainStatement, PassThrough, classify
from proxy.shadow.address import OWNER, ShadowAddress
from tests.effort import examples
from tests.worlds.countries import QUESTION, endpoint_catalog

TOTALS = "SELECT country, patient_id, count(*) AS n FROM visits GROUP BY country, patient_id"
_STARTS = (
    QUESTION,
    "SELECT s.country FROM public.sales AS s WHERE amount > 5 GROUP BY s.country HAVING sum(s.amount) > 50",
    "SELECT * FROM sales",
    "SELECT r.region FROM regions r",
    "TABLE regions",
    "SELECT * FROM busy",
    "SELECT country FROM regions WHERE region = 'sales'",
    "SELECT * FROM keyhole.settings",
    f"{QUESTION} INTERSECT SELECT country FROM sales WHERE quantity > 1 GROUP BY country HAVING count(*) > 9",
    "SELECT r.country, (SELECT count(*) FROM busy) FROM regions r JOIN busy b ON b.country = r.country",
    f"SELECT country FROM ({TOTALS}) q WHERE n > 3 GROUP BY country HAVING count(*) > 20",
    f"WITH q AS ({TOTALS}) SELECT country FROM q WHERE n > 3 GROUP BY country HAVING count(*) > 20",
    f"WITH q AS ({TOTALS}), r AS (SELECT country FROM q s GROUP BY country HAVING avg(n) > 2) SELECT * FROM r, regions",
    TOTALS,
)
_NAMES = (
    "sales",
    "SALES",
    '"sales"',
    '"Sales"',
    "public.sales",
    'public /* . */ . "sales"',
    "retail.public.sales",
    "ONLY sales",
    "ſales",
    "sаles",
    "ｓales",
    'U&"s\\0061les"',
    "other.sales",
    "pg_temp.sales",
    "busy",
    "regions",
    "keyhole.budget",
    "visits",
    "public.visits q",
    "q AS visits",
    "sales AS regions",
    "regions AS sales",
    "sales regions (country)",
    "(sales)",
    "sales, regions",
    "sales CROSS JOIN regions",
    "sales*",
    "q",
)
_WRAPS = (
    "SELECT * FROM ({0}) q",
    'SELECT "source"."country" FROM ({0}) "source" LIMIT 1001',
    "WITH q AS ({0}) SELECT * FROM q",
    "WITH q AS MATERIALIZED ({0}), regions AS (SELECT * FROM q) SELECT * FROM regions",
    "WITH sales AS ({0}) SELECT * FROM sales",
    'WITH "sales" (country) AS ({0}) SELECT country FROM sales GROUP BY country HAVING count(*) > 20',
    "WITH RECURSIVE q AS ({0} UNION ALL SELECT * FROM q) SELECT 1 FROM q",
    "SELECT * FROM regions WHERE country IN ({0})",
    "SELECT * FROM regions WHERE EXISTS ({0})",
    "SELECT ({0})",
    "SELECT ARRAY({0})",
    "SELECT * FROM regions sales, LATERAL ({0}) q",
    "({0}) UNION ALL ({1})",
    "{0} INTERSECT {1}",
    "({0}) EXCEPT {1}",
    "VALUES (({0} LIMIT 1))",
    "SELECT country FROM sales WHERE country IN ({0}) GROUP BY country HAVING count(*) > 20",
    "SELECT country FROM sales GROUP BY country HAVING count(*) > ({0})",
    "SELECT country FROM sales GROUP BY country HAVING count(*) > 20 ORDER BY ({0})",
    "SELECT country FROM ({0}) AS sales GROUP BY country HAVING count(*) > 20",
    "SELECT country FROM ({0}) AS q WHERE n > 3 GROUP BY country HAVING sum(n) > 20",
    "WITH q AS ({0}) SELECT country FROM q GROUP BY country HAVING count(*) > 20",
    "WITH q AS ({0}), regions AS ({1}) SELECT country FROM regions GROUP BY country HAVING count(*) > 20",
    "SELECT * FROM regions WHERE EXISTS (WITH q AS ({0}) SELECT * FROM q WHERE q.country = regions.country)",
    "EXPLAIN {0}",
)
_NOISE = ("/* sales */", "-- sales\n", "/* /* */ ; */", ",", "(", ")", "FROM", "AS", "sales", ".", "*", "'", "SELECT")


@st.composite
def _statements(draw: st.DrawFn) -> str:
    sql = draw(st.sampled_from(_STARTS))
    for _ in range(draw(st.integers(0, 3))):
        sql = draw(st.sampled_from(_WRAPS)).format(sql, draw(st.sampled_from(_STARTS)))
    random = Random(draw(st.integers(0, 10**6)))
    for _ in range(draw(st.integers(0, 3))):
        sql = _damaged(sql, draw(st.sampled_from(("swap", "name", "move", "drop", "add", "case", "quote"))), random)
    return sql


def _damaged(sql: str, way: str, random: Random) -> str:
    try:
        found = [sql[token.start : token.end] for token in read_tokens(sql)]
    except KeyholeError:
        return sql
    names = [
        i for i, text in enumerate(found) if text.lower().strip('"') in ("sales", "visits", "regions", "busy", "q")
    ]
    place = random.randrange(len(found))
    match way:
        case "swap" | "name" if names:
            found[random.choice(names)] = random.choice(_NAMES)
        case "move":
            found.insert(random.randrange(len(found)), found.pop(place))
        case "drop" if len(found) > 1:
            del found[place]
        case "add":
            found.insert(place, random.choice(_NOISE))
        case "case":
            found[place] = found[place].swapcase()
        case "quote" if found[place].isidentifier():
            found[place] = f'"{found[place]}"'
    return " ".join(found)


@pytest.fixture(scope="module")
def ada(shadow: ShadowAddress) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(shadow.make_conninfo(user="ada", database="retail")) as connection:
        yield connection


@pytest.fixture(scope="module")
def owner(shadow: ShadowAddress) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(shadow.make_conninfo(user=OWNER, database="retail")) as connection:
        yield connection


_RELATIONS = """
    SELECT DISTINCT n.nspname, c.relname FROM pg_rewrite r
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
    JOIN pg_class c ON d.refclassid = 'pg_class'::regclass AND c.oid = d.refobjid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE r.ev_class = 'pg_temp.seen'::regclass AND c.oid <> r.ev_class
"""


def _read(owner: psycopg.Connection[Any], sql: str) -> set[tuple[str, str]] | None:
    """The relations that a query reads; None if no view can be made of it."""
    try:
        owner.execute(f"CREATE TEMP VIEW seen AS SELECT 1 FROM ({sql}) AS whole".encode())
        return set(owner.execute(_RELATIONS).fetchall())
    except psycopg.Error:
        return None
    finally:
        owner.rollback()


def _outer(statement: Asking) -> str:
    sql = write_outer_sql(statement, first_parameter=1)
    text = sql.sql
    for array in reversed(sql.arrays):
        text = text.replace(f"${array.number}::text[]", "'{}'::text[]")
    return text


def _accepted(sql: str) -> str | None:
    """What would run in the shadow, with empty answers; None for a refusal and for what Keyhole answers alone."""
    try:
        statement = classify(sql, endpoint_catalog())
    except KeyholeError as refusal:
        _insist_catalogued(refusal)
        return None
    match statement:
        case PassThrough("select" | "explain"):
            return sql
        case Asking():
            return _outer(statement)
        case ExplainStatement():
            return None
        case _:
            raise AssertionError(statement)


def _insist_catalogued(refusal: KeyholeError) -> None:
    assert refusal.code in CATALOGUE


def _sqlstate(ada: psycopg.Connection[Any], sql: str) -> str | None:
    """With what PostgreSQL refuses the statement, if it does."""
    try:
        ada.execute(sql.encode())
    except psycopg.Error as error:
        return error.sqlstate or ""
    finally:
        ada.rollback()
    return None


@given(sql=_statements())
@example(sql="WITH sales AS (SELECT 1) SELECT * FROM sales")
@example(sql="SELECT c FROM (SELECT country AS c, , month FROM sales) q GROUP BY c HAVING count(*) > 20")
@example(sql='SELECT * FROM (SELECT country FROM "sales") q')
@example(sql="SELECT * FROM busy, LATERAL (TABLE public.sales) s")
@example(sql=f"WITH q AS ({TOTALS}) SELECT country FROM q GROUP BY country HAVING count(*) > 20 UNION TABLE q")
@example(sql=f"WITH q AS ({TOTALS}) SELECT r.country FROM regions r, q GROUP BY r.country HAVING count(*) > 20")
@example(sql=f"WITH regions AS ({TOTALS}) SELECT country FROM regions GROUP BY country HAVING count(*) > 2 LIMIT 3")
@example(
    sql=f"SELECT * FROM (SELECT country FROM ({TOTALS}) q GROUP BY country HAVING max(n) > 2) q, LATERAL (TABLE q) p"
)
@examples(250, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_private_tables_are_read_inside_questions_alone(
    ada: psycopg.Connection[Any], owner: psycopg.Connection[Any], sql: str
) -> None:
    runs = _accepted(sql)
    if runs is None:
        return
    state = _sqlstate(ada, runs)
    assert state != "42501", "the statement reached the last line"
    if state is not None:
        return
    read = _read(owner, runs)
    private = {("public", "sales"), ("public", "visits"), ("public", "busy")}
    assert read is None or not read & private
    assert read is None or not any(schema == "keyhole" for schema, _ in read)


@pytest.mark.parametrize("sql", ["SELECT * FROM sales", "SELECT 1 FROM regions WHERE EXISTS (TABLE busy)"])
def test_the_last_line_holds_by_itself(ada: psycopg.Connection[Any], owner: psycopg.Connection[Any], sql: str) -> None:
    assert _read(owner, sql) is not None
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ada.execute(sql.encode())
    ada.rollback()
