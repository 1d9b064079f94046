"""The folder beside the pins in which each serving process has a file that names the pins it uses.

Guarantee: a process is counted only while it runs. It holds a lock on its file, which the system releases when the
process ends. The next reader removes the file of a killed process.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from planner.policy.file import Policy

_PROCESS = ".process"
_LOOK_S = 0.05  # between looks of `keyhole refresh`, whose owner waits


@dataclass(frozen=True, slots=True)
class Followers:
    """The state of the serving processes after new pins: how many use them, and how many have not reported.

    `following_count` use the newest pins, `silent_count` have not reported yet. `unread_tables` are tables of which
    some process cannot read the current version.
    """

    following_count: int
    silent_count: int
    unread_tables: tuple[str, ...]


def find_serving_folder(policy: Policy) -> Path:
    """Return the folder of a policy's processes."""
    return policy.path.with_suffix(".serving")


def identify_pins(path: Path) -> str:
    """Return a name for the current content of the pin file, or "" if there is no file."""
    with suppress(FileNotFoundError):
        found = path.stat()
        return f"{found.st_ino} {found.st_mtime_ns}"
    return ""


class Announcement:
    """One serving process's file in the folder."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, *, pins: str, unread: tuple[str, ...]) -> None:
        """Write which pins this process uses, and the tables whose current version it cannot read.

        Raise OSError if the folder cannot be written.
        """
        content = json.dumps({"pins": pins, "unread": list(unread)}).encode()
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, content, 0)


@contextmanager
def announce(folder: Path) -> Iterator[Announcement]:
    """Register this process as serving during the block. Raise OSError if the folder cannot be written."""
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{uuid4().hex}{_PROCESS}"
    descriptor = os.open(path.with_suffix(".new"), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        path.with_suffix(".new").rename(path)  # nobody sees it before it is locked
        yield Announcement(descriptor)
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def wait_for_processes(folder: Path, *, pins: str, seconds: float) -> Followers:
    """Wait until every serving process uses these pins, for at most `seconds`. Return the counts."""
    until = time.monotonic() + seconds
    while True:
        said = list(_read_living(folder))
        following = [one for one in said if one.get("pins") == pins]
        if len(following) == len(said) or time.monotonic() >= until:
            unread = sorted({str(table) for one in following for table in _list_unread_tables(one)})
            return Followers(len(following), len(said) - len(following), tuple(unread))
        time.sleep(_LOOK_S)


def _list_unread_tables(said: dict[str, object]) -> list[object]:
    unread = said.get("unread")
    return unread if isinstance(unread, list) else []


def _read_living(folder: Path) -> Iterator[dict[str, object]]:
    for path in sorted(folder.glob(f"*{_PROCESS}")):
        with suppress(OSError):  # gone at this moment, or another user's
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()  # its process has ended
            except BlockingIOError:
                yield _parse(os.read(descriptor, 1_000_000))
            finally:
                os.close(descriptor)


def _parse(content: bytes) -> dict[str, object]:
    """Parse a process's report. Return an empty one while the process is still writing it."""
    with suppress(ValueError):
        said = json.loads(content)
        return said if isinstance(said, dict) else {}
    return {}
