"""Any interleaving of the verbs over two open ledgers: never overspent, never lost, no path continued twice."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from accountant import cell_balance, unit_balance
from accountant.charges import Amounts, Charge, PathContinuation, PathState, Reservation
from accountant.errors import BalanceScope, LedgerMisuse, OverBudget, PathTaken
from accountant.events.owner_events import Grant
from accountant.ledger import Ledger
from accountant.limits import Headroom
from tests.accountant.balances.test_overlap import ALL_VERSIONS, IMMUTABLE, questions
from tests.accountant.conftest import now
from tests.accountant.drawing import a_loss, following, sized, uniform, with_curve
from tests.accountant.examples import cells, charge
from tests.accountant.model_ledger import CAPS, DELTA, NOTHING, OWN_CAP, ModelLedger, small_conversion
from tests.effort import examples, rounds

IDENTITIES = ("f", "g")
SOME = st.sampled_from([frozenset("f"), frozenset("g"), frozenset(IDENTITIES)])
ANY = st.one_of(st.just(frozenset[str]()), SOME)
WHICH = st.integers(0, 1)
ANALYSTS = ("ann", "bob", "eve")
OWN_CAPS = st.sampled_from([OWN_CAP, OWN_CAP // 10])
REPORT_EVERY_STEPS = 4
BY = {"by": "owner", "why": "asked"}


class LedgerMachine(RuleBasedStateMachine):
    """Every step is made by one of the ledgers and by the model; then both must know the same."""

    def __init__(self, new_url: Callable[[], str]) -> None:
        super().__init__()
        self.new_url = new_url
        self.opened: list[Ledger] = []
        self.model = ModelLedger()
        self.closed: list[Reservation] = []
        self.numbers = count()
        self.steps = 0

    @initialize(
        unit=st.sampled_from(["row", "customer_id"]),
        apart=st.booleans(),
        delta=st.sampled_from([None, DELTA, DELTA]),
        cell_delta=st.sampled_from([None, DELTA, DELTA]),
    )
    def start(self, unit: str, apart: bool, delta: float | None, cell_delta: float | None) -> None:
        self.model = ModelLedger(unit, replace(CAPS, separates_analysts=apart, delta=delta, cell_delta=cell_delta))

    @property
    def ledgers(self) -> list[Ledger]:
        """Opened when they are needed: many an example ends before its first step."""
        if not self.opened:
            self.url = self.new_url()
            self.opened = [Ledger.open(self.url, clock=now, snapshot_every=2) for _ in range(2)]
        return self.opened

    def try_to_reserve(self, data: st.DataObject, asked: Charge, which: int) -> Reservation | None:
        states = [] if asked.path_continuation is None else list(asked.path_continuation.paths)
        for_units = self.model.caps.delta is not None and self.model.unit != "row" and not states
        for_cells = self.model.caps.cell_delta is not None and not states
        asked = with_curve(data, asked, for_units=for_units, for_cells=for_cells)
        left = self.ledgers[1 - which].find_headroom(asked, self.model.caps)
        self.check_left(asked, left)
        taken = self.model.is_taken(states)
        try:
            reservation = self.ledgers[which].reserve(asked, self.model.caps)
        except PathTaken:
            assert taken
            return None
        except OverBudget:
            assert not taken
            assert not left.admits_charge(asked)
            return None
        assert not taken
        assert left.admits_charge(asked)
        charged = reservation.charge
        assert charged == (asked if left.uses_curve else asked.without_curves())
        self.model.reserve(reservation)
        self.model.check_within_caps(asked.analyst, asked)
        return reservation

    def check_left(self, asked: Charge, left: Headroom) -> None:
        """Exact; or less, where refunds are withdrawn: what they were of is then bounded by itself."""
        exact = self.model.left(asked, OWN_CAP)
        if self.model.caps.separates_analysts and self.model.withdrawn_by(asked):
            assert left.shared_room.epsilon_nano <= exact.shared_room.epsilon_nano
            left = replace(left, shared_room=replace(left.shared_room, epsilon_nano=exact.shared_room.epsilon_nano))
            told = [(one, there) for one, there in zip(left.balances, exact.balances, strict=True) if one != there]
            assert [one.scope for one, _ in told] in ([], [BalanceScope.PER_PREDICATE])
            assert all(replace(there, left_nano=one.left_nano) == one for one, there in told)
            assert all(one.left_nano <= there.left_nano for one, there in told)
            left = replace(left, balances=exact.balances)
        assert replace(left, uses_curve=False) == exact
        for uses_curve in (True, False) if self.model.caps.cell_delta is not None else ():
            further = self.model.further(asked, OWN_CAP, uses_curve=uses_curve)
            for one in left.balances:
                if one.scope in further:
                    assert one.cell_room is not None
                    curve = asked.cell_renyi if uses_curve else None
                    count = one.cell_room.count_further_questions(asked.epsilon_nano, curve)
                    assert min(count, 10**6) == further[one.scope]

    def do_commit(self, data: st.DataObject, reservation: Reservation, which: int, names: frozenset[str]) -> None:
        spent = a_loss(data, reservation.charge)
        answer = data.draw(st.sampled_from([None, b"keys %d" % next(self.numbers)]))
        bodies = {name: name.encode() for name in names}
        self.ledgers[which].commit(reservation, spent, answer, paths=bodies)
        self.model.commit(reservation.id, spent, answer, names)
        self.closed.append(reservation)

    def one_open(self, data: st.DataObject, names: Iterable[str]) -> Reservation:
        return self.model.open[data.draw(st.sampled_from(list(names)))]

    @rule(data=st.data(), which=WHICH, identities=ANY)
    def reserve(self, data: st.DataObject, which: int, identities: frozenset[str]) -> None:
        asked = following(data, self.model, data.draw(questions(self.model.unit)), identities, 100)
        self.try_to_reserve(data, asked, which)

    @rule(data=st.data(), which=WHICH, names=SOME)
    def leave_path(self, data: st.DataObject, which: int, names: frozenset[str]) -> None:
        reservation = self.try_to_reserve(data, sized(data.draw(questions(self.model.unit)), 20), which)
        if reservation is not None:
            self.do_commit(data, reservation, which, names)

    @rule(data=st.data(), which=WHICH, names=SOME)
    def continue_path(self, data: st.DataObject, which: int, names: frozenset[str]) -> None:
        """Rather a path that is free; one is left first where there is none."""
        if not self.model.heads:
            self.leave_path(data, which, names)
        heads = list(self.model.heads)
        if data.draw(st.booleans()):
            heads = [key for key in heads if self.model.heads[key].taken is None] or heads
        if heads:
            identity, version = data.draw(st.sampled_from(heads))
            asked = sized(data.draw(questions(self.model.unit, versions=(version,))), 30)
            self.try_to_reserve(data, following(data, self.model, asked, frozenset(identity), 30), which)

    @precondition(lambda self: self.model.gone)
    @rule(data=st.data(), which=WHICH)
    def continue_what_is_gone(self, data: st.DataObject, which: int) -> None:
        state = data.draw(st.sampled_from(self.model.gone[-3:]))
        asked = data.draw(questions(self.model.unit, versions=(state.version,)))
        news = PathContinuation((state,), shared_loss=Amounts(0, 0), public_loss=Amounts(0, 0))
        with pytest.raises(PathTaken):
            self.ledgers[which].reserve(replace(asked, path_continuation=news), self.model.caps)

    @precondition(lambda self: self.model.open)
    @rule(data=st.data(), which=WHICH, names=ANY)
    def commit(self, data: st.DataObject, which: int, names: frozenset[str]) -> None:
        before = self.model.continued_before() if data.draw(st.booleans()) else []
        self.do_commit(data, self.one_open(data, before or self.model.open), which, names)

    @rule(data=st.data(), which=WHICH, names=SOME)
    def open_window_over_a_continued_path(self, data: st.DataObject, which: int, names: frozenset[str]) -> None:
        """The ledgers know of it by the events, or one of them by what it stored."""
        if not self.model.continuing():
            self.continue_path(data, which, names)
        self.open_window(which)
        if data.draw(st.booleans()):
            self.restart(which)

    @precondition(lambda self: self.model.continued_before())
    @rule(data=st.data(), which=WHICH, names=SOME)
    def commit_after_a_window(self, data: st.DataObject, which: int, names: frozenset[str]) -> None:
        self.do_commit(data, self.one_open(data, self.model.continued_before()), which, names)

    @precondition(lambda self: self.model.open)
    @rule(data=st.data(), which=WHICH)
    def commit_too_much(self, data: st.DataObject, which: int) -> None:
        """More than a key was reserved, or more that is fresh: also of what continued a path before a window."""
        names = self.model.continued_before() or self.model.continuing() or list(self.model.open)
        reservation = self.one_open(data, names)
        news = reservation.charge.path_continuation
        if news is None:
            beyond = reservation.charge.epsilon_nano + 1
            spent = uniform(beyond, unit=self.model.unit)
        else:
            beyond = news.shared_loss.epsilon_nano + 1
            spent = replace(NOTHING, fresh=uniform(beyond, unit=self.model.unit))
        with pytest.raises(LedgerMisuse):
            self.ledgers[which].commit(reservation, spent, b"keys")

    @rule(data=st.data(), which=WHICH, names=SOME, how=st.sampled_from(["release", "untouched", "for good"]))
    def end(self, data: st.DataObject, which: int, names: frozenset[str], how: str) -> None:
        """Without an answer; of a question that continues a path, where there is one."""
        if not self.model.continuing():
            self.continue_path(data, which, names)
        if not self.model.open:
            return
        reservation = self.one_open(data, self.model.continuing() or self.model.open)
        self.closed.append(reservation)
        if how == "release":
            self.ledgers[which].release(reservation)
        else:
            self.ledgers[which].owner.settle_reservation(reservation.id, untouched=how == "untouched", **BY)
        if how == "for good":
            self.model.spend_for_good(reservation.id)
        else:
            self.model.give_back(reservation.id)

    @precondition(lambda self: self.closed)
    @rule(data=st.data(), which=WHICH)
    def close_twice(self, data: st.DataObject, which: int) -> None:
        reservation, ledger = data.draw(st.sampled_from(self.closed)), self.ledgers[which]
        with pytest.raises(LedgerMisuse):
            ledger.release(reservation)
        with pytest.raises(LedgerMisuse):
            ledger.commit(reservation, NOTHING, None)
        for untouched in (True, False):
            with pytest.raises(LedgerMisuse):
                ledger.owner.settle_reservation(reservation.id, untouched=untouched, **BY)

    @rule(data=st.data(), which=WHICH, names=SOME, own_cap=OWN_CAPS)
    def read(self, data: st.DataObject, which: int, names: frozenset[str], own_cap: int) -> None:
        if not self.model.heads:
            self.leave_path(data, which, names)
        asked = replace(data.draw(questions(self.model.unit)), shared=False)
        found = self.ledgers[1 - which].find_paths(IDENTITIES, asked.family.version)
        if not found:
            return
        spent, answer = a_loss(data, asked), b"keys %d" % next(self.numbers)
        reading = tuple(path.state for path in found.values())
        caps = replace(self.model.caps, analyst_per_predicate_nano=own_cap)
        fits = self.model.left(asked, own_cap).admits_charge(asked)
        try:
            reservation = self.ledgers[which].charge_reading(asked, caps, spent=spent, answer=answer, reading=reading)
        except OverBudget:
            assert not fits
            return
        assert fits
        self.model.read(reservation.id, asked, spent, answer)

    @precondition(lambda self: self.model.answers)
    @rule(data=st.data(), analyst=st.sampled_from(ANALYSTS), which=WHICH, own_cap=OWN_CAPS)
    def read_stored_twice(self, data: st.DataObject, analyst: str, which: int, own_cap: int) -> None:
        """The second time it is held, unless the first was refused."""
        versions = {self.model.paid[identity].charge.family.version for identity in self.model.answers}
        version = data.draw(st.sampled_from(sorted(versions)))
        self.read_stored(analyst, version, which, own_cap)
        if data.draw(st.booleans()):
            self.restart(which)
        self.read_stored(analyst, version, 1 - which, own_cap)

    def read_stored(self, analyst: str, version: str, which: int, own_cap: int) -> None:
        stored = self.ledgers[1 - which].find_answer("q1", version, analyst=analyst)
        expected = self.model.answer_for(analyst, version)
        assert (None if stored is None else stored.reservation) == expected
        if stored is None or expected is None:
            return
        original = self.model.paid[expected]
        unmoved = original.charge.without_curves()
        asked = replace(unmoved, analyst=analyst, shared=False, path_continuation=None)
        assert (stored.answer, stored.make_reading_charge(analyst)) == (self.model.answers[expected], asked)
        assert stored.is_held == ((analyst, version) in self.model.held)
        caps = replace(self.model.caps, analyst_per_predicate_nano=own_cap)
        fits = self.model.left(asked, own_cap).admits_charge(asked)
        try:
            reservation = self.ledgers[which].charge_reader(asked, caps, answer=stored)
        except OverBudget:
            assert not stored.is_held
            assert not fits
            return
        assert (reservation is None) == stored.is_held
        if reservation is not None:
            assert fits
            self.model.read(reservation.id, asked, original.own, None)
            self.model.hold(analyst, version, expected)

    @rule(data=st.data(), which=WHICH, what=st.sampled_from(["grant", "revoke", "window", "restart"]))
    def decide(self, data: st.DataObject, which: int, what: str) -> None:
        """The owner's verbs share a rule: too many grants and windows, and nothing is refused any more."""
        owner = self.ledgers[which].owner
        if what == "restart":
            self.restart(which)
        elif what == "window":
            self.open_window(which)
        elif what == "revoke" and self.model.grants:
            identity = data.draw(st.sampled_from(list(self.model.grants)))
            owner.revoke_grant(identity, **BY)
            del self.model.grants[identity]
        else:
            amount = data.draw(st.integers(1, 100))
            given = Grant(scope=BalanceScope.PER_PREDICATE, amount_nano=amount, table=None, analyst=None)
            self.model.grants[owner.write_grant(given, **BY)] = amount

    @rule(data=st.data(), which=WHICH, names=SOME)
    def prune(self, data: st.DataObject, which: int, names: frozenset[str]) -> None:
        if not self.model.heads:
            self.leave_path(data, which, names)
        version = data.draw(st.sampled_from([version for _, version in self.model.heads] or ALL_VERSIONS))
        self.ledgers[which].owner.prune_paths("sales", version, **BY)
        self.model.prune(version)
        if self.model.gone:
            self.continue_what_is_gone(data, which)

    def open_window(self, which: int) -> None:
        self.ledgers[which].owner.open_window(**BY)
        self.model.open_window()

    def restart(self, which: int) -> None:
        self.ledgers[which].close()
        self.opened[which] = Ledger.open(self.url, clock=now, snapshot_every=2)

    @invariant()
    def nothing_is_lost(self) -> None:
        if not self.opened:
            return
        for ledger in self.opened:
            assert {reservation.id for reservation in ledger.list_open_reservations()} == set(self.model.open)
        self.steps += 1
        if self.steps % REPORT_EVERY_STEPS == 0:
            self.check_report()

    def check_report(self) -> None:
        paid = self.model.in_window()
        report = self.ledgers[0].report_balances(self.model.caps)
        for analyst in ANALYSTS:
            everything = charge(1, keys=cells(), unit=self.model.unit, immutable=IMMUTABLE, analyst=analyst)
            assert self.ledgers[1].find_headroom(everything, self.model.caps) == self.model.left(everything, OWN_CAP)
        assert report.unit_spent_nano == self.model.balance([(item.charge, item.shared) for item in paid])
        assert {table.table: table.spent_nano for table in report.tables}.get("sales", 0) == sum(
            item.shared.largest_losses.table_nano for item in paid
        )

    @invariant()
    def paths_are_those_that_were_left(self) -> None:
        if not self.opened:
            return
        found: dict[PathState, bool] = {}
        for version in ALL_VERSIONS:
            paths = self.ledgers[1].find_paths(IDENTITIES, version)
            assert all(path.body == name.encode() for name, path in paths.items())
            found |= {path.state: path.is_taken for path in paths.values()}
        assert found == {head.state: head.taken is not None for head in self.model.heads.values()}

    def teardown(self) -> None:
        if not self.opened:
            return
        self.check_report()
        self.ledgers[0].report_balances(CAPS, covers_all_windows=True)
        self.ledgers[0].verify_everything()
        for ledger in self.opened:
            ledger.close()


@pytest.mark.parametrize(
    ("backend", "histories"), [("sqlite", rounds(50, quick=4)), ("postgresql", rounds(8, quick=3))]
)
def test_any_interleaving(
    backend: str, histories: int, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_balance, "convert_to_epsilon", small_conversion)
    monkeypatch.setattr(cell_balance, "convert_to_epsilon", small_conversion)
    names = iter(range(10**6))

    def new_file() -> str:
        return f"sqlite:///{tmp_path}/ledger{next(names)}.db"

    new_url: Callable[[], str] = new_file if backend == "sqlite" else request.getfixturevalue("new_database")

    class Machine(LedgerMachine):
        def __init__(self) -> None:
            super().__init__(new_url)

    run_state_machine_as_test(
        Machine,
        settings=examples(histories, quick=15, stateful_step_count=25, suppress_health_check=list(HealthCheck)),
    )
