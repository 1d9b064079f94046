"""Rankings by a difference from other groups: the fastest growing five.

    SELECT month FROM sales GROUP BY month
    ORDER BY count(*) - lag(count(*)) OVER (ORDER BY month) DESC NULLS LAST LIMIT 5

A month counts in its own value and in the next one. Each value has noise of its own, and a month is charged for both.
PostgreSQL has NULL where a neighbour is missing, which is larger than all numbers. Where that is follows from the keys.

Proof: docs/proofs/ranking.md, "Values of several cells".
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from mechanisms.formula import Integers
from mechanisms.keyhole.taken_cells import look_up_parts
from mechanisms.protocol import CommonSums
from planner.aggregates.comparison import Comparison
from planner.aggregates.having_refusals import refuse_ranking_by_groups
from planner.catalog.key_space import KeySpace
from planner.functionals.cell_readings import read_sums
from planner.functionals.per_key_offsets import LIMIT
from planner.question.question import Functional, RankedCells


def read_ranked_cells(
    read: Functional, comparison: Comparison, keys: KeySpace, *, puts_missing_first: bool
) -> tuple[Functional, RankedCells]:
    """Return the ranked value that is computed from several groups: its functional with the sensitivity, and the sums.

    Parameters:
        read: its functional, as `read_functional` makes it.

    Guarantee: a unit in one cell changes the value of one group by at most the sensitivity, and all values together by
    at most `moved`.

    Raises KH204 for totals and means of groups, which count in all groups alike.
    """
    sums, common = read_sums((read,), keys)
    axes = {where.axis for where in common.cells[0] if where.axis is not None}
    if len(axes) != 1 or any(
        one.summed_axes or one.most_places or one.statistic is not None for one in common.cells[0]
    ):
        raise refuse_ranking_by_groups(comparison.left_text, comparison.position)
    weights = [by_group.values() for by_group in _weigh_cells(common, axes.pop())]
    largest, moved = max(map(max, weights), default=0), max(map(sum, weights), default=0)
    made = replace(read, sensitivity=max(1, largest))
    return made, RankedCells(sums, common, max(1, moved), puts_missing_first)


def compute_differences(cells: RankedCells, sums: Integers, *, descending: bool) -> Integers:
    """Return the value of every group from the exact sums. A group without a value stands first or last.

    Parameters:
        sums: int64 of shape (sums, keys), in the order of `cells.sums`.
        descending: True if the greatest value stands first.
    """
    common, keys = cells.common, sums.shape[1]
    total, there = np.zeros(keys, dtype=np.int64), np.ones(keys, dtype=np.bool_)
    looked = look_up_parts(common, 0, dict(enumerate(sums)))
    for (found, has_cells), (_, factor), where in zip(looked, common.readings[0], common.cells[0], strict=True):
        total += np.where(has_cells, factor * found, where.empty_value or 0)
        there &= has_cells | (where.empty_value is not None)
    missing = LIMIT if cells.puts_missing_first is descending else -LIMIT
    placed: Integers = np.where(there, np.clip(total, 1 - LIMIT, LIMIT - 1), missing)
    return placed


def describe_missing_values(cells: RankedCells) -> Iterator[str]:
    """Yield a warning that says where groups without a value stand, if there may be some."""
    places = (one for one in cells.common.cells[0] if one.axis is not None)
    if all(one.has_value(place) for one in places for place in range(len(one.used_places))):
        return
    stand, other = ("first", "LAST") if cells.puts_missing_first else ("last", "FIRST")
    yield f"groups whose neighbour is missing are NULL, and stand {stand}; NULLS {other} after ORDER BY changes that"


def _weigh_cells(common: CommonSums, axis: int) -> list[Mapping[int, int]]:
    """Return for each place of a calendar, by the places of groups, how far a unit in that cell moves their values."""
    found: list[dict[int, int]] = [{place: 0} for place in range(common.shape[axis])]
    for (at, factor), where in zip(common.readings[0], common.cells[0], strict=True):
        for group in range(common.shape[axis]):
            for cell in (group,) if where.axis is None else where.used_places[group]:
                found[cell][group] = found[cell].get(group, 0) + abs(factor) * common.sensitivities[at]
    return list(found)
