"""Computed keys over rows drawn at random: PostgreSQL and DuckDB, asked as rewritten, find PostgreSQL's own groups."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from math import nextafter
from typing import Any
from zlib import crc32

import duckdb
import numpy as np
import psycopg
import pytest

from mechanisms.formula import evaluate_formula
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, Column, Derivation, PublicTable, SqlType, Table
from planner.catalog.key_space import format_value
from planner.extract.outer_query import write_outer_sql
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.statements.settings import read_accuracy
from tests.effort import cases, rounds
from tests.planner.asked import TODAY, asking
from tests.planner.groups.written_keys import AGES, KEYS, NUMBERS, OF_TOWNS, RANGED, TRUTHS, WHEN
from tests.rows_at_once import insert
from tests.worlds.retail import retail


def _list_days(first: int, last: int) -> tuple[date, ...]:
    """Every day of some years."""
    days = (date(last, 12, 31) - date(first, 1, 1)).days + 1
    return tuple(date(first, 1, 1) + timedelta(days=day) for day in range(days))


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
SHIRES = PublicTable(
    name="shires",
    columns=(
        Column("town", SqlType.TEXT, "text"),
        Column("shire", SqlType.TEXT, "text"),
        Column("size", SqlType.INTEGER, "integer"),
    ),
    rows=(("Aachen", "rhine", 1), ("Bonn", "rhine", 1), ("Berlin", "spree", 2), (" Basel", "alps", None)),
    digest="shires",
)
# days that are keys by themselves, too many of them (or of their pairs) to look at each
_DAY = Column("day", SqlType.DATE, "date", domain=_list_days(2026, 2026), derivation=Derivation("date", "", "met"))
DATED = replace(
    LINES,
    name="dated",
    columns=(
        *(replace(one, domain=_list_days(2000, 2030)) if one.name == "paid" else one for one in LINES.columns),
        _DAY,
    ),
)
CATALOG: Catalog = replace(
    retail(),
    tables=(LINES, replace(LINES, name="rows", relation="rows", unit=(), rows_per_unit=None), DATED),
    public_tables=(TOWNS, MARKS, SHIRES),
)


def _beside_a_crossing(drawn: random.Random) -> float:
    """A double next to where arithmetic on it is rounded to the one side or the other."""
    found, toward = drawn.choice((0.2, 0.3, 0.6, -0.1, -0.3, 0.2 + 2**-24, -3.0, 3.0)), drawn.choice((-10.0, 10.0))
    for _ in range(drawn.randint(1, 3)):
        found = nextafter(found, toward)
    return found


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
            maybe(drawn.choice((drawn.randint(-500, 500) / 100, drawn.uniform(-5, 5), _beside_a_crossing(drawn)))),
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
        opened.execute("CREATE VIEW dated AS SELECT *, met::date AS day FROM lines")
        opened.execute("SET search_path = computed_keys, public")
        for public in CATALOG.public_tables:
            declared = ", ".join(f"{column.name} {column.declared}" for column in public.columns)
            opened.execute(f"DROP TABLE IF EXISTS public.{public.name}; CREATE TABLE public.{public.name} ({declared})")
            places = ", ".join(["%s"] * len(public.columns))
            with opened.cursor() as cursor:
                cursor.executemany(f"INSERT INTO {public.name} VALUES ({places})", public.rows)
        yield opened, duck
        opened.execute("DROP TABLE public.towns, public.marks, public.shires")
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
WANTED = read_accuracy({"keyhole.tolerance": "1"}, retail().defaults)


def _shape(cursor: Any) -> tuple[list[tuple[str, int]], list[str]]:
    described = [(column.name, column.type_code) for column in cursor.description or ()]
    return described, sorted(repr(row).replace("-0.0,", "0.0,") for row in cursor.fetchall())


def _check(sql: str, most: int, worlds: tuple[Any, Any]) -> None:
    postgres, duck = worlds
    theirs = _shape(postgres.execute(sql))
    statement = asking(sql, CATALOG)
    (question,) = statement.questions
    what = bind_question(question, CATALOG, accuracy=WANTED, parameters={}, today=TODAY)
    outer = write_outer_sql(statement, first_parameter=1)
    texts = {tuple(map(format_value, what.keys.get_key(i))) for i in range(what.keys.size)}
    for engine, dialect in ((postgres, POSTGRES), (duck, DUCKDB)):
        counted = engine.execute(plan_question(what, dialect=dialect).rewritten.sql).fetchall()
        width = len(what.keys.columns)
        keys = [tuple(map(format_value, row[:width])) for row in counted]
        held = [key for key, row in zip(keys, counted, strict=True) if row[width] > most and key in texts]
        arrays = [[key[array.column] for key in held] for array in outer.arrays]
        ours = _shape(psycopg.RawCursor(postgres).execute(outer.sql, arrays))
        assert ours == theirs, (sql, dialect.name, outer.sql)


def _check_all(asked: list[tuple[str, int]], worlds: tuple[Any, Any]) -> None:
    """Check statements about one key, each with the rows that a group has at the most where it fails; at quick one of
    them, which the key's text chooses: each spelling meets one statement, each kind of statement some spellings."""
    for place, (sql, most) in enumerate(asked):
        if (crc32(asked[0][0].encode()) - place) % rounds(1, quick=len(asked)) == 0:
            _check(sql, most, worlds)


