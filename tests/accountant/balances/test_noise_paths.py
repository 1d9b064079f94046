"""Noise paths: stored with the commit, continued by one question at a time, charged the difference."""

from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import DatabaseError

from accountant.balances.fold import Balances
from accountant.charges import NANO, Amounts, Charge, NanoArray, PathContinuation, PathState, Reservation, Spent
from accountant.errors import BalanceScope, LedgerMisuse, LedgerUnavailable, OverBudget, PathTaken
from accountant.events.events import Committed, Reserved
from accountant.ledger import MOST_PATH_BYTES, Ledger
from accountant.limits import BalanceRoom, Limits
from tests.accountant.conftest import now
from tests.accountant.examples import all_of, charge, continuing, limits, per_key
from tests.effort import examples

PATHS = {"sum of amount": b"values"}


def drawn(ledger: Ledger, *, losses: list[int], worst: int = 2 * NANO, analyst: str = "ann") -> PathState:
    """A question that left a path; its newest state."""
    reservation = ledger.reserve(charge(worst, analyst=analyst), limits())
    ledger.commit(reservation, per_key(losses), b"FR", paths=PATHS)
    return ledger.find_paths(PATHS, "v1")["sum of amount"].state


def sharper(
    state: PathState, *, own: int = 3 * NANO, shared: int = 3 * NANO, known: int = NANO, analyst: str = "bob"
) -> Charge:
    return charge(own, question="q2", analyst=analyst, continuing=continuing(state, shared=shared, known=known))


def spent_on(ledger: Ledger, caps: Limits, analyst: str | None = None) -> tuple[int, ...]:
    (family,) = ledger.report_balances(caps, analyst=analyst).families
    return family.spent_nano


def test_a_path_is_found_as_it_was_committed_on_its_version_alone(ledger: Ledger) -> None:
    assert ledger.find_paths(["sum of amount"], "v1") == {}
    state = drawn(ledger, losses=[NANO, 0, 2 * NANO])
    (found,) = ledger.find_paths(["count", "sum of amount"], "v1").values()
    assert (found.body, found.is_taken, found.questions, found.state) == (b"values", False, 1, state)
    assert ledger.find_paths(["sum of amount"], "v2") == {}
    assert "values" not in repr(found)
    assert ledger.verify_everything() == 2


def test_a_continuing_question_charges_everybody_the_difference_and_its_analyst_in_full(ledger: Ledger) -> None:
    state = drawn(ledger, losses=[NANO, 0, 2 * NANO])
    reservation = ledger.reserve(sharper(state), limits(6 * NANO))
    assert spent_on(ledger, limits()) == (4 * NANO, 3 * NANO, 5 * NANO)
    grown = {"sum of amount": b"more values"}
    own, fresh = [3 * NANO, 3 * NANO, 2 * NANO], [2 * NANO, 3 * NANO, 0]
    ledger.commit(reservation, per_key(own, fresh=fresh), b"UK", paths=grown)
    assert spent_on(ledger, limits()) == (3 * NANO, 3 * NANO, 2 * NANO)
    assert spent_on(ledger, limits(), "bob") == tuple(own)
    assert spent_on(ledger, limits(), "ann") == (NANO, 0, 2 * NANO)
    (found,) = ledger.find_paths(PATHS, "v1").values()
    assert (found.body, found.questions) == (b"more values", 2)
    assert found.state != state
    assert ledger.verify_everything() == 4


def test_each_balance_is_compared_with_its_own_amount(ledger: Ledger) -> None:
    state = drawn(ledger, losses=[2 * NANO] * 3)
    asked = sharper(state, own=3 * NANO, shared=2 * NANO, known=NANO)
    refusals = {
        BalanceScope.PER_QUERY: (limits(9 * NANO, per_query=3 * NANO - 1), 3 * NANO),
        BalanceScope.PER_PREDICATE: (limits(4 * NANO - 1), 2 * NANO),
        BalanceScope.PER_TABLE: (limits(9 * NANO, per_table=4 * NANO - 1), 2 * NANO),
        BalanceScope.ANALYST_PER_PREDICATE: (limits(9 * NANO, analyst_per_predicate=3 * NANO - 1), 3 * NANO),
    }
    for scope, (caps, needed) in refusals.items():
        with pytest.raises(OverBudget) as refusal:
            ledger.reserve(asked, caps)
        assert (refusal.value.scope, refusal.value.needed_nano) == (scope, needed)
        assert not ledger.find_headroom(asked, caps).admits_charge(asked)
    with pytest.raises(OverBudget) as refusal:
        ledger.reserve(asked, limits(3 * NANO - 1, apart=True))
    assert refusal.value.needed_nano == NANO
    caps = limits(3 * NANO, apart=True, analyst_per_predicate=3 * NANO)
    assert ledger.find_headroom(asked, caps).admits_charge(asked)
    ledger.reserve(asked, caps)


