"""Keys and WHERE drawn at random: the groups of a question are those in which a row that WHERE keeps may be.

PostgreSQL tells them by brute force, of every combination of the values that the columns of a question may have.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import psycopg
import pytest

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, Column, Derivation, PublicTable, SqlType, Table, ValueGroups
from planner.catalog.domains import expand_range
from planner.catalog.key_space import format_value
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking, write_outer_sql
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.question.question import Question
from tests.effort import rounds, shares
from tests.planner.asked import TODAY, asking
from tests.planner.groups.test_truth import WANTED
from tests.rows_at_once import insert
from tests.worlds.retail import retail

Shown = tuple[str, ...]
DEPTS = ("ab", "ac", "ba", "bb", "c")


def _calendar(part: str, step: str, kind: SqlType = SqlType.DATE) -> Column:
    function = "date" if part == "" else "date_trunc"
    first, last = date(2025, 1, 1), date(2025, 12, 31)
    if part == "week":
        first = date(2024, 12, 30)
    of = "began" if part == "" else "starts_on"
    return Column(part or "day", kind, kind.value, expand_range(first, last, step, kind),
                  derivation=Derivation(function, part, of))  # fmt: skip


TABLE = Table(
    name="stays",
    relation="stays",
    columns=(
        Column("starts_on", SqlType.DATE, "date"),
        Column("began", SqlType.TIMESTAMP, "timestamp without time zone"),
        Column("n", SqlType.INTEGER, "integer", bounds=(Decimal(-20), Decimal(60)), grid=Decimal(1)),
        Column("price", SqlType.NUMERIC, "numeric(10,2)", bounds=(Decimal(0), Decimal(50)), grid=Decimal("0.01")),
        Column("weight", SqlType.DOUBLE, "double precision", bounds=(Decimal(-5), Decimal(5)), grid=Decimal("0.01")),
        Column("code", SqlType.TEXT, "text"),
        Column("flag", SqlType.BOOLEAN, "boolean"),
        Column("dept", SqlType.TEXT, "text", domain=DEPTS),
        Column("k", SqlType.INTEGER, "integer", domain=tuple(range(30))),
        _calendar("month", "1 month"),
        _calendar("week", "1 week"),
        _calendar("quarter", "3 months"),
        _calendar("", "1 day"),
        Column("dow", SqlType.INTEGER, "integer", domain=tuple(range(7)),
               derivation=Derivation("extract", "dow", "starts_on")),
        Column("hour", SqlType.INTEGER, "integer", domain=tuple(range(24)),
               derivation=Derivation("extract", "hour", "began")),
    ),
    unit=(),
    groups_per_unit=24,
    rows_per_unit=None,
    row_cap=None,
    refresh="static",
    seed="stays",
)  # fmt: skip
_PUBLIC_ROWS = (("ab", "north", 1), ("ac", "north", 2), ("ba", "south", 3), ("bb", None, 3), ("zz", "west", 4))
DISTRICTS = PublicTable(
    "districts",
    (Column("dept", SqlType.TEXT, "text"), Column("division", SqlType.TEXT, "text"),
     Column("size", SqlType.INTEGER, "integer")),
    _PUBLIC_ROWS,
    "pinned",
)  # fmt: skip
_SHELVES = tuple((shelf, None if shelf == 9 else Decimal(shelf * 7 % 30) / 10) for shelf in range(28))
SHELVES = PublicTable(
    "shelves",
    (Column("k", SqlType.INTEGER, "integer"), Column("height", SqlType.NUMERIC, "numeric(3,1)")),
    _SHELVES,
    "pinned",
)
CATALOG: Catalog = replace(retail(), tables=(TABLE,), public_tables=(DISTRICTS, SHELVES))

_DAYS = [date(2025, 1, 1) + timedelta(days=place) for place in range(365)]
_HOURS = [datetime(2025, 1, 1) + timedelta(hours=place) for place in range(365 * 24)]
_BETWEEN = [one + timedelta(minutes=7 * place % 60) for place, one in enumerate(_HOURS)]
_NEAR = [datetime(2025, 6, 1) + timedelta(minutes=place) for place in range(3 * 1440)]
VALUES: dict[str, tuple[str, list[Any]]] = {
    "starts_on": ("date", [*_DAYS, None]),
    "began": (
        "timestamp",
        [
            *_HOURS,
            *_BETWEEN,
            *_NEAR,
            *(one - timedelta(microseconds=1) for one in _NEAR[::30]),
            None,
        ],
    ),
    "n": ("integer", [*range(-20, 61), None]),
    "price": ("numeric(10,2)", [*(Decimal(one).scaleb(-2) for one in range(5001)), None]),
    "weight": ("float8", [*(one / 100 for one in range(-500, 501)), None]),
    "code": ("text", ["A1", "B2", "", "a1", "Axx", "C", "x2", "yxy", "zz", "A2", None]),
    "flag": ("boolean", [True, False, None]),
    "dept": ("text", [*DEPTS, None, "zz"]),
    "k": ("integer", [*range(30), None]),
}
KEYS = {
    "starts_on": (
        "month", "week", "quarter", "dow", "date_trunc('month', starts_on)", "date_trunc('quarter', starts_on)",
        "date_trunc('year', starts_on)", "extract(month FROM starts_on)", "extract(quarter FROM starts_on)",
        "CASE WHEN starts_on < '2025-05-05' THEN 'early' ELSE 'late' END", "to_char(starts_on, 'YYYY-MM')",
        "extract(dow FROM starts_on)", "extract(day FROM starts_on) > 15", "starts_on >= '2025-06-01'",
    ),
    "began": (
        "hour", "day", "date_trunc('week', began)", "extract(dow FROM began)", "hour / 6", "extract(month FROM began)",
        "began > '2025-06-02 12:00'", "extract(doy FROM began)", "extract(minute FROM began)",
    ),
    "n": ("n > 10", "floor(n / 10.0)", "n / 7", "n % 5", "abs(n) / 10", "coalesce(n, 0) > 5", "n"),
    "price": ("floor(price / 10) * 10", "price > 9.99", "round(price / 5) * 5", "price < 25.5"),
    "weight": ("floor(weight)", "weight > 0.1", "round(weight)", "trunc(weight / 0.5)"),
    "code": ("code LIKE 'A%'", "CASE WHEN code IN ('A1', 'C') THEN 1 WHEN code LIKE 'A%' THEN 2 ELSE 3 END"),
    "flag": ("flag", "coalesce(flag, false)", "NOT flag"),
    "dept": ("dept", "left(dept, 1)", "length(dept)", "d.division", "d.size", "dept = 'ab'"),
    "k": ("k", "k / 10", "floor(k / 7.0)", "k % 4", "k > 12", "width_bucket(k, 0, 30, 3)",
          "floor(d.height)", "d.height > 1.5"),
}  # fmt: skip
CONSTANTS: dict[str, tuple[str, ...]] = {
    "starts_on": ("'2025-03-01'", "'2025-03-15'", "'2025-06-01'", "'2025-06-30'", "'2025-09-01'", "'2025-12-31'"),
    "began": ("'2025-06-01'", "'2025-06-02 06:00'", "'2025-06-02 12:30'", "'2025-06-01 23:30'"),
    "n": ("0", "10", "11", "-19", "29", "59"),
    "price": ("0", "9.99", "10", "25.50", "49.99"),
    "weight": ("0", "0.1", "-2.5", "3", "1.9"),
    "dept": ("'ab'", "'ba'", "'c'"),
    "k": ("0", "7", "10", "20", "29"),
    "code": ("'A1'", "'C'", "'x2'"),
}
OTHERS = {
    "starts_on": ("extract(dow FROM starts_on) IN (1, 2)", "month >= '2025-04-01'", "quarter = '2025-07-01'",
                  "dow = 3", "week < '2025-03-01'", "extract(dow FROM starts_on) <> 0"),
    "began": ("hour BETWEEN 6 AND 9", "hour < 3", "day = '2025-06-02'", "began::date > '2025-06-01'"),
    "dept": ("dept LIKE 'a%'", "dept LIKE '%b'", "left(dept, 1) = 'b'", "length(dept) = 2"),
    "code": ("code LIKE 'A%'", "code NOT LIKE 'A%'", "code LIKE '%x%'"),
    "flag": ("flag", "NOT flag", "flag IS NOT TRUE"),
}  # fmt: skip
JOINED = ("d.division = 'north'", "d.size >= 3", "d.size IN (1, 4)", "d.division IS NULL", "d.division <> 'south'")


class Writer:
    """Writes a question's key and WHERE."""

    def __init__(self, drawn: Random) -> None:
        self.drawn, self.pick = drawn, drawn.choice

    def condition(self, root: str) -> str:
        """A condition on one column, or on what is made of it."""
        if root in OTHERS and self.drawn.random() < 0.4:
            return self.pick(OTHERS[root])
        if root not in CONSTANTS:
            return f"{root} IS {self.pick(('', 'NOT '))}NULL"
        one, other = self.pick(CONSTANTS[root]), self.pick(CONSTANTS[root])
        comparisons = (f"{root} = {one}", f"{root} <> {one}") if root in ("dept", "code") else (
            *(f"{root} {sign} {one}" for sign in ("<", "<=", ">", ">=", "=", "<>")),
            f"{root} BETWEEN {min(one, other)} AND {max(one, other)}",
        )  # fmt: skip
        return self.pick((*comparisons, f"{root} {self.pick(('', 'NOT '))}IN ({one}, {other})", f"{root} IS NULL",
                          f"{root} IS NOT NULL", *comparisons))  # fmt: skip

    def where(self, root: str, *, joined: bool) -> str:
        """Conditions on the root of a key, some of them beside one on another column."""
        said = [self.condition(root) for _ in range(self.drawn.randrange(1, 4))]
        if joined and self.drawn.random() < 0.7:
            said[0] = self.pick(JOINED)
        if len(said) > 1 and self.drawn.random() < 0.3:
            said[:2] = [f"({said[0]} OR {said[1]})"]
        if self.drawn.random() < 0.2:
            said[0] = f"NOT ({said[0]})"
        return " AND ".join(said)


