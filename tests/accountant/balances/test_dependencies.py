"""Balances where one column follows from another, against brute force over every record that can exist.

Records are a country, what the country's region and its continent are, and a product, in each of two data versions.
"""

import random
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import pytest

from accountant.balances.account import Account, AccountChange
from accountant.balances.dependencies import Dependency, Knowledge, assume_nothing
from accountant.balances.variable_elimination import EXACT_GRID
from accountant.charges import NANO, Cells, Charge, NanoArray
from tests.accountant.examples import charge
from tests.effort import rounds

REGIONS = ("north", "south", "west")
CONTINENTS = ("old", "new")
PRODUCTS = ("p0", "p1")
VERSIONS = ("v1", "v2")
# of a country or product that no question has for a key
ELSEWHERE = "elsewhere"
Record = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class World:
    """What records can be in each version, what questions can be about, and what is publicly known of both."""

    unit: str
    immutable: frozenset[str]
    values: dict[str, tuple[str, ...]]
    courses: tuple[dict[str, Record], ...]
    known: tuple[Dependency, ...]

    @property
    def knowledge(self) -> Knowledge:
        def among(_table: str, columns: frozenset[str]) -> tuple[Dependency, ...]:
            return tuple(one for one in self.known if one.determined_column in columns)

        return among

    def question(self, drawn: random.Random, *, amount: int) -> Charge:
        columns = sorted(drawn.sample(sorted(self.values), drawn.randint(0, 3)))
        keys = [
            (name, tuple(drawn.sample(self.values[name], drawn.randint(1, len(self.values[name]))))) for name in columns
        ]
        version = drawn.choice(VERSIONS)
        return charge(amount, keys=Cells(tuple(keys)), unit=self.unit, version=version, immutable=self.immutable)

    def exact(self, asked: Charge, paid: list[tuple[Charge, NanoArray]]) -> NanoArray:
        """The loss of the record in each key that lost most; -1 in keys that no record can be in."""
        most = np.full(asked.cells.shape_by_column, -1, dtype=np.int64)
        for course in self.courses:
            key = place(asked, course)
            if key is not None:
                lost = [int(amounts[at]) for other, amounts in paid if (at := place(other, course)) is not None]
                most[key] = max(most[key], sum(lost))
        return most


def place(asked: Charge, course: dict[str, Record]) -> tuple[int, ...] | None:
    """The key of a question that a record is in."""
    record = course[asked.family.version]
    found = []
    for name, values in asked.cells.columns:
        value = record[name]
        if value not in values:
            return None
        found.append(values.index(value))
    return tuple(found)


def world(seed: int, *, complete: bool) -> World:
    """Countries with a region and a continent each, or with none; all in use are somebody's.

    Where the maps are not complete, a country that they do not hold may be anywhere.
    """
    drawn = random.Random(seed)
    countries = tuple(f"c{number}" for number in range(drawn.randint(3, 5)))
    listed = countries if not complete else (*drawn.sample(countries, len(countries) - 1), "c99")
    maps: dict[str, dict[str, str | None]] = {
        name: {country: drawn.choice((*values, None)) for country in listed}
        for name, values in (("region", REGIONS), ("continent", CONTINENTS))
    }
    shapes: list[Record] = []
    for country in (*countries, *listed[len(countries) - 1 :], ELSEWHERE):
        anything = (None,) if complete else (*REGIONS, None), (None,) if complete else (*CONTINENTS, None)
        regions, continents = (
            (maps[name][country],) if country in maps[name] else free
            for name, free in zip(("region", "continent"), anything, strict=True)
        )
        for region, continent, sold in product(regions, continents, (*PRODUCTS, ELSEWHERE)):
            shapes.append({"country": country, "region": region, "continent": continent, "product": sold})
    unit = drawn.choice(("row", "row", "customer_id"))
    place = frozenset({"country", "region", "continent"})
    immutable = drawn.choice((frozenset[str](), place, frozenset({"product"}), place | {"product"}))
    still = {name for name in shapes[0] if unit != "row" or name in immutable}
    courses = tuple(
        dict(zip(VERSIONS, (before, after), strict=True))
        for before, after in product(shapes, shapes)
        if all(before[name] == after[name] for name in still)
    )
    used = {name: tuple(sorted({value for value in maps[name].values() if value is not None})) for name in maps}
    values = {"country": countries, "product": PRODUCTS, **{name: found for name, found in used.items() if found}}
    known = tuple(Dependency(name, "country", found, is_complete=complete) for name, found in maps.items())
    return World(unit, immutable, values, courses, known)


def add(account: Account, asked: Charge, amounts: NanoArray) -> None:
    account.add(asked, AccountChange(amounts, amounts, 0, 0))


def losses(drawn: random.Random, asked: Charge) -> NanoArray:
    some = [drawn.randint(0, 100) for _ in range(asked.cells.key_count)]
    return np.array(some, dtype=np.int64).reshape(asked.cells.shape_by_column)


