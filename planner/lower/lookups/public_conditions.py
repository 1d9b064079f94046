"""Conditions on public tables, tested on public rows before a private row looks one up.

    SELECT n_name FROM lineitem JOIN part ON p_partkey = l_partkey JOIN nation ON ...
    WHERE p_name LIKE '%green%' GROUP BY n_name HAVING sum(l_quantity) > 1000

Two hundred thousand names are searched, instead of one for each of six million lines. A line reads whether its part's
name has the word. If WHERE demands the word, a line finds only parts whose name has it.

Guarantee: a condition holds for the same rows as before, NULL included. Its cost is paid once for each public row,
whichever private rows there are. Engines skip a join with an empty relation, so the rows of expensive conditions are a
step that is also read alone. If a row has expensive conditions of its own, no public condition leaves it out before
they are computed.

References: docs/decisions/0017-timing.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from planner.catalog.catalog import Column, Derivation, Lookup, NamedStep, SqlType, Table
from planner.lower.computed_conditions import has_expensive, list_conditions
from planner.lower.dialects.dialect import Dialect
from planner.lower.member_conditions import ConditionSplitter
from planner.lower.row import RowSql
from planner.lower.whole_joins.fences import write_whole_read
from planner.question.condition import ALWAYS, Condition, IsNull, Leaf, Not, evaluate, find_columns, join_all, join_any
from planner.question.question import Functional

Place: TypeAlias = tuple[str, int]
"""The place of columns that are looked up together: the column by which, and the identity of its known values."""


@dataclass(frozen=True, slots=True)
class PublicConditions:
    """The conditions of a question, split into tests on public rows and tests on private rows.

    A place is a group of columns that are looked up together in one public table. `carried` has, by place, the
    conditions that read only that place, each with the column that holds its truth. `required` has, by place, the
    condition that a public row must satisfy if the private rows that find it are to count. `where` and `functionals`
    are those of the question, with the tests that remain for private rows.
    """

    where: Condition
    functionals: tuple[Functional, ...]
    carried: Mapping[Place, Mapping[Condition, str]] = field(default_factory=lambda: MappingProxyType({}))
    required: Mapping[Place, Condition] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that rows have in addition to the table's columns."""
        names = (name for found in self.carried.values() for name in found.values())
        return tuple(Column(name, SqlType.BOOLEAN, "boolean") for name in names)


def ask_public_rows(
    table: Table,
    where: Condition,
    functionals: tuple[Functional, ...],
    *,
    keys: Sequence[Column],
    dialect: Dialect,
    is_first: bool,
) -> PublicConditions:
    """Return the conditions of a question, split by the public tables that they read.

    Parameters:
        is_first: True if rows that WHERE drops affect nothing, so that WHERE may be tested as rows are joined.

    Raises KH214 if a single row could cost more than any may.
    """
    plain, table = PublicConditions(where, functionals), look_up_at_once(table)
    if not any(find_place(table, name) for one in list_conditions(where, functionals) for name in find_columns(one)):
        return plain
    asked = _carry_conditions(table, plain, {})
    stored = replace(table, columns=(*table.columns, *asked.columns))
    is_dear = has_expensive(table, list_conditions(where, functionals), keys)
    left_dear = is_dear and has_expensive(stored, list_conditions(asked.where, asked.functionals), keys)
    if (left_dear and table.members) or (is_dear and dialect.row_fence is None):
        return plain  # these are computed before the tables are joined, or not at all
    return (
        asked if left_dear or not is_first else _carry_conditions(table, plain, _list_implied_conditions(table, where))
    )


def _carry_conditions(table: Table, asked: PublicConditions, demanded: Mapping[Place, Condition]) -> PublicConditions:
    """Return the conditions with the carried ones. Demanded ones are not tested again."""
    splitting = ConditionSplitter(table, partial(find_place, table), "keyhole_found", may_lack=True)
    met = frozenset(part for one in demanded.values() for part in one.list_conjuncts())
    where = splitting.split(join_all(part for part in asked.where.list_conjuncts() if part not in met), wanted=True)

    def split(condition: Condition) -> Condition:
        return splitting.split(condition, wanted=True)

    functionals = tuple(functional.map_conditions(split) for functional in asked.functionals)
    return PublicConditions(where, functionals, splitting.carried, demanded)


