"""Conditions that write a derived column out keep PostgreSQL's rows, infinite times among them."""

import random
from collections.abc import Iterator
from datetime import date

import psycopg
import pytest

from planner.catalog.catalog import Column, Derivation, SqlType, Table
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.row import RowSql
from planner.predicates.condition import read_row_condition
from planner.predicates.infinite_times import restrict_to_groups
from planner.scope.name_resolution import Scope
from planner.values.constant import ConstantContext
from tests.effort import rounds
from tests.planner.asked import select

_TABLE = Table(
    name="r",
    relation="r",
    columns=(
        Column("s", SqlType.TIMESTAMP, "timestamp"),
        Column("month", SqlType.DATE, "date", derivation=Derivation("date_trunc", "month", "s")),
        Column("day", SqlType.DATE, "date", derivation=Derivation("date", "", "s")),
        Column("year", SqlType.INTEGER, "integer", derivation=Derivation("extract", "year", "s")),
        Column("hour", SqlType.INTEGER, "integer", derivation=Derivation("extract", "hour", "s")),
    ),
    unit=(),
    groups_per_unit=1,
    rows_per_unit=None,
    row_cap=None,
    refresh="static",
    seed="r",
)
_TIMES = [None, "infinity",
          "-infinity", "2011-01-31 23:59:59", "2011-02-01", "2011-02-20 10:00", "2012-01-01", "10000-01-01",
          "0001-01-01", "9999-12-31 23:59:59.999999"]  # fmt: skip
_FORMS = {
    "date_trunc('month', s)": ["'2011-02-01'", "timestamp '2011-02-03'", "date '2012-01-01'", "NULL"],
    "date_trunc('month', s)::date": ["'2011-02-01'", "date '2011-02-03'"],
    "s::date": ["'2011-02-20'", "date '2011-02-01'"],
    "CAST(s AS date)": ["'2011-02-20'", "date '2011-02-01'"],
    "date_trunc('day', s)": ["'2011-02-20'", "timestamp '2011-02-20 10:00'"],
    "extract(year FROM s)": ["2011", "2011.5"],
    "extract(hour FROM s)": ["10", "0"],
}


@pytest.fixture(scope="module")
def connection(postgres_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as opened:
        opened.execute("CREATE TEMP TABLE r (k integer, s timestamp)")
        with opened.cursor() as cursor:
            cursor.executemany("INSERT INTO r VALUES (%s, %s::text::timestamp)", list(enumerate(_TIMES)))
        yield opened


def _kept(connection: psycopg.Connection, where: str) -> list[int]:
    return [k for (k,) in connection.execute(f"SELECT k FROM r WHERE {where} ORDER BY k".encode()).fetchall()]


def _leaf(random_: random.Random) -> str:
    x = random_.choice(list(_FORMS))
    first, second = random_.choice(_FORMS[x]), random_.choice(_FORMS[x])
    return random_.choice(
        [
            *[f"{x} {random_.choice(['=', '<>', '<', '<=', '>', '>='])} {first}"] * 3,
            f"{x} {random_.choice(['', 'NOT '])}IN ({first}, {second})",
            f"{x} {random_.choice(['', 'NOT '])}BETWEEN {first} AND {second}",
            f"{x} IS {random_.choice(['', 'NOT '])}NULL",
            f"{x} IS DISTINCT FROM {_FORMS[x][0]}",
        ]
    )


def test_infinite_times_count_as_postgresql_counts_them(connection: psycopg.Connection) -> None:
    """600 random conditions, 80 at quick, of one or two comparisons, over ten times; also grouped by a derived key."""
    random_ = random.Random(4)
    given = ConstantContext(parameters={}, today=date(2011, 6, 30), is_utc=True)
    for _ in range(rounds(600, quick=80)):
        where = random_.choice(
            [_leaf(random_), f"NOT ({_leaf(random_)} OR {_leaf(random_)})", f"({_leaf(random_)}) IS NOT TRUE"]
        )
        if "hour" in where and "IS" in where:
            continue  # of the year 10000 the column has no hour
        expected = _kept(
            connection,
            where.replace("extract(hour FROM s)", "(CASE WHEN s < '10000-01-01' THEN extract(hour FROM s) END)"),
        )
        read = select(f"SELECT 1 FROM r WHERE {where}").args["where"].this
        condition = read_row_condition(read, Scope(_TABLE, "r"), given)
        sql = RowSql(_TABLE, POSTGRES)
        assert _kept(connection, sql.write_condition(condition)) == expected, where
        grouped = restrict_to_groups(condition, [_TABLE.get_column("day")], _TABLE.columns)
        inside = "s BETWEEN '0001-01-01' AND '9999-12-31 23:59:59.999999'"
        theirs = _kept(connection, f"({where}) AND {inside}")
        assert _kept(connection, f"({sql.write_condition(grouped)}) AND {inside}") == theirs, where


def test_a_key_s_own_condition_stays_the_key_s() -> None:
    given = ConstantContext(parameters={}, today=date(2011, 6, 30), is_utc=True)
    for form in (
        "{} >= '2011-02-01'",
        "{} < '2011-02-01'",
        "{} = '2011-02-01'",
        "{} BETWEEN '2011-02-01' AND '2011-03-01'",
    ):
        written, named = (
            read_row_condition(
                select(f"SELECT 1 FROM r WHERE {form.format(x)}").args["where"].this, Scope(_TABLE, "r"), given
            )
            for x in ("date_trunc('month', s)", "month")
        )
        assert restrict_to_groups(written, [_TABLE.get_column("month")], _TABLE.columns) == named
