"""The looked-up columns that the keys of a question determine, their values, and the SQL that finds them."""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from math import prod
from typing import Any

from planner.catalog.catalog import Column, ComputedName, Lookup, LookupValues, SqlType, Value, ValueGroups
from planner.parser.lexer import quote_identifier
from planner.scope.name_resolution import JoinedTable, Scope

_MOST_ROWS = 10_000  # of a public table whose combinations are read with the question: a few milliseconds


def is_determined(column: Column, keys: Collection[str], scope: Scope) -> bool:
    """Return True if each group has one value of the column, NULL included, since a key determines it by a lookup."""
    if column.name in keys:
        return True
    base = _find_grouped_lookup(column, scope)
    if base is not None:
        return is_determined(base, [name for name in keys if name != column.name], scope)
    found = _find_looked_up(column, scope)
    if found is None:
        return False
    joined, _ = found
    return _find_own_key(joined, column, keys) is not None or is_determined(
        scope.table.get_column(joined.base), keys, scope
    )


def _find_grouped_lookup(column: Column, scope: Scope) -> Column | None:
    """Return the looked-up column whose values a key puts into groups."""
    match column.derivation:
        case ValueGroups(column=base) if not isinstance(base, ComputedName):
            found = scope.table.get_column(base)
        case Lookup(column=base, has_classes=True):
            found = scope.table.get_column(base)
        case _:
            return None
    return found if isinstance(found.derivation, Lookup) else None


def find_determining_keys(columns: Collection[Column], scope: Scope) -> tuple[Column, ...]:
    """Return the keys that look up several columns, if different key values always give different combinations of them.

    Grouping by these columns is then grouping by that key, because no row has another combination.
    """
    by_base: dict[str, list[Lookup]] = {}
    for column in columns:
        if isinstance(column.derivation, Lookup) and not column.derivation.has_classes:
            by_base.setdefault(column.derivation.column, []).append(column.derivation)
    found = (scope.table.get_column(base) for base, lookups in by_base.items() if len(lookups) > 1)
    return tuple(base for base in found if _has_distinct_combinations(base, by_base[base.name]))


def _has_distinct_combinations(base: Column, lookups: Collection[Lookup]) -> bool:
    if base.domain is None:
        return False
    combined = [tuple(lookup.pairs.value_map.get(value) for lookup in lookups) for value in base.domain]
    return len(set(combined)) == len(combined) and all(None not in found for found in combined)


def find_incomplete_keys(columns: Collection[Column], scope: Scope) -> tuple[tuple[Column, tuple[Column, ...]], ...]:
    """Return the keys that look up several columns whose combinations do not all occur, each key with these columns."""
    by_base: dict[str, list[Column]] = {}
    for column in columns:
        if (found := find_groups(column, scope)) is not None:
            by_base.setdefault(found[0], []).append(column)
    several = [(scope.table.get_column(base), tuple(found)) for base, found in by_base.items() if len(found) > 1]
    return tuple((base, found) for base, found in several if _misses_combinations(base, found, scope))


def find_groups(column: Column, scope: Scope) -> tuple[str, Mapping[Value, object]] | None:
    """Return the column by which a key is looked up, and a map from that column's values to the key's groups.

    Return None for a key that is not looked up, or that is looked up in a long table, or whose groups take longer to
    compute.
    """
    derivation = column.derivation
    if isinstance(derivation, Lookup) and not derivation.has_classes:
        if len(derivation.pairs) > _MOST_ROWS:
            return None
        return derivation.column, {base: value for base, value in derivation.pairs if value is not None}
    if not isinstance(derivation, Lookup | ValueGroups) or isinstance(derivation.column, ComputedName):
        return None
    read = scope.table.get_column(derivation.column)
    if (
        not isinstance(read.derivation, Lookup)
        or read.derivation.has_classes
        or len(read.derivation.pairs) > _MOST_ROWS
    ):
        return None
    if isinstance(derivation, Lookup):
        classes = derivation.pairs.value_map
        found = {base: None if value is None else classes.get(value) for base, value in read.derivation.pairs}
    elif derivation.tests or read.sql_type not in (SqlType.INTEGER, SqlType.DATE, SqlType.NUMERIC):
        return None
    elif derivation.is_exhaustive and len(derivation.shown_values) == len(set(read.derivation.pairs.found)):
        return read.derivation.column, {base: (value,) for base, value in read.derivation.pairs}
    elif read.sql_type is SqlType.NUMERIC:
        return None
    else:
        found = {base: _find_group(derivation, value) for base, value in read.derivation.pairs}
    return read.derivation.column, {base: group for base, group in found.items() if group is not None}


def _find_group(parts: ValueGroups, value: Any) -> int | None:
    return parts.null_group if value is None else parts.groups[bisect_right(parts.cut_points, value)]


def _misses_combinations(base: Column, columns: Collection[Column], scope: Scope) -> bool:
    if base.domain is None:
        return False
    return len(set(combine_groups(base, columns, scope).values())) < prod(
        len(column.domain or ()) for column in columns
    )


