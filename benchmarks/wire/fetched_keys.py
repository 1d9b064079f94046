"""What very many keys cost on the wire: `python -m benchmarks.wire.fetched_keys`.

The table of `benchmarks.many_keys`, served by `keyhole serve` in one process. One question is asked once, and then its
answer is fetched in each way that clients have: told from the ledger, so that neither the source's work nor noise is in
it. Processor seconds are those of Keyhole's process, beside those that DuckDB takes to write the same question's keys
as CSV; memory is the most that Keyhole's process and the session's process in the shadow held while it was told.
"""

import argparse
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import duckdb
import httpx
import psycopg

from benchmarks.many_keys import POLICY, QUESTION, lay_out, run_in_process
from benchmarks.served import Serving, run_keyhole
from benchmarks.workload import ANALYST, PASSWORD
from proxy.security.scram import make_verifier

_SERVED = """\
[server.limits]
session_memory_mb = {memory_mb}
[analysts.{analyst}]
password = "{verifier}"
token_sha256 = "{token}"
"""
_MEMORY_MB = 4096  # of the shadow's session: what it holds is measured, not refused
_TOLERANCE = "50%"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer fetched in one way: seconds on the clock and of Keyhole's processor, keys, bytes where they are
    counted, and the most bytes that Keyhole and the shadow's session held (None: there is no session)."""

    clock_s: float
    processor_s: float
    keys: int
    size: int | None
    own_bytes: int
    session_bytes: int | None


@dataclass(frozen=True, slots=True)
class Measured:
    """DuckDB's processor seconds for the same question into a CSV file, and the fetches by their names."""

    plain_s: float
    ways: Mapping[str, Fetched]


def measure(directory: Path, *, places: int, products: int, rows: int, more: int) -> Measured:
    """Lay out so many rows, ask for groups with more than `more` of them, and fetch the answer in each way."""
    text = QUESTION.format(keys="place, product", more=more)
    policy = POLICY.format(keys=places * products, places=places, products=products)
    served = _SERVED.format(
        memory_mb=_MEMORY_MB,
        analyst=ANALYST,
        verifier=make_verifier(PASSWORD),
        token=sha256(PASSWORD.encode()).hexdigest(),
    )
    path = directory / "keyhole.toml"
    path.write_text(policy + served, encoding="utf-8")
    run_in_process(lay_out, directory, places, products, rows)
    plain_s = run_in_process(_write_plainly, directory, text)
    with run_keyhole(path, workers=1) as serving:
        with psycopg.connect(serving.url, autocommit=True) as client:
            client.execute(f"SET keyhole.tolerance = '{_TOLERANCE}'".encode())
            client.execute(f"SELECT count(*) FROM ({text}) AS asked".encode())
        ways: dict[str, Callable[[], tuple[int, int | None, int | None]]] = {
            "COPY": partial(_copy, serving, text),
            "SELECT": partial(_select, serving, text),
            "REST, NDJSON": partial(_count_answer, serving, text, "application/x-ndjson"),
            "REST, CSV": partial(_count_answer, serving, text, "text/csv"),
        }
        return Measured(plain_s, {name: _watch(serving, way) for name, way in ways.items()})


def _write_plainly(directory: Path, text: str) -> float:
    with duckdb.connect(str(directory / "keys.duckdb"), read_only=True) as owner:
        owner.execute("SET enable_progress_bar = false")
        started = process_time()
        owner.execute(f"COPY ({text}) TO '{directory / 'plain.csv'}' (FORMAT csv)")
        return process_time() - started


def _watch(serving: Serving, fetch: Callable[[], tuple[int, int | None, int | None]]) -> Fetched:
    for process in serving.processes:
        with suppress(OSError):  # a kernel that does not forget the most: then it is that of all fetches before
            Path(f"/proc/{process}/clear_refs").write_text("5", encoding="ascii")
    used, started = _measure_used_s(serving), perf_counter()
    keys, size, session_bytes = fetch()
    return Fetched(
        clock_s=perf_counter() - started,
        processor_s=_measure_used_s(serving) - used,
        keys=keys,
        size=size,
        own_bytes=sum(map(_read_most_bytes, serving.processes)),
        session_bytes=session_bytes,
    )


def _copy(serving: Serving, text: str) -> tuple[int, int, int]:
    with psycopg.connect(serving.url, autocommit=True) as client, client.cursor() as cursor:
        session = _open_session(client)
        keys = size = 0
        with cursor.copy(f"COPY ({text}) TO STDOUT".encode()) as copied:
            for piece in copied:
                size += len(piece)
                keys += bytes(piece).count(b"\n")
        return keys, size, _read_most_bytes(session)


def _select(serving: Serving, text: str) -> tuple[int, None, int]:
    with psycopg.connect(serving.url, autocommit=True) as client:
        session = _open_session(client)
        keys = client.execute(text.encode()).rowcount
        return keys, None, _read_most_bytes(session)


def _open_session(client: psycopg.Connection) -> int:
    """The process in the shadow that serves this connection."""
    client.execute(f"SET keyhole.tolerance = '{_TOLERANCE}'".encode())
    found = client.execute("SELECT pg_backend_pid()").fetchone()
    assert found is not None
    return int(found[0])


def _count_answer(serving: Serving, text: str, kind: str) -> tuple[int, int, None]:
    headers = {"Authorization": f"Bearer {PASSWORD}", "Accept": kind}
    asked = {"sql": text, "tolerance": _TOLERANCE}
    size = lines = 0
    with (
        httpx.Client(trust_env=False, timeout=None) as client,
        client.stream("POST", f"{serving.rest}/v1/question", json=asked, headers=headers) as answer,
    ):
        answer.raise_for_status()
        for piece in answer.iter_bytes():
            size += len(piece)
            lines += piece.count(b"\n")
    return lines - 1, size, None  # the first is no key


def _measure_used_s(serving: Serving) -> float:
    ticks = 0
    for process in serving.processes:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS


def _read_most_bytes(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--places", type=int, default=10_000, help="values of the first key")
    parser.add_argument("--products", type=int, default=1_000, help="values of the second key")
    parser.add_argument("--rows", type=int, default=2, help="rows a key")
    parser.add_argument("--more", type=int, default=2, help="of how many rows groups are wanted")
    given = parser.parse_args()
    keys = given.places * given.products
    with TemporaryDirectory() as directory:
        found = measure(
            Path(directory), places=given.places, products=given.products, rows=given.rows * keys, more=given.more
        )
    print(f"DuckDB writes the same question's keys as CSV in {found.plain_s:.1f} processor seconds")
    for name, one in found.ways.items():
        size = "" if one.size is None else f", {one.size / 1e6:.0f} MB"
        session = "" if one.session_bytes is None else f", the session {one.session_bytes / 1e9:.2f} GB"
        beside = f"{one.processor_s / max(found.plain_s, 0.01):4.1f} x DuckDB"
        print(
            f"{name:12}  {one.keys:,} keys{size}: {one.clock_s:5.1f} s, processor {one.processor_s:5.1f} s, {beside}; "
            f"Keyhole held {one.own_bytes / 1e9:.2f} GB{session}"
        )


if __name__ == "__main__":
    main()
