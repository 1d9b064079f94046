"""What a question costs beyond the plain SQL: `make bench`, or `python -m benchmarks.endpoint [--json]`.

The same question goes, in turn, to the engine directly and through Keyhole's endpoint, each time with thresholds that
were never asked before. One client process sends both, on connections that stay open. docs/benchmarks.md explains.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.client import SENDING, Client, start_client
from benchmarks.served import measure_memory, run_keyhole
from benchmarks.stopwatch import SOURCE, STAGES, Stopwatch
from benchmarks.workload import (
    ANALYST,
    NUMBER,
    PASSWORD,
    SCORECARD,
    SHARE,
    TREND,
    Workload,
    make_comparison_workloads,
    make_row_workloads,
    make_scorecard_workloads,
    make_unit_workload,
    write_demo_policy,
    write_duckdb_policy,
    write_postgres_policy,
)
from proxy.cli import check as checking
from proxy.open_policy.service import Service
from proxy.process.serve import serve_in_background
from proxy.shadow.address import OWNER
from proxy.shadow.embedded import EmbeddedShadow
from proxy.shadow.wheel import make_postgres_server

ROWS, REPETITIONS, WARM_UP, ROUND_TRIPS = 1_000_000, 15, 2, 8_000
POSTGRES_RATIO, SCORECARD_RATIO, DUCKDB_EXTRA_MS = 1.5, 1.3, 40.0
COMPARISON_RATIO = 1.1  # of Keyhole's time for a share or a trend to its time for the same sum and a number
WORKERS, SESSIONS = (1, 2), 200
LATER_RATIO, LATER_EXTRA_MS = 1.25, 25.0


@dataclass(frozen=True, slots=True)
class Measured:
    """One workload on one engine: medians in milliseconds."""

    engine: str
    workload: str
    rows: int
    keys_returned: int
    plain_ms: float
    keyhole_ms: float
    stages_ms: dict[str, float]

    @property
    def ratio(self) -> float:
        """Keyhole's time over the engine's."""
        return self.keyhole_ms / self.plain_ms

    @property
    def extra_ms(self) -> float:
        """What Keyhole adds."""
        return self.keyhole_ms - self.plain_ms

    @property
    def own_ms(self) -> float:
        """What of Keyhole's time is not the source's."""
        return self.keyhole_ms - self.stages_ms[SOURCE]

    def make_document(self) -> dict[str, Any]:
        """The measurement for a program."""
        return {**asdict(self), "ratio": self.ratio, "extra_ms": self.extra_ms, "own_ms": self.own_ms}


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """Small statements a second that are no questions, through so many processes and on a shadow directly.

    `processor_us` is what one costs Keyhole's processes together, `busiest` the part of it that the busiest one has.
    """

    sending: str
    workers: int
    connections: int
    keyhole_per_s: float
    shadow_per_s: float
    processor_us: float
    busiest: float

    @property
    def enough_cores_per_s(self) -> float:
        """How many the busiest process would let through a second if it, client and shadow never shared a core."""
        return 1e6 / (self.processor_us * self.busiest)

    def make_document(self) -> dict[str, Any]:
        """The measurement for a program."""
        return {**asdict(self), "enough_cores_per_s": self.enough_cores_per_s}


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of Keyhole's processes, without PostgreSQL's, while so many sessions are open that have run something."""

    workers: int
    sessions: int
    rss: int
    pss: int
    uss: int


@dataclass(frozen=True, slots=True)
class Report:
    """One run of the benchmark."""

    cores: int
    repetitions: int
    measured: tuple[Measured, ...]
    round_trips: tuple[RoundTrips, ...]
    memory: tuple[Memory, ...]

    def find_ratio_to_number(self, each: Measured) -> float:
        """Return Keyhole's time for a question as a multiple of its time for one with a number, on the same engine."""
        (number,) = (one for one in self.measured if (one.engine, one.workload) == (each.engine, NUMBER))
        return each.keyhole_ms / number.keyhole_ms

    def make_document(self) -> dict[str, Any]:
        """The report for a program."""
        return {
            "cores": self.cores,
            "repetitions": self.repetitions,
            "bars": {
                "postgresql_ratio": POSTGRES_RATIO,
                "scorecard_ratio": SCORECARD_RATIO,
                "duckdb_extra_ms": DUCKDB_EXTRA_MS,
                "comparison_ratio": COMPARISON_RATIO,
            },
            "measured": [each.make_document() for each in self.measured],
            "round_trips": [each.make_document() for each in self.round_trips],
            "memory": [asdict(each) for each in self.memory],
        }


