"""Random expressions of a row, over odd values: none fails, both engines agree, and so does PostgreSQL's own result."""

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import date
from itertools import product
from math import inf, nextafter
from random import Random

import duckdb
import psycopg
import pytest

from planner.catalog.catalog import Computed, SqlType
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.measure import make_row_value
from planner.lower.row import RowSql
from planner.question.condition import find_columns
from tests.effort import rounds
from tests.proxy.sources.rows.row_expressions import (
    FAR,
    SAID,
    SAYING,
    STORED,
    TABLE,
    conditions,
    lowered,
    measures,
    read,
    rows,
    values_sql,
)

_TRY = """
CREATE FUNCTION pg_temp.told(condition text, row_id integer) RETURNS integer AS $$
DECLARE held boolean;
BEGIN
    EXECUTE format('SELECT %s FROM odd WHERE id = $1', condition) INTO held USING row_id;
    RETURN CASE WHEN held THEN 1 WHEN NOT held THEN 0 END;
EXCEPTION WHEN OTHERS THEN RETURN -1;
END $$ LANGUAGE plpgsql
"""
_STEPS = """
CREATE FUNCTION pg_temp.steps(expression text, step text, row_id integer) RETURNS numeric AS $$
DECLARE found numeric;
BEGIN
    EXECUTE format('SELECT floor((%s)::numeric / %s + 0.5) FROM odd WHERE id = $1', expression, step)
    INTO found USING row_id;
    RETURN found;
EXCEPTION WHEN OTHERS THEN RETURN NULL;
END $$ LANGUAGE plpgsql
"""
_SEED, _ROWS = 17, 60
_BEYOND = (
    "0.0000001",
    "12345.6789",
    "99999999999",
    "NaN",
    "Infinity",
    "-Infinity",
    "1e300",
    "-1e300",
    "1e-300",
    "5e-324",
    *SAID["more"],
)
"""Numbers of which Keyhole computes nothing, as if they were NULL."""
_FAR = (*FAR["arrived"], *FAR["born"])
_ENDS = ("0001-01-01", "9999-12-31", "9999-12-31 23:59:59.999999")
"""Times that lie beyond the years 1 to 9999 when they are moved, of which the calendar is asked nothing then."""
_CHOICES = ("least", "greatest", "coalesce", "CASE")


