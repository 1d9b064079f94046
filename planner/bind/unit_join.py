"""Private tables with the same privacy units, joined on the unit: one table whose rows belong to one unit each.

    FROM stays s JOIN patients p ON p.patient_id = s.patient_id

The owner promises (`same_unit_as`) that the units of both are the same people. Every column of the unit must be equated
by a plain equality, so that a unit's rows meet no other unit's. Of each table the join reads a public number of rows of
one unit at most, so that the work for one unit is bounded. What a unit may contribute to the joined table is bounded
after the join, as in any table, whatever the join multiplies:

- `groups_per_unit`: the product of the tables' own, of those tables whose columns are keys;
- `rows_per_unit`: the product of the tables' own;
- `per_unit` of a measure, and `totals` of expressions: its own times the `rows_per_unit` of the others, whose rows
  repeat it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from math import prod

from planner.bind.grouping_bounds import (
    apply_grouping_bounds,
    count_computed_groups,
    list_computed_keys,
    split_combined_keys,
)
from planner.bind.path_join import apply_path_bounds, carry_column, find_stored_key
from planner.catalog.catalog import Column, FixedKey, Member, Table, Total
from planner.catalog.joined_rows import share_joined_rows
from planner.catalog.refresh import parse_refresh


def order_tables(tables: Sequence[Table]) -> tuple[Table, ...]:
    """Return tables that share their units in the order in which they are joined, the root first.

    The order in FROM does not matter.
    """
    return tuple(sorted(tables, key=lambda table: (table.name != table.ledger_root.table, table.name)))


def have_same_units(tables: Sequence[Table]) -> bool:
    """Return True if the owner promises that all these tables have the same privacy units."""
    return all(table.unit and table.ledger_root == tables[0].ledger_root for table in tables)


def join_on_unit(tables: Sequence[Table]) -> Table:
    """Join different tables with the same privacy units on all columns of the unit. None of them may cap rows."""
    found = order_tables(tables)
    names = [dict(columns) for columns in _name_columns(found)]
    first = found[0]
    units = tuple(_make_unit_column(found, names[0], i) for i in range(len(first.unit)))
    columns = [*units]
    for table, named in zip(found, names, strict=True):
        rows = [other.rows_per_unit for other in found if other is not table]
        columns += [carry_column(c, named, repeated=_multiply(rows)) for c in table.columns if c.name not in table.unit]
    counts = [table.rows_per_unit for table in found]
    live = any(parse_refresh(table.refresh).kind == "live" for table in found)
    return Table(
        name=" JOIN ".join(table.name for table in found),
        relation="",
        columns=tuple(columns),
        unit=tuple(column.name for column in units),
        groups_per_unit=prod(table.groups_per_unit for table in found),
        rows_per_unit=_multiply(counts),
        row_cap=None,
        refresh="live" if live else first.refresh,
        seed=" ".join(table.seed for table in found),
        root=first.ledger_root,
        covers_cut_units=first.covers_cut_units,
        totals=tuple(
            total
            for table, named in zip(found, names, strict=True)
            for total in _multiply_totals(table, named, [other.rows_per_unit for other in found if other is not table])
        ),
        members=tuple(
            Member(table, tuple(named.items()), rows)
            for table, named, rows in zip(
                found, names, share_joined_rows([table.joined_rows for table in found]), strict=True
            )
        ),
    )


def apply_bounds(table: Table, keys: Sequence[Column], fixed: Sequence[FixedKey] = ()) -> Table:
    """Return the table with one unit's contribution bounds for groups by these keys.

    In a join, each table has the bounds for the keys that are its columns. A unit is in the groups of the tables whose
    columns are keys.

    Parameters:
        fixed: other keys that WHERE fixes to these values. Only rows with them are bounded.
    """
    if not table.members:
        return _apply_single_bounds(table, keys, fixed)
    keys = split_combined_keys(table, keys)
    read = [find_stored_key(table, key) for key in keys if not table.determines(key)]
    bounded: list[Table] = []
    groups = 1
    for member in table.members:
        names = {named: stored for stored, named in member.columns}
        own = [member.table.get_column(names[key.name]) for key in read if key.name in names]
        there = [replace(key, name=names[key.name]) for key in fixed if key.name in names]
        bounded.append(_apply_single_bounds(member.table, own, there) if own else member.table)
        groups *= bounded[-1].groups_per_unit if own else 1
    joined = join_on_unit(bounded)
    if made := list_computed_keys(table, keys):
        groups *= count_computed_groups(made, joined.rows_per_unit)
    per_unit = {column.name: column.per_unit for column in joined.columns}
    columns = tuple(replace(column, per_unit=per_unit.get(column.name)) for column in table.columns)
    return replace(
        table, columns=columns, groups_per_unit=groups, rows_per_unit=joined.rows_per_unit, totals=joined.totals
    )


def _apply_single_bounds(table: Table, keys: Sequence[Column], fixed: Sequence[FixedKey]) -> Table:
    bound = apply_path_bounds if table.is_joined_along_path else apply_grouping_bounds
    return bound(table, keys, fixed)


def _name_columns(tables: Sequence[Table]) -> list[list[tuple[str, str]]]:
    """Return each table's columns with unique names in the joined table. The unit's columns are the first table's."""
    first = tables[0]
    own = [[column.name for column in table.columns if column.name not in table.unit] for table in tables]
    times = Counter([*first.unit, *(name for names in own for name in names)])

    def make_unique(table: Table, name: str) -> str:
        return name if times[name] == 1 else f"{table.name}.{name}"

    units = [make_unique(first, name) for name in first.unit]

    def name_column(table: Table, name: str) -> str:
        return units[table.unit.index(name)] if name in table.unit else make_unique(table, name)

    return [[(column.name, name_column(table, column.name)) for column in table.columns] for table in tables]


def _make_unit_column(tables: Sequence[Table], named: Mapping[str, str], index: int) -> Column:
    """Return the unit's column of that index.

    It is a key if the tables that declare it as one declare the same values.
    """
    same = [table.get_column(table.unit[index]) for table in tables]
    domains = {column.domain for column in same} - {None}
    first = carry_column(same[0], named, repeated=1)
    return replace(first, domain=domains.pop() if len(domains) == 1 else None)


def _multiply_totals(table: Table, named: Mapping[str, str], repeated: Sequence[int | None]) -> Iterator[Total]:
    """Yield the declared totals of a table's expressions, multiplied since the other tables repeat its rows."""
    rows = _multiply(repeated)
    if rows is None:
        return
    for total in table.totals:
        products = ((tuple(sorted(named[column] for column in columns)), times) for columns, times in total.products)
        low, high = total.per_unit
        yield Total(tuple(sorted(products)), (low * Decimal(rows), high * Decimal(rows)))


def _multiply(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return prod(known) if len(known) == len(counts) else None