def measure(*, rows: int, repetitions: int, round_trips: int, progress: Progress, sessions: int = SESSIONS) -> Report:
    """Everything in one run: PostgreSQL, DuckDB, the demo's policy, then statements that are no questions."""
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="keyhole-bench-") as folder, start_client() as asker:
        directory = Path(folder)
        if os.geteuid() == 0:
            directory.chmod(0o711)  # the embedded server runs as another user
        bench = _Bench(asker, progress, repetitions=repetitions, sessions=sessions)
        with _start_postgres(directory) as url:
            policy = write_postgres_policy(_make_directory(directory / "on-postgres"), url, rows=rows)
            asked = (
                *make_row_workloads(rows),
                *make_scorecard_workloads(rows),
                *make_comparison_workloads(rows),
            )
            measured += bench.measure_questions("PostgreSQL", policy, url, asked, rows=rows)
        lines, url = write_duckdb_policy(_make_directory(directory / "on-duckdb"), rows=rows)
        asked = (*make_row_workloads(rows)[:2], *make_scorecard_workloads(rows), *make_comparison_workloads(rows))
        measured += bench.measure_questions("DuckDB", lines, url, asked, rows=rows)
        policy, url = write_demo_policy(_make_directory(directory / "demo"))
        measured += bench.measure_questions("DuckDB", policy, url, (make_unit_workload(),), rows=541_909)
        trips, used = bench.pass_through(lines, number=round_trips)
    return Report(os.cpu_count() or 1, repetitions, tuple(measured), trips, used)


class _Bench:
    """Asks one client's questions, plain and through Keyhole in turn."""

    def __init__(self, asker: Client, progress: Progress, *, repetitions: int, sessions: int) -> None:
        self._client = asker
        self._progress = progress
        self._repetitions = repetitions
        self._sessions = sessions

    def measure_questions(
        self, engine: str, policy: Path, url: str, workloads: tuple[Workload, ...], *, rows: int
    ) -> Iterator[Measured]:
        """Each workload on an engine whose plain SQL goes to `url`."""
        checking.check(policy, confirm=False)
        with Service.open(policy) as service, Stopwatch().install(service) as watch, _serve(service) as endpoint:
            yield from self._measure_in_turn(engine, url, endpoint, workloads, watch, rows=rows)
            self._client.close_connections()

    def _measure_in_turn(
        self, engine: str, url: str, endpoint: str, workloads: tuple[Workload, ...], watch: Stopwatch, *, rows: int
    ) -> Iterator[Measured]:
        """Ask all workloads in each round, so that whatever slows the machine slows all of them."""
        variants = [workload.list_variants() for workload in workloads]
        plain: list[list[float]] = [[] for _ in workloads]
        keyhole: list[list[float]] = [[] for _ in workloads]
        laps: list[list[dict[str, float]]] = [[] for _ in workloads]
        returned = [0] * len(workloads)
        self._client.time_statement(endpoint, "SET keyhole.reuse = off", None)
        for _ in self._progress.track(range(WARM_UP + self._repetitions), description=engine):
            for place in range(len(workloads)):
                question, sql, parameters = next(variants[place])
                plain[place].append(self._client.time_statement(url, sql, parameters)[0])
                watch.take_lap(0.0)
                taken, found = self._client.time_statement(endpoint, question, parameters)
                laps[place].append(watch.take_lap(taken))
                keyhole[place].append(taken)
                returned[place] = len(found)
        for place, workload in enumerate(workloads):
            yield Measured(
                engine=engine,
                workload=workload.name,
                rows=rows,
                keys_returned=returned[place],
                plain_ms=median(plain[place][WARM_UP:]),
                keyhole_ms=median(keyhole[place][WARM_UP:]),
                stages_ms={stage: median(lap[stage] for lap in laps[place][WARM_UP:]) for stage in STAGES},
            )

    def pass_through(self, policy: Path, *, number: int) -> tuple[tuple[RoundTrips, ...], tuple[Memory, ...]]:
        """What is no question: small statements through Keyhole and on a shadow directly, and what sessions hold."""
        trips: list[RoundTrips] = []
        held: list[Memory] = []
        for workers in self._progress.track(WORKERS, description="small statements"):
            with run_keyhole(policy, workers=workers) as serving, _start_shadow() as shadow:
                endpoint, processes = serving.url, serving.processes
                for sending, connections in product(SENDING, (1, 50)):
                    count = partial(self._client.round_trips, sending=sending, number=number, connections=connections)
                    through, used = count(endpoint, processes=processes)
                    trips.append(
                        RoundTrips(
                            sending=sending,
                            workers=workers,
                            connections=connections,
                            keyhole_per_s=through,
                            shadow_per_s=count(shadow)[0],
                            processor_us=1e6 * sum(used) / (number // connections * connections),
                            busiest=max(used) / sum(used),
                        )
                    )
                held.append(self._measure_memory(endpoint, processes, workers=workers))
        return tuple(trips), tuple(held)

    def _measure_memory(self, endpoint: str, processes: tuple[int, ...], *, workers: int) -> Memory:
        with ExitStack() as opened:
            for _ in range(self._sessions):
                connection = opened.enter_context(psycopg.connect(endpoint, autocommit=True))
                connection.execute("SELECT relname, relkind, reltuples FROM pg_class").fetchall()
            found = measure_memory(processes)
        return Memory(workers, self._sessions, found["Rss"], found["Pss"], found["Uss"])


def _make_directory(directory: Path) -> Path:
    directory.mkdir()
    return directory


@contextmanager
def _serve(service: Service) -> Iterator[str]:
    with serve_in_background(service, host="127.0.0.1", port=0, rest_port=0) as addresses:
        place = f"{addresses.host}:{addresses.port}/{addresses.database}"
        yield f"postgresql://{ANALYST}:{PASSWORD}@{place}"


@contextmanager
def _start_postgres(directory: Path) -> Iterator[str]:
    server = make_postgres_server(directory / "postgres", cleanup_mode="stop")
    server.start()
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


@contextmanager
def _start_shadow() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="keyhole-") as folder, EmbeddedShadow(Path(folder) / "shadow") as shadow:
        yield shadow.address.make_conninfo(user=OWNER, database="postgres")


