"""The open file of an SQLite ledger, compared with the file that its path leads to now.

Guarantee: while a `HeldFile` is open, no other file can have the same device and inode. So `check_file_unchanged`
passes only if whoever opens the path now opens the same ledger. docs/proofs/accounting.md, theorem 5.
"""

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa

from accountant.errors import LedgerMoved

_BESIDE = ("-wal", "-shm")  # what SQLite keeps beside a file in WAL mode while somebody has it open
_Identity = tuple[int, int]


class HeldFile:
    """A connection that only keeps the ledger's file open, with the identity of each of its files."""

    def __init__(self, engine: sa.Engine, path: Path) -> None:
        found = _stat_file(str(path))
        before = (found.st_dev, found.st_ino)
        self._connection = engine.connect()
        try:
            self._connection.detach()  # the pool would close it one day
            if _identify_file(path) != before:
                raise LedgerMoved(_describe_other_holder(path))
            with self._connection.execution_options(keyhole_begin="BEGIN").begin():
                self._connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").close()
                opened = str(self._connection.exec_driver_sql("PRAGMA database_list").one()[2])
                schema = int(self._connection.exec_driver_sql("PRAGMA schema_version").one()[0])
        except BaseException:
            self._connection.close()
            raise
        self._files: dict[str, _Identity] = {str(path): before}
        self._path, self._bytes, self._schema = str(path), found.st_size, schema
        self._lock = threading.Lock()
        for suffix in _BESIDE:
            if os.path.exists(f"{opened}{suffix}"):
                self._files[f"{opened}{suffix}"] = _identify_file(Path(f"{opened}{suffix}"))

    def check_file_unchanged(self) -> None:
        """Raise `LedgerMoved` unless every path still leads to the file that was opened, with all its pages."""
        for path, identity in self._files.items():
            found = _stat_file(path)
            if (found.st_dev, found.st_ino) != identity:
                raise LedgerMoved(_describe_other_holder(Path(path)))
            if path == self._path and found.st_size != self._bytes:
                self._follow_size(Path(path))

    def _follow_size(self, path: Path) -> None:
        """Record the current size. Raise `LedgerMoved` if the file was cut off or overwritten by a shorter one.

        Only VACUUM may shorten it: that raises the schema's version and leaves no page out.
        """
        with self._lock:
            size = _stat_file(self._path).st_size
            schema = _read_schema_version(path, is_shorter=size < self._bytes)
            if size < self._bytes and (schema is None or schema <= self._schema):
                raise LedgerMoved(f"{path.name} was cut off under a running process")
            self._bytes, self._schema = size, self._schema if schema is None else schema

    def close(self) -> None:
        """Close the connection that keeps the file open."""
        self._connection.close()


def _identify_file(path: Path) -> _Identity:
    found = _stat_file(str(path))
    return found.st_dev, found.st_ino


def _stat_file(path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except FileNotFoundError:
        name = os.path.basename(path)
        raise LedgerMoved(
            f"{name} was deleted or moved away under a running process, which does not write into it any more"
        ) from None
    except OSError as error:
        raise LedgerMoved(f"{os.path.basename(path)} cannot be looked at ({error.strerror})") from None


def _read_schema_version(path: Path, *, is_shorter: bool) -> int | None:
    """Read the version of the file's schema through a new connection, which has no cached page.

    Return None if that fails, or if a shortened file (`is_shorter`) lacks pages.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)) as connection:
            if is_shorter and connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
                return None
            return int(connection.execute("PRAGMA schema_version").fetchone()[0])
    except sqlite3.Error:
        return None


def _describe_other_holder(path: Path) -> str:
    return f"{path.name} was replaced by another file under a running process, which does not write into the old one"
