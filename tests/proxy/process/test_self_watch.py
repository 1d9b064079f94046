"""A process that hangs ends by itself, with a status on which whoever started it acts."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from accountant.store.file_calls import TimedConnection, measure_longest_call
from accountant.store.store import LedgerStore
from tests.worlds.house import eventually


def hang(how: str, *, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """What becomes of a process that hangs so; it waits for its standard input, which stays open unless given."""
    command = (sys.executable, "-m", "tests.proxy.process.stuck", how)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        if given is not None:
            process.stdin.close()
        told = process.stderr.read()
        return subprocess.CompletedProcess(command, process.wait(), stderr=told)


@pytest.mark.skipif(sys.platform == "win32", reason="has no such signal")
@pytest.mark.parametrize("how", ["hold_the_interpreter", "hold_the_event_loop"])
def test_a_process_that_hangs_is_ended_and_says_where_it_stood(how: str) -> None:
    ended = hang(how)
    assert ended.returncode == -signal.SIGALRM
    assert f"in {how}" in ended.stderr


def test_a_file_system_that_hangs_ends_the_process() -> None:
    assert hang("wait_for_a_file").returncode == 1


def test_a_process_that_does_not_hang_ends_well() -> None:
    assert hang("wait_for_nothing", given="").returncode == 0


def test_calls_to_a_file_are_noted_until_they_return() -> None:
    go_on, connection = threading.Event(), TimedConnection(":memory:", check_same_thread=False)
    connection.create_function("wait", 0, go_on.wait)
    cursor = connection.cursor()
    for call in (
        lambda: cursor.execute("SELECT wait()"),
        lambda: cursor.execute("SELECT 1 UNION ALL SELECT wait()").fetchall(),
        lambda: cursor.execute("SELECT 1 UNION ALL SELECT wait()").fetchmany(2),
        lambda: connection.execute("SELECT wait()"),
    ):
        go_on.clear()
        thread = threading.Thread(target=call)
        thread.start()
        eventually(lambda: measure_longest_call() > 0)
        go_on.set()
        thread.join()
        assert measure_longest_call() == 0
    connection.close()


def test_a_ledgers_file_is_noted(tmp_path: Path) -> None:
    store = LedgerStore.open(f"sqlite:///{tmp_path}/ledger.db")
    with store._engine.connect() as connection:
        assert type(connection.connection.driver_connection) is TimedConnection
    store.close()