def show(report: Report, console: Console) -> None:
    """Print the report."""
    ratios = Table("engine", "question", title="The same question, plain and through Keyhole (medians)")
    for heading in ("rows", "plain ms", "Keyhole ms", "ratio", "extra ms", "without source ms", "bar"):
        ratios.add_column(heading, justify="right")
    for each in report.measured:
        ratios.add_row(
            each.engine,
            each.workload,
            f"{each.rows:,}",
            f"{each.plain_ms:.1f}",
            f"{each.keyhole_ms:.1f}",
            f"{each.ratio:.2f} x",
            f"{each.extra_ms:+.1f}",
            f"{each.own_ms:.1f}",
            _write_bar(report, each),
        )
    console.print(ratios)
    stages = Table("stage, ms", title="Keyhole's time by stage (medians)")
    for each in report.measured:
        stages.add_column(f"{each.engine}\n{each.workload}", justify="right")
    for stage in STAGES:
        stages.add_row(stage, *(f"{each.stages_ms[stage]:.2f}" for each in report.measured))
    console.print(stages)
    trips = Table("statement", "workers", "connections", title="Round trips that are no questions, per second")
    for heading in ("through Keyhole", "shadow directly", "ratio", "processor us", "busiest", "with enough cores"):
        trips.add_column(heading, justify="right")
    for trip in report.round_trips:
        trips.add_row(
            trip.sending,
            str(trip.workers),
            str(trip.connections),
            f"{trip.keyhole_per_s:,.0f}",
            f"{trip.shadow_per_s:,.0f}",
            f"{trip.keyhole_per_s / trip.shadow_per_s:.2f}",
            f"{trip.processor_us:.0f}",
            f"{trip.busiest:.0%}",
            f"{trip.enough_cores_per_s:,.0f}",
        )
    console.print(trips)
    used = Table("workers", "sessions", title="Memory of Keyhole's processes, MB")
    for heading in ("resident", "proportional", "own"):
        used.add_column(heading, justify="right")
    for held in report.memory:
        sizes = (f"{size / 2**20:.0f}" for size in (held.rss, held.pss, held.uss))
        used.add_row(str(held.workers), str(held.sessions), *sizes)
    console.print(used)
    console.print(f"{report.cores} cores, {report.repetitions} questions each, none asked before.")


def _write_bar(report: Report, each: Measured) -> str:
    if each.workload == make_unit_workload().name:
        return ""
    if each.workload == TREND or (each.engine == "PostgreSQL" and each.workload == SHARE):
        ratio = report.find_ratio_to_number(each)
        return f"{'met' if ratio <= COMPARISON_RATIO else 'MISSED'}: {ratio:.2f} of {COMPARISON_RATIO} x {NUMBER}"
    if each.engine == "PostgreSQL" and each.workload.startswith(SCORECARD):
        return f"{'met' if each.ratio <= SCORECARD_RATIO else 'MISSED'}: {SCORECARD_RATIO} x"
    if each.engine == "PostgreSQL":
        return f"{'met' if each.ratio <= POSTGRES_RATIO else 'MISSED'}: {POSTGRES_RATIO} x, later {LATER_RATIO} x"
    met = "met" if each.extra_ms <= DUCKDB_EXTRA_MS else "MISSED"
    return f"{met}: +{DUCKDB_EXTRA_MS:.0f} ms, later +{LATER_EXTRA_MS:.0f} ms"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.endpoint", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of the generated table")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS, help="questions per workload")
    parser.add_argument("--round-trips", type=int, default=ROUND_TRIPS, help="statements that are no questions")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args()
    with Progress(console=Console(stderr=True), transient=True) as progress:
        report = measure(
            rows=given.rows, repetitions=given.repetitions, round_trips=given.round_trips, progress=progress
        )
    if given.json:
        print(json.dumps(report.make_document(), indent=2))
    else:
        show(report, Console(width=160))


if __name__ == "__main__":
    main()
