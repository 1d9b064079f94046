"""The loss of a key so far, including that of overlapping families.

Guarantee: for every key k of a question, the returned bound is at least the summed loss of every cell inside k, where
a cell is any combination of key values that one record can have. It is exact while no step of the elimination needs a
grid of more than `exact_grid` cells, and the given dependencies describe all possible records.

References: MIDE theorem 5.2 (composition over overlapping predicates); docs/proofs/accounting.md.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from accountant.balances.cell_sums import CellAxis, OpenSums, Partition, Sums
from accountant.balances.dependencies import (
    ANY_OTHER,
    TableKnowledge,
    assume_independent,
    find_dependencies,
    tie_factors,
)
from accountant.balances.factors import build_factors
from accountant.balances.other_versions import OtherVersionLosses
from accountant.balances.variable_elimination import EXACT_GRID, Factor, Places, add_factor, eliminate_labels
from accountant.charges import Cells, NanoArray

# exactness against time: so many data versions are looked at in full where their tables gave a bound that is not known
# to be exact; of more this takes seconds
MOST_IN_FULL = 8


def bound_cell_losses(
    sums: Mapping[Partition, Sums],
    partition: Partition,
    cells: Cells,
    *,
    exact_grid: int = EXACT_GRID,
    rest: OtherVersionLosses | None = None,
    among: TableKnowledge = assume_independent,
) -> NanoArray:
    """Return an upper bound on the loss of every cell inside each key, shape `cells.shape`, in 1e-9 epsilon.

    `sums` are the partitions of one table that are not already added up in `rest`. `partition` has the question's own
    labels, in the order of the cells' columns. `exact_grid` is the largest grid, in cells, that one step of the
    elimination may build. `among` gives the public dependencies between the table's columns.
    """
    asked = {label: values for label, (_, values) in zip(partition, cells.columns, strict=True)}
    if rest is None:
        return _bound_losses(sums, asked, {}, among, exact_grid=exact_grid)[0]
    bound, exact = _bound_losses(sums, asked, rest.sums_by_partition, among, exact_grid=exact_grid)
    if not exact and 0 < len(rest.summed_partitions) <= MOST_IN_FULL:
        bound = np.minimum(
            bound, _bound_losses({**sums, **rest.select_sums()}, asked, {}, among, exact_grid=exact_grid)[0]
        )
    return bound + rest.largest_nano


def _bound_losses(
    sums: Mapping[Partition, Sums],
    asked: Mapping[CellAxis, tuple[str, ...]],
    tables: Mapping[Partition, OpenSums],
    among: TableKnowledge,
    *,
    exact_grid: int,
) -> tuple[NanoArray, bool]:
    """Return the bound over the asked labels, in their order, and True if it is exact."""
    dependencies = find_dependencies((*sums, *tables, tuple(asked)), among)
    any_other = ANY_OTHER if dependencies else None
    factors, domains, names = build_factors(sums, asked, tables, any_other=any_other)
    put = tie_factors(factors, domains, names, asked=asked, dependencies=dependencies, most_cells=exact_grid)
    if put is None:
        return _maximise_record_loss(factors, domains, asked, exact_grid=exact_grid)
    bound, exact = _maximise_record_loss(*put, asked, exact_grid=exact_grid)
    if not exact:  # untied factors are smaller, and may be added up where these were not
        bound = np.minimum(bound, _maximise_record_loss(factors, domains, asked, exact_grid=exact_grid)[0])
    return bound, exact


def _maximise_record_loss(
    factors: Sequence[Factor],
    domains: Mapping[CellAxis, Places],
    asked: Mapping[CellAxis, tuple[str, ...]],
    *,
    exact_grid: int,
) -> tuple[NanoArray, bool]:
    total = np.zeros([len(values) for values in asked.values()], dtype=np.int64)
    left = eliminate_labels(set(domains).difference(asked), factors, domains, exact_grid=exact_grid)
    for factor in left.factors:
        add_factor(total, factor, [domains[label] for label in asked], order=tuple(asked))
    return total, left.is_exact
