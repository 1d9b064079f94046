"""Balances on workloads of 200 questions over four columns, against brute force and Google's accounting library.

Brute force adds every question to the full product grid of all labels, one axis for each column and (for a row's column
that may change) each data version, with numpy alone. The balances are never below it, and at most 5 % above.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from accountant.balances.account import Account, KnownAccount
from accountant.balances.cell_sums import Partition, Sums, SumsDifference, make_partition
from accountant.balances.fold import Balances, fold
from accountant.balances.overlap import bound_cell_losses
from accountant.charges import NANO, Cells, Charge, Spent
from accountant.events.events import Committed, Event, Released, Reserved
from tests.accountant.conftest import now
from tests.accountant.examples import charge
from tests.effort import cases, rounds

QUESTIONS = 200
CHECKS = rounds(60, quick=15)
# losses are multiples of it, so that the other library's grid of losses holds them exactly
STEP = NANO // 1000
COLUMNS = {
    "country": tuple(f"c{n}" for n in range(9)),
    "hour": tuple(f"h{n}" for n in range(8)),
    "product": tuple(f"p{n}" for n in range(7)),
    "year": tuple(f"y{n}" for n in range(5)),
}
# a full grid over three versions of two columns that move and two that do not
MOVING = {
    "country": COLUMNS["country"][:5],
    "hour": COLUMNS["hour"][:4],
    "product": ("p0", "p1", "p2"),
    "year": ("y0", "y1"),
}


@dataclass(frozen=True, slots=True)
class World:
    """What questions may be about, and where brute force puts them."""

    unit: str
    columns: dict[str, tuple[str, ...]]
    versions: tuple[str, ...]
    immutable: frozenset[str]

    def axis(self, column: str, version: str) -> tuple[str, str]:
        moves = self.unit == "row" and column not in self.immutable
        return column, version if moves else ""

    @property
    def axes(self) -> list[tuple[str, str]]:
        return sorted({self.axis(column, version) for column in self.columns for version in self.versions})

    def question(self, drawn: random.Random, *, most_columns: int) -> Charge:
        columns = sorted(drawn.sample(sorted(self.columns), drawn.randint(0, most_columns)))
        keys = []
        for column in columns:
            values = self.columns[column]
            match drawn.choice(("all", "all", "range", "subset", "one")):
                case "all":
                    kept = values
                case "range":
                    first = drawn.randrange(len(values))
                    kept = values[first : first + drawn.randint(1, len(values))]
                case "subset":
                    kept = tuple(drawn.sample(values, drawn.randint(1, len(values))))
                case _:
                    kept = (drawn.choice(values),)
            keys.append((column, kept))
        return charge(
            STEP * drawn.choice((100, 250, 500, 1000, drawn.randint(1, 1000))),
            keys=Cells(tuple(keys)),
            unit=self.unit,
            where=drawn.choice(("", "age > 65", "amount < 10")),
            version=drawn.choice(self.versions),
            immutable=self.immutable,
        )

    def places(self, asked: Charge) -> tuple[list[np.ndarray], list[int]]:
        """Per axis the asked values' places (all where the question leaves it open), and the axes of its keys."""
        named = {
            self.axis(column, asked.family.version): np.array([self.columns[column].index(value) for value in values])
            for column, values in asked.cells.columns
        }
        places = [named.get(axis, np.arange(len(self.columns[axis[0]]))) for axis in self.axes]
        keys = [self.axes.index(self.axis(column, asked.family.version)) for column in asked.family.columns]
        return places, keys


WORLDS = {
    "units": World("customer_id", COLUMNS, ("v1", "v2"), frozenset()),
    "rows that never move": World("row", COLUMNS, ("v1", "v2", "v3"), frozenset(COLUMNS)),
    "rows of one version": World("row", COLUMNS, ("v1",), frozenset()),
    "rows that move in two columns": World("row", MOVING, ("v1", "v2", "v3"), frozenset({"country", "year"})),
    "rows that move": World("row", {name: MOVING[name][:3] for name in MOVING}, ("v1", "v2"), frozenset()),
}


