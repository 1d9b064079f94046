"""What reading a look costs: its statement beside the plain question of its window, on the same engine in the same run.

    python -m benchmarks.alarms.looks [rows]

One million rows that came in 25 days, one after the other, 20 wards, 50,000 units of 20 rows; the look sees the first
20 days, in which the day that is watched is the last. "Ordinary" is the same question of the same day without a look.
No index, and one on the time that rows came. PostgreSQL is the one that KEYHOLE_PG_DSN names, or an embedded one.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path

import duckdb
import psycopg

from benchmarks.rewriting import (
    CAPPED,
    CLIPPED,
    CLIPPED_ALL,
    DAYS,
    TABLE,
    make_functional,
    make_question,
    measure_medians_ms,
)
from planner.catalog.catalog import Column, Derivation, SqlType, Table, Value
from planner.catalog.key_space import KeySpace
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.scan import rewrite
from planner.lower.shared_looks import share_scans
from planner.question.as_of import AsOf, Hopping
from planner.question.condition import ALWAYS, Compare
from planner.question.looks import look_at
from planner.question.question import Measure, Question
from proxy.shadow.wheel import make_postgres_server
from proxy.sources.open import Source, open_source

BEGIN, WATCHED = datetime(2026, 1, 1), date(2026, 1, 20)
BEFORE = datetime(2026, 1, 20, 18)
MONITORS = 100
ROWS = """
SELECT i AS id, 'ward ' || CAST(i * 7 % 20 AS text) AS ward,
  TIMESTAMP '2026-01-01' + CAST(i AS integer) * INTERVAL '{step} microseconds' AS added,
  CAST(i * 7919 % 111 AS integer) AS age, CAST(i * 104729 % 500000 AS double precision) / 100 AS cost,
  CAST(CAST(i * 1299709 % 500000 AS double precision) / 100 AS numeric(10,2)) AS amount,
  CAST(i * 15485863 % 50000 AS integer) AS patient
