"""Private tables joined along the keys by which rows find their privacy unit: the first one's rows, with more columns.

    FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey

The policy has the steps. Every row of the first table that has a privacy unit meets one row of each other table, which
the lookup of its unit chooses, so that INNER and LEFT JOIN are the same. The rows are the first table's, and no unit
has more of them than it had. What a unit may contribute is bounded as in the first table:

- `groups_per_unit`: the product of the tables' own, of those tables whose columns are keys;
- `rows_per_unit`, and `per_unit` of the first table's measures: its own;
- `per_unit` of another table's measure: that many rows, each within the bounds of the measure.

Proof: docs/proofs/unit_paths.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TypeAlias

from planner.bind.grouping_bounds import (
    apply_grouping_bounds,
    count_computed_groups,
    list_computed_keys,
    split_combined_keys,
)
from planner.catalog.catalog import Column, Derivation, FixedKey, Lookup, Table

Names: TypeAlias = Mapping[str, str]
"""A table's columns, each with its name in the joined table."""


def join_along_path(tables: Sequence[Table]) -> tuple[Table, tuple[Names, ...]]:
    """Return the first table with the columns of the others, and the new names of each table's columns.

    Parameters:
        tables: each but the last finds its unit in the next one, by a path of the policy.
    """
    first, *others = tables
    if not others:
        return first, ({column.name: column.name for column in first.columns},)
    assert first.path is not None
    reached, inner = join_along_path(others)
    units = dict(zip(reached.unit, first.unit, strict=True))
    taken = {column.name for column in first.columns}
    names: dict[str, str] = {}
    for other, columns in zip(others, inner, strict=True):
        for own, named in columns.items():
            if named not in units and named not in names:
                names[named] = f"{other.name}.{own}" if own in taken else own
                taken.add(names[named])
    brought = [column for column in reached.columns if column.name in names]
    called = {**names, **units}
    joined = replace(
        first,
        columns=(*first.columns, *(_join_column(column, called, rows=first.rows_per_unit) for column in brought)),
        path=replace(first.path, table=reached, added_columns=tuple((one.name, names[one.name]) for one in brought)),
    )
    own_names = {column.name: column.name for column in first.columns}
    return joined, (own_names, *({own: called[named] for own, named in columns.items()} for columns in inner))


def apply_path_bounds(table: Table, keys: Sequence[Column], fixed: Sequence[FixedKey] = ()) -> Table:
    """Return a table joined along its path with the bounds for a question by these keys, and without groupings.

    Parameters:
        fixed: other keys that WHERE fixes to these values. Only rows with them are bounded.
    """
    assert table.path is not None
    there = {named: own for own, named in table.path.added_columns}
    keys = split_combined_keys(table, keys)
    read = [find_stored_key(table, key) for key in keys if not table.determines(key)]
    own = [key for key in read if key.name not in there and not key.computed]
    first = replace(table, columns=tuple(column for column in table.columns if column.name not in there))
    if own:
        first = apply_grouping_bounds(first, own, [key for key in fixed if key.name not in there])
    groups = first.groups_per_unit if own else 1
    reached = [table.path.table.get_column(there[key.name]) for key in read if key.name in there]
    if reached:
        bound = apply_path_bounds if table.path.table.is_joined_along_path else apply_grouping_bounds
        groups *= bound(table.path.table, reached).groups_per_unit
    if made := list_computed_keys(table, keys):
        groups *= count_computed_groups(made, first.rows_per_unit if first.row_cap is None else first.row_cap.rows)
    per_unit = {column.name: column.per_unit for column in first.columns}
    per_unit |= {name: _bound_total(table.get_column(name), first.rows_per_unit) for name in there}
    return replace(
        table,
        columns=tuple(replace(column, per_unit=per_unit[column.name]) for column in table.columns),
        groups_per_unit=groups,
        rows_per_unit=first.rows_per_unit,
        row_cap=first.row_cap,
        groupings=(),
    )


def list_declared_tables(table: Table) -> Iterator[Table]:
    """Yield the joined tables, each with the groupings that the owner declares of its columns."""
    for first in [member.table for member in table.members] or [table]:
        yield first
        if first.path is not None and first.path.added_columns:
            yield from list_declared_tables(first.path.table)


def find_stored_key(table: Table, column: Column) -> Column:
    """Return the stored column by whose value a looked-up column is found. Return any other column unchanged."""
    if isinstance(column.derivation, Lookup):
        return find_stored_key(table, table.get_column(column.derivation.column))
    return column


def carry_column(column: Column, named: Names, *, repeated: int | None) -> Column:
    """Return a column of a table as a column of a join, under its new name.

    Parameters:
        repeated: how often the join repeats each row, or None if that is unknown.
    """
    derivation = column.derivation
    if isinstance(derivation, Derivation):
        derivation = replace(derivation, column=named[derivation.column])
    per_unit = None
    if column.per_unit is not None and repeated is not None:
        per_unit = (column.per_unit[0] * Decimal(repeated), column.per_unit[1] * Decimal(repeated))
    renamed = named[column.name] != column.name or derivation != column.derivation
    ledger = column.ledger or (column.label if renamed else "")
    return replace(column, name=named[column.name], derivation=derivation, per_unit=per_unit, ledger=ledger)


def _join_column(column: Column, named: Names, *, rows: int | None) -> Column:
    """Return a column of the path's other table as a column of the join.

    The join repeats a row of the other table for each row that leads to it.
    """
    carried = carry_column(column, named, repeated=None)
    return replace(carried, per_unit=_bound_total(column, rows), stored=None, bands=())


def _bound_total(column: Column, rows: int | None) -> tuple[Decimal, Decimal] | None:
    """Return the range of a unit's total over a number of rows, each with a value within the measure's bounds."""
    if column.bounds is None or rows is None:
        return None
    low, high = column.bounds
    return min(Decimal(0), low * rows), max(Decimal(0), high * rows)
