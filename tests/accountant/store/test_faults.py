"""The ledger's storage fails at every step: each leaves a defined state, a clear error, and no under-count.

SIGKILL at every step stands in `test_killed.py`, `test_processes.py` and `test_parallel_machine.py`, a PostgreSQL with
a full disk in `test_full_postgres.py`, what analysts are told of all this in
`tests/end_to_end/faults/test_ledger_faults.py`.
"""

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from accountant.charges import Spent
from accountant.errors import LedgerMisuse, LedgerUnavailable, OverBudget
from accountant.ledger import Ledger
from tests.accountant.conftest import now
from tests.accountant.examples import charge, limits
from tests.accountant.outage import outage
from tests.children import forked

ONE = Spent.from_uniform(1, unit_epsilon_nano=0)


@pytest.fixture
def on_postgres(new_database: Callable[[], str]) -> str:
    return new_database()


def name_of(url: str) -> str:
    return str(sa.make_url(url).database)


def test_a_full_disk_refuses_forgets_nothing_and_heals(tmp_path: Path) -> None:
    """Nothing that was refused for want of room is written, all that was granted before counts, and more can follow."""
    file = tmp_path / "ledger.db"
    done = forked.run(
        [sys.executable, "-m", "tests.accountant.full_disk", str(file)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    story = json.loads(done.stdout)
    granted = story["granted"]
    assert story["reserve refused"]
    assert story["commit refused"]
    assert story["open"]
    assert story["events"] == len(granted)
    assert story["left"] == 10**6 - 3 - (len(granted) - 1)
    assert story["left afterwards"] == story["left"] + 2
    with Ledger.open(f"sqlite:///{file}", clock=now) as ledger:
        assert ledger.verify_everything() == len(granted) + 1
        assert [one.id for one in ledger.list_open_reservations()] == granted[1:]


def test_an_outage_before_the_reservation_writes_nothing(on_postgres: str, postgres_url: str) -> None:
    with Ledger.open(on_postgres, clock=now) as ledger:
        with outage(postgres_url, name_of(on_postgres)):
            with pytest.raises(LedgerUnavailable) as refusal:
                ledger.reserve(charge(3), limits(4))
            assert name_of(on_postgres) not in str(refusal.value)
            with pytest.raises(LedgerUnavailable):
                Ledger.open(on_postgres, clock=now)
        assert ledger.verify_everything() == 0
        assert ledger.find_headroom(charge(0), limits(4)).epsilon_nano == 4


def test_an_outage_between_reservation_and_commit_leaves_the_reservation(on_postgres: str, postgres_url: str) -> None:
    with Ledger.open(on_postgres, clock=now) as ledger, Ledger.open(on_postgres, clock=now) as another:
        reservation = ledger.reserve(charge(3), limits(4))
        with outage(postgres_url, name_of(on_postgres)), pytest.raises(LedgerUnavailable):
            ledger.commit(reservation, ONE, b"answer")
        for one in (ledger, another):
            assert [item.id for item in one.list_open_reservations()] == [reservation.id]
            assert one.find_answer("q1", "v1", analyst="ann") is None
            with pytest.raises(OverBudget):
                one.reserve(charge(2), limits(4))
        another.owner.settle_reservation(reservation.id, untouched=False, by="the owner", why="its answer was withheld")
        with pytest.raises(LedgerMisuse):
            ledger.commit(reservation, ONE, b"answer")
        assert ledger.find_headroom(charge(0), limits(4)).epsilon_nano == 1


def test_an_outage_after_the_commit_loses_nothing(on_postgres: str, postgres_url: str) -> None:
    with Ledger.open(on_postgres, clock=now) as ledger:
        ledger.commit(ledger.reserve(charge(3), limits(4)), ONE, b"answer")
        with outage(postgres_url, name_of(on_postgres)), pytest.raises(LedgerUnavailable):
            ledger.find_answer("q1", "v1", analyst="ann")
        stored = ledger.find_answer("q1", "v1", analyst="ann")
        assert stored is not None
        assert stored.answer == b"answer"
        assert ledger.find_headroom(charge(0), limits(4)).epsilon_nano == 3


def test_connections_cut_in_the_middle_of_verbs_leave_what_was_told_or_more(
    on_postgres: str, postgres_url: str
) -> None:
    """A verb that fails may have been written: it then counts. None that was told to have succeeded is missing."""
    told: dict[str, int] = {}
    unknown = 0
    with Ledger.open(on_postgres, clock=now) as ledger:
        stop = threading.Event()

        def cut() -> None:
            while not stop.wait(0.05):
                with outage(postgres_url, name_of(on_postgres)):
                    pass

        cutter = threading.Thread(target=cut)
        cutter.start()
        try:
            while unknown < 4:
                try:
                    reservation = ledger.reserve(charge(2), limits(10**6))
                    told[reservation.id] = 2
                    ledger.commit(reservation, ONE, None)
                    told[reservation.id] = 1
                except LedgerUnavailable:
                    unknown += 1
        finally:
            stop.set()
            cutter.join()
        ledger.verify_everything()
        still_open = {one.id for one in ledger.list_open_reservations()}
        assert not {one for one, cost in told.items() if cost == 1} & still_open
        spent = 10**6 - ledger.find_headroom(charge(0), limits(10**6)).epsilon_nano
        written_unsaid = still_open - set(told)
        assert len(written_unsaid) <= unknown
        committed_unsaid = {one for one, cost in told.items() if cost == 2} - still_open
        assert spent == sum(told.values()) + 2 * len(written_unsaid) - len(committed_unsaid)


def test_a_ledger_whose_writer_hangs_refuses_and_writes_nothing(on_postgres: str) -> None:
    """Somebody holds the writers' queue: the next one gives up in the end, and what it wanted never counts."""
    with Ledger.open(on_postgres, clock=now, timeout_ms=200) as ledger:
        engine = sa.create_engine(sa.make_url(on_postgres).set(drivername="postgresql+psycopg"))
        with engine.begin() as holder:
            holder.execute(sa.text("SELECT id FROM writer FOR UPDATE"))
            with pytest.raises(LedgerUnavailable):
                ledger.reserve(charge(3), limits(4))
            assert ledger.find_headroom(charge(0), limits(4)).epsilon_nano == 4
        engine.dispose()
        ledger.reserve(charge(3), limits(4))
        assert ledger.verify_everything() == 1
