"""The file of an SQLite ledger as it was opened, held against what its path leads to now.

Guarantee: while a `HeldFile` is open, no other file can have the same device and inode. So `check` passes only if
whoever opens the path now opens the same ledger. docs/proofs/accounting.md, theorem 5.
"""

import os
from pathlib import Path

import sqlalchemy as sa

from accountant.errors import LedgerMoved

_BESIDE = ("-wal", "-shm")  # what SQLite keeps beside a file in WAL mode while somebody has it open
_Identity = tuple[int, int]


class HeldFile:
    """A connection that does nothing but keep the file open, and the identity of each file that belongs to it."""

    def __init__(self, engine: sa.Engine, path: Path) -> None:
        found = _look_at(path)
        before = (found.st_dev, found.st_ino)
        self._connection = engine.connect()
        try:
            self._connection.detach()  # the pool would close it one day
            if _identify(path) != before:
                raise LedgerMoved(_describe_other(path))
            with self._connection.execution_options(keyhole_begin="BEGIN").begin():
                self._connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").close()
                opened = str(self._connection.exec_driver_sql("PRAGMA database_list").one()[2])
        except BaseException:
            self._connection.close()
            raise
        self._files: dict[str, _Identity] = {str(path): before}
        self._path, self._least_bytes = str(path), found.st_size
        for suffix in _BESIDE:
            if os.path.exists(f"{opened}{suffix}"):
                self._files[f"{opened}{suffix}"] = _identify(Path(f"{opened}{suffix}"))

    def check(self) -> None:
        """Raise `LedgerMoved` unless every path still leads to the file that was opened, which never gets shorter."""
        least_bytes = self._least_bytes  # before the look: other threads look as well
        for path, identity in self._files.items():
            found = _look_at(Path(path))
            if (found.st_dev, found.st_ino) != identity:
                raise LedgerMoved(_describe_other(Path(path)))
            if path == self._path and found.st_size < least_bytes:
                raise LedgerMoved(f"{Path(path).name} was cut off under a running process")
            if path == self._path:
                self._least_bytes = found.st_size

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()


def _identify(path: Path) -> _Identity:
    found = _look_at(path)
    return found.st_dev, found.st_ino


def _look_at(path: Path) -> os.stat_result:
    try:
        return os.stat(path)
    except FileNotFoundError:
        raise LedgerMoved(
            f"{path.name} was deleted or moved away under a running process, which does not write into it any more"
        ) from None
    except OSError as error:
        raise LedgerMoved(f"{path.name} cannot be looked at ({error.strerror})") from None


def _describe_other(path: Path) -> str:
    return f"{path.name} was replaced by another file under a running process, which does not write into the old one"