def _check_formula(sql: str, worlds: tuple[Any, Any]) -> None:
    """Groups without rows count as nothing, and are decided as well."""
    postgres, duck = worlds
    statement = asking(sql, CATALOG)
    (question,) = statement.questions
    what = bind_question(question, CATALOG, accuracy=WANTED, parameters={}, today=TODAY)
    outer, theirs = write_outer_sql(statement, first_parameter=1), _shape(postgres.execute(sql))
    for engine, dialect in ((postgres, POSTGRES), (duck, DUCKDB)):
        made = plan_question(what, dialect=dialect)
        width, keys = (
            len(what.keys.columns),
            [tuple(map(format_value, what.keys.get_key(i))) for i in range(what.keys.size)],
        )
        read = {
            tuple(map(format_value, row[:width])): row[width:] for row in engine.execute(made.rewritten.sql).fetchall()
        }
        values = np.array([read.get(key, [0] * len(made.question.functionals)) for key in keys], dtype=np.int64).T
        passed = evaluate_formula(
            made.question.formula,
            lambda cut: cut.evaluate(values[cut.functional]),  # noqa: B023
            keys=len(keys),
        )
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
    sql = f"SELECT {key} AS g FROM {table} {known} GROUP BY {key} HAVING count(*) > "
    _check_all([(f"{sql}{most}", most) for most in (0, 40)], worlds)


@pytest.mark.parametrize("key", TRUTHS)
def test_conditions_between_columns_are_postgresqls(key: str, worlds: tuple[Any, Any]) -> None:
    asked = [(f"SELECT {key} FROM lines l GROUP BY {key} HAVING count(*) > {most}", most) for most in (0, 40)]
    beside = f"SELECT {key} AS g, hour FROM rows l GROUP BY 1, 2 HAVING count(*) > 3 ORDER BY {key}"
    _check_all([*asked, (beside, 3)], worlds)


@pytest.mark.parametrize("key", NUMBERS)
def test_numbers_of_several_columns_are_postgresqls(key: str, worlds: tuple[Any, Any]) -> None:
    few = "price < 5 AND n BETWEEN 0 AND 9" if "price" in key else "n <> 0"
    no_zero = f"WHERE {few}" if "/ n" in key or key.startswith(("least", "n + price")) else ""
    alone = f"SELECT {key} FROM lines l {no_zero} GROUP BY {key} HAVING count(*) > 0"
    written = key.replace("n ", "l.n ")
    beside = f"SELECT gift, {written} AS g FROM rows l {no_zero} GROUP BY 1, 2 HAVING count(*) > 1"
    _check_all([(alone, 0), (beside, 1)], worlds)


