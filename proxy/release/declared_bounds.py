"""The comparison of the policy's declared bounds with the bounds that `keyhole bounds` found.

The owner is warned if a found bound is wider than the declared one.
"""

from decimal import Decimal

from planner.bind.grouping_bounds import apply_grouping_bounds
from planner.catalog.catalog import Table
from planner.lower.unit_statistics import LOW_SIDES, BoundKind
from proxy.release.bounds import FoundBound


def find_declared_bound(one: FoundBound, table: Table) -> Decimal | None:
    """Return the policy's declared bound that corresponds to a found bound, or None if it declares none."""
    if one.column is not None and not one.keys:
        ends = table.get_column(one.column).bounds
    else:
        bounded = apply_grouping_bounds(table, [table.get_column(name) for name in one.keys])
        if one.kind is BoundKind.GROUPS:
            return Decimal(bounded.groups_per_unit)
        if one.column is None:
            rows = bounded.rows_per_unit if bounded.row_cap is None else bounded.row_cap.rows
            return None if rows is None else Decimal(rows)
        ends = bounded.get_column(one.column).per_unit
    if ends is None:
        return None
    return ends[0] if one.kind in LOW_SIDES else ends[1]


def is_wider_than_declared(one: FoundBound, table: Table) -> bool:
    """Return True if a found bound is wider than the declared one."""
    declared = find_declared_bound(one, table)
    if declared is None:
        return False
    return one.bound < declared if one.kind in LOW_SIDES else one.bound > declared
