"""SIGKILL at every step of a publication that no budget covers: the ledger has it before it is a file, drawn once."""

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
from tests.proxy.release.killed import publish

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
"""


@pytest.fixture(scope="module")
def mortal() -> Iterator[subprocess.Popen[str]]:
    """The process that forks those that die."""
    with subprocess.Popen(
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


def _die(process: subprocess.Popen[str], policy: Path, file: Path, *, at: int) -> str | None:
    """Where the publication died; None where its end came before."""
    assert process.stdin is not None
    process.stdin.write(json.dumps({"policy": str(policy), "file": str(file), "at": at}) + "\n")
    process.stdin.flush()
    told = _hear(process)
    where: str | None = told["where"]
    assert (told["signal"], told["exit"]) == ((0, 0) if where is None else (9, 0))
    return where


def _published(folder: Path) -> list[Published]:
    """The events of a ledger that is whole."""
    with Ledger.open(f"sqlite:///{folder / 'keyhole.db'}", clock=lambda: datetime.now(UTC)) as ledger:
        ledger.verify()
        return list(ledger.owner.find_published())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_publication_that_dies_at_any_step_is_no_file_without_an_event_and_is_drawn_once(
    mortal: subprocess.Popen[str], tmp_path: Path, ending: str
) -> None:
    source = tmp_path / "taken.duckdb"
    with duckdb.connect(str(source)) as connection:
        connection.execute("CREATE TABLE taken (ward text, drug text)")
        connection.execute("INSERT INTO taken SELECT 'A', 'none' FROM range(40)")
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    (fresh / "keyhole.toml").write_text(POLICY.format(source=source))
    check(fresh / "keyhole.toml", confirm=False)
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
