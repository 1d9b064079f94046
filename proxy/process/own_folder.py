"""Temporary folders of one process, which outlive it only until the next one starts.

Guarantee: a folder whose process lives is never removed by another; what a killed one left is, by whoever makes the
next, if it belongs to the same user. The system ends the lock that says so, however a process ends.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "keyhole-"
_LOCK = "owner.lock"  # held by the process that made the folder; children do not inherit it


@contextmanager
def make_own_folder() -> Iterator[Path]:
    """Make a folder that nobody else may enter, in the system's temporary folder, while the block runs.

    Raise OSError if the folder cannot be made.
    """
    _remove_abandoned_folders(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name:
        folder = Path(name)
        descriptor = os.open(folder / f"{_LOCK}.new", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            (folder / f"{_LOCK}.new").rename(folder / _LOCK)  # nobody sees it before it is locked
            yield folder
        finally:
            os.close(descriptor)


def _remove_abandoned_folders(where: Path) -> None:
    for folder in where.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # somebody else's, no folder, without a lock, or removed by another at this moment
            if folder.is_symlink() or folder.lstat().st_uid != os.geteuid():
                continue
            descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)
