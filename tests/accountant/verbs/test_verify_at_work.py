"""`verify` while other processes write: it sees one moment, and never takes what happens meanwhile for a fault."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from accountant.ledger import Ledger
from tests.accountant.conftest import now
from tests.children import forked

ROUNDS = 4


@contextmanager
def busy(url: str, analyst: str) -> Iterator["subprocess.Popen[str]"]:
    process = forked.Popen(
        [sys.executable, "-m", "tests.accountant.busy", url, analyst],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_verify_finds_no_fault_while_two_processes_write(ledger_url: str) -> None:
    """From a ledger that stays open and from one opened anew each time, and in the end after both writers were killed.

    It goes on until each writer has told of so many rounds, so that windows, prunings and snapshots fall in between.
    """
    with ExitStack() as stack:
        ledger = stack.enter_context(Ledger.open(ledger_url, clock=now))
        writers = [stack.enter_context(busy(ledger_url, analyst)) for analyst in ("ann", "bob")]
        counts = [0]
        for _ in range(ROUNDS):
            for writer in writers:
                assert writer.stdout is not None
                assert writer.stdout.readline(), "a writer died"
                counts.append(ledger.verify_everything())
                with Ledger.open(ledger_url, clock=now) as another:
                    counts.append(another.verify_everything())
        assert counts == sorted(counts)
        assert len(set(counts)) > ROUNDS
    with Ledger.open(ledger_url, clock=now) as ledger:
        assert ledger.verify_everything() >= counts[-1]