@pytest.mark.parametrize("seed", range(rounds(60, quick=8)))
def test_balances_equal_the_loss_of_the_record_that_lost_most(seed: int) -> None:
    """Checks between charges, on both versions: what is kept of the other one follows.

    A country determines all that is known of it, so that nothing is lost where the maps are complete.
    """
    here = world(seed, complete=True)
    drawn = random.Random(seed)
    account, paid = Account(), []
    for _ in range(8):
        before = here.question(drawn, amount=NANO)
        amounts = losses(drawn, before)
        add(account, before, amounts)
        paid.append((before, amounts))
        for _ in range(3):
            asked = here.question(drawn, amount=NANO)
            true = here.exact(asked, paid)
            found = account.bound_losses(asked.family, asked.cells, knowledge=here.knowledge)
            assert found.shape == true.shape
            np.testing.assert_array_equal(found[true >= 0], true[true >= 0])


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("seed", range(rounds(60, quick=4)))
def test_balances_are_never_below_what_a_record_lost_nor_above_what_they_are_with_nothing_known(
    seed: int, complete: bool
) -> None:
    """Grids too small for an exact elimination, and maps that leave countries out that may be anywhere."""
    here = world(seed, complete=complete)
    drawn = random.Random(seed)
    account, paid = Account(), []
    for _ in range(10):
        before = here.question(drawn, amount=NANO)
        amounts = losses(drawn, before)
        add(account, before, amounts)
        paid.append((before, amounts))
        for grid in (EXACT_GRID, 0, 4, 16):
            asked = here.question(drawn, amount=NANO)
            found, plain = (
                account.bound_losses(asked.family, asked.cells, exact_grid=grid, knowledge=knowledge)
                for knowledge in (here.knowledge, assume_nothing)
            )
            assert (found >= here.exact(asked, paid)).all()
            assert (found <= plain).all()


def by(name: str, *values: str, version: str = "v1", immutable: frozenset[str] = frozenset()) -> Charge:
    return charge(NANO, keys=Cells(((name, values),)), version=version, immutable=immutable)


def knows(*known: Dependency) -> Knowledge:
    return partial(lambda known, _table, _columns: known, known)


REGION_OF = Dependency("region", "country", {"NO": "north", "SE": "north", "FR": "west", "XX": None}, is_complete=True)


@pytest.mark.parametrize("known", [True, False])
def test_what_a_region_lost_its_countries_lost_and_the_region_what_its_worst_country_did(known: bool) -> None:
    account = Account()
    add(account, by("region", "north", "west"), np.array([5, 7]))
    add(account, by("country", "NO", "FR", "US"), np.array([10, 20, 40]))

    def lost(asked: Charge) -> list[int]:
        knowledge = knows(REGION_OF) if known else assume_nothing
        return [int(one) for one in account.bound_losses(asked.family, asked.cells, knowledge=knowledge).reshape(-1)]

    countries, regions = by("country", "NO", "SE", "FR", "US", "XX"), by("region", "north", "west")
    assert lost(countries) == ([15, 5, 27, 40, 0] if known else [17, 7, 27, 47, 7])
    assert lost(regions) == ([15, 27] if known else [45, 47])
    assert lost(charge(NANO, keys=Cells(()))) == ([40] if known else [47])


def test_a_column_that_moves_ties_its_own_version_alone_and_an_immutable_one_all() -> None:
    def lost(immutable: frozenset[str], version: str) -> list[int]:
        account = Account()
        add(account, by("region", "north", "west", version=version, immutable=immutable), np.array([5, 7]))
        asked = by("country", "NO", "FR", immutable=immutable)
        return [int(one) for one in account.bound_losses(asked.family, asked.cells, knowledge=knows(REGION_OF))]

    assert lost(frozenset(), "v1") == [5, 7]
    assert lost(frozenset(), "v2") == [7, 7]
    assert lost(frozenset({"country", "region"}), "v2") == [5, 7]
    # whose region never changes may change its country, and was in any that the region has
    assert lost(frozenset({"region"}), "v2") == [7, 7]


def test_the_charges_that_a_map_is_used_on_stay_what_they_are() -> None:
    account = Account()
    add(account, by("region", "north", "west"), np.array([5, 7]))
    asked = by("country", "NO")
    account.bound_losses(asked.family, asked.cells, knowledge=knows(REGION_OF))
    assert account.bound_losses(asked.family, asked.cells).tolist() == [7]
    (sums,) = account.tables["sales"].values()
    assert sums.array.tolist() == [5, 7]


@pytest.mark.parametrize("version", ["v1 tied", "tied", "tiedv1"])
def test_no_data_version_is_taken_for_the_axis_on_which_columns_are_tied(version: str) -> None:
    """A row may have been in FR on one version and in NO on another, whatever these are called."""
    account = Account()
    add(account, by("country", "FR"), np.array([50]))
    add(account, by("region", "west"), np.array([1]))
    charged = charge(
        NANO, keys=Cells((("country", ("NO",)), ("year", ("2024",)))), version=version, immutable=frozenset({"year"})
    )
    add(account, charged, np.array([[100]]))
    asked = by("region", "north", "west")
    for grid in (1 << 19, EXACT_GRID):
        lost = account.bound_losses(asked.family, asked.cells, knowledge=knows(REGION_OF), exact_grid=grid)
        assert lost.tolist() == [100, 151]
