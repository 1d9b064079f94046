"""The ledger's caps and labels for questions under a policy."""

from dataclasses import replace
from fractions import Fraction
from math import ceil

from accountant.charges import NANO
from accountant.limits import Limits
from planner.catalog.catalog import Analyst, Catalog, Column, Table


def convert_to_nano(epsilon: float) -> int:
    """Return an epsilon in units of 1e-9, rounded up, so that no loss is counted too low."""
    return ceil(Fraction(epsilon) * NANO)


def make_label(column: Column) -> str:
    """Return the name under which the ledger stores a grouping column."""
    return column.label


def read_label(label: str) -> str:
    """Return the name of the column for which `make_label` returned a label."""
    return label.partition("=")[0]


def find_limits(catalog: Catalog, analyst: Analyst) -> Limits:
    """Return the caps that apply to one analyst's questions about any table."""
    budget = catalog.budget

    return Limits(
        per_predicate_nano=int(budget.per_predicate * NANO),
        per_unit_nano=_convert_optional(budget.per_unit),
        per_query_nano=int(budget.per_query * NANO),
        analyst_per_predicate_nano=_convert_optional(analyst.per_predicate),
        analyst_per_unit_nano=_convert_optional(analyst.per_unit),
        per_table_nano=_convert_optional(budget.per_table),
        approval_above_nano=_convert_optional(budget.approval_above),
        delta=budget.delta,
        cell_delta=budget.delta_per_cell,
        separates_analysts=separates_analysts(catalog),
        own_per_table_nano=tuple(
            (caps.table, int(caps.per_table * NANO)) for caps in budget.tables if caps.per_table is not None
        ),
    )


def separates_analysts(catalog: Catalog) -> bool:
    """Return True if some analyst has a cap of their own, so that analysts are accounted for separately."""
    return any(known.per_predicate is not None or known.per_unit is not None for known in catalog.analysts)


def find_table_limits(table: Table, catalog: Catalog, analyst: Analyst) -> Limits:
    """Return the caps that apply to one analyst's question about this table.

    The approval threshold of a join is the lowest one of its tables.
    """
    above = catalog.budget.find_approval_limit(one.name for one in table.stored_tables)
    return replace(find_limits(catalog, analyst), approval_above_nano=_convert_optional(above))


def _convert_optional(epsilon: float | None) -> int | None:
    return None if epsilon is None else int(epsilon * NANO)
