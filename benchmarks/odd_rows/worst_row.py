"""Does the time of an answer tell of one row: `python -m benchmarks.odd_rows.worst_row [rows] [repetitions]`.

Two tables differ in one row, whose every value is the worst for the questions asked: a text of 50,000 letters that all
patterns nearly match, a number that nobody else has. Each question is asked of both in turns, on DuckDB and on
PostgreSQL, as Keyhole writes it and without rollups. "told" is how often an answer with the row takes longer than one
without: .5 is a coin, 1 tells everything. What is allowed is to stay near .5; what is refused has no time at all.
"""

import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from time import perf_counter

import duckdb
import psycopg

from planner.errors import KeyholeError
from planner.question.plan import Plan
from proxy.cli.check import check
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.messages import Asked, read_bare_question
from proxy.shadow.wheel import make_postgres_server

ROWS, REPETITIONS = 50_000, 40
TABLES = ("others", "everybody")
NOTE = "a" * 50_000
FILL = """
CREATE TABLE {table} AS SELECT CAST(i AS integer) AS id, 'person ' || CAST(i AS text) AS name,
  'ward ' || CAST(i % 5 AS text) AS ward, CAST(i * 7919 % 100 AS integer) AS age,
  TIMESTAMP '2026-01-01 00:00:00' + CAST(i % 300 AS integer) * INTERVAL '1 day' AS visited,
  'came at ' || md5(CAST(i AS text)) AS note
FROM generate_series(1, {rows}) AS t(i)
"""
VICTIM = "INSERT INTO {table} VALUES (0, 'victim', 'ward 1', 150, TIMESTAMP '2026-06-01 00:00:00', '{note}')"
POLICY = """
[source]
url = "{url}"

[budget]
epsilon_per_predicate = 4.0
epsilon_per_query = 4.0
"""
TABLE = """
[tables.{table}]
privacy_unit = "row"
refresh = "static"
[tables.{table}.columns.ward]
key = {{ values = ["ward 0", "ward 1", "ward 2", "ward 3", "ward 4"] }}
[tables.{table}.columns.name]
[tables.{table}.columns.age]
[tables.{table}.columns.note]
[tables.{table}.columns.visited]
[tables.{table}.columns.month]
expression = "extract(month from visited)"
"""


def join_any(tests: Iterator[str]) -> str:
    return " OR ".join(tests)


def make_dear_for_victim(dear: str) -> str:
    counted = f"count(*) FILTER (WHERE name = 'victim' AND ({dear}))"
    return f"SELECT ward FROM {{table}} GROUP BY ward HAVING {counted} > 1000"


QUESTIONS: Mapping[str, str] = {
    "nothing dear": make_dear_for_victim("age > 70"),
    "a text that is equal": make_dear_for_victim("note = 'came at all'"),
    "2,000 texts in a list": make_dear_for_victim(
        "note IN ('" + "', '".join(f"came at {i}" for i in range(2000)) + "')"
    ),
    "18 patterns": make_dear_for_victim(
        join_any(f"note LIKE '%{'a' * 9}{letter}%'" for letter in "bcdefghijklmnopqrs")
    ),
    "one long pattern": make_dear_for_victim(f"note LIKE '%{'a' * 190}b%'"),
    "a pattern of blanks": make_dear_for_victim(f"note LIKE '%a{'_' * 180}Q0%'"),
    "64 spellings": make_dear_for_victim("note ILIKE '%abcdef%'"),
    "patterns behind CASE": make_dear_for_victim(
        f"CASE WHEN age = 150 THEN note LIKE '%{'a' * 90}b%' WHEN age = 151 THEN note LIKE '%{'a' * 90}c%' END"
    ),
    "patterns in WHERE": "SELECT ward FROM {table} WHERE age = 150 AND note LIKE '%" + "a" * 190 + "b%' GROUP BY ward "
    "HAVING count(*) > 1000",
    "15 tests": make_dear_for_victim(join_any(f"age = {i}" for i in range(103, 118))),
    "2,000 tests": make_dear_for_victim(join_any(f"age = {i}" for i in range(102, 2102))),
    "300 months": make_dear_for_victim(join_any(f"month = {i % 12 + 20}" for i in range(300))),
    "a number that nobody else has": "SELECT ward FROM {table} WHERE age > 149 GROUP BY ward HAVING count(*) > 1000",
    "the same under FILTER": "SELECT ward FROM {table} GROUP BY ward HAVING count(*) FILTER (WHERE age > 149) > 1000",
    "300 patterns of blanks": make_dear_for_victim(join_any(f"note LIKE '%{'_' * i}Q0%'" for i in range(100, 400))),
}


