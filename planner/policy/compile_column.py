"""A column of the catalog, from the policy's section, the source's column and its public domain.

The domain comes from the policy and the pinned public tables, and is compared with the pinned domain.
"""

from decimal import Decimal

from planner.catalog.catalog import LONGEST_TEXT, Bands, Column, Derivation, SqlType, Value
from planner.catalog.derived_columns import infer_derived_type, is_possible, parse_derivation
from planner.catalog.domains import KEY_TYPES, digest_domain, encode_value, expand_range, list_distinct, list_values
from planner.catalog.fault import Fault
from planner.catalog.pins import PinnedDomain, Pins
from planner.catalog.sql_types import SourceColumn, has_time_zone, read_sql_type, read_text_limit
from planner.policy.file import Policy
from planner.policy.rules.unit_paths import find_reached_columns
from planner.policy.sections import BandsSection, ColumnSection, KeySection
from planner.policy.source_faults import (
    REPIN,
    refuse_absent_column,
    refuse_collation,
    refuse_unpinned_table,
    refuse_zoned_column,
)

_MEASURE_TYPES = (SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE)


def compile_columns(policy: Policy, name: str, source: tuple[SourceColumn, ...], pins: Pins) -> tuple[Column, ...]:
    """Return the columns that questions and the planner may read.

    They are the columns listed in the policy, and those that the unit, the row cap and derived columns need.
    """
    section, needed = policy.tables[name], list_exposed_names(policy, name)
    order = [column.name for column in source if column.name in needed]
    order += [column for column in section.columns if column not in order]
    return tuple(_compile_column(policy, name, column, source, pins) for column in order)


def list_exposed_names(policy: Policy, name: str) -> frozenset[str]:
    """Return the columns of a table that the policy names, and the columns that derived columns read."""
    section = policy.tables[name]
    needed = set(section.columns) | set(section.unit_columns) | set(section.immutable) | set(section.unique)
    needed |= set(find_reached_columns(policy, name))
    if section.max_rows_per_group is not None:
        needed.add(section.max_rows_per_group.unique)
    if section.arrived is not None:
        needed.add(section.arrived)
    for column in section.columns.values():
        if column.expression is not None:
            needed.add(parse_derivation(column.expression).column)
    return frozenset(needed)


def _compile_column(policy: Policy, table: str, name: str, source: tuple[SourceColumn, ...], pins: Pins) -> Column:
    section = policy.tables[table]
    column = section.columns.get(name, ColumnSection())
    place = ("tables", table, "columns", name)
    derivation, kind, declared = find_column_type(policy, place, column, name, source)
    domain = None
    if column.key is not None:
        domain = compile_key_domain(policy, place, column.key, kind, derivation, pins)
        check_pinned(policy, place, digest_domain(domain, kind), pins.get_domain(table, name))
    grid = _choose_grid(policy, place, column, kind, declared)
    longest = max((len(value) for value in domain or () if isinstance(value, str)), default=0)
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
        max_length=_find_max_length(policy, place, column, kind, declared, longest),
        stored=next((known.declared for known in source if known.name == name), None),
        required=any(known.name == name and not known.nullable for known in source),
        bands=compile_bands(column.bands),
        enumerated=any(known.name == name and known.enumerated for known in source),
        groupable=section.groupable is not False if column.groupable is None else column.groupable,
        filter_only=column.filter is True,
    )


def compile_bands(section: BandsSection | None) -> tuple[Bands, ...]:
    """Return the bands that a section declares, in the order of its keys."""
    given = {} if section is None else dict(section)
    return tuple(Bands(aggregate, thresholds) for aggregate, thresholds in given.items() if thresholds is not None)


def _find_max_length(
    policy: Policy, place: tuple[str, ...], column: ColumnSection, kind: SqlType, declared: str, longest_key: int
) -> int | None:
    """Return the number of characters of a text that conditions see, at least those of its longest public value."""
    where = (*place, "max_length")
    if kind is not SqlType.TEXT:
        if column.max_length is not None:
            raise policy.refuse(where, Fault("KH002", f"has no meaning for type {declared}", hint="Remove it."))
        return None
    limits = [limit for limit in (column.max_length, read_text_limit(declared)) if limit is not None]
    longest = min(limits, default=max(LONGEST_TEXT, longest_key))
    if longest < longest_key:
        hint = f"Write max_length = {longest_key}, or leave it out."
        raise policy.refuse(where, Fault("KH002", f"the key domain has a value of {longest_key} characters", hint=hint))
    return longest


