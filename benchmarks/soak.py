"""Does Keyhole stay as it is? `python -m benchmarks.soak --seconds 600`: mixed statements on many connections.

Clients in a process of their own send what clients send: small statements, reads of public data, parameters, errors,
transactions, cursors, cancelled statements, new connections, and questions, of which some are new, some were answered
before and some are refused. Meanwhile memory and file descriptors of Keyhole's processes are read. Afterwards the
ledger is verified, and balances are folded anew from its events.
"""

import argparse
import json
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psycopg
from rich.console import Console
from rich.table import Table

from benchmarks.served import measure_memory, run_keyhole
from benchmarks.workload import write_duckdb_policy
from proxy.cli import check as checking
from proxy.open_policy.service import Service
from proxy.report.budget import make_document

SECONDS, CONNECTIONS, ROWS, SAMPLE_S = 600.0, 50, 20_000, 2.0
WARM_S = 2.0  # of clients before anything is counted: each of a few workers answers some
MOST_GROWTH = 0.05  # of resident memory over the second half of the run, by the fitted line
COUNTS, SUMS = range(20, 50), range(110, 140)  # thresholds of 900 different questions
_QUESTION = "SELECT shop, day FROM lines GROUP BY shop, day HAVING count(*) > {} OR sum(quantity) > {}"
_REFUSED = "SELECT shop, avg(quantity) FROM lines GROUP BY shop"
Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Sample:
    """Keyhole's processes at one moment: seconds since the start, resident and proportional bytes, descriptors."""

    at_s: float
    rss: int
    pss: int
    descriptors: int


