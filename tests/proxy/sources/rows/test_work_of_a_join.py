"""One unit's work is bounded: whatever a joined question asks, no step of the engine gives more rows than are stored.

Nothing is timed. Rows are counted by the engine, for each step of the plan that it executed.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal

import duckdb

from planner.catalog.catalog import Catalog, Column, SqlType, Table
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from tests.planner.asked import asked
from tests.proxy.sources.rows.test_rows_before_a_join import NAMES, member
from tests.proxy.sources.test_work_of_a_row import walk
from tests.proxy.sources.worlds import Engines
from tests.worlds.retail import retail

CAPS = {2: 12, 3: 5}  # rows of a person that are read of each table, by how many tables are joined
OTHERS = 3  # with a row in each table
ROWS = (40, 400)  # of the person
_ON = {
    2: "JOIN second s ON s.person = f.person",
    3: "JOIN second s ON s.person = f.person JOIN third t ON t.person = f.person",
}
_ASKED = (
    "GROUP BY f.ward HAVING count(*) > 5",
    "WHERE s.age > 3 GROUP BY f.ward HAVING count(*) FILTER (WHERE f.age < 30 OR s.ward = 'A') > 5",
    "GROUP BY f.ward, s.ward HAVING sum(s.age) > 5 AND count(DISTINCT f.age) > 3",
    "WHERE f.person = 'q' GROUP BY s.ward HAVING avg(f.age) > 5",
)


def joined_questions() -> Iterator[tuple[int, str]]:
    """Questions over two tables and over three, by how many they join."""
    for tables, on in _ON.items():
        for one in _ASKED:
            keys = one.split("GROUP BY ")[1].split(" HAVING")[0]
            yield tables, f"SELECT {keys} FROM first f {on} {one}"


def joined_catalog(tables: int, *, relations: Mapping[str, str]) -> Catalog:
    """Tables of one unit, of each of which a join reads few rows."""
    ward = Column("ward", SqlType.TEXT, "text", domain=("A", "B"))
    span = (Decimal(0), Decimal(100))
    age = Column("age", SqlType.INTEGER, "bigint", bounds=span, grid=Decimal(1), per_unit=span)

    def declared(name: str) -> Table:
        found = member(name, rows=CAPS[tables])
        own = tuple(replace(column, ledger=f"{name}.{column.name}") for column in (ward, age))
        return replace(found, columns=(found.columns[0], *own), groups_per_unit=2, relation=relations.get(name, name))

    return replace(retail(), tables=tuple(map(declared, NAMES[:tables])))


def stored_rows_sql(rows: int) -> str:
    """The rows of each table: one of each of the others, and all of one person."""
    ward = "CASE WHEN i % 2 = 0 THEN 'A' ELSE 'B' END"
    return (
        f"SELECT 'p' || CAST(i AS text) AS person, 'A' AS ward, i AS age FROM generate_series(1, {OTHERS}) AS t(i)"
        f" UNION ALL SELECT 'q', {ward}, i % 90 FROM generate_series(1, {rows}) AS u(i)"
    )


def check_steps(steps: list[float], *, tables: int, rows: int) -> None:
    """No step reads or gives more rows than a table has, or than there are pairs of rows that a join reads.

    PostgreSQL may compare all these pairs. Of the person they are a public number.
    """
    compared = (OTHERS + CAPS[tables]) ** tables
    assert max(steps) <= max(OTHERS + rows, compared), steps
    assert max(steps) >= CAPS[tables] ** 2, steps  # the person's rows were joined: with sums of a third table's rows


def planned_sql(tables: int, sql: str, dialect: Dialect, relations: Mapping[str, str] | None = None) -> str:
    """The statement that a source is asked."""
    question = asked(sql, catalog=joined_catalog(tables, relations=relations or {}))
    return plan_question(question, dialect=dialect).rewritten.sql


def test_no_step_gives_more_rows_than_are_stored_or_joined(engines: Engines) -> None:
    for rows in ROWS:
        loads = "; ".join(f"CREATE TABLE {name} AS {stored_rows_sql(rows)}" for name in NAMES)
        engines.writer.execute(f"DROP TABLE IF EXISTS {', '.join(NAMES)}; {loads}".encode())
        with duckdb.connect() as duck:
            duck.execute(loads)
            for tables, sql in joined_questions():
                told = duck.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {planned_sql(tables, sql, DUCKDB)}").fetchone()
                assert told is not None
                root = json.loads(told[1])["operator"][0]
                check_steps([one["intermediate_rows"] for one in walk(root, "children")], tables=tables, rows=rows)
                told = engines.writer.execute(
                    f"EXPLAIN (ANALYZE, FORMAT JSON) {planned_sql(tables, sql, POSTGRES)}".encode()
                ).fetchone()
                assert told is not None
                nodes = list(walk(told[0][0]["Plan"], "Plans"))
                check_steps([one["Actual Rows"] * one["Actual Loops"] for one in nodes], tables=tables, rows=rows)
        engines.writer.execute(f"DROP TABLE {', '.join(NAMES)}".encode())
