"""The losses of records in data versions other than the one asked about.

Guarantee: for every record, the total that `OtherVersions` gives for other versions is at least the largest sum over
all values that the record may have had there. It is exactly that for labels without a version.

References: docs/proofs/accounting.md, theorem 2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from accountant.balances.cell_sums import CellAxis, OpenSums, Partition, Sums, find_version
from accountant.balances.dependencies import TableKnowledge, assume_independent, find_dependencies, tie_factors
from accountant.balances.factors import build_factors
from accountant.balances.variable_elimination import EXACT_GRID, Elimination, Factor, Places, eliminate_labels

# memory against building tables anew: eight bytes a cell, so twice 8 MB; set by that, not measured
MOST_KEPT = 1 << 20


@dataclass(frozen=True, slots=True)
class OtherVersionLosses:
    """The total losses of those data versions that a check need not read one by one.

    `largest_nano` is the largest loss of any record in versions without a fixed label. For the other versions,
    `sums_by_partition` has the largest losses as sums over fixed labels. `summed_partitions` are the partitions in
    these sums. A label is fixed if it has no data version.
    """

    largest_nano: int = 0
    sums_by_partition: Mapping[Partition, OpenSums] = field(default_factory=dict)
    summed_partitions: Sequence[Sequence[Partition]] = ()
    sums: Mapping[Partition, Sums] = field(default_factory=dict)

    def select_sums(self) -> dict[Partition, Sums]:
        """Return the table's sums that `sums_by_partition` replaces, by partition."""
        return {member: self.sums[member] for members in self.summed_partitions for member in members}


class OtherVersions:
    """A cache of the losses of records in data versions other than the one asked about.

    A label with a version belongs to that version only, so each version is maximised over its own labels. The result is
    a sum over fixed labels, for any question. These results are added up once. A version is subtracted, or computed
    again, when it is asked about or charged.
    """

    __slots__ = (
        "_among",
        "_aside",
        "_cells_kept",
        "_fixed",
        "_kept",
        "_members",
        "_most",
        "_most_kept",
        "_seen",
        "_summed",
        "_tables",
    )

    def __init__(self, *, among: TableKnowledge = assume_independent, most_kept: int = MOST_KEPT) -> None:
        """Start without sums.

        `most_kept` limits the cells in the tables of all versions together, and also those of the single versions.

        `among` gives the dependencies between the table's columns.
        """
        self._among = among
        self._most_kept = most_kept
        self._seen = 0
        self._members: dict[str, list[Partition]] = {}
        # versions with labels that never move
        self._fixed: set[str] = set()
        # by version, how often it had been changed when it was found to come to one number, to be a part of the tables,
        # or to be too large for them
        self._most: dict[str, tuple[int, int]] = {}
        self._summed: dict[str, int] = {}
        self._aside: dict[str, int] = {}
        self._tables: dict[Partition, OpenSums] = {}
        # single versions' parts of the tables, the one worked out last at the end
        self._kept: dict[str, Mapping[Partition, OpenSums]] = {}
        self._cells_kept = 0

    def split_versions(
        self, sums: Mapping[Partition, Sums], changes: Mapping[str, int], version: str
    ) -> tuple[dict[Partition, Sums], OtherVersionLosses]:
        """Return the sums that a question on `version` has to read one by one, and the total of all others.

        `sums` are those of one table. Each call gets the same mapping, with any new partitions added at its end.
        `changes` maps a data version to a number (0 if missing) that grows whenever one of its sums changes. Versions
        are written as in labels (`find_version`).
        """
        for partition in islice(sums, self._seen, None):
            of = find_version(partition)
            self._members.setdefault(of, []).append(partition)
            if not all(label.version for label in partition):
                self._fixed.add(of)
        self._seen = len(sums)
        for other in [one for one, known in self._summed.items() if one == version or known != changes.get(one, 0)]:
            self._subtract(other, sums, changed=changes.get(other, 0))
        here: dict[Partition, Sums] = {}
        most, linked = 0, []
        for other, members in self._members.items():
            if other in (version, ""):
                here.update((member, sums[member]) for member in members)
            elif other not in self._fixed:
                most += self._find_largest_record_loss(other, sums, changed=changes.get(other, 0))
            elif other in self._summed or self._add_version(other, sums, changed=changes.get(other, 0)):
                linked.append(members)
            else:
                here.update((member, sums[member]) for member in members)
        return here, OtherVersionLosses(most, self._tables, linked, sums)

    def _find_largest_record_loss(self, version: str, sums: Mapping[Partition, Sums], *, changed: int) -> int:
        """Return the largest loss of a record in a version that has no fixed label."""
        known, most = self._most.get(version, (-1, 0))
        if known != changed:
            factors, domains, names = build_factors(self._select_version(version, sums), {})
            most = min(
                sum(int(one.array) for one in gone.factors)
                for gone in _eliminate_except(factors, domains, names, {}, among=self._among, exact_grid=EXACT_GRID)
            )
            self._most[version] = changed, most
        return most

    def _add_version(self, version: str, sums: Mapping[Partition, Sums], *, changed: int) -> bool:
        """Add a version's losses to the summed tables.

        Return False if the version has too many cells, or if only a bound on its losses is known.
        """
        if self._aside.get(version, -1) == changed:
            return False
        part = _sum_fixed_labels(self._select_version(version, sums), self._among)
        if part is None or self._count_cells_with_part(part) > self._most_kept:
            self._aside[version] = changed
            return False
        for labels, table in part.items():
            if labels in self._tables:
                self._tables[labels].add(table, times=1)
            else:
                self._tables[labels] = OpenSums(table.axes, table.array)
        self._summed[version], self._kept[version] = changed, part
        self._cells_kept += _count_cells(part)
        while self._cells_kept > self._most_kept:
            self._cells_kept -= _count_cells(self._kept.pop(next(iter(self._kept))))
        return True

    def _subtract(self, version: str, sums: Mapping[Partition, Sums], *, changed: int) -> None:
        """Subtract a version from the tables. If its part is no longer known, clear the tables."""
        if version not in self._summed:
            return
        known = self._summed.pop(version)
        part = self._kept.pop(version, None)
        if part is not None:
            self._cells_kept -= _count_cells(part)
        elif known == changed:
            part = _sum_fixed_labels(self._select_version(version, sums), self._among)
        if part is None:
            for begun in (self._summed, self._aside, self._tables, self._kept):
                begun.clear()
            self._cells_kept = 0
            return
        for labels, table in part.items():
            self._tables[labels].add(table, times=-1)

    def _select_version(self, version: str, sums: Mapping[Partition, Sums]) -> dict[Partition, Sums]:
        return {member: sums[member] for member in self._members[version]}

    def _count_cells_with_part(self, part: Mapping[Partition, OpenSums]) -> int:
        """Return the number of cells of the tables after adding the part."""
        return sum(
            self._tables[labels].count_cells_with(part[labels])
            if labels in self._tables and labels in part
            else (self._tables.get(labels) or part[labels]).array.size
            for labels in self._tables.keys() | part.keys()
        )


