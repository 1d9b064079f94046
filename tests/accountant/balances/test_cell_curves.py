"""Balances of cells by curve, against brute force over every record that could exist."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant import cell_balance
from accountant.balances.account import Account, KnownAccount
from accountant.balances.curve_sums import NOTHING, CurveSums, Row
from accountant.balances.filter import find_headroom
from accountant.balances.fold import Balances, fold
from accountant.cell_balance import CellLosses, CellRoom
from accountant.charges import NANO, Charge, Spent
from accountant.events.events import Committed, Event, Released, Reserved
from accountant.store.snapshot import pack_balances, unpack_balances
from mechanisms.threshold.renyi import NO_CURVE, ORDERS, Curve, convert_to_epsilon
from tests.accountant.balances.test_overlap import ALL_VERSIONS, exact_loss, questions
from tests.accountant.conftest import now
from tests.accountant.drawing import a_loss, with_curve
from tests.accountant.examples import cells, charge, limits
from tests.accountant.model_ledger import DELTA, SMALL, by_order, loss_of_unit, small_conversion, uniform
from tests.accountant.test_unit_balance import DELTA as ADVERSARY_DELTA
from tests.accountant.test_unit_balance import KINDS, Kinds, most_excess
from tests.effort import examples

Paid = list[tuple[Charge, Spent]]
AXES = (("1", "2", "3"), ("x", "y"))


@pytest.fixture(autouse=True)
def small_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_balance, "convert_to_epsilon", small_conversion)


@st.composite
def workloads(draw: st.DrawFn) -> tuple[list[Event], Paid, Charge]:
    """Questions of one table, half of them by curve, open, committed and released; and one more."""
    unit = draw(st.sampled_from(["row", "customer_id"]))
    versions = draw(st.sampled_from([("v1",), ALL_VERSIONS]))
    data = draw(st.data())
    events: list[Event] = []
    paid: Paid = []
    for index in range(draw(st.integers(0, 7))):
        asked = draw(questions(unit, versions=versions))
        if draw(st.booleans()):
            asked = with_curve(data, asked, for_units=unit != "row", for_cells=True)
        events.append(Reserved(str(index), now(), asked))
        how, spent = draw(st.sampled_from(["open", "released", "committed"])), uniform(asked.own_amounts)
        if how == "released":
            events.append(Released(str(index), now()))
            continue
        if how == "committed":
            spent = a_loss(data, asked)
            events.append(Committed(str(index), now(), spent, None, None))
        paid.append((asked, spent))
    return events, paid, draw(questions(unit, versions=versions))


def check_losses(accounts: Sequence[Account | KnownAccount], asked: Charge, paid: Paid) -> None:
    """Everything that a check reads of the accounts is what brute force finds, at every order."""
    pure, orders = exact_loss(asked, paid), by_order(asked, paid)
    for account in accounts:
        check_account(account, asked, pure, orders)


def check_account(account: Account | KnownAccount, asked: Charge, pure: np.ndarray, orders: list[np.ndarray]) -> None:
    found = account.bound_losses_by_curve(asked.family, asked.cells, delta=DELTA)
    np.testing.assert_array_equal(account.bound_losses(asked.family, asked.cells), pure)
    least = np.minimum(pure, np.min([at + more for at, more in zip(orders, SMALL, strict=True)], axis=0))
    np.testing.assert_array_equal(found.find_balances(DELTA), least)
    np.testing.assert_array_equal(found.find_balances(None), pure)
    curve = tuple(range(3, 3 + len(ORDERS)))
    after = np.min([at + more + one for at, more, one in zip(orders, SMALL, curve, strict=True)], axis=0)
    np.testing.assert_array_equal(
        found.find_balances(DELTA, nano=20, curve=curve), np.minimum(pure + 20, after).astype(np.int64)
    )


@examples(300)
@given(workloads())
def test_the_fold_by_curve_equals_the_exact_loss_of_every_key(workload: tuple[list[Event], Paid, Charge]) -> None:
    events, paid, asked = workload
    balances = fold(events)
    again = unpack_balances(pack_balances(balances))
    assert pack_balances(again) == pack_balances(balances)
    check_losses([one.shared for one in (balances, again, balances.copy(frozenset({"sales"})))], asked, paid)
    for analyst in ("ann", "bob"):
        own = [(other, spent) for other, spent in paid if other.analyst == analyst]
        check_losses([balances.find_account(analyst)], asked, own)
        known = [(other, spent if other.analyst == analyst else uniform(other.own_amounts)) for other, spent in paid]
        check_losses([balances.make_known_account(analyst), again.make_known_account(analyst)], asked, known)
        assert balances.make_known_account(analyst).unit_loss == loss_of_unit(known)
        assert balances.find_account(analyst).unit_loss == loss_of_unit(own)


@examples(100)
@given(workloads(), st.data())
def test_what_is_cached_between_checks_changes_nothing(
    workload: tuple[list[Event], Paid, Charge], data: st.DataObject
) -> None:
    """The same account is asked after every event, also about another version."""
    events, _, asked = workload
    growing = Balances()
    for number, event in enumerate(events, start=1):
        growing.apply_event(event)
        fresh = fold(events[:number])
        for one in (asked, data.draw(questions(asked.family.unit))):
            for account, other in ((growing.shared, fresh.shared), (growing.worst_case, fresh.worst_case)):
                found, expected = (
                    each.bound_losses_by_curve(one.family, one.cells, delta=DELTA) for each in (account, other)
                )
                np.testing.assert_array_equal(found.find_balances(DELTA), expected.find_balances(DELTA))


Step = tuple[tuple[tuple[str, ...], ...], int, int]
STEPS = st.lists(
    st.tuples(
        st.tuples(*(st.permutations(axis).map(lambda some: tuple(some[:2])) | st.just(axis) for axis in AXES)),
        st.integers(0, 2),
        st.booleans(),
    ),
    max_size=12,
)


@examples(300, quick=60)
@given(STEPS)
def test_classes_of_cells_are_their_sums(steps: list[tuple[tuple[tuple[str, ...], ...], int, bool]]) -> None:
    """Curves are added to blocks, and subtracted again, in any order; equal sums are one class."""
    sums = CurveSums(dimensions=2)
    plain: dict[tuple[str, str], Row] = {}
    added: list[tuple[tuple[tuple[str, ...], ...], int]] = []
    for axes, kind, takes_back in steps:
        times = 1
        if takes_back and added:
            (axes, kind), times = added.pop(0), -1
        else:
            added.append((axes, kind))
        curve: Curve = tuple(kind * order for order in range(len(ORDERS)))
        sums.add(axes, 40 + kind, curve, times=times)
        for first in axes[0]:
            for second in axes[1]:
                row = plain.get((first, second), NOTHING)
                plain[first, second] = tuple(
                    known + times * more for known, more in zip(row, (40 + kind, *curve), strict=True)
                )
        numbers = sums.numbers.select(AXES)
        found = {
            (first, second): tuple(sums.rows[numbers[i, j]].tolist())
            for i, first in enumerate(AXES[0])
            for j, second in enumerate(AXES[1])
        }
        assert found == {cell: plain.get(cell, NOTHING) for cell in found}
        assert {tuple(row) for row in sums.rows.tolist()} == {NOTHING, *found.values()}
        assert len(sums.rows) == len({NOTHING, *found.values()})
        same = CurveSums.from_classes(sums.numbers.copy(), sums.rows)
        assert same.rows.tolist() == sums.rows.tolist() == sums.copy().rows.tolist()


def test_a_question_on_the_same_keys_writes_no_cell() -> None:
    """However many keys: one class has them all."""
    sums = CurveSums(dimensions=2)
    for _ in range(3):
        sums.add(AXES, 5, (1,) * len(ORDERS), times=1)
    assert sums.rows.tolist() == [list(NOTHING), [15, *(3,) * len(ORDERS)]]
    assert (sums.numbers.array == 1).all()


def test_each_key_has_its_own_best_order() -> None:
    """One key lost at low orders, another at high ones; neither order alone would leave as much for both."""
    low, high = (10, *[0] * 6, *[60] * 6), (10, *[60] * 6, *[0] * 6)
    sums, numbers = np.array([100, 100]), np.array([0, 1])
    losses = CellLosses(sums, np.array([[1000, *low[1:]], [1000, *high[1:]]]), numbers)
    expected = [100 + min(added + one for added, one in zip(SMALL, row[1:], strict=True)) for row in (low, high)]
    assert losses.find_balances(DELTA).tolist() == expected
    assert losses.keep_largest().find_balances(DELTA).tolist() == expected


def test_a_room_is_that_of_its_fullest_cells() -> None:
    classes = np.array([NOTHING, (90, *(9,) * len(ORDERS))])
    losses = CellLosses(np.array([[3, 7], [20, 1]]), classes, np.array([[0, 0], [1, 1]]))
    room = CellRoom.from_losses(losses, cap_nano=100, delta=DELTA)
    assert room.left_nano == 100 - (20 + min(SMALL) + 9)
    curve = (2,) * len(ORDERS)
    assert room.compute_needed_amount(30, curve) == 2
    assert room.count_further_questions(30, curve) == room.left_nano // 2
    assert room.count_further_questions(30, None) == room.left_nano // 30
    assert losses.count_further_questions(30, curve, cap_nano=100, delta=DELTA) == room.left_nano // 2
    assert CellRoom.from_losses(losses, cap_nano=10, delta=DELTA).count_further_questions(1, curve) == 0


def test_rows_that_may_move_lost_the_same_in_an_earlier_version_at_each_order() -> None:
    """The other version comes to one number at each order, and what is cached of it is kept apart from other orders."""
    curve = (4,) * len(ORDERS)
    before = charge(30, keys=cells(b=("x", "y")), version="v1")
    events: list[Event] = [
        Reserved("r1", now(), replace(before, epsilon_nano=10)),
        Reserved("r2", now(), replace(before, cell_renyi=curve)),
        Reserved("r3", now(), replace(charge(30, keys=cells(b=("x",)), version="v2"), cell_renyi=curve)),
    ]
    account, asked = fold(events).shared, charge(1, keys=cells(b=("x", "y")), version="v2")
    paid = [(one.charge, uniform(one.charge.own_amounts)) for one in events if isinstance(one, Reserved)]
    for _ in range(2):
        check_losses([account], asked, paid)
    added = by_order(asked, paid)[0]
    assert added.tolist() == [18, 14]


KINDS_OF_CELLS = ("a", "b")  # of which a record has one value: the families overlap in it


def list_admitted(kinds: Kinds, asked: tuple[int, ...], *, cap: float) -> tuple[int, ...]:
    """The kinds of which the ledger's filter admits one more; the first asks by `a`, the second by `b`."""
    caps = replace(limits(round(cap * NANO)), cell_delta=ADVERSARY_DELTA)
    charges = [
        replace(charge(nano, keys=cells(**{column: ("1", "2")}), version="v1"), cell_renyi=curve)
        for (nano, curve), column in zip(kinds, KINDS_OF_CELLS, strict=True)
    ]
    names = count()
    balances = fold(
        Reserved(str(next(names)), now(), one) for one, times in zip(charges, asked, strict=True) for _ in range(times)
    )
    admitted = []
    for place, one in enumerate(charges):
        left = find_headroom(balances, one, caps)
        (room,) = left.balances
        if room.compute_needed_amount(one, amount_nano=one.epsilon_nano, uses_curve=True) <= room.left_nano:
            admitted.append(place)
    return tuple(admitted)


def test_no_strategy_on_overlapping_cells_tells_more_than_the_cap_but_for_delta(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Plain sums by one column, curves by another, each chosen by what was seen; without what delta adds it is found
    out."""
    monkeypatch.setattr(cell_balance, "convert_to_epsilon", convert_to_epsilon)
    assert 0 < most_excess(KINDS, cap=4.0, steps=22, list_kinds=list_admitted) <= ADVERSARY_DELTA
    monkeypatch.setattr(cell_balance, "convert_to_epsilon", lambda delta: NO_CURVE)
    assert most_excess(KINDS, cap=4.0, steps=46, list_kinds=list_admitted) > ADVERSARY_DELTA
