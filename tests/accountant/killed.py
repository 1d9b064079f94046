"""Processes that die by SIGKILL at a chosen point inside a verb: `python -m tests.accountant.killed`.

A command a line in, what became of it a line out, as JSON. Every command runs in a fork of this process, which has
everything imported and no connection open. The points are the statements that the verb sends, its COMMIT, and the
moment after it, when the connection goes back to its pool.
"""

import gc
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.pool import Pool

from accountant.charges import NANO
from accountant.errors import BalanceScope
from accountant.events.owner_events import Grant
from accountant.ledger import Ledger
from accountant.limits import Headroom
from accountant.monitor_model import MonitorRun
from accountant.reports.balance_report import FamilyBalance
from mechanisms.threshold.renyi import bound_curve
from tests.accountant.conftest import now
from tests.accountant.examples import all_of, cells, charge, continuing, limits, per_key
from tests.accountant.watching import look, look_at, moment, start

CAPS = replace(limits(100 * NANO), cell_delta=1e-9)
# what many more fit of by curve
BY_CURVE = replace(charge(NANO // 25), cell_renyi=bound_curve(NANO // 25, groups=1))
PATHS = {"f": b"values", "g": b"other values"}

ALL_KEYS = cells(country=("AT", "DE", "FR", "UK"))

# a verb and what stands in the ledger before it
SCENES = {
    "reserve": "nothing",
    "reserve to continue": "a path",
    "commit": "a reservation",
    "commit by curve": "a reservation by curve",
    "commit what continued": "a continued path",
    "release": "a continued path",
    "settle": "a continued path",
    "settle untouched": "a continued path",
    "read": "a path",
    "read a stored answer": "a path",
    "open a window": "a continued path",
    "prune": "a continued path",
    "grant": "nothing",
    "start a monitor": "nothing",
    "begin a window": "a monitor",
    "record a look": "a begun window",
    "clear an alert": "a begun window",
    "end a monitor": "a begun window",
}


def set_up(ledger: Ledger, scene: str) -> None:
    """Bring an empty ledger to a scene."""
    if scene == "nothing":
        return
    if scene in ("a monitor", "a begun window"):
        run = start(ledger).run
        if scene == "a begun window":
            look_at(ledger, run, 0, 1, number=1, keys=(2,))
        return
    first = ledger.reserve(BY_CURVE if scene == "a reservation by curve" else charge(2 * NANO), CAPS)
    if scene in ("a reservation", "a reservation by curve"):
        return
    ledger.commit(first, per_key([NANO, 0, 1]), b"FR", paths=PATHS)
    if scene == "a continued path":
        prepared(ledger, "reserve to continue")()


def prepared(ledger: Ledger, verb: str) -> Callable[[], object]:
    """The verb, ready to be called: everything that it needs to know first is looked up."""
    opened, owner = ledger.list_open_reservations(), ledger.owner
    states = tuple(path.state for path in ledger.find_paths(PATHS, "v1").values())
    match verb:
        case "reserve":
            # with key values that no question had before: they are stored with the reservation
            return partial(ledger.reserve, charge(2 * NANO, keys=cells(country=("AT", "DE"))), CAPS)
        case "reserve to continue":
            news = continuing(*states, shared=2 * NANO, known=2 * NANO)
            return partial(ledger.reserve, charge(2 * NANO, analyst="bob", question="q2", continuing=news), CAPS)
        case "commit" | "commit by curve":
            spent = per_key([NANO, 0, 1]) if verb == "commit" else all_of(BY_CURVE)
            return partial(ledger.commit, opened[0], spent, b"FR", paths=PATHS)
        case "commit what continued":
            spent = per_key([NANO] * 3, fresh=[NANO, 0, 1])
            return partial(ledger.commit, opened[0], spent, b"FR", paths={"f": b"finer"})
        case "release":
            return partial(ledger.release, opened[0])
        case "settle" | "settle untouched":
            return partial(
                owner.settle_reservation, opened[0].id, untouched=verb == "settle untouched", by="owner", why="died"
            )
        case "read":
            asked = charge(NANO, analyst="bob", question="q2", shared=False)
            return partial(ledger.charge_reading, asked, CAPS, spent=per_key([NANO] * 3), answer=b"FR", reading=states)
        case "read a stored answer":
            stored = ledger.find_answer("q1", "v1", analyst="bob")
            assert stored is not None
            return partial(ledger.charge_reader, stored.make_reading_charge("bob"), CAPS, answer=stored)
        case "open a window":
            return partial(owner.open_window, by="owner", why="a new year")
        case "prune":
            return partial(owner.prune_paths, "sales", "v1", by="owner", why="old")
        case "grant":
            given = Grant(scope=BalanceScope.PER_PREDICATE, amount_nano=NANO, table=None, analyst=None)
            return partial(owner.write_grant, given, by="owner", why="asked")
        case _:
            return prepared_on_monitor(ledger, verb)


def prepared_on_monitor(ledger: Ledger, verb: str) -> Callable[[], object]:
    """The same for the verbs of monitors."""
    standing, monitors = ledger.monitors.find_newest_run("crowded"), ledger.monitors
    if standing is None:
        assert verb == "start a monitor"
        return partial(start, ledger)
    match verb:
        case "begin a window":
            return partial(monitors.begin_window, standing.run, 1, b"drawn")
        case "record a look":
            looks = [look(state, 0, 1) for state in monitors.list_open_windows(standing.run)]
            closing = {0: np.array([1, 2, NANO])}
            return partial(monitors.record_look, standing.run, looks, number=2, at=moment(2), closing=closing)
        case "clear an alert":
            first, second = monitors.list_open_windows(standing.run)
            looks = [look(first, 0, cleared=(2,)), look(second, cleared=(2,))]
            return partial(monitors.record_look, standing.run, looks, number=2, at=moment(2))
        case "end a monitor":
            return partial(monitors.end_run, standing.run, by="owner", why="over")
    raise ValueError(verb)


@dataclass(frozen=True, slots=True)
class Seen:
    """All that a ledger tells, but for the names it drew."""

    events: int
    open_worst: tuple[int, ...]
    left: tuple[Headroom, ...]
    families: tuple[FamilyBalance, ...]
    paths: tuple[tuple[str, bytes, bool, int], ...]
    stored_paths: int
    answers: tuple[tuple[bytes, bool] | None, ...]
    grants: int
    monitors: tuple[tuple[object, ...], ...]


def seen(ledger: Ledger) -> Seen:
    """Everything read again and compared with the fold, then what it says."""
    events = ledger.verify_everything()
    stored = [ledger.find_answer(question, "v1", analyst="bob") for question in ("q1", "q2")]
    return Seen(
        events=events,
        open_worst=tuple(one.charge.epsilon_nano for one in ledger.list_open_reservations()),
        left=tuple(ledger.find_headroom(charge(0, keys=ALL_KEYS, analyst=analyst), CAPS) for analyst in ("ann", "bob")),
        families=ledger.report_balances(CAPS).families,
        paths=tuple(
            (name, path.body, path.is_taken, path.questions) for name, path in ledger.find_paths(PATHS, "v1").items()
        ),
        stored_paths=sum(sizes.state_count for sizes in ledger.owner.measure_paths()),
        answers=tuple(None if one is None else (one.answer, one.is_held) for one in stored),
        grants=len(ledger.owner.list_grants()),
        monitors=tuple(seen_of_monitor(ledger, run) for run in ledger.monitors.list_runs()),
    )


def seen_of_monitor(ledger: Ledger, run: MonitorRun) -> tuple[object, ...]:
    """What a ledger tells of a monitor, but for the name of its reservation."""
    opened = tuple((one.window, one.look, one.body) for one in ledger.monitors.list_open_windows(run.run))
    alerts = tuple(
        (one.number, one.window, one.key, one.at, one.cleared_number, one.cleared_at)
        for one in ledger.monitors.read_alerts(run.run).alerts
    )
    closed = sorted(ledger.monitors.list_closed_windows(run.run))
    return run.monitor, run.state.value, run.looks_made, run.last_look, opened, closed, alerts


class Death:
    """Kills this process at the n-th point from now on, having said which it is."""

    def __init__(self, at: int, says: int) -> None:
        self._left = at
        self._says = says

    def arm(self) -> None:
        sa.event.listen(sa.Engine, "before_cursor_execute", self._statement)
        sa.event.listen(sa.Engine, "commit", lambda _: self._point("COMMIT"))
        sa.event.listen(Pool, "checkin", lambda *_: self._point("done"))

    def _statement(self, _connection: object, _cursor: object, statement: str, *_: object) -> None:
        self._point(re.sub(r"\s+", " ", statement))

    def _point(self, what: str) -> None:
        self._left -= 1
        if self._left == 0:
            os.write(self._says, what[:80].encode())
            os.kill(os.getpid(), signal.SIGKILL)


def live(url: str, what: str, death: Death, finds: int) -> None:
    """One verb, or opening and closing a ledger that stores a snapshot whenever it may; death waits from there on."""
    if what == "open":
        os.close(finds)
        death.arm()
        Ledger.open(url, clock=now, snapshot_every=1).close()
        return
    with Ledger.open(url, clock=now) as ledger:
        with open(finds, "w") as pipe:
            pipe.write(repr(seen(ledger)))
        verb = prepared(ledger, what)
        death.arm()
        verb()


def run(command: dict[str, Any]) -> dict[str, Any]:
    """Fork, do what is commanded, and die at a point: where that was (None: the end came first), and what was found."""
    found, finds = os.pipe()
    listens, says = os.pipe()
    process = os.fork()
    if process == 0:
        status = 1
        try:
            live(command["url"], command["do"], Death(command["at"], says), finds)
            status = 0
        finally:
            os._exit(status)
    os.close(says)
    os.close(finds)
    with open(found) as first, open(listens) as second:
        answer: dict[str, Any] = {"found": first.read(), "where": second.read() or None}
    _, status = os.waitpid(process, 0)
    return answer | {"signal": status & 0x7F, "exit": status >> 8}


def warm_up() -> None:
    """Import what is imported when a ledger is first made and read, or each fork would."""
    with TemporaryDirectory() as folder, Ledger.open(f"sqlite:///{folder}/ledger.db", clock=now) as ledger:
        set_up(ledger, "a continued path")
        seen(ledger)


def main() -> None:
    warm_up()
    gc.freeze()  # or each fork copies what the collector marks
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
