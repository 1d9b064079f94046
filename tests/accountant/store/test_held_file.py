"""An SQLite ledger whose file goes away under an open ledger: every verb is refused, and nothing is granted unseen."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from accountant.charges import Spent
from accountant.errors import LedgerError, LedgerMoved, LedgerUnavailable
from accountant.ledger import Ledger
from tests.accountant.conftest import now
from tests.accountant.examples import charge, limits

ONE = Spent.from_uniform(1, unit_epsilon_nano=0)


def delete(file: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{file}{suffix}").unlink()


def delete_and_make_anew(file: Path) -> None:
    """On many file systems the new file has the old one's inode, unless somebody has that open."""
    delete(file)
    file.touch()


def replace_by_a_backup(file: Path) -> None:
    shutil.copy(file.with_name("backup"), file.with_name("new"))
    file.with_name("new").rename(file)


def cut_off(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def delete_the_log_of_writes(file: Path) -> None:
    Path(f"{file}-wal").unlink()


def delete_the_index_of_locks(file: Path) -> None:
    Path(f"{file}-shm").unlink()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (delete, "ledger.db was deleted"),
        (delete_and_make_anew, "ledger.db was replaced"),
        (replace_by_a_backup, "ledger.db was replaced"),
        (cut_off, "ledger.db was cut off"),
        (delete_the_log_of_writes, "ledger.db-wal was deleted"),
        (delete_the_index_of_locks, "ledger.db-shm was deleted"),
    ],
)
def test_no_verb_works_on_a_file_that_is_not_at_its_path(
    tmp_path: Path, change: Callable[[Path], None], told: str
) -> None:
    file, heard = tmp_path / "ledger.db", list[LedgerError]()
    with Ledger.open(f"sqlite:///{file}", clock=now) as ledger:
        ledger.reserve(charge(1), limits())
    shutil.copy(file, file.with_name("backup"))
    with Ledger.open(f"sqlite:///{file}", clock=now, on_fault=heard.append) as ledger:
        held = ledger.reserve(charge(3), limits())
        change(file)
        verbs: tuple[Callable[[], object], ...] = (
            lambda: ledger.reserve(charge(1, question="q2"), limits()),
            lambda: ledger.commit(held, ONE, b"answer"),
            lambda: ledger.release(held),
            lambda: ledger.find_answer("q1", "v1", analyst="ann"),
            lambda: ledger.find_headroom(charge(0), limits()),
            lambda: ledger.check_writable(room_bytes=1),
            ledger.verify_everything,
        )
        for verb in verbs:
            heard.clear()
            with pytest.raises(LedgerMoved, match=told):
                verb()
            assert [str(fault) for fault in heard][:1] == [str(heard[0])]
            assert told in str(heard[0])


def test_a_ledger_that_goes_while_it_is_written_grants_nothing(tmp_path: Path) -> None:
    """The check after the commit: what was written went into a file that nobody will open again."""
    file = tmp_path / "ledger.db"
    with Ledger.open(f"sqlite:///{file}", clock=now) as ledger:
        with pytest.raises(LedgerMoved), ledger._journal.begin_write():
            delete(file)
        with pytest.raises(LedgerMoved):
            ledger.reserve(charge(1), limits())


def test_a_file_that_is_put_back_is_the_ledger_again(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    with Ledger.open(f"sqlite:///{file}", clock=now) as ledger:
        ledger.reserve(charge(3), limits())
        file.rename(tmp_path / "elsewhere")
        with pytest.raises(LedgerMoved):
            ledger.find_headroom(charge(0), limits())
        (tmp_path / "elsewhere").rename(file)
        ledger.reserve(charge(1, question="q2"), limits())
        assert ledger.verify_everything() == 2


def test_a_file_that_vacuum_makes_shorter_is_the_ledger_still(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    with Ledger.open(f"sqlite:///{file}", clock=now) as ledger, closing(sqlite3.connect(file)) as there:
        there.executescript("CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(1000000)); DROP TABLE filler")
        there.execute("PRAGMA wal_checkpoint").close()
        ledger.reserve(charge(1), limits())
        before = file.stat().st_size
        there.execute("VACUUM")
        there.execute("PRAGMA wal_checkpoint").close()
        assert file.stat().st_size < before
        ledger.reserve(charge(1, question="q2"), limits())
        assert ledger.verify_everything() == 2
        cut_off(file)
        with pytest.raises(LedgerMoved, match=r"ledger\.db was cut off"):
            ledger.reserve(charge(1, question="q3"), limits())


def test_a_shorter_backup_that_is_written_over_the_open_file_is_noticed(tmp_path: Path) -> None:
    file, backup = tmp_path / "ledger.db", tmp_path / "backup"
    with Ledger.open(f"sqlite:///{file}", clock=now) as ledger, closing(sqlite3.connect(file)) as there:
        with closing(sqlite3.connect(backup)) as copy:
            there.backup(copy)
        there.executescript("CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(1000000)); DROP TABLE filler")
        ledger.reserve(charge(1), limits())
        there.execute("PRAGMA wal_checkpoint").close()
        ledger.reserve(charge(1, question="q2"), limits())
        file.write_bytes(backup.read_bytes())
        for _ in range(2):
            with pytest.raises(LedgerError, match=r"cut off|is gone|malformed|not a database"):
                ledger.reserve(charge(1, question="q3"), limits())


def test_a_backup_that_is_written_over_the_open_file_is_noticed(tmp_path: Path) -> None:
    """The file stays the same one, and what a process remembers of its pages says that all is well."""
    file, backup = tmp_path / "ledger.db", tmp_path / "backup"
    with Ledger.open(f"sqlite:///{file}", clock=now) as ledger:
        ledger.reserve(charge(1), limits())
        with closing(sqlite3.connect(file)) as there, closing(sqlite3.connect(backup)) as copy:
            there.backup(copy)
        ledger.reserve(charge(1, question="q2"), limits())
        with closing(sqlite3.connect(file)) as there:
            there.execute("PRAGMA wal_checkpoint")
        content = backup.read_bytes().ljust(file.stat().st_size, b"\0")
        with file.open("r+b") as opened:
            opened.write(content)
        for _ in range(2):
            with pytest.raises(LedgerUnavailable, match="event 2 is gone"):
                ledger.reserve(charge(1, question="q3"), limits())
            with pytest.raises(LedgerUnavailable, match="event 2 is gone"):
                ledger.check_writable(room_bytes=1)
