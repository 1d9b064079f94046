"""TPC-H's tables in a DuckDB file and in a PostgreSQL, with the policy over them."""

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import duckdb
import psycopg

from benchmarks.tpch.processor import find_server

HERE = Path(__file__).parent
_KEYS = {
    "customer": ("c_custkey",),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
    "nation": ("n_nationkey",),
    "region": ("r_regionkey",),
    "supplier": ("s_suppkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
}


class Plain(Protocol):
    """An engine that answers the query itself."""

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """Return all rows. Raises TimeoutError after the limit."""

    def list_servers(self) -> tuple[int, ...]:
        """Return the first processes of the servers that compute it, which are not this process."""


def make_files(generator: str, *, scale: float, folder: Path) -> Path:
    """Return the folder with the tables at a scale as parquet files, made by another Python if they are not there.

    Parameters:
        generator: the Python of an environment with `requirements.txt`.
    """
    made = folder / f"scale-{scale:g}"
    if not (made / "lineitem.parquet").exists():
        subprocess.run([generator, str(HERE / "generate.py"), str(scale), str(made)], check=True)
    return made


def write_policy(folder: Path, url: str, *, limit_s: float) -> Path:
    """Write the policy for a source that may work on a question so long, and return its path."""
    path = folder / "keyhole.toml"
    text = (HERE / "keyhole.toml").read_text(encoding="utf-8")
    for template, written in (
        ("duckdb:///tpch.duckdb", url),
        ("statement_timeout_ms = 60000", f"statement_timeout_ms = {1000 * limit_s:.0f}"),
    ):
        assert template in text
        text = text.replace(template, written)
    path.write_text(text, encoding="utf-8")
    return path


def load_duckdb(files: Path, folder: Path, *, limit_s: float) -> Path:
    """Load the tables into a DuckDB file, and return the policy over it."""
    with duckdb.connect(str(folder / "tpch.duckdb")) as connection:
        for table in _KEYS:
            connection.execute(f"CREATE TABLE {table} AS FROM '{files / table}.parquet'")
    return write_policy(folder, "duckdb:///tpch.duckdb", limit_s=limit_s)


def load_postgres(files: Path, folder: Path, url: str, *, limit_s: float) -> Path:
    """Load the tables into the PostgreSQL at `url`, with primary keys, and return the policy over it."""
    with duckdb.connect() as reading, psycopg.connect(url, autocommit=True) as connection:
        for table, key in _KEYS.items():
            described = reading.execute(f"DESCRIBE FROM '{files / table}.parquet'").fetchall()
            columns = ", ".join(f"{name} {_write_postgres_type(kind)} NOT NULL" for name, kind, *_ in described)
            connection.execute(f"CREATE TABLE {table} ({columns})".encode())
            for part in _write_csv(reading, f"FROM '{files / table}.parquet'", folder / "part.csv"):
                with (
                    part.open("rb") as file,
                    connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT csv)".encode()) as copy,
                ):
                    while chunk := file.read(1 << 20):
                        copy.write(chunk)
            connection.execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({', '.join(key)})".encode())
            connection.execute(f"VACUUM (ANALYZE, FREEZE) {table}".encode())
    return write_policy(folder, url, limit_s=limit_s)


def _write_postgres_type(kind: str) -> str:
    return {"VARCHAR": "text"}.get(kind, kind.replace("DECIMAL", "numeric"))


def _write_csv(reading: duckdb.DuckDBPyConnection, source: str, path: Path) -> Iterator[Path]:
    reading.execute(f"COPY ({source}) TO '{path}' (FORMAT csv, HEADER false)")
    yield path
    path.unlink()


class PlainDuckDB:
    """The DuckDB file, asked directly. It stays open, and with it what was read: Keyhole's stays, too."""

    def __init__(self, path: Path, *, limit_s: float) -> None:
        self._path, self._limit_s = path, limit_s
        self._opened: duckdb.DuckDBPyConnection | None = None

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """Return all rows. Raises TimeoutError after the limit."""
        if self._opened is None:
            self._opened = duckdb.connect(str(self._path), read_only=True)
        timer = threading.Timer(self._limit_s, self._opened.interrupt)
        timer.start()
        try:
            return self._opened.execute(sql).fetchall()
        except duckdb.InterruptException as error:
            raise TimeoutError from error
        finally:
            timer.cancel()

    def list_servers(self) -> tuple[int, ...]:
        """Return none: DuckDB computes in this process."""
        return ()


class PlainPostgres:
    """The PostgreSQL, asked directly."""

    def __init__(self, url: str, *, limit_s: float) -> None:
        self._url, self._limit_s = url, limit_s

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """Return all rows. Raises TimeoutError after the limit."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(f"SET statement_timeout = {1000 * self._limit_s:.0f}".encode())
            try:
                return connection.execute(sql.encode()).fetchall()
            except psycopg.errors.QueryCanceled as error:
                raise TimeoutError from error

    def list_servers(self) -> tuple[int, ...]:
        """Return the server's first process."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            return (find_server(connection),)
