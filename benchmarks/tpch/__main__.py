"""`make bench-tpch`: TPC-H's queries as threshold questions about customers, asked plainly and through Keyhole.

Each question is asked once over the PostgreSQL endpoint, of a new ledger, at the policy's accuracy. "Right" are rows
that qualify when thresholds are a tolerance lower, in the data *before* bounding.
"""

import argparse
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from rich.console import Console
from rich.table import Table

from benchmarks.tpch.data import Plain, PlainDuckDB, PlainPostgres, load_duckdb, load_postgres, make_files
from benchmarks.tpch.statements import Statement, read_statements
from proxy.cli.check import check
from proxy.process.serve import in_background
from proxy.service.service import Service
from proxy.shadow.wheel import postgres_server

SLACK = 0.1  # the policy's tolerance
_COST = re.compile(r"cost: at most ([0-9.]+) epsilon(?:.*?, ([0-9.]+) for one)?")
_PRICE = re.compile(r"costs ([0-9.]+) epsilon")
_PLANNED = ("KH3",)  # refused for its accuracy or price, once it was planned


@dataclass(frozen=True, slots=True)
class Asked:
    """One question on one engine. `outcome` is "planned", "public", or the refusal.

    `group_epsilon` and `unit_epsilon` are the most that it can cost a group, and all of a customer. `true` rows qualify
    in the data, `returned` were answered, `found` are both, and `right` qualify with the slack. Times are in seconds.
    """

    engine: str
    query: str
    outcome: str
    group_epsilon: float | None = None
    unit_epsilon: float | None = None
    true: int | None = None
    returned: int | None = None
    found: int | None = None
    right: int | None = None
    plain_s: float | None = None
    keyhole_s: float | None = None


def ask_all(engine: str, policy: Path, plain: Plain, *, scale: float, console: Console) -> Iterator[Asked]:
    """Ask every statement of an engine."""
    check(policy, confirm=False)
    with (
        Service.open(policy) as service,
        in_background(service, host="127.0.0.1", port=0, rest_port=0) as addresses,
        psycopg.connect(
            f"host={addresses.host} port={addresses.port} dbname={addresses.database} user=demo password=demo",
            autocommit=True,
        ) as connection,
    ):
        notices: list[str] = []
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        for statement in read_statements():
            notices.clear()
            asked = _ask(engine, statement, connection, plain, notices, scale=scale)
            console.print(f"{engine} Q{asked.query}: {asked.outcome}", style="dim", highlight=False)
            yield asked


def _ask(
    engine: str,
    statement: Statement,
    connection: "psycopg.Connection[tuple[Any, ...]]",
    plain: Plain,
    notices: list[str],
    *,
    scale: float,
) -> Asked:
    query = f"{statement.number}{' instead' if statement.instead else ''}"
    sql, began = statement.sql(scale), time.perf_counter()
    try:
        rows = connection.execute(sql.encode()).fetchall()
    except psycopg.Error as refusal:
        message = refusal.diag.message_primary or str(refusal)
        if not message.startswith(_PLANNED):
            return Asked(engine, query, message)
        price = _PRICE.search(message)
        return Asked(engine, query, f"planned; {message}", None if price is None else float(price[1]))
    took = time.perf_counter() - began
    began = time.perf_counter()
    true = plain.fetch(sql)
    plain_s = time.perf_counter() - began
    cost = next((found for text in notices if (found := _COST.search(text)) is not None), None)
    shown = [place for place, column in enumerate(zip(*rows, strict=True)) if set(column) != {None}]
    known, relaxed, returned = (
        {tuple(str(row[place]) for place in shown) for row in found}
        for found in (true, plain.fetch(statement.sql(scale, slack=SLACK)) if statement.private else true, rows)
    )
    return Asked(
        engine,
        query,
        "planned" if statement.private else "public",
        None if cost is None else float(cost[1]),
        None if cost is None else float(cost[2] or cost[1]),
        len(true),
        len(rows),
        len(known & returned) if rows else 0,
        len(relaxed & returned) if rows else 0,
        plain_s,
        took,
    )


@contextmanager
def _postgres(folder: Path) -> Iterator[str]:
    server = postgres_server(folder / "server", cleanup_mode="stop")
    server.start()
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def show(asked: list[Asked], console: Console) -> None:
    """Print the table, and how many of the queries that read private tables plan."""
    grid = Table("engine", "query", "outcome", title="TPC-H's queries as questions about customers")
    for heading in (
        "epsilon, group",
        "epsilon, customer",
        "true",
        "returned",
        "found",
        "right",
        "plain s",
        "Keyhole s",
    ):
        grid.add_column(heading, justify="right")
    for one in asked:
        numbers = [one.group_epsilon, one.unit_epsilon, one.true, one.returned, one.found, one.right]
        shown = ["" if number is None else f"{number:.2g}" for number in numbers[:2]]
        shown += ["" if number is None else f"{number:,}" for number in numbers[2:]]
        shown += ["" if number is None else f"{number:.2f}" for number in (one.plain_s, one.keyhole_s)]
        grid.add_row(one.engine, one.query, one.outcome[:70], *shown)
    console.print(grid)
    private = {statement.number for statement in read_statements() if statement.private} - {20}
    planned = {int(one.query.split()[0]) for one in asked if one.outcome.startswith("planned")} & private
    console.print(f"{len(planned)} of {len(private)} queries that read private tables plan.")


def main() -> None:
    """Generate, load, ask and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpch", description=__doc__)
    parser.add_argument("--generator", default=".venv-tpch/bin/python", help="the Python that generates the tables")
    parser.add_argument("--scale", type=float, default=1.0, help="6,000,000 lines at 1, the default")
    parser.add_argument(
        "--files", type=Path, default=Path(".keyhole/tpch"), help="where the tables are kept as parquet"
    )
    parser.add_argument("--engine", choices=("duckdb", "postgresql", "both"), default="both")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    notes = Console(stderr=True)
    files = make_files(given.generator, scale=given.scale, folder=given.files)
    asked: list[Asked] = []
    with tempfile.TemporaryDirectory(prefix="keyhole-tpch-") as made:
        folder = Path(made)
        if os.geteuid() == 0:
            folder.chmod(0o711)  # the embedded server runs as another user
        if given.engine != "postgresql":
            on_duckdb = folder / "duckdb"
            on_duckdb.mkdir()
            policy = load_duckdb(files, on_duckdb)
            plain = PlainDuckDB(on_duckdb / "tpch.duckdb")
            asked += ask_all("DuckDB", policy, plain, scale=given.scale, console=notes)
        if given.engine != "duckdb":
            on_postgres = folder / "postgresql"
            on_postgres.mkdir()
            with _postgres(folder) as url:
                policy = load_postgres(files, on_postgres, url)
                asked += ask_all("PostgreSQL", policy, PlainPostgres(url), scale=given.scale, console=notes)
    if given.json:
        print(json.dumps([asdict(one) for one in asked], indent=2))
    else:
        show(asked, Console())


if __name__ == "__main__":
    main()