def find_column_type(
    policy: Policy, place: tuple[str, ...], column: ColumnSection, name: str, source: tuple[SourceColumn, ...]
) -> tuple[Derivation | None, SqlType, str]:
    """Return a column's derivation, type and declared type. The policy's `type` overrides the source's."""
    declared_types = {known.name: known.declared for known in source}
    derivation = None
    if column.expression is None:
        if name not in declared_types:
            raise policy.refuse(place, refuse_absent_column(name, source))
        if any(known.has_nondeterministic_collation for known in source if known.name == name):
            raise policy.refuse(place, refuse_collation(name))
        declared = declared_types[name]
        kind = read_sql_type(declared)
    else:
        where = (*place, "expression")
        derivation = parse_derivation(column.expression)
        if derivation.column not in declared_types:
            raise policy.refuse(where, refuse_absent_column(derivation.column, source))
        base = declared_types[derivation.column]
        if has_time_zone(base):
            raise policy.refuse(where, refuse_zoned_column(derivation.column))
        parsed = derivation
        kind = policy.run_at(where, lambda: infer_derived_type(parsed, read_sql_type(base)))
        declared = _name_type(kind)
    if has_time_zone(declared):
        raise policy.refuse(place, refuse_zoned_column(name))
    if column.type is not None:
        return derivation, *_override_type(policy, (*place, "type"), column.type, kind, derivation)
    return derivation, kind, declared


def _override_type(
    policy: Policy, place: tuple[str, ...], declared: str, kind: SqlType, derivation: Derivation | None
) -> tuple[SqlType, str]:
    chosen = read_sql_type(declared)
    truncated = derivation is not None and derivation.function == "date_trunc"
    if chosen is kind or (truncated and chosen is SqlType.TIMESTAMP and kind is SqlType.DATE):
        return chosen, declared
    hint = f"Write another PostgreSQL name for {kind.value}, or cast the column in a view of the source."
    raise policy.refuse(place, Fault("KH006", f"the source's column is of type {kind.value}", hint=hint))


def _name_type(kind: SqlType) -> str:
    return "timestamp without time zone" if kind is SqlType.TIMESTAMP else kind.value


def _choose_grid(
    policy: Policy, place: tuple[str, ...], column: ColumnSection, kind: SqlType, declared: str
) -> Decimal | None:
    if column.bounds is None:
        return None
    if kind not in _MEASURE_TYPES:
        hint = (
            "Give bounds only to integer, numeric or double precision columns. "
            "In a CSV file, `type` sets a column's type."
        )
        fault = Fault("KH004", f"a column of type {declared} cannot be a measure", hint=hint)
        raise policy.refuse((*place, "bounds"), fault)
    if column.grid is None and kind is not SqlType.INTEGER:
        hint = "Add the step that values are rounded to, such as grid = 0.01."
        raise policy.refuse((*place, "grid"), Fault("KH004", "is missing", hint=hint))
    return column.grid or Decimal(1)


def compile_key_domain(
    policy: Policy, place: tuple[str, ...], key: KeySection, kind: SqlType, derivation: Derivation | None, pins: Pins
) -> tuple[Value, ...]:
    """Return a key's public values from the policy and the pinned public tables."""
    where = (*place, "key")

    def values() -> tuple[Value, ...]:
        if kind not in KEY_TYPES:
            hint = "Group by a column of type text, integer, boolean, date or timestamp."
            raise Fault("KH003", f"a column of type {kind.value} cannot be a key", hint=hint)
        if key.values is not None:
            domain = list_values(key.values, kind)
        elif key.range is not None:
            domain = expand_range(key.range[0], key.range[1], key.step, kind, most=policy.limits.max_keys)
        else:
            domain = _read_public_column(str(key.values_from), kind, pins)
        if len(domain) > policy.limits.max_keys:
            hint = f"Narrow the domain, or raise limits.max_keys = {policy.limits.max_keys}."
            raise Fault("KH003", f"the domain has {len(domain):,} values", hint=hint)
        for value in domain:
            if derivation is not None and not is_possible(derivation, value):
                hint = f"List only values that {derivation.function} of {derivation.part or 'a timestamp'} can give."
                raise Fault("KH003", f"{encode_value(value)} is never a value of the expression", hint=hint)
        return domain

    return policy.run_at(where, values)


def _read_public_column(values_from: str, kind: SqlType, pins: Pins) -> tuple[Value, ...]:
    name, _, column = values_from.partition(".")
    table = pins.get_table(name)
    if table is None:
        raise refuse_unpinned_table(f"public table {name} is not pinned yet")
    values = table.get_values(column)
    if table.get_type(column) is not kind:
        problem = f"{values_from} is of type {table.get_type(column).value}, the key column of type {kind.value}"
        raise Fault("KH003", problem, hint="Take the values from a column of the same type.")
    return list_distinct(values, kind)


def check_pinned(policy: Policy, place: tuple[str, ...], digest: str, pinned: PinnedDomain | None) -> None:
    """Raise KH007 unless the domain's digest is the pinned one."""
    if pinned is None:
        hint = "Run keyhole check: it pins every key domain."
        raise policy.refuse((*place, "key"), Fault("KH007", "is not pinned yet", hint=hint))
    if pinned.digest != digest:
        raise policy.refuse((*place, "key"), Fault("KH007", "is not the domain that was pinned", hint=REPIN))
