"""Several processes on one ledger at the same moment, killed and started again, with clocks hours apart.

The model knows, for each key, the least and the most that the ledger may count: what processes were told, and what a
killed one may or may not have written. Nothing in the model depends on which of them was faster.
"""

import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from accountant.charges import Charge, NanoArray
from accountant.ledger import Ledger
from tests.accountant.conftest import now
from tests.accountant.worker import CAP, KEYS, asked
from tests.children import forked
from tests.effort import examples, rounds

ROOT = Path(__file__).parents[3]
CLOCKS = (-7, 0, 26)


class Worker:
    """A child process with the ledger open."""

    def __init__(self, url: str, hours: int) -> None:
        self._arguments = [sys.executable, "-m", "tests.accountant.worker", url, str(hours)]
        self.start()

    def start(self) -> None:
        self.process = forked.Popen(self._arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, command: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def killed(self) -> dict[str, Any] | None:
        """Kill it; what it said before, if it did."""
        self.process.kill()
        said = self.process.communicate()[0]
        return json.loads(said) if said.endswith("\n") else None

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()


@dataclass
class Books:
    """What is known of one ledger's reservations on one table."""

    table: str
    open: dict[str, tuple[int, int]] = field(default_factory=dict)
    spent: NanoArray = field(default_factory=lambda: np.zeros(len(KEYS), dtype=np.int64))

    def on_keys(self, epsilon_nano: int, first: int) -> NanoArray:
        charge: Charge = asked(self.table, epsilon_nano, first)
        ((_, keys),) = charge.cells.columns
        return np.array([epsilon_nano if key in keys else 0 for key in KEYS], dtype=np.int64)

    @property
    def counted(self) -> NanoArray:
        total = self.spent.copy()
        for one in self.open.values():
            total += self.on_keys(*one)
        return total

    def close(self, reservation: str, losses: list[int]) -> None:
        _, first = self.open.pop(reservation)
        at = 0 if first == 0 else first - 1
        self.spent[at : at + len(losses)] += losses


Command = tuple[str, int, int, int]
COMMANDS = st.tuples(
    st.sampled_from(["reserve", "reserve", "reserve", "commit", "release"]),
    st.integers(1, 45),
    st.integers(0, 3),
    st.integers(0, 1000),
)


class Parallel(RuleBasedStateMachine):
    """Draws never depend on what the processes did, so that every example can be run again."""

    owner: Ledger
    workers: list[Worker]
    tables = count()

    def __init__(self) -> None:
        super().__init__()
        self.books = Books(f"table {next(self.tables)}")

    def command(self, drawn: Command, taken: set[str]) -> dict[str, Any]:
        """The drawn command as words, about a reservation that no other command of the round is about."""
        what, epsilon_nano, first, which = drawn
        free = sorted(set(self.books.open) - taken)
        if what == "reserve" or not free:
            return {"do": "reserve", "table": self.books.table, "epsilon": epsilon_nano, "first": first}
        reservation = free[which % len(free)]
        taken.add(reservation)
        epsilon_nano, first = self.books.open[reservation]
        losses = [(epsilon_nano * (which + place)) % (epsilon_nano + 1) for place in range(4 if first == 0 else 2)]
        return {
            "do": what,
            "table": self.books.table,
            "id": reservation,
            "epsilon": epsilon_nano,
            "first": first,
            "losses": losses,
        }

    def done(self, command: dict[str, Any]) -> None:
        """A close that a process was told to have happened."""
        losses = command["losses"] if command["do"] == "commit" else [0] * len(command["losses"])
        self.books.close(command["id"], losses)

    @rule(drawn=st.tuples(COMMANDS, COMMANDS, COMMANDS))
    def together(self, drawn: tuple[Command, Command, Command]) -> None:
        """Each process gets a command at the same moment."""
        taken: set[str] = set()
        commands = [self.command(one, taken) for one in drawn]
        before = self.books.counted
        for worker, command in zip(self.workers, commands, strict=True):
            worker.send(command)
        answers = [worker.answer() for worker in self.workers]
        refused = []
        most = before.copy()
        for command, answer in zip(commands, answers, strict=True):
            if command["do"] != "reserve":
                assert answer == {"done": command["do"]}
                self.done(command)
            elif "id" in answer:
                self.books.open[answer["id"]] = (command["epsilon"], command["first"])
                most += self.books.on_keys(command["epsilon"], command["first"])
            else:
                assert answer == {"refused": "OverBudget"}
                refused.append(self.books.on_keys(command["epsilon"], command["first"]))
        for needed in refused:
            assert ((most + needed > CAP) & (needed > 0)).any(), "refused although there was enough at every moment"

    @rule(drawn=COMMANDS, which=st.integers(0, 1000))
    def the_last_one(self, drawn: Command, which: int) -> None:
        """Two processes close one reservation at the same moment, in different ways: one of them does."""
        if not self.books.open:
            return
        reservation = sorted(self.books.open)[which % len(self.books.open)]
        others = set(self.books.open) - {reservation}
        commands = [self.command((what, *drawn[1:]), set(others)) for what in ("commit", "release")]
        for worker, command in zip(self.workers, commands, strict=False):
            worker.send(command)
        answers = [worker.answer() for worker, _ in zip(self.workers, commands, strict=False)]
        (winner,) = [command for command, answer in zip(commands, answers, strict=True) if "done" in answer]
        assert {"refused": "LedgerMisuse"} in answers
        self.done(winner)

    @rule(drawn=COMMANDS, which=st.integers(0, len(CLOCKS) - 1), delay_ms=st.integers(0, 4))
    def killed(self, drawn: Command, which: int, delay_ms: int) -> None:
        """A process is killed while it works; what it left in the ledger is one of two things."""
        command = self.command(drawn, set())
        self.workers[which].send(command)
        time.sleep(delay_ms / 1000)
        said = self.workers[which].killed()
        self.workers[which].start()
        assert self.workers[which].answer() == {"ready": True}
        still_open = {
            one.id for one in self.owner.list_open_reservations() if one.charge.family.table == self.books.table
        }
        if command["do"] == "reserve":
            orphans = still_open - set(self.books.open)
            assert len(orphans) <= 1
            assert said is None or "refused" in said or {said["id"]} == orphans
            for orphan in orphans:
                self.books.open[orphan] = (command["epsilon"], command["first"])
        elif command["id"] in still_open:
            assert said is None
        else:
            self.done(command)

    @rule(which=st.integers(0, 1000), untouched=st.booleans())
    def settled(self, which: int, untouched: bool) -> None:
        """The owner closes a reservation for its process, which cannot commit it any more."""
        if not self.books.open:
            return
        reservation = sorted(self.books.open)[which % len(self.books.open)]
        command = self.command(("commit", 1, 0, which), set(self.books.open) - {reservation})
        self.owner.owner.settle_reservation(reservation, untouched=untouched, by="the owner", why="its proxy is gone")
        epsilon_nano, _ = self.books.open[reservation]
        self.workers[0].send(command)
        assert self.workers[0].answer() == {"refused": "LedgerMisuse"}
        self.books.close(reservation, [0 if untouched else epsilon_nano] * len(command["losses"]))

    @invariant()
    def everybody_counts_the_same_and_never_too_much(self) -> None:
        assert (self.books.counted <= CAP).all()
        for worker in self.workers:
            worker.send({"do": "left", "table": self.books.table})
        for worker in self.workers:
            assert worker.answer() == {"left": (CAP - self.books.counted).tolist()}
        still_open = {
            one.id for one in self.owner.list_open_reservations() if one.charge.family.table == self.books.table
        }
        assert still_open == set(self.books.open)


def test_processes_in_parallel_never_overspend_and_lose_nothing(ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=now) as owner:
        workers = [Worker(ledger_url, hours) for hours in CLOCKS]
        try:
            assert [worker.answer() for worker in workers] == [{"ready": True}] * len(workers)

            class Here(Parallel):
                pass

            Here.owner, Here.workers = owner, workers
            run_state_machine_as_test(
                Here,
                settings=examples(rounds(5, quick=2), stateful_step_count=9, suppress_health_check=list(HealthCheck)),
            )
            assert owner.verify_everything() > 0
        finally:
            for worker in workers:
                worker.stop()
