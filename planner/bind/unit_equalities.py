"""The join of private tables of one FROM: along keys, or on all columns of a privacy unit that they share."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.bind.bind_refusals import (
    refuse_capped_join,
    refuse_different_units,
    refuse_join_without_unit,
    refuse_private_left_join,
    refuse_self_join,
    refuse_using_beside_unit,
)
from planner.bind.from_clause import Equality, FromClause, Relation
from planner.bind.other_tables import describe_step
from planner.bind.path_join import join_along_path
from planner.bind.unit_join import have_same_units, join_on_unit
from planner.catalog.catalog import Table
from planner.parser.lexer import spell_name
from planner.scope.name_resolution import Scope, UnitTable


@dataclass(frozen=True, slots=True)
class _Chain:
    """Tables joined along a path: each but the last finds its unit in the next one."""

    relations: tuple[Relation, ...]
    tables: tuple[Table, ...]

    def append(self, other: "_Chain") -> "_Chain":
        return _Chain((*self.relations, *other.relations), (*self.tables, *other.tables))


def join_private_tables(clause: FromClause) -> Scope:
    """Return the private table of a FROM, or the join of several private tables along keys and on their unit.

    Guarantee: tables are joined along keys only if the policy says that rows of one find their unit in the other, and
    every column of the key is equated. Different tables are joined on the unit only if the owner says that their units
    are the same, and every column of the unit is equated. All are plain equalities of two columns that hold in every
    row. Raises KH107 for everything else.
    """
    private = [(relation, relation.private) for relation in clause.relations if relation.private is not None]
    first, table = private[0]
    if len(private) == 1:
        return Scope(table=table, alias=first.alias)
    _check_tables([relation for relation, _ in private], [table for _, table in private])
    chains = _find_chains(clause, [_Chain((relation,), (table,)) for relation, table in private])
    _check_joins(clause, chains)
    followed = [join_along_path(chain.tables) for chain in chains]
    joined, names = followed[0][0], [{name: name for name in (column.name for column in followed[0][0].columns)}]
    if len(chains) > 1:
        joined = join_on_unit([one for one, _ in followed])
        named = {member.table.name: dict(member.columns) for member in joined.members}
        names = [named[one.name] for one, _ in followed]
    columns = {
        relation.alias: tuple((own, called[named]) for own, named in mapped.items())
        for chain, (_, of_tables), called in zip(chains, followed, names, strict=True)
        for relation, mapped in zip(chain.relations, of_tables, strict=True)
    }
    members = tuple(
        UnitTable(one.alias, table.name, columns[one.alias], clause.merged_columns[one.alias]) for one, table in private
    )
    return Scope(table=joined, alias=first.alias, members=members)


def _check_tables(relations: Sequence[Relation], tables: Sequence[Table]) -> None:
    """Check that the tables have the same privacy units, and that none is joined with itself.

    Raise KH107 otherwise.
    """
    for index, (relation, table) in enumerate(zip(relations, tables, strict=True)):
        if index and not have_same_units(tables[: index + 1]):
            raise refuse_different_units(relation.node)
        if table in tables[:index]:
            raise refuse_self_join(table, relation.node)


def _find_chains(clause: FromClause, chains: list[_Chain]) -> list[_Chain]:
    """Return the tables, with those that are joined along a path in one chain."""
    for reached in list(chains):
        head = reached.relations[0]
        equalities = clause.outer_equalities[head.alias] if head.is_outer else clause.inner_equalities
        for chain in chains:
            last, path = chain.relations[-1], chain.tables[-1].path
            if path is None or path.table.name != reached.tables[0].name or chain is reached:
                continue
            wanted = {
                ((last.alias, a), (head.alias, b)) for a, b in zip(path.from_columns, path.to_columns, strict=True)
            }
            met = {pair for one in equalities for pair in _list_pairs(clause, one)}
            if wanted <= met and (not head.is_outer or len(equalities) == len(wanted)):
                whole = next(one for one in chains if head in one.relations)
                chains = [one.append(whole) if one is chain else one for one in chains if one is not whole]
                break
    return chains


def _list_pairs(clause: FromClause, equality: Equality) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield the two columns of an equality, in both orders."""
    left, right = clause.find_owner(equality.left), clause.find_owner(equality.right)
    if left is not None and right is not None:
        yield left, right
        yield right, left


