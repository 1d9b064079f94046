"""Conditions of a row that are keys, identified by their text with the scope's spelling of columns."""

from hashlib import sha256

from sqlglot import exp

from planner.catalog.catalog import Column, ComputedName, SqlType, ValueGroups
from planner.parser.tree import write_node
from planner.scope.name_resolution import Scope, find_column

TEST_TYPES = (
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.In,
    exp.Between,
    exp.Like,
    exp.ILike,
    exp.StartsWith,
    exp.RegexpLike,
    exp.Escape,
)


def is_test(node: exp.Expr) -> bool:
    """Return True for a condition that may be a key. `x !~ p` is one, although its text never contains `x ~ p`."""
    return isinstance(node, TEST_TYPES) or (isinstance(node, exp.Not) and isinstance(node.this, exp.RegexpLike))


def find_truth(node: exp.Expr, scope: Scope) -> Column | None:
    """Return the key column that holds the truth of this condition. Return None for any other expression."""
    if not is_test(node) or not any(is_truth_key(column) for column in scope.table.columns):
        return None
    name = spell_canonically(node, scope)
    return next((column for column in scope.table.columns if column.name == name and is_truth_key(column)), None)


def is_truth_key(column: Column) -> bool:
    """Return True if a key's groups are the truth values of a condition on a row."""
    parts = column.derivation
    return isinstance(parts, ValueGroups) and isinstance(parts.column, ComputedName) and parts.kind is SqlType.BOOLEAN


def name_value(key: Column) -> str:
    """Return the name of the column that holds the condition's truth in the relation of answered keys.

    PostgreSQL reads 63 bytes of a name; the first bytes make it unique among the keys and all other columns.
    """
    return f"{sha256(key.name.encode()).hexdigest()[:16]} {key.name}"


def spell_canonically(node: exp.Expr, scope: Scope) -> str:
    """Return the text of an expression with every reference to a column spelled as the scope spells it."""

    def spell(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and (found := find_column(part, scope)) is not None:
            return scope.make_reference(found)
        return part

    copied: exp.Expr = exp.Tuple(expressions=[node.copy()]).expressions[0]
    return write_node(copied.transform(spell, copy=False))
