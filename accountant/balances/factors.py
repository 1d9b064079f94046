"""The conversion of sums to factors, whose places number the values of every label.

Guarantee: a factor has its sums at the asked values of asked labels, and at every value of open labels. Tables of
`OpenSums`, which hold for any value, cover all places of their labels. Proof: docs/proofs/accounting.md, theorem 2.
"""

from collections.abc import Mapping

import numpy as np

from accountant.balances.cell_sums import CellAxis, OpenSums, Partition, Sums
from accountant.balances.variable_elimination import Factor, Places


def build_factors(
    sums: Mapping[Partition, Sums],
    asked: Mapping[CellAxis, tuple[str, ...]],
    tables: Mapping[Partition, OpenSums] | None = None,
    *,
    any_other: str | None = None,
) -> tuple[list[Factor], dict[CellAxis, Places], dict[CellAxis, tuple[str, ...]]]:
    """Return the sums and tables as factors, with the places and the values of every label.

    Sums without any asked value are left out. `any_other` adds one more place of that name to the tables' open labels,
    for values that no sum has.
    """
    placing = _ValueNumbers(asked)
    factors = []
    for member, summed in sums.items():
        axes = [placing.place_values(label, values) for label, values in zip(member, summed.axes, strict=True)]
        if all(values for values, _ in axes):
            places = {label: place for label, (_, place) in zip(member, axes, strict=True)}
            factors.append(Factor(places, summed.select([values for values, _ in axes])))
    tables = tables or {}
    for labels, table in tables.items():
        for label, values in zip(labels, table.axes, strict=True):
            placing.place_values(label, values if any_other is None or label in asked else (*values, any_other))
    wholes = placing.list_all_values()
    factors += [
        Factor({label: wholes[label][1] for label in labels}, table.select([wholes[label][0] for label in labels]))
        for labels, table in tables.items()
    ]
    domains = {label: places for label, (_, places) in wholes.items()}
    return factors, domains, {label: values for label, (values, _) in wholes.items()}


class _ValueNumbers:
    """The numbers of every label's values. Asked labels have the asked values only, open ones get new ones."""

    def __init__(self, asked: Mapping[CellAxis, tuple[str, ...]]) -> None:
        self._asked = asked
        self._numbers: dict[CellAxis, dict[str, int]] = {}
        # what an axis was placed at when it had all values of its label that there were
        self._wholes = {label: (values, np.arange(len(values))) for label, values in asked.items()}

    def place_values(self, label: CellAxis, values: tuple[str, ...]) -> tuple[tuple[str, ...], Places]:
        """Return the values of one axis that have a place, in the order of their places, and these places."""
        if label in self._wholes and self._wholes[label][0] == values:
            return self._wholes[label]
        if label not in self._numbers and label not in self._asked:
            self._numbers[label] = dict(zip(values, range(len(values)), strict=True))
            self._wholes[label] = values, np.arange(len(values))
            return self._wholes[label]
        if label not in self._numbers:
            self._numbers[label] = {value: place for place, value in enumerate(self._asked[label])}
        known = self._numbers[label]
        if label not in self._asked:
            for value in values:
                known.setdefault(value, len(known))
        found = sorted((place, value) for value in values if (place := known.get(value, -1)) >= 0)
        kept = tuple(value for _, value in found), np.fromiter((place for place, _ in found), dtype=np.intp)
        if label not in self._asked and kept[0] == values:
            self._wholes[label] = kept
        return kept

    def list_all_values(self) -> dict[CellAxis, tuple[tuple[str, ...], Places]]:
        """Return all values of every label, and their places."""
        wholes = {label: self._wholes[label] for label in self._asked}
        for label, known in self._numbers.items():
            if label not in self._asked:
                kept = self._wholes[label]
                wholes[label] = kept if len(kept[0]) == len(known) else (tuple(known), np.arange(len(known)))
        return wholes
