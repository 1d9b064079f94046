"""What a join with a public table of very many rows costs: `python -m benchmarks.dimension`.

Sales of as many rows as the public table of products has, every product about once. Keyhole is served by a process of
its own and asked with PostgreSQL's driver; each question has thresholds of its own. Beside it the same text, sent to
the engine, which has the products as a table. Seconds on the clock. The first question with a column pays for what is
computed of it once; then come medians.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import duckdb
import psycopg

from benchmarks.served import measure_memory, run_keyhole
from benchmarks.workload import ANALYST, PASSWORD
from proxy.cli.check import check
from proxy.security.scram import make_verifier
from proxy.shadow.wheel import make_postgres_server

POLICY = """\
[source]
url = "{url}"
[ledger]
url = "sqlite:///keyhole.db"
[accuracy]
tolerance = "50%"
[limits]
statement_timeout_ms = 300000
[budget]
epsilon_per_predicate = 1000
epsilon_per_unit = 1000
epsilon_per_query = 100
[tables.products]
public = true
[tables.sales]
privacy_unit = "customer_id"
max_groups_per_unit = 5
rows_per_unit = 20
refresh = "{refresh}"
[tables.sales.columns.product_id]
key = {{ values_from = "products.product_id" }}
[tables.sales.columns.store]
key = {{ range = [1, 20] }}
[analysts.{analyst}]
password = "{verifier}"
"""
_JOIN = "FROM sales s JOIN products p ON p.product_id = s.product_id"
QUESTIONS = {
    "by department": f"SELECT p.department {_JOIN} GROUP BY p.department HAVING count(*) > {{}}",
    "sum of a price": f"SELECT p.department {_JOIN} GROUP BY p.department HAVING sum(p.price) > {{}}",
    "WHERE department": f"SELECT store {_JOIN} WHERE p.department = 'd3' GROUP BY store HAVING count(*) > {{}}",
    "FILTER by price": f"SELECT store {_JOIN} GROUP BY store HAVING count(*) FILTER (WHERE p.price > 5) > {{}}",
    "without a join": "SELECT store FROM sales GROUP BY store HAVING count(*) > {}",
}
_PRODUCTS = (
    "CREATE TABLE products AS SELECT CAST(i AS bigint) AS product_id, 'product ' || i AS name, 'd' || i % 20 AS "
    "department, CAST(i % 1000 AS numeric(10, 2)) / 100 AS price FROM {} AS t(i)"
)
_SALES = (
    "CREATE TABLE sales AS SELECT CAST(1 + CAST(i AS bigint) * 7919 % {} AS bigint) AS product_id, CAST(1 + i % 20 AS "
    "integer) AS store, CAST(i * 31 % 200000 AS integer) AS customer_id FROM {} AS t(i)"
)


def measure(directory: Path, *, engine: str, rows: int, repeats: int, refresh: str) -> Iterator[tuple[str, str]]:
    """What was measured, in the order in which it was."""
    with _fill_engine(directory, engine=engine, rows=rows) as (url, plain):
        path = directory / f"{engine}.toml"
        policy = POLICY.format(url=url, refresh=refresh, analyst=ANALYST, verifier=make_verifier(PASSWORD))
        path.write_text(policy, encoding="utf-8")
        yield "keyhole check", f"{_time(lambda: check(path, confirm=False)):.1f} s"
        yield "the pin file", f"{path.with_suffix('.pins.json').stat().st_size / 1e6:.0f} MB"
        started = perf_counter()
        with run_keyhole(path, workers=1) as serving, psycopg.connect(serving.url, autocommit=True) as client:
            yield "start", f"{perf_counter() - started:.1f} s"
            yield "memory after the start", f"{measure_memory(serving.processes)['Rss'] / 1e6:.0f} MB"
            for name, question in QUESTIONS.items():
                yield name, _measure_question(client, plain, question, rows=rows, repeats=repeats)
            yield "memory after the questions", f"{measure_memory(serving.processes)['Rss'] / 1e6:.0f} MB"


def _measure_question(
    client: psycopg.Connection, plain: Callable[[str], None], question: str, *, rows: int, repeats: int
) -> str:
    texts = [question.format(rows // 50 + number) for number in range(2 * repeats + 2)]

    def explain() -> float:
        return _time(lambda: client.execute(f"EXPLAIN {texts.pop()}".encode()).fetchall())

    def ask() -> float:
        return _time(lambda: client.execute(texts.pop().encode()).fetchall())

    first_planned, first = explain(), ask()
    planned, asked = median(explain() for _ in range(repeats)), median(ask() for _ in range(repeats))
    plainly = median(_time(lambda: plain(question.format(rows // 50))) for _ in range(repeats))
    return (
        f"planned {planned:6.3f} s (first {first_planned:5.2f}), asked {asked:6.2f} s (first {first:5.2f}), "
        f"plainly {plainly:5.2f} s"
    )


@contextmanager
def _fill_engine(directory: Path, *, engine: str, rows: int) -> Iterator[tuple[str, Callable[[str], None]]]:
    """An engine with both tables: its URL, and what asks it plainly."""
    if engine == "duckdb":
        with duckdb.connect(str(directory / "sales.duckdb")) as owner:
            owner.execute(_PRODUCTS.format(f"range(1, {rows} + 1)"))
            owner.execute(_SALES.format(rows, f"range({rows})"))
        with duckdb.connect() as reader:
            reader.execute(f"ATTACH '{directory / 'sales.duckdb'}' AS made (READ_ONLY); USE made")
            yield "duckdb:///sales.duckdb", lambda sql: _fetch(reader.execute(sql).fetchall())
        return
    server = make_postgres_server(directory / "postgres", cleanup_mode="stop")
    server.start()
    try:
        url = server.get_uri()
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute(_PRODUCTS.format(f"generate_series(1, {rows})").encode())
            owner.execute(_SALES.format(rows, f"generate_series(0, {rows} - 1)").encode())
            owner.execute("ALTER TABLE products ADD PRIMARY KEY (product_id)")
            owner.execute("VACUUM ANALYZE")
            yield url, lambda sql: _fetch(owner.execute(sql.encode()).fetchall())
    finally:
        server.cleanup()


def _fetch(rows: list[tuple[object, ...]]) -> None:
    del rows


def _time(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--engine", choices=("duckdb", "postgres"), default="duckdb")
    parser.add_argument("--live", action="store_true", help="no rows are kept for later questions")
    given = parser.parse_args()
    refresh = "live" if given.live else "static"
    with TemporaryDirectory(prefix="keyhole-bench-") as folder:
        directory = Path(folder)
        if os.geteuid() == 0:
            directory.chmod(0o711)  # the embedded server runs as another user
        for what, found in measure(
            directory, engine=given.engine, rows=given.rows, repeats=given.repeats, refresh=refresh
        ):
            print(f"{what:28}  {found}", flush=True)


if __name__ == "__main__":
    main()
