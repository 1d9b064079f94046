"""No row that satisfies a condition makes an engine read more tables: plans that were executed tell.

Two questions differ in a constant: one row of all has the first, and none has the second. An engine that looks for such
rows first finds nothing to join, and need not read the other tables.
"""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from planner.catalog.catalog import Column, PublicTable, SqlType, Table
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.policy.sections import SourceSection
from planner.question.plan import Rewritten
from proxy.sources.engine_settings import make_engine_settings
from proxy.sources.pinned_relations import embed_pinned_rows
from tests.planner.asked import asked
from tests.proxy.sources.test_work_of_a_row import walk
from tests.proxy.sources.unit_paths.shop import TYPES, compiled
from tests.worlds.house import new_database

ROWS = 6_000  # of each table: several vectors of DuckDB's, which may stop behind the first
THERE, ABSENT = 777_777, 777_778  # a price, an amount and a customer's key that one row has, and none
_I = f"FROM generate_series(1, {ROWS}) AS t(i)"
FILLED = {
    "customers": f"CASE WHEN i = 5 THEN {THERE} ELSE i END, 'h' || CAST(i AS text), 'north'",
    "orders": f"'a', i, CASE i WHEN 5 THEN {THERE} ELSE i END, 1 + i % 3, CASE i WHEN 7 THEN {THERE} ELSE i % 6 END",
    "lines": f"'a', i, 'air', 1 + i % 3, CASE WHEN i = 9 THEN {THERE} ELSE i % 9 END",
}
ARTICLES = PublicTable(
    name="articles",
    columns=(Column("a_key", SqlType.INTEGER, "integer"), Column("a_kind", SqlType.TEXT, "text")),
    rows=tuple((i, "x" if i < ROWS // 2 else "y") for i in range(ROWS)),
    digest="articles",
)
_PINNED = (
    f"CREATE TABLE pinned_articles AS SELECT i - 1 AS k, CASE WHEN i > {ROWS // 2} THEN 'y' ELSE 'x' END AS v0 {_I}"
)
_ORDERED = "lines JOIN orders ON l_shop = o_shop AND l_order = o_key"
_ALL = f"{_ORDERED} JOIN customers ON o_customer = c_key"
QUESTIONS = {
    "a line": "SELECT l_mode FROM lines WHERE amount = {x} GROUP BY l_mode HAVING count(*) > 4",
    "a line's order": f"SELECT l_mode FROM {_ORDERED} WHERE o_price = {{x}} GROUP BY l_mode HAVING count(*) > 4",
    "a line, joined": f"SELECT o_month FROM {_ALL} WHERE amount = {{x}} GROUP BY 1 HAVING sum(o_price) > 4",
    "a customer": f"SELECT l_mode FROM {_ALL} WHERE c_key = {{x}} GROUP BY l_mode HAVING count(*) > 4",
    "an order, of persons": "SELECT o.o_month FROM orders o JOIN customers c ON o.household = c.household WHERE"
    " o.o_price = {x} OR c.c_key = {x} GROUP BY 1 HAVING count(*) > 4",
    "a customer, of persons": "SELECT o.o_month FROM orders o JOIN customers c ON o.household = c.household WHERE"
    " c.c_key = {x} GROUP BY 1 HAVING count(*) > 4",
    "on a list": "SELECT l_mode FROM lines WHERE household IN (SELECT household FROM orders WHERE o_price = {x})"
    " GROUP BY l_mode HAVING count(*) > 4",
    "on no list": "SELECT l_mode FROM lines WHERE household NOT IN (SELECT household FROM orders WHERE o_price = {x})"
    " GROUP BY l_mode HAVING count(*) > 4",
    "on a list by key": "SELECT region FROM customers WHERE EXISTS (SELECT * FROM orders WHERE o_customer = c_key AND"
    " o_price = {x}) GROUP BY region HAVING count(*) > 4",
    "on a list by its own key": "SELECT o_month FROM orders o WHERE o_price = {x} AND EXISTS (SELECT * FROM orders p"
    " WHERE p.o_customer = o.o_customer AND p.o_month <> o.o_month) GROUP BY 1 HAVING count(*) > 4",
    "on one of two lists": "SELECT region FROM customers WHERE household IN (SELECT household FROM orders WHERE"
    " o_price = {x}) OR household IN (SELECT household FROM lines WHERE amount = {x}) GROUP BY 1 HAVING count(*) > 4",
    "by totals": "SELECT region FROM customers WHERE household IN (SELECT household FROM lines WHERE amount = {x} GROUP"
    " BY household HAVING count(*) > 0) GROUP BY 1 HAVING count(*) > 4",
    "of listed rows": "SELECT o_month FROM orders WHERE household IN (SELECT household FROM customers) AND o_price ="
    " {x} GROUP BY 1 HAVING count(*) > 4",
    "of listed rows, behind the join alone": "SELECT o_month FROM orders WHERE household IN (SELECT household FROM"
    " customers) AND coalesce(o_price, 0) = {x} GROUP BY 1 HAVING count(*) > 4",
    "of rows of one month, on two lists": "SELECT o_month FROM orders WHERE o_month = 2 AND o_price < {x} AND household"
    " IN (SELECT household FROM customers WHERE c_key = {x}) AND household NOT IN (SELECT household FROM lines WHERE"
    " amount = {x}) GROUP BY 1 HAVING count(*) > 4",
    "of two tables": f"SELECT l_mode FROM {_ALL} WHERE o_price = {{x}} AND amount = {{x}} AND c_key = {{x}} GROUP BY 1"
    " HAVING count(*) > 4",
    "by own values": "SELECT l_mode FROM lines JOIN (SELECT household, count(*) AS n FROM orders WHERE o_price = {x}"
    " GROUP BY 1) o USING (household) WHERE n > 0 GROUP BY 1 HAVING count(*) > 4",
    "by own values, if any": "SELECT l_mode FROM lines LEFT JOIN (SELECT household, min(o_month) AS n FROM orders WHERE"
    " o_price = {x} GROUP BY 1) o USING (household) WHERE coalesce(n, 0) < 4 GROUP BY 1 HAVING count(*) > 4",
    "a line, of one of many public rows": f"SELECT l_mode FROM {_ORDERED} JOIN articles ON a_key = l_month WHERE a_kind"
    " = 'x' AND amount = {x} GROUP BY l_mode HAVING count(*) > 4",
    "a customer, of one of many public rows": "SELECT l_mode FROM lines l JOIN customers c ON l.household = c.household"
    " JOIN articles ON a_key = l_month WHERE a_kind = 'x' AND c.c_key = {x} GROUP BY l_mode HAVING count(*) > 4",
    "an order, whatever public row": f"SELECT a_kind FROM {_ORDERED} JOIN articles ON a_key = l_month WHERE o_price ="
    " {x} GROUP BY a_kind HAVING count(*) > 4",
    "different values": f"SELECT l_mode FROM {_ORDERED} WHERE o_price = {{x}} GROUP BY l_mode"
    " HAVING count(DISTINCT o_month) > 4",
    "totals of persons": "SELECT l_mode FROM (SELECT household, l_mode, sum(amount) AS n FROM lines WHERE amount = {x}"
    " GROUP BY 1, 2) t GROUP BY 1 HAVING count(*) FILTER (WHERE n > 3) > 4",
}


@contextmanager
def on_duckdb(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    settings = make_engine_settings(SourceSection(url="duckdb://"), directory=folder, workers=1)
    with duckdb.connect(config={"disabled_optimizers": settings["disabled_optimizers"]}) as connection:
        for name, columns in FILLED.items():
            connection.execute(f"CREATE TABLE {name} AS {_fill(name, columns)}")
        connection.execute(_PINNED)
        yield connection


@contextmanager
def on_postgres(url: str, folder: Path) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    settings = make_engine_settings(SourceSection(url=url), directory=folder, workers=1)
    with new_database(url) as made, psycopg.connect(made, autocommit=True) as connection:
        for name, columns in FILLED.items():
            connection.execute(f"CREATE TABLE {name} AS {_fill(name, columns)}; ANALYZE {name}".encode())
        connection.execute(f"{_PINNED}; ANALYZE pinned_articles".encode())
        for name, value in settings.items():
            connection.execute(f"SET {name} = {value}".encode())
        yield connection


def _fill(name: str, columns: str) -> str:
    return f"SELECT * FROM (SELECT {columns} {_I}) AS filled({', '.join(TYPES[name])})"


def write(dialect: Dialect, *, keys: bool) -> Iterator[tuple[str, str, str]]:
    """Each question, and its statement with the constant that is there and with the one that is not; likewise with the
    rows of heavy units apart.

    Parameters:
        keys: the source keeps the keys of customers and orders unique.
    """
    catalog = replace(compiled(), public_tables=(ARTICLES,))
    if keys:
        catalog = replace(catalog, tables=tuple(map(_keep_keys, catalog.tables)))
    for name, sql in QUESTIONS.items():
        both = [
            plan_question(asked(sql.format(x=x), catalog=catalog), dialect=dialect).rewritten for x in (THERE, ABSENT)
        ]
        apart = [one.from_kept_steps for one in both if one.from_kept_steps is not None]
        for form, several in ((name, both), (f"{name}, apart", apart)):
            if several:
                there, absent = map(_with_articles, several)
                assert there.replace(str(THERE), str(ABSENT)) == absent, form
                yield form, there, absent


def _with_articles(rewritten: Rewritten) -> str:
    return embed_pinned_rows(rewritten.sql, rewritten.pinned_relations, lambda _: "TABLE pinned_articles")


def _keep_keys(table: Table) -> Table:
    path = None if table.path is None else replace(table.path, table=_keep_keys(table.path.table))
    keys = {"customers": ("c_key",), "orders": ("o_shop", "o_key")}.get(table.name)
    return replace(table, path=path, keys=frozenset() if keys is None else frozenset((frozenset(keys),)))


def test_duckdb_reads_every_table_whole_whether_or_not_a_row_satisfies_a_condition(tmp_path: Path) -> None:
    with on_duckdb(tmp_path) as connection:

        def count_read(sql: str) -> Counter[str]:
            told = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}").fetchone()
            assert told is not None
            nodes = walk(json.loads(told[1])["operator"][0], "children")
            scans = [one for one in nodes if one["type"] == "TABLE_SCAN" and "Table" in one["extra_info"]]
            assert all(one["intermediate_rows"] == ROWS for one in scans), sql
            return Counter(f"{one['extra_info']['Table']} {one['intermediate_rows']}" for one in scans)

        for name, there, absent in write(DUCKDB, keys=False):
            read = count_read(there)
            assert sum(read.values()) > 0, name
            assert read == count_read(absent), name


def _name_scanned(node: dict[str, Any]) -> str | None:
    """The table that a node of a plan reads, or its public rows as a step; None of others."""
    name = node.get("Relation Name") or node.get("CTE Name", "")
    return name if name in {*TYPES, "pinned_articles"} or name.startswith("keyhole_pinned_") else None


@pytest.mark.parametrize("keys", [False, True])
def test_postgresql_reads_every_table_whole_whether_or_not_a_row_satisfies_a_condition(
    postgres_url: str, tmp_path: Path, *, keys: bool
) -> None:
    with on_postgres(postgres_url, tmp_path) as connection:

        def count_read(sql: str) -> Counter[str]:
            told = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}".encode()).fetchone()
            assert told is not None
            found = ((_name_scanned(one), one) for one in walk(told[0][0]["Plan"], "Plans"))
            scans = [(name, one) for name, one in found if name is not None]
            return Counter(
                f"{name} {one['Actual Loops'] * (one['Actual Rows'] + one.get('Rows Removed by Filter', 0))}"
                for name, one in scans
            )

        for name, there, absent in write(POSTGRES, keys=keys):
            read = count_read(there)
            assert sum(read.values()) > 0, name
            assert read == count_read(absent), name
