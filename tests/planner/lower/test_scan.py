"""The text of rewritten questions: one scan, steps told in comments, nothing of the analyst's unquoted."""

import json
import re
from dataclasses import replace
from operator import attrgetter
from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from mechanisms.formula import TRUE
from planner.catalog.catalog import Column, SqlType, Table
from planner.catalog.key_space import KeySpace
from planner.errors import KeyholeError
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.scan import rewrite
from planner.question.condition import ALWAYS, Compare, Like
from planner.question.question import Functional, Question
from planner.values.sql_literals import quote_name, quote_text
from tests.worlds.questions import CAPPED, CLIPPED, COUNTRIES, FRANCE, ROWS, count, question, total

DIALECTS = (DUCKDB, POSTGRES)


def _question(table: Table, *functionals: Functional, keys: tuple[str, ...] = ("country", "month")) -> Question:
    asked = question(TRUE, *(functionals or (count(table=table),)), table=table)
    columns = tuple(table.get_column(name) for name in keys)
    return replace(asked, keys=KeySpace(columns=columns, values=tuple(column.domain or () for column in columns)))


def _tree(sql: str, dialect: Dialect) -> exp.Query:
    parsed = sqlglot.parse_one(sql, dialect=dialect.name)
    assert isinstance(parsed, exp.Query)
    return parsed


@pytest.mark.parametrize("dialect", DIALECTS, ids=attrgetter("name"))
@pytest.mark.parametrize("table", [ROWS, CLIPPED, CAPPED], ids=["row", "clipped", "capped"])
def test_the_table_is_read_once_and_once_for_a_list_and_every_step_is_told(table: Table, dialect: Dialect) -> None:
    sql = rewrite(_question(table, count(table=table), total(table=table)), dialect=dialect).sql
    scans = [scan for scan in _tree(sql, dialect).find_all(exp.Table) if scan.name == "sales"]
    assert len(scans) == (2 if table is CLIPPED else 1)
    steps = len(re.findall(r" AS (?:MATERIALIZED )?\(\n", sql)) - len(re.findall(r"\) AS MATERIALIZED \(\n", sql))
    assert sum(line.strip().startswith("-- ") for line in sql.split("\n")) > steps > 0


@pytest.mark.parametrize("dialect", DIALECTS, ids=attrgetter("name"))
def test_columns_are_keys_then_functionals(dialect: Dialect) -> None:
    sql = rewrite(_question(CLIPPED, count(table=CLIPPED), total(table=CLIPPED)), dialect=dialect).sql
    assert _tree(sql, dialect).named_selects == ["k0", "k1", "f0", "f1"]


def test_keys_are_chosen_only_where_a_unit_could_have_too_many() -> None:
    def chooses(table: Table, keys: tuple[str, ...]) -> bool:
        return "chosen" in rewrite(_question(table, keys=keys), dialect=POSTGRES).sql

    assert chooses(CLIPPED, ("country", "month"))
    assert not chooses(CLIPPED, ("month",))
    assert not chooses(replace(CLIPPED, groups_per_unit=len(COUNTRIES)), ("country", "month"))
    assert chooses(replace(CLIPPED, groups_per_unit=len(COUNTRIES) - 1), ("country", "month"))
    assert chooses(replace(CLIPPED, unit=("customer_id",), groups_per_unit=len(COUNTRIES)), ("country", "month"))


def test_bounding_comes_before_where() -> None:
    """No WHERE of a step that reads or chooses rows mentions what the question filters by."""
    asked = replace(_question(CAPPED), where=Compare("amount", ">", 7))
    for where in _tree(rewrite(asked, dialect=POSTGRES).sql, POSTGRES).find_all(exp.Where):
        assert "amount" not in where.sql()


def test_the_list_of_crowded_units_is_the_same_whatever_is_asked_of_rows_and_keys() -> None:
    asked = _question(CLIPPED)
    fewer = replace(asked.keys, values=(("France",), asked.keys.values[1]))
    questions = [
        asked,
        replace(asked, where=Compare("amount", ">", 7)),
        replace(asked, keys=fewer),
        replace(_question(CLIPPED, total(table=CLIPPED)), where=Like("country", "F%")),
    ]
    lists = [rewrite(one, dialect=POSTGRES).steps for one in questions]
    assert len(lists[0]) == 1
    assert all(steps == lists[0] for steps in lists)
    assert "Norway" in lists[0][0].definition


