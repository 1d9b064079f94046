"""The benchmark's client, in a process of its own: it must not share an interpreter with the Keyhole it measures."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, TypeVar

import duckdb
import psycopg

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
_connections: dict[str, "psycopg.Connection[tuple[Any, ...]] | duckdb.DuckDBPyConnection"] = {}


class Client:
    """Runs statements in the other process, on connections that stay open."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def timed(self, url: str, sql: str, parameters: tuple[object, ...] | None = None) -> tuple[float, Rows]:
        """One statement: milliseconds from sending it to having all its rows, and the rows."""
        return self._call(_timed, url, sql, parameters)

    def round_trips(self, url: str, *, number: int, connections: int) -> float:
        """`SELECT 1` on so many connections at once, `number` times in all: how many a second."""
        return self._call(_round_trips, url, number, connections)

    def close_connections(self) -> None:
        """Close what is open."""
        self._call(_close)

    def _call(self, function: Callable[..., T], *arguments: object) -> T:
        return self._pool.submit(function, *arguments).result()


@contextmanager
def client() -> Iterator[Client]:
    """A client while the block runs."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        made = Client(pool)
        try:
            yield made
        finally:
            made.close_connections()


def _connection(url: str) -> "psycopg.Connection[tuple[Any, ...]] | duckdb.DuckDBPyConnection":
    if url not in _connections:
        if url.startswith("duckdb://"):
            _connections[url] = duckdb.connect(url.removeprefix("duckdb://"), read_only=True)
        else:
            _connections[url] = psycopg.connect(url, autocommit=True)
    return _connections[url]


def _timed(url: str, sql: str, parameters: tuple[object, ...] | None) -> tuple[float, Rows]:
    connection = _connection(url)
    started = time.perf_counter()
    if isinstance(connection, duckdb.DuckDBPyConnection):
        rows = connection.execute(sql).fetchall()
    else:
        cursor = connection.execute(sql.encode(), parameters)
        rows = cursor.fetchall() if cursor.description else []
    return 1000 * (time.perf_counter() - started), rows


def _round_trips(url: str, number: int, connections: int) -> float:
    opened = [psycopg.connect(url, autocommit=True) for _ in range(connections)]
    wires = [connection.pgconn for connection in opened]
    try:
        started = time.perf_counter()
        for _ in range(number // connections):
            for wire in wires:
                wire.send_query(b"SELECT 1")
            for wire in wires:
                while wire.get_result() is not None:
                    pass
        return number // connections * connections / (time.perf_counter() - started)
    finally:
        for connection in opened:
            connection.close()


def _close() -> None:
    while _connections:
        _connections.popitem()[1].close()
