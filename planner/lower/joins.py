"""Tables joined in SQL: a relation with the columns of several private tables, or with public values beside a row.

Guarantee: a joined row of several tables is made of rows of one privacy unit, one of each table, so that every row
belongs to the unit that its unit columns name. Rows without a unit find nothing. Which columns of a unit are equal is
decided as bounding reads them: text byte by byte. Looked-up columns come from pinned values that stand in the
statement: a row finds one at most, so that this join neither adds nor drops rows, whatever the data.

References: docs/decisions/0007-joins.md; docs/decisions/0009-unit-joins.md.
"""

from dataclasses import replace

from planner.catalog.model import Column, Lookup, Member, SqlType, Table
from planner.lower.dialects.model import Dialect
from planner.lower.row import RowSql
from planner.values.sql_literals import constant, identifier, type_name


def join_members(table: Table, *, dialect: Dialect) -> Table:
    """The table with its members' join as its relation; any other table as it is."""
    if not table.members:
        return table
    stored = {column.name for column in table.columns if column.derivation is None}
    shown = [
        f"m{i}.{identifier(named)}"
        for i, member in enumerate(table.members)
        for _, named in member.columns
        if named in stored and (i == 0 or named not in table.unit)
    ]
    first, *others = [_member(member, dialect) for member in table.members]
    joined = [f"FROM {first} AS m0"]
    for i, other in enumerate(others, start=1):
        equal = " AND ".join(f"m0.keyhole_u{j} = m{i}.keyhole_u{j}" for j in range(len(table.unit)))
        joined.append(f"JOIN {other} AS m{i} ON {equal}")
    return replace(table, relation=f"(SELECT {', '.join(shown)} {' '.join(joined)}) AS together", members=())


def _member(member: Member, dialect: Dialect) -> str:
    row = RowSql(table=member.table, dialect=dialect)
    names = dict(member.columns)
    columns = [
        f"{identifier(column.name)} AS {identifier(names[column.name])}"
        for column in member.table.columns
        if column.derivation is None
    ]
    units = [f"{row.column(name)} AS keyhole_u{j}" for j, name in enumerate(member.table.unit)]
    return f"(SELECT {', '.join([*columns, *units])} FROM {member.table.relation})"


def join_lookups(table: Table, *, dialect: Dialect) -> Table:
    """The table with its looked-up columns stored: its relation is the private one with the pinned values beside it."""
    looked_up = [column for column in table.columns if isinstance(column.derivation, Lookup)]
    if not looked_up:
        return table
    row = RowSql(table=table, dialect=dialect)
    stored = [identifier(column.name) for column in table.columns if column.derivation is None]
    found = [f"keyhole_v{i} AS {identifier(column.name)}" for i, column in enumerate(looked_up)]
    joins = [_pinned_values(row, column, i) for i, column in enumerate(looked_up)]
    relation = f"(SELECT {', '.join([*stored, *found])} FROM {table.relation} {' '.join(joins)}) AS joined"
    columns = tuple(
        replace(column, derivation=None, determined=table.determines(column))
        if isinstance(column.derivation, Lookup)
        else column
        for column in table.columns
    )
    return replace(table, relation=relation, columns=columns)


def _pinned_values(row: RowSql, column: Column, number: int) -> str:
    assert isinstance(column.derivation, Lookup)
    base = row.table.column(column.derivation.column)
    pairs = {known: value for known, value in column.derivation.pairs if value is not None}
    key, value = f"keyhole_k{number}", f"keyhole_v{number}"
    types = _type(base), _type(column)
    listed = ", ".join(
        f"({constant(known, column=base)}, {constant(found, column=column)})" for known, found in pairs.items()
    )
    rows = f"(VALUES {listed}) AS given(k, v)" if pairs else "(SELECT NULL AS k, NULL AS v WHERE FALSE) AS given"
    pinned = f"(SELECT CAST(k AS {types[0]}) AS {key}, CAST(v AS {types[1]}) AS {value} FROM {rows}) AS pinned{number}"
    return f"LEFT JOIN {pinned} ON {row.column(base.name)} = {key}"


def _type(column: Column) -> str:
    """A type that holds every pinned value, whatever the private column's width."""
    return "bigint" if column.sql_type is SqlType.INTEGER else type_name(column)
