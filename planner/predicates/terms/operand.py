"""Functions of one column whose comparisons with constants are conditions on the column itself, without any arithmetic.

A term is known by how it is compared: `x::date >= d` is `x >= d`, `age + 5 > 70` is `age > 65`, `left(t, 2) = 'ab'` is
`t LIKE 'ab%'`. An expression that is not exactly such a condition, for every value PostgreSQL has, is no term.
"""

from fractions import Fraction

from sqlglot import exp

from planner.catalog.catalog import SqlType
from planner.parser.tree import contains_type, strip_parentheses
from planner.predicates.computed.compare import computed_term
from planner.predicates.infinite_times import written_term
from planner.predicates.row_scope import RowScope
from planner.predicates.terms.cast import cast_term
from planner.predicates.terms.coalesce import coalesced_term, without_nulls
from planner.predicates.terms.formatted import formatted_term
from planner.predicates.terms.number import absolute_term, moved_term, scaled_term
from planner.predicates.terms.term import ColumnTerm
from planner.predicates.terms.text import contained_term, text_term
from planner.predicates.terms.time import extracted_term, later_term, truncated_term
from planner.predicates.where_refusals import divided_column, no_term, subquery_inside, unlisted_refusal
from planner.scope.name_resolution import find_column
from planner.values.constant import Number, Untyped, read_number
from planner.values.datetimes import normalise_unit


def operand(node: exp.Expr, within: RowScope) -> ColumnTerm:
    """Read the column, or function of one, on one side of a comparison. Raise KH205 for anything else."""
    found = term(node, within) or computed_term(node, within)
    if found is None and isinstance(inside := strip_parentheses(node), exp.TimeToStr):
        found = formatted_term(inside, lambda part: operand(part, within))
    if found is not None:
        return found
    if node.find(exp.Query):
        raise subquery_inside(node)
    column = find_column(node, within.scope)
    if column is not None:
        raise unlisted_refusal(
            node, f'column "{column.name}" has type {column.declared}, which row conditions cannot use'
        )
    inside = strip_parentheses(node)
    if isinstance(inside, exp.Div) and (divided := find_column(inside.this, within.scope)) is not None:
        raise divided_column(inside, whole=divided.sql_type is SqlType.INTEGER)
    raise no_term(node)


def term(node: exp.Expr, within: RowScope) -> ColumnTerm | None:
    """Return the term that an expression is; None if it is none. Raise KH201 for unknown names, KH205, KH212."""
    node = strip_parentheses(node)
    column = find_column(node, within.scope)
    if column is not None:
        return written_term(column, node, within.scope)
    match node:
        case exp.Cast() if not isinstance(node, exp.TryCast):
            return cast_term(node, term(node.this, within), within)
        case exp.Date() if not node.expressions and node.args.get("zone") is None:
            return truncated_term(node.this, term(node.this, within), "day", within, of_dates=True)
        case exp.TimestampTrunc() if node.args.get("zone") is None:
            unit = normalise_unit(str(node.unit))
            return truncated_term(node.this, term(node.this, within), unit, within, of_dates=False)
        case exp.Extract():
            return extracted_term(node, term(node.expression, within), within)
        case exp.Add() | exp.Sub() | exp.Mul():
            return _arithmetic(node, within)
        case exp.Neg():
            return scaled_term(term(node.this, within), Number(Fraction(-1), is_integral=True))
        case exp.Abs():
            return absolute_term(term(node.this, within))
        case exp.Left() | exp.Right() | exp.Substring() | exp.Lower():
            return text_term(node, term(node.this, within), within)
        case exp.StrPosition():
            inner = term(node.this, within) or computed_term(node.this, within)
            return None if inner is None else contained_term(node, inner, within)
        case exp.Coalesce():
            arguments = without_nulls(node, within)
            return coalesced_term(term(arguments[0], within) if arguments else None, arguments, within)
        case _:
            return None


def _arithmetic(node: exp.Add | exp.Sub | exp.Mul, within: RowScope) -> ColumnTerm | None:
    left, right = strip_parentheses(node.this), strip_parentheses(node.expression)
    if within.is_constant(left) == within.is_constant(right):
        return None
    turned = within.is_constant(left)
    inner, constant = term(right if turned else left, within), left if turned else right
    if inner is None:
        return None
    by = within.constant(constant)
    if inner.column.sql_type in (SqlType.DATE, SqlType.TIMESTAMP):
        backwards = turned and isinstance(node, exp.Sub)
        return None if backwards else later_term(inner, by, 1 if isinstance(node, exp.Add) else -1)
    by = read_number(by.text, constant) if isinstance(by, Untyped) else by
    if not inner.exact or not isinstance(by, Number):
        return None
    if not by.is_integral and contains_type(constant, exp.Cast, exp.Parameter):
        return None  # it may be a double, with which PostgreSQL would round
    if isinstance(node, exp.Mul):
        return scaled_term(inner, by)
    if turned and isinstance(node, exp.Sub):
        return moved_term(scaled_term(inner, Number(Fraction(-1), is_integral=True)), by, 1)
    return moved_term(inner, by, 1 if isinstance(node, exp.Add) else -1)