@pytest.fixture(scope="module")
def postgres(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as opened:
        opened.execute("DROP SCHEMA IF EXISTS inhabited CASCADE")
        opened.execute("CREATE SCHEMA inhabited")
        opened.execute("SET search_path = inhabited")
        opened.execute("SET TimeZone TO 'UTC'")
        opened.execute("CREATE TABLE districts (dept text, division text, size integer)")
        opened.execute("CREATE TABLE shelves (k integer, height numeric(3,1))")
        with opened.cursor() as cursor:
            cursor.executemany("INSERT INTO districts VALUES (%s, %s, %s)", _PUBLIC_ROWS)
            cursor.executemany("INSERT INTO shelves VALUES (%s, %s)", _SHELVES)
        for name, (kind, values) in VALUES.items():
            opened.execute(f"CREATE TABLE some_{name} ({name} {kind})")
            listed = [None if value is None else str(value) for value in values]
            opened.execute(f"INSERT INTO some_{name} SELECT unnest(%s::text[])::{kind}", [listed])
        opened.execute(f"CREATE TABLE stays ({', '.join(f'{name} {kind}' for name, (kind, _) in VALUES.items())})")
        yield opened
        opened.execute("DROP SCHEMA inhabited CASCADE")


@pytest.fixture(scope="module")
def duck(postgres: psycopg.Connection[Any]) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        opened.execute(f"CREATE TABLE stays ({', '.join(f'{name} {kind}' for name, (kind, _) in VALUES.items())})")
        _fill(postgres, opened)
        yield opened


def _asked(sql: str) -> tuple[Asking, Question] | None:
    try:
        found = asking(sql, CATALOG)
        (question,) = found.questions
        return found, bind_question(question, CATALOG, accuracy=WANTED, parameters={}, today=TODAY, is_utc=True)
    except KeyholeError as error:
        if error.code not in ("KH202", "KH205"):
            raise
        return None


def _list_groups(asked: tuple[Asking, Question], postgres: psycopg.Connection[Any]) -> dict[Shown, Shown]:
    """The groups of a question as PostgreSQL shows them, each with its key."""
    outer, keys = write_outer_sql(asked[0], first_parameter=1), asked[1].keys
    texts = [tuple(map(format_value, keys.get_key(place))) for place in range(keys.size)]
    arrays = [[text[array.column] for text in texts] for array in outer.arrays]
    rows = psycopg.RawCursor(postgres).execute(f"SELECT v::text FROM ({outer.sql}) AS q(v)", arrays).fetchall()
    assert len(rows) == len(texts)
    found = dict(zip((_show(row) for row in rows), texts, strict=True))
    assert len(found) == len(texts)
    return found


def _show(row: tuple[Any, ...]) -> Shown:
    return tuple("0" if value == "-0" else str(value) for value in row)


def _derived() -> str:
    columns = (f"{_written(one.derivation)} AS {one.name}" for one in TABLE.columns if one.derivation is not None)
    return ", ".join(columns)


def _written(derived: Any) -> str:
    """A derived column in SQL: NULL for infinite times."""
    value = {
        "date_trunc": f"date_trunc('{derived.part}', {derived.column})::date",
        "extract": f"extract({derived.part} FROM {derived.column})::integer",
        "date": f"{derived.column}::date",
    }[derived.function]
    return f"CASE WHEN isfinite({derived.column}) THEN {value} END"


def _with_derived(rows: str) -> str:
    return f"(SELECT *, {_derived()} FROM {rows} AS s) AS s"


def _possible(key: str, said: str, root: str, join: str, postgres: psycopg.Connection[Any]) -> set[Shown]:
    """The groups of the rows that WHERE keeps, of every value of a column."""
    others = [f"NULL::{kind} AS {name}" for name, (kind, _) in VALUES.items() if name != root]
    stored = f"some_{root}"
    if "dept" in key and "d." not in key:  # a row whose department is not declared is in no group of departments
        listed = ", ".join(f"'{one}'" for one in DEPTS)
        stored = f"(SELECT * FROM {stored} WHERE dept IS NULL OR dept IN ({listed}))"
    rows = _with_derived(f"(SELECT {root}, {', '.join(others)} FROM {stored} AS one)")
    sql = f"SELECT DISTINCT ({key})::text FROM {rows} {join} WHERE {said}"
    return {_show(row) for row in postgres.execute(sql).fetchall()}


def _fill(postgres: psycopg.Connection[Any], duck: duckdb.DuckDBPyConnection) -> None:
    drawn = Random(1)
    listed = [values for _, values in VALUES.values()]
    rows = [tuple(drawn.choice(values) for values in listed) for _ in range(400)]
    with postgres.cursor() as cursor:
        cursor.executemany(f"INSERT INTO stays VALUES ({', '.join(['%s'] * len(VALUES))})", rows)
    insert(duck, "stays", rows)


def test_null_is_a_group_where_what_is_looked_up_may_be_missing() -> None:
    """Shelf 9 has no height, and 28 is no shelf."""
    for join, said, expected in (
        ("JOIN", "s.k < 9", False),
        ("JOIN", "s.k <= 9", True),
        ("JOIN", "s.k IN (7, 10)", False),
        ("LEFT JOIN", "s.k BETWEEN 3 AND 8", False),
        ("LEFT JOIN", "s.k BETWEEN 3 AND 8 OR s.k = 28", True),
        ("LEFT JOIN", "s.k < 9", True),
        ("LEFT JOIN", "s.k IN (1, 2) AND d.height > 0.5", False),
    ):
        asked = _asked(
            f"SELECT floor(d.height) FROM stays s {join} shelves d ON d.k = s.k WHERE {said} "
            "GROUP BY 1 HAVING count(*) < 3"
        )
        assert asked is not None
        (column,), (values,) = asked[1].keys.columns, asked[1].keys.values
        assert isinstance(column.derivation, ValueGroups)
        assert (column.derivation.null_group in values) is expected, said


@pytest.mark.parametrize("share", shares(5))
def test_groups_are_those_that_a_row_may_be_in(
    postgres: psycopg.Connection[Any], duck: duckdb.DuckDBPyConnection, share: int
) -> None:
    """An empty group inside of WHERE counts as 0, and one that WHERE leaves no room for is none.

    No group with room is left out. In one statement of 120 one is kept without: the column may have values beyond
    those that are tried, `price < 0`, or WHERE joins patterns by OR, or tests what is computed, `length(dept) = 2`.
    """
    compared = restricted = wider = 0
    turns = rounds(400, quick=30)
    for seed in range(share * turns, (share + 1) * turns):
        drawn = Random(seed)
        root = drawn.choice(list(KEYS))
        key = drawn.choice(KEYS[root])
        looked_up = "districts" if root == "dept" else "shelves" if "height" in key else ""
        join = f"{drawn.choice(('', 'LEFT '))}JOIN {looked_up} d ON d.{root} = s.{root}" if looked_up else ""
        said = Writer(drawn).where(root, joined=root == "dept")
        if join:
            key = key.replace("dept", "s.dept")
            said = re.sub(rf"\b{root}\b", f"s.{root}", said)
        text = f"SELECT {key} FROM stays s {join} WHERE {said} GROUP BY 1 HAVING count(*) < 3"
        asked, whole = _asked(text), _asked(text.replace(f"WHERE {said}", ""))
        if asked is None:
            continue
        ours = _list_groups(asked, postgres) if asked[1].keys.size else {}
        theirs = _possible(key, said, root, join, postgres)
        if whole is not None:  # rows outside of the declared values are in no group
            theirs &= set(_list_groups(whole, postgres))
        else:
            theirs -= {("None",)} - set(ours)  # of a key without a group of NULL
        assert set(ours) >= theirs, text
        wider += set(ours) > theirs
        sql = f"SELECT ({key})::text, count(*) FROM {_with_derived('stays')} {join} WHERE {said} GROUP BY 1"
        plain = {_show(row[:1]): row[1] for row in postgres.execute(sql).fetchall()}
        for engine, dialect in ((postgres, POSTGRES), (duck, DUCKDB)) if ours else ():
            rewritten = plan_question(asked[1], dialect=dialect).rewritten
            if rewritten.pinned_relations:
                continue  # so many keys stand in a relation that a source makes
            found = engine.execute(rewritten.sql).fetchall()
            counts: dict[Shown, int] = {(format_value(row[0]),): row[1] for row in found}
            answer = {shown for shown, text in ours.items() if counts.get(text, 0) < 3}
            assert answer == {shown for shown in ours if plain.get(shown, 0) < 3}, text
        compared += 1
        restricted += whole is not None and asked[1].keys.size < whole[1].keys.size
    assert wider <= compared / 60  # in one share; of all of them one in 120
    assert compared > rounds(260, quick=15)
    assert restricted > rounds(130, quick=7)
