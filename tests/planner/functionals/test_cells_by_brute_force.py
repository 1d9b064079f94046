"""What taking the rows of one cell away changes, in every small world: the values on which the rule of charges rests.

One unit, loss 1 for a whole sensitivity in one group. A world is what the unit has in each cell, and the order in which
its groups or rows count. Nothing is drawn, so nothing fails by chance.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product

import pytest

from planner.functionals.cells import CellReach, find_cell_reach
from tests.planner.asked import asked
from tests.proxy.sources.unit_paths.shop import compiled

Cell = tuple[int, int]
Total = Callable[[Sequence[int]], int]
GRID = tuple(product((0, 1), (0, 1)))


def _bounded(has: dict[Cell, int], order: Sequence[int], *, most: int, low: int, high: int) -> dict[int, int]:
    """By group (the first coordinate), the clipped total of a unit that counts in its first groups."""
    groups = [group for group in order if any(cell[0] == group for cell in has)][:most]
    return {group: max(low, min(high, sum(x for cell, x in has.items() if cell[0] == group))) for group in groups}


def _change(before: dict[int, int], after: dict[int, int], *, sensitivity: int) -> Fraction:
    moved = sum(abs(before.get(group, 0) - after.get(group, 0)) for group in before.keys() | after.keys())
    return Fraction(moved, sensitivity)


def _worlds(values: Sequence[int | None]) -> Iterator[dict[Cell, int]]:
    for chosen in product(values, repeat=len(GRID)):
        yield {cell: value for cell, value in zip(GRID, chosen, strict=True) if value is not None}


def _largest(values: Sequence[int | None], *, most: int, low: int, high: int) -> Fraction:
    sensitivity = max(abs(low), abs(high))
    found = Fraction(0)
    for has in _worlds(values):
        for order in permutations((0, 1)):
            whole = _bounded(has, order, most=most, low=low, high=high)
            for cell in has:
                left = {one: value for one, value in has.items() if one != cell}
                part = _bounded(left, order, most=most, low=low, high=high)
                found = max(found, _change(whole, part, sensitivity=sensitivity))
    return found


@pytest.mark.parametrize(
    ("values", "most", "low", "high", "true"),
    [
        pytest.param((None, 1), 1, 0, 1, Fraction(2), id="count(DISTINCT unit), a vacated place is taken"),
        pytest.param((None, 1), 2, 0, 1, Fraction(1), id="count(DISTINCT unit), room for all groups"),
        pytest.param((None, -10, 5, 15), 2, -5, 5, Fraction(2), id="sum clipped to [-5, 5]"),
        pytest.param((None, 5, 15), 2, 0, 5, Fraction(1), id="sum clipped to [0, 5]"),
        pytest.param((None, -10, 5, 15), 2, -2, 5, Fraction(7, 5), id="sum clipped to [-2, 5]"),
        pytest.param((None, -3, 7, 14), 2, -3, 7, Fraction(10, 7), id="avg(x) > 3 of [0, 10], one row a group"),
    ],
)
def test_what_one_cell_changes(values: tuple[int | None, ...], most: int, low: int, high: int, true: Fraction) -> None:
    found = _largest(values, most=most, low=low, high=high)
    assert found == true
    assert found <= 2


@pytest.mark.parametrize("cap", [1, 3])
def test_a_row_cap_lets_rows_of_another_filter_in(cap: int) -> None:
    """`cap` rows of the filter A in one cell, as many of B in another; the loss of the group is the maximum of both."""
    rows = [*("A" * cap), *("B" * cap)]
    found = 0
    for order in set(permutations(rows)):
        whole, part = order[:cap], [row for row in order if row == "B"][:cap]
        found = max(found, sum(abs(whole.count(one) - part.count(one)) for one in "AB"))
    assert Fraction(found, cap) == 2


def _joined(stays: frozenset[int], tests: dict[int, int]) -> dict[Cell, int]:
    """The unit's joined rows: each ward of a stay with each day of a test, by what the test adds."""
    return {(ward, day): value for ward in stays for day, value in tests.items()}


def _losses_of_join(
    values: Sequence[int | None], *, wards: int, most: int, low: int, high: int
) -> Iterator[tuple[bool, Fraction]]:
    """For each world and each day that is taken away: whether a bound cut the unit, and what changed."""
    sensitivity = max(abs(low), abs(high))
    subsets = [frozenset(c) for size in range(1, wards + 1) for c in combinations(range(wards), size)]
    for stays, days, order in product(subsets, product(values, repeat=2), permutations(range(wards))):
        tests = {day: value for day, value in enumerate(days) if value is not None}
        for day in tests:
            left = {one: value for one, value in tests.items() if one != day}
            alone = {day: tests[day]}
            sums = [sum(some.values()) for some in (tests, left, alone) if some]
            cut = len(stays) > most or any(not low <= one <= high for one in sums)
            whole, part = (
                _bounded(_joined(stays, some), order, most=most, low=low, high=high) for some in (tests, left)
            )
            yield cut, _change(whole, part, sensitivity=sensitivity)


