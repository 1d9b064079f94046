"""The witness of a ledger: what it notices, that it never leads its ledger, and that no crash makes it refuse one."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from accountant.errors import LedgerBehind, LedgerError, LedgerUnavailable, NoLedger
from accountant.events.events import GENESIS
from accountant.ledger import Ledger
from accountant.store.witness import NOTHING, Mark, Witness
from tests.accountant.conftest import now
from tests.accountant.examples import charge, limits

LARGE = limits(10**12, per_unit=None)


def ask(ledger: Ledger, times: int = 1) -> None:
    for _ in range(times):
        ledger.release(ledger.reserve(charge(1), LARGE))


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    return Witness(tmp_path / "elsewhere.ledger-witness")


def opened(url: str, witness: Witness | None, trust: bool = False) -> Ledger:
    return Ledger.open(url, clock=now, witness=witness, can_create=False, is_trusted=trust)


def test_the_witness_knows_each_event_once_it_is_durable(ledger_url: str, witness: Witness) -> None:
    with Ledger.open(ledger_url, clock=now, witness=witness) as ledger:
        assert witness.read() is None
        for number in (2, 4, 6):
            ask(ledger)
            assert witness.read() == Mark(*ledger.owner.find_newest_event())
            assert ledger.known_event_count == number
    assert witness.path.stat().st_mode & 0o077 == 0
    assert len(witness.path.read_bytes()) < 300


def test_a_ledger_that_lost_events_is_not_opened_until_its_owner_accepts_that(
    ledger_url: str, new_database: Callable[[], str], tmp_path: Path, witness: Witness
) -> None:
    """An older copy, another ledger, an empty one and none: on both databases, by the witness alone."""
    with Ledger.open(ledger_url, clock=now, witness=witness) as ledger:
        ask(ledger, 2)
    older = new_database() if ledger_url.startswith("postgresql") else f"sqlite:///{tmp_path}/older.db"
    with Ledger.open(older, clock=now) as another:
        with pytest.raises(LedgerBehind, match="ends at event 0, and its witness has seen event 4"):
            opened(older, witness)
        ask(another, 3)
    with pytest.raises(LedgerBehind, match="event 4 is another one"):
        opened(older, witness)
    empty = new_database() if ledger_url.startswith("postgresql") else f"sqlite:///{tmp_path}/none.db"
    with pytest.raises(NoLedger):
        opened(empty, witness)
    assert not (tmp_path / "none.db").exists()
    with opened(older, witness, trust=True) as accepted:
        ask(accepted)
        with pytest.raises(LedgerBehind):
            accepted.check_witness()
        accepted.accept_current_log()
        assert witness.read() == Mark(*accepted.owner.find_newest_event())
        ask(accepted)
    with opened(older, witness) as ledger:
        assert ledger.known_event_count == 10
    with pytest.raises(LedgerBehind):
        opened(ledger_url, witness)


def test_another_process_does_not_write_into_a_ledger_that_was_set_back(
    new_database: Callable[[], str], postgres_url: str, witness: Witness
) -> None:
    """PostgreSQL restored from a dump under two processes, to an event that one of them has never looked beyond."""
    url = new_database()
    with (
        Ledger.open(url, clock=now, witness=witness) as busy,
        Ledger.open(url, clock=now, witness=witness) as idle,
    ):
        ask(idle)
        ask(busy, 2)
        idle._journal._store._engine.dispose()
        name = str(sa.make_url(url).database)
        with psycopg.connect(postgres_url, dbname=name, autocommit=True) as owner:
            owner.execute("ALTER TABLE events DISABLE TRIGGER ALL")
            owner.execute("DELETE FROM events WHERE id > 3")
            owner.execute("ALTER TABLE events ENABLE TRIGGER ALL")
        for ledger in (idle, busy):
            with pytest.raises(LedgerUnavailable):
                ask(ledger)
            with pytest.raises(LedgerUnavailable):
                ledger.check_writable(room_bytes=1)


def test_the_witness_lags_behind_a_crash_and_never_leads(ledger_url: str, witness: Witness) -> None:
    """Whatever prefix of the marks a crash leaves, the ledger opens, and the witness is brought up to date."""
    marks = [NOTHING]
    with Ledger.open(ledger_url, clock=now, witness=witness) as ledger:
        for _ in range(3):
            ask(ledger)
            marks.append(Mark(*ledger.owner.find_newest_event()))
    for mark in marks:
        witness.replace_mark(mark)
        with opened(ledger_url, witness) as ledger:
            assert ledger.known_event_count == 6
        assert witness.read() == marks[-1]


def test_processes_share_a_witness_whose_mark_only_grows(ledger_url: str, witness: Witness) -> None:
    seen: list[int] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            found = witness.read()
            seen.append(0 if found is None else found.event_number)

    def work() -> None:
        with opened(ledger_url, witness) as ledger:
            ask(ledger, 8)

    with Ledger.open(ledger_url, clock=now, witness=witness) as first:
        ask(first)
        looking = threading.Thread(target=look)
        working = [threading.Thread(target=work) for _ in range(3)]
        for thread in (looking, *working):
            thread.start()
        for thread in working:
            thread.join()
        done.set()
        looking.join()
        assert seen == sorted(seen)
        ask(first)
        assert first.known_event_count == 52
        assert witness.read() == Mark(*first.owner.find_newest_event())


@given(cut=st.integers(0, 118), garbage=st.binary(max_size=130), first=st.booleans())
def test_a_line_that_was_written_in_part_leaves_the_other(
    tmp_path_factory: pytest.TempPathFactory, cut: int, garbage: bytes, first: bool
) -> None:
    witness = Witness(tmp_path_factory.mktemp("torn") / "w")
    witness.replace_mark(Mark(7, "a" * 64))
    assert witness.record_event(Mark(8, "b" * 64))
    content = bytearray(witness.path.read_bytes())
    at = (0 if first else len(content) // 2) + cut
    content[at : at + len(garbage[: len(content) // 2 - cut])] = garbage[: len(content) // 2 - cut]
    witness.path.write_bytes(content)
    assert witness.read() in (Mark(7, "a" * 64), Mark(8, "b" * 64))


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\0" * 238, f"{9:020} {GENESIS} {'0' * 16}\n".encode() * 2])
def test_a_file_that_keyhole_did_not_write_is_no_word_for_an_older_ledger(
    ledger_url: str, witness: Witness, content: bytes
) -> None:
    with Ledger.open(ledger_url, clock=now, witness=witness) as ledger:
        ask(ledger)
    witness.path.write_bytes(content)
    with pytest.raises(LedgerUnavailable, match="not what Keyhole wrote"):
        opened(ledger_url, witness)


def test_a_witness_that_cannot_be_written_is_told_and_stops_nobody(ledger_url: str, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    witness, heard = Witness(tmp_path / "gone" / "w"), list[LedgerError]()
    with Ledger.open(ledger_url, clock=now, witness=witness, on_fault=heard.append) as ledger:
        shutil.rmtree(tmp_path / "gone")
        ask(ledger)
        assert {str(fault) for fault in heard} == {"the ledger's witness w cannot be written"}
        assert ledger.known_event_count == 2
