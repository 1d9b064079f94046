"""The benchmark's client, in a process of its own: it must not share an interpreter with the Keyhole it measures."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, TypeVar

import duckdb
import psycopg
from psycopg.pq.abc import PGconn

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
SENDING: dict[str, Callable[[PGconn], None]] = {
    "simple": lambda wire: wire.send_query(b"SELECT 1"),
    "extended": lambda wire: wire.send_query_params(b"SELECT $1::int", [b"1"]),
}
"""A simple query, and Parse, Bind, Describe, Execute and Sync together."""
_connections: dict[str, "psycopg.Connection[tuple[Any, ...]] | duckdb.DuckDBPyConnection"] = {}


class Client:
    """Runs statements in the other process, on connections that stay open."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def time_statement(self, url: str, sql: str, parameters: tuple[object, ...] | None = None) -> tuple[float, Rows]:
        """One statement: milliseconds from sending it to having all its rows, and the rows."""
        return self._call(_time_statement, url, sql, parameters)

    def round_trips(
        self, url: str, *, sending: str, number: int, connections: int, processes: tuple[int, ...] = ()
    ) -> tuple[float, tuple[float, ...]]:
        """A small statement on so many connections at once, `number` times in all.

        How many a second, and the seconds of processor time that each of `processes` had for them. `sending` is a key
        of `SENDING`.
        """
        return self._call(_round_trips, url, sending, number, connections, processes)

    def close_connections(self) -> None:
        """Close what is open."""
        self._call(_close)

    def _call(self, function: Callable[..., T], *arguments: object) -> T:
        return self._pool.submit(function, *arguments).result()


@contextmanager
def start_client() -> Iterator[Client]:
    """A client while the block runs."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        made = Client(pool)
        try:
            yield made
        finally:
            made.close_connections()


def _get_connection(url: str) -> "psycopg.Connection[tuple[Any, ...]] | duckdb.DuckDBPyConnection":
    if url not in _connections:
        if url.startswith("duckdb://"):
            _connections[url] = duckdb.connect(url.removeprefix("duckdb://"), read_only=True)
        else:
            _connections[url] = psycopg.connect(url, autocommit=True)
    return _connections[url]


def _time_statement(url: str, sql: str, parameters: tuple[object, ...] | None) -> tuple[float, Rows]:
    connection = _get_connection(url)
    started = time.perf_counter()
    if isinstance(connection, duckdb.DuckDBPyConnection):
        rows = connection.execute(sql).fetchall()
    else:
        cursor = connection.execute(sql.encode(), parameters)
        rows = cursor.fetchall() if cursor.description else []
    return 1000 * (time.perf_counter() - started), rows


def _round_trips(
    url: str, sending: str, number: int, connections: int, processes: tuple[int, ...]
) -> tuple[float, tuple[float, ...]]:
    send = SENDING[sending]
    opened = [psycopg.connect(url, autocommit=True) for _ in range(connections)]
    wires = [connection.pgconn for connection in opened]
    try:
        before, started = measure_processor_s(processes), time.perf_counter()
        for _ in range(number // connections):
            for wire in wires:
                send(wire)
            for wire in wires:
                while wire.get_result() is not None:
                    pass
        taken = time.perf_counter() - started
        used = tuple(now - then for now, then in zip(measure_processor_s(processes), before, strict=True))
        return number // connections * connections / taken, used
    finally:
        for connection in opened:
            connection.close()


def measure_processor_s(processes: tuple[int, ...]) -> tuple[float, ...]:
    """The processor time that each of them has used so far, all threads together, in seconds."""
    # the number that clock_getcpuclockid has for another process
    return tuple(time.clock_gettime(~process << 3 | 2) for process in processes)


def _close() -> None:
    while _connections:
        _connections.popitem()[1].close()
