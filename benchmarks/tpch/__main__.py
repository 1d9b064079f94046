"""`make bench-tpch`: TPC-H's queries as threshold questions about customers, asked plainly and through Keyhole."""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from benchmarks.tpch.asking import Asked, ask_all
from benchmarks.tpch.data import PlainDuckDB, PlainPostgres, load_duckdb, load_postgres, make_files
from benchmarks.tpch.page import show, write_csv
from proxy.shadow.wheel import make_postgres_server

_LIMIT_S = 60.0  # what takes longer is not waited for: both engines should end within ten minutes at scale 1


@contextmanager
def _start_postgres(folder: Path) -> Iterator[str]:
    server = make_postgres_server(folder / "server", cleanup_mode="stop")
    server.start()
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def _make_teller(console: Console) -> Callable[[str], None]:
    """Return a function that prints a line behind the seconds since now."""
    began = time.perf_counter()

    def tell(line: str) -> None:
        console.print(f"{time.perf_counter() - began:4.0f} s  {line}", style="dim", highlight=False)

    return tell


def main() -> None:
    """Generate, load, ask and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpch", description=__doc__)
    parser.add_argument("--generator", default=".venv-tpch/bin/python", help="the Python that generates the tables")
    parser.add_argument("--scale", type=float, default=1.0, help="6,000,000 lines at 1, the default")
    parser.add_argument(
        "--files", type=Path, default=Path(".keyhole/tpch"), help="where the tables are kept as parquet"
    )
    parser.add_argument("--engine", choices=("duckdb", "postgresql", "both"), default="both")
    parser.add_argument("--limit", type=float, default=_LIMIT_S, help="seconds that an engine may work on a question")
    parser.add_argument("--queries", type=int, nargs="+", default=[], help="ask these alone, of a new ledger")
    parser.add_argument("--csv", type=Path, help="where to write the numbers as well")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    tell = _make_teller(Console(stderr=True))
    tell(f"TPC-H's tables at scale {given.scale:g}")
    files = make_files(given.generator, scale=given.scale, folder=given.files)
    asked: list[Asked] = []
    with tempfile.TemporaryDirectory(prefix="keyhole-tpch-") as made:
        folder = Path(made)
        if os.geteuid() == 0:
            folder.chmod(0o711)  # the embedded server runs as another user
        if given.engine != "postgresql":
            on_duckdb = folder / "duckdb"
            on_duckdb.mkdir()
            tell("DuckDB: load")
            policy = load_duckdb(files, on_duckdb, limit_s=given.limit)
            plain = PlainDuckDB(on_duckdb / "tpch.duckdb", limit_s=given.limit)
            asked += ask_all("DuckDB", policy, plain, scale=given.scale, tell=tell, queries=given.queries)
        if given.engine != "duckdb":
            on_postgres = folder / "postgresql"
            on_postgres.mkdir()
            with _start_postgres(folder) as url:
                tell("PostgreSQL: load")
                policy = load_postgres(files, on_postgres, url, limit_s=given.limit)
                plain_postgres = PlainPostgres(url, limit_s=given.limit)
                asked += ask_all(
                    "PostgreSQL", policy, plain_postgres, scale=given.scale, tell=tell, queries=given.queries
                )
    if given.csv is not None:
        write_csv(asked, given.csv)
    if given.json:
        print(json.dumps([asdict(one) for one in asked], indent=2))
    else:
        show(asked, Console(width=170))


if __name__ == "__main__":
    main()
