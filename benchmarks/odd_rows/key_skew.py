"""The time to find units by skewed keys: `python -m benchmarks.odd_rows.key_skew [rows] [repetitions]`.

The same questions are asked of a shop in which every order has one line and every customer one order, and of shops in
which one order has all lines, all orders have one key against the owner's word, or one customer has all orders. The
ratio is the best time over the best time of the even shop. Work per row is bounded, so that no ratio grows with rows.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import psycopg

from benchmarks.odd_rows.worst_row import plan_question, read_ms
from proxy.cli.check import check
from proxy.open_policy.service import Service
from proxy.shadow.wheel import make_postgres_server

ROWS, REPETITIONS = 100_000, 5
EVEN = {"customers": "i, 'h' || CAST(i AS text), 'north'", "orders": "i, i, 1 + i % 3, 5", "lines": "i, 'air', 1"}
SKEWED = {
    "even": {},
    "one order has all lines": {"lines": "7, 'air', 1"},
    "all orders have one key": {"orders": "7, i, 1, 5"},
    "both": {"orders": "7, i, 1, 5", "lines": "7, 'air', 1"},
    "one customer has all orders": {"orders": "i, 7, 1 + i % 3, 5"},
}
TYPES = {
    "customers": "c_key integer, household text, region text",
    "orders": "o_key integer, o_customer integer, o_month integer, o_price integer",
    "lines": "l_order integer, l_mode text, amount integer",
}
POLICY = """
[source]
url = "{url}"
rollups = 0
[budget]
epsilon_per_predicate = 4.0
epsilon_per_unit = 8.0
epsilon_per_query = 4.0
[tables.customers]
privacy_unit = "household"
refresh = "static"
max_groups_per_unit = 1
rows_per_unit = 1
unique = ["c_key"]
columns.region.key = {{ values = ["north", "south"] }}
[tables.orders]
privacy_unit = {{ through = "customers.c_key", by = "o_customer" }}
refresh = "static"
max_groups_per_unit = 1
rows_per_unit = 1
unique = ["o_key"]
columns.o_month.key = {{ range = [1, 3] }}
columns.o_price = {{ bounds = [0, 9], per_unit = [0, 9] }}
[tables.lines]
privacy_unit = {{ through = "orders.o_key", by = "l_order" }}
refresh = "static"
max_groups_per_unit = 1
rows_per_unit = 1
columns.l_mode.key = {{ values = ["air", "ship"] }}
"""
QUESTIONS = {
    "units of lines": "SELECT l_mode FROM lines GROUP BY l_mode HAVING count(DISTINCT household) > 400",
    "joined along keys": "SELECT o_month, region FROM lines JOIN orders ON l_order = o_key JOIN customers"
    " ON o_customer = c_key GROUP BY 1, 2 HAVING count(*) > 400 AND sum(o_price) > 400",
    "a list of units": "SELECT l_mode FROM lines WHERE household NOT IN (SELECT household FROM orders WHERE o_month = 2"
    ") GROUP BY l_mode HAVING count(*) > 400",
}


@contextmanager
def open_service(folder: Path, url: str) -> Iterator[Service]:
    """The policy over a shop."""
    policy = folder / f"{url.partition(':')[0]}.toml"
    policy.write_text(POLICY.format(url=url), encoding="utf-8")
    check(policy, confirm=True)
    with Service.open(policy) as service:
        yield service


def fill(execute: Callable[[str], object], *, odd: dict[str, str], rows: int) -> None:
    """Create the three tables again, in the place of those before."""
    for table, columns in (EVEN | odd).items():
        execute(f"DROP TABLE IF EXISTS {table}")
        execute(f"CREATE TABLE {table} ({TYPES[table]})")
        execute(f"INSERT INTO {table} SELECT {columns} FROM generate_series(1, {rows}) AS t(i)")


def measure(service: Service, *, repetitions: int) -> dict[str, float]:
    """Milliseconds at the source by question, the best of several."""
    plans = {name: plan_question(service, sql) for name, sql in QUESTIONS.items()}
    return {name: min(read_ms(service, made) for _ in range(repetitions)) for name, made in plans.items()}


def show(engine: str, found: dict[str, dict[str, float]]) -> None:
    """Print the even shop's times, and of each other the ratios to them."""
    print(f"{engine:30}" + "".join(f"{name:>20}" for name in QUESTIONS))
    even = found["even"]
    print(f"  {'even':28}" + "".join(f"{took:17.1f} ms" for took in even.values()))
    for name, took in found.items():
        if name != "even":
            print(f"  {name:28}" + "".join(f"{took[one] / even[one]:20.2f}" for one in QUESTIONS), flush=True)


def main(rows: int, repetitions: int) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)  # root's server runs as a user of its own
        found = {}
        for name, odd in SKEWED.items():
            with duckdb.connect(str(folder / "shop.duckdb")) as writer:
                fill(writer.execute, odd=odd, rows=rows)
            with open_service(folder, "duckdb:///shop.duckdb") as service:
                found[name] = measure(service, repetitions=repetitions)
        show("DuckDB", found)
        server = make_postgres_server(folder / "postgres", cleanup_mode="stop")
        server.start()
        found = {}
        for name, odd in SKEWED.items():
            with psycopg.connect(server.get_uri(), autocommit=True) as owner:
                fill(lambda sql: owner.execute(sql.encode()), odd=odd, rows=rows)
                owner.execute("VACUUM ANALYZE")
            with open_service(folder, server.get_uri()) as service:
                found[name] = measure(service, repetitions=repetitions)
        show("PostgreSQL", found)
        server.cleanup()


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*(given + [ROWS, REPETITIONS][len(given) :]))
