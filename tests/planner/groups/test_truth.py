"""Computed keys over rows drawn at random: PostgreSQL and DuckDB, asked as rewritten, find PostgreSQL's own groups."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import numpy as np
import psycopg
import pytest

from mechanisms.formula import evaluate
from planner.bind.question import ask
from planner.catalog.key_space import as_text
from planner.catalog.model import Catalog, Column, Derivation, PublicTable, SqlType, Table
from planner.extract.outer_query import outer_sql
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan
from planner.statements.settings import accuracy
from tests.effort import rounds
from tests.planner.asked import TODAY, asking
from tests.rows_at_once import insert
from tests.worlds.retail import retail

LINES = Table(
    name="lines",
    relation="lines",
    columns=(
        Column("person", SqlType.INTEGER, "integer"),
        Column("city", SqlType.TEXT, "text", domain=("Aachen", "Bonn", "Berlin", " Basel")),
        Column("met", SqlType.TIMESTAMP, "timestamp without time zone"),
        Column(
            "hour", SqlType.INTEGER, "integer", domain=tuple(range(24)), derivation=Derivation("extract", "hour", "met")
        ),
        Column("n", SqlType.INTEGER, "integer", bounds=(Decimal(-20), Decimal(60)), grid=Decimal(1)),
        Column("price", SqlType.NUMERIC, "numeric(10,2)", bounds=(Decimal(0), Decimal(50)), grid=Decimal("0.01")),
        Column("loose", SqlType.NUMERIC, "numeric", bounds=(Decimal(-3), Decimal(3)), grid=Decimal("0.01")),
        Column("weight", SqlType.DOUBLE, "double precision", bounds=(Decimal(-5), Decimal(5)), grid=Decimal("0.01")),
        Column("code", SqlType.TEXT, "character varying(12)"),
        Column("gift", SqlType.BOOLEAN, "boolean"),
        Column("paid", SqlType.DATE, "date"),
    ),
    unit=("person",),
    groups_per_unit=24,
    rows_per_unit=1000,
    row_cap=None,
    refresh="static",
    seed="lines",
)
TOWNS = PublicTable(
    name="towns",
    columns=(
        Column("town", SqlType.TEXT, "text"),
        Column("region", SqlType.TEXT, "text"),
        Column("people", SqlType.INTEGER, "integer"),
        Column("height", SqlType.NUMERIC, "numeric(6,1)"),
        Column("rain", SqlType.DOUBLE, "double precision"),
        Column("since", SqlType.DATE, "date"),
        Column("port", SqlType.BOOLEAN, "boolean"),
    ),
    rows=(
        ("Aachen", "west", 250, Decimal("173.0"), Decimal("0.3"), date(2025, 12, 1), False),
        ("Bonn", "west", 330, None, Decimal("2.5"), date(2026, 1, 12), True),
        ("Berlin", "east", 9, Decimal("34.5"), Decimal("-0.1"), None, True),
        ("Kiel", "north", 30, Decimal("-5.0"), Decimal("7.0"), date(2026, 2, 3), True),
        (" Basel", None, 40, Decimal("260.5"), Decimal("0.1"), date(2024, 2, 29), None),
    ),
    digest="towns",
)
MARKS = PublicTable(
    name="marks",
    columns=(
        Column("code", SqlType.TEXT, "text"),
        Column("kind", SqlType.TEXT, "text"),
        Column("people", SqlType.INTEGER, "integer"),
    ),
    rows=(("A1", "a", 10), ("B2", "b", 30), ("A2", "a", 40), ("x2", None, 50), ("none", "c", 60)),
    digest="marks",
)
CATALOG: Catalog = replace(
    retail(),
    tables=(LINES, replace(LINES, name="rows", relation="rows", unit=(), rows_per_unit=None)),
    public_tables=(TOWNS, MARKS),
)
WHEN = "met >= '2026-01-05' AND met < '2026-02-12 06:00'"
KEYS = [
    "n > 10",
    "NOT (n <= 10)",
    "n BETWEEN 3 AND 7",
    "n IN (1, 2, 5)",
    "n NOT IN (1, 2, 5)",
    "n IS NULL",
    "n IS NOT NULL",
    "CASE WHEN n >= 20 THEN 'bulk' WHEN n < 0 THEN 'return' ELSE 'retail' END",
    "CASE WHEN n >= 20 THEN 'bulk' WHEN n < 0 THEN 'return' END",
    "CASE n WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'more' END",
    "coalesce(n, 0) > 5",
    "coalesce(n, 7)",
    "n % 7",
    "mod(n, 3)",
    "n / 10",
    "n / 10 * 10",
    "(n - 5) / 10",
    "abs(n) / 10",
    "-n / 7",
    "greatest(n, 10) / 5",
    "n * 2 > 15",
    "2 * n + 1 >= 7 AND n <> 9",
    "width_bucket(n, 0, 50, 5)",
    "width_bucket(n, ARRAY[0, 10, 20])",
    "sign(n)",
    "floor(n / 10.0) * 10",
    "round(n, -1)",
    "n::text",
    "floor(price / 10) * 10",
    "ceil(price / 10)",
    "round(price)",
    "round(price / 5) * 5",
    "trunc(price, -1)",
    "price::int",
    "width_bucket(price, 1, 40, 3900)",
    "floor(price * 100) - 3",
    "trunc((price - 25) * 100)",
    "trunc(price / 0.5)",
    "trunc((price - 25) / 3)",
    "floor(-price / 0.02) * 0.5",
    "width_bucket(-price, -40, 0, 2000)",
    "width_bucket(n, 0, 50, 3000)",
    "price > 9.99",
    "price >= 10.005",
    "CASE WHEN price < 10 THEN 'low' WHEN price < 25.5 THEN 'mid' ELSE 'high' END",
    "width_bucket(price, 0, 50, 4)",
    "floor(loose)",
    "round(loose, 1)",
    "ceil(-loose * 2)",
    "trunc(loose / 0.7)",
    "floor(weight)",
    "floor(weight / 0.5)",
    "weight > 0.1",
    "ceil(weight * 2)",
    "trunc(weight)",
    "width_bucket(weight, -5, 5, 10)",
    "round(weight)",
    "round(weight * 10) / 10",
    "round(-weight / 0.5)",
    "weight::int",
    "round(price::float8 / 10)",
    "floor(price::float8 * 10)",
    "width_bucket(price::float8, 0, 0.9, 3)",
    "floor(n::float8 / 10) * 10",
    "code LIKE 'A%'",
    "code NOT LIKE 'A%'",
    "code LIKE 'A%' OR code LIKE '_2%'",
    "CASE WHEN code IN ('A1', 'B2') THEN 'known' WHEN code LIKE 'A%' THEN 'a' WHEN code IS NULL THEN '' ELSE 'z' END",
    "code = 'A1'",
    "gift",
    "coalesce(gift, false)",
    "CASE WHEN gift THEN 'gift' ELSE 'own' END",
    "gift IS TRUE",
    "paid < '2026-01-20'",
    "CASE WHEN paid BETWEEN '2026-01-10' AND '2026-01-20' THEN 'mid' WHEN paid IS NULL THEN 'open' ELSE 'else' END",
    "met >= '2026-01-20 12:00'",
    "extract(dow FROM met)",
    "extract(isodow FROM met) >= 6",
    "CASE WHEN extract(dow FROM met) IN (0, 6) THEN 'weekend' ELSE 'week' END",
    "extract(dow FROM met) IN (0, 6)",
    "extract(quarter FROM met)",
    "extract(dow FROM paid)",
    "date_part('month', paid)",
    "coalesce(extract(dow FROM paid), -1)",
    "CASE WHEN extract(day FROM paid) <= 15 THEN 'first' ELSE 'second' END",
    "extract(dow FROM paid) IN (0, 6)",
    "'Q' || extract(quarter FROM paid)",
    "(extract(month FROM paid)::int - 1) / 3 + 1",
    "ceil(extract(month FROM paid) / 3.0)",
    "CASE WHEN extract(month FROM paid) <= 1 THEN 'H1' WHEN paid IS NULL THEN 'none' ELSE 'H2' END",
    "concat('Q', extract(quarter FROM paid), '!')",
    "(extract(month FROM paid) - 1) / 3 + 1",
    "floor((extract(month FROM paid) - 1) / 3 + 1)",
    *(
        f"to_char(paid, '{form}')"
        for form in ("Dy", "FMMonth", "FMDay", "ID", "D", "DDD", "IW", '"Q"Q', "FMDD", "FMMM", "WW")
    ),
    *(f"to_char(met, '{form}')" for form in ("HH24", "HH12 AM", "PM", "FMHH24", "HH24:00")),
    "to_char(paid, 'Dy') || to_char(met, 'HH24')",
    "coalesce(to_char(paid, 'Dy'), 'none')",
    "left(city, 1)",
    "right(city, 2)",
    "substring(city FROM 1 FOR 2)",
    "trim(city)",
    "length(city)",
    "replace(city, 'B', 'P')",
    "split_part(city, 'e', 1)",
    "lower(left(city, 1)) = 'b'",
    "city LIKE 'B%'",
    "concat(left(city, 1), '!')",
    "concat(left(city, 1), length(city) > 4, right(city, 1))",
    "concat_ws(' / ', left(city, 1), nullif(right(city, 1), 'n'), hour / 6)",
    "initcap(upper(city) || '-x1y b')",
    "lpad((hour / 6)::text, 3, 'ab')",
    "rpad(city, 5) || '|'",
    "lpad(city, 3)",
    "reverse(city)",
    "repeat(left(city, 1), 3)",
    "translate(city, 'eBe', 'ip')",
    "position('n' IN city)",
    "strpos(city, 'e') > 0",
    "starts_with(city, 'B')",
    "city ILIKE 'b%'",
    "city LIKE '/ %' ESCAPE '/'",
]
TRUTHS = [
    "price * n > 500",
    "NOT (price * n <= 500)",
    "n > price",
    "(n < price)::text",
    "CASE WHEN price * n > 500 THEN 'big' WHEN n < price THEN 'odd' ELSE 'small' END",
    "CASE WHEN l.price * n > 500 THEN n > l.price END",
    "price * n > 500 AND price > 10 OR gift",
    "met::date > paid",
    "coalesce(met::date - paid > 3, false)",
    "price / (n + 100) > 0.3",
    "(n + price) IN (5, 10, 15.5)",
    "lower(code) = 'a1'",
    "lower(trim(code)) IN ('a1', 'axx')",
    "lower(code) LIKE 'a%' AND code <> 'A1'",
    "(weight > n) IS NOT TRUE",
    "code = city",
    "split_part(code, 'x', 1) = 'A'",
    "CASE WHEN price > n THEN 1 ELSE 0 END = 1",
    "extract(dow FROM met) > n",
    "code LIKE '%x%'",
    "code ILIKE '%X%' OR code = 'A1'",
    "CASE WHEN code LIKE '%x%' THEN 'x' WHEN code ILIKE '%a%' THEN 'a' WHEN lower(code) LIKE '%2' THEN '2' END",
    "code ILIKE 'axx%'",
    "starts_with(code, 'A') AND gift",
    "position('x' IN code) > 0",
    "code LIKE 'A/%' ESCAPE '/'",
    "NOT code ILIKE '%x%' AND n > price",
]
NUMBERS = [
    "n + hour",
    "(n + hour) / 3",
    "n + price",
    "trunc(n + price)",
    "hour - n + 1",
    "greatest(n, hour)",
    "least(n * 1.00, price)",
    "abs(n - hour) / 5",
    "n * hour % 7",
    "coalesce(n, hour) - hour % 2",
    "hour / n",
    "n % (hour + 1)",
    "floor(price * n / 100)",
    "round(price * 2 - n, -1)",
    "width_bucket(n + price, 0, 100, 5)",
    "CASE WHEN n > 50 THEN 'many' WHEN hour + n > 70 THEN 'late' ELSE ((n - hour) / 40)::text END",
    "n - n % 10",
    "n * n / 100",
    "length(code)",
    "length(code) * 2 + 1",
    "nullif(n, hour) / 20",
    "10 * n - 20 * hour",
    "floor(price / nullif(n, 0))",
    "ceil(price / nullif(n, 0)) * 2",
    "round(price / (hour + 1), 1)",
    "trunc(n::numeric / (hour - 30), 1)",
    "round(n / (price + 1), -1)",
    "CASE WHEN round(price / nullif(hour, 0)) > 4 THEN 'dear' ELSE 'cheap' END",
]
RANGED = [
    "met::date",
    "date_trunc('day', met)",
    "date_trunc('week', met)",
    "date_trunc('month', met)",
    "date_trunc('week', met)::date",
    "to_char(met, 'YYYY-MM-DD')",
    "to_char(met, 'YYYY-MM')",
    "to_char(met, 'Dy')",
    "to_char(met, 'Day')",
    "to_char(met, 'YYYY Dy')",
    "to_char(met, 'Mon YYYY')",
    "to_char(met, 'Month')",
    "extract(year FROM met)",
    "extract(isoyear FROM met)",
    "date_part('isoyear', met) * 100 + date_part('week', met)",
    "extract(week FROM met)",
    "extract(week FROM met) > 3",
    "date_bin('7 days', met, TIMESTAMP '2026-01-01')",
    "date_bin('9 hours 30 minutes', met, '2026-03-01')",
    "to_char(date_bin(interval '1 day 1 hour', met, '2001-01-01 10:00'), 'YYYY-MM-DD HH24:MI:SS')",
    "(met - interval '6 hours')::date",
    "extract(hour FROM met + interval '150 minutes')",
    "date_trunc('month', met + interval '1 day')",
    "to_char(met - interval '1 day', 'Dy')",
    "to_char(date_bin('12 hours', met, '2026-01-01'), 'YYYY-MM-DD HH24:00')",
    "to_char(met, 'IYYY-\"W\"IW')",
    "to_char(date_trunc('month', met), 'Mon YY')",
    "(met::date - date '2026-01-01') / 7",
    "date '2026-03-01' - met::date",
    "met::date + 3",
    "extract(year FROM age(timestamp '2030-02-20 07:30', met))",
    "date_part('year', age(met, '2020-01-20'))::int / 2 * 2",
]
AGES = [
    "extract(year FROM age(date '2026-03-01', paid))",
    "date_part('year', age(date '2024-02-29', paid)) / 10",
    "CASE WHEN extract(year FROM age(date '2026-01-15', paid)) < 1 THEN 'new' ELSE 'old' END",
    "floor((date '2026-03-01' - paid) / 365.25)",
    "(date '2026-01-20' - paid) / 300",
    "10 * (extract(year FROM age(paid, date '1999-01-22'))::int / 10)",
]


OF_TOWNS = [
    "left(t.region, 1)",
    "upper(t.region)",
    "t.people / 100",
    "CASE WHEN t.people > 200 THEN 'large' ELSE 'small' END",
    "floor(t.people / 100) * 100",
    "floor(t.height / 50)",
    "round(t.height, -2)",
    "CASE WHEN t.height > 100 THEN 'high' WHEN t.height IS NULL THEN 'unknown' ELSE 'low' END",
    "t.height",
    "floor(t.rain / 0.1)",
    "t.rain * 10 > 1",
    "t.rain::numeric > 0.2",
    "trunc(t.rain) + 1",
    "round(t.rain::numeric, 0)",
    "extract(year FROM t.since)",
    "to_char(t.since, 'YYYY') || t.region",
    "t.port AND t.people > 100",
    "t.region || CASE WHEN t.port THEN ' sea' ELSE ' land' END",
    "l.n > t.people",
    "l.price < t.height / 4",
    "CASE WHEN l.n * 5 > t.people THEN 'a' WHEN l.weight < t.rain THEN 'b' ELSE 'c' END",
    "l.met::date - t.since > 20",
    "l.paid >= t.since",
    "l.code || t.region = 'A1west'",
    "(l.n + t.people) / 50",
    "floor((l.n + t.height) / 50)",
    "l.n / 20 + t.people / 200",
    "l.city || left(t.region, 1)",
]


def draw(seed: int, size: int) -> list[tuple[Any, ...]]:
    drawn = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if drawn.random() < 0.1 else value

    return [
        (
            drawn.randrange(40),
            maybe(drawn.choice(("Aachen", "Bonn", "Berlin", " Basel"))),
            datetime(2026, 1, 1) + timedelta(seconds=drawn.randrange(50 * 86400)),
            maybe(drawn.randint(-20, 60)),
            maybe(Decimal(drawn.choice((drawn.randint(0, 5000), 1000, 999, 2550, 250))).scaleb(-2)),
            maybe(Decimal(drawn.randint(-300, 300)).scaleb(-2)),
            maybe(drawn.choice((drawn.randint(-500, 500) / 100, drawn.uniform(-5, 5)))),
            maybe(drawn.choice(("A1", "B2", "A2", "C", "Axx", "x2", ""))),
            maybe(drawn.random() < 0.5),
            maybe((datetime(2026, 1, 1) + timedelta(days=drawn.randrange(40))).date()),
        )
        for _ in range(size)
    ]


STORED = (
    "person integer, city text, met timestamp, n integer, price numeric(10,2), loose numeric, weight float8, "
    "code varchar(12), gift boolean, paid date"
)


@cache
def drawn_lines(seed: int) -> duckdb.DuckDBPyConnection:
    """A DuckDB with 160 drawn rows, open as long as the process: who changes them rolls that back."""
    duck = duckdb.connect()
    duck.execute(f"CREATE TABLE lines ({STORED.replace('loose numeric', 'loose decimal(18,3)')})")
    insert(duck, "lines", draw(seed, 160))
    return duck


@pytest.fixture(scope="module")
def worlds(postgres_url: str) -> Iterator[tuple[psycopg.Connection[Any], duckdb.DuckDBPyConnection]]:
    rows = draw(1, 1500)
    duck = duckdb.connect()
    places = ", ".join("?" * 10)
    with psycopg.connect(postgres_url, autocommit=True) as opened:
        opened.execute("DROP SCHEMA IF EXISTS computed_keys CASCADE")
        opened.execute("CREATE SCHEMA computed_keys")
        opened.execute("SET search_path = computed_keys")
        for table in ("lines", "rows"):
            opened.execute(f"CREATE TABLE stored_{table} ({STORED})")
            duck.execute(f"CREATE TABLE {table} ({STORED.replace('loose numeric', 'loose decimal(18,3)')})")
            with opened.cursor() as cursor:
                cursor.executemany(f"INSERT INTO stored_{table} VALUES ({places.replace('?', '%s')})", rows)
            insert(duck, table, rows)
            opened.execute(
                f"CREATE VIEW {table} AS SELECT *, extract(hour FROM met)::integer AS hour FROM stored_{table}"
            )
        opened.execute("SET search_path = computed_keys, public")
        for public in CATALOG.public_tables:
            declared = ", ".join(f"{column.name} {column.declared}" for column in public.columns)
            opened.execute(f"DROP TABLE IF EXISTS public.{public.name}; CREATE TABLE public.{public.name} ({declared})")
            places = ", ".join(["%s"] * len(public.columns))
            with opened.cursor() as cursor:
                cursor.executemany(f"INSERT INTO {public.name} VALUES ({places})", public.rows)
        yield opened, duck
        opened.execute("DROP TABLE public.towns, public.marks")
        opened.execute("DROP SCHEMA computed_keys CASCADE")
        duck.close()


SIDES = [
    ("n > 10 AS big", "", "gift"),
    ("n > 10 AS a; n > 20", "", "price < 40"),
    ("floor(price / 10); hour", "", "n > 25"),
    ("upper(left(city, 1))", "city IS NOT NULL AND gift", "city IS NOT NULL"),
    ("CASE WHEN price * n > 500 THEN 'big' WHEN n < price THEN 'odd' ELSE 'small' END AS kind", "gift", "hour < 20"),
    ("extract(dow FROM met); code LIKE 'A%'", "paid > '2026-01-20'", ""),
    ("met::date", WHEN, f"{WHEN} AND gift"),
    ("n", "", "gift"),
    ("CASE WHEN n > 10 AND hour < 12 THEN 'a' WHEN gift THEN 'b' END", "", "code = 'A1'"),
]
WANTED = accuracy({"keyhole.tolerance": "1"}, retail().defaults)


def _shape(cursor: Any) -> tuple[list[tuple[str, int]], list[str]]:
    described = [(column.name, column.type_code) for column in cursor.description or ()]
    return described, sorted(repr(row).replace("-0.0,", "0.0,") for row in cursor.fetchall())


def _check(sql: str, most: int, worlds: tuple[Any, Any]) -> None:
    postgres, duck = worlds
    theirs = _shape(postgres.execute(sql))
    (question,) = asking(sql, CATALOG).questions
    what = ask(question, CATALOG, accuracy=WANTED, parameters={}, today=TODAY)
    for engine, dialect in ((postgres, POSTGRES), (duck, DUCKDB)):
        counted = engine.execute(plan(what, dialect=dialect).rewritten.sql).fetchall()
        width = len(what.keys.columns)
        texts = {tuple(map(as_text, what.keys.key(i))) for i in range(what.keys.size)}
        held = [
            tuple(map(as_text, row[:width]))
            for row in counted
            if tuple(map(as_text, row[:width])) in texts and row[width] > most
        ]
        outer = outer_sql(asking(sql, CATALOG), first_parameter=1)
        arrays = [[key[array.column] for key in held] for array in outer.arrays]
        ours = _shape(psycopg.RawCursor(postgres).execute(outer.sql, arrays))
        assert ours == theirs, (sql, dialect.name, outer.sql)


def _check_formula(sql: str, worlds: tuple[Any, Any]) -> None:
    """Groups without rows count as nothing, and are decided as well."""
    postgres, duck = worlds
    (question,) = asking(sql, CATALOG).questions
    what = ask(question, CATALOG, accuracy=WANTED, parameters={}, today=TODAY)
    outer, theirs = outer_sql(asking(sql, CATALOG), first_parameter=1), _shape(postgres.execute(sql))
    for engine, dialect in ((postgres, POSTGRES), (duck, DUCKDB)):
        made = plan(what, dialect=dialect)
        width, keys = len(what.keys.columns), [tuple(map(as_text, what.keys.key(i))) for i in range(what.keys.size)]
        read = {tuple(map(as_text, row[:width])): row[width:] for row in engine.execute(made.rewritten.sql).fetchall()}
        values = np.array([read.get(key, [0] * len(made.question.functionals)) for key in keys], dtype=np.int64).T
        passed = evaluate(made.question.formula, lambda cut: cut.holds(values[cut.functional]), keys=len(keys))  # noqa: B023
        held = [key for key, has_passed in zip(keys, passed, strict=True) if has_passed]
        arrays = [[key[array.column] for key in held] for array in outer.arrays]
        assert _shape(psycopg.RawCursor(postgres).execute(outer.sql, arrays)) == theirs, dialect.name


# a key is computed of a row, whoever the unit is: at quick each key from one of the tables
@pytest.mark.parametrize(
    ("key", "table"),
    [
        (key, table)
        for place, key in enumerate(KEYS)
        for table in ("lines", "rows")
        if place % rounds(1, quick=2) == ("lines", "rows").index(table) % rounds(1, quick=2)
    ],
)
def test_groups_are_postgresqls(key: str, table: str, worlds: tuple[Any, Any]) -> None:
    known = "" if "city" not in key else "WHERE city IN ('Aachen', 'Bonn', 'Berlin', ' Basel')"
    for most in (0, 40):
        _check(f"SELECT {key} AS g FROM {table} {known} GROUP BY {key} HAVING count(*) > {most}", most, worlds)


@pytest.mark.parametrize("key", TRUTHS)
def test_conditions_between_columns_are_postgresqls(key: str, worlds: tuple[Any, Any]) -> None:
    for most in (0, 40):
        _check(f"SELECT {key} FROM lines l GROUP BY {key} HAVING count(*) > {most}", most, worlds)
    _check(f"SELECT {key} AS g, hour FROM rows l GROUP BY 1, 2 HAVING count(*) > 3 ORDER BY {key}", 3, worlds)


@pytest.mark.parametrize("key", NUMBERS)
def test_numbers_of_several_columns_are_postgresqls(key: str, worlds: tuple[Any, Any]) -> None:
    few = "price < 5 AND n BETWEEN 0 AND 9" if "price" in key else "n <> 0"
    no_zero = f"WHERE {few}" if "/ n" in key or key.startswith(("least", "n + price")) else ""
    _check(f"SELECT {key} FROM lines l {no_zero} GROUP BY {key} HAVING count(*) > 0", 0, worlds)
    written = key.replace("n ", "l.n ")
    _check(f"SELECT gift, {written} AS g FROM rows l {no_zero} GROUP BY 1, 2 HAVING count(*) > 1", 1, worlds)


@pytest.mark.parametrize("key", OF_TOWNS)
def test_groups_by_public_columns_are_postgresqls(key: str, worlds: tuple[Any, Any]) -> None:
    # a public key's NULL is in no group, as a declared one's
    town = "lines l JOIN towns t ON t.town = l.city WHERE t.region IS NOT NULL"
    town += " AND t.since IS NOT NULL" if key.startswith(("extract(year", "to_char(t.since")) else ""
    _check(f"SELECT {key} AS g FROM {town} GROUP BY {key} HAVING count(*) > 0", 0, worlds)
    _check(f"SELECT {key}, l.hour / 8 AS part FROM {town} GROUP BY 1, 2 HAVING count(*) > 9", 9, worlds)
    own = town.replace("lines", "rows").replace(" JOIN", " LEFT JOIN")
    if "l." not in key:
        _check(f"SELECT l.city, {key} FROM {own} GROUP BY l.city, {key} HAVING count(*) > 40", 40, worlds)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t.town FROM towns t LEFT JOIN lines l ON l.code = t.town GROUP BY t.town HAVING count(l.n) < 300",
        "SELECT t.code, t.people FROM lines l RIGHT OUTER JOIN marks t ON t.code = l.code AND l.gift AND (l.n > 5 OR "
        "l.n < 0) GROUP BY t.code, t.people HAVING count(DISTINCT l.person) FILTER (WHERE l.n > 50 OR l.n < 9) < 35",
        "SELECT code FROM marks LEFT JOIN rows USING (code) WHERE people > 10 GROUP BY code HAVING count(n) < 130",
        "SELECT kind FROM marks AS m LEFT JOIN rows l ON m.code = l.code WHERE kind IS NOT NULL GROUP BY kind "
        "HAVING count(CASE WHEN l.n > 20 THEN 1 END) < 200 AND coalesce(sum(l.n * 2), 0) < 9000",
        "SELECT m.code FROM marks m LEFT JOIN lines l ON l.code = m.code AND l.n > 1000 WHERE m.people > 20 GROUP BY 1 "
        "HAVING count(l.person) < 5",
        "SELECT city FROM lines l WHERE NOT EXISTS (SELECT 1 FROM towns t WHERE t.since = l.paid) AND city IS NOT NULL "
        "GROUP BY city HAVING count(*) > 300",
        "SELECT city FROM rows l WHERE EXISTS (SELECT * FROM towns WHERE l.city = town AND port) AND city IS NOT NULL "
        "GROUP BY city HAVING count(*) > 0",
    ],
)  # fmt: skip
def test_each_public_row_is_a_group_of_an_outer_join(sql: str, worlds: tuple[Any, Any]) -> None:
    _check_formula(sql, worlds)


@pytest.mark.parametrize("key", RANGED)
def test_times_in_a_range_are_postgresqls(key: str, worlds: tuple[Any, Any]) -> None:
    _check(f"SELECT {key} FROM lines WHERE {WHEN} GROUP BY 1 HAVING count(*) > 0", 0, worlds)
    qualified = key if "date" in key else key.replace("met", "l.met")
    _check(f"SELECT l.hour, {qualified} FROM lines l WHERE {WHEN} GROUP BY 1, 2 HAVING count(*) > 2", 2, worlds)


@pytest.mark.parametrize("key", AGES)
def test_ages_are_postgresqls(key: str, worlds: tuple[Any, Any]) -> None:
    when = "WHERE paid BETWEEN '1990-02-28' AND '2026-02-20'"
    _check(f"SELECT {key} FROM lines {when} GROUP BY 1 HAVING count(*) > 0", 0, worlds)
    _check(f"SELECT hour / 8, {key} AS g FROM rows {when} GROUP BY 1, 2 HAVING count(*) > 5", 5, worlds)


@pytest.mark.parametrize("word", ["UNION", "INTERSECT", "EXCEPT"])
@pytest.mark.parametrize(("shown", "where", "other"), SIDES)
def test_set_operations_are_one_question(
    shown: str, where: str, other: str, word: str, worlds: tuple[Any, Any]
) -> None:
    """Sides that read other rows, and the second spells its GROUP BY in another way."""
    items = shown.split("; ")
    plain = ", ".join(one.partition(" AS ")[0] for one in items)
    numbers = ", ".join(str(place) for place, _ in enumerate(items, start=1))
    left = f"SELECT {', '.join(items)} FROM lines {where and 'WHERE ' + where} GROUP BY {numbers} HAVING count(*) > 9"
    right = f"SELECT {plain} FROM lines l {other and 'WHERE ' + other} GROUP BY {plain} HAVING count(gift) > 11"
    sql = f"{left} {word} {right}"
    _check_formula(sql, worlds)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("(met::date - paid) / 7", "met::date - paid BETWEEN -20 AND 30"),
        ("paid - met::date", f"{WHEN} AND paid BETWEEN '2026-01-10' AND '2026-02-20'"),
        ("coalesce(nullif(date '2026-03-01' - paid, 40) / 10, -1)", "paid BETWEEN '2026-01-05' AND '2026-02-28'"),
        ("date_part('day', met - paid)", "met - paid BETWEEN interval '-12 days -5 hours' AND interval '9 days'"),
        ("extract(day FROM paid - met)", f"{WHEN} AND paid BETWEEN '2026-01-05' AND '2026-01-20'"),
        ("floor(extract(epoch FROM met - paid) / 7200)", "met - paid BETWEEN interval '-3 days' AND interval '5 days'"),
        ("least((met::date - paid) / 7, 2) || ' weeks'", "met::date - paid BETWEEN 0 AND 40"),
    ],
)  # fmt: skip
def test_times_apart_are_postgresqls(key: str, said: str, worlds: tuple[Any, Any]) -> None:
    _check(f"SELECT {key} FROM lines WHERE {said} GROUP BY 1 HAVING count(*) > 0", 0, worlds)
    _check(f"SELECT {key} AS g, hour / 6 FROM rows l WHERE {said} GROUP BY 1, 2 HAVING count(*) > 3", 3, worlds)


@pytest.mark.parametrize(
    "keys",
    [
        ("n > 10", "hour < 12"),
        ("n > 10", "n > 20"),
        ("n > 10", "gift", "hour / 8"),
        ("floor(price / 10)", "extract(dow FROM met)"),
        ("hour", "code LIKE 'A%'"),
        ("CASE WHEN n > 10 AND hour < 12 THEN 'a' WHEN n IS NULL THEN 'b' ELSE 'c' END", "gift"),
        ("n > 10 OR gift", "hour < 12 AND price > 5"),
        ("left(city, 1)", "CASE WHEN n > 10 AND hour < 12 THEN 'a' ELSE 'c' END"),
        ("CASE WHEN hour < 6 THEN 'night' WHEN price > 20 THEN 'dear' ELSE 'cheap' END",),
        ("coalesce(n / 20, extract(dow FROM met) - 9)",),
        ("price * n > 500", "price > 10"),
        ("CASE WHEN n > 10 AND hour < 12 THEN 1 END", "hour"),
        ("hour", "CASE WHEN n > 10 AND hour < 12 THEN 'a' WHEN gift THEN 'b' END"),
        ("CASE WHEN n > 10 AND hour < 12 THEN 1 END", "hour >= 12", "gift"),
        ("n > 10 OR gift", "CASE WHEN n > 20 THEN 'many' END", "city"),
        ("CASE WHEN price * n > 50 AND hour < 12 THEN 1 END", "price * n > 50", "hour / 6"),
        ("n > price", "n > weight", "n / 20"),
    ],
)
def test_several_computed_keys(keys: tuple[str, ...], worlds: tuple[Any, Any]) -> None:
    places = ", ".join(str(place + 1) for place in range(len(keys)))
    for table in ("lines", "rows"):
        known = "WHERE city IS NOT NULL" if "city" in "".join(keys) else ""
        _check(f"SELECT {', '.join(keys)} FROM {table} {known} GROUP BY {places} HAVING count(*) > 3", 3, worlds)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT big FROM (SELECT n > 10 AS big, hour FROM lines GROUP BY 1, 2 HAVING count(*) > 3) q WHERE big",
        "WITH q AS (SELECT n / 10 AS tens FROM lines GROUP BY 1 HAVING count(*) > 3) SELECT max(tens) FROM q",
        "SELECT CASE WHEN l.n > 10 THEN 'many' ELSE 'few' END AS kind FROM lines l GROUP BY kind HAVING count(*) > 3",
        "SELECT n / 10 + 1, n / 10 FROM lines GROUP BY n / 10 HAVING count(*) > 3 ORDER BY 2 DESC",
        "SELECT n > 10 AS a, n > 10 AS b FROM lines GROUP BY 1, 2 HAVING count(*) > 3",
        "SELECT n FROM rows GROUP BY n HAVING count(*) > 3",
        "SELECT code FROM lines WHERE code IN ('A1', 'B2', 'none') GROUP BY code HAVING count(*) > 3",
        "SELECT left(code, 1) || '-' FROM rows WHERE code IN ('A1', 'A2', 'x2') GROUP BY 1 HAVING count(*) > 3",
        "SELECT gift, count(*) > 3 FROM rows GROUP BY gift",
    ],
)
def test_statements_around_computed_keys(sql: str, worlds: tuple[Any, Any]) -> None:
    if "count(*) > 3 FROM" in sql:
        assert asking(sql, CATALOG).questions[0].predicates
        return
    _check(sql, 3, worlds)
