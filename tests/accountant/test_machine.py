"""Any interleaving of the verbs over two open ledgers: never overspent, never lost, no path continued twice."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from accountant.errors import LedgerMisuse, OverBudget, PathTaken, Scope
from accountant.ledger import Ledger
from accountant.model import Amounts, Charge, Continuing, PathState, Reservation, Spent
from accountant.owner_events import Grant
from tests.accountant.conftest import now
from tests.accountant.examples import limits
from tests.accountant.test_overlap import exact_loss, questions

CAPS = limits(200, per_unit=500, per_query=90, per_table=700, analyst_per_predicate=150, analyst_per_unit=400)
IDENTITIES = ("f", "g")


@dataclass
class Paid:
    """One question in the model: what each circle of readers has lost to it now."""

    charge: Charge
    own: Spent
    shared: Spent
    known: Spent
    refunded: Spent
    window: int


@dataclass
class Head:
    """A path in the model. `origin` is the question whose refund depends on it, `taken` the one that continues it."""

    state: PathState
    origin: str | None
    taken: str | None = None


def uniform(amounts: Amounts) -> Spent:
    return Spent.uniform(amounts.epsilon_nano, unit_epsilon_nano=amounts.unit_epsilon_nano)


NOTHING = Spent.uniform(0, unit_epsilon_nano=0)


class LedgerMachine(RuleBasedStateMachine):
    """The model is a list of what was paid; its balances are brute force over every possible record."""

    reservations = Bundle("reservations")
    closed = Bundle("closed")

    def __init__(self, new_url: Callable[[], str]) -> None:
        super().__init__()
        self.url = new_url()
        self.ledgers = [Ledger.open(self.url, clock=now, snapshot_every=5) for _ in range(2)]

    @initialize(unit=st.sampled_from(["row", "customer_id"]), apart=st.booleans())
    def start(self, unit: str, apart: bool) -> None:
        self.caps = replace(CAPS, apart=apart)
        self.unit = unit
        self.paid: dict[str, Paid] = {}
        self.open: set[str] = set()
        self.heads: dict[tuple[str, str], Head] = {}
        self.withdrawn: set[str] = set()
        self.ended: set[str] = set()
        self.grants: dict[str, int] = {}
        self.window = 0

    def fits(self, asked: Charge) -> bool:
        paid = [item for item in self.paid.values() if item.window == self.window]
        own = [(item.charge, item.own) for item in paid if item.charge.analyst == asked.analyst]
        shared = [(item.charge, item.shared) for item in paid if item.charge.shared]
        if self.caps.apart:
            shared = [
                (item.charge, item.refunded if item.charge.analyst == asked.analyst else item.known)
                for item in paid
                if item.charge.shared
            ]
        news = asked.known_amounts if self.caps.apart else asked.shared_amounts
        fits_all = not asked.shared or (
            int(exact_loss(asked, shared).max()) + news.epsilon_nano <= 200 + sum(self.grants.values())
            and sum(spent.unit_epsilon_nano for _, spent in shared) + news.unit_epsilon_nano <= 500
            and sum(spent.most.table_nano for _, spent in shared) + news.table_nano <= 700
        )
        return (
            fits_all
            and asked.epsilon_nano <= 90
            and int(exact_loss(asked, own).max()) + asked.epsilon_nano <= 150
            and (self.unit == "row" or sum(s.unit_epsilon_nano for _, s in own) + asked.unit_epsilon_nano <= 400)
        )

    def losses(self, data: st.DataObject, charge: Charge, most: int) -> Spent:
        size = charge.cells.size
        losses = data.draw(st.lists(st.integers(0, most), min_size=size, max_size=size))
        unit_nano = 0 if self.unit == "row" else max(losses)
        if data.draw(st.booleans()):
            return Spent.uniform(max(losses), unit_epsilon_nano=unit_nano)
        return Spent.per_key(losses, unit_epsilon_nano=unit_nano)

    @rule(data=st.data(), which=st.integers(0, 1), target=reservations)
    def reserve(self, data: st.DataObject, which: int) -> object:
        asked = data.draw(questions(self.unit))
        version = asked.family.version
        identities = data.draw(st.sets(st.sampled_from(IDENTITIES)))
        states = sorted(
            head.state for identity in identities if (head := self.heads.get((identity, version))) is not None
        )
        if states:
            shared, known = (data.draw(st.integers(0, 100)) for _ in range(2))
            amounts = [Amounts(value, 0 if self.unit == "row" else value) for value in (shared, known)]
            asked = replace(asked, continuing=Continuing(tuple(states), shared=amounts[0], known=amounts[1]))
        left = self.ledgers[1 - which].left_for(asked, self.caps)
        taken = any(self.heads[state.identity, version].taken is not None for state in states)
        try:
            reservation = self.ledgers[which].reserve(asked, self.caps)
        except PathTaken:
            assert taken
            return multiple()
        except OverBudget:
            assert not taken
            assert not self.fits(asked)
            assert not left.admits(asked)
            return multiple()
        assert not taken
        assert self.fits(asked)
        assert left.admits(asked)
        for state in states:
            head = self.heads[state.identity, version]
            head.taken = reservation.id
        self.paid[reservation.id] = Paid(
            asked,
            own=uniform(asked.own_amounts),
            shared=uniform(asked.shared_amounts),
            known=uniform(asked.known_amounts),
            refunded=uniform(asked.known_amounts),
            window=self.window,
        )
        self.open.add(reservation.id)
        self.recount()
        return reservation

    def recount(self) -> None:
        """Refunds count unless a path of the question is being continued, or was."""
        for identity, item in self.paid.items():
            if identity in self.open or not item.charge.shared or item.charge.continuing is not None:
                continue
            held = (
                any(head.origin == identity and head.taken in self.open for head in self.heads.values())
                or identity in self.withdrawn
            )
            item.refunded = item.known if held else item.own

    @rule(data=st.data(), reservation=consumes(reservations), which=st.integers(0, 1), target=closed)
    def commit(self, data: st.DataObject, reservation: Reservation, which: int) -> Reservation:
        if reservation.id not in self.open:
            return reservation
        item = self.paid[reservation.id]
        charge = item.charge
        spent = self.losses(data, charge, charge.epsilon_nano)
        if reservation.charge.continuing is not None:
            fresh = self.losses(data, charge, reservation.charge.shared_amounts.epsilon_nano)
            spent = replace(spent, fresh=fresh)
        bodies = {name: name.encode() for name in data.draw(st.sets(st.sampled_from(IDENTITIES)))}
        self.ledgers[which].commit(reservation, spent, data.draw(st.sampled_from([None, b"keys"])), paths=bodies)
        item.own, item.shared = replace(spent, fresh=None), spent.to_everybody(charge)
        self.open.discard(reservation.id)
        self.leave(charge)
        version = charge.family.version
        for name in () if reservation.id in self.ended else bodies:
            self.forget(name, version)
            origin = reservation.id if charge.continuing is None else None
            self.heads[name, version] = Head(PathState(name, version, reservation.id), origin)
        self.recount()
        return reservation

    def leave(self, charge: Charge) -> None:
        for state in () if charge.continuing is None else charge.continuing.paths:
            self.withdrawn.update(
                head.origin for head in self.heads.values() if head.state == state and head.origin is not None
            )
            self.heads = {key: head for key, head in self.heads.items() if head.state != state}

    def forget(self, name: str, version: str) -> None:
        """A path that is gone while a question continues it is never given back."""
        head = self.heads.pop((name, version), None)
        if head is not None and head.taken in self.open and head.origin is not None:
            self.withdrawn.add(head.origin)

    def give_back(self, identity: str) -> None:
        charge = self.paid.pop(identity).charge
        self.open.discard(identity)
        for head in self.heads.values():
            if head.taken == identity:
                head.taken = None
        assert charge.shared
        self.recount()

    @rule(reservation=consumes(reservations), which=st.integers(0, 1), target=closed)
    def release(self, reservation: Reservation, which: int) -> Reservation:
        if reservation.id in self.open:
            self.ledgers[which].release(reservation)
            self.give_back(reservation.id)
        return reservation

    @rule(reservation=consumes(reservations), which=st.integers(0, 1), untouched=st.booleans(), target=closed)
    def settle(self, reservation: Reservation, which: int, untouched: bool) -> Reservation:
        if reservation.id in self.open:
            self.ledgers[which].owner.settle(reservation.id, untouched=untouched, by="owner", why="died")
            if untouched:
                self.give_back(reservation.id)
            else:
                self.leave(self.paid[reservation.id].charge)
                self.open.discard(reservation.id)
                self.recount()
        return reservation

    @rule(data=st.data(), which=st.integers(0, 1))
    def read(self, data: st.DataObject, which: int) -> None:
        asked = replace(data.draw(questions(self.unit)), shared=False)
        found = self.ledgers[1 - which].find_paths(IDENTITIES, asked.family.version)
        states = {name: path.state for name, path in found.items()}
        version = asked.family.version
        assert states == {name: head.state for (name, of), head in self.heads.items() if of == version}
        assert {name: path.taken for name, path in found.items()} == {
            name: head.taken is not None for (name, of), head in self.heads.items() if of == version
        }
        if not states:
            return
        spent = self.losses(data, asked, asked.epsilon_nano)
        try:
            reservation = self.ledgers[which].read(
                asked, self.caps, spent=spent, answer=b"keys", reading=tuple(states.values())
            )
        except OverBudget:
            assert not self.fits(asked)
            return
        assert self.fits(asked)
        self.paid[reservation.id] = Paid(asked, spent, NOTHING, NOTHING, NOTHING, self.window)

    @rule(amount=st.integers(1, 100), which=st.integers(0, 1))
    def grant(self, amount: int, which: int) -> None:
        given = Grant(scope=Scope.PER_PREDICATE, amount_nano=amount, table=None, analyst=None)
        self.grants[self.ledgers[which].owner.grant(given, by="owner", why="asked")] = amount

    @rule(which=st.integers(0, 1), data=st.data())
    def revoke(self, which: int, data: st.DataObject) -> None:
        if self.grants:
            identity = data.draw(st.sampled_from(list(self.grants)))
            self.ledgers[which].owner.revoke(identity, by="owner", why="over")
            del self.grants[identity]

    @rule(which=st.integers(0, 1), sure=st.integers(0, 3))
    def open_window(self, which: int, sure: int) -> None:
        if sure:
            return
        self.ledgers[which].owner.open_window(by="owner", why="a new year")
        self.window += 1
        self.heads.clear()
        for identity in self.open:
            item = self.paid[identity]
            if item.charge.continuing is not None:
                self.ended.add(identity)
            charge = replace(item.charge, continuing=None)
            worst = uniform(charge.own_amounts)
            self.paid[identity] = Paid(charge, worst, worst, worst, worst, self.window)

    @rule(version=st.sampled_from(["v1", "v2"]), which=st.integers(0, 1))
    def prune(self, version: str, which: int) -> None:
        self.ledgers[which].owner.prune("sales", version, by="owner", why="old")
        for name in IDENTITIES:
            self.forget(name, version)

    @rule(reservation=closed, which=st.integers(0, 1))
    def close_twice(self, reservation: Reservation, which: int) -> None:
        with pytest.raises(LedgerMisuse):
            self.ledgers[which].release(reservation)
        with pytest.raises(LedgerMisuse):
            self.ledgers[which].commit(reservation, NOTHING, None)
        with pytest.raises(LedgerMisuse):
            self.ledgers[which].owner.settle(reservation.id, untouched=True, by="owner", why="died")

    @rule(which=st.integers(0, 1))
    def restart(self, which: int) -> None:
        self.ledgers[which].close()
        self.ledgers[which] = Ledger.open(self.url, clock=now, snapshot_every=5)

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "paid"):
            return
        for ledger in self.ledgers:
            assert {reservation.id for reservation in ledger.open_reservations()} == self.open
        paid = [item for item in self.paid.values() if item.window == self.window]
        report = self.ledgers[0].balances(CAPS)
        assert report.unit_spent_nano == sum(item.shared.unit_epsilon_nano for item in paid)
        assert {table.table: table.spent_nano for table in report.tables}.get("sales", 0) == sum(
            item.shared.most.table_nano for item in paid
        )

    def teardown(self) -> None:
        self.ledgers[0].balances(CAPS, all_windows=True)
        self.ledgers[0].verify()
        for ledger in self.ledgers:
            ledger.close()


@pytest.mark.parametrize(("backend", "examples"), [("sqlite", 30), ("postgresql", 12)])
def test_any_interleaving(backend: str, examples: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    names = iter(range(10**6))

    def new_file() -> str:
        return f"sqlite:///{tmp_path}/ledger{next(names)}.db"

    new_url: Callable[[], str] = new_file if backend == "sqlite" else request.getfixturevalue("new_database")

    class Machine(LedgerMachine):
        def __init__(self) -> None:
            super().__init__(new_url)

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
