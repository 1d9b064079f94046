"""A value of a unit's own rows decides where its rows count: how much one cell changes, in every small world.

One unit, loss 1 for a whole sensitivity in one group. A world is what its rows add in each cell of ward and day, and in
which order its groups count. Nothing is drawn, so nothing fails by chance.
"""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import pytest

from planner.functionals.cells import CellReach, find_cell_reach
from tests.planner.asked import asked
from tests.proxy.sources.unit_values.valued import ASKED, CATALOG

Cell = tuple[int, int]
World = Mapping[Cell, int]
Row = tuple[int, int, int]
CELLS = tuple(product((0, 1), (0, 1)))


def _first(rows: list[Row]) -> int | None:
    return min((day for _, day, _ in rows), default=None)


def _by_cohort(rows: list[Row]) -> list[tuple[Any, Row]]:
    return [(_first(rows), row) for row in rows]


def _by_ward_on_the_first_day(rows: list[Row]) -> list[tuple[Any, Row]]:
    return [(row[0], row) for row in rows if row[1] == _first(rows)]


def _by_number(rows: list[Row]) -> list[tuple[Any, Row]]:
    return [(len(rows), row) for row in rows]


def _above_own_mean(rows: list[Row]) -> list[tuple[Any, Row]]:
    return [(row[0], row) for row in rows if row[2] * len(rows) >= sum(x for _, _, x in rows)]


PLACED: Mapping[str, Callable[[list[Row]], list[tuple[Any, Row]]]] = {
    "by the first day": _by_cohort,
    "by ward, on the first day": _by_ward_on_the_first_day,
    "by how many rows": _by_number,
    "by ward, above the own mean": _above_own_mean,
}


def _worlds(values: tuple[int, ...]) -> Iterator[World]:
    for chosen in product((None, *values), repeat=len(CELLS)):
        yield {cell: value for cell, value in zip(CELLS, chosen, strict=True) if value is not None}


def _added(world: World, asked_by: str, order: tuple[int, ...], *, most: int, low: int, high: int) -> dict[Any, int]:
    placed = PLACED[asked_by]([(*cell, x) for cell, x in world.items()])
    groups = [group for group in order if any(found == group for found, _ in placed)][:most]
    return {group: max(low, min(high, sum(row[2] for found, row in placed if found == group))) for group in groups}


@pytest.mark.parametrize("asked_by", PLACED)
@pytest.mark.parametrize(
    ("values", "most", "low", "high"),
    [
        pytest.param((1, 2), 2, 0, 2, id="counts in all groups"),
        pytest.param((1, 2), 1, 0, 2, id="counts in one group"),
        pytest.param((-2, 2), 2, -2, 2, id="sums of both signs"),
    ],
)
def test_a_cell_costs_all_groups_of_a_unit_twice(
    asked_by: str, values: tuple[int, ...], most: int, low: int, high: int
) -> None:
    charged = CellReach(reaches_other_groups=True, changes_all_groups=True, is_doubled=True).count_losses(most)
    sensitivity = max(-low, high)
    worlds = [*_worlds(values)]
    for order in permutations(range(5), 3):
        added = [_added(world, asked_by, order, most=most, low=low, high=high) for world in worlds]
        of_world = {frozenset(world.items()): groups for world, groups in zip(worlds, added, strict=True)}
        for world, whole in zip(worlds, added, strict=True):
            assert sum(map(abs, whole.values())) <= most * sensitivity, "the whole unit, at once"
            for cell in world.items():
                part = of_world[frozenset(world.items()) - {cell}]
                moved = sum(abs(whole.get(one, 0) - part.get(one, 0)) for one in {*whole, *part})
                assert moved <= charged * sensitivity


def test_that_much_is_attained_by_a_unit_that_no_bound_cuts() -> None:
    """By the first day a person is in one group: all of it before, all of it in another one after."""
    days: World = {(0, 0): 0, (0, 1): 2}
    before, after = (_added(one, "by the first day", (0, 1), most=1, low=0, high=2) for one in (days, {(0, 1): 2}))
    assert (before, after) == ({0: 2}, {1: 2})
    assert Fraction(before[0] + after[1], 2) == CellReach(True, True, True).count_losses(1)


def test_values_are_charged_to_all_cells() -> None:
    for sql in ASKED:
        assert find_cell_reach(asked(sql, catalog=CATALOG, tolerance="0")) == CellReach(True, True, True), sql
