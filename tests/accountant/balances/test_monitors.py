"""What monitors cost, window by window, against an account kept by hand; and events that no verb writes."""

from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.balances.fold import Balances
from accountant.charges import Amounts, Charge, NanoArray, Spent
from accountant.errors import LedgerUnavailable
from accountant.events.events import Committed, Event, Released, Reserved
from accountant.events.monitor_events import (
    LookOfWindow,
    MonitorEnded,
    MonitorLooked,
    MonitorPaused,
    MonitorResumed,
    MonitorStarted,
    MonitorWindowBegun,
    MonitorWindowClosed,
)
from accountant.events.owner_events import Settled, WindowOpened
from accountant.monitor_model import WindowAxis
from accountant.store.snapshot import pack_balances, unpack_balances
from tests.accountant.conftest import now
from tests.accountant.examples import all_of
from tests.accountant.watching import BY_DAY, DAYS, KEYS, OWNER, WARDS, horizon
from tests.effort import examples

EPSILON = 60
BESIDE = 5
LIVE = f"live {'a' * 32}"
READERS = ("ann", "bob")
SHAPE = (len(DAYS), len(WARDS))


@dataclass
class ByHand:
    """One run, and what each of its cells has cost: (days, wards). One unit counts in two of them."""

    charge: Charge
    axis: WindowAxis | None
    begun: set[int] = field(default_factory=set)
    closed: dict[int, list[int] | None] = field(default_factory=dict)
    readers: set[str] = field(default_factory=set)
    standing: bool = True
    anew: bool = False

    def cells(self, *, public: bool, early: bool) -> NanoArray:
        """What cells count at. `early`: what a window did not cost is given back as it closes."""
        lost = np.full(SHAPE, EPSILON if self.standing or (self.axis is None and self.begun) else 0)
        near = 1 if self.axis is None else self.axis.overlap
        for window in self.begun if self.axis is not None else ():
            lost[max(0, window - near + 1) : window + near] = EPSILON
        for window in self.begun if near == 1 and self.axis is not None else ():
            losses = self.closed.get(window)
            counts = not public and losses is not None and (early or not self.standing)
            lost[window] = losses if counts else EPSILON
        return lost

    def unit(self, *, public: bool) -> int:
        cells = np.sort(self.cells(public=public, early=False).reshape(-1))
        return 2 * EPSILON if self.standing else int(cells[-2:].sum())


def told_apart(charge: Charge) -> bool:
    """Whether balances keep windows apart."""
    return charge.family.unit != "row" or charge.family.version != LIVE or "day" in charge.family.immutable


def kept(charge: Charge, cells: NanoArray) -> NanoArray:
    """What a record of each cell can have lost, where the version is one that nobody asks on again."""
    family = charge.family
    if family.unit != "row" or family.version != LIVE:
        return cells
    moving = tuple(place for place, column in enumerate(("day", "ward")) if column not in family.immutable)
    return np.broadcast_to(cells.max(axis=moving, keepdims=True), SHAPE)


def question_beside(charge: Charge) -> Charge:
    """Of another analyst, over the same cells."""
    unit = 0 if charge.family.unit == "row" else BESIDE
    return replace(charge, analyst="carl", question="q", epsilon_nano=BESIDE, unit_epsilon_nano=unit)


def check_by_hand(balances: Balances, runs: list[ByHand]) -> None:
    family = runs[0].charge.family
    early = told_apart(runs[0].charge)
    spent, public = (
        sum((kept(run.charge, run.cells(public=each, early=early)) for run in runs), np.zeros(SHAPE, dtype=np.int64))
        for each in (False, True)
    )
    for account, expected in (
        (balances.find_account(OWNER), spent),
        (balances.shared, spent + BESIDE),
        (balances.make_known_account(OWNER), spent + BESIDE),
        (balances.worst_case, public + BESIDE),
        (balances.make_known_account("bob"), public + BESIDE),
    ):
        assert np.array_equal(account.bound_losses(family, KEYS), expected)
    for account, known in ((balances.shared, False), (balances.worst_case, True)):
        units = sum(run.unit(public=known) for run in runs)
        largest = sum(EPSILON if run.standing else int(run.cells(public=known, early=False).max()) for run in runs)
        assert account.unit_loss.pure_nano == (0 if family.unit == "row" else units + BESIDE)
        assert account.read_table_loss("visits") == BESIDE + (largest if family.unit == "row" else units)
    for reader in READERS:
        read = [run for run in runs if reader in run.readers]
        lost = (
            np.full(SHAPE, EPSILON) if run.standing else kept(run.charge, run.cells(public=False, early=False))
            for run in read
        )
        assert np.array_equal(balances.find_account(reader).bound_losses(family, KEYS), sum(lost, np.zeros(SHAPE)))
        units = sum(run.unit(public=False) for run in read)
        assert balances.find_account(reader).unit_loss.pure_nano == (0 if family.unit == "row" else units)


