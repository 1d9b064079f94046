"""The tables of drawn statements, on DuckDB and PostgreSQL, and what Keyhole computes over them without noise."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import numpy as np
import psycopg

from mechanisms.formula import Booleans, Cut, Integers, evaluate_formula
from mechanisms.ranking.run import Ranking, number_within_partition
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, Column, PublicTable, RowCap, SqlType
from planner.catalog.key_space import format_value
from planner.extract.outer_query import Asking, write_outer_sql
from planner.functionals.per_key_offsets import subtract_offsets
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.scan import rewrite
from planner.plan.reduce import reduce_question
from planner.question.plan import Plan
from planner.question.question import Question
from planner.rankings.mean_scores import compute_scores
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from proxy.pipeline.messages import KeySet
from tests.planner.asked import TODAY
from tests.planner.groups.test_drawn_keys import _for_duck
from tests.planner.groups.test_truth import CATALOG as KEYED
from tests.planner.groups.test_truth import LINES, STORED
from tests.rows_at_once import insert

Row = tuple[Any, ...]
PLACES = (("Aachen", "West", 8), ("Bonn", "West", 9), ("Berlin", "East", 10), (" Basel", "South", 8), ("Ulm", "x", 1))
_WIDE = (Decimal(-100_000), Decimal(100_000))
_STORED = f"{STORED}, id integer"
_PLACES = PublicTable(
    name="places",
    columns=(
        Column("name", SqlType.TEXT, "text"),
        Column("region", SqlType.TEXT, "text"),
        Column("opens", SqlType.INTEGER, "integer"),
    ),
    rows=PLACES,
    digest="2" * 64,
)


def _column(one: Column, total: tuple[Decimal, Decimal]) -> Column:
    if one.name == "hour":
        return replace(one, bounds=(Decimal(0), Decimal(23)), grid=Decimal(1), per_unit=total)
    return one if one.bounds is None else replace(one, per_unit=total)


def make_catalog(
    *, groups: int = 2000, rows: int | None = 1000, total: tuple[Decimal, Decimal] = _WIDE, cap: int | None = None
) -> Catalog:
    """`lines` of persons under these bounds, and `rows`, each of which is a privacy unit."""
    columns = (*(_column(one, total) for one in LINES.columns), Column("id", SqlType.INTEGER, "integer"))
    lines = replace(
        LINES,
        columns=columns,
        groups_per_unit=groups,
        rows_per_unit=None if cap else rows,
        row_cap=RowCap(cap, "id") if cap else None,
    )
    alone = replace(lines, name="rows", relation="rows", unit=(), rows_per_unit=None, row_cap=None)
    return replace(KEYED, tables=(lines, alone), public_tables=(_PLACES,))


@dataclass(frozen=True)
class Engines:
    """PostgreSQL and DuckDB with the same rows."""

    postgres: psycopg.Connection[Any]
    duck: duckdb.DuckDBPyConnection

    @property
    def both(self) -> tuple[tuple[Any, Dialect], ...]:
        """Each engine with its dialect."""
        return (self.duck, DUCKDB), (self.postgres, POSTGRES)

    def fill(self, rows: Sequence[Row]) -> None:
        """Put the rows in place of all others, numbered."""
        numbered = [(*row, number) for number, row in enumerate(rows)]
        for table in ("lines", "rows"):
            self.postgres.execute(f"TRUNCATE stored_{table}".encode())
            self.duck.execute(f"DELETE FROM {table}")
            with self.postgres.cursor() as cursor:
                cursor.executemany(f"INSERT INTO stored_{table} VALUES ({', '.join(['%s'] * 11)})".encode(), numbered)
            insert(self.duck, table, list(map(_for_duck, numbered)))


@contextmanager
def opened_engines(postgres_url: str, schema: str) -> Iterator[Engines]:
    """Both engines with empty tables, in a schema that is dropped at the end."""
    with psycopg.connect(postgres_url, autocommit=True) as postgres, duckdb.connect() as duck:
        for sql in (
            f"DROP SCHEMA IF EXISTS {schema} CASCADE",
            f"CREATE SCHEMA {schema}",
            f"SET search_path = {schema}",
            "SET TimeZone TO 'UTC'",
            "CREATE TABLE places (name text, region text, opens integer)",
        ):
            postgres.execute(sql.encode())
        with postgres.cursor() as cursor:
            cursor.executemany("INSERT INTO places VALUES (%s, %s, %s)", PLACES)
        for table in ("lines", "rows"):
            postgres.execute(f"CREATE TABLE stored_{table} ({_STORED})".encode())
            view = f"SELECT *, extract(hour FROM met)::integer AS hour FROM stored_{table}"
            postgres.execute(f"CREATE VIEW {table} AS {view}".encode())
            duck.execute(f"CREATE TABLE {table} ({_STORED.replace('loose numeric', 'loose decimal(18,3)')})")
        yield Engines(postgres, duck)
        postgres.execute(f"DROP SCHEMA {schema} CASCADE".encode())


def read_questions(sql: str, catalog: Catalog, *, min_rows: str = "1") -> tuple[Asking, tuple[Question, ...]]:
    """The statement and its questions. Raises KH1xx, KH2xx."""
    asking = classify(sql, catalog)
    assert isinstance(asking, Asking)
    # so that a guard that Keyhole adds leaves out what is NULL in SQL and nothing else
    wanted = read_accuracy({"keyhole.tolerance": "1", "keyhole.min_rows": min_rows}, catalog.defaults)
    return asking, tuple(
        bind_question(one, catalog, accuracy=wanted, parameters={}, today=TODAY, is_utc=True)
        for one in asking.questions
    )


def exact_rows(
    asking: Asking, questions: Sequence[Question], engine: Any, dialect: Dialect, postgres: psycopg.Connection[Any]
) -> tuple[list[Row], list[tuple[str, int]]]:
    """The rows and columns that a statement shows around the answers to its questions without noise."""
    relations = [_exact_keys(question, engine, dialect) for question in questions]
    outer = write_outer_sql(asking, first_parameter=1)
    arrays = [list(relations[array.embedded].arrays[array.column]) for array in outer.arrays]
    cursor = psycopg.RawCursor(postgres).execute(outer.sql, arrays)
    return cursor.fetchall(), [(one.name, one.type_code) for one in cursor.description or ()]


def computed_sql(question: Question, dialect: Dialect) -> str:
    """What computes all functionals of a question."""
    read = replace(question, functionals=question.computed_functionals, ranked=None, common=())
    return rewrite(read, dialect=dialect).sql


def _exact_keys(question: Question, engine: Any, dialect: Dialect) -> KeySet:
    reduced = replace(reduce_question(question)[0], common=())
    values = _values(reduced, engine, dialect)
    passed, *shown = (
        evaluate_formula(one, partial(_holds, values), keys=reduced.keys.size) for one in reduced.formulas
    )
    made = cast(Plan, SimpleNamespace(question=reduced, asked=question))
    return KeySet.from_passed(made, passed, shown, _ranking(reduced, values, passed))


def _holds(values: Integers, cut: Cut) -> Booleans:
    return cut.evaluate(values[cut.functional])


def _values(question: Question, engine: Any, dialect: Dialect) -> Integers:
    """The integers that are compared, by functional and key."""
    keys, width = question.keys, len(question.keys.columns)
    values = np.zeros((len(question.computed_functionals), keys.size), dtype=np.int64)
    if not values.size:
        return values
    places = {tuple(map(format_value, keys.get_key(place))): place for place in range(keys.size)}
    for row in engine.execute(computed_sql(question, dialect)).fetchall():
        place = places.get(tuple(map(format_value, row[:width])))
        if place is not None:
            values[:, place] = [int(one or 0) for one in row[width:]]
    return subtract_offsets(replace(question, functionals=question.computed_functionals, ranked=None), values)


def _ranking(question: Question, values: Integers, passed: Booleans) -> Ranking | None:
    ranked = question.ranked
    if ranked is None:
        return None
    partition, members = question.keys.number_values(ranked.partition), np.flatnonzero(passed)
    scores = compute_scores(ranked, values)
    signed = -scores if ranked.descending else scores
    order = members[np.lexsort((signed[members], partition[members]))]
    places = number_within_partition(partition[order])
    kept = places <= (order.size if ranked.most_returned is None else ranked.most_returned)
    return Ranking(ranked_keys=order[kept], places=places[kept], epsilon=np.zeros(values.shape[1]), path=None)
