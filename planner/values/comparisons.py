"""Comparisons of two constants, with PostgreSQL's types."""

from datetime import date, datetime
from fractions import Fraction

from sqlglot import exp

from planner.parser.tree import strip_parentheses
from planner.values import expressions as constant
from planner.values.constant import (
    ArrayValue,
    Constant,
    ConstantContext,
    ForeignValue,
    Interval,
    NotConstant,
    Number,
    TimeOfDay,
    Untyped,
    read_number,
    refuse_constant,
)
from planner.values.datetimes import move_to_midnight, read_moment
from planner.values.operators import COMPARISONS, OPERATORS


def compare_constants(left: Constant, operator: str, right: Constant, node: exp.Expr) -> bool | None:
    """Return the truth of `left operator right`; None if either is NULL.

    Raise KH212 for constants of different types.
    """
    if left is None or right is None:
        return None
    uncompared = Interval | TimeOfDay | ForeignValue | ArrayValue
    if isinstance(left, uncompared) or isinstance(right, uncompared):
        raise refuse_constant(
            node, "these two constants cannot be compared", hint="Compare two constants of one type: 1 = 1."
        )
    first, second = _convert_to_common_type(left, right, node), _convert_to_common_type(right, left, node)
    ordered = isinstance(first, Fraction | date)
    if type(first) is not type(second) or not (ordered or operator in ("=", "<>")):
        raise refuse_constant(
            node, "these two constants cannot be compared", hint="Compare two constants of one type: 1 = 1."
        )
    return COMPARISONS[operator](first, second)


def _convert_to_common_type(value: Constant, other: Constant, node: exp.Expr) -> object:
    """Return a constant as a value that Python compares.

    A quoted text gets the type of the other; times are timestamps.
    """
    match value, other:
        case Untyped(text), Number():
            return read_number(text, node).value
        case Untyped(text), bool():
            return constant.read_truth(text, node)
        case Untyped(text), date():
            found = read_moment(text, node)
            return found if isinstance(other, datetime) else move_to_midnight(found.date())
        case Untyped(text), _:
            return text
        case Number(exact, _), _:
            return exact
        case date(), _:
            return move_to_midnight(value)
        case _:
            return value


def fold_condition(node: exp.Expr, given: ConstantContext) -> bool | None:
    """Return the value of a condition without columns.

    Return None if it is unknown or not constant. Raise KH212 for constants of different types, KH109 for a parameter
    without value.
    """
    match strip_parentheses(node):
        case exp.Not() as inner:
            value = fold_condition(inner.this, given)
            return None if value is None else not value
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE() as inner:
            try:
                left, right = constant.fold_constant(inner.this, given), constant.fold_constant(inner.expression, given)
            except NotConstant:
                return None
            return compare_constants(left, OPERATORS[type(inner)], right, inner)
        case inner:
            try:
                value_ = constant.fold_constant(inner, given)
            except NotConstant:
                return None
            return value_ if isinstance(value_, bool) else None