FROM generate_series(1, {rows}) AS t(i)
"""
PLAIN = """
SELECT ward FROM visits WHERE age >= 5 AND added >= TIMESTAMP '2026-01-20' AND added < TIMESTAMP '2026-01-20 18:00:00'
GROUP BY ward HAVING count(*) > 100 AND avg(age) > 20 AND sum(age) > 1000
"""


@dataclass(frozen=True, slots=True)
class Times:
    """Medians in ms of one shape: the plain question, the ordinary one where there is one, and the look."""

    shape: str
    plain: float
    ordinary: float | None
    look: float

    def __str__(self) -> str:
        ordinary = "" if self.ordinary is None else f"ordinary {self.ordinary:7.1f} ms   "
        return (
            f"{self.shape:38} plain {self.plain:7.1f} ms   {ordinary}look {self.look:7.1f} ms   "
            f"ratio {self.look / self.plain:6.2f}"
        )


def add_day(table: Table) -> Table:
    """The table with the time that rows came, of which the day is made."""
    day = table.get_column("day")
    derived = replace(day, derivation=Derivation("date", "", "added"), prunable=True)
    added = Column("added", SqlType.TIMESTAMP, "timestamp without time zone")
    return replace(table, columns=(*(derived if one.name == "day" else one for one in table.columns), added))


def make_look(table: Table) -> Question:
    """A look at one day by ward."""
    asked = make_question(add_day(table), "age")
    as_of = AsOf("added", BEFORE, "day", DAYS, timedelta(days=1))
    return look_at(asked, as_of, windows=(WATCHED,))


def make_overlapping_look(table: Table, hop: timedelta) -> Question:
    """The same with days that begin every hop."""
    asked = make_question(add_day(table), "age")
    asked = replace(asked, keys=KeySpace(asked.keys.columns[:1], asked.keys.values[:1]))
    length = timedelta(days=1)
    begins: tuple[Value, ...] = tuple(BEGIN + i * hop for i in range((len(DAYS) - 1) * length // hop + 1))
    as_of = AsOf("added", BEFORE, "opened", begins, length, Hopping("added", length, hop))
    return look_at(asked, as_of, windows=(datetime(2026, 1, 20),))


def list_shapes() -> Iterator[tuple[str, Question]]:
    """Every shape of a look, by name."""
    yield "row", make_look(TABLE)
    yield "unit, all keys", make_look(CLIPPED_ALL)
    yield "unit, 3 keys of the horizon", make_look(CLIPPED)
    yield "unit, 3 keys of the horizon, 5 rows", make_look(CAPPED)
    yield "row, 2 windows a row", make_overlapping_look(TABLE, timedelta(hours=12))
    yield "unit, 3 keys, 2 windows a row", make_overlapping_look(CLIPPED, timedelta(hours=12))


def make_many_looks(table: Table) -> list[Question]:
    """Looks of a hundred standing questions, each with a WHERE of its own."""
    look = make_look(table)
    asked = replace(look, functionals=(make_functional(look.table, Measure.ROWS, None),))
    return [replace(asked, where=ALWAYS if i == 0 else Compare("age", ">=", i)) for i in range(MONITORS)]


def compare(source: Source, dialect: Dialect, ask: Callable[[str], object], *, named: str) -> Iterator[Times]:
    """The medians of all shapes."""

    def read(one: Question) -> Callable[[], object]:
        sql = rewrite(one, dialect=dialect)
        return partial(source.read_aggregates, sql, one.keys, functionals=len(one.functionals), timeout_ms=600_000)

    for shape, look in list_shapes():
        runs: list[Callable[[], object]] = [partial(ask, PLAIN), read(look)]
        runs += [read(replace(look, as_of=None))] if look.as_of is not None and look.as_of.hopping is None else []
        plain, taken, *ordinary = measure_medians_ms(*runs)
        yield Times(f"{named}, {shape}", plain, ordinary[0] if ordinary else None, taken)
    for shape, table in (("row", TABLE), ("unit, 3 keys of the horizon", CLIPPED)):
        alone = make_many_looks(table)
        together = [read(look.question) for look in share_scans(alone, dialect=dialect)]
        plain, one, every = measure_medians_ms(partial(ask, PLAIN), read(alone[1]), partial(_run_all, together))
        yield Times(f"{named}, {shape}, one of {MONITORS}", plain, None, one)
        yield Times(f"{named}, {shape}, {MONITORS} in {len(together)} scans", plain, None, every)


def _run_all(runs: list[Callable[[], object]]) -> None:
    for run in runs:
        run()


def main(rows: int) -> None:
    """Print the medians of both engines."""
    made = ROWS.format(rows=f"CAST({rows} AS bigint)", step=25 * 24 * 3600 * 10**6 // rows)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for file in ("visits", "copy"):
            with duckdb.connect(str(folder / f"{file}.duckdb")) as writer:
                writer.execute(f"CREATE TABLE visits AS {made}")
        duck = open_source("duckdb:///visits.duckdb", directory=folder)
        with duckdb.connect(str(folder / "copy.duckdb")) as asker:
            for times in compare(duck, DUCKDB, lambda sql: asker.execute(sql).fetchall(), named="duckdb"):
                print(times)
        duck.close()

        given = os.environ.get("KEYHOLE_PG_DSN")
        server = None if given else make_postgres_server(folder / "postgres", cleanup_mode="stop")
        if server is not None:
            server.start()
        url = given or (server.get_uri() if server is not None else "")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS visits")
            connection.execute(f"CREATE TABLE visits AS {made}")
            postgres = open_source(url, directory=folder)
            for named in ("postgres", "postgres, index"):
                if "index" in named:
                    connection.execute("CREATE INDEX ON visits (added)")
                connection.execute("VACUUM ANALYZE visits")
                for times in compare(postgres, POSTGRES, lambda sql: connection.execute(sql).fetchall(), named=named):
                    print(times)
            postgres.close()
            connection.execute("DROP TABLE visits")
        if server is not None:
            server.cleanup()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
