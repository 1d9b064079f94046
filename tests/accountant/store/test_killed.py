"""SIGKILL between any two statements of a verb: it is there whole, or it is not there; nothing is ever half counted.

What died before its COMMIT was sent has written nothing, what died after it stands. The fork that dies is a process
of its own with connections of its own. A process that dies while the database itself works is the database's matter.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from accountant.charges import NANO
from accountant.ledger import Ledger
from tests.accountant.conftest import now
from tests.accountant.examples import charge
from tests.accountant.killed import CAPS, SCENES, Seen, prepared, seen, set_up
from tests.children import forked
from tests.effort import rounds

STORES = ("sqlite", "postgresql")
# every verb on both, or on one of them in turn
DYING = [
    (verb, store)
    for verb, stores in zip(SCENES, cycle((STORES, STORES[::-1])), strict=False)
    for store in stores[: rounds(2, quick=1)]
]


class Mortal:
    """The process that forks those that die."""

    def __init__(self) -> None:
        self.process = forked.Popen(
            [sys.executable, "-m", "tests.accountant.killed"],
            cwd=Path(__file__).parents[3],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.hear() == {"ready": True}

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def dies_at(self, point: int, *, url: str, doing: str, finding: Seen | None) -> str | None:
        """Where the n-th point was; None when the end came before it. What it found on opening is what it must."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"url": url, "do": doing, "at": point}) + "\n")
        self.process.stdin.flush()
        told = self.hear()
        assert told["found"] == ("" if finding is None else repr(finding))
        if told["where"] is None:
            assert (told["signal"], told["exit"]) == (0, 0)
            return None
        assert told["signal"] == 9
        where: str = told["where"]
        return where


@pytest.fixture(scope="module")
def mortal() -> Iterator[Mortal]:
    forking = Mortal()
    try:
        yield forking
    finally:
        forking.process.kill()
        forking.process.communicate()


@pytest.mark.parametrize(("verb", "ledger_url"), DYING, indirect=["ledger_url"])
def test_a_verb_that_dies_at_any_point_is_there_whole_or_not_at_all(
    verb: str, ledger_url: str, tmp_path: Path, mortal: Mortal
) -> None:
    """What one leaves is read by the next, which opens the ledger anew, and dies one point later."""
    with Ledger.open(f"sqlite:///{tmp_path}/twin.db", clock=now) as twin:
        set_up(twin, SCENES[verb])
        prepared(twin, verb)()
        afterwards = seen(twin)
    with Ledger.open(ledger_url, clock=now) as ledger:
        set_up(ledger, SCENES[verb])
        before = seen(ledger)
        assert before != afterwards
        points: list[str] = []
        while "done" not in points:
            where = mortal.dies_at(len(points) + 1, url=ledger_url, doing=verb, finding=before)
            assert where is not None
            points.append(where)
        assert points[-2:] == ["COMMIT", "done"]
        assert any("INSERT INTO events" in point for point in points)
        with Ledger.open(ledger_url, clock=now) as reopened:
            for one in (ledger, reopened):
                assert seen(one) == afterwards
        ledger.reserve(charge(NANO), CAPS)


def test_opening_that_dies_at_any_point_neither_loses_nor_adds(ledger_url: str, mortal: Mortal) -> None:
    """An opening that replaces a stored snapshot by a newer one."""
    with Ledger.open(ledger_url, clock=now, snapshot_every=1) as ledger:
        set_up(ledger, "a continued path")
    with Ledger.open(ledger_url, clock=now) as ledger:
        ledger.reserve(charge(NANO), CAPS)
        before = seen(ledger)
        points: list[str] = []
        while (where := mortal.dies_at(len(points) + 1, url=ledger_url, doing="open", finding=None)) is not None:
            points.append(where)
            assert seen(ledger) == before
    for statement in ("DELETE FROM snapshots", "INSERT INTO snapshots"):
        assert any(statement in point for point in points)
    with Ledger.open(ledger_url, clock=now) as reopened:
        assert seen(reopened) == before


def test_creating_that_dies_at_any_point_can_be_done_again(ledger_url: str, mortal: Mortal) -> None:
    """At every third point, of which there are many, or every eleventh."""
    points: list[str] = []
    apart = rounds(3, quick=11)
    while (where := mortal.dies_at(apart * len(points) + 1, url=ledger_url, doing="open", finding=None)) is not None:
        points.append(where)
    assert any("CREATE TABLE" in point for point in points)
    with Ledger.open(ledger_url, clock=now) as ledger:
        assert ledger.verify_everything() == 0
        ledger.reserve(charge(NANO), CAPS)