def _list_implied_conditions(table: Table, where: Condition) -> dict[Place, Condition]:
    """Return, by place, the conditions that WHERE implies for public rows.

    Private rows that find no such row are dropped.
    """
    places = dict.fromkeys(find_place(table, leaf.column) for leaf in where.walk_leaves())
    demanded = {place: _imply(table, where, place) for place in places if place is not None}
    return {
        place: one for place, one in demanded.items() if evaluate(one, dict.fromkeys(find_columns(one))) is not True
    }


def _imply(table: Table, condition: Condition, place: Place) -> Condition:
    """Return a condition on the columns of one place alone that is true wherever the given condition is."""

    def imply_test(test: Leaf | Not) -> Condition:
        return test if all(find_place(table, name) == place for name in find_columns(test)) else ALWAYS

    return condition.fold_literals(imply_test, every=join_all, some=join_any, wanted=True)


def look_up_at_once(table: Table) -> Table:
    """Return the table with classes of looked-up values found directly by the stored column, in a single join."""

    def at_once(column: Column) -> Column:
        lookup = column.derivation
        if not isinstance(lookup, Lookup) or not lookup.has_classes:
            return column
        base = table.get_column(lookup.column).derivation
        if not isinstance(base, Lookup):
            return column
        return replace(column, derivation=replace(lookup, column=base.column, pairs=base.pairs.compose(lookup.pairs)))

    return replace(table, columns=tuple(map(at_once, table.columns)))


def find_place(table: Table, name: str) -> Place | None:
    """Return the place at which a column is looked up, or the date that it is a part of.

    Return None for other columns.
    """
    column = table.get_column(name)
    while isinstance(column.derivation, Derivation):
        column = table.get_column(column.derivation.column)
    lookup = column.derivation
    return (lookup.column, id(lookup.pairs.known)) if isinstance(lookup, Lookup) else None


def is_expensive_at(row: RowSql, place: Place, asked: PublicConditions) -> bool:
    """Return True if tests on the public rows of a place take so long that an analyst could measure it."""
    conditions = [*asked.carried.get(place, {}), asked.required.get(place, ALWAYS)]
    return has_expensive(row.table, conditions, ())


def write_asked_rows(row: RowSql, place: Place, asked: PublicConditions, *, rows: str, kept: Sequence[str]) -> str:
    """Return SQL for the public rows that are joined: those that are demanded, with a column for each condition.

    Parameters:
        row: of a table with looked-up columns.
        rows: a relation with the looked-up columns of that place, named as in the table.
        kept: the other columns that the join reads.
    """
    read = tuple(
        replace(one, derivation=None) if isinstance(one.derivation, Lookup) else one for one in row.table.columns
    )
    public = replace(row, table=replace(row.table, columns=read))
    carried = asked.carried.get(place, {})
    demanded = join_all(
        part for part in asked.required.get(place, ALWAYS).list_conjuncts() if not _is_met_by_join(row.table, part)
    )
    truths = [f"COALESCE({public.write_condition(one)}, FALSE) AS {name}" for one, name in carried.items()]
    where = "" if demanded == ALWAYS else f" WHERE {public.write_condition(demanded)}"
    return f"SELECT {', '.join([*kept, *truths])} FROM {rows}{where}"


def write_whole_reads(steps: Sequence[NamedStep]) -> str:
    """Return a WHERE that makes an engine compute the steps in full, even if no row looks anything up."""
    tests = " AND ".join(write_whole_read(one.name) for one in steps)
    return f" WHERE {tests} /* all public rows are asked, whichever rows look them up */" if steps else ""


def _is_met_by_join(table: Table, condition: Condition) -> bool:
    """Return True for `NOT (key IS NULL)`, which the join implies.

    Engines would guess that the test keeps one row of five.
    """
    match condition:
        case Not(IsNull(name)):
            lookup = table.get_column(name).derivation
            return isinstance(lookup, Lookup) and lookup.pairs.found is lookup.pairs.known
        case _:
            return False
