"""Numbers computed from a row that are keys, identified by their text with the scope's spelling of columns."""

from sqlglot import exp

from planner.catalog.catalog import Column, ComputedName, SqlType, ValueGroups
from planner.scope.name_resolution import Scope
from planner.scope.truth_keys import spell_canonically

NUMBERS = (
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.Mod,
    exp.Abs,
    exp.Neg,
    exp.Coalesce,
    exp.Nullif,
    exp.Greatest,
    exp.Least,
    exp.Length,
    exp.Extract,
    exp.Floor,
    exp.Ceil,
    exp.Round,
    exp.Trunc,
)


def find_number(node: exp.Expr, scope: Scope) -> Column | None:
    """Return the key column that holds this computed number. Return None for any other expression."""
    if not isinstance(node, NUMBERS) or not any(is_number_key(column) for column in scope.table.columns):
        return None
    name = spell_canonically(node, scope)
    return next((column for column in scope.table.columns if column.name == name and is_number_key(column)), None)


def is_number_key(column: Column) -> bool:
    """Return True if a key's groups are the values of a number that is computed from a row."""
    parts = column.derivation
    return (
        isinstance(parts, ValueGroups) and isinstance(parts.column, ComputedName) and parts.kind is not SqlType.BOOLEAN
    )


def find_shown_type(key: Column) -> str:
    """Return the type that PostgreSQL gives the number of such a key."""
    assert isinstance(key.derivation, ValueGroups)
    assert isinstance(key.derivation.column, ComputedName)
    return str(key.derivation.column.column.comment)


def name_number(key: Column) -> str:
    """Return the name of the column that holds the number in the relation of answered keys."""
    return f"{key.name} as a number"