@pytest.mark.parametrize("key", OF_TOWNS)
def test_groups_by_public_columns_are_postgresqls(key: str, worlds: tuple[Any, Any]) -> None:
    # a public key's NULL is in no group, as a declared one's
    town = "lines l JOIN towns t ON t.town = l.city WHERE t.region IS NOT NULL"
    town += " AND t.since IS NOT NULL" if key.startswith(("extract(year", "to_char(t.since")) else ""
    asked = [
        (f"SELECT {key} AS g FROM {town} GROUP BY {key} HAVING count(*) > 0", 0),
        (f"SELECT {key}, l.hour / 8 AS part FROM {town} GROUP BY 1, 2 HAVING count(*) > 9", 9),
    ]
    own = town.replace("lines", "rows").replace(" JOIN", " LEFT JOIN")
    if "l." not in key:
        asked.append((f"SELECT l.city, {key} FROM {own} GROUP BY l.city, {key} HAVING count(*) > 40", 40))
    _check_all(asked, worlds)


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
        "SELECT s.size, upper(shire) AS called FROM rows l JOIN shires s ON s.town = l.city WHERE size IS NOT NULL "
        "GROUP BY size, s.shire HAVING count(*) < 100000 * s.size",
        "SELECT shire, s.size + 1 FROM lines l LEFT JOIN shires s ON s.town = l.city WHERE size < 3 GROUP BY 1, s.size "
        "HAVING count(l.n) < 100000",
        "SELECT s.size > 1 AS big, left(shire, 1), s.size * 2 > 2 FROM rows l JOIN shires s ON s.town = l.city "
        "WHERE size IS NOT NULL GROUP BY s.size > 1, left(shire, 1), 3 HAVING count(*) < 100000",
        "SELECT t.region, t.height, extract(year FROM t.since) AS y FROM lines l JOIN towns t ON t.town = l.city WHERE "
        "t.region IS NOT NULL AND since > '2000-01-01' GROUP BY t.height, 3, t.region HAVING count(*) < 100000",
    ],
)  # fmt: skip
def test_each_public_row_is_a_group_of_an_outer_join(sql: str, worlds: tuple[Any, Any]) -> None:
    _check_formula(sql, worlds)


@pytest.mark.parametrize("key", RANGED)
def test_times_in_a_range_are_postgresqls(key: str, worlds: tuple[Any, Any]) -> None:
    alone = f"SELECT {key} FROM lines WHERE {WHEN} GROUP BY 1 HAVING count(*) > 0"
    qualified = key if "date" in key else key.replace("met", "l.met")
    beside = f"SELECT l.hour, {qualified} FROM lines l WHERE {WHEN} GROUP BY 1, 2 HAVING count(*) > 2"
    _check_all([(alone, 0), (beside, 2)], worlds)


@pytest.mark.parametrize("key", AGES)
def test_ages_are_postgresqls(key: str, worlds: tuple[Any, Any]) -> None:
    when = "WHERE paid BETWEEN '1990-02-28' AND '2026-02-20'"
    alone = f"SELECT {key} FROM lines {when} GROUP BY 1 HAVING count(*) > 0"
    beside = f"SELECT hour / 8, {key} AS g FROM rows {when} GROUP BY 1, 2 HAVING count(*) > 5"
    _check_all([(alone, 0), (beside, 5)], worlds)