CHARGES = {
    "a row": horizon(EPSILON),
    "a person": horizon(EPSILON, unit="person"),
    "a person live": horizon(EPSILON, unit="person", version=LIVE),
    "a live row": horizon(EPSILON, version=LIVE),
    "a live row of a day": replace(
        horizon(EPSILON), family=replace(horizon(version=LIVE).family, immutable=frozenset({"day"}))
    ),
    "a live row of a ward": replace(
        horizon(EPSILON), family=replace(horizon(version=LIVE).family, immutable=frozenset({"ward"}))
    ),
}
STEPS = ("begin", "begin", "look", "close", "close", "pause", "resume", "end", "read", "start")


class World:
    """Balances, and the runs as they are kept by hand; beside them a question that never finished."""

    def __init__(self, charge: Charge, axis: WindowAxis | None, data: st.DataObject) -> None:
        self.charge, self.axis, self.data = charge, axis, data
        self.balances, self.runs, self._names = Balances(), list[ByHand](), count()
        self.balances.apply_event(Reserved("open", now(), question_beside(charge)))
        self.start()

    @property
    def name(self) -> str:
        return f"r{len(self.runs) - 1}"

    def start(self) -> None:
        anew = self.data.draw(st.booleans())
        self.runs.append(ByHand(self.charge, self.axis, anew=anew))
        self.balances.apply_event(Reserved(self.name, now(), self.charge))
        self.balances.apply_event(
            MonitorStarted(self.name, now(), "crowded", "m1", self.axis, "kim", "x", is_restarted=anew)
        )

    def take(self, step: str) -> None:
        """One step, where it can be taken now."""
        run, state = self.runs[-1], self.balances.monitors.runs[self.name].state
        opened = sorted(run.begun - set(run.closed))
        match step:
            case "begin" if state == "running":
                self.begin(run)
            case "look" if state == "running" and opened:
                self.look(opened)
            case "close" if run.standing and opened:
                self.close(run, opened[0])
            case "pause" if state == "running":
                self.balances.apply_event(MonitorPaused(f"p{next(self._names)}", now(), self.name, "kim", "x"))
            case "resume" if state == "paused":
                self.balances.apply_event(MonitorResumed(f"p{next(self._names)}", now(), self.name, "kim", "x"))
            case "end" if run.standing:
                self.end(run)
            case "read":
                self.read(run)
            case "start" if not run.standing:
                self.start()

    def begin(self, run: ByHand) -> None:
        begun = set[int]().union(*(one.begun for one in ([run] if run.anew else self.runs)))
        if len(begun) < len(DAYS):
            window = self.data.draw(st.sampled_from(sorted(set(range(len(DAYS))) - begun)))
            self.balances.apply_event(MonitorWindowBegun(self.name, now(), window, "digest"))
            run.begun.add(window)

    def look(self, opened: list[int]) -> None:
        account = self.balances.monitors.runs[self.name]
        looks = tuple(LookOfWindow(one, account.open_windows[one].look + 1, "another", (0,), (1, 2)) for one in opened)
        self.balances.apply_event(MonitorLooked(self.name, now(), account.last_look + 2, "", looks))

    def close(self, run: ByHand, window: int) -> None:
        losses, spent = None, None
        if self.axis == BY_DAY:
            losses = self.data.draw(st.none() | st.lists(st.integers(0, EPSILON), min_size=3, max_size=3))
        if losses is not None:
            spent = Spent.from_keys(losses, unit_epsilon_nano=0)
            if len(set(losses)) == 1:
                spent = Spent.from_uniform(losses[0], unit_epsilon_nano=0)
        self.balances.apply_event(MonitorWindowClosed(self.name, now(), window, spent))
        run.closed[window] = losses

    def end(self, run: ByHand) -> None:
        run.standing = False
        most = int(run.cells(public=False, early=False).max())
        unit = 0 if self.charge.family.unit == "row" else run.unit(public=False)
        self.balances.apply_event(MonitorEnded(self.name, now(), Amounts(most, unit), "kim", "x"))

    def read(self, run: ByHand) -> None:
        reader = self.data.draw(st.sampled_from(READERS))
        if reader not in run.readers:
            reading = f"read {next(self._names)}"
            self.balances.apply_event(Reserved(reading, now(), replace(self.charge, analyst=reader, shared=False)))
            cost = all_of(self.charge) if run.standing else self.balances.monitors.runs[self.name].compute_spent_loss()
            self.balances.apply_event(Committed(reading, now(), cost, None, self.name))
            run.readers.add(reader)


