"""Any interleaving of the verbs over two open ledgers: never overspent, never lost."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from accountant.errors import LedgerMisuse, OverBudget
from accountant.ledger import Ledger
from accountant.model import Charge, Reservation, Spent
from tests.accountant.conftest import now
from tests.accountant.examples import all_of, limits
from tests.accountant.test_overlap import exact_loss, questions

CAPS = limits(200, per_unit=500, per_query=90, analyst_per_predicate=150, analyst_per_unit=400)


class LedgerMachine(RuleBasedStateMachine):
    """The model is a list of what was paid; its balances are brute force over every possible record."""

    reservations = Bundle("reservations")
    closed = Bundle("closed")

    @initialize(unit=st.sampled_from(["row", "customer_id"]), apart=st.booleans())
    def start(self, unit: str, apart: bool) -> None:
        self.caps = replace(CAPS, apart=apart)
        self.folder = TemporaryDirectory()
        self.url = f"sqlite:///{Path(self.folder.name)}/ledger.db"
        self.unit = unit
        self.paid: dict[str, tuple[Charge, Spent]] = {}
        self.open: set[str] = set()
        self.ledgers = [Ledger.open(self.url, clock=now), Ledger.open(self.url, clock=now)]

    def fits(self, asked: Charge) -> bool:
        everything = [
            (charge, all_of(charge) if self.caps.apart and charge.analyst != asked.analyst else spent)
            for charge, spent in self.paid.values()
        ]
        own = [(charge, spent) for charge, spent in everything if charge.analyst == asked.analyst]
        return (
            asked.epsilon_nano <= 90
            and int(exact_loss(asked, everything).max()) + asked.epsilon_nano <= 200
            and int(exact_loss(asked, own).max()) + asked.epsilon_nano <= 150
            and sum(spent.unit_epsilon_nano for _, spent in everything) + asked.unit_epsilon_nano <= 500
            and sum(spent.unit_epsilon_nano for _, spent in own) + asked.unit_epsilon_nano <= 400
        )

    @rule(data=st.data(), which=st.integers(0, 1), target=reservations)
    def reserve(self, data: st.DataObject, which: int) -> object:
        asked = data.draw(questions(self.unit))
        left = self.ledgers[1 - which].left_for(asked, self.caps)
        unit_fits = left.unit_epsilon_nano is None or asked.unit_epsilon_nano <= left.unit_epsilon_nano
        try:
            reservation = self.ledgers[which].reserve(asked, self.caps)
        except OverBudget:
            assert not self.fits(asked)
            assert not (asked.epsilon_nano <= left.epsilon_nano and unit_fits)
            return multiple()
        assert self.fits(asked)
        assert asked.epsilon_nano <= left.epsilon_nano
        assert unit_fits
        self.paid[reservation.id] = (asked, all_of(asked))
        self.open.add(reservation.id)
        return reservation

    @rule(data=st.data(), reservation=consumes(reservations), which=st.integers(0, 1), target=closed)
    def commit(self, data: st.DataObject, reservation: Reservation, which: int) -> Reservation:
        charge = reservation.charge
        losses = data.draw(
            st.lists(st.integers(0, charge.epsilon_nano), min_size=charge.cells.size, max_size=charge.cells.size)
        )
        unit_nano = 0 if self.unit == "row" else max(losses)
        spent = Spent.per_key(losses, unit_epsilon_nano=unit_nano)
        if data.draw(st.booleans()):
            spent = Spent.uniform(max(losses), unit_epsilon_nano=unit_nano)
        self.ledgers[which].commit(reservation, spent, data.draw(st.sampled_from([None, b"keys"])))
        self.paid[reservation.id] = (charge, spent)
        self.open.discard(reservation.id)
        return reservation

    @rule(reservation=consumes(reservations), which=st.integers(0, 1), target=closed)
    def release(self, reservation: Reservation, which: int) -> Reservation:
        self.ledgers[which].release(reservation)
        del self.paid[reservation.id]
        self.open.discard(reservation.id)
        return reservation

    @rule(reservation=closed, which=st.integers(0, 1))
    def close_twice(self, reservation: Reservation, which: int) -> None:
        with pytest.raises(LedgerMisuse):
            self.ledgers[which].release(reservation)
        with pytest.raises(LedgerMisuse):
            self.ledgers[which].commit(reservation, Spent.uniform(0, unit_epsilon_nano=0), None)

    @rule(which=st.integers(0, 1))
    def restart(self, which: int) -> None:
        self.ledgers[which].close()
        self.ledgers[which] = Ledger.open(self.url, clock=now)

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "ledgers"):
            return
        for ledger in self.ledgers:
            assert {reservation.id for reservation in ledger.open_reservations()} == self.open
        total = sum(spent.unit_epsilon_nano for _, spent in self.paid.values())
        assert self.ledgers[0].balances(CAPS).unit_spent_nano == total

    def teardown(self) -> None:
        if hasattr(self, "ledgers"):
            self.ledgers[0].verify()
            for ledger in self.ledgers:
                ledger.close()
            self.folder.cleanup()


LedgerMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestLedgerMachine = LedgerMachine.TestCase
