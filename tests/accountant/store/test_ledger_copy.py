"""Copies of a ledger between databases: every row, the same chain, whole or not at all."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accountant.errors import LedgerError, LedgerMisuse, LedgerUnavailable, NoLedger
from accountant.ledger import Ledger
from accountant.store.integrity import TABLES
from accountant.store.ledger_copy import copy_ledger
from accountant.store.transaction import Transaction
from accountant.store.witness import Witness
from tests.accountant.conftest import now
from tests.accountant.store.test_witness import ask
from tests.accountant.verbs.test_verify_everything import write_everything

NewPlace = Callable[[str], str]


@pytest.fixture
def new_place(tmp_path: Path, new_database: Callable[[], str]) -> NewPlace:
    numbers = iter(range(9))
    return lambda kind: new_database() if kind == "postgresql" else f"sqlite:///{tmp_path}/copy{next(numbers)}.db"


def rows(url: str) -> dict[str, list[Any]]:
    with Ledger.open(url, clock=now, can_create=False) as ledger, ledger._journal.begin_log_read() as transaction:
        return {
            table: sorted(map(repr, transaction.read_rows(table, transaction.list_columns(table)))) for table in TABLES
        }


@pytest.mark.parametrize(
    ("first", "second"), [("sqlite", "postgresql"), ("postgresql", "sqlite"), ("sqlite", "sqlite")]
)
def test_a_copy_has_every_row_verifies_and_goes_on_under_the_same_witness(
    new_place: NewPlace, tmp_path: Path, first: str, second: str
) -> None:
    source, target, witness = new_place(first), new_place(second), Witness(tmp_path / "w")
    write_everything(source)
    with Ledger.open(source, clock=now, witness=witness) as original:
        newest = original.owner.find_newest_event()
    copy_ledger(source, target, timeout_ms=30_000)
    written = rows(target)
    assert written == rows(source)
    assert all(written.values())
    with Ledger.open(target, clock=now, witness=witness, can_create=False) as copy:
        assert copy.verify_everything() == newest[0]
        assert copy.owner.find_newest_event() == newest
        ask(copy)
    with pytest.raises(LedgerError, match="its witness has seen event"):
        Ledger.open(source, clock=now, witness=witness, can_create=False)  # it is the older one now


def test_nothing_is_copied_over_a_ledger_or_from_nowhere(new_place: NewPlace, tmp_path: Path) -> None:
    source, full = new_place("sqlite"), new_place("postgresql")
    for url in (source, full):
        with Ledger.open(url, clock=now) as ledger:
            ask(ledger)
    before = rows(full), rows(source)
    with pytest.raises(LedgerMisuse, match="not empty"):
        copy_ledger(source, full, timeout_ms=30_000)
    with pytest.raises(LedgerMisuse, match="onto itself"):
        copy_ledger(source, source, timeout_ms=30_000)
    assert (rows(full), rows(source)) == before
    with pytest.raises(NoLedger):
        copy_ledger(f"sqlite:///{tmp_path}/none.db", f"sqlite:///{tmp_path}/never.db", timeout_ms=30_000)
    assert not (tmp_path / "never.db").exists()
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_copy_that_fails_in_the_middle_leaves_nothing(
    new_place: NewPlace, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = new_place("sqlite"), new_place(kind)
    write_everything(source)
    insert = Transaction.insert_rows

    def fail_late(self: Transaction, table: str, columns: Any, found: Any) -> None:
        if table == TABLES[-1]:
            raise LedgerUnavailable("the disk is full")
        insert(self, table, columns, found)

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "insert_rows", fail_late)
        with pytest.raises(LedgerUnavailable):
            copy_ledger(source, target, timeout_ms=30_000)
    copy_ledger(source, target, timeout_ms=30_000)
    with Ledger.open(target, clock=now, can_create=False) as copy:
        assert copy.verify_everything() == len(rows(source)["events"])
