"""Values of one unit's own rows on the engines: the groups are PostgreSQL's, and one unit moves its own alone."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import numpy as np
import psycopg
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from mechanisms.formula import evaluate_formula
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog
from planner.catalog.key_space import format_value
from planner.extract.outer_query import OuterSql, write_outer_sql
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.scan import rewrite
from planner.plan.build import plan_question
from planner.question.plan import Plan
from planner.question.question import Question
from planner.question.unit_groups import count_unit_groups
from planner.statements.settings import read_accuracy
from proxy.pipeline.claim import find_charged_keys
from tests.effort import examples
from tests.planner.asked import TODAY, asked, asked_once, asking, written_once
from tests.proxy.sources.unit_values.doubles import DOUBLES, OF_DOUBLES, PERSONS, load_doubles_sql
from tests.proxy.sources.unit_values.valued import (
    ASKED,
    CATALOG,
    ODD,
    OF_EXPRESSIONS,
    OF_ROWS,
    OF_SCALARS,
    OF_SUMS,
    TIGHT,
    Rows,
    crowd,
    draw_rows,
    load_sql,
    take_away,
)
from tests.proxy.sources.worlds import Engines
from tests.worlds.retail import retail

_WANTED = read_accuracy({"keyhole.tolerance": "0"}, retail().defaults)
_SETTLED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def _shape(cursor: Any) -> tuple[list[tuple[str, int]], list[str]]:
    described = [(column.name, column.type_code) for column in cursor.description or ()]
    return described, sorted(map(repr, cursor.fetchall()))


@cache
def _plan(sql: str, dialect: Dialect) -> tuple[Question, Plan, OuterSql]:
    """The question of a statement, its plan and the statement around it, for all rows that are drawn."""
    statement = asking(sql, CATALOG)
    (question,) = statement.questions
    what = bind_question(question, CATALOG, accuracy=_WANTED, parameters={}, today=TODAY)
    return what, plan_question(what, dialect=dialect), write_outer_sql(statement, first_parameter=1)


def _ask_engine(sql: str, engine: Any, dialect: Dialect, postgres: psycopg.Connection[Any]) -> Any:
    """The answer of a statement, decided without noise on what the engine gives."""
    what, made, outer = _plan(sql, dialect)
    width, keys = (
        len(what.keys.columns),
        [tuple(map(format_value, what.keys.get_key(i))) for i in range(what.keys.size)],
    )
    found = engine.execute(made.rewritten.sql).fetchall()
    read = {tuple(map(format_value, row[:width])): row[width:] for row in found}
    values = np.array([read.get(key, [0] * len(made.question.functionals)) for key in keys], dtype=np.int64).T
    passed = evaluate_formula(made.question.formula, lambda cut: cut.evaluate(values[cut.functional]), keys=len(keys))
    held = [key for key, has_passed in zip(keys, passed, strict=True) if has_passed]
    arrays = [[key[array.column] for key in held] for array in outer.arrays]
    return _shape(psycopg.RawCursor(postgres).execute(outer.sql, arrays))


@examples(60, quick=4, suppress_health_check=_SETTLED)
@given(rows=draw_rows(odd=False))
def test_groups_are_those_that_postgresql_has(engines: Engines, rows: Rows) -> None:
    """Both engines give what PostgreSQL answers to the statement as it is written, over the rows that have a unit."""
    postgres = engines.writer
    with duckdb.connect() as duck:
        for statement in load_sql(rows):
            duck.execute(statement)
        for sql in (*ASKED, *OF_ROWS, *OF_SUMS, *OF_EXPRESSIONS, *OF_SCALARS):
            postgres.execute("; ".join(_load_truth(rows)).encode())
            expected = _shape(postgres.execute(sql.encode()))
            postgres.execute("; ".join(load_sql(rows)).encode())
            for engine, dialect in ((duck, DUCKDB), (postgres, POSTGRES)):
                assert _ask_engine(sql, engine, dialect, postgres) == expected, (sql, dialect.name)


def _load_truth(rows: Rows) -> list[str]:
    """The tables with what the policy derives, as PostgreSQL reads a statement over them."""
    month = "ALTER TABLE buys ADD COLUMN month date GENERATED ALWAYS AS (date_trunc('month', bought)::date) STORED"
    return [*load_sql(rows, of_somebody=True), month]


@examples(60, quick=4, suppress_health_check=_SETTLED)
@given(rows=draw_rows(odd=True), data=st.data())
def test_one_unit_moves_no_more_than_is_charged(engines: Engines, rows: Rows, data: st.DataObject) -> None:
    """Taken away in all tables, a unit leaves every group but as many as it may be in as it was, and moves each
    functional there by its sensitivity at most. No row fails, and both engines give the same integers."""
    persons = sorted({row[0] for found in rows.values() for row in found if row[0] is not None})
    without = take_away(rows, data.draw(st.sampled_from(persons or [""])))
    _check_moves(rows, without, engines, catalogs=(TIGHT, CATALOG))


def test_thousands_of_odd_rows_of_one_unit_move_no_more_than_is_charged(engines: Engines) -> None:
    """One person has every combination of what rows may hold, each once or several times, others a row or two."""
    others: Rows = {
        "buys": [("bob", "a", datetime(2026, 1, 28, 23), 3, True), ("bob", "b", datetime(2026, 3, 1), 20, None)],
        "calls": [("bob", date(2026, 2, 28), Decimal("7.25")), ("eve", date(2026, 1, 5), Decimal(60))],
    }
    rows = {table: [*others[table], *crowd("zoë", table)] for table in others}
    assert len(rows["buys"]) > 2000
    _check_moves(rows, others, engines, catalogs=(TIGHT,))


def test_odd_doubles_of_a_unit_decide_about_nobody_else(engines: Engines) -> None:
    """Each person has the groups that it has alone, whatever others have, and both engines give the same."""
    questions = {sql: asked(sql, catalog=DOUBLES, tolerance="0") for sql in OF_DOUBLES}
    written = {sql: rewrite(question, dialect=DUCKDB).sql for sql, question in questions.items()}
    found: dict[str, list[list[Any]]] = {sql: [] for sql in OF_DOUBLES}
    with duckdb.connect() as duck:
        for persons in (PERSONS, *({n: own} for n, own in PERSONS.items())):
            for statement in load_doubles_sql(persons):
                duck.execute(statement)
            for sql, answers in found.items():
                answers.append(duck.execute(written[sql]).fetchall())
    engines.writer.execute("; ".join(load_doubles_sql(PERSONS)).encode())
    for sql, (together, *apart) in found.items():
        assert sorted(together) == sorted(row for rows in apart for row in rows), sql
        of_postgres: Any = engines.writer.execute(rewrite(questions[sql], dialect=POSTGRES).sql.encode()).fetchall()
        assert sorted(of_postgres) == sorted(together), sql
    engines.writer.execute(b"DROP TABLE buys")


def _check_moves(rows: Rows, without: Rows, engines: Engines, *, catalogs: Sequence[Catalog]) -> None:
    """Insist that both engines give the same integers, and that they move by what one unit may add."""
    questions = [
        asked_once(sql, catalog, tolerance="0")
        for catalog in catalogs
        for sql in (*ASKED, *OF_ROWS, *OF_SUMS, *OF_EXPRESSIONS, *OF_SCALARS, *ODD)
    ]
    answers = []
    with duckdb.connect() as duck:
        for world in (rows, without):
            for statement in load_sql(world):
                duck.execute(statement)
            engines.writer.execute("; ".join(load_sql(world)).encode())
            found = []
            for question in questions:
                width = len(question.keys.columns)
                answered: list[Any] = [
                    duck.execute(written_once(question, DUCKDB)).fetchall(),
                    engines.writer.execute(written_once(question, POSTGRES).encode()).fetchall(),
                ]
                first, other = ({row[:width]: row[width:] for row in some if any(row[width:])} for some in answered)
                assert first == other, written_once(question, POSTGRES)
                found.append(first)
            answers.append(found)
    for question, before, after in zip(questions, *answers, strict=True):
        moved = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        assert len(moved) <= count_unit_groups(question)
        for key in moved:
            for i, functional in enumerate(question.functionals):
                whole, rest = (some.get(key, (0,) * len(question.functionals))[i] for some in (before, after))
                assert abs(whole - rest) <= functional.sensitivity


def test_no_value_narrows_what_is_charged() -> None:
    """Without a cell a unit has another value: two questions about two cohorts tell of the same cells."""
    for sql in (
        *ASKED,
        *OF_ROWS,
        *OF_SUMS,
        *OF_EXPRESSIONS,
        *OF_SCALARS,
        ASKED[0].replace(" GROUP BY 1, 2", " WHERE cohort = '2026-01-01' GROUP BY 1, 2"),
    ):
        _, cells = find_charged_keys(asked(sql, catalog=CATALOG, tolerance="0"), version="1")
        assert not cells.columns, sql
