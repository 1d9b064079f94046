"""A column cast to another type, compared as the column itself where the cast keeps every value."""

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from planner.catalog.catalog import SqlType
from planner.predicates.row_scope import RowScope
from planner.predicates.terms.term import ColumnTerm, CompareConstant, make_plain_term
from planner.predicates.terms.time import read_truncation
from planner.question.three_valued import Truth
from planner.values.constant import Constant, Number, Untyped, read_number
from planner.values.expressions import cast
from planner.values.sql_literals import find_integer_limit

_WIDTHS = {"SMALLINT": 15, "INT": 31, "BIGINT": 63}
_EXACT_DOUBLE = 53  # bits that double precision keeps


def read_cast(node: exp.Cast, inner: ColumnTerm | None, within: RowScope) -> ColumnTerm | None:
    """Return a cast of `inner` that never fails and keeps all values distinct. Return None for other casts."""
    to = node.to.this
    kind = str(to.value) if isinstance(to, exp.DType) and not node.to.expressions else ""
    if inner is None or not inner.is_plain:
        return None
    column = inner.column
    match column.sql_type:
        case SqlType.TEXT if kind in ("TEXT", "VARCHAR"):
            return inner
        case SqlType.BOOLEAN if kind == "BOOLEAN":
            return inner
        case SqlType.INTEGER if kind in _WIDTHS and find_integer_limit(column.declared).bit_length() <= _WIDTHS[kind]:
            return inner
        case SqlType.INTEGER | SqlType.NUMERIC if kind == "DECIMAL":
            return replace(inner, compare=_retype(inner, "DECIMAL"))
        case SqlType.INTEGER if kind == "DOUBLE" and find_integer_limit(column.declared).bit_length() < _EXACT_DOUBLE:
            return replace(inner, compare=_compare_as_doubles(inner), is_exact=False, is_plain=False)
        case SqlType.DOUBLE if kind == "DOUBLE":
            return make_plain_term(replace(column, declared="double precision"))
        case SqlType.DATE | SqlType.TIMESTAMP if kind == "TIMESTAMP":
            return replace(inner, compare=_retype(inner, "TIMESTAMP"))
        case SqlType.TIMESTAMP if kind == "DATE":
            return read_truncation(node.this, inner, "day", within, gives_date=True)
        case _:
            return None


def _retype(inner: ColumnTerm, kind: str) -> CompareConstant:
    """Return a comparison whose quoted constants have another type than the column."""

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        if isinstance(constant, Untyped):
            constant = cast(constant, exp.DataType(this=exp.DType(kind)), at)
            if isinstance(constant, Number):
                constant = Number(constant.value, is_integral=False)
        return inner.compare(operator, constant, at)

    return compare


def _compare_as_doubles(inner: ColumnTerm) -> CompareConstant:
    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        if isinstance(constant, Untyped):
            constant = read_number(constant.text, at)
        if isinstance(constant, Number):
            constant = Number(Fraction(float(constant.value)), is_integral=False)
        return inner.compare(operator, constant, at)

    return compare
