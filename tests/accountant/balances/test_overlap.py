"""Balances against a brute-force oracle over every record that could exist."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.balances.account import merge_live_versions
from accountant.balances.cell_sums import CellSums, make_partition
from accountant.balances.fold import fold
from accountant.charges import Cells, Charge, Family, Spent, is_lasting
from accountant.errors import LedgerUnavailable
from accountant.events.events import Committed, Event, Released, Reserved
from accountant.events.owner_events import Approved, Declined
from accountant.store.snapshot import pack_balances
from tests.accountant.conftest import now
from tests.accountant.examples import cells, charge
from tests.effort import examples

VALUES = {"a": ("1", "2", "3"), "b": ("x", "y"), "c": ("p", "q")}
VERSIONS = ("v1", "v2")
# of one question each; two questions on one of them, which no caller asks, are bounded as if they were on two
ALL_VERSIONS = (*VERSIONS, "live " + 32 * "a", "live " + 32 * "b")
IMMUTABLE = frozenset({"a"})


@st.composite
def questions(draw: st.DrawFn, unit: str, *, versions: tuple[str, ...] = ALL_VERSIONS) -> Charge:
    columns = sorted(draw(st.sets(st.sampled_from(sorted(VALUES)), max_size=3)))
    keys = Cells(
        tuple((name, tuple(draw(st.permutations(VALUES[name]))[: draw(st.integers(1, 3))])) for name in columns)
    )
    return charge(
        draw(st.integers(1, 100)),
        keys=keys,
        unit=unit,
        where=draw(st.sampled_from(["", "f"])),
        version=draw(st.sampled_from(versions)),
        immutable=IMMUTABLE,
        analyst=draw(st.sampled_from(["ann", "bob"])),
    )


Trajectory = dict[str, dict[str, str]]


def trajectories(unit: str) -> list[Trajectory]:
    """What a record may look like in each version: mutable columns of a row may change, labels of a cell do not."""
    shapes = [dict(zip(VALUES, values, strict=True)) for values in product(*VALUES.values())]
    if unit != "row":
        return [dict.fromkeys(VERSIONS, shape) for shape in shapes]
    return [
        {"v1": before, "v2": after}
        for before, after in product(shapes, shapes)
        if all(before[name] == after[name] for name in IMMUTABLE)
    ]


def touched_keys(asked: Charge, record: Trajectory) -> list[tuple[int, ...]]:
    """The keys of the question that the record may have fallen into: one or none; on a live version, which nobody can
    ask about again, any that has the values which never change."""
    family = asked.family
    moves = family.unit == "row"
    free = not is_lasting(family.version)
    shape = record["v1" if free else family.version]
    places = []
    for name, values in asked.cells.columns:
        at = [values.index(shape[name])] if shape[name] in values else []
        places.append(list(range(len(values))) if free and moves and name not in IMMUTABLE else at)
    return list(product(*places))


def exact_loss(asked: Charge, paid: list[tuple[Charge, Spent]]) -> np.ndarray:
    """For each key of `asked`, the largest loss of any record in it."""
    worst = np.zeros(asked.cells.shape_by_column, dtype=np.int64)
    for record in trajectories(asked.family.unit):
        keys = touched_keys(asked, record)
        if not keys:
            continue
        loss = 0
        for other, spent in paid:
            amounts = np.broadcast_to(spent.read_amounts(other.cells), other.cells.shape_by_column)
            loss += max((int(amounts[key]) for key in touched_keys(other, record)), default=0)
        for key in keys:
            worst[key] = max(worst[key], loss)
    return worst


@st.composite
def workloads(draw: st.DrawFn) -> tuple[list[Event], list[tuple[Charge, Spent]], Charge]:
    unit = draw(st.sampled_from(["row", "customer_id"]))
    events: list[Event] = []
    paid = []
    for index in range(draw(st.integers(0, 8))):
        asked = draw(questions(unit))
        events.append(Reserved(str(index), now(), asked))
        spent = Spent.from_uniform(asked.epsilon_nano, unit_epsilon_nano=asked.unit_epsilon_nano)
        match draw(st.sampled_from(["open", "released", "uniform", "per key"])):
            case "released":
                spent = Spent.from_uniform(0, unit_epsilon_nano=0)
                events.append(Released(str(index), now()))
            case "uniform":
                less = draw(st.integers(0, asked.epsilon_nano))
                spent = Spent.from_uniform(less, unit_epsilon_nano=0 if unit == "row" else less)
                events.append(Committed(str(index), now(), spent, None, None))
            case "per key":
                size = asked.cells.key_count
                losses = draw(st.lists(st.integers(0, asked.epsilon_nano), min_size=size, max_size=size))
                spent = Spent.from_keys(losses, unit_epsilon_nano=0 if unit == "row" else max(losses))
                events.append(Committed(str(index), now(), spent, None, None))
        paid.append((asked, spent))
    return events, paid, draw(questions(unit))


@examples(150)
@given(workloads())
def test_the_fold_equals_the_exact_loss_of_every_key(
    workload: tuple[list[Event], list[tuple[Charge, Spent]], Charge],
) -> None:
    events, paid, asked = workload
    balances = fold(events)
    found = balances.shared.bound_losses(asked.family, asked.cells)
    np.testing.assert_array_equal(found, exact_loss(asked, paid))
    for analyst in ("ann", "bob"):
        own = [(other, spent) for other, spent in paid if other.analyst == analyst]
        found = balances.find_account(analyst).bound_losses(asked.family, asked.cells)
        np.testing.assert_array_equal(found, exact_loss(asked, own))
    assert balances.shared.unit_loss.pure_nano == sum(spent.unit_epsilon_nano for _, spent in paid)


@examples(150)
@given(workloads())
def test_without_a_grid_the_bound_is_sound_and_exact_for_nested_and_disjoint_families(
    workload: tuple[list[Event], list[tuple[Charge, Spent]], Charge],
) -> None:
    """Nested or disjoint: no two families share a column that the question leaves open."""
    events, paid, asked = workload
    bound = fold(events).shared.bound_losses(asked.family, asked.cells, exact_grid=0)
    exact = exact_loss(asked, paid)
    assert (bound >= exact).all()
    open_axes = [
        set(axes).difference(make_partition(asked.family)) for axes in {make_partition(c.family) for c, _ in paid}
    ]
    if sum(len(axes) for axes in open_axes) == len(set().union(*open_axes)):
        np.testing.assert_array_equal(bound, exact)


@examples(50)
@given(workloads())
def test_per_family_sums_add_up_to_what_is_charged(
    workload: tuple[list[Event], list[tuple[Charge, Spent]], Charge],
) -> None:
    events, paid, _ = workload
    families = fold(events, keeps_families=True).shared.families
    assert families is not None
    total: dict[Family, int] = {}
    for asked, spent in paid:
        amounts = np.broadcast_to(spent.read_amounts(asked.cells), asked.cells.shape_by_column)
        family = merge_live_versions(asked.family)
        total[family] = total.get(family, 0) + int(amounts.sum())
    assert {family: int(sums.array.sum()) for family, sums in families.items()} == total


def test_a_row_that_may_move_is_charged_in_every_version_it_may_have_been_in() -> None:
    def left_in_de(immutable: frozenset[str]) -> int:
        first = charge(10, keys=cells(country=("FR",)), version="v1", immutable=immutable)
        second = charge(0, keys=cells(country=("DE",)), version="v2", immutable=immutable)
        return int(fold([Reserved("r", now(), first)]).shared.bound_losses(second.family, second.cells)[0])

    assert left_in_de(frozenset()) == 10
    assert left_in_de(frozenset({"country"})) == 0


def test_families_that_disagree_about_immutability_or_unit_are_never_told_apart() -> None:
    paid = charge(10, keys=cells(country=("FR",)), immutable=frozenset({"country"}))
    balances = fold([Reserved("r", now(), paid)])
    for other in (
        charge(0, keys=cells(country=("DE",))),
        charge(0, keys=cells(country=("DE",)), unit="customer_id"),
    ):
        assert balances.shared.bound_losses(other.family, other.cells).tolist() == [10]


def test_filters_always_overlap_and_tables_never() -> None:
    balances = fold([Reserved("r", now(), charge(10, where="age > 65"))])
    for other, spent in ((charge(0, where="age <= 65"), 10), (charge(0, table="visits"), 0)):
        assert balances.shared.bound_losses(other.family, other.cells).tolist() == [spent] * 3


@pytest.mark.parametrize("immutable", [frozenset[str](), IMMUTABLE])
def test_balances_of_a_live_table_do_not_grow_with_its_questions(immutable: frozenset[str]) -> None:
    """Each question has a version, a threshold and a reservation of its own, and some are refunded."""

    def size_after(questions: int) -> int:
        events: list[Event] = []
        for number in range(questions):
            version, keys = f"live {number:032x}", Cells(tuple(VALUES.items()))
            asked = charge(9, keys=keys, question=f"q{number}", version=version, immutable=immutable)
            spent = Spent.from_keys([number % 7] * keys.key_count, unit_epsilon_nano=0)
            end = Committed(f"{number:032x}", now(), spent, "0" * 64, None)
            events += [
                Reserved(f"{number:032x}", now(), asked),
                Released(end.reservation, now()) if number % 5 else end,
            ]
        return len(pack_balances(fold(events)))

    assert size_after(300) <= size_after(30) + 50  # a digit more in each sum


def test_a_live_version_is_told_by_its_whole_name() -> None:
    """Joined tables have versions of all their names: one may be called live."""
    assert not is_lasting(f"live {32 * 'a'}")
    assert all(is_lasting(version) for version in ("live 2026-03-01, visits static", "live", "lives " + 32 * "a"))


def test_what_a_row_lost_on_a_live_table_is_the_most_of_any_key_that_it_can_have_been_in() -> None:
    paid = charge(10, keys=cells(a=("1", "2"), b=("x", "y")), version="live " + 32 * "a", immutable=IMMUTABLE)
    spent = Spent.from_keys([1, 7, 2, 3], unit_epsilon_nano=0)
    balances = fold([Reserved("r", now(), paid), Committed("r", now(), spent, None, None)])
    for version in ("v1", "live " + 32 * "b"):
        asked = charge(0, keys=cells(a=("1", "2", "3")), version=version, immutable=IMMUTABLE)
        assert balances.shared.bound_losses(asked.family, asked.cells).tolist() == [7, 3, 0]
        known = balances.make_known_account("ann").bound_losses(asked.family, asked.cells)
        assert known.tolist() == [7, 3, 0]


def test_sums_are_kept_for_charged_cells_only_and_grow_with_the_calendar() -> None:
    sums = CellSums(dimensions=2)
    sums.add([("FR",), ("jan",)], 1)
    sums.add([("FR", "DE"), ("feb", "jan")], np.array([[1, 2], [3, 4]], dtype=np.int64))
    assert sums.array.shape == (2, 2)
    assert sums.select([("DE", "UK", "FR"), ("jan", "feb")]).tolist() == [[4, 3], [0, 0], [3, 1]]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(
            (
                Reserved("r1", now(), charge(5)),
                Committed("r1", now(), Spent.from_uniform(6, unit_epsilon_nano=0), answer=None, reads=None),
            ),
            id="spent above what was reserved",
        ),
        pytest.param((Reserved("r1", now(), charge(5)),) * 2, id="reserved twice"),
        pytest.param((Released("r1", now()),), id="released without being open"),
    ],
)
def test_an_event_that_no_verb_writes_ends_the_fold(events: tuple[Event, ...]) -> None:
    """Whoever can write to the ledger's store does not make a question cheaper so."""
    with pytest.raises(LedgerUnavailable):
        fold(events)


def test_an_approval_takes_the_owners_no_back() -> None:
    no = Declined("d", now(), "owner", "not now", "q1")
    assert fold([no]).declined.keys() == {"q1"}
    assert fold([no, Approved("q1", now(), "owner", "now")]).declined == {}