@pytest.mark.parametrize("axis", [BY_DAY, WindowAxis("day", 2), None], ids=["by day", "overlapping", "in all cells"])
@pytest.mark.parametrize("charged", CHARGES)
@examples(60, quick=2)
@given(data=st.data())
def test_balances_are_those_kept_by_hand(charged: str, axis: WindowAxis | None, data: st.DataObject) -> None:
    """After every event of monitors that follow each other; and a snapshot is the same balances."""
    world = World(CHARGES[charged], axis, data)
    for step in data.draw(st.lists(st.sampled_from(STEPS), min_size=4, max_size=20)):
        world.take(step)
        check_by_hand(world.balances, world.runs)
        assert pack_balances(unpack_balances(pack_balances(world.balances))) == pack_balances(world.balances)
    assert list(world.balances.open_reservations) == ["open"] + [world.name] * world.runs[-1].standing
    assert [one.id for one in world.balances.list_open_questions()] == ["open"]


def test_events_that_no_verb_writes_are_not_folded() -> None:
    begun: list[Event] = [
        Reserved("r", now(), horizon(EPSILON)),
        MonitorStarted("r", now(), "crowded", "m1", BY_DAY, "kim", "x"),
        MonitorWindowBegun("r", now(), 0, "digest"),
    ]
    looks = (LookOfWindow(0, 1, "digest", ()),)
    for event in (
        MonitorStarted("r", now(), "crowded", "m1", BY_DAY, "kim", "x"),
        MonitorStarted("another", now(), "another", "m1", BY_DAY, "kim", "x"),
        MonitorWindowBegun("r", now(), 0, "digest"),
        MonitorWindowBegun("r", now(), 4, "digest"),
        MonitorWindowBegun("another", now(), 1, "digest"),
        MonitorLooked("r", now(), 0, "", looks),
        MonitorLooked("r", now(), 1, "", (LookOfWindow(1, 1, "digest", ()),)),
        MonitorLooked("r", now(), 1, "", (LookOfWindow(0, 0, "digest", ()),)),
        MonitorLooked("r", now(), 1, "", (LookOfWindow(0, 1, "digest", (), (3,)),)),
        MonitorWindowClosed("r", now(), 1, None),
        MonitorWindowClosed("r", now(), 0, Spent.from_uniform(EPSILON + 1, unit_epsilon_nano=0)),
        MonitorResumed("p", now(), "r", "kim", "x"),
        MonitorEnded("r", now(), Amounts(0, 0), "kim", "x"),
        Committed("r", now(), all_of(horizon(EPSILON)), None, None),
        Released("r", now()),
        Settled("r", now(), "kim", "x", untouched=True),
        WindowOpened("w", now(), "kim", "x"),
    ):
        balances = Balances()
        for one in begun:
            balances.apply_event(one)
        with pytest.raises(LedgerUnavailable):
            balances.apply_event(event)


def test_a_unit_loses_what_its_largest_cells_lost() -> None:
    """Also where the reserved amounts were rounded each by itself: then of more cells rather than fewer."""
    for unit_nano, groups in ((2 * EPSILON, 2), (2 * EPSILON - 1, 2), (2 * EPSILON + 30, 3), (EPSILON, 1)):
        charge = replace(horizon(EPSILON, unit="person"), unit_epsilon_nano=unit_nano)
        balances = Balances()
        balances.apply_event(Reserved("r", now(), charge))
        balances.apply_event(MonitorStarted("r", now(), "crowded", "m1", BY_DAY, "kim", "x"))
        account = balances.monitors.runs["r"]
        lost = np.arange(12).reshape(SHAPE)
        assert account.find_largest_losses(lost) == Amounts(11, sum(range(12 - groups, 12)))
        assert account.find_largest_losses(EPSILON) == Amounts(EPSILON, unit_nano)
        assert account.find_largest_losses(0) == Amounts(0, 0)
