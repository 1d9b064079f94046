"""A storage that hangs instead of failing: whoever reads waits for no writer, and nobody waits without end.

Nothing here measures time: what must not wait ends while the cause still stands.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from accountant.charges import Spent
from accountant.errors import LedgerUnavailable
from accountant.ledger import Ledger
from tests.accountant.conftest import now
from tests.accountant.examples import charge, limits
from tests.effort import PATIENCE_S
from tests.worlds.house import eventually, new_database
from tests.worlds.stopped import Server, locked_file, own_server, partition

PATIENT_MS = 1000 * PATIENCE_S
HURRIED_MS = 1_000
ONE = Spent.from_uniform(1, unit_epsilon_nano=0)
READERS: tuple[Callable[[Ledger], object], ...] = (
    lambda ledger: ledger.find_headroom(charge(0), limits(4)).epsilon_nano,
    lambda ledger: ledger.report_balances(limits(4), analyst="ann").unit_spent_nano,
    lambda ledger: ledger.find_answer("q1", "v1", analyst="ann", once_within=timedelta(seconds=1)),
    lambda ledger: len(ledger.read_history(analyst="ann")),
    lambda ledger: len(ledger.list_open_reservations()),
    lambda ledger: ledger.is_approved("q1"),
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with own_server() as started:
        yield started


@pytest.fixture
def on_own_server(server: Server) -> Iterator[str]:
    with new_database(server.url) as url:
        yield url


@contextmanager
def at_next_commit(ledger: Ledger, happen: Callable[[], None]) -> Iterator[None]:
    """Something happens when the next transaction of the block has been written, and is to be committed."""
    engine = ledger._journal._store._engine

    def tell(_: sa.Connection) -> None:
        happen()

    sa.event.listen(engine, "commit", tell, once=True)
    yield


def test_who_reads_waits_for_no_writer_that_waits(tmp_path: Path) -> None:
    """Another process holds the writer's place, and a thread of this one waits for it: everything is read meanwhile."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    with ExitStack() as open_:
        ledger = open_.enter_context(Ledger.open(url, clock=now, timeout_ms=PATIENT_MS))
        ledger.commit(ledger.reserve(charge(3), limits(4)), ONE, b"answer")
        threads = open_.enter_context(ThreadPoolExecutor())
        with locked_file(url):
            writer = threads.submit(ledger.reserve, charge(2, question="q2"), limits(4))
            eventually(ledger._journal._writers.locked)
            readers = [threads.submit(read, ledger) for read in READERS]
            assert [reader.result() for reader in readers[:1]] == [3]
            for reader in readers:
                reader.result()
            assert not writer.done()
        assert writer.result().charge.epsilon_nano == 2
        assert ledger.verify_everything() == 3


def test_several_who_wait_for_a_writer_that_hangs_give_up_while_it_does(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with Ledger.open(url, clock=now, timeout_ms=200) as ledger, ThreadPoolExecutor() as threads:
        with locked_file(url):
            for waiting in [threads.submit(ledger.reserve, charge(3), limits(4)) for _ in range(4)]:
                with pytest.raises(LedgerUnavailable):
                    waiting.result()
            with pytest.raises(LedgerUnavailable):
                ledger.check_writable(room_bytes=1)
        assert ledger.verify_everything() == 0
        ledger.reserve(charge(3), limits(4))


def test_a_server_that_hangs_is_given_up_by_everybody_while_it_does(server: Server, on_own_server: str) -> None:
    with Ledger.open(on_own_server, clock=now, timeout_ms=HURRIED_MS) as ledger, ThreadPoolExecutor() as threads:
        reservation = ledger.reserve(charge(3), limits(4))
        verbs: list[Callable[[], object]] = [
            *(lambda read=read: read(ledger) for read in READERS),
            lambda: ledger.reserve(charge(1), limits(4)),
            lambda: ledger.commit(reservation, ONE, b"answer"),
            lambda: ledger.check_writable(room_bytes=1),
        ]
        with server.stopped():
            for waiting in [threads.submit(verb) for verb in verbs]:
                with pytest.raises(LedgerUnavailable):
                    waiting.result()
            with pytest.raises(LedgerUnavailable):
                Ledger.open(on_own_server, clock=now, timeout_ms=HURRIED_MS)
        ledger.commit(reservation, ONE, b"answer")
        assert ledger.find_headroom(charge(0), limits(4)).epsilon_nano == 3
        assert ledger.verify_everything() == 2


def test_a_commit_that_is_never_confirmed_is_not_told_of_and_stands(server: Server, on_own_server: str) -> None:
    """The server has heard of the commit, and its word is lost: whoever waits is refused; the answer is in store."""
    with partition(on_own_server) as way, Ledger.open(way.url, clock=now, timeout_ms=HURRIED_MS) as ledger:
        reservation = ledger.reserve(charge(3), limits(4))
        with at_next_commit(ledger, way.cut), pytest.raises(LedgerUnavailable):
            ledger.commit(reservation, ONE, b"answer")
    with Ledger.open(on_own_server, clock=now) as ledger:
        eventually(lambda: not ledger.list_open_reservations())
        found = ledger.find_answer("q1", "v1", analyst="ann")
        assert found is not None
        assert (found.answer, found.spent) == (b"answer", ONE)
        assert ledger.find_headroom(charge(0), limits(4)).epsilon_nano == 3
        assert ledger.verify_everything() == 2


def test_a_commit_that_a_server_hangs_in_is_there_wholly_or_not_at_all(server: Server, on_own_server: str) -> None:
    """The server stops before it reads the commit. When it goes on it may still do so, or have lost patience first."""
    with Ledger.open(on_own_server, clock=now, timeout_ms=HURRIED_MS) as ledger:
        reservation = ledger.reserve(charge(3), limits(4))
        try:
            with at_next_commit(ledger, server.stop), pytest.raises(LedgerUnavailable):
                ledger.commit(reservation, ONE, b"answer")
        finally:
            server.go_on()
        eventually(lambda: is_writable(ledger))
        found = ledger.find_answer("q1", "v1", analyst="ann")
        assert ledger.find_headroom(charge(0), limits(4)).epsilon_nano == (1 if found is None else 3)
        assert [one.id for one in ledger.list_open_reservations()] == ([reservation.id] if found is None else [])
        assert ledger.verify_everything() == (1 if found is None else 2)


def test_a_reservation_that_is_never_confirmed_grants_nothing_and_stands_as_spent(
    server: Server, on_own_server: str
) -> None:
    with (
        partition(on_own_server) as way,
        Ledger.open(way.url, clock=now, timeout_ms=HURRIED_MS) as ledger,
        at_next_commit(ledger, way.cut),
        pytest.raises(LedgerUnavailable),
    ):
        ledger.reserve(charge(3), limits(4))
    with Ledger.open(on_own_server, clock=now) as ledger:
        eventually(lambda: len(ledger.list_open_reservations()) == 1)
        assert ledger.find_headroom(charge(0), limits(4)).epsilon_nano == 1
        assert ledger.verify_everything() == 1


def is_writable(ledger: Ledger) -> bool:
    try:
        ledger.check_writable(room_bytes=1)
    except LedgerUnavailable:
        return False
    return True
