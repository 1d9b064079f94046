"""Keyhole is told to end, or killed, while it starts: nothing is left behind, whatever it was at."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.worlds.house import eventually, shop_in_duckdb
from tests.worlds.served import COMMAND, ROOT

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks into /proc")


@dataclass(frozen=True)
class Starting:
    """A Keyhole that is starting, in a process group of its own; all its temporary files are in `folder`."""

    process: subprocess.Popen[str]
    folder: Path

    def when(self, came_so_far: Callable[[], bool]) -> None:
        """Wait until it has come so far, or has ended."""
        eventually(lambda: came_so_far() or self.process.poll() is not None)

    def has_made(self, path: str) -> bool:
        return any(self.folder.glob(path))

    def left(self) -> list[str]:
        """Its processes, by their command lines, and its temporary files."""
        mark, found = os.fsencode(self.folder), []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # gone, or somebody else's
                called = (process / "cmdline").read_bytes()
                if mark in called or mark in (process / "environ").read_bytes():
                    found.append(os.fsdecode(called))
        return found + [str(path) for path in self.folder.iterdir()]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("house")
    path = shop_in_duckdb(directory)
    text = path.read_text(encoding="utf-8")
    # who may read its files, and that it runs as root, is told as a warning
    path.write_text(text.replace('database = "shop"', 'database = "shop"\nlog_level = "error"'), encoding="utf-8")
    return path


@contextmanager
def starting(policy: Path, *flags: str) -> Iterator[Starting]:
    arguments = [*COMMAND, "serve", "--policy", str(policy), "--port=0", "--rest-port=0", *flags]
    with (
        tempfile.TemporaryDirectory(prefix="keyhole-") as folder,
        subprocess.Popen(
            arguments,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "TMPDIR": folder},
            start_new_session=True,
        ) as process,
    ):
        try:
            yield Starting(process, Path(folder))
        finally:
            process.kill()


def test_told_to_end_it_does_when_what_it_began_can_be_ended(policy: Path) -> None:
    with starting(policy) as keyhole:
        keyhole.when(lambda: keyhole.has_made("keyhole-*/shadow/base"))
        keyhole.process.send_signal(signal.SIGTERM)
        told = keyhole.process.communicate()
        assert (keyhole.process.returncode, *told) == (0, "", "")
        assert keyhole.left() == []


def test_told_to_end_while_it_imports_it_removes_the_data_that_it_began(policy: Path) -> None:
    with starting(policy) as keyhole:
        keyhole.when(lambda: keyhole.has_made("keyhole-*/owner.lock"))
        keyhole.process.send_signal(signal.SIGTERM)
        told = keyhole.process.communicate()
        assert (keyhole.process.returncode, *told) == (0, "", "")
        assert keyhole.left() == []


def test_a_terminal_that_interrupts_everybody_hears_no_complaint(policy: Path) -> None:
    """Workers among them that have not come so far as to leave it to their parent."""

    def has_worker() -> bool:
        return any("spawn_main" in called for called in keyhole.left())

    with starting(policy, "--workers=2") as keyhole:
        keyhole.when(has_worker)
        os.killpg(keyhole.process.pid, signal.SIGINT)
        told = keyhole.process.communicate()
        assert (keyhole.process.returncode, *told) == (0, "", "")
        assert keyhole.left() == []


def test_a_parent_of_workers_that_is_killed_leaves_nothing(policy: Path) -> None:
    with starting(policy, "--workers=2") as keyhole:
        keyhole.when(lambda: keyhole.has_made("keyhole-*/0.sock") and keyhole.has_made("keyhole-*/1.sock"))
        keyhole.process.kill()
        keyhole.process.wait()
        eventually(lambda: keyhole.left() == [])


def test_killed_while_the_shadow_is_made_it_leaves_nothing_either(policy: Path) -> None:
    with starting(policy) as keyhole:
        keyhole.when(lambda: keyhole.has_made("keyhole-*/shadow/base"))
        keyhole.process.kill()
        keyhole.process.communicate()
        eventually(lambda: keyhole.left() == [])
