"""Each failure of the storage is told by its cause, and none that leaves the log whole as a broken ledger."""

import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from accountant.errors import LedgerUnavailable, StorageFailed, StorageFull
from accountant.ledger import Ledger
from tests.accountant.conftest import now
from tests.accountant.examples import charge, limits

_OPEN = """
import sys
from datetime import UTC, datetime
from accountant.errors import LedgerError
from accountant.ledger import Ledger
try:
    Ledger.open(sys.argv[1], clock=lambda: datetime.now(UTC), can_create=False)
except LedgerError as error:
    print(type(error).__name__, error)
"""
_LATE = r"others held its lock for too long|its server did not answer in time"
_INDEX_BYTES = 32 * 1024  # of SQLite's index of locks, the first file that a full disk has no room for


def test_a_disk_without_room_for_the_index_of_locks_is_full(tmp_path: Path) -> None:
    """The smallest mount: SQLite says neither that the disk is full nor which file it could not make."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    with Ledger.open(url, clock=now) as ledger:
        ledger.reserve(charge(1), limits())

    def leave_no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (_INDEX_BYTES // 2, _INDEX_BYTES // 2))

    command = [sys.executable, "-c", _OPEN, url]
    ran = subprocess.run(command, preexec_fn=leave_no_room, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("StorageFull the ledger's storage failed: its disk is full (")
    with Ledger.open(url, clock=now, can_create=False) as ledger:
        assert ledger.verify_everything() == 1


def no_folder(path: Path) -> None:
    path.parent.rmdir()


def no_file(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (no_folder, "it or its folder is gone (FileNotFoundError)"),
        (no_file, "its file, or one beside it, cannot be opened or made (OperationalError, SQLITE_CANTOPEN)"),
    ],
)
def test_a_file_that_cannot_be_made_is_named_by_its_cause(
    tmp_path: Path, make: Callable[[Path], None], told: str
) -> None:
    (tmp_path / "folder").mkdir()
    path = tmp_path / "folder" / "ledger.db"
    make(path)
    with pytest.raises(StorageFailed) as failed:
        Ledger.open(f"sqlite:///{path}", clock=now)
    assert str(failed.value) == f"the ledger's storage failed: {told}"


def test_a_lock_that_others_hold_is_no_broken_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with (
        Ledger.open(f"sqlite:///{path}", clock=now, timeout_ms=100) as ledger,
        closing(sqlite3.connect(path, isolation_level=None)) as another,
    ):
        another.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageFailed, match=r"others held its lock for too long .*SQLITE_BUSY"):
            ledger.reserve(charge(1), limits())
        another.execute("ROLLBACK")
        ledger.reserve(charge(1), limits())


def test_a_server_that_is_not_there_or_lets_nobody_in_is_no_broken_ledger(
    new_database: Callable[[], str], postgres_url: str
) -> None:
    with pytest.raises(StorageFailed, match="its server cannot be reached, or the connection is gone"):
        Ledger.open("postgresql://nobody@127.0.0.1:1/none", clock=now, timeout_ms=2_000)
    url = new_database()
    with Ledger.open(url, clock=now, timeout_ms=500) as ledger:
        ledger.reserve(charge(1), limits())
        with psycopg.connect(url) as another:
            another.execute("SELECT * FROM writer FOR UPDATE")
            with pytest.raises(StorageFailed, match=_LATE):
                ledger.reserve(charge(1, question="q2"), limits())
        with psycopg.connect(postgres_url, autocommit=True) as owner:
            owner.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [urlsplit(url).path[1:]]
            )
        ledger.reserve(charge(1, question="q2"), limits())
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("ALTER TABLE writer RENAME TO elsewhere")
        with pytest.raises(StorageFailed, match=r"a table of it is gone \(.*, 42P01\)"):
            ledger.reserve(charge(1, question="q3"), limits())


def test_a_damaged_file_is_a_broken_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(b"nothing " * 1_000)
    with pytest.raises(LedgerUnavailable, match="its file is no database") as failed:
        Ledger.open(f"sqlite:///{path}", clock=now)
    assert not isinstance(failed.value, StorageFailed | StorageFull)