def test_duckdb_tests_keys_of_groups_and_not_of_rows() -> None:
    with duckdb.connect() as connection:
        stored = [c for c in CLIPPED.columns if c.derivation is None]
        connection.execute(f"CREATE TABLE sales ({', '.join(f'{quote_name(c.name)} {c.declared}' for c in stored)})")
        some = "i % 9, ['France', 'Oz'][1 + i % 2], DATE '2011-01-01' + (i % 60)::integer"
        connection.execute(f"INSERT INTO sales (customer_id, country, month) SELECT {some} FROM range(99) AS r(i)")
        sql = rewrite(_question(CLIPPED), dialect=DUCKDB).sql
        (plan,) = json.loads(connection.execute(f"EXPLAIN (FORMAT json) {sql}").fetchall()[0][1])

    def flatten(node: dict[str, Any]) -> list[dict[str, Any]]:
        return [node, *(one for child in node["children"] for one in flatten(child))]

    asking = [one for one in flatten(plan) if "Norway" in str(one["extra_info"])]
    assert asking
    assert all(any("GROUP_BY" in one["name"] for one in flatten(node)) for node in asking)


def test_the_questions_own_keys_are_restricted_after_all_groups_are_ranked() -> None:
    asked = _question(CAPPED)
    fewer = replace(asked, keys=replace(asked.keys, values=(("France",), asked.keys.values[1])))
    wheres = [where.sql() for where in _tree(rewrite(fewer, dialect=POSTGRES).sql, POSTGRES).find_all(exp.Where)]
    assert sum("Norway" in where for where in wheres) == 1
    assert sum("Norway" not in where and "France" in where for where in wheres) == 1


@pytest.mark.parametrize("dialect", DIALECTS, ids=attrgetter("name"))
@given(value=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12))
def test_constants_and_names_cannot_leave_their_quotes(dialect: Dialect, value: str) -> None:
    literal = sqlglot.parse_one(f"SELECT {quote_text(value)}", dialect=dialect.name).expressions[0]
    assert literal == exp.Literal.string(value) or "\\" in value or "\n" in value
    assert quote_text(value).startswith("E'" if "\n" in value else "'")
    assert "'" not in quote_text(value).removeprefix("E")[1:-1].replace("''", "")
    assert '"' not in quote_name(value)[1:-1].replace('""', "")


@given(value=st.text(st.sampled_from("a\n\r\\'\"n\t$é"), max_size=8))
def test_constants_with_line_breaks_are_one_line_and_mean_the_same(value: str) -> None:
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT {quote_text(value)}").fetchall() == [(value,)]
    assert "\n" not in quote_text(value)


@pytest.mark.parametrize("value", ["a\x00b", "\ud800"])
def test_text_that_sql_cannot_hold_is_refused(value: str) -> None:
    for condition in (Compare("country", "=", value), Like("country", value)):
        with pytest.raises(KeyholeError, match="KH212"):
            rewrite(replace(_question(ROWS), where=condition), dialect=POSTGRES)


@pytest.mark.parametrize("table", [ROWS, CLIPPED, CAPPED], ids=["row", "clipped", "capped"])
def test_a_sensitivity_that_is_too_small_is_never_run(table: Table) -> None:
    for functional in (count(table=table), total(table=table)):
        rewrite(_question(table, functional), dialect=POSTGRES)
        with pytest.raises(KeyholeError, match="KH900"):
            rewrite(_question(table, replace(functional, sensitivity=functional.sensitivity - 1)), dialect=POSTGRES)


def test_an_integer_without_a_grid_counts_in_ones() -> None:
    table = replace(
        ROWS,
        columns=tuple(
            replace(c, sql_type=SqlType.INTEGER, declared="integer", grid=None) if c.name == "amount" else c
            for c in ROWS.columns
        ),
    )
    assert '"amount"' in rewrite(_question(table, total(table=table)), dialect=POSTGRES).sql


def test_types_that_cannot_be_computed_with_are_refused() -> None:
    table = replace(ROWS, columns=(*ROWS.columns, Column("extra", SqlType.OTHER, "jsonb")))
    for dialect in DIALECTS:
        with pytest.raises(KeyholeError, match="KH205"):
            rewrite(replace(_question(table), where=Compare("extra", "=", "x")), dialect=dialect)


def test_equal_questions_have_equal_text() -> None:
    asked = replace(_question(CAPPED, count(FRANCE, table=CAPPED)), where=ALWAYS)
    assert rewrite(asked, dialect=DUCKDB) == rewrite(replace(asked), dialect=DUCKDB)
