"""Functions of a number: shifted and scaled by exact constants, and its absolute value."""

from fractions import Fraction

from sqlglot import exp

from planner.catalog.catalog import SqlType
from planner.parser.tree import write_short
from planner.predicates.column_comparison import is_real
from planner.predicates.row_scope import combine_truths
from planner.predicates.terms.term import ColumnTerm
from planner.question.condition import IsNull, Not, join_any
from planner.question.three_valued import UNKNOWN, Truth, make_known_unless_null
from planner.values.constant import Constant, Number, Untyped, read_number, refuse_constant
from planner.values.operators import FLIPPED_OPERATORS


def _convert_number(constant: Constant, inner: ColumnTerm, by: Number, at: exp.Expr) -> Number:
    """Return the constant as a number with the type of the arithmetic."""
    found = read_number(constant.text, at) if isinstance(constant, Untyped) else constant
    whole = inner.column.sql_type is SqlType.INTEGER and by.is_integral
    if not isinstance(found, Number) or (isinstance(constant, Untyped) and whole and not found.is_integral):
        raise refuse_constant(at, f"{write_short(at)} is not a number of the type that it is compared with")
    return found


def shift_term(moved: ColumnTerm | None, by: Number, sign: int) -> ColumnTerm | None:
    """Return the term plus a constant, or minus it if `sign` is -1."""
    if moved is None:
        return None
    inner = moved

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        if constant is None:
            return UNKNOWN
        value = _convert_number(constant, inner, by, at).value - sign * by.value
        return inner.compare(operator, Number(value, is_integral=False), at)

    return ColumnTerm(inner.column, compare, is_exact=True)


def scale_term(scaled: ColumnTerm | None, by: Number) -> ColumnTerm | None:
    """Return the term times a constant. NaN, which only numerics have, stays the largest number if the sign changes."""
    if scaled is None or not scaled.is_exact or by.value == 0:
        return None
    inner = scaled
    if by.value < 0 and inner.column.sql_type is not SqlType.INTEGER:
        return None

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        if constant is None:
            return UNKNOWN
        value = _convert_number(constant, inner, by, at).value / by.value
        return inner.compare(
            operator if by.value > 0 else FLIPPED_OPERATORS[operator], Number(value, is_integral=False), at
        )

    return ColumnTerm(inner.column, compare, is_exact=True)


def drop_sign(inner: ColumnTerm | None) -> ColumnTerm | None:
    """Return the term for the absolute value of a term.

    Return None for a column of type `real`, and for a term that is no number.
    """
    if inner is None or not inner.is_plain or not (inner.is_exact or inner.column.sql_type is SqlType.DOUBLE):
        return None
    if is_real(inner.column):
        return None
    one = Number(Fraction(1), is_integral=True)

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        if constant is None:
            return UNKNOWN
        value = _convert_number(constant, inner, one, at)
        opposite = Number(-value.value, value.is_integral)
        if operator in ("=", "<>"):
            sides = [inner.compare("=", found, at) for found in dict.fromkeys((value, opposite))]
            equal = combine_truths(sides, is_conjunction=False)
            if value.value < 0:
                equal = make_known_unless_null(
                    inner.column.name, true=join_any(()), false=Not(IsNull(inner.column.name))
                )
            return equal if operator == "=" else equal.negate()
        sides = [inner.compare(operator, value, at), inner.compare(FLIPPED_OPERATORS[operator], opposite, at)]
        return combine_truths(sides, is_conjunction=operator in ("<", "<="))

    return ColumnTerm(inner.column, compare)
