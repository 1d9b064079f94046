"""A copy of a whole ledger in another database: SQLite or PostgreSQL on either side, every row unchanged.

Guarantee: the copy has the same chain of events, so a witness of the original's last event finds it in the copy. While
rows are copied nobody can write to the original. The copy is there whole or not at all: docs/proofs/accounting.md,
theorem 11.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from accountant.errors import LedgerMisuse, LedgerUnavailable
from accountant.store.deadline import limit_waits
from accountant.store.integrity import TABLES
from accountant.store.store import LedgerStore, find_sqlite_file
from accountant.store.transaction import Transaction

_LONGEST_S = 3600.0  # of a server that stores the rows of millions of events
_BATCH_ROWS = 500  # memory against round trips; a row of a large question has some megabytes
_FIRST = ("events", "domains")  # what others refer to
_MADE = ("writer",)  # rows that the migrations make
Row = Sequence[Any]


def copy_ledger(source: str, target: str, *, timeout_ms: int) -> None:
    """Copy the ledger at one SQLAlchemy URL to another, which has no ledger or an empty one.

    Raise `LedgerMisuse` if the target has rows or is the source. Raise `NoLedger`, `LedgerUnavailable`.
    """
    file = find_sqlite_file(sa.make_url(target))
    new = file is not None and not file.exists()
    original = LedgerStore.open(source, timeout_ms=timeout_ms, can_create=False)
    try:
        if not new and file is not None and _is_same(file, find_sqlite_file(sa.make_url(source))):
            raise LedgerMisuse("a ledger is not copied onto itself")
        copy = LedgerStore.open(target, timeout_ms=timeout_ms)
        try:
            _copy_tables(original, copy)
        finally:
            copy.close()
    except BaseException:
        if new and file is not None:
            with suppress(OSError):
                file.unlink(missing_ok=True)
        raise
    finally:
        original.close()


def _is_same(file: Path, other: Path | None) -> bool:
    return other is not None and file.samefile(other)


def _copy_tables(original: LedgerStore, copy: LedgerStore) -> None:
    with limit_waits(_LONGEST_S):
        # whoever writes to the original meanwhile waits, and is refused if that takes too long
        with original.begin_write(original.make_deadline()) as read, copy.begin_write(copy.make_deadline()) as write:
            if any(map(write.has_rows, _order_tables())):
                raise LedgerMisuse("the target has a ledger that is not empty, and nothing was copied")
            written = {table: _copy_rows(read, write, table) for table in _order_tables()}
        with copy.begin_read(copy.make_deadline()) as again:
            for table, expected in written.items():
                found = _RowsDigest()
                for row in again.read_rows(table, again.list_columns(table)):
                    found.add(row)
                if found != expected:
                    raise LedgerUnavailable(f"the copy's table {table} is not what was written")


def _order_tables() -> tuple[str, ...]:
    return (*_FIRST, *(table for table in TABLES if table not in (*_FIRST, *_MADE)))


@dataclass(slots=True)
class _RowsDigest:
    """The number of rows and the sum of their SHA-256 digests. Both are independent of the rows' order."""

    count: int = 0
    total: int = 0

    def add(self, row: Row) -> None:
        """Count a row."""
        self.count += 1
        self.total = (self.total + int.from_bytes(sha256(repr(tuple(row)).encode()).digest(), "big")) % (1 << 256)


def _copy_rows(read: Transaction, write: Transaction, table: str) -> _RowsDigest:
    """Copy the rows of a table. Return their number and digest."""
    columns = read.list_columns(table)
    if columns != write.list_columns(table):
        raise LedgerUnavailable(f"the table {table} has other columns than a ledger of this version")
    found, batch = _RowsDigest(), []
    for row in read.read_rows(table, columns):
        found.add(row)
        batch.append(row)
        if len(batch) == _BATCH_ROWS:
            write.insert_rows(table, columns, batch)
            batch = []
    if batch:
        write.insert_rows(table, columns, batch)
    return found
