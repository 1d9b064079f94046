"""COALESCE of a column: a constant in place of NULL."""

from datetime import date, datetime

from sqlglot import exp

from planner.catalog.catalog import Column, SqlType
from planner.predicates.column_comparison import is_real
from planner.predicates.row_scope import RowScope
from planner.predicates.terms.term import ColumnTerm
from planner.question.condition import Compare, Condition, IsNull, evaluate, join_any, round_to_double
from planner.question.three_valued import UNKNOWN, Truth
from planner.values.constant import Constant, Number, Untyped


def drop_nulls(node: exp.Coalesce, within: RowScope) -> tuple[exp.Expr, ...]:
    """Return the arguments of COALESCE except constants that are NULL."""
    arguments = (node.this, *node.expressions)
    return tuple(one for one in arguments if not within.is_constant(one) or within.fold_constant(one) is not None)


def read_coalesce(inner: ColumnTerm | None, arguments: tuple[exp.Expr, ...], within: RowScope) -> ColumnTerm | None:
    """Return the term of `coalesce(column, constant)`.

    `inner` is the first of the arguments, none of which is the constant NULL.
    """
    if inner is None or len(arguments) == 1:
        return inner
    if not inner.is_plain:
        return None
    if not within.is_constant(arguments[1]) or is_real(inner.column):
        return None
    default = within.fold_constant(arguments[1])
    if not _keeps_type(default, inner.column):
        return None
    equal = inner.compare("=", default, arguments[1]).true
    if not isinstance(equal, Compare):
        return None
    shown = _adapt_condition(equal, inner.column)
    assert isinstance(shown, Compare)
    null, standing = IsNull(inner.column.name), {inner.column.name: shown.value}

    def patch(found: Truth) -> Truth:
        if evaluate(_adapt_condition(found.true, inner.column), standing) is True:
            true = join_any((found.true, null))
            return Truth(true, found.false, found.false, true)
        false = join_any((found.false, null))
        return Truth(found.true, false, false, found.true)

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        return UNKNOWN if constant is None else patch(inner.compare(operator, constant, at))

    plain_like = inner.like

    def like(pattern: str, at: exp.Expr) -> Truth:
        assert plain_like is not None
        return patch(plain_like(pattern, at))

    return ColumnTerm(inner.column, compare, like=None if plain_like is None else like)


def _adapt_condition(condition: Condition, column: Column) -> Condition:
    """Return the condition on one column in the form for its type."""
    return round_to_double(condition) if column.sql_type is SqlType.DOUBLE else condition


def _keeps_type(default: Constant, column: Column) -> bool:
    """Return True if COALESCE of the column and the constant has the column's type."""
    match default:
        case Untyped():
            return True
        case Number(_, integral):
            return integral or column.sql_type in (SqlType.NUMERIC, SqlType.DOUBLE)
        case bool():
            return column.sql_type is SqlType.BOOLEAN
        case str():
            return column.sql_type is SqlType.TEXT
        case datetime():
            return column.sql_type is SqlType.TIMESTAMP
        case date():
            return column.sql_type in (SqlType.DATE, SqlType.TIMESTAMP)
        case _:
            return False
