"""What a key has already lost, families that overlap it included.

Guarantee: for every key k of a question, the returned bound is at least the summed loss of every cell inside k, where
a cell is any combination of key values that one record can have. It is exact when the grid of each connected component
is small (`exact_grid` cells), and otherwise the sum over families of the largest sum overlapping k.

References: MIDE theorem 5.2 (composition over overlapping predicates); docs/proofs/accounting.md.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from accountant.model import Cells, NanoArray
from accountant.sums import Label, Partition, Sums

EXACT_GRID = 1 << 17


def spent_on(
    sums: Mapping[Partition, Sums], partition: Partition, cells: Cells, *, exact_grid: int = EXACT_GRID
) -> NanoArray:
    """An upper bound on the loss of every cell inside each key, shape `cells.shape`, in 1e-9 epsilon.

    `sums` are all partitions of one table; `partition` the question's own labels, in the order of the cells' columns;
    `exact_grid` the largest grid on which overlaps are worked out exactly.
    """
    total = np.zeros(cells.shape, dtype=np.int64)
    asked = {label: values for label, (_, values) in zip(partition, cells.columns, strict=True)}
    for component in _components(tuple(sums), partition):
        groups = [component]
        if len(component) > 1 and _grid_size(component, sums, asked) > exact_grid:
            groups = [[member] for member in component]
        for group in groups:
            total += _largest(group, sums, partition, asked)
    return total


def _components(partitions: Sequence[Partition], partition: Partition) -> list[list[Partition]]:
    """Partitions linked through axes that the question leaves open; a record fixes those axes for all of them."""
    components: list[tuple[set[Label], list[Partition]]] = []
    for member in partitions:
        free = set(member).difference(partition)
        linked = [entry for entry in components if entry[0] & free]
        components = [entry for entry in components if not entry[0] & free]
        members = [m for _, entry_members in linked for m in entry_members]
        components.append((free.union(*(entry_free for entry_free, _ in linked)), [*members, member]))
    return [members for _, members in components]


def _grid_axes(
    group: Sequence[Partition], sums: Mapping[Partition, Sums], asked: Mapping[Label, tuple[str, ...]]
) -> dict[Label, tuple[str, ...]]:
    """The values of each axis of the group's grid: the question's where it names them, else all that were charged."""
    axes = {label: values for label, values in asked.items() if any(label in member for member in group)}
    for member in group:
        for label, values in zip(member, sums[member].axes, strict=True):
            if label in asked or values == axes.get(label):
                continue
            axes[label] = tuple(dict.fromkeys((*axes.get(label, ()), *values)))
    return axes


def _grid_size(
    group: Sequence[Partition], sums: Mapping[Partition, Sums], asked: Mapping[Label, tuple[str, ...]]
) -> int:
    return prod(len(values) for values in _grid_axes(group, sums, asked).values())


def _largest(
    group: Sequence[Partition],
    sums: Mapping[Partition, Sums],
    partition: Partition,
    asked: Mapping[Label, tuple[str, ...]],
) -> NanoArray:
    """The largest sum over the group's open axes, with one axis (of length 1 if unused) per axis of the question."""
    axes = _grid_axes(group, sums, asked)
    order = {label: place for place, label in enumerate(axes)}
    grid = np.zeros(tuple(len(values) for values in axes.values()), dtype=np.int64)
    for member in group:
        sorted_labels = sorted(member, key=lambda label: order[label])
        part = sums[member].on([axes[label] for label in member])
        part = part.transpose([member.index(label) for label in sorted_labels])
        grid += part.reshape([len(values) if label in member else 1 for label, values in axes.items()])
    open_axes = tuple(place for label, place in order.items() if label not in asked)
    largest: NanoArray = grid.max(axis=open_axes) if open_axes else grid
    return largest.reshape([len(asked[label]) if label in axes else 1 for label in partition])