@contextmanager
def open_service(folder: Path, url: str) -> Iterator[Service]:
    """The policy over both tables."""
    policy = folder / f"{url.partition(':')[0]}.toml"
    text = POLICY.format(url=url) + "".join(TABLE.format(table=table) for table in TABLES)
    policy.write_text(text, encoding="utf-8")
    check(policy, confirm=True)
    with Service.open(policy) as service:
        yield service


def plan_question(service: Service, sql: str) -> Plan:
    """The plan of a question at a tolerance at which it costs nearly nothing."""
    asked = Asked(
        question=read_bare_question(sql, service.catalog),
        settings={"keyhole.tolerance": "100%"},
        parameters={},
        analyst=service.find_analyst(None),
        today=date(2026, 12, 31),
        is_utc=True,
    )
    return pipeline.plan_asked_question(service, asked)


def read_ms(service: Service, plan: Plan) -> float:
    """How long the source takes."""
    start = perf_counter()
    service.source.read_aggregates(plan.rewritten, plan.question.keys, functionals=1, timeout_ms=600_000)
    return 1000 * (perf_counter() - start)


def measure(service: Service, sql: str, *, repetitions: int) -> tuple[list[float], list[float]]:
    """Milliseconds without and with the row, asked in pairs whose order is drawn."""
    plans = [plan_question(service, sql.format(table=table)) for table in TABLES]
    took: tuple[list[float], list[float]] = ([], [])
    for plan in plans:
        read_ms(service, plan)
    chance = random.Random(7)
    for _ in range(repetitions):
        for i in chance.sample((0, 1), 2):
            took[i].append(read_ms(service, plans[i]))
    return took


def compute_told(without: list[float], with_: list[float]) -> float:
    """How often the larger of two times, one of each, is the one with the row."""
    wins = sum((b > a) + (b == a) / 2 for a in without for b in with_)
    return wins / (len(without) * len(with_))


def compare(engine: str, service: Service, *, repetitions: int) -> None:
    """One line for each question."""
    print(f"{engine:32}{'without':>11}{'with':>11}{'apart':>10}{'told':>7}")
    for name, sql in QUESTIONS.items():
        try:
            without, with_ = measure(service, sql, repetitions=repetitions)
        except KeyholeError as refused:
            print(f"  {name:30}{refused.code:>11}")
            continue
        a, b = statistics.median(without), statistics.median(with_)
        print(f"  {name:30}{a:8.2f} ms{b:8.2f} ms{b - a:+7.2f} ms{compute_told(without, with_):7.2f}", flush=True)


def fill(execute: Callable[[str], object], *, rows: int) -> None:
    """Both tables."""
    for table in TABLES:
        execute(f"DROP TABLE IF EXISTS {table}")
        execute(FILL.format(table=table, rows=rows))
    execute(VICTIM.format(table=TABLES[1], note=NOTE))


def main(rows: int, repetitions: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        with duckdb.connect(str(folder / "visits.duckdb")) as writer:
            fill(writer.execute, rows=rows)
        with open_service(folder, "duckdb:///visits.duckdb") as service:
            compare("DuckDB", service, repetitions=repetitions)
        server = make_postgres_server(folder / "postgres", cleanup_mode="stop")
        server.start()
        with psycopg.connect(server.get_uri(), autocommit=True) as owner:
            fill(lambda sql: owner.execute(sql.encode()), rows=rows)
            owner.execute("VACUUM ANALYZE")
        with open_service(folder, server.get_uri()) as service:
            compare("PostgreSQL", service, repetitions=repetitions)
        server.cleanup()


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*(given + [ROWS, REPETITIONS][len(given) :]))
