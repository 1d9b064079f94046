"""Two constants compared with one another, as PostgreSQL would type them."""

from datetime import date, datetime
from fractions import Fraction

from sqlglot import exp

from planner.parser.tree import bare
from planner.values import expressions as constant
from planner.values.constant import (
    ArrayValue,
    Clock,
    Constant,
    Foreign,
    Given,
    NotConstant,
    Number,
    Span,
    Untyped,
    number,
    wrong,
)
from planner.values.datetimes import midnight, moment
from planner.values.operators import COMPARISONS, OPERATORS


def constants_compared(left: Constant, operator: str, right: Constant, node: exp.Expr) -> bool | None:
    """Return `left operator right`; None if either is NULL. Raise KH212 for constants of different types."""
    if left is None or right is None:
        return None
    uncompared = Span | Clock | Foreign | ArrayValue
    if isinstance(left, uncompared) or isinstance(right, uncompared):
        raise wrong(node, "these two constants cannot be compared", hint="Compare two constants of one type: 1 = 1.")
    first, second = _alike(left, right, node), _alike(right, left, node)
    ordered = isinstance(first, Fraction | date)
    if type(first) is not type(second) or not (ordered or operator in ("=", "<>")):
        raise wrong(node, "these two constants cannot be compared", hint="Compare two constants of one type: 1 = 1.")
    return COMPARISONS[operator](first, second)


def _alike(value: Constant, other: Constant, node: exp.Expr) -> object:
    """Return a constant as Python compares it, a quoted one with the type of the other; times as timestamps."""
    match value, other:
        case Untyped(text), Number():
            return number(text, node).value
        case Untyped(text), bool():
            return constant.truth(text, node)
        case Untyped(text), date():
            found = moment(text, node)
            return found if isinstance(other, datetime) else midnight(found.date())
        case Untyped(text), _:
            return text
        case Number(exact, _), _:
            return exact
        case date(), _:
            return midnight(value)
        case _:
            return value


def constant_truth(node: exp.Expr, given: Given) -> bool | None:
    """Return the value of a condition without columns; None if it is unknown or no constant. Raise KH212, KH109."""
    match bare(node):
        case exp.Not() as inner:
            value = constant_truth(inner.this, given)
            return None if value is None else not value
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE() as inner:
            try:
                left, right = constant.fold(inner.this, given), constant.fold(inner.expression, given)
            except NotConstant:
                return None
            return constants_compared(left, OPERATORS[type(inner)], right, inner)
        case inner:
            try:
                value_ = constant.fold(inner, given)
            except NotConstant:
                return None
            return value_ if isinstance(value_, bool) else None
