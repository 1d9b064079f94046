"""Workers whose parent was killed while they hang."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.worlds.house import eventually


@contextmanager
def hanging() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A parent, and its child whose main thread does nothing any more."""
    command = (sys.executable, "-m", "tests.proxy.process.orphaned")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            yield parent, child
        finally:
            parent.kill()
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def has_ended(process: int) -> bool:
    """Gone, or waiting for whoever inherited it to ask for its status."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux")
@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_worker_that_hangs_ends_with_its_killed_parent(is_stopped: bool) -> None:
    with hanging() as (parent, child):
        if is_stopped:
            os.kill(child, signal.SIGSTOP)
        parent.kill()
        parent.wait()
        eventually(lambda: has_ended(child))


def test_a_worker_lives_as_long_as_its_parent() -> None:
    with hanging() as (parent, child):
        with pytest.raises(subprocess.TimeoutExpired):
            parent.wait(1)  # ten times what the child may live without it
        assert not has_ended(child)
