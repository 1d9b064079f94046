"""Means and sums of intervals, in seconds: `avg(b - a) > '3 days'` is `avg(extract(epoch FROM b - a)) > 259200`.

PostgreSQL compares intervals by their length, of which a month is 30 days and a day 24 hours. The length of a sum or
mean is that of the seconds, which PostgreSQL rounds to a microsecond as it rounds the mean of a numeric.
"""

from fractions import Fraction

from sqlglot import exp

from planner.aggregates.aggregate import GroupScope, contains_aggregate
from planner.catalog.row_terms import TermKind
from planner.errors import KeyholeError
from planner.parser.tree import contains_type, find_position, strip_parentheses, write_node, write_short
from planner.predicates.computed.read import read_term
from planner.predicates.computed.times import span_microseconds
from planner.predicates.row_scope import RowScope
from planner.values.constant import Constant, Interval, NotConstant, Untyped
from planner.values.datetimes import read_interval
from planner.values.decimals import convert_to_decimal
from planner.values.expressions import fold_constant


def in_seconds(left: exp.Expr, right: exp.Expr, within: GroupScope) -> tuple[exp.Expr, exp.Expr] | None:
    """Return both sides of a comparison in seconds; None if neither has an interval of aggregates. Raise KH204."""
    if not any(contains_aggregate(side) and contains_type(side, exp.Sub) for side in (left, right)):
        return None
    first, second = _seconds(left, within), _seconds(right, within)
    if not any(one and contains_aggregate(one) for one in (first, second)):
        first, second = _without_epochs(left, within), _without_epochs(right, within)
        return None if first is left and second is right else (first, second)
    return first or _constant_seconds(left, right, within), second or _constant_seconds(right, left, within)


def length_in_seconds(node: exp.Expr, within: GroupScope) -> exp.Expr:
    """Return an interval of aggregates in seconds, any other expression as it is."""
    return (_seconds(node, within) if contains_type(node, exp.Sub) else None) or _without_epochs(node, within)


def _constant_seconds(node: exp.Expr, interval: exp.Expr, within: GroupScope) -> exp.Expr:
    """Read the text or NULL that an interval is compared with. Raise KH204 for anything else."""
    try:
        value = fold_constant(node, within.given)
    except NotConstant:
        raise _no_interval(node, interval) from None
    if value is None:
        return exp.Null()
    if isinstance(value, Untyped):
        return _literal(_length(read_interval(value.text, node)))
    raise _no_interval(node, interval)


def _seconds(node: exp.Expr, within: GroupScope) -> exp.Expr | None:
    """Return an interval as seconds; None for anything else. Raise KH204 if intervals are mixed with numbers."""
    node = strip_parentheses(node)
    value = _constant(node, within)
    if value is not None:
        return _literal(_length(value)) if isinstance(value, Interval) else None
    match node:
        case exp.Filter() | exp.Neg():
            inner = _seconds(node.this, within)
            return None if inner is None else _replace_parts(node, this=inner)
        case exp.Avg() | exp.Sum():
            return _of_call(node, within)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return _of_both(node, within)
        case exp.Coalesce():
            first = _seconds(node.this, within)
            if first is None:
                return None
            others = [_seconds(one, within) or _constant_seconds(one, node.this, within) for one in node.expressions]
            return _replace_parts(node, this=first, expressions=others)
        case _:
            return None


def _of_both(node: exp.Binary, within: GroupScope) -> exp.Expr | None:
    """Return a sum of intervals, or an interval times or by a number."""
    left, right = _seconds(node.this, within), _seconds(node.expression, within)
    if left is None and right is None:
        return None
    if left is not None and right is not None:
        if isinstance(node, exp.Mul | exp.Div):
            raise _no_quotient(node)
        return _replace_parts(node, this=left, expression=right)
    if isinstance(node, exp.Mul):
        return _replace_parts(node, this=left) if left is not None else _replace_parts(node, expression=right)
    if isinstance(node, exp.Div) and left is not None:
        return _replace_parts(node, this=left)
    raise _no_interval(*((node.this, node.expression) if left is None else (node.expression, node.this)))


def _of_call(node: exp.Expr, within: GroupScope) -> exp.Expr | None:
    argument = node.this
    if (
        not isinstance(argument, exp.Expr)
        or not contains_type(argument, exp.Sub)
        or contains_type(argument, exp.Distinct)
    ):
        return None
    term = read_term(argument, RowScope(within.scope, within.given))
    if term is None or term.kind is not TermKind.LENGTH:
        return None
    return _replace_parts(node, this=exp.Extract(this=exp.var("EPOCH"), expression=argument.copy()))


def _without_epochs(node: exp.Expr, within: GroupScope) -> exp.Expr:
    """Return the node with each `extract(epoch FROM interval)` replaced by seconds, for intervals of aggregates."""
    if not contains_type(node, exp.Extract) or not contains_aggregate(node):
        return node
    changed = node.copy()
    for found in list(changed.find_all(exp.Extract)):
        of = found.expression
        inner = _seconds(of, within) if contains_aggregate(of) else None
        if inner is None:
            continue
        if str(found.this).lower().strip("'") != "epoch" or _has_months(of, within):
            raise KeyholeError(
                "KH204",
                f"{write_short(found)} is a part of an interval that Keyhole does not compare",
                detail="PostgreSQL keeps days and hours of a mean apart, so that its days are not those of its length.",
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

    When extracted, 12 of them are a year of 365.25 days.
    """
    values = (_constant(one, within) for one in node.find_all(exp.Interval, exp.Cast))
    return any(isinstance(value, Interval) and value.months for value in values)


def _replace_parts(node: exp.Expr, **parts: object) -> exp.Expr:
    made = node.copy()
    for name, part in parts.items():
        made.set(name, exp.Paren(this=part) if isinstance(part, exp.Binary) else part)
    return made


def _constant(node: exp.Expr, within: GroupScope) -> Constant:
    """Return the value of a constant; None if it is none."""
    try:
        return fold_constant(node, within.given)
    except NotConstant:
        return None


def _length(value: Interval) -> Fraction:
    return Fraction(span_microseconds(value), 10**6)


def _literal(seconds: Fraction) -> exp.Expr:
    return exp.Literal.number(f"{convert_to_decimal(seconds):f}")


def _no_interval(node: exp.Expr, interval: exp.Expr) -> KeyholeError:
    return KeyholeError(
        "KH204",
        f"{write_node(interval)[:60]} is an interval, and {write_node(node)[:60]} is none",
        detail="PostgreSQL compares and adds an interval to an interval only.",
        hint="Write interval '3 days', or compare seconds: extract(epoch FROM ...).",
        position=find_position(node),
    )


def _no_quotient(node: exp.Expr) -> KeyholeError:
    left, right = (write_node(one)[:60] for one in (node.this, node.expression))
    return KeyholeError(
        "KH204",
        f"{write_short(node)} is no product or quotient of intervals that PostgreSQL has",
        hint=f"Write their seconds: extract(epoch FROM {left}) / extract(epoch FROM {right}).",
        position=find_position(node),
    )
