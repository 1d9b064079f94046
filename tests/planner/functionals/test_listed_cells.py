"""A list of privacy units says whose rows count: how much one cell changes, in every small world.

One unit, loss 1 for a whole sensitivity in one group. A world is what its rows add in each cell of ward and day, in
which order its wards count, and what makes the list. Nothing is drawn, so nothing fails by chance.
"""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import permutations, product

import pytest

from planner.functionals.cells import CellReach, find_cell_reach
from tests.planner.asked import asked
from tests.proxy.sources.unit_paths.shop import compiled

Cell = tuple[int, int]
World = Mapping[Cell, int]
CELLS = tuple(product((0, 1), (0, 1)))
LISTS: Mapping[str, Callable[[World, World], bool]] = {
    "IN, the same table": lambda own, _: any(day for _, day in own),
    "NOT IN, the same table": lambda own, _: not any(day for _, day in own),
    "HAVING sum, the same table": lambda own, _: sum(own.values()) > 0,
    "IN, another table": lambda _, other: bool(other),
    "HAVING count, the other table": lambda own, other: len(other) > 1,
    "EXCEPT or NOT EXISTS": lambda own, other: (bool(own) and not other) or not any(day for _, day in own),
    "IN one, NOT IN the other": lambda own, other: bool(other) and not any(day for _, day in own),
}


def _worlds(values: tuple[int, ...]) -> Iterator[World]:
    for chosen in product((None, *values), repeat=len(CELLS)):
        yield {cell: value for cell, value in zip(CELLS, chosen, strict=True) if value is not None}


def _added(own: World, listed: bool, order: tuple[int, ...], *, most: int, low: int, high: int) -> dict[int, int]:
    wards = [ward for ward in order if listed and any(cell[0] == ward for cell in own)][:most]
    return {ward: max(low, min(high, sum(x for cell, x in own.items() if cell[0] == ward))) for ward in wards}


def _is_cut(own: World, cell: Cell, *, most: int, low: int, high: int) -> bool:
    """Return True if a bound cuts the unit: with all its rows, with the cell's rows only, or with all the others."""
    parts = (own, {cell: own[cell]} if cell in own else {}, {one: x for one, x in own.items() if one != cell})
    for part in parts:
        wards = {ward for ward, _ in part}
        sums = [sum(x for one, x in part.items() if one[0] == ward) for ward in wards]
        if len(wards) > most or any(not low <= total <= high for total in sums):
            return True
    return False


@pytest.mark.parametrize("listing", LISTS)
@pytest.mark.parametrize(
    ("values", "most", "low", "high", "charged"),
    [
        pytest.param((1,), 2, 0, 2, 2, id="counts in all wards"),
        pytest.param((1,), 1, 0, 1, 1, id="counts in one of two wards"),
        pytest.param((-3, 2), 2, -3, 3, 2, id="sums of both signs"),
    ],
)
def test_a_cell_costs_all_groups_of_a_unit_once(
    listing: str, values: tuple[int, ...], most: int, low: int, high: int, charged: int
) -> None:
    """A cell is taken away in both tables at once. Who is not cut loses what is charged at most, who is cut twice that.

    Where the list decides, one of the two contributions is nothing: that is once the whole even if a bound cuts.
    """
    assert charged == CellReach(reaches_other_groups=True, changes_all_groups=True).count_losses(most)
    largest = {False: Fraction(0), True: Fraction(0)}
    others: tuple[World, ...] = ({}, {(0, 0): 1}, {(0, 0): 1, (1, 1): 1})
    rule, sensitivity = LISTS[listing], max(-low, high)
    for own, other, order in product(_worlds(values), others, permutations((0, 1))):
        for cell in CELLS:
            left, beside = ({one: x for one, x in some.items() if one != cell} for some in (own, other))
            before, after = rule(own, other), rule(left, beside)
            whole = _added(own, before, order, most=most, low=low, high=high)
            part = _added(left, after, order, most=most, low=low, high=high)
            moved = Fraction(sum(abs(whole.get(w, 0) - part.get(w, 0)) for w in (0, 1)), sensitivity)
            cut = _is_cut(own, cell, most=most, low=low, high=high)
            largest[cut] = max(largest[cut], moved)
            assert before == after or moved <= charged
    assert largest[False] <= charged
    assert largest[True] <= 2 * charged


def test_a_person_whom_one_day_lists_leaves_every_ward() -> None:
    """Two wards, one loss each, for a single row in a cell of another table: a key's own loss would be half of that."""
    own: World = {(0, 0): 2, (1, 0): 2}
    on, off = (_added(own, listed, (0, 1), most=2, low=0, high=2) for listed in (True, False))
    assert sum(on.values()) - sum(off.values()) == 2 * CellReach(
        reaches_other_groups=True, changes_all_groups=True
    ).count_losses(2)


@pytest.mark.parametrize(
    ("where", "reach"),
    [
        pytest.param("household IN (SELECT household FROM lines WHERE l_month = 1)", CellReach(True, True), id="in"),
        pytest.param("household NOT IN (SELECT household FROM orders)", CellReach(True, True), id="not in"),
        pytest.param("c_key = 1 OR household IN (SELECT household FROM orders)", CellReach(True, True, True), id="or"),
        pytest.param("region = 'north'", CellReach(), id="no list"),
    ],
)
def test_lists_are_charged_to_the_cells_that_they_read(where: str, reach: CellReach) -> None:
    """A cell of the list's table knows no key of the question, so that all cells are charged the unit's whole loss."""
    sql = f"SELECT region FROM customers WHERE {where} GROUP BY region HAVING count(DISTINCT household) > 40"
    assert find_cell_reach(asked(sql, catalog=compiled())) == reach


def test_sums_of_both_signs_cost_twice_as_much_beside_a_list_as_without() -> None:
    plain = "SELECT l_mode FROM lines{} GROUP BY l_mode HAVING sum(amount) > 40"
    listed = plain.format(" WHERE household IN (SELECT household FROM customers WHERE region = 'north')")
    for sql in (plain.format(""), listed):
        assert find_cell_reach(asked(sql, catalog=compiled())) == CellReach(True, True, is_doubled=True)
