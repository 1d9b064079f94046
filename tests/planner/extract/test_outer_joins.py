"""Outer joins of private tables that become inner ones, over random worlds in which both sides lack rows and values:
PostgreSQL gives the same groups for both, but for groups of NULL, which no declared key has."""

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from sqlglot import exp

from planner.extract.outer_joins.join_both_sides import join_both_sides
from planner.extract.private_read import PrivateRead
from planner.parser.edits import Edit
from planner.parser.lexer import read_tokens
from planner.parser.tree import parse, read_name
from tests.effort import rounds
from tests.worlds.stays import people

CATALOG = people()
_TABLES = """
CREATE TEMPORARY TABLE stays (patient_id integer, ward text, age integer, cost numeric);
CREATE TEMPORARY TABLE patients (patient_id integer, sex text, weight integer);
CREATE TEMPORARY TABLE wards (name text, floor integer);
INSERT INTO wards VALUES ('A', 1), ('B', 2), ('C', 2)
"""
_JOINS = (
    "{a} {side} JOIN {b} ON s.patient_id = p.patient_id",
    "{a} {side} JOIN {b} USING (patient_id)",
    "{a} {side} OUTER JOIN {b} ON p.patient_id = s.patient_id AND s.age > 3",
    "{a} {side} JOIN {b} ON p.patient_id = s.patient_id LEFT JOIN wards w ON w.name = s.ward",
    "{a} {side} JOIN {b} ON p.patient_id = s.patient_id JOIN wards w ON w.name = s.ward",
    "wards w {side} JOIN stays s ON w.name = s.ward JOIN patients p ON s.patient_id = p.patient_id",
    "wards w LEFT JOIN stays s ON w.name = s.ward {side} JOIN patients p ON s.patient_id = p.patient_id",
)
_CONDITIONS = (
    "s.age > 3", "p.weight < 60", "p.sex = 'f' OR s.age > 4", "p.sex IS NOT NULL", "NOT (s.age > 5)", "s.age IS NULL",
    "coalesce(s.age, 4) > 3", "(weight > 50) IS NOT TRUE", "CASE WHEN s.age > 3 THEN true ELSE weight > 50 END",
    "s.ward IN ('A', 'B')", "p.weight NOT BETWEEN 40 AND 60", "(s.age > 3) IS TRUE AND p.sex = 'm'", "sex LIKE 'f%'",
    "NOT (p.weight IS NULL)", "s.age + p.weight > 60", "NOT (s.age > 3 AND weight > 50)",
)  # fmt: skip
_COUNTED = (
    "count(*)", "count(s.cost)", "sum(p.weight)", "count(DISTINCT p.patient_id)", "count(*) FILTER (WHERE s.age > 3)",
    "count(CASE WHEN s.age > 3 THEN 1 END)", "count(CASE WHEN s.age > 3 THEN 1 ELSE weight END)", "max(s.age + weight)",
    "count(coalesce(s.age, 1))", "sum(s.cost) FILTER (WHERE p.sex = 'f' OR s.ward = 'A')",
)  # fmt: skip


@pytest.fixture(scope="module")
def world(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url) as connection:
        connection.execute(_TABLES)
        yield connection


def _fill(connection: psycopg.Connection[Any], drawn: random.Random) -> None:
    connection.execute("TRUNCATE stays, patients")
    for _ in range(25):
        stay = (drawn.choice((*range(9), None)), drawn.choice(("A", "B", "D", None)), drawn.choice((*range(8), None)))
        connection.execute("INSERT INTO stays VALUES (%s, %s, %s, %s)", (*stay, drawn.choice((2, 5, None))))
    for person in (*range(3, 14), None, None):
        patient = (person, drawn.choice(("f", "m", None)), drawn.choice((30, 45, 55, 70, None)))
        connection.execute("INSERT INTO patients VALUES (%s, %s, %s)", patient)


def _draw_statement(drawn: random.Random) -> str:
    a, b = drawn.sample(("stays s", "patients p"), 2)
    joined = drawn.choice(_JOINS).format(a=a, b=b, side=drawn.choice(("LEFT", "RIGHT", "FULL")))
    conditions = drawn.sample(_CONDITIONS, drawn.choice((0, 1, 1, 2)))
    where = f" WHERE {' AND '.join(f'({one})' for one in conditions)}" if conditions else ""
    key = drawn.choice(("s.ward", "p.sex", "sex, ward"))
    wanted = drawn.sample(_COUNTED, drawn.choice((1, 1, 2)))
    having = " AND ".join(f"{one} > {drawn.randrange(1, 4)}" for one in wanted)
    group = key if drawn.random() < 0.6 or "," in key else "1"
    return f"SELECT {key} FROM {joined}{where} GROUP BY {group} HAVING {having}"


def _rewrite(sql: str) -> str:
    """The statement after the rule, as often as it applies."""
    while True:
        query = parse(sql, read_tokens(sql))
        select = query.tree
        assert isinstance(select, exp.Select)
        node = next(one for one in select.find_all(exp.Table) if read_name(one.this) == "stays")
        edits: tuple[Edit, ...] = join_both_sides(PrivateRead(query, select, node, CATALOG.tables[0], CATALOG))
        if not edits:
            return sql
        (edit,) = edits
        sql = sql[: edit.start] + edit.text + sql[edit.end :]


def test_groups_are_those_of_the_outer_join(world: psycopg.Connection[Any]) -> None:
    drawn = random.Random(33)
    changed = found = 0
    for number in range(rounds(3000, quick=400)):
        if number % 40 == 0:
            _fill(world, drawn)
        asked = _draw_statement(drawn)
        written = _rewrite(asked)
        if written == asked:
            continue
        before, after = (
            [row for row in world.execute(one.encode()).fetchall() if None not in row] for one in (asked, written)
        )
        assert sorted(before) == sorted(after), (asked, written)
        changed += 1
        found += bool(before)
    assert changed > rounds(1000, quick=130)
    assert found > changed / 3


@pytest.mark.parametrize("group", ["p.patient_id", "1", "p.sex, patient_id"])
def test_who_has_no_row_has_a_total_of_nothing(group: str) -> None:
    """Behind an inner join such a unit would have no total, and be in no group of the query that reads it."""
    joined = "patients p LEFT JOIN stays s ON s.patient_id = p.patient_id"
    sql = f"SELECT p.patient_id, count(s.cost) AS stays FROM {joined} GROUP BY {group}"
    assert _rewrite(sql) == sql
    assert _rewrite(f"SELECT sex FROM {joined} GROUP BY sex HAVING count(s.cost) > 3").count("LEFT") == 0
