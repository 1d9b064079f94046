"""A few random kills: nobody is answered what is not paid, a supervisor can act on how it ends. Nothing is timed."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from rich.console import Console

from benchmarks import random_kills
from tests.effort import rounds

KILLS = rounds(40, quick=4)


@pytest.fixture(scope="module")
def run() -> random_kills.Run:
    # sockets lie in it, whose paths may not be long
    with TemporaryDirectory(prefix="kk-") as folder:
        return random_kills.run_kills(
            Path(folder), ledger="sqlite", workers=1, kills=KILLS, seed=1, tell=lambda _: None
        )


def test_no_answer_is_unpaid_and_everybody_is_told_one_answer(run: random_kills.Run) -> None:
    assert [fault for fault in run.faults if not fault.startswith("back after")] == []
    assert run.answers > 0
    assert run.events > run.answers


def test_each_kind_of_victim_was_killed_and_the_service_came_back(run: random_kills.Run) -> None:
    assert sorted(run.back_s) == ["ledger", "process", "shadow", "source"]
    assert sum(map(len, run.back_s.values())) == KILLS
    assert all(seconds < random_kills.LOST_S for times in run.back_s.values() for seconds in times)
    assert 0 not in run.statuses


def test_runs_are_printed(run: random_kills.Run) -> None:
    console = Console(width=120)
    with console.capture() as printed:
        random_kills.show([run], console)
    assert "slowest" in printed.get()
