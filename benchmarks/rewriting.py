"""What rewriting costs: the rewritten question against the plain one, on the same engine in the same run.

    python -m benchmarks.rewriting [rows]

One million rows, 500 keys, three atoms, no index. "scan" reads the table, "rollup" the rows that count, kept from an
earlier question. PostgreSQL is the one that KEYHOLE_PG_DSN names, or an embedded one.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path

import duckdb
import psycopg

from mechanisms.formula import TRUE
from planner.catalog.catalog import Column, RowCap, SqlType, Table
from planner.catalog.key_space import KeySpace
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.scan import rewrite
from planner.question.condition import ALWAYS, Compare
from planner.question.question import Accuracy, Functional, Measure, Question, Term
from proxy.shadow.wheel import make_postgres_server
from proxy.sources.open import Source, open_source

REPEATS = 7
WARDS = tuple(f"ward {i}" for i in range(20))
DAYS = tuple(date(2026, 1, 1) + timedelta(days=i) for i in range(25))
ROWS = """
SELECT i AS id, 'ward ' || CAST(i * 7 % 20 AS text) AS ward, DATE '2026-01-01' + CAST(i * 13 % 25 AS integer) AS day,
  CAST(i * 7919 % 111 AS integer) AS age, CAST(i * 104729 % 500000 AS double precision) / 100 AS cost,
  CAST(CAST(i * 1299709 % 500000 AS double precision) / 100 AS numeric(10,2)) AS amount,
  CAST(i * 15485863 % 50000 AS integer) AS patient
FROM generate_series(1, {rows}) AS t(i)
"""
TABLE = Table(
    name="visits",
    relation="visits",
    columns=(
        Column("id", SqlType.INTEGER, "bigint"),
        Column("ward", SqlType.TEXT, "text", domain=WARDS, prunable=False),
        Column("day", SqlType.DATE, "date", domain=DAYS, prunable=False),
        Column("age", SqlType.INTEGER, "integer", bounds=(Decimal(0), Decimal(110)), grid=Decimal(1)),
        Column("cost", SqlType.DOUBLE, "double precision", bounds=(Decimal(0), Decimal(5000)), grid=Decimal(1)),
        Column("amount", SqlType.NUMERIC, "numeric(10,2)", bounds=(Decimal(0), Decimal(5000)), grid=Decimal("0.01")),
        Column("patient", SqlType.INTEGER, "integer"),
    ),
    unit=(),
    groups_per_unit=1,
    rows_per_unit=None,
    row_cap=None,
    refresh="static",
    seed="benchmark",
)
CLIPPED = replace(TABLE, unit=("patient",), groups_per_unit=3, rows_per_unit=20)
CLIPPED_ALL = replace(CLIPPED, groups_per_unit=500)
CLIPPED_HARD = replace(CLIPPED_ALL, rows_per_unit=5)
CAPPED = replace(TABLE, unit=("patient",), groups_per_unit=3, row_cap=RowCap(rows=5, unique="id"))


def make_functional(table: Table, measure: Measure, column: str | None, *, mean: int = 0) -> Functional:
    """A functional with a wide sensitivity; a mean other than zero makes AVG's linear form."""
    bounds, grid = (
        (None, 1) if column is None else (table.get_column(column).bounds, table.get_column(column).grid or 1)
    )
    high = (table.rows_per_unit or 1) * (1 if bounds is None else int(bounds[1] / grid))
    steps = int(mean / Fraction(table.get_column(column).grid or 1)) if column else 0
    offsets = (Term(-steps, column, ALWAYS, 0),) if steps else ()
    return Functional(
        name=f"{measure} {column}",
        measure=measure,
        terms=(Term(1, column, ALWAYS, 1 if measure is Measure.TOTAL else 0), *offsets),
        sensitivity=10**9,
        unit_range=None if table.is_row_unit else (-high, high),
        unit_size=Decimal(1),
        rows=1,
    )


