"""SIGKILL at every step of what becomes a file.

A publication that no budget covers is in the ledger before it is a file, and drawn once. Of a charged one nothing
unspent is lost: what died before its reservation cost nothing, what died before its commit stays paid, and what died
after that is the same file, for nothing.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import pytest

from accountant.events.owner_events import Published
from accountant.ledger import Ledger
from proxy.cli.check import check
from proxy.release.published_file import hash_file
from tests.children import forked
from tests.proxy.release.killed import publish, release

POLICY = """\
[source]
url = "duckdb:///{source}"

[budget]
epsilon_per_predicate = 1
epsilon_per_query = 0.5

[tables.taken]
privacy_unit = "row"
refresh = "explicit"

[tables.taken.columns.ward]
key = {{ values = ["A", "B"] }}

[tables.taken.columns.drug]
key = {{ values = ["none", "some"] }}

[tables.taken.columns.score]
bounds = [0, 1]
grid = 0.01
"""


@pytest.fixture(scope="module")
def mortal() -> Iterator[subprocess.Popen[str]]:
    """The process that forks those that die."""
    with forked.Popen(
        [sys.executable, "-m", "tests.proxy.release.killed"],
        cwd=Path(__file__).parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert _hear(process) == {"ready": True}
        yield process
        process.kill()


def _hear(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    told: dict[str, Any] = json.loads(process.stdout.readline())
    return told


def _die(
    process: subprocess.Popen[str], policy: Path, file: Path, *, at: int, release: tuple[str, ...] = ()
) -> str | None:
    """Where the publication, or a command that releases, died; None where its end came before."""
    assert process.stdin is not None
    process.stdin.write(json.dumps({"policy": str(policy), "file": str(file), "at": at, "release": release}) + "\n")
    process.stdin.flush()
    told = _hear(process)
    where: str | None = told["where"]
    assert (told["signal"], told["exit"]) == ((0, 0) if where is None else (9, 0))
    return where


def _published(folder: Path) -> list[Published]:
    """The events of a ledger that is whole."""
    with Ledger.open(f"sqlite:///{folder / 'keyhole.db'}", clock=lambda: datetime.now(UTC)) as ledger:
        ledger.verify_everything()
        return list(ledger.owner.find_publications())


def _install(folder: Path) -> Path:
    """A folder with a policy that is pinned, and no ledger yet."""
    source = folder / "taken.duckdb"
    with duckdb.connect(str(source)) as connection:
        connection.execute("CREATE TABLE taken (ward text, drug text, score double)")
        connection.execute("INSERT INTO taken SELECT 'A', 'none', n / 40 FROM range(40) AS r(n)")
    fresh = folder / "fresh"
    fresh.mkdir()
    (fresh / "keyhole.toml").write_text(POLICY.format(source=source))
    check(fresh / "keyhole.toml", confirm=False)
    return fresh


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_publication_that_dies_at_any_step_is_no_file_without_an_event_and_is_drawn_once(
    mortal: subprocess.Popen[str], tmp_path: Path, ending: str
) -> None:
    fresh = _install(tmp_path)
    died = []
    for at in count(1):
        folder = tmp_path / str(at)
        shutil.copytree(fresh, folder)
        policy, file = folder / "keyhole.toml", folder / "releases" / f"published.{ending}"
        where = _die(mortal, policy, file, at=at)
        if where is None:
            break
        before = _published(folder)
        if file.exists():
            assert [hash_file(file)] == [one.file_hash for one in before]
        found = publish(policy, file)
        (event,) = _published(folder)
        assert before in ([], [event])
        assert found == event.file_hash == hash_file(file)
        beside = ["published.csv.txt"] if ending == "csv" else []
        assert sorted(one.name for one in file.parent.iterdir()) == [".lock", file.name, *beside]
        died.append((where, len(before), file.name))
    steps = [where for where, *_ in died]
    assert "COMMIT" in steps
    assert f"os.link .published.{ending}.draft published.{ending}" in steps
    assert {events for _, events, _ in died} == {0, 1}


CHARGED = {
    "table": ("publish", "taken", "--public", "ward", "--sensitive", "drug"),
    "roc": ("diagnose", "roc", "taken", "--score", "score", "--outcome", "score > 0.4", "--by", "ward"),
}


@pytest.mark.parametrize(("name", "ending"), [("roc", "csv"), ("table", "parquet")])
def test_a_charged_release_that_dies_at_any_step_is_no_file_unpaid_and_is_paid_once(
    mortal: subprocess.Popen[str], tmp_path: Path, name: str, ending: str
) -> None:
    """The ledger has nothing, a reservation, or a reservation and a commit. Where a reservation stands alone the
    command says that it is under way, and pays nothing a second time, though the budget has room."""
    fresh = _install(tmp_path)
    assert _events(fresh) == 0  # its tables are there: how they come to be is tested elsewhere
    given = (*CHARGED[name], "--epsilon", "0.5", "--yes", "--why", "a test", "--out", "made", "--format", ending)
    died = []
    for at in count(1):
        folder = tmp_path / str(at)
        shutil.copytree(fresh, folder)
        policy, file = folder / "keyhole.toml", folder / "releases" / f"made.{ending}"
        where = _die(mortal, policy, file, at=at, release=given)
        if where is None:
            break
        before, hashed = _events(folder), hash_file(file)
        assert before == 2 or hashed is None
        if before == 1:
            assert "KH313" in release(policy, list(given))
            assert (_events(folder), hash_file(file)) == (1, None)
        else:
            told = json.loads(release(policy, list(given)))
            assert told["paid_before"] == (before == 2)
            assert hashed in (None, told["sha256"])
            assert (_events(folder), hash_file(file)) == (2, told["sha256"])
            beside = ["made.csv.txt"] if ending == "csv" else []
            assert sorted(one.name for one in file.parent.iterdir()) == [".lock", file.name, *beside]
        died.append((where, before))
        shutil.rmtree(folder)
    assert f"os.link .made.{ending}.draft made.{ending}" in [where for where, _ in died]
    assert {events for _, events in died} == {0, 1, 2}


def _events(folder: Path) -> int:
    """How many events a ledger has, which is whole; 0 where it was not made yet."""
    with Ledger.open(f"sqlite:///{folder / 'keyhole.db'}", clock=lambda: datetime.now(UTC)) as ledger:
        return ledger.verify_everything()
