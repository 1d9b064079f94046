"""What is kept of other data versions, in worlds where some columns move and others never do.

Every charge and check is made in each of: the account with what it keeps, the elimination of all versions in one go,
and brute force over every record that could exist, any value that nobody was charged for included.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.balances.account import Account, AccountChange, KnownAccount
from accountant.balances.cell_sums import OpenSums, Partition, Sums, SumsDifference, make_partition, name_moving_version
from accountant.balances.other_versions import MOST_KEPT, OtherVersions
from accountant.balances.overlap import bound_cell_losses
from accountant.charges import NOTHING_SPENT, Cells, Charge, NanoArray, Spent
from tests.accountant.examples import charge
from tests.effort import examples

VERSIONS = ("v1", "v2", "v3")
COLUMNS = {"a": ("1", "2", "3"), "b": ("x", "y"), "m": ("p", "q"), "n": ("s", "t")}
IMMUTABLE = frozenset({"a", "b"})


@dataclass(frozen=True, slots=True)
class Step:
    """A charge, what it cost each key in the end, and a question checked after it."""

    charged: Charge
    spent: Spent
    asked: Charge


@st.composite
def charges(draw: st.DrawFn, values: Mapping[str, Sequence[str]]) -> Charge:
    columns = sorted(draw(st.sets(st.sampled_from(sorted(values)), max_size=3)))
    keys = [(name, tuple(draw(st.lists(st.sampled_from(values[name]), min_size=1, unique=True)))) for name in columns]
    return charge(
        draw(st.integers(1, 100)), keys=Cells(tuple(keys)), version=draw(st.sampled_from(VERSIONS)), immutable=IMMUTABLE
    )


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """Keys are charged for some values at first, and for all of them later; questions are about any."""
    early = {name: draw(st.sampled_from([values[:1], values])) for name, values in COLUMNS.items()}
    steps = []
    for number in range(draw(st.integers(1, 14))):
        charged = draw(charges(early if number < 7 else COLUMNS))
        size = charged.cells.key_count
        losses = draw(st.lists(st.integers(0, charged.epsilon_nano), min_size=size, max_size=size))
        steps.append(Step(charged, Spent.from_keys(losses, unit_epsilon_nano=0), draw(charges(COLUMNS))))
    return steps


class BruteForce:
    """The loss of each record: one axis per immutable column, and per moving column and version."""

    def __init__(self) -> None:
        self.axes = [(name, version) for name in COLUMNS for version in (("",) if name in IMMUTABLE else VERSIONS)]
        self.loss: NanoArray = np.zeros([len(COLUMNS[name]) for name, _ in self.axes], dtype=np.int64)

    def keys_of(self, asked: Charge) -> NanoArray:
        """The number of the key that each record is in, -1 for none."""
        number = np.zeros(self.loss.shape, dtype=np.int64)
        outside = np.zeros(self.loss.shape, dtype=bool)
        places = np.indices(self.loss.shape)
        for name, values in asked.cells.columns:
            axis = self.axes.index((name, "" if name in IMMUTABLE else asked.family.version))
            at = np.array([values.index(value) if value in values else -1 for value in COLUMNS[name]])[places[axis]]
            number = number * len(values) + at
            outside |= at < 0
        return np.where(outside, -1, number)

    def add(self, charged: Charge, amounts: NanoArray) -> None:
        """Count a loss of each key."""
        self.loss += np.append(amounts.ravel(), 0)[self.keys_of(charged)]

    def largest(self, asked: Charge) -> NanoArray:
        """For each key, the loss of the record in it that has lost most."""
        largest = np.zeros(asked.cells.key_count + 1, dtype=np.int64)
        np.maximum.at(largest, self.keys_of(asked), self.loss)
        return largest[:-1].reshape(asked.cells.shape_by_column)


def in_one_go(sums: Mapping[Partition, Sums], asked: Charge) -> NanoArray:
    return bound_cell_losses(dict(sums), make_partition(asked.family), asked.cells)


# room for everything; for no version's own part beside all tables; for next to nothing
@pytest.mark.parametrize("most_kept", [MOST_KEPT, 16, 4])
@examples(50, quick=6)
@given(steps=histories())
def test_what_is_kept_is_exact_whenever_versions_are_charged_and_asked(most_kept: int, steps: list[Step]) -> None:
    account, exact = Account(), BruteForce()
    elsewhere = OtherVersions(most_kept=most_kept)
    for step in steps:
        amounts = step.spent.read_amounts(step.charged.cells)
        account.add(step.charged, AccountChange.from_losses(step.charged, before=NOTHING_SPENT, after=step.spent))
        exact.add(step.charged, np.broadcast_to(amounts, step.charged.cells.shape_by_column))
        family, cells = step.asked.family, step.asked.cells
        sums = account.tables["sales"]
        here, rest = elsewhere.split_versions(sums, account.change_counts["sales"], name_moving_version(family.version))
        true = exact.largest(step.asked)
        np.testing.assert_array_equal(bound_cell_losses(here, make_partition(family), cells, rest=rest), true)
        np.testing.assert_array_equal(in_one_go(sums, step.asked), true)
        np.testing.assert_array_equal(account.bound_losses(family, cells), true)


@examples(50, quick=6)
@given(steps=histories())
def test_an_analyst_s_own_refunds_are_seen_in_every_version(steps: list[Step]) -> None:
    """Charges at their worst case in the shared balance, what they cost less comes back after the check."""
    known, exact = KnownAccount(worst_case=Account(), refunds=Account()), BruteForce()
    for step in steps:
        charged = step.charged
        worst = Spent.from_uniform(charged.epsilon_nano, unit_epsilon_nano=0)
        known.worst_case.add(charged, AccountChange.from_losses(charged, before=NOTHING_SPENT, after=worst))
        exact.add(charged, np.full(charged.cells.shape_by_column, charged.epsilon_nano))
        for back in (None, AccountChange.from_losses(charged, before=step.spent, after=worst)):
            if back is not None:
                known.refunds.add(charged, back)
                exact.add(charged, -np.broadcast_to(back.amounts, charged.cells.shape_by_column))
            found = known.bound_losses(step.asked.family, step.asked.cells)
            np.testing.assert_array_equal(found, exact.largest(step.asked))
            whole, less = known.worst_case.tables["sales"], known.refunds.tables.get("sales", {})
            anew = {one: SumsDifference(sums, less[one]) if one in less else sums for one, sums in whole.items()}
            np.testing.assert_array_equal(found, in_one_go(anew, step.asked))


def test_a_value_that_nobody_was_charged_for_has_what_is_charged_to_all_values() -> None:
    """One version is charged to a country and to a month, one to countries alone; a third asks about a new country."""
    account = Account()
    for version, keys in (
        ("v1", Cells((("a", ("1",)), ("m", ("p",))))),
        ("v1", Cells((("m", ("p", "q")),))),
        ("v2", Cells((("a", ("1", "2")), ("m", ("p",))))),
    ):
        one = charge(10, keys=keys, version=version, immutable=IMMUTABLE)
        spent = Spent.from_uniform(10, unit_epsilon_nano=0)
        account.add(one, AccountChange.from_losses(one, before=NOTHING_SPENT, after=spent))
    asked = charge(0, keys=Cells((("a", ("3", "2", "1")),)), version="v3", immutable=IMMUTABLE)
    for _ in range(2):
        assert account.bound_losses(asked.family, asked.cells).tolist() == [10, 20, 30]


def test_a_version_charged_after_its_own_part_was_dropped_is_counted_with_the_charge() -> None:
    """Room for one version's part: that of the older is gone when it is charged again, asked about, and charged."""
    account, elsewhere = Account(), OtherVersions(most_kept=4)

    def pay(version: str, value: str, amount: int) -> None:
        keys = Cells((("a", (value,)), ("m", ("p",))))
        one = charge(amount, keys=keys, version=version, immutable=IMMUTABLE)
        spent = Spent.from_uniform(amount, unit_epsilon_nano=0)
        account.add(one, AccountChange.from_losses(one, before=NOTHING_SPENT, after=spent))

    def lost(version: str) -> list[int]:
        asked = charge(0, keys=Cells((("a", ("1", "2", "3")),)), version=version, immutable=IMMUTABLE)
        sums = account.tables["sales"]
        here, rest = elsewhere.split_versions(sums, account.change_counts["sales"], name_moving_version(version))
        return [int(nano) for nano in bound_cell_losses(here, make_partition(asked.family), asked.cells, rest=rest)]

    for version, amount in (("v1", 1), ("v2", 10)):
        for value in ("1", "2"):
            pay(version, value, amount)
    assert lost("v3") == [11, 11, 0]
    pay("v1", "1", 100)
    assert lost("v3") == [111, 11, 0]
    assert lost("v2") == lost("v1") == lost("v3")
    pay("v2", "2", 1000)
    assert lost("v3") == [111, 1011, 0]


