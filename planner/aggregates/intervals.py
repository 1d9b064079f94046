"""Means and sums of intervals, in seconds: `avg(b - a) > '3 days'` is `avg(extract(epoch FROM b - a)) > 259200`.

PostgreSQL compares intervals by their length, in which a month is 30 days and a day 24 hours. The length of a sum or
mean is that of the seconds. PostgreSQL rounds it to a microsecond, as it rounds the mean of a numeric.
"""

from fractions import Fraction

from sqlglot import exp

from planner.aggregates.aggregate import GroupScope, contains_aggregate
from planner.catalog.row_terms import TermKind
from planner.errors import KeyholeError
from planner.parser.tree import contains_type, find_position, strip_parentheses, write_node, write_short
from planner.predicates.computed.read import read_term
from planner.predicates.computed.times import count_microseconds
from planner.predicates.row_scope import RowScope
from planner.values.constant import Constant, Interval, NotConstant, Untyped
from planner.values.datetimes import read_interval
from planner.values.decimals import convert_to_decimal
from planner.values.expressions import fold_constant


def convert_sides_to_seconds(left: exp.Expr, right: exp.Expr, within: GroupScope) -> tuple[exp.Expr, exp.Expr] | None:
    """Return both sides of a comparison in seconds.

    Return None if neither has an interval of aggregates. Raise KH204 for an interval that has no exact length.
    """
    if not any(contains_aggregate(side) and contains_type(side, exp.Sub) for side in (left, right)):
        return None
    first, second = _convert_interval(left, within), _convert_interval(right, within)
    if not any(one and contains_aggregate(one) for one in (first, second)):
        first, second = _replace_epochs(left, within), _replace_epochs(right, within)
        return None if first is left and second is right else (first, second)
    return first or _convert_constant(left, right, within), second or _convert_constant(right, left, within)


def convert_to_seconds(node: exp.Expr, within: GroupScope) -> exp.Expr:
    """Return an interval of aggregates in seconds, and any other expression unchanged."""
    return (_convert_interval(node, within) if contains_type(node, exp.Sub) else None) or _replace_epochs(node, within)


def _convert_constant(node: exp.Expr, interval: exp.Expr, within: GroupScope) -> exp.Expr:
    """Return the text or NULL that an interval is compared with, in seconds. Raise KH204 for anything else."""
    try:
        value = fold_constant(node, within.constants)
    except NotConstant:
        raise _refuse_mixed_interval(node, interval) from None
    if value is None:
        return exp.Null()
    if isinstance(value, Untyped):
        return _write_literal(_count_seconds(read_interval(value.text, node)))
    raise _refuse_mixed_interval(node, interval)


def _convert_interval(node: exp.Expr, within: GroupScope) -> exp.Expr | None:
    """Return an interval as seconds. Return None for anything else. Raise KH204 if intervals are mixed with numbers."""
    node = strip_parentheses(node)
    value = _fold_constant(node, within)
    if value is not None:
        return _write_literal(_count_seconds(value)) if isinstance(value, Interval) else None
    match node:
        case exp.Filter() | exp.Neg():
            inner = _convert_interval(node.this, within)
            return None if inner is None else _replace_parts(node, this=inner)
        case exp.Avg() | exp.Sum():
            return _convert_call(node, within)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return _convert_binary(node, within)
        case exp.Coalesce():
            first = _convert_interval(node.this, within)
            if first is None:
                return None
            others = [
                _convert_interval(one, within) or _convert_constant(one, node.this, within) for one in node.expressions
            ]
            return _replace_parts(node, this=first, expressions=others)
        case _:
            return None


