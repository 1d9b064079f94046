"""WHERE and FILTER: sqlglot's tree to a `Condition`, by an allow-list of comparisons of columns with constants.

A condition is kept as four ordinary conditions, for the rows where it is true, false, not true and not false. So NOT
and IS TRUE are exact under SQL's three values, and the result needs no value "unknown".
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from sqlglot import exp

from planner.catalog import Column, SqlType
from planner.column_comparison import boolean, compared, unlisted
from planner.condition import (
    ALWAYS,
    COMPARISONS,
    NEVER,
    Compare,
    Condition,
    IsNull,
    Like,
    Not,
    Within,
    all_of,
    any_of,
    columns,
)
from planner.constant import Constant, Given, NotConstant, Number, Untyped, fold, truth
from planner.errors import KeyholeError
from planner.like import unfinished
from planner.reference import Scope, referenced
from planner.syntax import bare, position, written
from planner.truth import UNKNOWN, Truth, always, known_unless_null

_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


@dataclass(frozen=True, slots=True)
class RowScope:
    """What a row condition may refer to: the question's table under its name, and given constants."""

    scope: Scope
    given: Given


def row_condition(node: exp.Expr, scope: Scope, given: Given) -> Condition:
    """The condition that holds exactly on the rows where the expression is true.

    Guarantee: evaluating it can neither raise nor take more than linear time on any row. Raises KH205 for what is not
    on the allow-list, KH201 for unknown columns, KH212 for constants of a wrong type.
    """
    return row_truth(node, scope, given).true


def row_truth(node: exp.Expr, scope: Scope, given: Given) -> Truth:
    """The expression's four conditions. Raises as `row_condition` does."""
    return _truth(node, RowScope(scope, given))


def _truth(node: exp.Expr, within: RowScope) -> Truth:
    node = bare(node)
    result = _positive(node, within)
    return result.negated() if node.args.get("negate") else result


def _positive(node: exp.Expr, within: RowScope) -> Truth:
    match node:
        case exp.And():
            parts = [_truth(part, within) for part in node.flatten()]
            return _combined(parts, conjunction=True)
        case exp.Or():
            parts = [_truth(part, within) for part in node.flatten()]
            return _combined(parts, conjunction=False)
        case exp.Not():
            return _truth(node.this, within).negated()
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return _comparison(node, OPERATORS[type(node)], within)
        case exp.NullSafeEQ() | exp.NullSafeNEQ():
            return _distinct(node, within)
        case exp.Between():
            return _between(node, within)
        case exp.In():
            return _membership(node, within)
        case exp.Like():
            return _like(node, within)
        case exp.Is():
            return _is(node, within)
        case _:
            return _bare_truth(node, within)


def _combined(parts: Iterable[Truth], *, conjunction: bool) -> Truth:
    parts = tuple(parts)
    every, some = (all_of, any_of) if conjunction else (any_of, all_of)
    return Truth(
        every(part.true for part in parts),
        some(part.false for part in parts),
        some(part.not_true for part in parts),
        every(part.not_false for part in parts),
    )


def _constant(node: exp.Expr, within: RowScope) -> Constant:
    try:
        return fold(node, within.given)
    except NotConstant as missing:
        # a name that this table does not have is refused as such
        referenced(missing.node, within.scope)
        raise unlisted(missing.node, f"{written(missing.node)[:80]} is not a constant") from None


def _is_constant(node: exp.Expr, within: RowScope) -> bool:
    try:
        fold(node, within.given)
    except NotConstant:
        return False
    return True


def _column(node: exp.Expr, within: RowScope) -> Column:
    column = referenced(node, within.scope)
    if column is None:
        if node.find(exp.Query):
            raise KeyholeError("KH107", "a subquery inside a question", position=position(node))
        raise unlisted(node, f"{written(node)[:80]} is not allowed in a row condition")
    if column.sql_type is SqlType.OTHER:
        raise unlisted(node, f'column "{column.name}" has type {column.declared}, which row conditions cannot use')
    return column


def _sides(node: exp.Expr, operator: str, within: RowScope) -> tuple[exp.Expr, str, exp.Expr]:
    """Column side, operator and constant side, turned round if needed."""
    left, right = bare(node.this), bare(node.expression)
    if referenced(left, within.scope) is None and referenced(right, within.scope) is not None:
        return right, _FLIPPED[operator], left
    return left, operator, right


def _comparison(node: exp.Expr, operator: str, within: RowScope) -> Truth:
    left, right = bare(node.this), bare(node.expression)
    found = within.scope.membership(node) if operator == "=" else None
    if found is not None:  # of a row that finds nothing, the public side is NULL
        return Truth(found, NEVER, any_of((Not(found), *(IsNull(name) for name in columns(found)))), ALWAYS)
    if _is_constant(left, within) and _is_constant(right, within):
        return _constants(node, operator, within.given)
    left, operator, right = _sides(node, operator, within)
    return compared(_column(left, within), operator, _constant(right, within), right)


def _constants(node: exp.Expr, operator: str, given: Given) -> Truth:
    left, right = fold(node.this, given), fold(node.expression, given)
    if left is None or right is None:
        return UNKNOWN
    first, second = _plain(left), _plain(right)
    ordered = isinstance(first, Fraction | date)
    if type(first) is not type(second) or not (ordered or operator in ("=", "<>")):
        raise KeyholeError("KH212", "these two constants cannot be compared", position=position(node))
    return always(value=COMPARISONS[operator](first, second))