@pytest.fixture(scope="module")
def server(postgres_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SET TimeZone TO 'UTC'")
        connection.execute(_TRY)
        connection.execute(_STEPS)
        yield connection


def _load(server: psycopg.Connection, found: list[dict[str, str | None]]) -> duckdb.DuckDBPyConnection:
    duck = duckdb.connect()
    made = values_sql(found, "TRY_CAST", {"cost": "decimal(38,10)"}).replace(" BC'", " (BC)'")
    duck.execute(f"CREATE TABLE odd AS {made}")
    server.execute(f"CREATE TEMP TABLE odd AS {values_sql(found, 'CAST', {})}")
    return duck


def _is_rounded(server: psycopg.Connection, text: str, row: str | None) -> bool:
    """Whether the two sides are nearer to each other than PostgreSQL's rounding of a numeric quotient."""
    left, _, right = re.split(r" (<=|>=|<>|<|>|=) ", text)
    near = f"SELECT abs(({left}) - ({right})) <= 1e-9 * greatest(abs({left}), 1) FROM odd WHERE id = {row}"
    return server.execute(near).fetchone() == (True,)


def _leaves_years(text: str, taken: list[str | None]) -> bool:
    """Whether a time at the end of the years may be moved out of them."""
    return ("interval" in text or "(born + 1)" in text) and any(value in _ENDS for value in taken)


def _is_long(text: str, taken: list[str | None]) -> bool:
    """Whether a double that is made a numeric may have more than fifteen digits."""
    return "::numeric" in text and any(value in ("1e20", "-1e20", "9007199254740993") for value in taken)


@pytest.mark.parametrize("far", [False, True], ids=["years 1 to 9999", "far times"])
def test_no_row_fails_and_all_engines_agree_with_postgresql(server: psycopg.Connection, *, far: bool) -> None:
    """At quick 80 conditions: what breaks one in 27 is found with probability .95."""
    drawn = Random(_SEED + far)
    found = rows(drawn, _ROWS, far=far)
    compared = failed = 0
    with _load(server, found) as duck:
        for text, truth in conditions(drawn, rounds(1_500, quick=80)):
            ours = duck.execute(f"SELECT {lowered(truth, DUCKDB)} FROM odd ORDER BY id").fetchall()
            told = server.execute(f"SELECT {lowered(truth, POSTGRES)} FROM odd ORDER BY id").fetchall()
            assert ours == told, text
            own = server.execute("SELECT pg_temp.told(%s, id) FROM odd ORDER BY id", (text,)).fetchall()
            for row, (mine,), (theirs,) in zip(found, ours, own, strict=True):
                assert mine != 9, text
                failed += theirs == -1
                taken = [row[one.name] for one in STORED if one.name in text]
                folded = ("lower" in text or "upper" in text) and any(one and not one.isascii() for one in taken)
                edge = _leaves_years(text, taken) or _is_long(text, taken)
                beyond = (any(value in _BEYOND for value in taken) or edge) and (
                    mine is None or any(one in text for one in _CHOICES)
                )
                if theirs == -1 or far or folded or beyond:
                    continue
                assert mine == theirs or ("/" in text and _is_rounded(server, text, row["id"])), (text, row)
                compared += 1
    server.execute("DROP TABLE odd")
    assert failed > 0
    assert far or compared > rounds(50_000, quick=2_500)


def test_texts_are_the_numbers_that_postgresql_reads(server: psycopg.Connection) -> None:
    """Each text as each kind of number: NULL where PostgreSQL fails, and where it reads what Keyhole does not."""
    texts = [text for several in SAID.values() for text in several]
    found = [{**dict.fromkeys(one.name for one in STORED), "id": str(i), "said": text} for i, text in enumerate(texts)]
    with _load(server, found) as duck:
        for said in (one for one in SAYING if one.startswith(("said", "CAST"))):
            for value in ("0", "7", "-3", "3.5", "0.01", "2147483647", "99999.995"):
                condition = f"{said} >= {value}"
                truth = read(condition)
                assert truth is not None
                ours = duck.execute(f"SELECT {lowered(truth, DUCKDB)} FROM odd ORDER BY id").fetchall()
                assert ours == server.execute(f"SELECT {lowered(truth, POSTGRES)} FROM odd ORDER BY id").fetchall()
                own = server.execute("SELECT pg_temp.told(%s, id) FROM odd ORDER BY id", (condition,)).fetchall()
                for text, (mine,), (theirs,) in zip(texts, ours, own, strict=True):
                    if text in SAID["read"]:
                        assert mine == (None if theirs == -1 else theirs), (condition, text)
                    elif text in SAID["none"]:
                        assert mine is None, (condition, text)
                    else:
                        assert mine is None or theirs in (mine, -1), (condition, text)
    server.execute("DROP TABLE odd")


def test_ages_are_those_of_postgresql(server: psycopg.Connection) -> None:
    """Of days around the ends of months, in leap years and others, and of hours of a day: as long as PostgreSQL takes
    an age for, and as many months."""
    days = [date(y, m, d) for y in (1999, 2000, 2023, 2024) for m in (1, 2, 3, 4) for d in (1, 27, 28, 29, 30, 31)
            if d <= monthrange(y, m)[1]]  # fmt: skip
    times = [f"{one} {clock}" for one in days[::3] for clock in ("00:00", "06:00:00.000001", "23:59:59.999999")]
    found = [
        {**dict.fromkeys(one.name for one in STORED), "id": str(i), "born": str(one), "arrived": other}
        for i, (one, other) in enumerate(Random(_SEED).sample([*product(days, times)], rounds(600, quick=150)))
    ]
    parts = ("age(arrived, born)", "age(born, arrived)", "age(arrived, timestamp '2024-02-29 12:00')")
    with _load(server, found) as duck:
        for age in parts:
            months = f"extract(year FROM {age}) * 12 + extract(month FROM {age})"
            own = f"SELECT 1000000 * (30 * 86400 * ({months}) + extract(epoch FROM {age} - make_interval(months =>"
            own = f"{own} ({months})::int))), {months} FROM odd ORDER BY id"
            ours = []
            for condition in (f"{age} >= interval '1 day'", f"{months} >= 1"):
                truth = read(condition)
                assert truth is not None
                (name,) = find_columns(truth.true)
                for dialect in (DUCKDB, POSTGRES):
                    sql = f"SELECT {RowSql(table=TABLE, dialect=dialect).write_column(name)} FROM odd ORDER BY id"
                    ours.append((duck if dialect is DUCKDB else server).execute(sql).fetchall())
            expected = server.execute(own.encode()).fetchall()
            for *several, (length, counted) in zip(*ours, expected, strict=True):
                assert [one for (one,) in several] == [length, length, counted, counted], age
    server.execute("DROP TABLE odd")


def test_doubles_are_rounded_as_postgresql_rounds_numerics(server: psycopg.Connection) -> None:
    """Of doubles at a half, next to one, and anywhere: the steps are PostgreSQL's, which takes fifteen digits."""
    drawn = Random(_SEED)
    halves = [(2 * drawn.randrange(10**size) + 1) / (2 * 10 ** drawn.randrange(5)) for size in (1, 2, 4, 6, 8) * 10]
    near = [nextafter(one, towards) for one in halves for towards in (inf, -inf)]
    added = [0.1 * one for one in range(1, 40, 2)] + [1.1 * one + 0.05 for one in range(30)]
    anywhere = [drawn.uniform(-1, 1) * 10 ** drawn.randrange(-3, 12) for _ in range(100)]
    values = [*halves, *(-one for one in halves[::3]), *near, *added, *anywhere, 0.0, -0.0, 0.49999999999999994]
    found = [{**dict.fromkeys(one.name for one in STORED), "id": str(i), "x": repr(x)} for i, x in enumerate(values)]
    with _load(server, found) as duck:
        for function, steps in (("round(x::numeric", 1), ("round(x::numeric, 1", 10), ("trunc(x::numeric, 2", 100)):
            rounded = f"{function})"
            truth = read(f"{rounded} >= 1")
            assert truth is not None
            (name,) = find_columns(truth.true)
            ours, theirs = (
                by.execute(
                    f"SELECT {RowSql(table=TABLE, dialect=dialect).write_column(name)} FROM odd ORDER BY id"
                ).fetchall()
                for by, dialect in ((duck, DUCKDB), (server, POSTGRES))
            )
            own = server.execute(f"SELECT {rounded} * {steps} FROM odd ORDER BY id".encode()).fetchall()
            assert ours == theirs
            for x, (mine,), (wanted,) in zip(values, ours, own, strict=True):
                assert mine == wanted, (rounded, repr(x))
    server.execute("DROP TABLE odd")


def test_what_is_added_up_lies_in_its_range_and_is_what_postgresql_computes(server: psycopg.Connection) -> None:
    drawn = Random(_SEED)
    found = rows(drawn, _ROWS, far=True)
    compared = 0
    with _load(server, found) as duck:
        for text, column in measures(drawn, rounds(600, quick=80)):
            made = make_row_value(RowSql(table=TABLE, dialect=DUCKDB), column)
            other = make_row_value(RowSql(table=TABLE, dialect=POSTGRES), column)
            ours = duck.execute(f"SELECT {made.sql} FROM odd ORDER BY id").fetchall()
            assert ours == server.execute(f"SELECT {other.sql} FROM odd ORDER BY id").fetchall(), text
            assert isinstance(column.derivation, Computed)
            step = f"{column.grid}e-{column.derivation.term.scale}"
            own = server.execute("SELECT pg_temp.steps(%s, %s, id) FROM odd ORDER BY id", (text, step)).fetchall()
            for row, (mine,), (theirs,) in zip(found, ours, own, strict=True):
                assert mine is None or made.low <= mine <= made.high, (text, row)
                taken = [row[one.name] for one in STORED if one.name in text]
                edge = _leaves_years(text, taken) or _is_long(text, taken)
                beyond = any(one in _BEYOND or one in _FAR for one in taken) or edge
                if theirs is None or mine is None or beyond:
                    continue
                rounded = "/" in text or column.sql_type is SqlType.DOUBLE
                assert abs(mine - min(max(theirs, made.low), made.high)) <= rounded, (text, row)
                compared += 1
    server.execute("DROP TABLE odd")
    assert compared > rounds(10_000, quick=1_000)
