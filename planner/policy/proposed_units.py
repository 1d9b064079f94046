"""Proposed privacy units for the tables of a source, which `keyhole init` derives from names, types and constraints.

A table that stores people's ids has them as its unit. Another table gets a path by its keys to one that does. A table
of people has one row for each. A table that leads to nobody, and in which others look something up, may be public.
`keyhole check` asks for the owner's word if no constraint of the source guarantees a proposal.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from planner.catalog.catalog import SqlType
from planner.catalog.sql_types import read_sql_type
from planner.policy.identifiers import find_people, names_people
from planner.policy.key_steps import KeyedTable, KeyStep, SourceTable, find_steps, read_keys

_UNIT_TYPES = frozenset({SqlType.INTEGER, SqlType.TEXT, SqlType.UUID})


@dataclass(frozen=True, slots=True)
class ProposedUnit:
    """The proposed privacy unit of a table, as far as the schema suggests one.

    `candidates` are columns that may identify people, and `column` is the likeliest. `paths` are steps to people whom
    `column` does not identify, the likeliest first. If a table has both, the schema does not show which is meant.
    `is_one_row`: a unit has one row; `is_unique`: a constraint says so. `same_people_step` is the step to the table of
    the same people, and `similar_table` an earlier table whose unit has the same name. `is_lookup`: it identifies
    nobody, and other tables lead to it. `lookups` are the steps to tables of this kind, by column. `vouched_paths`
    maps columns of this table, which no constraint keeps unique, to the tables whose paths use them.
    """

    candidates: tuple[str, ...]
    column: str | None
    paths: tuple[KeyStep, ...]
    is_one_row: bool
    is_unique: bool
    same_people_step: KeyStep | None
    similar_table: str | None
    is_lookup: bool
    lookups: Mapping[str, KeyStep]
    vouched_paths: Mapping[tuple[str, ...], tuple[str, ...]]


def propose_units(tables: Mapping[str, SourceTable]) -> dict[str, ProposedUnit]:
    """Return the proposed unit of each table. Proposed paths never form a circle."""
    keyed = read_keys(tables)
    steps = find_steps(keyed)
    people = {name: _find_person_key(table) for name, table in keyed.items()}
    things = {name: _find_things(table, steps[name], keyed, people) for name, table in keyed.items()}
    candidates = {name: _list_candidates(table, things[name], people[name]) for name, table in keyed.items()}
    columns = {name: people[name] or _choose(table, candidates[name]) for name, table in keyed.items()}
    paths = _find_paths(steps, columns, {})
    columns |= {
        name: _choose_only_candidate(table, candidates[name])
        for name, table in keyed.items()
        if not paths[name] and columns[name] is None
    }
    paths = _find_paths(steps, columns, paths)
    same = {name: _find_same_unit_step(column, steps[name], columns) for name, column in columns.items()}
    reached = {step.table for leading in steps.values() for step in leading}
    named = {name for name in keyed if candidates[name] or columns[name] or paths[name]}
    found: dict[str, ProposedUnit] = {}
    for name, table in keyed.items():
        column = columns[name]
        others: tuple[KeyStep, ...] = ()
        if column is not None and column != people[name]:
            root = _find_root(name, columns, same, paths, keyed)
            led = (step for step in steps[name] if step.table in named and not {*step.columns} & {*candidates[name]})
            others = tuple(step for step in led if _find_root(step.table, columns, same, paths, keyed) != root)
        unique = column is not None and table.source.keeps_unique([column])
        found[name] = ProposedUnit(
            candidates=candidates[name],
            column=column,
            paths=others or paths[name],
            is_one_row=unique or (column is not None and column == people[name]),
            is_unique=unique,
            same_people_step=same[name],
            similar_table=None
            if people[name] or same[name]
            else _find_similar_table(table, column, [(keyed[o], columns[o]) for o in found]),
            is_lookup=name in reached and name not in named,
            lookups={
                step.columns[0]: step
                for step in reversed(steps[name])
                if step.table not in named and len(step.columns) == 1
            },
            vouched_paths=_list_vouched_paths(name, paths),
        )
    return found


def _find_person_key(table: KeyedTable) -> str | None:
    """Return the key of a table that has one row for each person: `patient_id` or `id` of patients."""
    if not any(names_people(name) for name in table.row_names):
        return None
    own = [name for name in table.own_keys if _is_unit(table, name)]
    return min(own, key=lambda name: not table.source.keeps_unique([name]), default=None)


def _find_things(
    table: KeyedTable, steps: Sequence[KeyStep], tables: Mapping[str, KeyedTable], people: Mapping[str, str | None]
) -> set[str]:
    """Return the columns that identify no people.

    They identify the table's rows, or rows of another table that stores people's ids beside them.
    """
    things = set() if people[table.name] else {name for name in table.own_keys if name not in table.person_columns}
    for step in steps:
        there = tables[step.table]
        (column, *others), (reached, *_) = step.columns, step.reached_columns
        if others or people[step.table] == reached:
            continue
        told = [name for name in there.person_columns if name != reached and not there.source.keeps_unique([name])]
        if told or column not in table.person_columns:
            things.add(column)
    return things


def _list_candidates(table: KeyedTable, things: Iterable[str], person_key: str | None) -> tuple[str, ...]:
    """Return the columns that may identify people.

    Columns that are unique are left out, unless their names mean people.
    """
    columns = [column for column in table.source.columns if column.name not in things]
    repeating = [
        column
        for column in columns
        if not table.source.keeps_unique([column.name]) or column.name in table.person_columns
    ]
    found = find_people(repeating)
    return found if person_key is None or person_key in found else (person_key, *found)


def _choose(table: KeyedTable, candidates: Sequence[str]) -> str | None:
    """Return the first candidate whose name means people, with columns that are not unique first."""
    usable = [name for name in candidates if _is_unit(table, name) and name in table.person_columns]
    own = table.own_keys
    return min(usable, key=lambda name: name in own or table.source.keeps_unique([name]), default=None)


def _choose_only_candidate(table: KeyedTable, candidates: Sequence[str]) -> str | None:
    """Return the only candidate, even if its name says no more than that it is an id."""
    return candidates[0] if len(candidates) == 1 and _is_unit(table, candidates[0]) else None


def _find_paths(
    steps: Mapping[str, Sequence[KeyStep]],
    columns: Mapping[str, str | None],
    before: Mapping[str, tuple[KeyStep, ...]],
) -> dict[str, tuple[KeyStep, ...]]:
    """Return the shortest paths of each table without a unit's column.

    Paths along steps that constraints guarantee are preferred to others.
    """
    found = {name: before.get(name, ()) for name in steps}
    known = {name for name in steps if columns[name] is not None or found[name]}
    for proved in (True, False):
        while True:
            further = {
                name: leading
                for name in steps
                if name not in known
                and (leading := tuple(one for one in steps[name] if one.table in known and one.is_unique >= proved))
            }
            if not further:
                break
            found |= further
            known |= set(further)
    return found


def _find_same_unit_step(
    column: str | None, steps: Sequence[KeyStep], columns: Mapping[str, str | None]
) -> KeyStep | None:
    """Return the step to the table that has the same unit."""
    if column is None:
        return None
    return next(
        (one for one in steps if one.columns == (column,) and one.reached_columns == (columns[one.table],)), None
    )


def _find_similar_table(
    table: KeyedTable, column: str | None, earlier: Iterable[tuple[KeyedTable, str | None]]
) -> str | None:
    """Return the first other table whose unit has the name and the type of a table's unit."""
    if column is None:
        return None
    alike = (other for other, named in earlier if named == column)
    return next((other.name for other in alike if _get_type(other, column) is _get_type(table, column)), None)


def _find_root(
    name: str,
    columns: Mapping[str, str | None],
    same: Mapping[str, KeyStep | None],
    paths: Mapping[str, Sequence[KeyStep]],
    tables: Mapping[str, KeyedTable],
) -> str:
    """Return a name for the people of a table's rows: the unit column of the table where they are listed first."""
    seen = set()
    while name not in seen:
        seen.add(name)
        step = same[name] or next(iter(paths[name]), None)
        name = name if step is None else step.table
    column = columns[name]
    return tables[name].describe_key(column) if column is not None else ""


def _list_vouched_paths(name: str, paths: Mapping[str, Sequence[KeyStep]]) -> dict[tuple[str, ...], tuple[str, ...]]:
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for other, leading in paths.items():
        for step in leading[:1]:
            if step.table == name and not step.is_unique:
                found[step.reached_columns] = (*found.get(step.reached_columns, ()), other)
    return found


def _get_type(table: KeyedTable, name: str) -> SqlType:
    return next(read_sql_type(column.declared) for column in table.source.columns if column.name == name)


def _is_unit(table: KeyedTable, name: str) -> bool:
    return _get_type(table, name) in _UNIT_TYPES