@dataclass(frozen=True, slots=True)
class Soaked:
    """One run. `slope` is bytes a second of the line fitted to resident memory over its second half."""

    workers: int
    connections: int
    seconds: float
    statements: dict[str, int]
    samples: tuple[Sample, ...]
    slope: float
    descriptors_before: int
    descriptors_after: int
    events: int
    balances_exact: bool

    @property
    def growth(self) -> float:
        """What the line grows over the second half, as a part of resident memory then."""
        half = self.samples[len(self.samples) // 2 :]
        return self.slope * (half[-1].at_s - half[0].at_s) / half[0].rss

    @property
    def is_flat(self) -> bool:
        """Whether memory stayed below the bar, and no descriptor is left over."""
        return self.growth <= MOST_GROWTH and self.descriptors_after <= self.descriptors_before

    def make_document(self) -> dict[str, Any]:
        """The run for a program."""
        return {**asdict(self), "growth": self.growth, "flat": self.is_flat}


def run_soak(directory: Path, *, seconds: float, connections: int, workers: int) -> Soaked:
    """One run over a policy made in `directory`. Raises RuntimeError when Keyhole dies or does not end."""
    policy, _ = write_duckdb_policy(directory, rows=ROWS)
    checking.check(policy, confirm=False)
    with run_keyhole(policy, workers=workers) as serving:
        url, processes = serving.url, serving.processes
        _run_clients(url, WARM_S, connections)  # what every worker opens once is open from here on
        before = _count_settled(processes)
        samples: list[Sample] = []
        over = threading.Event()
        watching = threading.Thread(target=_watch, args=(processes, samples, over))
        watching.start()
        try:
            counted = _run_clients(url, seconds, connections)
        finally:
            over.set()
            watching.join()
        after = _count_settled(processes, most=before)
    with Service.open(policy) as service:
        events = service.ledger.verify_everything()
        seen = make_document(service, None)
    with Service.open(policy) as service:
        exact = make_document(service, None) == seen and service.ledger.verify_everything() == events
    return Soaked(
        workers=workers,
        connections=connections,
        seconds=seconds,
        statements=dict(sorted(counted.items())),
        samples=tuple(samples),
        slope=_compute_slope(samples[len(samples) // 2 :]),
        descriptors_before=before,
        descriptors_after=after,
        events=events,
        balances_exact=exact,
    )


def _run_clients(url: str, seconds: float, connections: int) -> Counter[str]:
    """What clients in a process of their own did in so many seconds, by kind."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_run_all_clients, url, seconds, connections).result()


def _count_descriptors(processes: tuple[int, ...]) -> int:
    return sum(len(list(Path(f"/proc/{process}/fd").iterdir())) for process in processes)


def _count_settled(processes: tuple[int, ...], *, most: int | None = None) -> int:
    """Open descriptors once they are `most` at most, or do not change any more."""
    found, same = _count_descriptors(processes), 0
    while same < 20 and (most is None or found > most):
        time.sleep(0.1)
        now = _count_descriptors(processes)
        found, same = now, same + 1 if now == found else 0
    return found


def _watch(processes: tuple[int, ...], samples: list[Sample], over: threading.Event) -> None:
    started = time.monotonic()
    while True:
        samples.append(_sample(processes, time.monotonic() - started))
        if over.wait(SAMPLE_S):
            return


def _sample(processes: tuple[int, ...], at_s: float) -> Sample:
    used = measure_memory(processes)
    return Sample(at_s, used["Rss"], used["Pss"], _count_descriptors(processes))


def _compute_slope(samples: list[Sample]) -> float:
    """Least squares, bytes a second."""
    if len(samples) < 2:
        return 0.0
    mean_at = sum(one.at_s for one in samples) / len(samples)
    mean_rss = sum(one.rss for one in samples) / len(samples)
    spread = sum((one.at_s - mean_at) ** 2 for one in samples)
    return sum((one.at_s - mean_at) * (one.rss - mean_rss) for one in samples) / spread


# --- the clients, in a process of their own


def _run_all_clients(url: str, seconds: float, connections: int) -> Counter[str]:
    """Every connection has a thread; what each did, by kind."""
    deadline = time.monotonic() + seconds
    counts = [Counter[str]() for _ in range(connections)]
    faults: list[BaseException] = []

    def one(number: int) -> None:
        try:
            _run_client(url, deadline, random.Random(number), counts[number])
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise RuntimeError(f"{len(faults)} clients failed, the first with {faults[0]!r}")
    return sum(counts, Counter())


def _run_client(url: str, deadline: float, chance: random.Random, counted: Counter[str]) -> None:
    """Every kind once, however long that takes, and then what chance says until the time is over."""
    kinds, weights = zip(*_KINDS.items(), strict=True)
    first = list(kinds)
    while first or time.monotonic() < deadline:
        with psycopg.connect(url, autocommit=True) as connection:
            counted["connection"] += 1
            for kind in (*first, *chance.choices(kinds, weights, k=chance.randrange(20, 200))):
                if not first and time.monotonic() >= deadline:
                    return
                first = first[1:]
                counted[kind.__name__.strip("_")] += kind(connection, chance)


def _select(connection: Connection, chance: random.Random) -> int:
    wires = connection.pgconn
    number = chance.randrange(20, 60)
    for _ in range(number):
        wires.send_query(b"SELECT 1")
        while wires.get_result() is not None:
            pass
    return number


def _read_catalog(connection: Connection, _: random.Random) -> int:
    connection.execute("SELECT relname, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace").fetchall()
    return 1


def _pass_parameters(connection: Connection, chance: random.Random) -> int:
    value = chance.randrange(1000)
    found = connection.execute("SELECT %s::integer + 1, %s::text", (value, "x" * value)).fetchone()
    if found is None or found[0] != value + 1:
        raise RuntimeError("a wrong answer")
    return 1


def _make_error(connection: Connection, chance: random.Random) -> int:
    wrong = ("SELECT 1 / 0", "SELEC 1", "SELECT nothing", "CREATE TABLE t (a int)", "SELECT * FROM lines")
    with suppress(psycopg.Error):
        connection.execute(chance.choice(wrong).encode())
    return 1


def _run_transaction(connection: Connection, chance: random.Random) -> int:
    with suppress(psycopg.errors.DivisionByZero), connection.transaction():
        connection.execute("SET LOCAL keyhole.fnr = 0.04")
        connection.execute(b"SELECT 1 / %d" % chance.randrange(2))
    return 4


def _read_cursor(connection: Connection, _: random.Random) -> int:
    with connection.transaction(), connection.cursor(name="c") as cursor:
        cursor.itersize = 100
        cursor.execute("SELECT generate_series(1, 500)")
        if len(cursor.fetchall()) != 500:
            raise RuntimeError("rows are missing")
    return 4


def _cancel(connection: Connection, _: random.Random) -> int:
    with connection.cursor() as cursor, suppress(psycopg.errors.QueryCanceled):
        rows = cursor.stream("SELECT generate_series(1, 1000000000)")
        next(rows)
        connection.cancel_safe()
        for _row in rows:
            pass
    return 1


def _ask(connection: Connection, chance: random.Random) -> int:
    """Of so few different ones that many were answered before, once the run is on its way."""
    with suppress(psycopg.errors.DatabaseError):  # the budget may be used up
        connection.execute(_QUESTION.format(chance.choice(COUNTS), chance.choice(SUMS)).encode()).fetchall()
    return 1


def _ask_refused(connection: Connection, _: random.Random) -> int:
    with suppress(psycopg.errors.DatabaseError):
        connection.execute(_REFUSED.encode())
    return 1


_KINDS: dict[Callable[[Connection, random.Random], int], float] = {
    _select: 100,
    _read_catalog: 20,
    _pass_parameters: 40,
    _make_error: 20,
    _run_transaction: 20,
    _read_cursor: 10,
    _cancel: 0.5,
    _ask: 4,
    _ask_refused: 4,
}


def show(run: Soaked, console: Console) -> None:
    """Print the run."""
    done = Table("what", title=f"{run.seconds:.0f} s on {run.connections} connections, {run.workers} worker(s)")
    done.add_column("statements", justify="right")
    for kind, number in run.statements.items():
        done.add_row(kind.replace("_", " "), f"{number:,}")
    done.add_row("together", f"{sum(run.statements.values()):,}")
    console.print(done)
    first, last = run.samples[len(run.samples) // 2], run.samples[-1]
    told = Table("measure", title="Keyhole's processes")
    told.add_column("found", justify="right")
    told.add_column("bar", justify="right")
    told.add_row("resident at half time, at the end", f"{first.rss / 2**20:.1f} MB, {last.rss / 2**20:.1f} MB", "")
    told.add_row("proportional at the end", f"{last.pss / 2**20:.1f} MB", "")
    told.add_row("slope over the second half", f"{run.slope / 1024:+.2f} kB/s", "")
    told.add_row("growth over the second half", f"{100 * run.growth:+.1f} %", f"<= {100 * MOST_GROWTH:.0f} %")
    told.add_row("descriptors", f"{run.descriptors_after}", f"<= {run.descriptors_before}")
    told.add_row("ledger verified, events", f"{run.events:,}", "")
    told.add_row("balances as folded anew", "yes" if run.balances_exact else "NO", "yes")
    console.print(told)


def main() -> None:
    """Run, print, and end with 1 if something grew."""
    parser = argparse.ArgumentParser(prog="benchmarks.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="how many at once")
    parser.add_argument("--workers", type=int, default=1, help="Keyhole's processes")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="keyhole-soak-") as folder:
        run = run_soak(Path(folder), seconds=given.seconds, connections=given.connections, workers=given.workers)
    if given.json:
        print(json.dumps(run.make_document(), indent=2))
    else:
        show(run, Console(width=120))
    raise SystemExit(0 if run.is_flat and run.balances_exact else 1)


if __name__ == "__main__":
    main()