def test_only_one_question_continues_a_path_and_only_its_newest_state(ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=now) as ledger, Ledger.open(ledger_url, clock=now) as other:
        state = drawn(ledger, losses=[NANO] * 3)
        caps = limits(20 * NANO)
        reservation = ledger.reserve(sharper(state), caps)
        assert other.find_paths(PATHS, "v1")["sum of amount"].is_taken
        events = ledger.verify_everything()
        for wrong in (state, replace(state, reservation=reservation.id), replace(state, identity="count")):
            with pytest.raises(PathTaken):
                other.reserve(sharper(wrong), caps)
        assert other.verify_everything() == events
        ledger.release(reservation)
        again = other.reserve(sharper(state), caps)
        other.commit(again, per_key([3 * NANO] * 3, fresh=[2 * NANO] * 3), None, paths=PATHS)
        with pytest.raises(PathTaken):
            ledger.reserve(sharper(state), caps)
        newest = ledger.find_paths(PATHS, "v1")["sum of amount"].state
        ledger.reserve(sharper(newest), caps)


def test_a_dead_question_leaves_its_path_to_the_owner(ledger: Ledger) -> None:
    caps = limits(20 * NANO)
    state = drawn(ledger, losses=[NANO] * 3)
    dead = ledger.reserve(sharper(state), caps)
    ledger.owner.settle_reservation(dead.id, untouched=True, by="owner", why="power cut before the source was read")
    dead = ledger.reserve(sharper(state), caps)
    ledger.owner.settle_reservation(dead.id, untouched=False, by="owner", why="killed")
    assert ledger.find_paths(PATHS, "v1") == {}
    with pytest.raises(PathTaken):
        ledger.reserve(sharper(state), caps)
    assert spent_on(ledger, caps) == (4 * NANO,) * 3
    for untouched in (True, False):
        with pytest.raises(LedgerMisuse):
            ledger.owner.settle_reservation(dead.id, untouched=untouched, by="owner", why="again")
    with pytest.raises(LedgerMisuse):
        ledger.commit(dead, per_key([0] * 3, fresh=[0] * 3), None)
    assert ledger.verify_everything() == 6


def test_a_path_that_was_continued_and_not_kept_is_gone(ledger: Ledger) -> None:
    caps = limits(20 * NANO)
    for kept in ({}, {"sum of amount": bytes(MOST_PATH_BYTES + 1)}):
        reservation = ledger.reserve(sharper(drawn(ledger, losses=[NANO] * 3)), caps)
        ledger.commit(reservation, per_key([NANO] * 3, fresh=[0] * 3), None, paths=kept)
        assert ledger.find_paths(PATHS, "v1") == {}
    assert ledger.verify_everything() == 8


def test_a_commit_covers_own_and_fresh_losses_each_by_its_own_amount(ledger: Ledger) -> None:
    state = drawn(ledger, losses=[NANO] * 3)
    reservation = ledger.reserve(sharper(state, own=3 * NANO, shared=2 * NANO), limits(20 * NANO))
    for own, fresh in (
        ([3 * NANO + 1] * 3, [0] * 3),
        ([3 * NANO] * 3, [0, 0, 2 * NANO + 1]),
        ([3 * NANO] * 3, None),
        ([3 * NANO] * 3, [0] * 2),
    ):
        with pytest.raises(LedgerMisuse):
            ledger.commit(reservation, per_key(own, fresh=fresh), None)
    ledger.commit(reservation, per_key([3 * NANO] * 3, fresh=[2 * NANO] * 3), None)


