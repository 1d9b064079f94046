"""Texts that GROUP BY computes, as a CASE of conditions: PostgreSQL gives the same rows and names for both, whatever
texts there are."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from sqlglot import exp

from planner.extract.normalise import Rule
from planner.extract.open_text_keys import spell_out_listed_texts, spell_out_simple_cases
from planner.extract.private_read import PrivateRead
from planner.parser.lexer import read_tokens
from planner.parser.tree import parse, read_name
from tests.worlds.retail import retail

CATALOG = retail()
_TEXTS = ("A", "a", " a", "a ", "b", "B", "O'B", "o'b", "a\\b", "A\\B", "x\ny", "", None, "c d", "C D e")


@pytest.fixture(scope="module")
def world(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TEMPORARY TABLE sales (stock_code text, country text, quantity integer)")
        for number, text in enumerate(_TEXTS * 3):
            connection.execute("INSERT INTO sales VALUES (%s, %s, %s)", (text, "UK", number % 4))
        yield connection


def _rewrite(sql: str, rule: Rule) -> str:
    """The statement after a rule, as often as it applies."""
    while True:
        query = parse(sql, read_tokens(sql))
        select = query.tree
        assert isinstance(select, exp.Select)
        node = next(one for one in select.find_all(exp.Table))
        table = next(one for one in CATALOG.tables if one.name == read_name(node.this))
        edits = rule(PrivateRead(query, select, node, table, CATALOG))
        if not edits:
            return sql
        for edit in sorted(edits, reverse=True):
            sql = sql[: edit.start] + edit.text + sql[edit.end :]


def _compare(world: psycopg.Connection[Any], sql: str, written: str) -> int:
    """Insist that PostgreSQL gives the same columns and rows for both, and return how many rows."""
    before, after = world.execute(sql.encode()), world.execute(written.encode())
    assert [one.name for one in before.description or ()] == [one.name for one in after.description or ()]
    assert sorted(map(repr, before.fetchall())) == sorted(map(repr, after.fetchall()))
    return before.rowcount


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT lower(stock_code), count(*) FROM sales WHERE lower(stock_code) IN ('a', 'b', 'o''b') GROUP BY 1",
        "SELECT trim(stock_code), trim(stock_code) = 'a' AS is_a FROM sales WHERE trim(stock_code) = 'a'"
        " OR trim(stock_code) = 'B' GROUP BY trim(stock_code) ORDER BY trim(stock_code) DESC",
        "SELECT upper(trim(s.stock_code)) AS code FROM sales s WHERE quantity > 1 AND upper(trim(s.stock_code)) IN "
        "('A', E'A\\\\B', E'X\\nY', '') GROUP BY code HAVING count(upper(trim(s.stock_code))) > 1",
        "SELECT coalesce(stock_code, 'no') FROM sales WHERE (coalesce(stock_code, 'no') IN ('no', 'b')) GROUP BY 1",
        "SELECT split_part(stock_code, ' ', 1) || '!' AS part FROM sales WHERE split_part(stock_code, ' ', 1) IN "
        "('c', 'C', 'a') GROUP BY split_part(stock_code, ' ', 1)",
        "SELECT replace(stock_code, ' ', '') FROM sales WHERE replace(stock_code, ' ', '') = 'a' GROUP BY 1",
    ],
)
def test_a_listed_text_is_what_it_was(world: psycopg.Connection[Any], sql: str) -> None:
    written = _rewrite(sql, spell_out_listed_texts)
    assert "CASE WHEN" in written
    assert _compare(world, sql, written) > 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CASE lower(stock_code) WHEN 'a' THEN 1 WHEN 'b' THEN 2 ELSE 3 END, count(*) FROM sales GROUP BY 1",
        "SELECT CASE trim(stock_code) WHEN 'a' THEN country WHEN lower('B') THEN 'b' END AS k FROM sales GROUP BY k",
    ],
)
def test_a_case_is_what_it_was(world: psycopg.Connection[Any], sql: str) -> None:
    written = _rewrite(sql, spell_out_simple_cases)
    assert "CASE  WHEN" in written
    assert _compare(world, sql, written) > 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT lower(stock_code) FROM sales GROUP BY 1",
        "SELECT lower(stock_code) FROM sales WHERE lower(stock_code) NOT IN ('a', 'b') GROUP BY 1",
        "SELECT lower(stock_code) FROM sales WHERE lower(stock_code) IN ('a', 'b') OR quantity > 1 GROUP BY 1",
        "SELECT lower(stock_code) FROM sales WHERE upper(stock_code) IN ('A', 'B') GROUP BY 1",
        "SELECT lower(country) FROM sales WHERE lower(country) IN ('france', 'spain') GROUP BY 1",
        "SELECT lower(stock_code) FROM sales WHERE lower(stock_code) IN ('a', lower('B')) GROUP BY 1",
        "SELECT lower(stock_code)::text FROM sales WHERE lower(stock_code) IN ('a', 'b') GROUP BY lower(stock_code)",
    ],
)
def test_what_is_not_listed_or_known_already_stays(sql: str) -> None:
    assert _rewrite(sql, spell_out_listed_texts) == sql
