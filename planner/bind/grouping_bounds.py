"""Contribution bounds of one unit in the groups of a question, from the owner's declarations for sets of keys.

    max_groups_per_unit = 4                       # the default
    groupings = { week = { max_groups = 53 }, "store, week" = { max_groups = 60 } }

What is declared for some keys bounds others, since of two sets of keys one may determine the other:

- groups: a unit is in no more groups of coarser keys than of finer ones, and in no more of several keys together than
  the product of those of each. The least such product holds. Of computed keys see `computed_groupings.py`;
- rows and totals of one group: a unit has no more of them in a group of finer keys than in one of coarser keys, and in
  one of coarser keys no more than as many times that of the finer ones as it is in their groups. Totals of values of
  both signs are the exception: parts of a small total may be large. If WHERE leaves k values of a key, a group's rows
  lie in k groups by that key as well (`planner/bind/fixed_keys.py`).

Keys of which this says nothing have the table's own bounds, or what is declared for coarser keys (rows and totals: for
finer ones) where that is more.

Guarantee: whatever the bounds are, they are kept by the scan, on any data; they are a function of the policy and the
statement alone. So none of them need be true for the loss to be what is charged.

References: docs/proofs/joint_loss.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from planner.bind.computed_groupings import find_expression_bound, is_finer, keep_key_groupings
from planner.catalog.catalog import (
    Column,
    Computed,
    Derivation,
    FixedKey,
    Grouping,
    Lookup,
    MergedKeys,
    Product,
    RowCap,
    Table,
    ValueGroups,
)
from planner.catalog.derived_columns import is_derivable
from planner.scope.functional_dependencies import map_key_values


def apply_grouping_bounds(table: Table, keys: Sequence[Column], fixed: Sequence[FixedKey] = ()) -> Table:
    """Return the table with one unit's contribution bounds for groups by these keys, and without groupings.

    Parameters:
        fixed: other keys that WHERE fixes to these values. Only rows with them are bounded.
    """
    asked, keys, whole = keys, split_combined_keys(table, keys), table
    made = list_computed_keys(table, keys)
    table = keep_key_groupings(table)
    if not whole.groupings and not made:
        return table
    stated = [key for key in keys if not key.computed]
    declared, cap, said = _DeclaredGroupings.from_table(table, keys, fixed), table.row_cap, ""
    groups = (
        declared.count_groups(table.groups_per_unit)
        if not made
        else _DeclaredGroupings.from_table(table, stated, fixed).count_groups(table.groups_per_unit)
    )
    if made:
        most = table.rows_per_unit if cap is None else cap.rows
        open_ = any(not table.determines(key) for key in stated)
        rows = None if most is None else _DeclaredGroupings.from_table(table, stated, fixed).count_rows(most)
        reach = prod(len(key.domain or ()) for key in asked if not table.determines(key))
        stated_groups = groups if open_ else 1
        groups = min(stated_groups * count_computed_groups(made, rows), reach)
        better = find_expression_bound(whole, keys, made, stated_groups, determines)
        if better is not None and better[0] < groups:
            groups, said = better
    return replace(
        table,
        columns=tuple(declared.bound_totals(column) for column in table.columns),
        groups_per_unit=groups,
        rows_per_unit=None if table.rows_per_unit is None else declared.count_rows(table.rows_per_unit),
        row_cap=None if cap is None else RowCap(rows=declared.count_rows(cap.rows), unique=cap.unique),
        groupings=(),
        groups_by=said,
    )


def split_combined_keys(table: Table, keys: Sequence[Column]) -> list[Column]:
    """Return the keys, with the parts of each combined key in its place.

    Groups by the parts are as fine as groups by the combined key, or finer.
    """
    found: dict[str, Column] = {}
    for key in keys:
        several = key.derivation.columns if isinstance(key.derivation, MergedKeys) else ()
        found |= {one.name: one for one in ([table.get_column(name) for name in several] or [key])}
    return list(found.values())


def list_computed_keys(table: Table, keys: Sequence[Column]) -> list[Column]:
    """Return the keys that a question computes and that neither the unit nor its other keys determine."""
    found: list[Column] = []
    known = [key for key in keys if not key.computed]
    known += [table.get_column(name) for name in table.unit]
    for key in sorted((key for key in keys if key.computed), key=lambda key: -len(key.domain or ())):
        if not table.determines(key) and not any(determines(one, key, table) for one in (*known, *found)):
            found.append(key)
    return found


def count_computed_groups(made: Sequence[Column], rows: int | None) -> int:
    """Return the most groups of the computed keys in which one unit can count, within one group of the other keys."""
    groups = prod(len(key.domain or ()) for key in made)
    return groups if rows is None else min(groups, rows)


def determines(base: Column, column: Column, table: Table) -> bool:
    """Return True if rows with equal `base` have equal `column`, because of the calendar or of pinned tables."""
    if column.name == base.name:
        return True
    match column.derivation:
        case Lookup(source=source, has_classes=True) if isinstance(base.derivation, Lookup):
            return base.derivation.has_classes and base.derivation.source == source
        case Lookup(column=first):
            stored = next((one for one in table.columns if one.name == first), None)
            through = stored is not None and determines(base, stored, table)
            return through or map_key_values(column, base, ()) is not None
        case Derivation() as derived:
            return derived == base.derivation or is_derivable(derived, base)
        case ValueGroups(column=first) as parts:
            inside = isinstance(base.derivation, ValueGroups) and is_finer(base.derivation, parts)
            return inside or determines(base, table.get_column(first), table)
        case MergedKeys(columns=several):
            return all(determines(base, table.get_column(one), table) for one in several)
        case Computed(term):
            return all(determines(base, table.get_column(one), table) for one in term.columns)
        case Product() | None:
            return False


@dataclass(frozen=True, slots=True)
class _DeclaredGroupings:
    """The groupings of a table, compared with a question's open keys.

    A unit may have several values of an open key. `covered_places` are the places of the open keys that each grouping
    determines. `are_coarser` says of each grouping whether the open keys determine it. `part_counts` is the number of
    its groups among which the rows of one group lie, since fixed keys have few values. It is None if they do not tell.
    `are_exact` says that these groups hold no other rows.
    """

    groupings: tuple[Grouping, ...]
    covered_places: tuple[frozenset[int], ...]
    are_coarser: tuple[bool, ...]
    part_counts: tuple[int | None, ...]
    are_exact: tuple[bool, ...]
    open_keys: int

    @staticmethod
    def from_table(table: Table, keys: Sequence[Column], fixed: Sequence[FixedKey]) -> "_DeclaredGroupings":
        """Return the declarations that concern these keys."""
        open_ = [key for key in keys if not table.determines(key)]
        named = [[table.get_column(name) for name in grouping.keys] for grouping in table.groupings]
        told = [_find_determining_keys(table, columns, open_, fixed) for columns in named]
        return _DeclaredGroupings(
            groupings=table.groupings,
            covered_places=tuple(
                frozenset(i for i, key in enumerate(open_) if any(determines(base, key, table) for base in columns))
                for columns in named
            ),
            are_coarser=tuple(
                all(table.determines(one) or any(determines(key, one, table) for key in open_) for one in columns)
                for columns in named
            ),
            part_counts=tuple(None if one is None else prod(len(key.values) for key in one) for one in told),
            are_exact=tuple(
                all(any(determines(base, table.get_column(key.name), table) for base in columns) for key in one or ())
                for columns, one in zip(named, told, strict=True)
            ),
            open_keys=len(open_),
        )

    def count_groups(self, default: int) -> int:
        """Return the number of groups of a unit: the least product that covers all open keys, else the default."""
        if not self.open_keys:
            return default
        least = {frozenset[int](): 1}
        for grouping, covered in zip(self.groupings, self.covered_places, strict=True):
            if grouping.groups is not None and covered:
                for others, product in list(least.items()):
                    both = others | covered
                    least[both] = min(product * grouping.groups, least.get(both, product * grouping.groups))
        found = least.get(frozenset(range(self.open_keys)))
        return max(default, *self._list_coarser_groups(), 1) if found is None else found

    def _list_coarser_groups(self) -> Iterator[int]:
        for grouping, coarser in zip(self.groupings, self.are_coarser, strict=True):
            if coarser and grouping.groups is not None:
                yield grouping.groups

    def count_rows(self, default: int) -> int:
        """Return the number of rows of a unit that count in one group."""
        found = [(grouping.rows, times) for grouping, times in self._list_bounds() if grouping.rows is not None]
        known = [rows * times for rows, times in found if times is not None]
        return min(known) if known else max(default, *(rows for rows, _ in found), 1)

    def bound_totals(self, column: Column) -> Column:
        """Return a measure with the range of a unit's total in one group."""
        if column.per_unit is None or column.bounds is None:
            return column
        mixed = column.bounds[0] < 0 < column.bounds[1]
        found = [
            (range_, times)
            for grouping, times in self._list_bounds(mixed=mixed)
            if (range_ := dict(grouping.per_unit).get(column.name)) is not None
        ]
        known = [(low * times, high * times) for (low, high), times in found if times is not None]
        if known:
            return replace(column, per_unit=(max(low for low, _ in known), min(high for _, high in known)))
        lows, highs = zip(column.per_unit, *(range_ for range_, _ in found), strict=True)
        return replace(column, per_unit=(min(lows), max(highs)))

    def _list_bounds(self, *, mixed: bool = False) -> Iterator[tuple[Grouping, int | None]]:
        """Yield the groupings that bound rows or totals of one group, each with how often its bound may stand there.

        That is None for finer keys if nobody says how many of their groups a unit is in.

        Parameters:
            mixed: totals of values of both signs, which coarser keys do not bound.
        """
        for grouping, covered, coarser, parts, exact in zip(
            self.groupings, self.covered_places, self.are_coarser, self.part_counts, self.are_exact, strict=True
        ):
            finer = len(covered) == self.open_keys
            if coarser and (finer or not mixed):
                yield grouping, 1
            elif parts is not None and ((finer and exact) or not mixed):
                yield grouping, parts if grouping.groups is None or not finer else min(parts, grouping.groups)
            elif finer:
                yield grouping, grouping.groups


def _find_determining_keys(
    table: Table, columns: Sequence[Column], keys: Sequence[Column], fixed: Sequence[FixedKey]
) -> tuple[FixedKey, ...] | None:
    """Return the fixed keys that determine columns together with a question's keys. Return None if even all do not."""
    needed: dict[str, FixedKey] = {}
    for column in columns:
        if table.determines(column) or any(determines(key, column, table) for key in keys):
            continue
        found = [one for one in fixed if determines(table.get_column(one.name), column, table)]
        if not found:
            return None
        least = min(found, key=lambda one: len(one.values))
        needed[least.name] = least
    return tuple(needed.values())