def test_a_person_whose_tests_lie_on_one_day_leaves_three_wards() -> None:
    """The charge of before was that of one group, 1; three are true, and charged."""
    found = [change for cut, change in _losses_of_join((None, 1), wards=3, most=3, low=0, high=1) if not cut]
    assert max(found) == 3 == CellReach(changes_all_groups=True).count_losses(3)


@pytest.mark.parametrize(
    ("values", "low", "high", "doubled", "largest"),
    [
        pytest.param((None, 1, 2), 0, 2, False, 2, id="counts: full or gone"),
        pytest.param((None, -10, 5, 15), -5, 5, True, 4, id="totals of both signs: full before and after"),
    ],
)
def test_no_joined_cell_loses_more_than_is_charged(
    values: tuple[int | None, ...], low: int, high: int, doubled: bool, largest: int
) -> None:
    """Uncut units at most what is charged, cut ones at most twice that, with two groups to a unit of three wards."""
    charged = CellReach(changes_all_groups=True, is_doubled=doubled).count_losses(2)
    found = list(_losses_of_join(values, wards=3, most=2, low=low, high=high))
    assert max(change for cut, change in found if not cut) <= charged
    assert max(change for _, change in found) == largest <= 2 * charged


@pytest.mark.parametrize("known", [sum, max, lambda found: 2 * sum(found) / len(found)], ids=["sum", "max", "mean"])
def test_totals_per_unit_move_between_filters(known: Callable[[list[int]], float]) -> None:
    """`count(*) FILTER (known > 5)` and `FILTER (known <= 5)` of a coarse group: a unit within its bounds changes both,
    of which the loss of the group is the larger one."""
    found = 0
    for has in _worlds((None, 2, 4, 6)):
        for cell in has:
            group = [one for one in has if one[0] == cell[0]]
            whole = known([has[one] for one in group])
            left = [has[one] for one in group if one != cell]
            part = (0, 0) if not left else (int(known(left) > 5), int(known(left) <= 5))
            found = max(found, abs(int(whole > 5) - part[0]) + abs(int(whole <= 5) - part[1]))
    assert found == 2 == CellReach(is_doubled=True).count_losses(5)


def test_totals_per_unit_of_joined_rows_move_between_filters_in_all_groups() -> None:
    """Two wards and two days: without one day a unit goes from `n >= 2` to `n < 2` in both, each filter in full."""
    whole, part = (dict.fromkeys((0, 1), days) for days in (2, 1))
    moved = sum((whole[ward] >= 2) != (part[ward] >= 2) for ward in whole)
    loss_of_both_filters = 2 * moved
    per_unit = "(SELECT household, l_mode, count(*) AS n FROM lines GROUP BY household, l_mode) v"
    joined = f"SELECT l_mode FROM {per_unit} GROUP BY l_mode HAVING {{}}"
    several, few = "count(*) FILTER (WHERE n >= 2) > 40", "count(*) FILTER (WHERE n < 2) > 40"
    both = find_cell_reach(asked(joined.format(f"{several} AND {few}"), catalog=compiled()))
    assert both.count_losses(2) == loss_of_both_filters == 4
    for one in (several, few):  # it comes or goes, in full once
        assert find_cell_reach(asked(joined.format(one), catalog=compiled())).count_losses(2) == moved


def test_parts_of_a_statement_cost_their_sum() -> None:
    """By both keys, by each and by none, with as many groups as a unit may be in: no world costs more, and some do cost
    it, for one cell as for the whole unit."""
    parts: list[Callable[[Cell], Cell]] = [lambda c: c, lambda c: (c[0], 9), lambda c: (9, c[1]), lambda c: (9, 9)]

    def added(has: dict[Cell, int]) -> list[dict[Cell, int]]:
        return [dict.fromkeys(map(part, has), 1) for part in parts]  # count(DISTINCT unit)

    def moved(has: dict[Cell, int], left: dict[Cell, int]) -> int:
        pairs = zip(added(has), added(left), strict=True)
        return sum(len(whole.keys() ^ rest.keys()) for whole, rest in pairs)

    worlds = [has for has in _worlds((None, 1)) if len(has) <= 2]
    of_cells = [moved(has, {one: 1 for one in has if one != cell}) for has in worlds for cell in has]
    assert max(of_cells) == len(parts) * CellReach().count_losses(1)
    assert max(moved(has, {}) for has in worlds) == 2 + 2 + 2 + 1


def test_groupings_that_are_nested_let_different_groups_in() -> None:
    """Why the promise of a unit that is cut is one question's: what enters is not the same group in all of them.

    By ward A enters for C, by ward and month (B, m2): no cell lies in both, so that each may have lost the cap, and the
    cell that is taken away, in C, has one more.
    """
    cells = [("C", "m1"), ("A", "m3"), ("B", "m2")]
    by_ward = ["C", "A", "B"]
    by_both = [("C", "m1"), ("B", "m2"), ("A", "m3")]
    left = cells[1:]
    entering = next(ward for ward in by_ward if any(cell[0] == ward for cell in left))
    entering_both = next(cell for cell in by_both if cell in left)
    assert entering == "A"
    assert entering_both == ("B", "m2")
    assert not any(cell[0] == entering and cell == entering_both for cell in cells)
