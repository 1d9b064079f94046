"""Real processes and threads on one ledger: races for the last of a budget, and SIGKILL at every step."""

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accountant.charges import Reservation, Spent
from accountant.errors import LedgerMisuse, OverBudget
from accountant.ledger import Ledger
from tests.accountant.conftest import now
from tests.accountant.examples import charge, limits
from tests.accountant.watching import look, moment, start
from tests.children import forked
from tests.effort import rounds

ROOT = Path(__file__).parents[3]


@contextmanager
def child(url: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    process = forked.Popen(
        [sys.executable, "-m", "tests.accountant.child", url, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line(process: "subprocess.Popen[str]") -> list[str]:
    assert process.stdout is not None
    return process.stdout.readline().split()


def go(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def test_processes_never_take_more_than_there_is(ledger_url: str) -> None:
    with child(ledger_url, "race") as one, child(ledger_url, "race") as two, child(ledger_url, "race") as three:
        processes = (one, two, three)
        assert [line(process) for process in processes] == [["ready"]] * 3
        for process in processes:
            go(process)
        taken = [line(process) for process in processes]
    assert [word for word, _ in taken] == ["taken"] * 3
    assert sum(int(number) for _, number in taken) == 30
    with Ledger.open(ledger_url, clock=now) as ledger:
        assert ledger.verify_everything() == 30
        assert ledger.find_headroom(charge(1), limits(30)).epsilon_nano == 0


def looks_told(process: "subprocess.Popen[str]") -> list[int]:
    """The numbers of the looks that a process has recorded, once it is done."""
    told = []
    while (words := line(process)) != ["done"]:
        told.append(int(words[1]))
    return told


def test_processes_that_look_at_one_window_record_each_look_once(ledger_url: str) -> None:
    """Whoever comes second finds the other's draw, and is refused the look that the other has recorded. Each look's
    state names the one before: none is missing, and none was made of a state that is not the newest. With each look one
    key comes, and that of the look before goes."""
    looks = 12
    with Ledger.open(ledger_url, clock=now) as ledger:
        run = start(ledger).run
        arguments = [("watch", holder, str(looks)) for holder in ("a", "b", "c")]
        with (
            child(ledger_url, *arguments[0]) as one,
            child(ledger_url, *arguments[1]) as two,
            child(ledger_url, *arguments[2]) as three,
        ):
            processes = {"a": one, "b": two, "c": three}
            assert [line(process) for process in processes.values()] == [["ready"]] * 3
            for process in processes.values():
                go(process)
            looked = {holder: looks_told(process) for holder, process in processes.items()}
        numbers = sorted(number for made in looked.values() for number in made)
        assert numbers == list(range(1, looks + 1))
        (state,) = ledger.monitors.list_open_windows(run)
        drawn, *steps = state.body.decode().split("|")
        assert drawn in {f"drawn by {holder}" for holder in processes}
        by = {number: holder for holder, made in looked.items() for number in made}
        assert steps == [f"{by[number]} {number}" for number in numbers]
        assert [(one.number, one.key, one.cleared_number) for one in ledger.monitors.read_alerts(run).alerts] == [
            (number, (number - 1) % 3, number + 1 if number < looks else None) for number in numbers
        ]
        assert ledger.verify_everything() == 3 + looks


def test_a_draw_outlives_its_process_and_is_not_drawn_anew(ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=now) as ledger:
        run = start(ledger).run
        with child(ledger_url, "draw") as process:
            assert line(process) == ["at", "drawn"]
            process.kill()
            process.wait()
        state = ledger.monitors.begin_window(run, 0, b"drawn anew")
        assert (state.look, state.body) == (0, b"drawn by the dead")
        ledger.monitors.record_look(run, [look(state, 1)], number=1, at=moment(1))
    with Ledger.open(ledger_url, clock=now) as reopened:
        assert reopened.monitors.begin_window(run, 0, b"drawn anew").body == b"drawn by the dead+1"
        assert reopened.verify_everything() == 4


@pytest.mark.parametrize("own_connections", [True, False])
def test_threads_never_take_more_than_there_is(ledger_url: str, own_connections: bool) -> None:
    shared = Ledger.open(ledger_url, clock=now)
    ledgers = [Ledger.open(ledger_url, clock=now) if own_connections else shared for _ in range(6)]
    barrier = threading.Barrier(len(ledgers))
    granted: list[Reservation] = []
    failures: list[BaseException] = []

    def take(ledger: Ledger) -> None:
        try:
            barrier.wait()
            while True:
                granted.append(ledger.reserve(charge(1), limits(25)))
        except OverBudget:
            pass
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=take, args=(ledger,)) for ledger in ledgers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len({reservation.id for reservation in granted}) == 25
    assert {reservation.id for reservation in shared.list_open_reservations()} == {r.id for r in granted}
    for ledger in {shared, *ledgers}:
        ledger.close()


def test_threads_never_close_a_reservation_twice(ledger_url: str) -> None:
    ledgers = [Ledger.open(ledger_url, clock=now) for _ in range(4)]
    for _ in range(5):
        reservation = ledgers[0].reserve(charge(2), limits(100))
        barrier = threading.Barrier(len(ledgers))
        outcomes: list[str] = []

        def close(
            ledger: Ledger,
            reservation: Reservation = reservation,
            barrier: threading.Barrier = barrier,
            outcomes: list[str] = outcomes,
        ) -> None:
            barrier.wait()
            try:
                ledger.commit(reservation, Spent.from_uniform(1, unit_epsilon_nano=0), b"answer")
                outcomes.append("committed")
            except LedgerMisuse:
                outcomes.append("refused")

        threads = [threading.Thread(target=close, args=(ledger,)) for ledger in ledgers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["committed", "refused", "refused", "refused"]
    assert ledgers[0].find_headroom(charge(1), limits(100)).epsilon_nano == 95
    for ledger in ledgers:
        ledger.close()


@pytest.mark.parametrize(
    ("where", "spent", "still_open"),
    [
        ("in reserve", 0, 0),  # the verb had not returned, so no data was touched
        ("reserved", 3, 1),
        ("in commit", 3, 1),
        ("in release", 3, 1),
        ("committed", 1, 0),
    ],
)
def test_what_is_spent_survives_sigkill(ledger_url: str, where: str, spent: int, still_open: int) -> None:
    with child(ledger_url, "stop", where) as process:
        assert line(process)[0] == "at"
        process.kill()
        process.wait()
    with Ledger.open(ledger_url, clock=now) as ledger:
        ledger.verify_everything()
        assert len(ledger.list_open_reservations()) == still_open
        assert ledger.find_headroom(charge(1), limits(4)).epsilon_nano == 4 - spent
        ledger.reserve(charge(4 - spent), limits(4))
        with pytest.raises(OverBudget):
            ledger.reserve(charge(1), limits(4))


def test_nothing_told_is_lost_when_processes_are_killed_at_random_moments(ledger_url: str) -> None:
    """Four workers, two at quick, killed after 50 to 250 ms of work each, one after another on the same ledger."""
    moments = random.Random(5)
    reserved: set[str] = set()
    committed: set[str] = set()
    workers = rounds(4, quick=2)
    for _ in range(workers):
        with child(ledger_url, "work") as process:
            assert line(process) == ["ready"]
            time.sleep(moments.uniform(0.05, 0.25))
            process.kill()
            assert process.stdout is not None
            output = process.stdout.read()  # communicate() would lose what came with the first line
        for told in (text.split() for text in output.splitlines(keepends=True) if text.endswith("\n")):
            (reserved if told[0] == "reserved" else committed).add(told[1])
    assert committed
    with Ledger.open(ledger_url, clock=now) as ledger:
        events = ledger.verify_everything()
        still_open = {reservation.id for reservation in ledger.list_open_reservations()}
        assert not committed & still_open
        for told_and_closed in reserved - still_open:
            with pytest.raises(LedgerMisuse, match="committed"):
                ledger.release(Reservation(told_and_closed, charge(2), now()))
        closed = (events - len(still_open)) // 2
        assert len(committed) <= closed <= len(committed) + workers
        assert ledger.find_headroom(charge(1), limits(10**9)).epsilon_nano == 10**9 - closed - 2 * len(still_open)


def test_processes_that_create_a_ledger_at_once_create_one(ledger_url: str) -> None:
    with child(ledger_url, "open") as one, child(ledger_url, "open") as two, child(ledger_url, "open") as three:
        processes = (one, two, three)
        assert [line(process) for process in processes] == [["ready"]] * 3
        for process in processes:
            go(process)
        assert [line(process) for process in processes] == [["events", "0"]] * 3
