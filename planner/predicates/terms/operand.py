"""Functions of one column whose comparisons with constants are conditions on the column itself, without any arithmetic.

A term is defined by its comparisons: `x::date >= d` is `x >= d`, `age + 5 > 70` is `age > 65`, `left(t, 2) = 'ab'` is
`t LIKE 'ab%'`. An expression that is not exactly such a condition, for every value PostgreSQL has, is no term.
"""

from fractions import Fraction

from sqlglot import exp

from planner.catalog.catalog import SqlType
from planner.parser.tree import contains_type, strip_parentheses
from planner.predicates.computed.compare import read_computed_term
from planner.predicates.infinite_times import read_written_term
from planner.predicates.row_scope import RowScope
from planner.predicates.terms.cast import read_cast
from planner.predicates.terms.coalesce import drop_nulls, read_coalesce
from planner.predicates.terms.formatted import read_to_char
from planner.predicates.terms.number import drop_sign, scale_term, shift_term
from planner.predicates.terms.term import ColumnTerm
from planner.predicates.terms.text import read_text_function, read_word_position
from planner.predicates.terms.time import read_extract, read_truncation, shift_time
from planner.predicates.where_refusals import (
    refuse_division,
    refuse_function,
    refuse_subquery,
    refuse_unlisted_expression,
)
from planner.scope.name_resolution import find_column
from planner.values.constant import Number, Untyped, read_number
from planner.values.datetimes import normalise_unit


def read_operand(node: exp.Expr, within: RowScope) -> ColumnTerm:
    """Return the term on one side of a comparison: a column, or a function of one.

    Raise KH205 for any other expression.
    """
    found = read_term(node, within) or read_computed_term(node, within)
    if found is None and isinstance(inside := strip_parentheses(node), exp.TimeToStr):
        found = read_to_char(inside, lambda part: read_operand(part, within))
    if found is not None:
        return found
    if node.find(exp.Query):
        raise refuse_subquery(node)
    column = find_column(node, within.scope)
    if column is not None:
        raise refuse_unlisted_expression(
            node, f'column "{column.name}" has type {column.declared}, which row conditions cannot use'
        )
    inside = strip_parentheses(node)
    if isinstance(inside, exp.Div) and (divided := find_column(inside.this, within.scope)) is not None:
        raise refuse_division(inside, drops_remainder=divided.sql_type is SqlType.INTEGER)
    raise refuse_function(node)


def read_term(node: exp.Expr, within: RowScope) -> ColumnTerm | None:
    """Return the term of an expression. Return None if it is no term.

    Raise KH201 for unknown names, KH205 for an expression off the allow-list, KH212 for a constant of a wrong type.
    """
    node = strip_parentheses(node)
    column = find_column(node, within.scope)
    if column is not None:
        return read_written_term(column, node, within.scope)
    match node:
        case exp.Cast() if not isinstance(node, exp.TryCast):
            return read_cast(node, read_term(node.this, within), within)
        case exp.Date() if not node.expressions and node.args.get("zone") is None:
            return read_truncation(node.this, read_term(node.this, within), "day", within, gives_date=True)
        case exp.TimestampTrunc() if node.args.get("zone") is None:
            unit = normalise_unit(str(node.unit))
            return read_truncation(node.this, read_term(node.this, within), unit, within, gives_date=False)
        case exp.Extract():
            return read_extract(node, read_term(node.expression, within), within)
        case exp.Add() | exp.Sub() | exp.Mul():
            return _read_arithmetic(node, within)
        case exp.Neg():
            return scale_term(read_term(node.this, within), Number(Fraction(-1), is_integral=True))
        case exp.Abs():
            return drop_sign(read_term(node.this, within))
        case exp.Left() | exp.Right() | exp.Substring() | exp.Lower():
            return read_text_function(node, read_term(node.this, within), within)
        case exp.StrPosition():
            inner = read_term(node.this, within) or read_computed_term(node.this, within)
            return None if inner is None else read_word_position(node, inner, within)
        case exp.Coalesce():
            arguments = drop_nulls(node, within)
            return read_coalesce(read_term(arguments[0], within) if arguments else None, arguments, within)
        case _:
            return None


def _read_arithmetic(node: exp.Add | exp.Sub | exp.Mul, within: RowScope) -> ColumnTerm | None:
    left, right = strip_parentheses(node.this), strip_parentheses(node.expression)
    if within.is_constant(left) == within.is_constant(right):
        return None
    turned = within.is_constant(left)
    inner, constant = read_term(right if turned else left, within), left if turned else right
    if inner is None:
        return None
    by = within.fold_constant(constant)
    if inner.column.sql_type in (SqlType.DATE, SqlType.TIMESTAMP):
        backwards = turned and isinstance(node, exp.Sub)
        return None if backwards else shift_time(inner, by, 1 if isinstance(node, exp.Add) else -1)
    by = read_number(by.text, constant) if isinstance(by, Untyped) else by
    if not inner.is_exact or not isinstance(by, Number):
        return None
    if not by.is_integral and contains_type(constant, exp.Cast, exp.Parameter):
        return None  # it may be a double, with which PostgreSQL would round
    if isinstance(node, exp.Mul):
        return scale_term(inner, by)
    if turned and isinstance(node, exp.Sub):
        return shift_term(scale_term(inner, Number(Fraction(-1), is_integral=True)), by, 1)
    return shift_term(inner, by, 1 if isinstance(node, exp.Add) else -1)
