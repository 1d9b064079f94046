"""A process of its own with a ledger, driven by its parent: `python -m tests.accountant.child URL MODE [ARGUMENT]`."""

import sys
import time
from contextlib import suppress
from datetime import datetime

from accountant.charges import Spent
from accountant.errors import LookAlreadyRecorded, OverBudget
from accountant.ledger import Ledger
from tests.accountant.conftest import now
from tests.accountant.examples import charge, limits
from tests.accountant.watching import look, moment


def say(*words: object) -> None:
    print(*words, flush=True)


def hold(where: str) -> None:
    """Tell the parent, and wait for it to kill this process."""
    say("at", where)
    time.sleep(600)


class Clock:
    """Stops at the n-th reading: the ledger reads it inside its transaction, after checking, before writing."""

    def __init__(self, stop_at: int) -> None:
        self.readings = 0
        self.stop_at = stop_at

    def __call__(self) -> datetime:
        self.readings += 1
        if self.readings == self.stop_at:
            hold("transaction")
        return now()


def stop_once(url: str, where: str) -> None:
    """Reserve 3, commit 1 (or release), and stop at one point on the way."""
    stops = {"in reserve": 1, "in commit": 2, "in release": 2}
    with Ledger.open(url, clock=Clock(stops.get(where, 0))) as ledger:
        reservation = ledger.reserve(charge(3), limits(4))
        if where == "reserved":
            hold(where)
        if where == "in release":
            ledger.release(reservation)
        ledger.commit(reservation, Spent.from_uniform(1, unit_epsilon_nano=0), b"answer")
        hold(where)


def work(url: str) -> None:
    """Reserve 2 and commit 1 for ever, telling the parent after each durable step."""
    with Ledger.open(url, clock=now) as ledger:
        say("ready")
        while True:
            reservation = ledger.reserve(charge(2), limits(10**9))
            say("reserved", reservation.id)
            ledger.commit(reservation, Spent.from_uniform(1, unit_epsilon_nano=0), b"answer")
            say("committed", reservation.id)


def race(url: str) -> None:
    """Take what can be had of a budget of 30, one at a time, from the parent's word on."""
    with Ledger.open(url, clock=now) as ledger:
        say("ready")
        sys.stdin.readline()
        taken = 0
        try:
            while True:
                ledger.reserve(charge(1), limits(30))
                taken += 1
        except OverBudget:
            say("taken", taken)


def open_only(url: str) -> None:
    """Open a ledger that others create at the same moment."""
    say("ready")
    sys.stdin.readline()
    with Ledger.open(url, clock=now) as ledger:
        say("events", ledger.verify_everything())


def watch(url: str, holder: str, looks: int) -> None:
    """Draw for a window of the parent's monitor and look at it, in a race with others, from the parent's word on."""
    with Ledger.open(url, clock=now) as ledger:
        run = ledger.monitors.find_newest_run("crowded")
        assert run is not None
        say("ready")
        sys.stdin.readline()
        for number in range(1, looks + 1):
            state = ledger.monitors.begin_window(run.run, 0, f"drawn by {holder}".encode())
            if state.look >= number:
                continue
            body = state.body + f"|{holder} {number}".encode()
            went = ((number - 2) % 3,) if number > 1 else ()
            made = look(state, (number - 1) % 3, look=number, body=body, cleared=went)
            with suppress(LookAlreadyRecorded):
                ledger.monitors.record_look(run.run, [made], number=number, at=moment(number), holder=holder)
                say("looked", number)
        say("done")


def draw(url: str) -> None:
    """Draw for a window of the parent's monitor, and wait to be killed before it is looked at."""
    with Ledger.open(url, clock=now) as ledger:
        run = ledger.monitors.find_newest_run("crowded")
        assert run is not None
        ledger.monitors.begin_window(run.run, 0, b"drawn by the dead")
        hold("drawn")


if __name__ == "__main__":
    _, address, mode, *rest = sys.argv
    match mode:
        case "stop":
            stop_once(address, rest[0])
        case "work":
            work(address)
        case "race":
            race(address)
        case "open":
            open_only(address)
        case "watch":
            watch(address, rest[0], int(rest[1]))
        case "draw":
            draw(address)