def combine_groups(base: Column, columns: Collection[Column], scope: Scope) -> Mapping[Value, tuple[object, ...]]:
    """Return the combined groups of several keys, for each value of the column by which all of them are looked up.

    Values that are in no group of one of the keys are left out.
    """
    groups = [found[1] for column in columns if (found := find_groups(column, scope)) is not None]
    return {
        value: tuple(one[value] for one in groups) for value in base.domain or () if all(value in one for one in groups)
    }


def write_existing(keys: Collection[Column], scope: Scope) -> str:
    """Return SQL that is true for those answered groups whose values occur together in a row of a public table.

    It is empty if all combinations occur.
    """
    parts: list[str] = []
    for _, columns in find_incomplete_keys(keys, scope):
        plain = [column for column in columns if isinstance(column.derivation, Lookup)]
        found = [(column.name, *_find_joined_table(column, scope)) for column in plain]
        for alias in dict.fromkeys(joined.alias for _, joined, _ in found):
            own = [(named, joined, public) for named, joined, public in found if joined.alias == alias]
            ours = ", ".join(f"answered.{quote_identifier(named)}" for named, _, _ in own)
            theirs = ", ".join(quote_identifier(public) for _, _, public in own)
            parts.append(f"({ours}) IN (SELECT {theirs} FROM public.{quote_identifier(own[0][1].name)})")
    parts.extend(_write_determined_keys(keys, scope))
    return " AND ".join(parts)


def _write_determined_keys(keys: Collection[Column], scope: Scope) -> Iterator[str]:
    """Yield SQL conditions: each looked-up key that another key determines is in one row with it."""
    names = [key.name for key in keys]
    for key in keys:
        found = _find_looked_up(key, scope)
        if found is not None:
            joined, public = found
            base = _find_own_key(joined, key, names) or (joined.base if joined.base in names else None)
            if base is not None and base != key.name:
                ours = f"answered.{quote_identifier(base)}, answered.{quote_identifier(key.name)}"
                theirs = f"{quote_identifier(joined.key)}, {quote_identifier(public)}"
                yield f"({ours}) IN (SELECT {theirs} FROM public.{quote_identifier(joined.name)})"


def _find_joined_table(column: Column, scope: Scope) -> tuple[JoinedTable, str]:
    found = _find_looked_up(column, scope)
    assert found is not None, "it is a public table's column"
    return found


def list_undetermined_columns(columns: Collection[Column], scope: Scope) -> tuple[Column, ...]:
    """Return the grouping columns that no other grouping columns determine. They identify a group."""
    names = [column.name for column in columns]
    return tuple(
        column
        for column in columns
        if not is_determined(column, [name for name in names if name != column.name], scope)
    )


def write_lookup(column: Column, keys: Collection[str], scope: Scope) -> str:
    """Return a determined column as SQL over the relation of the keys, which has the scope's alias."""
    if column.name in keys:
        return f"{quote_identifier(scope.alias)}.{quote_identifier(column.name)}"
    found = _find_looked_up(column, scope)
    assert found is not None
    joined, public = found
    own = _find_own_key(joined, column, keys)
    by = scope.table.get_column(joined.base) if own is None else scope.table.get_column(own)
    alias = quote_identifier(joined.alias)
    return (
        f"(SELECT {alias}.{quote_identifier(public)} FROM public.{quote_identifier(joined.name)} AS {alias} "
        f"WHERE {alias}.{quote_identifier(joined.key)} = {write_lookup(by, keys, scope)})"
    )


def map_key_values(column: Column, key: Column, values: Collection[Value]) -> Mapping[Value, Value | None] | None:
    """Return the column's value for each of the key's values. Return None if the key does not determine it."""
    if column.name == key.name:
        return {value: value for value in values}
    if not isinstance(column.derivation, Lookup):
        return None
    if column.derivation.column == key.name:
        pairs = column.derivation.pairs.value_map
        return {value: pairs.get(value) for value in values}
    if not isinstance(key.derivation, Lookup) or key.derivation.column != column.derivation.column:
        return None
    known, by = column.derivation.pairs, key.derivation.pairs
    image = by.remembered.get(("image", known), lambda: _map_values(by, known))
    return None if image is None else {value: image[value] for value in values}


def _map_values(key: LookupValues, column: LookupValues) -> Mapping[Value, Value | None] | None:
    """Return the looked-up value for each value of a key that the same column looks up.

    Return None if a value of the key has several.
    """
    pairs, found = column.value_map, dict[Value, Value | None]()
    for base, value in key:
        if value is not None and found.setdefault(value, pairs.get(base)) != pairs.get(base):
            return None
    return found


def _find_looked_up(column: Column, scope: Scope) -> tuple[JoinedTable, str] | None:
    if not isinstance(column.derivation, Lookup):
        return None
    return next(
        (
            (joined, public)
            for joined in scope.public_tables
            for public, named in joined.columns
            if named == column.name
        ),
        None,
    )


def _find_own_key(joined: JoinedTable, column: Column, keys: Collection[str]) -> str | None:
    """Return the key that is the public table's own joined column."""
    own = dict(joined.columns).get(joined.key)
    return own if own in keys and own != column.name else None
