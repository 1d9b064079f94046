"""Several processes behind the same ports: what clients and the operator see is one Keyhole."""

import os
import signal
import socket
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import httpx
import psycopg
import pytest

from proxy.endpoint.cancel_requests import MOST_WORKERS, SiblingWorkers
from proxy.open_policy.service import Service
from proxy.wire.frontend import Cancel
from tests.effort import PATIENCE_S, rounds
from tests.worlds.house import PASSWORD, eventually, shop_in_duckdb
from tests.worlds.served import Served, served

SQL = "SELECT store FROM sales GROUP BY store HAVING count(*) > {}"
_PER_WORKER = (1 << 31) // MOST_WORKERS
Connection = psycopg.Connection[tuple[object, ...]]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("house")
    return shop_in_duckdb(directory)


@pytest.fixture(scope="module")
def keyhole(policy: Path) -> Iterator[Served]:
    with served(policy, "--workers=2") as running:
        yield running


def log_in(keyhole: Served) -> Connection:
    return psycopg.connect(
        host="127.0.0.1", port=keyhole.port, dbname="shop", user="ada", password=PASSWORD, autocommit=True
    )


def worker_of(connection: Connection) -> int:
    """Which worker serves a session: the first bits of its process number."""
    return connection.info.backend_pid // _PER_WORKER


@pytest.fixture
def one_of_each(keyhole: Served) -> Iterator[tuple[Connection, Connection]]:
    """A session on each of the two workers."""
    opened: dict[int, Connection] = {}
    try:
        while len(opened) < 2:
            connection = log_in(keyhole)
            if opened.setdefault(worker_of(connection), connection) is not connection:
                connection.close()  # a user has few at once
        yield opened[0], opened[1]
    finally:
        for connection in opened.values():
            connection.close()


def children(process: int) -> set[int]:
    """The processes that serve, of a parent; not the one that multiprocessing keeps for itself."""
    found = set()
    for folder in Path("/proc").iterdir():
        try:
            parent = int((folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes()
        except (OSError, IndexError, ValueError):
            continue
        if parent == process and b"spawn_main" in command:
            found.add(int(folder.name))
    return found


def test_process_numbers_say_whose_they_are() -> None:
    folder = Path("/nowhere")
    ranges = [SiblingWorkers(worker, folder).numbers for worker in range(MOST_WORKERS)]
    assert all(before.stop == after.start for before, after in pairwise(ranges))
    assert (ranges[0].start, ranges[-1].stop) == (1, 1 << 31)
    assert SiblingWorkers().numbers == range(1, 1 << 31)


def test_a_request_to_cancel_reaches_the_worker_whose_session_it_is(one_of_each: tuple[Connection, Connection]) -> None:
    """Each is sent once, to whichever worker accepts it: of six or sixteen, some come to the wrong one first."""
    for _ in range(rounds(8, quick=3)):
        for connection in one_of_each:
            with connection.cursor() as cursor:
                # long rows: what is under way when it is cancelled is read to its end
                rows = cursor.stream("SELECT generate_series(1, 4000000000), repeat('x', 10000)")
                assert next(rows)[0] == 1
                connection.cancel_safe()
                with pytest.raises(psycopg.errors.QueryCanceled):
                    all(rows)
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_wrong_secret_cancels_nothing_on_another_worker(
    keyhole: Served, one_of_each: tuple[Connection, Connection]
) -> None:
    for connection in one_of_each:
        packet = Cancel(process=connection.info.backend_pid, secret=b"\0\0\0\0").encode()
        for _ in range(6):
            with socket.create_connection(("127.0.0.1", keyhole.port)) as other:
                other.sendall(packet)
                assert other.recv(1) == b""
        assert connection.execute("SELECT count(*) FROM generate_series(1, 1000)").fetchone() == (1000,)


def test_workers_share_one_ledger(keyhole: Served, policy: Path, one_of_each: tuple[Connection, Connection]) -> None:
    """What one worker released, the other one serves again; the ledger is unbroken."""
    first, second = one_of_each
    answer = first.execute(SQL.format(1100).encode()).fetchall()
    with Service.open(policy) as service:
        before = service.ledger.verify_everything()
    heard: list[str] = []
    second.add_notice_handler(lambda notice: heard.append(str(notice.message_primary)))
    assert second.execute(SQL.format(1100).encode()).fetchall() == answer == [("north",), ("south",)]
    assert any(line.startswith("released before") for line in heard)
    with Service.open(policy) as service:
        assert service.ledger.verify_everything() == before


def test_rest_and_metrics_of_every_worker_are_reached(keyhole: Served) -> None:
    for _ in range(4):
        assert httpx.get(f"{keyhole.rest}/readyz", trust_env=False, timeout=PATIENCE_S).json() == {"status": "ready"}
    assert "keyhole_connections" in keyhole.scrape()


def test_a_dead_worker_is_replaced_and_the_other_sessions_go_on(policy: Path) -> None:
    with served(policy, "--workers=2") as keyhole:
        before = children(keyhole.process.pid)
        assert len(before) == 2
        with log_in(keyhole) as first:
            same = worker_of(first)
            victims = [event["worker"] for event in keyhole.read_log() if event["event"] == "session opened"]
            assert victims == [same]
            dead = min(before)
            os.kill(dead, signal.SIGKILL)
            eventually(lambda: any(event["event"] == "worker ended" for event in keyhole.read_log()))
            ended = [event["worker"] for event in keyhole.read_log() if event["event"] == "worker ended"]
            if ended != [same]:
                assert first.execute("SELECT 1").fetchone() == (1,)
            with log_in(keyhole) as second:
                assert second.execute(SQL.format(1200).encode()).fetchall() == [("north",), ("south",)]
            eventually(lambda: len(children(keyhole.process.pid)) == 2)
            after = children(keyhole.process.pid)
            assert dead not in after
            assert len(before & after) == 1
    assert not any(Path(f"/proc/{number}").exists() for number in after)


def test_workers_end_with_their_parent(policy: Path) -> None:
    left: set[int] = set()

    def bereaved() -> None:
        with served(policy, "--workers=2") as keyhole:
            left.update(children(keyhole.process.pid))
            keyhole.process.kill()
            keyhole.process.wait()

    with pytest.raises(AssertionError):  # it did not end well
        bereaved()
    assert len(left) == 2
    eventually(lambda: not any(Path(f"/proc/{number}").exists() for number in left))
