"""Is any answer unpaid when anything is killed? `python -m benchmarks.random_kills --kills 200`, over both ledgers.

Clients ask all the while, and note what they are answered. Now and then, at random, SIGKILL goes to Keyhole's first
process, to one that serves, to the shadow, the source or the ledger's server, or the disk under the ledger is full. A
supervisor starts what ended with a status, as systemd does. After each kill a new client asks until it is answered. In
the end the ledger is read: every answer that anybody has received must be committed in it, for whoever received it.
"""

import argparse
import random
import statistics
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date
from itertools import count
from pathlib import Path

import psycopg
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import killing
from benchmarks.workload import PASSWORD, write_postgres_policy
from proxy.cli import check as checking
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.claim import identify_question
from proxy.pipeline.messages import Asked, read_bare_question
from proxy.security.scram import make_verifier

KILLS, SEED, CLIENTS = 200, 1, 4
LEDGERS = ("sqlite", "postgresql")
BACK_S = 10.0
"""The bar: from the kill, or from when what was killed is back, to the next answer, unless Keyhole ended with a status:
then it takes as long as starting it."""
GONE_S, MOST_GONE_S = 0.7, 15.0  # how long servers and room are gone, on average and at most
LOST_S = 600.0  # a service that is not back by then is not waited for
ANALYSTS = tuple(f"ann{number:02}" for number in range(20))
"""So many that ten failures an hour in the source (KH503) do not use them all up."""
ROWS = 40_000
"""Groups so large that thousands of questions fit the largest budget that a policy can have."""
_QUESTION = "SELECT shop FROM lines GROUP BY shop HAVING count(*) > {} AND sum(quantity) > {}"
_MIDDLE = (2_000, 20_000)  # what a group has of both
_LIMITS = """
[limits]
statement_timeout_ms = 2000

[ledger]
url = "{ledger}"
timeout_ms = 3000
"""
Answered = tuple[str, str, tuple[str, ...]]
Kill = Callable[[killing.Supervisor, random.Random], Callable[[], None]]


@dataclass(frozen=True, slots=True)
class Run:
    """What became of one Keyhole. `back_s` is, by what was killed, how long the next answer took; `faults` says what
    must not be."""

    ledger: str
    workers: int
    back_s: dict[str, list[float]]
    answers: int
    refusals: dict[str, int]
    statuses: dict[int, int]
    events: int
    still_open: int
    faults: list[str]


