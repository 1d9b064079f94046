"""What a key has already lost, families that overlap it included.

Guarantee: for every key k of a question, the returned bound is at least the summed loss of every cell inside k, where
a cell is any combination of key values that one record can have. It is exact while no step of the elimination needs a
grid of more than `exact_grid` cells.

References: MIDE theorem 5.2 (composition over overlapping predicates); docs/proofs/accounting.md.
"""

from collections.abc import Mapping
from itertools import islice

import numpy as np

from accountant.elimination import EXACT_GRID, Factor, Places, add_to, without
from accountant.model import Cells, NanoArray
from accountant.sums import Label, Partition, Sums


class Elsewhere:
    """What records may have lost in data versions other than the one asked about, kept from check to check.

    Where every column may have moved, the versions are independent: whatever key a record is asked about now, it may
    have been in the one that lost most then. So that is worked out once, until somebody is charged there again.
    """

    __slots__ = ("_members", "_most", "_seen", "_stamps")

    def __init__(self) -> None:
        self._seen = 0
        self._members: dict[str, dict[Partition, None]] = {}
        self._stamps: dict[str, int] = {}
        self._most: dict[str, int] = {}

    def besides(self, sums: Mapping[Partition, Sums], version: str) -> tuple[dict[Partition, Sums], int]:
        """The partitions that a question on `version` needs, and the most that any record lost in all others.

        `sums` are those of one table, the same ones each time with what was added since.
        """
        for partition in islice(sums, self._seen, None):
            self._members.setdefault(version_of(partition), {})[partition] = None
        self._seen = len(sums)
        here: dict[Partition, Sums] = {}
        total = 0
        for other, members in self._members.items():
            if other in (version, "") or not all(label.version for member in members for label in member):
                here.update((member, sums[member]) for member in members)
                continue
            stamp = sum(sums[member].revision for member in members)
            if self._stamps.get(other) != stamp:
                factors, domains = _factors({member: sums[member] for member in members}, {})
                self._most[other] = sum(
                    int(factor.array) for factor in without(domains, factors, domains, exact_grid=EXACT_GRID)
                )
                self._stamps[other] = stamp
            total += self._most[other]
        return here, total


def version_of(partition: Partition) -> str:
    """The data version that the partition's labels are told apart by, "" when none of them moves."""
    return max((label.version for label in partition), default="")


def spent_on(
    sums: Mapping[Partition, Sums],
    partition: Partition,
    cells: Cells,
    *,
    exact_grid: int = EXACT_GRID,
    elsewhere: Elsewhere | None = None,
) -> NanoArray:
    """An upper bound on the loss of every cell inside each key, shape `cells.shape`, in 1e-9 epsilon.

    `sums` are all partitions of one table; `partition` the question's own labels, in the order of the cells' columns;
    `exact_grid` the largest grid, in cells, that one step of the elimination may build; `elsewhere` is what was kept of
    earlier checks of the same sums.
    """
    asked = {label: values for label, (_, values) in zip(partition, cells.columns, strict=True)}
    here, total_elsewhere = (sums, 0) if elsewhere is None else elsewhere.besides(sums, version_of(partition))
    factors, domains = _factors(here, asked)
    total = np.full(cells.shape, total_elsewhere, dtype=np.int64)
    for factor in without(set(domains).difference(asked), factors, domains, exact_grid=exact_grid):
        add_to(total, factor, [domains[label] for label in partition], order=partition)
    return total


def _factors(
    sums: Mapping[Partition, Sums], asked: Mapping[Label, tuple[str, ...]]
) -> tuple[list[Factor], dict[Label, Places]]:
    """The sums where the question's keys meet them, and all places of every label."""
    numbers: dict[Label, dict[str, int]] = {}
    wholes = {label: (values, np.arange(len(values))) for label, values in asked.items()}

    def placed(label: Label, values: tuple[str, ...]) -> tuple[tuple[str, ...], Places]:
        """The values of one axis that matter, in the order of their places."""
        if label in wholes and wholes[label][0] == values:
            return wholes[label]
        if label not in numbers:
            numbers[label] = {value: place for place, value in enumerate(asked.get(label, ()))}
        known = numbers[label]
        if label not in asked:
            for value in values:
                known.setdefault(value, len(known))
        found = sorted((place, value) for value in values if (place := known.get(value, -1)) >= 0)
        kept = tuple(value for _, value in found), np.fromiter((place for place, _ in found), dtype=np.intp)
        if label not in asked and kept[0] == values:
            wholes[label] = kept
        return kept

    factors = []
    for member, summed in sums.items():
        axes = [placed(label, values) for label, values in zip(member, summed.axes, strict=True)]
        if all(values for values, _ in axes):
            places = {label: place for label, (_, place) in zip(member, axes, strict=True)}
            factors.append(Factor(places, summed.on([values for values, _ in axes])))
    domains = {label: wholes[label][1] for label in asked}
    for label, known in numbers.items():
        if label not in asked:
            at = wholes[label][1]
            domains[label] = at if len(at) == len(known) else np.arange(len(known))
    return factors, domains