def _convert_binary(node: exp.Binary, within: GroupScope) -> exp.Expr | None:
    """Return a sum of intervals, or an interval times or divided by a number, in seconds."""
    left, right = _convert_interval(node.this, within), _convert_interval(node.expression, within)
    if left is None and right is None:
        return None
    if left is not None and right is not None:
        if isinstance(node, exp.Mul | exp.Div):
            raise _refuse_quotient(node)
        return _replace_parts(node, this=left, expression=right)
    if isinstance(node, exp.Mul):
        return _replace_parts(node, this=left) if left is not None else _replace_parts(node, expression=right)
    if isinstance(node, exp.Div) and left is not None:
        return _replace_parts(node, this=left)
    raise _refuse_mixed_interval(*((node.this, node.expression) if left is None else (node.expression, node.this)))


def _convert_call(node: exp.Expr, within: GroupScope) -> exp.Expr | None:
    argument = node.this
    if (
        not isinstance(argument, exp.Expr)
        or not contains_type(argument, exp.Sub)
        or contains_type(argument, exp.Distinct)
    ):
        return None
    term = read_term(argument, RowScope(within.scope, within.constants))
    if term is None or term.kind is not TermKind.LENGTH:
        return None
    return _replace_parts(node, this=exp.Extract(this=exp.var("EPOCH"), expression=argument.copy()))


def _replace_epochs(node: exp.Expr, within: GroupScope) -> exp.Expr:
    """Return the node with each `extract(epoch FROM interval)` of an interval of aggregates replaced by seconds."""
    if not contains_type(node, exp.Extract) or not contains_aggregate(node):
        return node
    changed = node.copy()
    for found in list(changed.find_all(exp.Extract)):
        of = found.expression
        inner = _convert_interval(of, within) if contains_aggregate(of) else None
        if inner is None:
            continue
        if str(found.this).lower().strip("'") != "epoch" or _has_months(of, within):
            raise KeyholeError(
                "KH204",
                f"{write_short(found)} is a part of an interval that Keyhole does not compare",
                detail="PostgreSQL keeps days and hours of a mean separately, so its days are not its length.",
                hint=f"Compare its length: extract(epoch FROM {write_node(of)}) / 86400.",
                position=find_position(node),
            )
        seconds = exp.Paren(this=inner)
        if found is changed:
            return seconds
        found.replace(seconds)
    return changed


def _has_months(node: exp.Expr, within: GroupScope) -> bool:
    """Return True if an interval beside the aggregates has months.

    EXTRACT counts 12 of them as a year of 365.25 days.
    """
    values = (_fold_constant(one, within) for one in node.find_all(exp.Interval, exp.Cast))
    return any(isinstance(value, Interval) and value.months for value in values)


def _replace_parts(node: exp.Expr, **parts: object) -> exp.Expr:
    made = node.copy()
    for name, part in parts.items():
        made.set(name, exp.Paren(this=part) if isinstance(part, exp.Binary) else part)
    return made


def _fold_constant(node: exp.Expr, within: GroupScope) -> Constant:
    """Return the value of a constant. Return None if it is none."""
    try:
        return fold_constant(node, within.constants)
    except NotConstant:
        return None


def _count_seconds(value: Interval) -> Fraction:
    return Fraction(count_microseconds(value), 10**6)


def _write_literal(seconds: Fraction) -> exp.Expr:
    return exp.Literal.number(f"{convert_to_decimal(seconds):f}")


def _refuse_mixed_interval(node: exp.Expr, interval: exp.Expr) -> KeyholeError:
    return KeyholeError(
        "KH204",
        f"{write_node(interval)[:60]} is an interval, and {write_node(node)[:60]} is none",
        detail="PostgreSQL compares and adds an interval to an interval only.",
        hint="Write interval '3 days', or compare seconds: extract(epoch FROM ...).",
        position=find_position(node),
    )


def _refuse_quotient(node: exp.Expr) -> KeyholeError:
    left, right = (write_node(one)[:60] for one in (node.this, node.expression))
    return KeyholeError(
        "KH204",
        f"{write_short(node)} is no product or quotient of intervals that PostgreSQL has",
        hint=f"Write their seconds: extract(epoch FROM {left}) / extract(epoch FROM {right}).",
        position=find_position(node),
    )