def test_reading_a_path_charges_the_reader_alone_and_stores_an_answer(ledger: Ledger) -> None:
    state = drawn(ledger, losses=[NANO] * 3)
    asked = charge(2 * NANO, question="q2", analyst="bob", shared=False)
    spent = per_key([NANO, NANO, 0])
    caps = limits(2 * NANO, analyst_per_predicate=2 * NANO)
    with pytest.raises(LedgerMisuse):
        ledger.charge_reading(replace(asked, shared=True), caps, spent=spent, answer=b"FR", reading=(state,))
    with pytest.raises(PathTaken):
        ledger.charge_reading(asked, caps, spent=spent, answer=b"FR", reading=(replace(state, identity="count"),))
    with pytest.raises(OverBudget):
        ledger.charge_reading(asked, limits(analyst_per_predicate=NANO), spent=spent, answer=b"FR", reading=(state,))
    ledger.charge_reading(asked, caps, spent=spent, answer=b"FR", reading=(state,))
    assert ledger.find_paths(PATHS, "v1")["sum of amount"].questions == 2
    assert spent_on(ledger, caps) == (NANO,) * 3
    assert spent_on(ledger, caps, "bob") == (NANO, NANO, 0)
    stored = ledger.find_answer("q2", "v1", analyst="bob")
    assert stored is not None
    assert (stored.answer, stored.is_held) == (b"FR", True)
    hers = ledger.find_answer("q2", "v1", analyst="ann")
    assert hers is not None
    ledger.charge_reader(hers.make_reading_charge("ann"), limits(), answer=hers)
    assert spent_on(ledger, caps, "ann") == (2 * NANO, 2 * NANO, NANO)
    assert spent_on(ledger, caps) == (NANO,) * 3
    assert ledger.verify_everything() == 6


def test_values_can_be_read_while_another_question_continues_the_path(ledger: Ledger) -> None:
    state = drawn(ledger, losses=[NANO] * 3)
    reservation = ledger.reserve(sharper(state), limits(20 * NANO))
    asked = charge(NANO, question="q3", analyst="eve", shared=False)
    ledger.charge_reading(asked, limits(), spent=all_of(asked), answer=b"FR", reading=(state,))
    ledger.commit(reservation, per_key([3 * NANO] * 3, fresh=[2 * NANO] * 3), None, paths=PATHS)
    ledger.charge_reading(replace(asked, question="q4"), limits(), spent=all_of(asked), answer=b"FR", reading=(state,))
    assert ledger.verify_everything() == 8


def known_left(ledger: Ledger, analyst: str) -> BalanceRoom:
    return ledger.find_headroom(charge(analyst=analyst), limits(9 * NANO, apart=True)).room_without_paths


def test_refunds_are_withdrawn_while_a_path_is_continued_and_for_good_once_it_was(ledger: Ledger) -> None:
    """A continuing question may refine what stopped early: then the first one's refund would be given twice."""
    state = drawn(ledger, losses=[0, NANO, 2 * NANO])
    assert known_left(ledger, "bob") == BalanceRoom(7 * NANO, None)
    before = known_left(ledger, "ann")
    narrow = charge(analyst="ann", keys=replace(charge().cells, columns=(("country", ("DE",)),)))
    caps = limits(9 * NANO, apart=True)
    assert ledger.find_headroom(narrow, caps).epsilon_nano == 9 * NANO
    reservation = ledger.reserve(sharper(state, known=NANO), caps)
    assert ledger.find_headroom(narrow, caps).epsilon_nano == 6 * NANO
    ledger.release(reservation)
    assert known_left(ledger, "ann") == before
    assert ledger.find_headroom(narrow, caps).epsilon_nano == 9 * NANO
    reservation = ledger.reserve(sharper(state, known=NANO), caps)
    ledger.commit(reservation, per_key([3 * NANO] * 3, fresh=[3 * NANO, 2 * NANO, NANO]), None, paths=PATHS)
    assert ledger.find_headroom(narrow, caps).epsilon_nano == 6 * NANO
    assert ledger.find_headroom(replace(narrow, analyst="bob"), caps).epsilon_nano == 6 * NANO
    assert spent_on(ledger, caps) == (3 * NANO,) * 3


