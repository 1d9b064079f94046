"""Is a look ever made twice? `python -m benchmarks.monitor_kills --runs 200`, over both ledgers.

A window of 24 looks is watched by a process that SIGKILL ends at random moments, again and again, and that is started
anew each time. Counts stand near their threshold, where another draw would alert at another look. In the end the alerts
must be those of a process that nobody killed and that drew the same numbers, and the ledger must hold one charge and
verify.
"""

import argparse
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import duckdb
import numpy as np
import psycopg
from rich.console import Console
from rich.progress import track

from benchmarks.killing import Server, run_server
from mechanisms.noise.exact import ExactNoise
from planner.catalog.catalog import RELEASED_BY
from planner.monitors.build import plan_monitor
from proxy.cli import check as checking
from proxy.monitors.runner import MonitorRunner
from proxy.monitors.start import start_monitor
from proxy.open_policy.service import Service

RUNS, SEED = 200, 1
LEDGERS = ("sqlite", "postgresql")
KEYS, LOOKS = 20, 24
MOST_LIFE_S = 1.0
"""A process lives so long at most before it is killed: about as long as opening everything and half the looks take."""
KILLS = 6  # of one window; then it is left to end
_START = datetime(2026, 3, 1)
_POLICY = """\
[source]
url = "duckdb://"

[ledger]
url = "{ledger}"

[budget]
epsilon_per_predicate = 4
epsilon_per_query = 4

[tables.visits]
relation = "visits.parquet"
privacy_unit = "row"
refresh = "live"
append_only = true

[tables.visits.columns.ward]
key = {{ range = [1, {keys}] }}

[tables.visits.columns.seen_at]

[monitors.crowded]
sql = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 400"
window = {{ column = "seen_at", length = "1 day" }}
every = "1 hour"
from = "2026-03-01"
until = "2026-03-01"
tolerance = "20%"
"""
Told = tuple[tuple[int, int], ...]
"""Alerts: the look, and the key's place."""


@dataclass(frozen=True, slots=True)
class Killed:
    """What became of one window: how often its process was killed, whether alerts and charge were as they must be."""

    kills: int
    same: bool
    charges: int
    verified: bool


def write_visits(folder: Path) -> None:
    """Visits of a day: each ward comes near 400 by its end."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT ward, TIMESTAMP '2026-03-01' + to_microseconds(i * 86400000000 // "
            f"(330 + 6 * ward)) AS seen_at FROM range(1, {KEYS + 1}) AS w(ward), range(600) AS r(i) "
            "WHERE i < 330 + 6 * ward"
        )
        connection.table("visits").write_parquet(str(folder / "visits.parquet"))


def kill_at_random(folder: Path, ledger: str, chance: random.Random, *, kills: int = KILLS) -> Killed:
    """Watch a window in processes that are killed, and compare with one that is not."""
    seed = chance.getrandbits(32)
    undisturbed = prepare(folder, f"sqlite:///{uuid4().hex}.db")
    _run_in_child(undisturbed, seed, life_s=None)
    wanted, _, _ = read(undisturbed)
    disturbed = prepare(folder, ledger)
    killed = sum(_run_in_child(disturbed, seed, life_s=chance.uniform(0.0, MOST_LIFE_S)) for _ in range(kills))
    _run_in_child(disturbed, seed, life_s=None)
    told, charges, verified = read(disturbed)
    return Killed(kills=killed, same=told == wanted, charges=charges, verified=verified)


def prepare(folder: Path, ledger: str) -> Path:
    """A policy whose monitor has been started, with a ledger of its own."""
    policy = folder / f"{uuid4().hex}.toml"
    policy.write_text(_POLICY.format(ledger=ledger, keys=KEYS), encoding="utf-8")
    checking.check(policy, confirm=False)
    with Service.open(policy) as service:
        plan = plan_monitor(service.catalog, service.catalog.monitors[0], dialect=service.source.dialect)
        start_monitor(service, plan, by="benchmark", why="to be killed")
    return policy


def _run_in_child(policy: Path, seed: int, *, life_s: float | None) -> bool:
    """Watch in a process of its own, which lives so long (None: to its end); whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            watch(policy, seed)
        finally:
            os._exit(0)
    if life_s is not None:
        time.sleep(life_s)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def watch(policy: Path, seed: int) -> None:
    """Make the looks of the whole window that were not made yet."""
    now = _START
    with Service.open(policy) as service:
        service.noise = ExactNoise(np.random.Generator(np.random.PCG64(seed)).bytes)
        runner = MonitorRunner(
            service,
            name="one",
            clock=lambda: now.replace(tzinfo=UTC),
            seconds=lambda: now.replace(tzinfo=UTC).timestamp(),
            since=lambda _: _START.replace(tzinfo=UTC),
        )
        for look in range(1, LOOKS + 1):
            now = _START + look * timedelta(hours=1)
            runner.make_due_looks()


def read(policy: Path) -> tuple[Told, int, bool]:
    """The alerts of a policy's monitor, how many charges there are, and whether the ledger verifies."""
    with Service.open(policy) as service:
        (run,) = service.ledger.monitors.list_runs()
        alerts = service.ledger.monitors.read_alerts(run.run).alerts
        verified = service.ledger.verify_everything() > 0
        return (
            tuple((one.number, one.key) for one in alerts),
            len(service.ledger.read_history(analyst=RELEASED_BY)),
            verified and service.ledger.monitors.list_closed_windows(run.run) == {0},
        )


@contextmanager
def _open_ledgers(kind: str, folder: Path) -> "Iterator[list[Server]]":
    if kind == "sqlite":
        yield []
    else:
        with run_server(folder / "server") as server:
            yield [server]


def make_ledger(servers: "list[Server]") -> str:
    """The URL of an empty ledger: a file, or a database on the server."""
    if not servers:
        return f"sqlite:///{uuid4().hex}.db"
    name = f"ledger_{uuid4().hex}"
    with psycopg.connect(servers[0].url, autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {name}".encode())
    return servers[0].url.replace("/postgres?", f"/{name}?")


def main() -> None:
    """Kill, and print what became of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="Windows that are watched and killed, per ledger.")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--ledgers", nargs="+", choices=LEDGERS, default=LEDGERS)
    asked = parser.parse_args()
    console = Console()
    for kind in asked.ledgers:
        chance, found = random.Random(asked.seed), Counter[str]()
        with tempfile.TemporaryDirectory(prefix="keyhole-kills-") as name, _open_ledgers(kind, Path(name)) as servers:
            write_visits(Path(name))
            for _ in track(range(asked.runs), description=f"{kind}: windows", console=console):
                one = kill_at_random(Path(name), make_ledger(servers), chance)
                found["kills"] += one.kills
                found["other alerts"] += not one.same
                found["other charges"] += one.charges != 1
                found["not verified"] += not one.verified
        console.print(f"{kind}: {asked.runs} windows, {dict(found)}")


if __name__ == "__main__":
    main()
