"""Private tables of one FROM: whether they are joined on the whole of a privacy unit that they share."""

from collections.abc import Mapping, Sequence

from planner.bind.from_clause import Equality, FromClause, Relation
from planner.bind.refusals import (
    different_units,
    joined_with_itself,
    joins_capped,
    not_joined_on_unit,
    using_beside_unit,
)
from planner.bind.unit_join import joined_on_unit, same_units
from planner.catalog.model import Table
from planner.parser.lexer import readable
from planner.scope.names import Scope, UnitTable


def private_tables(clause: FromClause) -> Scope:
    """The private table of a FROM, or the join of several on their unit.

    Guarantee: joined are different tables of which the owner says that their units are the same, every column of the
    unit equated by a plain equality of two columns that holds in every row. Raises KH107 for everything else.
    """
    private = [(relation, relation.private) for relation in clause.relations if relation.private is not None]
    first, table = private[0]
    if len(private) == 1:
        return Scope(table=table, alias=first.alias)
    relations, tables = [relation for relation, _ in private], [table for _, table in private]
    _check_tables(relations, tables)
    _check_units(clause, relations, tables)
    joined = joined_on_unit(tables)
    named = {member.table.name: member.columns for member in joined.members}
    members = tuple(
        UnitTable(relation.alias, one.name, named[one.name], clause.merged[relation.alias]) for relation, one in private
    )
    return Scope(table=joined, alias=first.alias, members=members)


def _check_tables(relations: Sequence[Relation], tables: Sequence[Table]) -> None:
    """Whether the tables are different ones of one group, with every column of the unit equated. Raises KH107."""
    for index, (relation, table) in enumerate(zip(relations, tables, strict=True)):
        if index and not same_units(tables[: index + 1]):
            raise different_units(relation.node)
        if table in tables[:index]:
            raise joined_with_itself(table, relation.node)
        if table.row_cap is not None or (index == 1 and tables[0].row_cap is not None):
            capped = table if table.row_cap is not None else tables[0]
            raise joins_capped(capped, relation.node)


def _check_units(clause: FromClause, relations: Sequence[Relation], tables: Sequence[Table]) -> None:
    units = {relation.alias: table.unit for relation, table in zip(relations, tables, strict=True)}
    first = relations[0]
    for index in range(len(tables[0].unit)):
        met = {first.alias}
        equal = [pair for one in clause.inner if (pair := _units(clause, one, units)) is not None and pair[1] == index]
        while grown := {alias for both, _ in equal if both & met for alias in both} - met:
            met |= grown
        for relation in relations:
            if relation.alias not in met:
                wanted = " AND ".join(
                    f"{readable(relation.alias)}.{readable(own)} = {readable(first.alias)}.{readable(other)}"
                    for own, other in zip(units[relation.alias], units[first.alias], strict=True)
                )
                raise not_joined_on_unit(relation.alias, first.alias, relation.node, wanted=wanted)
    for one in clause.inner:
        sides = [clause.owner(side) for side in (one.left, one.right)]
        private = [found[0] for found in sides if found is not None and found[0] in units]
        if one.using and len(private) == 2 and _units(clause, one, units) is None:
            raise using_beside_unit(next(relation.node for relation in relations if relation.alias == private[1]))


def _units(clause: FromClause, equality: Equality, units: Mapping[str, tuple[str, ...]]) -> tuple[set[str], int] | None:
    """The two private tables that an equality joins by the unit's column of an index; None for any other."""
    left, right = clause.owner(equality.left), clause.owner(equality.right)
    if left is None or right is None or left[0] == right[0] or left[0] not in units or right[0] not in units:
        return None
    if left[1] not in units[left[0]] or right[1] not in units[right[0]]:
        return None
    index = units[left[0]].index(left[1])
    return ({left[0], right[0]}, index) if units[right[0]].index(right[1]) == index else None
