"""Temporary folders of processes that live, and of those that were killed."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proxy.process.own_folder import make_own_folder
from tests.worlds.served import ROOT

HOLD = """
from proxy.process.own_folder import make_own_folder
with make_own_folder() as made:
    print(made, flush=True)
    input()
"""


@contextmanager
def holding(where: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that has a folder in `where`."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(where)},
    ) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_what_a_killed_process_left_is_removed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with holding(tmp_path) as (dying, left), holding(tmp_path) as (_, kept), make_own_folder() as own:
        (left / "shadow").mkdir()
        (left / "shadow" / "file").touch()
        dying.kill()
        dying.wait()
        strange, link = tmp_path / "keyhole-strange", tmp_path / "keyhole-link"
        strange.mkdir()
        link.symlink_to(left)
        assert left.exists()
        with make_own_folder() as another:
            assert {*tmp_path.iterdir()} == {kept, own, another, strange, link}
            assert another.stat().st_mode & 0o777 == 0o700
        assert {*tmp_path.iterdir()} == {kept, own, strange, link}
    assert not own.exists()


def test_a_link_to_a_folder_is_left_where_it_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere, where = tmp_path / "elsewhere", tmp_path / "temporary"
    elsewhere.mkdir()
    where.mkdir()
    (elsewhere / "owner.lock").touch()
    (where / "keyhole-link").symlink_to(elsewhere)
    monkeypatch.setattr(tempfile, "tempdir", str(where))
    with make_own_folder():
        assert (elsewhere / "owner.lock").exists()