@dataclass(slots=True)
class Clients:
    """Clients in threads, each as another analyst again and again, and what they were told."""

    port: int
    seed: int
    answers: list[Answered] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)
    _over: threading.Event = field(default_factory=threading.Event)

    def start(self, clients: int) -> list[threading.Thread]:
        """Let so many ask."""
        started = [threading.Thread(target=self._ask_on, args=(self.seed + one,)) for one in range(clients)]
        for thread in started:
            thread.start()
        return started

    def stop(self, started: list[threading.Thread]) -> None:
        """Let them end."""
        self._over.set()
        for thread in started:
            thread.join()

    def make_question(self) -> str:
        """A question that nobody has asked."""
        number = next(self._numbers)
        rows, quantity = _MIDDLE
        return _QUESTION.format(rows + number % 60, quantity + number // 60)

    def ask(self, analyst: str, question: str) -> bool:
        """Ask on a new connection, and note what is told; whether that is an answer."""
        where = f"host=127.0.0.1 port={self.port} dbname=keyhole user={analyst} password={PASSWORD} connect_timeout=10"
        try:
            with psycopg.connect(where, autocommit=True) as connection:
                keys = tuple(sorted(row[0] for row in connection.execute(question.encode())))
        except psycopg.Error as error:
            told = error.diag.message_primary or ""
            self.refusals[told[:5] if told.startswith("KH") else "connection lost or refused"] += 1
            if told.startswith("KH3"):
                self.faults.append(f"what is asked cannot be answered, whatever is killed: {told}")
            return False
        self.answers.append((analyst, question, keys))
        return True

    def _ask_on(self, seed: int) -> None:
        chance = random.Random(seed)
        while not self._over.is_set():
            again = self.answers and chance.random() < 0.2
            question = chance.choice(self.answers)[1] if again else self.make_question()
            if not self.ask(chance.choice(ANALYSTS), question):
                time.sleep(0.05)


def run_kills(
    folder: Path,
    *,
    ledger: str,
    workers: int,
    kills: int,
    seed: int,
    tell: Callable[[str], None],
) -> Run:
    """Kill so often, under a Keyhole of so many workers with a ledger of that kind, made in `folder`."""
    chance = random.Random(seed)
    with ExitStack() as open_:
        source = open_.enter_context(killing.run_server(folder / "source"))
        ledgers = source if ledger == "sqlite" else open_.enter_context(killing.run_server(folder / "ledger"))
        file = folder / "keyhole.db"
        policy = write_policy(folder, source.url, f"sqlite:///{file}" if ledger == "sqlite" else ledgers.url)
        keyhole = killing.Supervisor(policy, workers=workers, folder=folder)
        asking = Clients(keyhole.port, seed)
        back_s: dict[str, list[float]] = defaultdict(list)
        faults = asking.faults
        try:
            _wait_for_answer(asking, chance)
            victims: dict[str, Kill] = {
                "process": killing.kill_process,
                "shadow": killing.kill_shadow,
                "source": killing.kill_server(source),
                "ledger": killing.fill_disk(file) if ledger == "sqlite" else killing.kill_server(ledgers),
            }
            if workers > 1:
                victims["worker"] = killing.kill_worker
            started = asking.start(CLIENTS)
            try:
                for victim in _shuffle_victims(sorted(victims), kills, chance):
                    ended = keyhole.statuses.total()
                    time.sleep(chance.uniform(0.0, 0.5))
                    restore = victims[victim](keyhole, chance)
                    time.sleep(min(chance.expovariate(1 / GONE_S), MOST_GONE_S))
                    restore()
                    back_s[victim].append(_wait_for_answer(asking, chance))
                    tell(f"{ledger}, {workers} worker(s): {victim}, back after {back_s[victim][-1]:.1f} s")
                    if back_s[victim][-1] > BACK_S and keyhole.statuses.total() == ended:
                        faults.append(f"back after {back_s[victim][-1]:.1f} s from a kill of the {victim}")
                    if keyhole.is_done:
                        faults.append(f"ended with status 0 after a kill of the {victim}")
                        break
            finally:
                asking.stop(started)
        finally:
            status = keyhole.finish()
        if status:
            faults.append(f"ended with {status} when told to end")
        events, still_open = _check_paid(policy, asking.answers, faults)
    return Run(
        ledger=ledger,
        workers=workers,
        back_s=dict(back_s),
        answers=len(asking.answers),
        refusals=dict(asking.refusals),
        statuses=dict(keyhole.statuses),
        events=events,
        still_open=still_open,
        faults=faults,
    )


def write_policy(folder: Path, source: str, ledger: str) -> Path:
    """A policy over generated rows at `source`, checked."""
    policy = write_postgres_policy(folder, source, rows=ROWS)
    own = make_verifier(PASSWORD)
    analysts = "".join(f'\n[analysts.{name}]\npassword = "{own}"\n' for name in ANALYSTS)
    policy.write_text(policy.read_text(encoding="utf-8") + _LIMITS.format(ledger=ledger) + analysts, encoding="utf-8")
    checking.check(policy, confirm=False)
    return policy


def _shuffle_victims(victims: list[str], kills: int, chance: random.Random) -> Iterator[str]:
    """So many of them in no order, each as often, but the first process: starting it anew takes longest."""
    turn = [*victims, *(victim for victim in victims if victim != "process")]
    deck = [turn[number % len(turn)] for number in range(kills)]
    chance.shuffle(deck)
    return iter(deck)


def _wait_for_answer(asking: Clients, chance: random.Random) -> float:
    """Seconds until somebody who comes now is answered a new question; at most `LOST_S`."""
    started = time.monotonic()
    while time.monotonic() - started < LOST_S and not asking.ask(chance.choice(ANALYSTS), asking.make_question()):
        time.sleep(0.02)
    return time.monotonic() - started


def _check_paid(policy: Path, answers: list[Answered], faults: list[str]) -> tuple[int, int]:
    """Look up every answer in the ledger; its events, and the reservations that are open."""
    with Service.open(policy) as service:
        events = service.ledger.verify_everything()
        paid = {
            (one.charge.analyst, one.charge.question) for one in service.ledger.read_history() if one.spent is not None
        }
        known: dict[str, str] = {}
        told: dict[tuple[str, str], tuple[str, ...]] = {}
        for analyst, question, keys in answers:
            if question not in known:
                known[question] = _identify(service, question)
            if (analyst, known[question]) not in paid:
                faults.append(f"unpaid: {analyst} was answered {question}")
            if told.setdefault((analyst, question), keys) != keys:
                faults.append(f"two answers: {analyst} was answered {question}")
        return events, len(service.ledger.list_open_reservations())


def _identify(service: Service, question: str) -> str:
    """What the ledger calls a question."""
    asked = Asked(
        question=read_bare_question(question, service.catalog),
        settings={},
        parameters={},
        analyst=service.find_analyst(ANALYSTS[0]),
        today=date(2026, 1, 1),
        is_utc=True,
    )
    return identify_question(pipeline.plan_asked_question(service, asked), service.catalog)


def show(runs: list[Run], console: Console) -> None:
    """Print all runs together."""
    killed = Table("ledger", "workers", "killed", title="Until the next answer")
    for name in ("times", "median", "slowest"):
        killed.add_column(name, justify="right")
    for run in runs:
        for victim, seconds in sorted(run.back_s.items()):
            median, slowest = f"{statistics.median(seconds):.1f} s", f"{max(seconds):.1f} s"
            killed.add_row(run.ledger, str(run.workers), victim, str(len(seconds)), median, slowest)
    console.print(killed)
    told = Table("ledger", "workers", title="What clients were told, and what the ledger has")
    for name in ("answers", "refused or lost", "events", "open", "ended with", "faults"):
        told.add_column(name, justify="right")
    for run in runs:
        ended = ", ".join(f"{status}: {times}" for status, times in sorted(run.statuses.items()))
        refused = ", ".join(f"{code}: {times}" for code, times in sorted(run.refusals.items()))
        told.add_row(
            run.ledger,
            str(run.workers),
            f"{run.answers:,}",
            refused,
            f"{run.events:,}",
            str(run.still_open),
            ended,
            str(len(run.faults)),
        )
    console.print(told)
    for fault in [fault for run in runs for fault in run.faults]:
        console.print(fault)


def main() -> None:
    """Run, print, and end with 1 if an answer was unpaid or Keyhole was not back in time."""
    parser = argparse.ArgumentParser(prog="benchmarks.random_kills", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=KILLS, help="how many, over all ledgers and numbers of workers")
    parser.add_argument("--seed", type=int, default=SEED, help="what decides who is killed when")
    parser.add_argument("--ledger", choices=LEDGERS, action="append", help="only this one")
    parser.add_argument("--workers", type=int, action="append", help="only so many; otherwise 1 and 2")
    given = parser.parse_args()
    worlds = [(ledger, workers) for ledger in given.ledger or LEDGERS for workers in given.workers or (1, 2)]
    runs = []
    with Progress(transient=True) as progress:
        task = progress.add_task("kills", total=given.kills)
        for number, (ledger, workers) in enumerate(worlds):
            kills = given.kills * (number + 1) // len(worlds) - given.kills * number // len(worlds)
            with tempfile.TemporaryDirectory(prefix="kk-") as folder:

                def tell(what: str) -> None:
                    progress.update(task, advance=1, description=what)
                    if not progress.console.is_terminal:
                        print(what, flush=True)

                runs.append(
                    run_kills(
                        Path(folder), ledger=ledger, workers=workers, kills=kills, seed=given.seed + number, tell=tell
                    )
                )
    show(runs, Console(width=120))
    raise SystemExit(any(run.faults for run in runs))


if __name__ == "__main__":
    main()
