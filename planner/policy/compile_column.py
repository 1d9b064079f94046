"""A column of the catalog: the policy's section for it and the source's column under it."""

from decimal import Decimal

from planner.catalog.derived_columns import derived_type, parse_derivation
from planner.catalog.domains import domain_digest
from planner.catalog.fault import Fault, nearest
from planner.catalog.model import Column, Derivation, SqlType
from planner.catalog.pins import Pins
from planner.catalog.sql_types import SourceColumn, sql_type, zoned
from planner.policy.compile_domain import check_pinned, key_domain
from planner.policy.file import Policy
from planner.policy.sections import ColumnSection

_MEASURE_TYPES = (SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE)


def compiled_columns(policy: Policy, name: str, source: tuple[SourceColumn, ...], pins: Pins) -> tuple[Column, ...]:
    """The exposed columns: those listed, and those that the unit, the row cap and derived columns need."""
    section = policy.tables[name]
    needed = set(section.columns) | set(section.privacy_unit or ()) | set(section.immutable)
    if section.max_rows_per_group is not None:
        needed.add(section.max_rows_per_group.unique)
    for column in section.columns.values():
        if column.expression is not None:
            needed.add(parse_derivation(column.expression).column)
    order = [column.name for column in source if column.name in needed]
    order += [column for column in section.columns if column not in order]
    return tuple(_column(policy, name, column, source, pins) for column in order)


def _column(policy: Policy, table: str, name: str, source: tuple[SourceColumn, ...], pins: Pins) -> Column:
    section = policy.tables[table]
    column = section.columns.get(name, ColumnSection())
    place = ("tables", table, "columns", name)
    derivation, kind, declared = typed_column(policy, place, column, name, source)
    domain = None
    if column.key is not None:
        domain = key_domain(policy, place, column.key, kind, derivation, pins)
        check_pinned(policy, place, domain_digest(domain, kind), pins.domain(table, name))
    grid = _grid(policy, place, column, kind, declared)
    return Column(
        name=name,
        sql_type=kind,
        declared=declared,
        domain=domain,
        bounds=column.bounds,
        grid=grid,
        per_unit=column.per_unit,
        derivation=derivation,
        immutable=name in section.immutable,
        prunable=all(known.prunable for known in source if known.name == (derivation.column if derivation else name)),
        comment=column.comment,
    )


def typed_column(
    policy: Policy, place: tuple[str, ...], column: ColumnSection, name: str, source: tuple[SourceColumn, ...]
) -> tuple[Derivation | None, SqlType, str]:
    """A column's derivation, type and declared type, after the policy's `type`."""
    declared_types = {known.name: known.declared for known in source}
    derivation = None
    if column.expression is None:
        if name not in declared_types:
            raise policy.refuse(place, absent(name, source))
        if any(known.nondeterministic for known in source if known.name == name):
            raise policy.refuse(place, _nondeterministic(name))
        declared = declared_types[name]
        kind = sql_type(declared)
    else:
        where = (*place, "expression")
        derivation = parse_derivation(column.expression)
        if derivation.column not in declared_types:
            raise policy.refuse(where, absent(derivation.column, source))
        base = declared_types[derivation.column]
        if zoned(base):
            raise policy.refuse(where, _zoned(derivation.column))
        parsed = derivation
        kind = policy.at(where, lambda: derived_type(parsed, sql_type(base)))
        declared = _declared(kind)
    if zoned(declared):
        raise policy.refuse(place, _zoned(name))
    if column.type is not None:
        return derivation, *_overridden(policy, (*place, "type"), column.type, kind, derivation)
    return derivation, kind, declared


def _overridden(
    policy: Policy, place: tuple[str, ...], declared: str, kind: SqlType, derivation: Derivation | None
) -> tuple[SqlType, str]:
    chosen = sql_type(declared)
    truncated = derivation is not None and derivation.function == "date_trunc"
    if chosen is kind or (truncated and chosen is SqlType.TIMESTAMP and kind is SqlType.DATE):
        return chosen, declared
    hint = f"Write another PostgreSQL name for {kind.value}, or cast the column in a view of the source."
    raise policy.refuse(place, Fault("KH006", f"the source's column is of type {kind.value}", hint=hint))


def _declared(kind: SqlType) -> str:
    return "timestamp without time zone" if kind is SqlType.TIMESTAMP else kind.value


def _grid(
    policy: Policy, place: tuple[str, ...], column: ColumnSection, kind: SqlType, declared: str
) -> Decimal | None:
    if column.bounds is None:
        return None
    if kind not in _MEASURE_TYPES:
        hint = "Give bounds to integer, numeric or double precision columns."
        fault = Fault("KH004", f"a column of type {declared} cannot be a measure", hint=hint)
        raise policy.refuse((*place, "bounds"), fault)
    if column.grid is None and kind is not SqlType.INTEGER:
        hint = "Add the step that values are rounded to, such as grid = 0.01."
        raise policy.refuse((*place, "grid"), Fault("KH004", "is missing", hint=hint))
    return column.grid or Decimal(1)


def absent(name: str, source: tuple[SourceColumn, ...]) -> Fault:
    """KH006: the source has no such column; the nearest of its names as a hint."""
    hint = nearest(name, [column.name for column in source])
    return Fault("KH006", f'the source has no column "{name}" there', hint=hint)


def _zoned(name: str) -> Fault:
    hint = f"Expose a view of the source that gives {name} AT TIME ZONE 'UTC': a timestamp without time zone."
    problem = f'column "{name}" is a timestamp with time zone: its days and months depend on a session setting'
    return Fault("KH006", problem, hint=hint)


def _nondeterministic(name: str) -> Fault:
    hint = f'Expose a view of the source that gives {name} COLLATE "C".'
    problem = f'column "{name}" has a nondeterministic collation: the source would merge groups whose keys differ'
    return Fault("KH006", problem, hint=hint)