def make_question(table: Table, measured: str) -> Question:
    """`count(*) > c AND avg(x) > t AND sum(x) > s` by ward and day."""
    return Question(
        table=table,
        keys=KeySpace(columns=(table.get_column("ward"), table.get_column("day")), values=(WARDS, DAYS)),
        where=Compare("age", ">=", 5),
        functionals=(
            make_functional(table, Measure.ROWS, None),
            make_functional(table, Measure.TOTAL, measured, mean=20),
            make_functional(table, Measure.TOTAL, measured),
        ),
        atoms=(),
        formula=TRUE,
        accuracy=Accuracy(fnr=0.05, fpr=0.1, tolerance="10%", min_rows=1, mechanism="keyhole"),
        warnings=(),
    )


def write_plain(measured: str) -> str:
    return (
        "SELECT ward, day FROM visits WHERE age >= 5 GROUP BY ward, day "
        f"HAVING count(*) > 100 AND avg({measured}) > 20 AND sum({measured}) > 1000"
    )


def measure_medians_ms(*runs: Callable[[], object]) -> list[float]:
    """The median time of each of several runs, taken in turns so that all see the same machine."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(REPEATS):
        for run, taken in zip(runs, times, strict=True):
            started = time.perf_counter()
            run()
            taken.append((time.perf_counter() - started) * 1000)
    return [statistics.median(taken) for taken in times]


def compare(dialect: Dialect, source: Source, ask: Callable[[str], object]) -> None:
    for shape, table, columns in (
        ("row", TABLE, ("age", "cost", "amount")),
        ("unit, all keys", CLIPPED_ALL, ("age", "amount")),
        ("unit, 5 of 20 rows", CLIPPED_HARD, ("age",)),
        ("unit, 3 keys", CLIPPED, ("age",)),
        ("unit, 3 keys, 5 rows", CAPPED, ("age",)),
    ):
        for measured in columns:
            asked = make_question(table, measured)
            sql = rewrite(asked, dialect=dialect)
            scan = partial(source.read_aggregates, sql, asked.keys, functionals=3, timeout_ms=600_000)
            kept = partial(scan, version="1")
            kept()
            source.wait_for_rollups()
            runs: list[Callable[[], object]] = [partial(ask, write_plain(measured)), scan]
            runs += [] if sql.rollup is None else [kept]
            before, *after = measure_medians_ms(*runs)
            for name, taken in zip(("scan", "rollup"), after, strict=False):
                print(
                    f"{dialect.name:9} {shape:21} {measured:7} {name:7} plain {before:7.1f} ms   "
                    f"rewritten {taken:7.1f} ms   ratio {taken / before:5.2f}   difference {taken - before:7.1f} ms"
                )


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        with duckdb.connect(str(folder / "visits.duckdb")) as writer:
            writer.execute(f"CREATE TABLE visits AS {ROWS.format(rows=rows)}")
        duck = open_source("duckdb:///visits.duckdb", directory=folder, rollups=4)
        with duckdb.connect(str(folder / "copy.duckdb")) as asker:
            asker.execute(f"CREATE TABLE visits AS {ROWS.format(rows=rows)}")
            compare(DUCKDB, duck, lambda sql: asker.execute(sql).fetchall())
        duck.close()

        given = os.environ.get("KEYHOLE_PG_DSN")
        server = None if given else make_postgres_server(folder / "postgres", cleanup_mode="stop")
        if server is not None:
            server.start()
        url = given or (server.get_uri() if server is not None else "")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS visits")
            connection.execute(f"CREATE TABLE visits AS {ROWS.format(rows=f'CAST({rows} AS bigint)')}")
            connection.execute("VACUUM ANALYZE visits")
            connection.execute("DROP SCHEMA IF EXISTS keyhole_scratch CASCADE; CREATE SCHEMA keyhole_scratch")
            postgres = open_source(url, directory=folder, rollups=4, scratch="keyhole_scratch")
            compare(POSTGRES, postgres, lambda sql: connection.execute(sql).fetchall())
            postgres.close()
            connection.execute("DROP TABLE visits; DROP SCHEMA keyhole_scratch")
        if server is not None:
            server.cleanup()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
