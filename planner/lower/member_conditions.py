"""Expensive conditions of a join, computed once for each row of one joined table instead of once for each joined row.

    SELECT v.ward FROM visits v JOIN labs l USING (patient_id)
    GROUP BY v.ward HAVING count(*) FILTER (WHERE v.note LIKE '%flu%' AND l.value > 3) > 100

A thousand visits and a thousand labs of one person are a million joined rows, but only a thousand notes. Each note is
searched once, and its rows carry whether the word was found.

Guarantee: an expensive condition on one table is computed for at most `Member.rows` rows of a unit. A joined row costs
the same whatever it holds, because it reads the computed truths. A condition holds for the same joined rows as before,
NULL included.

References: docs/decisions/0034-rows-before-a-join.md; docs/decisions/0017-timing.md.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Generic, TypeVar

from planner.catalog.catalog import Column, Computed, Derivation, Lookup, SqlType, Table, ValueGroups
from planner.lower.dialects.dialect import Dialect
from planner.lower.row import RowSql
from planner.lower.sums.null_tests import reads_no_value
from planner.question.condition import (
    ALWAYS,
    And,
    Compare,
    Condition,
    IsNull,
    Not,
    Or,
    evaluate,
    find_columns,
    join_all,
    join_any,
)
from planner.question.row_work import are_expensive

_Place = TypeVar("_Place", bound=Hashable)


@dataclass(frozen=True, slots=True)
class MemberConditions:
    """The conditions computed on each joined table's rows, and those that remain for joined rows.

    `carried` has, by the index of a joined table, the conditions that read it alone, each with the column that holds
    its truth. `remaining` maps each condition of the question to an equivalent one over these columns.
    """

    carried: Mapping[int, Mapping[Condition, str]] = field(default_factory=lambda: MappingProxyType({}))
    remaining: Mapping[Condition, Condition] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that the join has in addition to those of its tables."""
        names = (name for found in self.carried.values() for name in found.values())
        return tuple(Column(name, SqlType.BOOLEAN, "boolean") for name in names)


def split_conditions(table: Table, conditions: Iterable[Condition], *, dialect: Dialect) -> MemberConditions:
    """Return the conditions of a question, split by the joined table that they read. Return none if all are cheap.

    Raises KH214 if a single row could cost more than any may.
    """
    found = tuple(dict.fromkeys(one for one in conditions if one != ALWAYS and not reads_no_value(one, table)))
    if not table.members or dialect.row_fence is None or not are_expensive(found, table):
        return MemberConditions()
    splitting = ConditionSplitter(table, partial(find_member_place, table), "keyhole_holds")
    left = {one: splitting.split(one, wanted=True) for one in found}
    return MemberConditions(splitting.carried, left)


@dataclass(frozen=True, slots=True)
class ConditionSplitter(Generic[_Place]):
    """A splitter of conditions by the place that each part reads.

    A part that reads one place becomes a column carried from it.

    Parameters:
        place_of: returns the place of a column by its name, or None if it has none or several.
        prefix: the beginning of the names of carried columns.
        may_lack: True if a row may find nothing at a place, and then has NULL in what is carried.
    """

    table: Table
    place_of: Callable[[str], _Place | None]
    prefix: str
    may_lack: bool = False
    carried: dict[_Place, dict[Condition, str]] = field(default_factory=dict)

    def split(self, condition: Condition, *, wanted: bool) -> Condition:
        """Return a condition on joined rows that holds if the given one is true, or if it is false unless `wanted`.

        A part whose truth is unknown counts as neither true nor false. So NOT is moved down to the parts, as in
        `RowSql.write_computed`. Tests for NULL alone stay as they are.
        """
        if reads_no_value(condition, self.table):
            return condition if wanted else Not(condition)
        place = self.find_place(condition)
        if place is not None:
            return self._carry(condition if wanted else Not(condition), place)
        match condition:
            case Not(inner):
                return self.split(inner, wanted=not wanted)
            case And(parts) | Or(parts):
                united = (self.split(one, wanted=wanted) for one in self._unite(type(condition), parts))
                return join_all(united) if isinstance(condition, And) is wanted else join_any(united)
            case _:
                return condition if wanted else Not(condition)

    def find_place(self, condition: Condition) -> _Place | None:
        """Return the only place that a condition reads, or None if there is none or several."""
        places = {self.place_of(name) for name in find_columns(condition)}
        return places.pop() if len(places) == 1 else None

    def _unite(self, kind: type[And | Or], parts: Iterable[Condition]) -> list[Condition]:
        """Return the parts, with those of one place joined."""
        of_one: dict[_Place, list[Condition]] = {}
        others: list[Condition] = []
        for part in parts:
            place = self.find_place(part)
            (others if place is None else of_one.setdefault(place, [])).append(part)
        return [*(kind(tuple(found)) if len(found) > 1 else found[0] for found in of_one.values()), *others]

    def _carry(self, condition: Condition, place: _Place) -> Condition:
        found = self.carried.setdefault(place, {})
        if condition not in found:
            taken = {column.name.lower() for column in self.table.columns}
            name = f"{self.prefix}{sum(map(len, self.carried.values()))}"
            while name in taken:
                name += "_"
            found[condition] = name
        holds = Compare(found[condition], "=", value=True)
        if self.may_lack and evaluate(condition, dict.fromkeys(find_columns(condition))) is True:
            return join_any([holds, IsNull(found[condition])])
        return holds


def find_member_place(table: Table, name: str) -> int | None:
    """Return the index of the joined table that stores a column.

    Return None for products, whose factors may be of several tables, for columns computed from several columns, and
    for values of a unit's own rows.
    """
    column = table.get_column(name)
    while isinstance(column.derivation, Derivation | Lookup | ValueGroups):
        column = table.get_column(column.derivation.column)
    if isinstance(column.derivation, Computed):
        places = {find_member_place(table, one) for one in column.derivation.term.columns}
        return places.pop() if len(places) == 1 else None
    if column.derivation is not None:
        return None
    of_member = (i for i, one in enumerate(table.members) if any(named == column.name for _, named in one.columns))
    return None if column.is_unit_value else next(of_member)


def write_computed_member(row: RowSql, conditions: Mapping[Condition, str], *, kept: list[str]) -> str:
    """Return SQL for the joined rows of a member, with a column for each condition.

    Parameters:
        row: a row of the member, its columns named as in the join, with looked-up columns stored.
        kept: the columns that the join reads besides the conditions.
    """
    dialect = row.dialect
    hidden = {
        column.name: dialect.hide_statistics(dialect.spelling.quote_identifier(column.name))
        for column in row.table.columns
        if column.derivation is None and column.sql_type is not SqlType.OTHER
    }
    named = {dialect.spelling.quote_identifier(name): sql for name, sql in hidden.items()}
    stored = ", ".join(f"{named.get(name, name)} AS {name}" for name in dict.fromkeys([*kept, *named]))
    computed = ", ".join(f"{row.write_computed(one)} AS {name}" for one, name in conditions.items())
    return (
        f"(SELECT {', '.join(kept)}, {computed} FROM (SELECT {stored} FROM {row.table.relation}) AS stored"
        f" {dialect.row_fence})"
    )
