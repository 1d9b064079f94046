"""Expressions of one key by which windows are ordered and parted: `extract(year FROM d), extract(month FROM d)`.

A group has one value of each expression that GROUP BY allows. So it is computed of any value in the group, such as the
first day of a month.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime

from sqlglot import exp

from planner.catalog.catalog import Column, Derivation, Lookup, SqlType, Value, ValueGroups
from planner.errors import KeyholeError
from planner.groups.inhabited.column_roots import find_roots
from planner.scope.key_classes import list_read_keys, read_key_expression
from planner.scope.key_expressions import evaluate_rows
from planner.scope.key_values import NUMBERS, NotExact, TypedValue, type_value
from planner.scope.name_resolution import Scope
from planner.values.datetimes import move_to_midnight

_NUMERALS = re.compile(r"\d+(?:[-/ .:]\d+)*")  # which every collation orders alike, if the signs are at the same places


def compute_parts(
    items: Sequence[exp.Expr],
    keys: Sequence[Column],
    values: Mapping[str, Sequence[Value]],
    scope: Scope,
    *,
    in_order: bool,
) -> tuple[Column, tuple[tuple[object, ...], ...]] | None:
    """Return the only key that the expressions read, and the expressions' values for each of its values.

    Return None if these cannot be computed. Numbers, days and times are compared by value, and texts of numerals, such
    as '2025-03', as they are spelled.

    Parameters:
        in_order: False if it matters only which values are equal. Then they may be any texts, NULL, or columns of a
            public table that is joined by the key.
    """
    try:
        read = [read_key_expression(item, scope) for item in items]
    except KeyholeError:
        return None
    found = {key for item in items for key in list_read_keys(item, scope, keys)}
    leaves = [(name, column) for one in read if one is not None for name, column in one.columns]
    found |= {key for _, column in leaves for key in keys if _shows_times_of(key, column, scope)}
    if None in read or len(found) != 1:
        return None
    (key,) = found
    if any(isinstance(one.derivation, ValueGroups) for one in (key, *(column for _, column in leaves))):
        return None  # whose values are numbers of groups, one of which may be that of NULL
    try:
        found_by = {} if in_order else {name: _list_found(column, key) for name, column in leaves}
        rows = [
            {
                name: type_value(looked.get(value), column.sql_type)
                if (looked := found_by.get(name)) is not None
                else _type(value, column, key)
                for name, column in leaves
            }
            for value in values[key.name]
        ]
        columns = [evaluate_rows(one.tree, rows) for one in read if one is not None]
    except (NotExact, KeyError):
        return None
    if in_order and not all(map(_are_comparable, columns)):
        return None
    if any(isinstance(one.raw, tuple) for column in columns for one in column):
        return None
    return key, tuple(tuple(one.raw for one in part) for part in zip(*columns, strict=True))


def _shows_times_of(key: Column, column: Column, scope: Scope) -> bool:
    """Return True if a key and a column are parts of the same time."""
    return bool(find_roots(key, scope.table) & find_roots(column, scope.table))


def _list_found(column: Column, key: Column) -> Mapping[Value, Value | None] | None:
    """Return a public table's values of a column, by the key that finds them. Return None for other columns."""
    read = column.derivation
    if not isinstance(read, Lookup) or read.has_classes or read.column != key.name or not read.is_listed:
        return None
    return dict(read.pairs)


def _type(value: Value, column: Column, key: Column) -> TypedValue:
    """Return a value of a column that is in the group of a key's value. Raise `NotExact` if none is certain."""
    classes = key.derivation
    is_base = isinstance(classes, Lookup) and classes.has_classes and classes.column == column.name
    if column.name == key.name or is_base:
        return type_value(value, column.sql_type)
    derived = column.derivation
    is_day = derived is None or (isinstance(derived, Derivation) and derived.function == "date")
    if not isinstance(value, date) or not is_day or column.sql_type not in (SqlType.DATE, SqlType.TIMESTAMP):
        raise NotExact(column.name)
    if column.sql_type is SqlType.TIMESTAMP:
        return TypedValue("timestamp", move_to_midnight(value))
    return TypedValue("date", value.date() if isinstance(value, datetime) else value)


def _are_comparable(values: Sequence[TypedValue]) -> bool:
    """Return True for values that Python orders as PostgreSQL does, in any session."""
    kinds = {one.kind for one in values}
    if any(one.raw is None or isinstance(one.raw, tuple) for one in values):
        return False
    if kinds == {"text"}:
        shapes = {re.sub(r"\d", "0", str(one.raw)) for one in values}
        return len(shapes) == 1 and all(_NUMERALS.fullmatch(one) for one in shapes)
    return kinds <= set(NUMBERS) or kinds in ({"date"}, {"timestamp"}, {"timestamptz"})
