"""Functions of a date or timestamp: truncated, its year or epoch, and shifted by an interval."""

from datetime import date, datetime, timedelta
from math import floor

from sqlglot import exp

from planner.catalog.catalog import Column, SqlType
from planner.parser.tree import strip_parentheses, write_node, write_short
from planner.predicates.column_comparison import compare_column
from planner.predicates.row_scope import RowScope, combine_truths
from planner.predicates.terms.term import ColumnTerm
from planner.predicates.where_refusals import refuse_unlisted_expression
from planner.question.condition import IsNull, Not, join_any
from planner.question.three_valued import UNKNOWN, Truth, make_known_unless_null
from planner.values.constant import Constant, Interval, Number, Untyped, read_number, refuse_constant
from planner.values.datetimes import (
    STEPS,
    move_to_midnight,
    read_instant,
    read_moment,
    refuse_date_range,
    shift_moment,
    truncate_to_unit,
)


def _convert_moment(constant: Constant, at: exp.Expr) -> datetime | None:
    """Return a constant of time as a timestamp."""
    match constant:
        case None:
            return None
        case Untyped(text):
            return read_moment(text, at)
        case date():
            return move_to_midnight(constant)
        case _:
            raise refuse_constant(at, f"{write_short(at)} is not a date or timestamp")


def _compare_step(
    column: Column, operator: str, start: datetime, following: datetime, at: exp.Expr, *, is_whole_step: bool
) -> Truth:
    """Return the comparison of a step function of a time.

    The step that contains the constant is `start` to `following`. If it `is_whole_step`, the constant is its start.
    """
    if operator in ("=", "<>"):
        if is_whole_step:
            sides = (compare_column(column, ">=", start, at), compare_column(column, "<", following, at))
            equal = combine_truths(sides, is_conjunction=True)
        else:
            equal = make_known_unless_null(column.name, true=join_any(()), false=Not(IsNull(column.name)))
        return equal if operator == "=" else equal.negate()
    edge = start if is_whole_step and operator in (">=", "<") else following
    return compare_column(column, ">=" if operator in (">", ">=") else "<", edge, at)


def _find_time(node: exp.Expr, inner: ColumnTerm | None) -> tuple[Column, bool] | None:
    """Return the date or timestamp that is read, and True if PostgreSQL makes it a timestamp without time zone."""
    if inner is None or inner.column.sql_type not in (SqlType.DATE, SqlType.TIMESTAMP) or not inner.is_plain:
        return None
    return inner.column, inner.column.sql_type is SqlType.TIMESTAMP or isinstance(strip_parentheses(node), exp.Cast)


def read_truncation(
    node: exp.Expr, inner: ColumnTerm | None, unit: str, within: RowScope, *, gives_date: bool
) -> ColumnTerm | None:
    """Return the term for date_trunc of the date or timestamp `node`, whose own term is `inner`.

    Its values are dates if `gives_date`, else timestamps.

    Raise KH205 for a date that is truncated in the session's time zone, unless that is UTC.
    """
    found = _find_time(node, inner)
    if found is None or unit not in STEPS:
        return None
    column, local = found
    local = local or gives_date
    if not local and not within.constants.is_utc:
        raise refuse_unlisted_expression(
            node,
            f'date_trunc of the date "{column.name}" is a timestamp with time zone',
            detail="The comparison depends on the session's TimeZone, which is not UTC here.",
            hint=f"Write date_trunc('{unit}', {write_node(node)}::timestamp), or SET TimeZone TO 'UTC' first.",
        )

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        value = (
            read_instant(constant.text, at)
            if not local and isinstance(constant, Untyped)
            else _convert_moment(constant, at)
        )
        if value is None:
            return UNKNOWN
        if gives_date and isinstance(constant, Untyped):
            value = move_to_midnight(value.date())
        start = truncate_to_unit(value, unit)
        return _compare_step(
            column, operator, start, _find_next(start, STEPS[unit], at), at, is_whole_step=start == value
        )

    return ColumnTerm(column, compare)


def _find_next(start: datetime, step: Interval, at: exp.Expr) -> datetime:
    try:
        return shift_moment(start, step, 1)
    except (ValueError, OverflowError):
        raise refuse_date_range(at) from None


_EPOCH = datetime(1970, 1, 1)
_FARTHEST_SECONDS = 2**33  # seconds up to which a double, as date_part gives, keeps microseconds distinct
_MICROSECOND = Interval(0, 0, 1)


def read_extract(node: exp.Extract, inner: ColumnTerm | None, within: RowScope) -> ColumnTerm | None:
    """Return the term for the year or the epoch of `inner`. Return None for other parts."""
    part = str(node.this).lower().strip("'")
    found = _find_time(node.expression, inner)
    if found is None or part not in ("year", "epoch") or not (part == "year" or found[1] or within.constants.is_utc):
        return None
    column = found[0]

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        if constant is None:
            return UNKNOWN
        value = read_number(constant.text, at) if isinstance(constant, Untyped) else constant
        if not isinstance(value, Number):
            raise refuse_constant(at, f"{write_short(at)} is not a number")
        below = floor(value.value)
        if part == "year":
            if not 2 <= below <= 9998:
                raise refuse_constant(at, f"the year {write_short(at)} is out of range")
            start, step = datetime(below, 1, 1), STEPS["year"]
        else:
            if abs(below) > _FARTHEST_SECONDS or below != value.value:
                raise refuse_constant(at, f"{write_short(at)} is no whole number of seconds between 1698 and 2242")
            start, step = _EPOCH + timedelta(seconds=below), _MICROSECOND
        return _compare_step(
            column, operator, start, _find_next(start, step, at), at, is_whole_step=below == value.value
        )

    return ColumnTerm(column, compare)


def shift_time(inner: ColumnTerm, by: Constant, sign: int) -> ColumnTerm | None:
    """Return the term for a date plus days, or for a date or timestamp plus an interval without months."""
    if not inner.is_plain or inner.column.sql_type not in (SqlType.DATE, SqlType.TIMESTAMP):
        return None
    match by:
        case Number(value, True) if inner.column.sql_type is SqlType.DATE:
            apart, of_dates = Interval(0, int(value), 0), True
        case Interval(0, _, _):
            apart, of_dates = by, False
        case _:
            return None

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        value = _convert_moment(constant, at)
        if value is None:
            return UNKNOWN
        if of_dates and isinstance(constant, Untyped):
            value = move_to_midnight(value.date())
        try:
            return compare_column(inner.column, operator, shift_moment(value, apart, -sign), at)
        except (ValueError, OverflowError):
            raise refuse_date_range(at) from None

    return ColumnTerm(inner.column, compare)
