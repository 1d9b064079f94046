"""No shadow outlives its Keyhole."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from proxy.shadow.guard import guarded

_KEEPER = """
import sys, time
from pathlib import Path
from proxy.shadow.embedded import EmbeddedShadow
from proxy.shadow.guard import guarded
directory = Path(sys.argv[1]) / "shadow"
with guarded(directory), EmbeddedShadow(directory):
    print((directory / "postmaster.pid").read_text().split()[0], flush=True)
    sys.stdin.read()
"""
_PATIENCE_S = 60


def _alive(process: int) -> bool:
    """Whether it runs: one that has ended and that nobody waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("ending", [signal.SIGKILL, None])
def test_a_shadow_ends_however_its_keeper_ends(tmp_path_factory: pytest.TempPathFactory, ending: int | None) -> None:
    folder = Path(os.path.realpath(tmp_path_factory.getbasetemp().parent.parent)) / f"keyhole-guard-{os.getpid()}"
    folder.mkdir(mode=0o711)
    with subprocess.Popen(
        (sys.executable, "-c", _KEEPER, str(folder)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdin is not None
        server = int(keeper.stdout.readline())
        with psycopg.connect(host=str(folder / "shadow"), user="postgres", dbname="postgres") as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        if ending is None:
            keeper.stdin.close()
        else:
            keeper.send_signal(ending)
        keeper.wait()
    deadline = time.monotonic() + _PATIENCE_S
    while (_alive(server) or (ending and folder.exists())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(server)
    assert folder.exists() == (ending is None)  # who ends well sees to his folder himself
    if ending is None:
        shutil.rmtree(folder)


def test_a_guard_that_was_killed_hinders_nobody(tmp_path: Path) -> None:
    before = set(Path("/proc").iterdir())
    with guarded(tmp_path / "shadow"):
        for process in set(Path("/proc").iterdir()) - before:
            if str(tmp_path).encode() in (process / "cmdline").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)
    assert tmp_path.exists()