def _count_cells(part: Mapping[Partition, OpenSums]) -> int:
    return sum(table.array.size for table in part.values())


def _eliminate_except(
    factors: Sequence[Factor],
    domains: Mapping[CellAxis, Places],
    names: Mapping[CellAxis, tuple[str, ...]],
    fixed: Mapping[CellAxis, tuple[str, ...]],
    *,
    among: TableKnowledge,
    exact_grid: int,
) -> list[Elimination]:
    """Maximise the factors over all labels except the fixed ones, and return the results that were tried.

    First, labels that determine each other are tied. If that is not exact, the elimination is repeated without ties.
    """
    dependencies = find_dependencies((tuple(domains),), among)
    put = tie_factors(
        factors, domains, names, asked=(), dependencies=dependencies, most_cells=exact_grid, untied=frozenset(fixed)
    )
    found = []
    for some, places in ((factors, domains),) if put is None else (put, (factors, domains)):
        found.append(eliminate_labels(places.keys() - fixed.keys(), some, places, exact_grid=exact_grid))
        if found[-1].is_exact:
            break
    return found


def _sum_fixed_labels(sums: Mapping[Partition, Sums], among: TableKnowledge) -> dict[Partition, OpenSums] | None:
    """Return the sums of a version over its fixed labels. Return None if only a bound on them is found."""
    values: dict[CellAxis, dict[str, None]] = {}
    for member, summed in sums.items():
        for label, axis in zip(member, summed.axes, strict=True):
            if not label.version:
                values.setdefault(label, {}).update(dict.fromkeys(axis))
    known = {label: tuple(found) for label, found in values.items()}
    factors, domains, names = build_factors(sums, known)
    # the place after the last value is any other: no sum is charged there
    domains.update({label: np.arange(len(found) + 1) for label, found in known.items()})
    gone = _eliminate_except(factors, domains, names, known, among=among, exact_grid=EXACT_GRID)[-1]
    if not gone.is_exact:
        return None
    part: dict[Partition, OpenSums] = {}
    for factor in gone.factors:
        table = _make_open_sums(factor, known)
        labels = tuple(sorted(factor.places))
        if labels in part:
            part[labels].add(table, times=1)
        else:
            part[labels] = table
    return part


def _make_open_sums(factor: Factor, known: Mapping[CellAxis, tuple[str, ...]]) -> OpenSums:
    """Return a factor, with its labels sorted, as sums with a place for every other value."""
    labels = sorted(factor.places)
    array = factor.array.transpose([list(factor.places).index(label) for label in labels])
    axes = []
    for axis, label in enumerate(labels):
        values, places = known[label], factor.places[label]
        inside = places[: np.searchsorted(places, len(values))]
        axes.append(tuple(values[place] for place in inside))
        if len(inside) == len(places):
            array = np.pad(array, [(0, int(one == axis)) for one in range(array.ndim)])
    return OpenSums(axes, array)
