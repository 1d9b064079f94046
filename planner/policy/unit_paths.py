"""Paths to the privacy unit, compiled: each table gets the columns of the unit that its rows reach."""

from collections.abc import Sequence
from dataclasses import replace

from planner.catalog.catalog import Column, SqlType, Table, UnitPath
from planner.catalog.fault import Fault, suggest_nearest_name
from planner.catalog.refresh import parse_refresh
from planner.policy.file import Policy
from planner.policy.sections import WrittenPath

KEY_TYPES = (SqlType.TEXT, SqlType.INTEGER, SqlType.BOOLEAN, SqlType.DATE, SqlType.TIMESTAMP, SqlType.UUID)
"""Types of columns that name a unit or lead to it: equal values are equal on every engine."""


def add_paths(policy: Policy, tables: Sequence[Table]) -> tuple[Table, ...]:
    """Return the tables with their paths to the units.

    The tables on a path get their own paths first; the policy's rules exclude circles.

    Raise KH005 for columns that cannot lead to a unit, KH006 for a column that is absent, and KH004 if a table would
    have two columns of one name.
    """
    stored = {table.name: table for table in tables}
    laid: dict[str, Table] = {}

    def add_path(name: str) -> Table:
        if name not in laid:
            path = policy.tables[name].path
            laid[name] = stored[name] if path is None else _add_path(policy, stored[name], path, add_path(path.table))
        return laid[name]

    return tuple(add_path(table.name) for table in tables)


def _add_path(policy: Policy, table: Table, path: WrittenPath, reached: Table) -> Table:
    place = ("tables", table.name, "privacy_unit")
    there = [column.name for column in reached.columns if column.name not in reached.unit or reached.path is None]
    for own, other in zip(path.by, path.through, strict=True):
        if other not in there:
            fault = Fault(
                "KH006",
                f'{reached.name} has no column "{other}" in the source',
                hint=suggest_nearest_name(other, there),
            )
            raise policy.refuse(place, fault)
        _check_step(policy, place, table.get_column(own), reached.get_column(other), reached)
    units = [reached.get_column(name) for name in reached.unit]
    derived = next((unit.name for unit in units if unit.derivation is not None), None)
    if derived is not None:
        hint = f"Let {reached.name} store its unit, or name who is protected by a column of this table."
        raise policy.refuse(place, Fault("KH005", f"leads to {reached.name}, whose {derived} is derived", hint=hint))
    taken = {column.name for column in table.columns}
    named = [_name_unit(policy, place, unit.name, reached.name, taken) for unit in units]
    live = any(parse_refresh(one.refresh).kind == "live" for one in (table, reached))
    return replace(
        table,
        columns=(*table.columns, *(_make_unit_column(unit, name) for unit, name in zip(units, named, strict=True))),
        unit=tuple(named),
        refresh="live" if live else table.refresh,
        path=UnitPath(reached, path.by, path.through),
    )


def _check_step(policy: Policy, place: tuple[str, ...], own: Column, other: Column, reached: Table) -> None:
    shown = f"{reached.name}.{other.name}"
    if own.sql_type is not other.sql_type:
        problem = f"{own.name} is of type {own.sql_type.value}, {shown} of type {other.sql_type.value}"
        hint = "Expose a view of the source that gives both the same type."
        raise policy.refuse(place, Fault("KH005", problem, hint=hint))
    for column, named in ((own, own.name), (other, shown)):
        if column.sql_type not in KEY_TYPES or column.derivation is not None:
            kind = "derived" if column.derivation is not None else f"of type {column.declared}"
            hint = "Use stored columns of type integer, text, date, timestamp, uuid or boolean."
            raise policy.refuse(place, Fault("KH005", f"{named} is {kind} and cannot lead to a unit", hint=hint))


def _name_unit(policy: Policy, place: tuple[str, ...], name: str, reached: str, taken: set[str]) -> str:
    """Return the name that a reached table's unit column gets among the table's own columns.

    If a column has that name already, the reached table's name is put before it.
    """
    found = next((one for one in (name, f"{reached}_{name}") if one not in taken), None)
    if found is None:
        problem = f"has columns {name} and {reached}_{name}, one of which the unit's column would be called"
        hint = "Expose a view of the source that gives one of them another name."
        raise policy.refuse(place, Fault("KH004", problem, hint=hint))
    taken.add(found)
    return found


def _make_unit_column(unit: Column, name: str) -> Column:
    """Return a unit's column as a column of the rows that reach it: for conditions, counts, and as a key."""
    return Column(
        name=name,
        sql_type=unit.sql_type,
        declared=unit.declared,
        domain=unit.domain,
        max_length=unit.max_length,
        required=True,
        comment=unit.comment,
        groupable=unit.groupable,
    )