def test_many_versions_come_to_tables_over_what_never_moves() -> None:
    """What a check looks at does not grow with the number of data versions."""
    account = Account()
    for number in range(40):
        for keys in (Cells((("a", ("1",)), ("m", ("p",)))), Cells((("b", ("x",)), ("m", ("p",))))):
            one = charge(10, keys=keys, version=f"v{number}", immutable=IMMUTABLE)
            spent = Spent.from_uniform(10, unit_epsilon_nano=0)
            account.add(one, AccountChange.from_losses(one, before=NOTHING_SPENT, after=spent))
    sums, changes = account.tables["sales"], account.change_counts["sales"]
    here, rest = OtherVersions().split_versions(sums, changes, name_moving_version("v39"))
    assert len(sums) == 80
    assert len(here) == 2
    assert [table.array.size for table in rest.sums_by_partition.values()] == [4]


def test_sums_for_any_value_add_up_on_values_that_only_one_of_them_knows() -> None:
    first = OpenSums([("FR",)], np.array([5, 1], dtype=np.int64))
    second = OpenSums([("DE", "FR")], np.array([20, 30, 10], dtype=np.int64))
    first.add(second, times=2)
    assert first.select([("UK", "FR", "DE")]).tolist() == [21, 65, 41]
    first.add(second, times=-2)
    assert first.select([("DE", "FR", "UK")]).tolist() == [1, 5, 1]