def _check_joins(clause: FromClause, chains: Sequence[_Chain]) -> None:
    """Check that LEFT JOIN is only used along keys, and that no table joined on the unit caps rows.

    Raise KH107 otherwise.
    """
    heads = [chain.relations[0] for chain in chains]
    outer = next((head for head in heads if head.is_outer), None)
    if outer is not None:
        raise refuse_private_left_join(outer.node, instead=_find_join_condition(outer, chains))
    if len(chains) == 1:
        return
    for chain in chains:
        if chain.tables[0].row_cap is not None:
            raise refuse_capped_join(chain.tables[0], chain.relations[0].node)
    _check_units(clause, chains)


def _find_join_condition(relation: Relation, chains: Sequence[_Chain]) -> str | None:
    """Return the condition that joins a table with another one along a key, if the policy has such a step."""
    for chain in chains:
        for other, table in zip(chain.relations, chain.tables, strict=True):
            own = relation.private
            if own is not None and other is not relation:
                for many, one, alias, reached in ((table, own, other, relation), (own, table, relation, other)):
                    if many.path is not None and many.path.table.name == one.name:
                        return describe_step(many.path, alias.alias, reached.alias)
    return None


def _check_units(clause: FromClause, chains: Sequence[_Chain]) -> None:
    units = {
        relation.alias: table.unit
        for chain in chains
        for relation, table in zip(chain.relations, chain.tables, strict=True)
    }
    places = {relation.alias: place for place, chain in enumerate(chains) for relation in chain.relations}
    first = chains[0].relations[0]
    for index in range(len(units[first.alias])):
        met = {0}
        equal = [
            pair
            for one in clause.inner_equalities
            if (pair := _find_joined_units(clause, one, units)) is not None and pair[1] == index
        ]
        joined = [{places[alias] for alias in both} for both, _ in equal]
        while grown := {place for both in joined if both & met for place in both} - met:
            met |= grown
        for place, chain in enumerate(chains):
            if place not in met:
                relation = chain.relations[0]
                wanted = " AND ".join(
                    f"{spell_name(relation.alias)}.{spell_name(own)} = {spell_name(first.alias)}.{spell_name(other)}"
                    for own, other in zip(units[relation.alias], units[first.alias], strict=True)
                )
                step = _find_join_condition(relation, [one for one in chains if one is not chain])
                raise refuse_join_without_unit(relation.alias, first.alias, relation.node, wanted=wanted, along=step)
    for one in clause.inner_equalities:
        sides = [clause.find_owner(side) for side in (one.left, one.right)]
        private = [found[0] for found in sides if found is not None and found[0] in units]
        apart = len({places[alias] for alias in private}) == 2
        if one.is_using and apart and _find_joined_units(clause, one, units) is None:
            nodes = {relation.alias: relation.node for chain in chains for relation in chain.relations}
            raise refuse_using_beside_unit(nodes[private[1]])


def _find_joined_units(
    clause: FromClause, equality: Equality, units: Mapping[str, tuple[str, ...]]
) -> tuple[set[str], int] | None:
    """Return the two private tables whose unit's columns at one index an equality joins. Return None for others."""
    left, right = clause.find_owner(equality.left), clause.find_owner(equality.right)
    if left is None or right is None or left[0] == right[0] or left[0] not in units or right[0] not in units:
        return None
    if left[1] not in units[left[0]] or right[1] not in units[right[0]]:
        return None
    index = units[left[0]].index(left[1])
    return ({left[0], right[0]}, index) if units[right[0]].index(right[1]) == index else None
