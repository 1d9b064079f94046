"""The shop as parquet files, and its policy over them for either engine."""

from hashlib import sha256
from pathlib import Path

import duckdb

from proxy.cli.check import check
from tests.worlds import shop
from tests.worlds.house import VERIFIER

TOKEN = "t" * 43
TABLES = ("sales", "visits", "stores")


def write_files(folder: Path) -> Path:
    """A parquet file for each table of the shop; the folder."""
    with duckdb.connect() as connection:
        for statement in shop.STATEMENTS:
            connection.execute(statement)
        for table in TABLES:
            connection.execute(f"COPY {table} TO '{folder / table}.parquet'")
    return folder


def write_lake_policy(
    directory: Path, lake: Path, *, url: str, further: str = "", timeout_ms: int = 30_000, checked: bool = True
) -> Path:
    """The shop's policy over the files; on Sail where `url` is a server's. `further` are lines of `[source]`."""
    engine = 'engine = "sail"\nskip_blocks = true\n' if url.startswith("sc:") else ""
    text = shop.POLICY.format(
        source=url,
        ledger="sqlite:///keyhole.db",
        per_predicate=900.0,
        per_unit=900.0,
        per_query=100.0,
        bobs=1.0,
        timeout_ms=timeout_ms,
        ledger_timeout_ms=60_000,
        verifier=VERIFIER,
    )
    text = text.replace(f'url = "{url}"\n', f'url = "{url}"\n{engine}{further}')
    for table in TABLES:
        text = text.replace(f"[tables.{table}]\n", f'[tables.{table}]\nrelation = "{lake / table}.parquet"\n')
    token = sha256(TOKEN.encode()).hexdigest()
    text = text.replace("[analysts.ada]\n", f'[analysts.ada]\ntoken_sha256 = "{token}"\n')
    path = directory / "keyhole.toml"
    path.write_text(text, encoding="utf-8")
    if checked:
        check(path, confirm=False)
    return path