@pytest.mark.parametrize(("sides", "word"), cases(SIDES, ["UNION", "INTERSECT", "EXCEPT"], quick=9))
def test_set_operations_are_one_question(sides: tuple[str, str, str], word: str, worlds: tuple[Any, Any]) -> None:
    """Sides that read other rows, and the second spells its GROUP BY in another way. At quick nine of 27, which have
    each side and each word."""
    shown, where, other = sides
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
    alone = f"SELECT {key} FROM lines WHERE {said} GROUP BY 1 HAVING count(*) > 0"
    beside = f"SELECT {key} AS g, hour / 6 FROM rows l WHERE {said} GROUP BY 1, 2 HAVING count(*) > 3"
    _check_all([(alone, 0), (beside, 3)], worlds)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("paid < '2026-01-20'", ""),
        ("CASE WHEN paid >= '2026-01-15' THEN 'late' WHEN paid IS NULL THEN 'open' ELSE 'early' END", ""),
        ("extract(dow FROM paid)", ""),
        ("extract(year FROM paid) * 12 + extract(month FROM paid)", "paid IS NOT NULL"),
        ("to_char(paid, 'YYYY-MM')", "paid IS NOT NULL"),
        ("date_trunc('week', paid)", "paid > '2026-01-05'"),
        ("extract(year FROM age(date '2031-01-17', paid))", ""),
        ("(date '2026-03-01' - paid) / 100", ""),
        ("CASE WHEN paid > '2026-01-15' AND n > 5 THEN 'a' WHEN hour < 12 THEN 'b' END", ""),
        ("day - paid", "paid BETWEEN '2026-01-10' AND '2026-01-30'"),
        ("(paid - day) / 70", "paid IS NOT NULL"),
        ("paid > day", ""),
        ("CASE WHEN paid - day > 5 THEN 'late' WHEN paid - day < 0 THEN 'before' ELSE 'in time' END", ""),
        ("coalesce(least(paid - day, 3), -99)", "paid BETWEEN '2026-01-05' AND '2026-02-28'"),
    ],
)  # fmt: skip
def test_computed_of_listed_days(key: str, said: str, worlds: tuple[Any, Any]) -> None:
    where = said and f"WHERE {said}"
    alone = f"SELECT {key} FROM dated {where} GROUP BY 1 HAVING count(*) > 0"
    beside = f"SELECT {key} AS g, hour / 6 FROM dated d {where} GROUP BY 1, 2 HAVING count(*) > 3"
    _check_all([(alone, 0), (beside, 3)], worlds)


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
    known = "WHERE city IS NOT NULL" if "city" in "".join(keys) else ""
    sql = f"SELECT {', '.join(keys)} FROM {{}} {known} GROUP BY {places} HAVING count(*) > 3"
    _check_all([(sql.format(table), 3) for table in ("lines", "rows")], worlds)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT big FROM (SELECT n > 10 AS big, hour FROM lines GROUP BY 1, 2 HAVING count(*) > 3) q WHERE big",
        "WITH q AS (SELECT n / 10 AS tens FROM lines GROUP BY 1 HAVING count(*) > 3) SELECT max(tens) FROM q",
        "SELECT CASE WHEN l.n > 10 THEN 'many' ELSE 'few' END AS kind FROM lines l GROUP BY kind HAVING count(*) > 3",
        "SELECT n / 10 + 1, n / 10 FROM lines GROUP BY n / 10 HAVING count(*) > 3 ORDER BY 2 DESC",
        "SELECT n > 10 AS a, n > 10 AS b FROM lines GROUP BY 1, 2 HAVING count(*) > 3",
        "SELECT n FROM rows GROUP BY n HAVING count(*) > 3",
        "SELECT length(code) FROM lines GROUP BY length(code) HAVING count(*) > 3",
        "SELECT greatest(n, hour) FROM lines WHERE n > 5 GROUP BY 1 HAVING count(*) > 3",
        "SELECT code FROM lines WHERE code IN ('A1', 'B2', 'none') GROUP BY code HAVING count(*) > 3",
        "SELECT left(code, 1) || '-' FROM rows WHERE code IN ('A1', 'A2', 'x2') GROUP BY 1 HAVING count(*) > 3",
        "SELECT left(code, 1) FROM rows WHERE left(code, 1) IN ('A', 'B', '%', '_') GROUP BY 1 HAVING count(*) > 3",
        "SELECT substring(code FROM 2 FOR 1) AS d FROM lines WHERE n > 0 AND left(code, 2) IN ('A1', 'B2', '\\_') "
        "GROUP BY d HAVING count(*) > 3",
        "SELECT right(code, 1), gift FROM rows WHERE right(code, 1) IN ('1', '2', '%') OR code LIKE '%\\_' "
        "GROUP BY 1, gift HAVING count(*) > 3",
        "SELECT gift, count(*) > 3 FROM rows GROUP BY gift",
    ],
)
def test_statements_around_computed_keys(sql: str, worlds: tuple[Any, Any]) -> None:
    if "count(*) > 3 FROM" in sql:
        assert asking(sql, CATALOG).questions[0].predicates
        return
    _check(sql, 3, worlds)
