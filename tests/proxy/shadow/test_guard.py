"""No shadow outlives its Keyhole."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from proxy.shadow.guard import stop_server_with_process
from tests.effort import PATIENCE_S
from tests.worlds.house import eventually

_KEEPER = """
import sys, time
from pathlib import Path
from proxy.shadow.embedded import EmbeddedShadow
from proxy.shadow.guard import stop_server_with_process
directory = Path(sys.argv[1]) / "shadow"
with stop_server_with_process(directory), EmbeddedShadow(directory):
    print((directory / "postmaster.pid").read_text().split()[0], flush=True)
    sys.stdin.read()
"""


def _alive(process: int) -> bool:
    """Whether it runs: one that has ended and that nobody waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("ending", [signal.SIGKILL, None])
def test_a_shadow_ends_however_its_keeper_ends(tmp_path_factory: pytest.TempPathFactory, ending: int | None) -> None:
    above = Path(os.path.realpath(tmp_path_factory.getbasetemp().parent.parent))
    folder = above / f"keyhole-guard-{os.getpid()}-{ending}"
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
    deadline = time.monotonic() + PATIENCE_S
    while (_alive(server) or (ending and folder.exists())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(server)
    assert folder.exists() == (ending is None)  # who ends well sees to his folder himself
    if ending is None:
        shutil.rmtree(folder)


_MAKER = """
import subprocess, sys
from pathlib import Path
from proxy.shadow.guard import stop_server_with_process
directory = Path(sys.argv[1]) / "shadow"
making = 'trap "" QUIT; while true; do mkdir -p "$1/base"; sleep 0.01; done'
with stop_server_with_process(directory):
    maker = subprocess.Popen((str(directory.parent / "initdb"), "-c", making, "sh", str(directory)))
    print(maker.pid, flush=True)
    sys.stdin.read()
    raise KeyboardInterrupt
"""


@pytest.mark.skipif(not Path("/proc/self/comm").exists(), reason="nobody knows who works in the folder")
@pytest.mark.parametrize("ending", [signal.SIGKILL, None])
def test_who_is_making_the_shadow_ends_with_its_keeper(tmp_path: Path, ending: int | None) -> None:
    """Also where the keeper goes on, after an error."""
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "initdb").symlink_to("/bin/sh")
    with subprocess.Popen(
        (sys.executable, "-c", _MAKER, str(folder)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdin is not None
        maker = int(keeper.stdout.readline())
        if ending is None:
            keeper.stdin.close()
        else:
            keeper.send_signal(ending)
    eventually(lambda: not _alive(maker) and not folder.exists())


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="nobody knows which process is the guard")
def test_a_guard_that_was_killed_hinders_nobody(tmp_path: Path) -> None:
    with stop_server_with_process(tmp_path / "shadow"):
        eventually(lambda: len(_guards_of(tmp_path / "shadow")) == 1)  # a process has its arguments a moment after exec
        os.kill(_guards_of(tmp_path / "shadow")[0], signal.SIGKILL)
    assert tmp_path.exists()


def _guards_of(directory: Path) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):  # others come and go
            if os.fsencode(directory) in (process / "cmdline").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found
