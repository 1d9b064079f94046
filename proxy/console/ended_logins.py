"""The records of logins that were ended early: one empty file for each, in a folder that all processes share.

Any process with the login secret accepts the same cookies. An ended login is therefore recorded in the secret's folder.
The file's name is the login's expiry time and a hash. No file is rewritten, so processes cannot lose each other's
records.

Guarantee: once `end_session` returns, no process over the same folder accepts the login, also after a restart. If no
folder can be written, only this process remembers it, and says so in the log.
"""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import structlog

from proxy.console.session_cookie import ConsoleSession

log = structlog.get_logger("keyhole.login")

SUFFIX = ".ended-logins"


class EndedLogins:
    """The record of ended logins, in the first writable one of some folders.

    Safe to share between threads and processes.
    """

    def __init__(self, folders: Sequence[Path] = (), *, clock: Callable[[], float] = time.time) -> None:
        self._folders = tuple(folders)
        self._clock = clock
        self._here: set[str] = set()

    def end_session(self, session: ConsoleSession) -> None:
        """Record the end of a session's login. Delete records of logins that have expired by now."""
        name, now = _name_file(session), self._clock()
        self._here.difference_update([one for one in tuple(self._here) if _read_end(one) <= now])
        self._here.add(name)
        for folder in self._folders:
            with suppress(OSError):
                folder.mkdir(mode=0o700, exist_ok=True)
                for one in [one for one in folder.iterdir() if _read_end(one.name) <= now]:
                    one.unlink(missing_ok=True)
                (folder / name).touch(mode=0o600)
                _sync_folder(folder)
                return
        if self._folders:
            log.warning("a logout cannot be kept", path=str(self._folders[0]))

    def has_ended(self, session: ConsoleSession) -> bool:
        """Return True if a session's login was ended, or if the record cannot be read."""
        name = _name_file(session)
        return name in self._here or any(_exists(folder / name) for folder in self._folders)


def _name_file(session: ConsoleSession) -> str:
    return f"{session.until}.{sha256(session.login.encode()).hexdigest()[:32]}"


def _read_end(name: str) -> float:
    until = name.partition(".")[0]
    return float(until) if until.isascii() and until.isdigit() else float("inf")  # files of other origin stay


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