@pytest.mark.parametrize("unit", ["row", "customer"])
def test_a_refund_that_was_spent_elsewhere_does_not_pay_for_going_on(ledger: Ledger, unit: str) -> None:
    """A question that stopped early, one that uses what it left, and one that continues the first and, in everybody's
    eyes, needs nothing: the last is refused, since it ends the refund that the second one lives on. What is left for it
    says so beforehand. Once the cap is wider by just that refund, it is granted and the cap holds."""
    caps = limits(2 * NANO, apart=True)
    first = charge(2 * NANO, analyst="ada", unit=unit)
    ledger.commit(ledger.reserve(first, caps), per_key([NANO // 2] * 3, unit=unit), b"x", paths={"f": b"y1"})
    second = charge(3 * NANO // 2, question="g", analyst="ada", unit=unit)
    ledger.commit(ledger.reserve(second, caps), per_key([3 * NANO // 2] * 3, unit=unit), b"x")
    state = ledger.find_paths(["f"], "v1")["f"].state
    on = continuing(state, shared=3 * NANO // 2, known=0, unit=unit)
    third = charge(2 * NANO, question="f2", analyst="ada", continuing=on, unit=unit)
    assert not ledger.find_headroom(third, caps).admits_charge(third)
    with pytest.raises(OverBudget) as refused:
        ledger.reserve(third, caps)
    assert refused.value.scope is BalanceScope.PER_PREDICATE
    wider = limits(7 * NANO // 2, apart=True)
    assert ledger.find_headroom(third, wider).admits_charge(third)
    fresh = per_key([2 * NANO] * 3, fresh=[3 * NANO // 2] * 3, unit=unit)
    ledger.commit(ledger.reserve(third, wider), fresh, b"x", paths={"f": b"y2"})
    (family,) = ledger.report_balances(wider).families
    assert list(family.spent_nano) == [7 * NANO // 2] * 3


def test_a_refund_stands_for_good_once_its_path_was_replaced_by_a_fresh_one(ledger: Ledger) -> None:
    drawn(ledger, losses=[0] * 3)
    second = drawn(ledger, losses=[0] * 3, analyst="eve")
    caps = limits(9 * NANO, apart=True)
    ledger.reserve(sharper(second, known=0), caps)
    assert known_left(ledger, "ann") == BalanceRoom(7 * NANO, None)
    assert known_left(ledger, "eve") == BalanceRoom(5 * NANO, None)


def test_impossible_continuations_cannot_be_expressed() -> None:
    state = PathState("sum of amount", "v1", "r")
    for paths in ((), (state, state), (replace(state, identity="z"), state)):
        with pytest.raises(LedgerMisuse):
            PathContinuation(paths, shared_loss=Amounts(1, 0), public_loss=Amounts(1, 0))
    for wrong in (
        continuing(state, shared=-1, known=0),
        continuing(state, shared=0, known=1001 * NANO),
        continuing(state, shared=1, known=1, unit="customer_id"),
        continuing(replace(state, version="v2"), shared=1, known=1),
    ):
        with pytest.raises(LedgerMisuse):
            charge(continuing=wrong)
    with pytest.raises(LedgerMisuse):
        charge(shared=False, continuing=continuing(state, shared=1, known=1))
    with pytest.raises(LedgerMisuse):
        Spent(1, 0, None, Spent(1, 0, None, Spent(1, 0, None)))


def engine_of(url: str) -> sa.Engine:
    return sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))


def test_the_database_lets_paths_go_only_with_their_pruned_version(ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=now) as ledger:
        drawn(ledger, losses=[NANO] * 3)
        engine = engine_of(ledger_url)
        for statement in ("UPDATE paths SET body = body", "DELETE FROM paths", "TRUNCATE paths"):
            with (
                engine.connect() as connection,
                pytest.raises(DatabaseError, match=r"append-only|syntax error"),
            ):
                connection.execute(sa.text(statement))
        (sizes,) = ledger.owner.measure_paths()
        assert (sizes.table, sizes.version, sizes.state_count, sizes.size_bytes) == ("sales", "v1", 1, 6)
        ledger.owner.prune_paths("sales", "v2", by="owner", why="old")
        assert len(ledger.find_paths(PATHS, "v1")) == 1
        ledger.owner.prune_paths("sales", "v1", by="owner", why="old")
        assert ledger.find_paths(PATHS, "v1") == {}
        assert ledger.owner.measure_paths() == ()
        with engine.connect() as connection, pytest.raises(DatabaseError, match="append-only"):
            connection.execute(sa.text("DELETE FROM pruned"))
        drawn(ledger, losses=[NANO] * 3)
        with engine.connect() as connection, pytest.raises(DatabaseError, match="append-only"):
            connection.execute(sa.text("DELETE FROM paths"))
        ledger.owner.prune_paths("sales", "v1", by="owner", why="old")
        assert ledger.owner.measure_paths() == ()
        engine.dispose()
        assert ledger.verify_everything() == 7


@pytest.mark.parametrize(
    "change", ["UPDATE paths SET body = x'00'", "DELETE FROM paths", "UPDATE paths SET version = 'v2'"]
)
def test_changed_and_missing_paths_are_found_out(tmp_path: object, change: str) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with Ledger.open(url, clock=now) as ledger:
        drawn(ledger, losses=[NANO] * 3)
        engine = engine_of(url)
        with engine.begin() as connection:
            for name in connection.scalars(sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).all():
                connection.execute(sa.text(f"DROP TRIGGER {name}"))
            connection.execute(sa.text(change))
        engine.dispose()
        with pytest.raises(LedgerUnavailable):
            ledger.verify_everything()


def unit_charge(own: int, *, analyst: str, question: str, news: PathContinuation | None = None) -> Charge:
    return charge(own, unit="customer_id", unit_epsilon_nano=2 * own, analyst=analyst, question=question,
                  continuing=news)  # fmt: skip


def test_a_unit_pays_the_fresh_part_too(ledger: Ledger) -> None:
    caps = limits(9 * NANO, per_unit=7 * NANO)
    first: Reservation = ledger.reserve(unit_charge(2 * NANO, analyst="ann", question="q1"), caps)
    ledger.commit(first, Spent.from_uniform(2 * NANO, unit_epsilon_nano=4 * NANO), None, paths=PATHS)
    state = ledger.find_paths(PATHS, "v1")["sum of amount"].state
    news = PathContinuation((state,), shared_loss=Amounts(NANO, 2 * NANO), public_loss=Amounts(NANO, 2 * NANO))
    second = ledger.reserve(unit_charge(3 * NANO, analyst="bob", question="q2", news=news), caps)
    spent = Spent(3 * NANO, 6 * NANO, None, Spent.from_uniform(NANO, unit_epsilon_nano=2 * NANO))
    ledger.commit(second, spent, None, paths=PATHS)
    assert ledger.report_balances(caps).unit_spent_nano == 6 * NANO
    assert ledger.report_balances(caps, analyst="bob").unit_spent_nano == 6 * NANO
    (table,) = ledger.report_balances(caps).tables
    assert table.spent_nano == 6 * NANO


@st.composite
def lines(draw: st.DrawFn) -> list[tuple[str, int, list[int]]]:
    """Questions on one path of three keys: who asks, the top level, and the level reached at each key."""
    return [
        (draw(st.sampled_from(["ann", "bob"])), top, [draw(st.integers(0, top)) for _ in range(3)])
        for top in draw(st.lists(st.integers(1, 50), min_size=1, max_size=5))
    ]


@examples(200)
@given(lines())
def test_no_account_is_ever_below_what_a_path_told(line: list[tuple[str, int, list[int]]]) -> None:
    """The truth at each key is the finest level reached (one functional); for an analyst, of what was read."""
    balances = Balances()
    reached, told, top_before = np.zeros(3, dtype=np.int64), {"ann": reached_none(), "bob": reached_none()}, 0
    reserved: PathState | None = None
    for number, (analyst, top, goes_to) in enumerate(line):
        identity = f"r{number}"
        ends = np.maximum(reached, goes_to)
        news = None
        if reserved is not None:
            worst = int((np.maximum(reached, top) - reached).max())
            news = continuing(reserved, shared=worst, known=max(0, top - top_before))
        balances.apply_event(Reserved(identity, now(), charge(top, analyst=analyst, continuing=news)))
        assert_covers(balances, reached, told)
        spent = per_key(goes_to, fresh=None if news is None else (ends - reached).tolist())
        balances.apply_event(Committed(identity, now(), spent, None, None, paths=(("sum", "digest"),)))
        reached, top_before = ends, max(top_before, top)
        told[analyst] = np.maximum(told[analyst], goes_to)
        reserved = PathState("sum", "v1", identity)
        assert_covers(balances, reached, told)
    family, cells = charge().family, charge().cells
    np.testing.assert_array_equal(balances.shared.bound_losses(family, cells), reached)


def reached_none() -> NanoArray:
    return np.zeros(3, dtype=np.int64)


def assert_covers(balances: Balances, reached: NanoArray, told: dict[str, NanoArray]) -> None:
    family, cells = charge().family, charge().cells
    assert (balances.shared.bound_losses(family, cells) >= reached).all()
    for analyst, seen in told.items():
        assert (balances.make_known_account(analyst).bound_losses(family, cells) >= reached).all()
        assert (balances.find_account(analyst).bound_losses(family, cells) >= seen).all()