class BruteForce:
    """The loss of every record that could exist."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.grid = np.zeros([len(world.columns[column]) for column, _ in world.axes], dtype=np.int64)

    def add(self, asked: Charge, amount: int | np.ndarray) -> None:
        places, keys = self.world.places(asked)
        losses = np.broadcast_to(amount, asked.cells.shape_by_column).transpose(np.argsort(keys))
        shape = [len(at) if axis in keys else 1 for axis, at in enumerate(places)]
        self.grid[np.ix_(*places)] += losses.reshape(shape)

    def largest(self, asked: Charge) -> np.ndarray:
        """For each key of the question, the loss of the record in it that has lost most."""
        places, keys = self.world.places(asked)
        inside = self.grid[np.ix_(*places)]
        largest = inside.max(axis=tuple(axis for axis in range(inside.ndim) if axis not in keys))
        return np.asarray(largest).transpose(np.argsort(np.argsort(keys)))


def paid(world: World, *, seed: int, questions: int, most_columns: int) -> tuple[list[Event], BruteForce]:
    """A workload's events, with open, committed and released questions, and the same by brute force."""
    drawn = random.Random(seed)
    events: list[Event] = []
    exact = BruteForce(world)
    for number in range(questions):
        asked = world.question(drawn, most_columns=most_columns)
        reservation = str(number)
        events.append(Reserved(reservation, now(), asked))
        unit_nano = asked.unit_epsilon_nano
        spent = Spent.from_uniform(asked.epsilon_nano, unit_epsilon_nano=unit_nano)
        match drawn.choice(("open", "released", "uniform", "per key", "per key", "per key")):
            case "released":
                events.append(Released(reservation, now()))
                continue
            case "uniform":
                events.append(Committed(reservation, now(), spent, None, None))
            case "per key":
                # a progressive test stops at one of its rates
                rates = [STEP * (asked.epsilon_nano // STEP >> look) for look in range(4)]
                losses = drawn.choices(rates, k=asked.cells.key_count)
                spent = Spent.from_keys(losses, unit_epsilon_nano=0 if world.unit == "row" else max(losses))
                events.append(Committed(reservation, now(), spent, None, None))
        exact.add(asked, spent.read_amounts(asked.cells))
    return events, exact


def excess(balances: Balances, exact: BruteForce, asked: Charge, *, exact_grid: int | None = None) -> np.ndarray:
    """What the balance says of every key over what is true; raises where it is less."""
    family, cells = asked.family, asked.cells
    found = (
        balances.shared.bound_losses(family, cells)
        if exact_grid is None
        else balances.shared.bound_losses(family, cells, exact_grid=exact_grid)
    )
    true = exact.largest(asked)
    assert found.shape == true.shape
    assert (found >= true).all()
    return np.where(true == 0, np.where(found == 0, 1.0, np.inf), found / np.maximum(true, 1)).ravel()


@pytest.mark.parametrize("most_columns", [2, 4])
@pytest.mark.parametrize("name", WORLDS)
def test_balances_are_exact_on_workloads_of_200_questions(name: str, most_columns: int) -> None:
    world = WORLDS[name]
    for seed in range(rounds(2, quick=1)):
        events, exact = paid(world, seed=seed, questions=QUESTIONS, most_columns=most_columns)
        balances = fold(events)
        drawn = random.Random(seed)
        for _ in range(CHECKS):
            assert excess(balances, exact, world.question(drawn, most_columns=4)).max() == 1.0
        assert balances.shared.unit_loss.pure_nano == sum(spent for spent in unit_losses(events) if world.unit != "row")


@pytest.mark.parametrize("name", ["rows that move", "rows that move in two columns"])
def test_what_is_kept_of_other_versions_never_grows_stale(name: str) -> None:
    """Checks between charges, on changing versions: the kept parts follow every charge, refund and release."""
    world = WORLDS[name]
    events, _ = paid(world, seed=31, questions=rounds(60, quick=15), most_columns=3)
    balances = Balances()
    drawn = random.Random(32)
    for event in events:
        balances.apply_event(event)
        asked = world.question(drawn, most_columns=3)
        for account in (balances.shared, balances.make_known_account("ann"), balances.make_known_account("bob")):
            found = account.bound_losses(asked.family, asked.cells)
            anew = bound_cell_losses(sums_of(account, asked.family.table), make_partition(asked.family), asked.cells)
            np.testing.assert_array_equal(found, anew)


def sums_of(account: Account | KnownAccount, table: str) -> Mapping[Partition, Sums]:
    """An account's sums, nothing kept."""
    if isinstance(account, Account):
        return account.tables[table]
    back = account.refunds.tables.get(table, {})
    return {
        partition: SumsDifference(whole, back[partition]) if partition in back else whole
        for partition, whole in account.worst_case.tables[table].items()
    }


def unit_losses(events: list[Event]) -> list[int]:
    """What each question cost a whole unit in the end."""
    losses: dict[str, int] = {}
    for event in events:
        match event:
            case Reserved(reservation=reservation, charge=reserved):
                losses[reservation] = reserved.unit_epsilon_nano
            case Committed(reservation=reservation, spent=spent):
                losses[reservation] = spent.unit_epsilon_nano
            case Released(reservation=reservation):
                losses[reservation] = 0
    return list(losses.values())


@pytest.mark.parametrize(("name", "share"), cases(WORLDS, [2, 8, 64], quick=5))
def test_grids_that_are_too_large_cost_little_and_never_fall_below(name: str, share: int) -> None:
    """Steps of the elimination held to a part of the full grid, as on tables whose columns have many values."""
    world = WORLDS[name]
    events, exact = paid(world, seed=11, questions=QUESTIONS, most_columns=4)
    balances = fold(events)
    drawn = random.Random(12)
    worst = [
        excess(balances, exact, world.question(drawn, most_columns=4), exact_grid=exact.grid.size // share)
        for _ in range(CHECKS)
    ]
    ratios = np.concatenate(worst)
    assert ratios.mean() <= 1.05
    assert ratios.max() <= 1.35


@pytest.mark.parametrize("name", ["units", "rows that never move"])
def test_balances_cover_what_google_s_library_composes_for_the_record_that_lost_most(name: str) -> None:
    """Each question as a pure mechanism of its loss at the record, composed as privacy loss distributions.

    Their tails are as fine as floating point is: the composed loss may come out a little below the sum.
    """
    # here, since every process of the tests reads this file and few run this
    from dp_accounting.pld.common import DifferentialPrivacyParameters
    from dp_accounting.pld.privacy_loss_distribution import from_privacy_parameters, identity

    world = WORLDS[name]
    events, exact = paid(world, seed=21, questions=QUESTIONS, most_columns=4)
    place = np.unravel_index(int(exact.grid.argmax()), exact.grid.shape)
    record = {column: world.columns[column][at] for (column, _), at in zip(world.axes, place, strict=True)}
    composed = identity(value_discretization_interval=STEP / NANO)
    for loss in losses_of(record, events):
        one = from_privacy_parameters(
            DifferentialPrivacyParameters(loss / NANO, 0.0), value_discretization_interval=STEP / NANO
        )
        composed = composed.compose(one, tail_mass_truncation=0.0)
    asked = charge(
        0,
        keys=Cells(tuple((column, (value,)) for column, value in sorted(record.items()))),
        unit=world.unit,
        immutable=world.immutable,
    )
    balance = int(fold(events).shared.bound_losses(asked.family, asked.cells).max())
    true = composed.get_epsilon_for_delta(0.0)
    assert true - 1e-9 <= balance / NANO <= 1.05 * true


def losses_of(record: dict[str, str], events: list[Event]) -> list[int]:
    """What each question cost the record, where it cost anything."""
    charges: dict[str, Charge] = {}
    losses: dict[str, int] = {}
    for event in events:
        match event:
            case Reserved(reservation=reservation, charge=reserved):
                if all(record[column] in values for column, values in reserved.cells.columns):
                    charges[reservation] = reserved
                    losses[reservation] = reserved.epsilon_nano
            case Committed(reservation=reservation, spent=spent) if reservation in charges:
                cells = charges[reservation].cells
                key = tuple(values.index(record[column]) for column, values in cells.columns)
                losses[reservation] = int(np.broadcast_to(spent.read_amounts(cells), cells.shape_by_column)[key])
            case Released(reservation=reservation):
                losses.pop(reservation, None)
    return [loss for loss in losses.values() if loss]
