"""Computed keys written at random: their groups and counts are PostgreSQL's own, and a unit changes what is said.

Rows of the first test lie in all lists and bounds. Those of the second are as odd as their types allow.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import psycopg
import pytest

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, MergedKeys
from planner.catalog.key_space import format_value
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking, write_outer_sql
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.question.plan import Plan
from planner.question.question import Question
from planner.question.unit_groups import count_unit_groups
from tests.effort import rounds
from tests.planner.asked import TODAY, asking
from tests.planner.groups.drawn_keys import KeyWriter
from tests.planner.groups.test_truth import CATALOG, LINES, STORED, WANTED
from tests.rows_at_once import insert

Row = tuple[Any, ...]
_MOMENTS = (
    datetime(2026, 1, 31, 23, 59, 59, 999999),
    datetime(2026, 2, 1),
    datetime(2026, 2, 28, 23, 59, 59, 999999),
    datetime(2024, 2, 29, 12),
    datetime(2026, 1, 20, 12),
    datetime(2025, 12, 31, 23, 59, 59, 500000),
)
_DAYS = (date(2024, 2, 29), date(2026, 2, 28), date(2026, 1, 20), date(2026, 1, 31))
_FAR = ("infinity", "-infinity", "0044-03-15 BC", "10000-01-01", "9999-12-31", "0001-01-01")
_CODES = ("A1", "B2", "A2", "C", "Axx", "x2", "", "%", "A%", "a1", "A_")
_DUCK = STORED.replace("loose numeric", "loose decimal(18,3)")


class Engines:
    """PostgreSQL and DuckDB with the same rows."""

    def __init__(self, postgres: psycopg.Connection[Any], duck: duckdb.DuckDBPyConnection) -> None:
        self.both: tuple[Any, Any] = (postgres, duck)
        self.postgres = postgres
        for table in ("lines", "rows"):
            postgres.execute(f"CREATE TABLE stored_{table} ({STORED})")
            postgres.execute(
                f"CREATE VIEW {table} AS SELECT *, extract(hour FROM met)::integer AS hour FROM stored_{table}"
            )
            duck.execute(f"CREATE TABLE {table} ({_DUCK})")

    def fill(self, rows: Sequence[Row]) -> None:
        postgres, duck = self.both
        for table in ("lines", "rows"):
            postgres.execute(f"TRUNCATE stored_{table}")
            duck.execute(f"DELETE FROM {table}")
            with postgres.cursor() as cursor:
                cursor.executemany(f"INSERT INTO stored_{table} VALUES ({', '.join(['%s'] * 10)})", rows)
            insert(duck, table, [_for_duck(row) for row in rows])

    def plans(self, question: Question) -> Iterator[tuple[Any, Plan]]:
        for engine, dialect in zip(self.both, (POSTGRES, DUCKDB), strict=True):
            yield engine, plan_question(question, dialect=dialect)


def _for_duck(row: Row) -> Row:
    return tuple(
        None
        if place in (4, 5) and value in ("NaN", "Infinity", "-Infinity")
        else value.replace(" BC", " (BC)")
        if isinstance(value, str)
        else value
        for place, value in enumerate(row)
    )


@pytest.fixture(scope="module")
def engines(postgres_url: str) -> Iterator[Engines]:
    with psycopg.connect(postgres_url, autocommit=True) as opened, duckdb.connect() as duck:
        opened.execute("DROP SCHEMA IF EXISTS drawn_keys CASCADE")
        opened.execute("CREATE SCHEMA drawn_keys")
        opened.execute("SET search_path = drawn_keys")
        opened.execute("SET TimeZone TO 'UTC'")
        yield Engines(opened, duck)
        opened.execute("DROP SCHEMA drawn_keys CASCADE")


def _maybe(drawn: Random, value: Any) -> Any:
    return None if drawn.random() < 0.12 else value


def _within(drawn: Random) -> Row:
    """A row in all lists and bounds, without NULL where that is no group."""
    met = drawn.choice((datetime(2026, 1, 1) + timedelta(seconds=drawn.randrange(60 * 86400)), *_MOMENTS))
    return (
        drawn.randrange(40),
        drawn.choice(("Aachen", "Bonn", "Berlin", " Basel")),
        met,
        _maybe(drawn, drawn.choice((drawn.randint(-20, 60), 0, 10, -20, 60, -1))),
        _maybe(drawn, Decimal(drawn.choice((drawn.randint(0, 5000), 1000, 999, 2550, 5000, 0, 1))).scaleb(-2)),
        _maybe(drawn, Decimal(drawn.choice((drawn.randint(-300, 300), 10, -10, 150, -250, 30))).scaleb(-2)),
        _maybe(drawn, float(drawn.choice((drawn.randint(-50, 50) / 10, 0.1, 0.3, 0.6, 0.7, -0.1, 2.5, 5, -5, 0)))),
        _maybe(drawn, drawn.choice(_CODES)),
        _maybe(drawn, drawn.random() < 0.5),
        drawn.choice((met.date(), *_DAYS)),
    )


def _odd(drawn: Random) -> Row:
    """A row of one of few units."""
    near = datetime(2026, 1, 1) + timedelta(seconds=drawn.randrange(60 * 86400))
    return tuple(
        _maybe(drawn, value)
        for value in (
            drawn.randrange(6),
            drawn.choice(("Aachen", "Bonn", "Berlin", " Basel", "Nowhere", "")),
            drawn.choice((*_MOMENTS, *_FAR)) if drawn.random() < 0.4 else near,
            drawn.choice((drawn.randint(-20, 60), 0, 10, 2**31 - 1, -(2**31), 61)),
            drawn.choice(
                (Decimal(drawn.randint(0, 5000)).scaleb(-2), Decimal("-99999999.99"), Decimal("50.01"), "NaN")
            ),
            drawn.choice((Decimal(drawn.randint(-300, 300)).scaleb(-2), "NaN", Decimal("1e12"), "Infinity")),
            drawn.choice((drawn.uniform(-5, 5), 0.1, float("nan"), float("inf"), -1e300, 5e-324, -0.0)),
            drawn.choice((*_CODES, "\\", "A\\%", "\u00e9", "\u65e5\u672c")),
            drawn.random() < 0.5,
            drawn.choice((*_DAYS, *_FAR)) if drawn.random() < 0.4 else near.date(),
        )
    )


def _asked(sql: str, catalog: Catalog) -> tuple[Asking, Question] | None:
    try:
        found = asking(sql, catalog)
        (question,) = found.questions
        return found, bind_question(question, catalog, accuracy=WANTED, parameters={}, today=TODAY, is_utc=True)
    except KeyholeError as error:
        if not error.code.startswith("KH2"):
            raise
        return None


def _shown(row: Row) -> Row:
    return tuple("0.0" if isinstance(value, float) and value == 0 else repr(value) for value in row)


def test_groups_and_counts_are_postgresqls(engines: Engines) -> None:
    compared = 0
    for seed in range(rounds(2_000, quick=30)):
        drawn = Random(seed)
        if seed % 20 == 0:
            engines.fill([_within(drawn) for _ in range(80)])
        writer = KeyWriter(drawn)
        keys, said, table = writer.keys(), writer.where(), drawn.choice(("lines", "rows"))
        listed, places = ", ".join(keys), ", ".join(str(place + 1) for place in range(len(keys)))
        asked = _asked(f"SELECT {listed} FROM {table} {said} GROUP BY {places} HAVING count(*) > 0", CATALOG)
        if asked is None:
            continue
        question = asked[1]
        plans = list(engines.plans(question))
        if any(made.rewritten.pinned_relations for _, made in plans):
            continue  # so many keys stand in a relation that a source makes
        counted = [_counts(engine, made, question) for engine, made in plans]
        assert counted[0] == counted[1], (keys, said)
        try:
            theirs = engines.postgres.execute(
                f"SELECT {listed}, count(*) FROM {table} {said} GROUP BY {places}"
            ).fetchall()
        except psycopg.Error:
            continue  # a number is out of its range, or is divided by zero
        outer = write_outer_sql(asked[0], first_parameter=1)
        ours: Counter[Row] = Counter()
        for key, count in counted[0].items():
            arrays = [[key[array.column]] for array in outer.arrays]
            (row,) = psycopg.RawCursor(engines.postgres).execute(outer.sql, arrays).fetchall()
            assert _shown(row) not in ours, (keys, row)
            ours[_shown(row)] = count
        wanted: Counter[Row] = Counter()
        for row in theirs:
            wanted[_shown(row[:-1])] += row[-1]
        assert ours == wanted, (keys, said)
        compared += 1
    assert compared > rounds(800, quick=8)


@pytest.mark.parametrize("keys", ["price > 10, price", "code LIKE 'A%', code", "weight > 0.1, weight"])
def test_a_column_beside_a_condition_on_it_has_no_list_of_values(keys: str) -> None:
    with pytest.raises(KeyholeError, match="KH202"):
        asking(f"SELECT 1 FROM lines GROUP BY {keys} HAVING count(*) > 0", CATALOG)


@pytest.mark.parametrize(
    "part",
    [
        "extract(second FROM met)", "extract(epoch FROM met)", "extract(microseconds FROM met)", "to_char(met, 'MS')",
        "to_char(met, 'YYYY ms')", "to_char(met, '\"at\" US')", "to_char(met, 'FF3')",
    ],
)  # fmt: skip
@pytest.mark.parametrize("key", ["met::date", "date_trunc('hour', met)"])
def test_a_day_or_hour_does_not_tell_a_part_of_the_clock(part: str, key: str) -> None:
    within = "met >= '2026-01-05' AND met < '2026-02-05'"
    with pytest.raises(KeyholeError, match="KH202"):
        asking(f"SELECT 1 FROM lines WHERE {within} GROUP BY {part}, {key} HAVING count(*) > 0", CATALOG)


def test_three_columns_in_one_key_are_told_apart() -> None:
    key = "CASE WHEN code = '%' THEN 1 WHEN price > -1 THEN NULL WHEN NOT gift THEN 1 END"
    asked = _asked(f"SELECT {key} FROM lines GROUP BY 1 HAVING count(*) > 0", CATALOG)
    assert asked is not None
    (column,) = asked[1].keys.columns
    assert isinstance(column.derivation, MergedKeys)
    assert len(set(column.derivation.columns)) == 3


def _counts(engine: Any, made: Plan, question: Question) -> dict[tuple[str, ...], int]:
    width = len(question.keys.columns)
    known = {tuple(map(format_value, question.keys.get_key(place))) for place in range(question.keys.size)}
    found = engine.execute(made.rewritten.sql).fetchall() if known else []
    texts = ((tuple(map(format_value, row[:width])), row[width]) for row in found)
    return {key: count for key, count in texts if count and key in known}


def test_a_unit_of_odd_rows_changes_no_more_than_is_said(engines: Engines) -> None:
    moved = 0
    for seed in range(rounds(1_500, quick=25)):
        drawn = Random(seed)
        if seed % 10 == 0:
            engines.fill([_odd(drawn) for _ in range(40)])
        writer = KeyWriter(drawn)
        catalog = _world(drawn.choice((1, 1, 2, 3, 5)), drawn.choice((1, 2, 3, 5)))
        keys, said = writer.keys(), writer.where()
        if drawn.random() < 0.3:
            said = f"{said} AND {writer.condition(2)}" if said else f"WHERE {writer.condition(2)}"
        formula = "".join(f"{writer.pick((' AND ', ' OR '))}{writer.aggregate()}" for _ in range(drawn.randrange(3)))
        places = ", ".join(str(place + 1) for place in range(len(keys)))
        sql = f"SELECT {', '.join(keys)} FROM lines {said} GROUP BY {places} HAVING {writer.aggregate()}{formula}"
        asked = _asked(sql, catalog)
        if asked is None:
            continue
        person = drawn.choice((0, 1, 2, 3, 4, 5))
        for (engine, made), relation in zip(_planned(engines, asked[1]), ("stored_lines", "lines"), strict=False):
            whole = _totals(engine, made)
            engine.execute("BEGIN")
            engine.execute(f"DELETE FROM {relation} WHERE person = {person}")
            without = _totals(engine, made)
            engine.execute("ROLLBACK")
            moved += _check(sql, made.question, whole, without)
    assert moved > rounds(200, quick=2)


def _planned(engines: Engines, question: Question) -> list[tuple[Any, Plan]]:
    try:
        found = list(engines.plans(question))
    except KeyholeError as error:
        if not error.code.startswith("KH2"):
            raise
        return []
    if any(made.rewritten.pinned_relations for _, made in found):
        return []  # so many keys stand in a relation that a source makes
    return found if found[0][1].rewritten.sql else []


def _world(groups: int, rows: int) -> Catalog:
    columns = tuple(
        replace(one, per_unit=(Decimal(-30), Decimal(40))) if one.name == "n" else one for one in LINES.columns
    )
    return replace(CATALOG, tables=(replace(LINES, columns=columns, groups_per_unit=groups, rows_per_unit=rows),))


def _totals(engine: Any, made: Plan) -> dict[Row, tuple[int, ...]]:
    width = len(made.question.keys.columns)
    found = engine.execute(made.rewritten.sql).fetchall()
    return {row[:width]: tuple(int(one or 0) for one in row[width:]) for row in found}


def _check(sql: str, question: Question, whole: dict[Row, Any], without: dict[Row, Any]) -> bool:
    nothing = (0,) * len(question.computed_functionals)
    pairs = [(whole.get(key, nothing), without.get(key, nothing)) for key in {*whole, *without}]
    changed = [(before, after) for before, after in pairs if before != after]
    assert len(changed) <= count_unit_groups(question), sql
    for before, after in changed:
        for functional, one, other in zip(question.computed_functionals, before, after, strict=True):
            assert abs(one - other) <= functional.sensitivity, (sql, functional)
    return bool(changed)
