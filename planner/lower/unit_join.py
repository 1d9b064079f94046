"""Private tables joined on their unit in SQL: a relation with the columns of all of them, read in one scan of each.

Guarantee: a joined row is made of rows of one privacy unit, one of each table, so that every row belongs to the unit
that its unit columns name. Rows without a unit find nothing. Which columns of a unit are equal is decided as bounding
reads them: text byte by byte.
"""

from dataclasses import replace

from planner.catalog.model import Member, Table
from planner.lower.row import RowSql
from planner.values.sql_literals import Dialect, identifier


def together(table: Table, *, dialect: Dialect) -> Table:
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
