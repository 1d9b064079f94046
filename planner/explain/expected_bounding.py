"""The expected cut of bounding if the rows per privacy unit are geometric: a model for owners, not a measurement."""

from dataclasses import dataclass
from math import floor

from planner.question.plan import Plan
from planner.question.question import Functional, Measure
from planner.question.unit_groups import count_unit_groups

ASSUMPTIONS = (
    "its rows in a group are geometric (at least one)",
    "they lie in one group (the larger share) or spread over as many as it may be in (the smaller)",
    "every row adds the middle of its column's bounds to a sum",
)
SPREAD_ASSUMPTIONS = (
    "it is in exactly so many groups, and its rows in each are geometric (at least one)",
    "every row adds the middle of its column's bounds to a sum",
)


@dataclass(frozen=True, slots=True)
class ExpectedCut:
    """The share of an aggregate that bounding is expected to cut, between 0 and 1, over all groups together."""

    name: str
    share: float


@dataclass(frozen=True, slots=True)
class ExpectedClipping:
    """The share of an aggregate that clipping is expected to cut, between 0 and 1.

    `spread_share` assumes that a unit's rows are spread over as many groups as it may be in. `concentrated_share`
    assumes that all of them are in one group.
    """

    name: str
    spread_share: float
    concentrated_share: float


def list_expected_cuts(plan: Plan, *, mean_rows: float) -> tuple[ExpectedCut, ...]:
    """Return the expected cut of each functional's aggregate under `ASSUMPTIONS`.

    Return nothing if the row is the unit, and for a question about units' totals, about which the model says nothing.
    With `P(X > k) = q^k`, `q = 1 - 1 / mean`, a bound of M rows keeps `E min(X, M) = mean (1 - q^M)`: it cuts the share
    `q^M`. A total of `v X` clipped to H = k v + r keeps `v mean (1 - q^k) + r q^k`.

    Parameters:
        mean_rows: the mean number of a unit's rows in a group it is in; below 1 counts as 1.
    """
    if plan.question.table.is_row_unit or plan.question.per_unit is not None:
        return ()
    ratio = 1.0 - 1.0 / max(1.0, mean_rows)
    return tuple(
        ExpectedCut(name=functional.name, share=_compute_share(plan, functional, ratio))
        for functional in plan.question.computed_functionals
    )


def list_expected_clipping(plan: Plan, *, mean_rows: float, groups: float | None) -> tuple[ExpectedClipping, ...]:
    """Return the expected cut by clipping in the groups that count.

    It lies between the cut of rows spread over all groups and the cut of all rows in one. If the mean number of groups
    is known, rows are spread over that number.
    """
    spread = list_expected_cuts(plan, mean_rows=mean_rows / (groups or count_unit_groups(plan.question)))
    together = spread if groups else list_expected_cuts(plan, mean_rows=mean_rows)
    return tuple(
        ExpectedClipping(name=least.name, spread_share=least.share, concentrated_share=most.share)
        for least, most in zip(spread, together, strict=True)
    )


def _compute_share(plan: Plan, functional: Functional, ratio: float) -> float:
    table = plan.question.table
    if functional.measure in (Measure.UNITS, Measure.UNIT_PARTS):
        return 0.0
    if functional.unit_range is None or table.rows_per_unit is None:
        return float(ratio**table.row_cap.rows) if table.row_cap else 0.0
    if functional.measure is Measure.ROWS or len(functional.terms) != 1 or not functional.summed:
        return float(ratio**table.rows_per_unit)
    middle = _find_middle(plan, functional)
    edge = (functional.unit_range[1] if middle > 0 else functional.unit_range[0]) + functional.off_each_unit
    if middle == 0 or edge == 0:
        return 0.0 if middle == 0 else 1.0
    whole = floor(edge / middle)
    mean = 1.0 / (1.0 - ratio)
    rest = edge / middle - whole
    return float(max(0.0, 1.0 - ((1.0 - ratio**whole) + rest * ratio**whole / mean)))


def _find_middle(plan: Plan, functional: Functional) -> float:
    """Return a row's part of a sum, in the functional's steps, if its value is in the middle of its bounds."""
    (term,) = functional.terms
    column = plan.question.table.get_column(term.column or "")
    assert column.bounds is not None
    assert column.grid is not None
    return float((column.bounds[0] + column.bounds[1]) / 2 / column.grid) ** term.power * term.coefficient