def _plain(value: Constant) -> object:
    match value:
        case Number(exact, _):
            return exact
        case Untyped(text):
            return text
        case _:
            return value


def _distinct(node: exp.Expr, within: RowScope) -> Truth:
    """IS [NOT] DISTINCT FROM a constant, never unknown."""
    left, _, right = _sides(node, "=", within)
    column, constant = _column(left, within), _constant(right, within)
    if constant is None:
        null: Condition = IsNull(column.name)
        same = Truth(null, Not(null), Not(null), null)
    else:
        equal = compared(column, "=", constant, right)
        same = Truth(equal.true, equal.not_true, equal.not_true, equal.true)
    return same if isinstance(node, exp.NullSafeEQ) else same.negated()


def _between(node: exp.Expr, within: RowScope) -> Truth:
    if node.args.get("symmetric"):
        raise unlisted(node, "BETWEEN SYMMETRIC is not supported")
    low, high = node.args["low"], node.args["high"]
    column = _column(bare(node.this), within)
    return _combined(
        (
            compared(column, ">=", _constant(low, within), low),
            compared(column, "<=", _constant(high, within), high),
        ),
        conjunction=True,
    )


def _membership(node: exp.Expr, within: RowScope) -> Truth:
    if not node.expressions or node.args.get("query") is not None:
        raise KeyholeError("KH107", "a subquery inside a question", position=position(node))
    column = _column(bare(node.this), within)
    parts = [compared(column, "=", _constant(item, within), item) for item in node.expressions]
    result = _combined(parts, conjunction=False)
    values = {part.true.value for part in parts if isinstance(part.true, Compare)}
    if len(values) < 2 or not all(isinstance(part.true, Compare) or part.true == NEVER for part in parts):
        return result
    found = Within(column.name, tuple(sorted(values)))
    if any(part is UNKNOWN for part in parts):
        return Truth(found, NEVER, any_of((Not(found), IsNull(column.name))), ALWAYS)
    return known_unless_null(column.name, true=found, false=Not(found))


def _like(node: exp.Expr, within: RowScope) -> Truth:
    column = _column(bare(node.this), within)
    if column.sql_type is not SqlType.TEXT:
        raise KeyholeError("KH212", f'LIKE needs a text column; "{column.name}" is not', position=position(node))
    pattern = _constant(node.expression, within)
    if pattern is None:
        return UNKNOWN
    text = pattern.text if isinstance(pattern, Untyped) else pattern
    if not isinstance(text, str):
        raise KeyholeError("KH212", "a LIKE pattern is text", position=position(node.expression))
    if unfinished(text):
        raise KeyholeError("KH212", "a LIKE pattern ends in an unfinished escape", position=position(node.expression))
    like = Like(column.name, text)
    return known_unless_null(column.name, true=like, false=Not(like))


def _is(node: exp.Expr, within: RowScope) -> Truth:
    wanted = bare(node.expression)
    if isinstance(wanted, exp.Null):
        column = referenced(bare(node.this), within.scope)
        if column is not None:
            null: Condition = IsNull(column.name)
            return Truth(null, Not(null), Not(null), null)
        truth_ = _truth(node.this, within)
        unknown = all_of((truth_.not_true, truth_.not_false))
        known = any_of((truth_.true, truth_.false))
        return Truth(unknown, known, known, unknown)
    if isinstance(wanted, exp.Boolean):
        inner = _truth(node.this, within)
        if wanted.this:
            return Truth(inner.true, inner.not_true, inner.not_true, inner.true)
        return Truth(inner.false, inner.not_false, inner.not_false, inner.false)
    raise unlisted(node, f"{written(node)[:80]} is not allowed in a row condition")


def _bare_truth(node: exp.Expr, within: RowScope) -> Truth:
    """A boolean column, or a boolean constant."""
    if referenced(node, within.scope) is None and _is_constant(node, within):
        value = fold(node, within.given)
        if isinstance(value, Untyped):
            value = truth(value.text, node)
        if value is not None and not isinstance(value, bool):
            raise KeyholeError("KH212", "a condition is a boolean", position=position(node))
        return UNKNOWN if value is None else always(value=value)
    column = _column(node, within)
    if column.sql_type is not SqlType.BOOLEAN:
        raise KeyholeError("KH212", f'column "{column.name}" is not a boolean', position=position(node))
    return boolean(column, "=", constant=True, node=node)


def constant_truth(node: exp.Expr, given: Given) -> bool | None:
    """The value of a condition without columns; None if it is unknown or no constant. Raises KH212, KH109."""
    match bare(node):
        case exp.Not() as inner:
            value = constant_truth(inner.this, given)
            return None if value is None else not value
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE() as inner:
            try:
                truth_ = _constants(inner, OPERATORS[type(inner)], given)
            except NotConstant:
                return None
            return True if truth_.true == ALWAYS else False if truth_.false == ALWAYS else None
        case inner:
            try:
                value_ = fold(inner, given)
            except NotConstant:
                return None
            return value_ if isinstance(value_, bool) else None
