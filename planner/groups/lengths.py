"""The largest distance of two times: in days, in parts of an interval, and in years and months of an age.

    (returned_at::date - borrowed_at::date) / 7       WHERE says it of the days, or of both times
    extract(year FROM age(DATE '2026-01-01', born))   WHERE says it of the years, or of the time

Guarantee: the range is a function of the policy and the statement. A row outside of it is in no group.
"""

from datetime import date, datetime, timedelta
from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from planner.catalog.catalog import Column, SqlType
from planner.catalog.row_terms import RowTerm, TermKind
from planner.errors import KeyholeError
from planner.groups.ranges import find_end, find_moment, find_number_range, find_time_ends
from planner.parser.tree import strip_parentheses
from planner.predicates.computed.compare import make_computed_column
from planner.predicates.computed.number_arithmetic import NoTermError
from planner.predicates.computed.read import read_term
from planner.predicates.row_scope import RowScope
from planner.question.condition import Condition
from planner.scope.name_resolution import Scope, find_column, name_cast_type
from planner.values.constant import ConstantContext, NotConstant
from planner.values.expressions import fold_constant

_NOTHING_GIVEN = ConstantContext(parameters={}, today=date.min)
_TIMES = frozenset({SqlType.DATE, SqlType.TIMESTAMP})
_PARTS = {"day": timedelta(days=1), "epoch": timedelta(microseconds=1)}
_YEAR = timedelta(days=365)
_Ends = tuple[datetime, datetime]
_Numbers = tuple[Fraction | None, Fraction | None]


def is_length(node: exp.Expr, scope: Scope) -> bool:
    """Return True if an expression is a number of days between two dates, or a part of the time between two times."""
    match strip_parentheses(node):
        case exp.Sub() as apart:
            return _counts_days(apart, scope)
        case exp.Extract() as part:
            name, of = _name_part(part), strip_parentheses(part.expression)
            if isinstance(of, exp.Anonymous):
                return name in ("year", "month") and str(of.this).lower() == "age" and len(of.expressions) == 2
            return name in _PARTS and isinstance(of, exp.Sub) and not _counts_days(of, scope)
        case _:
            return False


def _name_part(node: exp.Extract) -> str:
    return str(node.this).lower().strip("'")


def _counts_days(node: exp.Sub, scope: Scope) -> bool:
    read = read_term(node, RowScope(scope, _NOTHING_GIVEN))
    dated = any(_find_time(one, scope) for one in node.find_all(exp.Column))
    return dated and read is not None and read.kind is TermKind.WHOLE and _find_both_times(node, scope) is not None


def _find_time(node: exp.Expr, scope: Scope) -> Column | None:
    found = find_column(node, scope)
    return found if found is not None and found.sql_type in _TIMES else None


def _find_both_times(node: exp.Expr, scope: Scope) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the later and the earlier time of a difference, as they are written."""
    sides = (
        (strip_parentheses(node.this), strip_parentheses(node.expression))
        if isinstance(node, exp.Sub)
        else tuple(map(strip_parentheses, node.expressions))
    )
    return (sides[0], sides[1]) if len(sides) == 2 and all(_is_time(one, scope) for one in sides) else None


def _is_time(node: exp.Expr, scope: Scope) -> bool:
    """Return True for a stored or constant time, with or without a cast."""
    if node.find(exp.Column) is None:
        return isinstance(_fold(node), date)
    inner = node
    while isinstance(inner, exp.Cast | exp.Date | exp.Paren):
        if isinstance(inner, exp.Cast) and name_cast_type(inner) not in ("DATE", "TIMESTAMP"):
            return False
        inner = inner.this
    return isinstance(inner, exp.Column) and _find_time(inner, scope) is not None


def _fold(node: exp.Expr) -> object:
    try:
        return fold_constant(node, _NOTHING_GIVEN)
    except (KeyholeError, NotConstant):
        return None


def find_length_range(
    node: exp.Expr, term: RowTerm, scope: Scope, said: tuple[Condition, ...]
) -> tuple[int, int] | None:
    """Return the least and the greatest value of a distance of times, in the steps of `term`.

    Return None if the ranges of the times are open.
    """
    node = strip_parentheses(node)
    if not is_length(node, scope):
        return None
    found = [_find_where_range(term, scope, said)]
    of = strip_parentheses(node.expression) if isinstance(node, exp.Extract) else node
    times = _find_both_times(of, scope)
    if times is not None:
        later, earlier = (_find_time_ends(one, scope, said) for one in times)
        found.append(_count_units(node, of, later, earlier))
    if isinstance(node, exp.Extract) and isinstance(of, exp.Sub) and term.arguments:
        low, high = _find_where_range(term.arguments[0], scope, said)
        step = Fraction(_PARTS[_name_part(node)] // timedelta(microseconds=1))
        found.append((None if low is None else low / step, None if high is None else high / step))
    lows = [low for low, _ in found if low is not None]
    highs = [high for _, high in found if high is not None]
    return (floor(max(lows)), ceil(min(highs))) if lows and highs and max(lows) <= min(highs) else None


def _find_where_range(term: RowTerm, scope: Scope, said: tuple[Condition, ...]) -> _Numbers:
    """Return the range that WHERE gives a term, in its steps."""
    try:
        column = make_computed_column(term, RowScope(scope, _NOTHING_GIVEN))
    except NoTermError:
        return None, None
    return find_number_range(Column(column.name, SqlType.INTEGER, "bigint"), said)


def _find_time_ends(node: exp.Expr, scope: Scope, said: tuple[Condition, ...]) -> _Ends | None:
    found = next((one for one in node.find_all(exp.Column)), None)
    if found is None:
        value = _fold(node)
        if not isinstance(value, date):
            return None
        at = find_moment(value)
        return at, at
    column = _find_time(found, scope)
    if column is None:
        return None
    first, past = find_time_ends(column, scope, said)
    listed = [value for value in column.domain or () if isinstance(value, date)]
    if listed:  # a key's own values are its range
        first = max(filter(None, (first, find_moment(min(listed)))))
        past = min(filter(None, (past, find_end("day", max(listed)))))
    return None if first is None or past is None else (first, past)


def _count_units(node: exp.Expr, of: exp.Expr, later: _Ends | None, earlier: _Ends | None) -> _Numbers:
    """Return the range of a length from the ranges of its two times."""
    if isinstance(of, exp.Anonymous) and isinstance(node, exp.Extract) and _name_part(node) == "month":
        return Fraction(-11), Fraction(11)
    if later is None or earlier is None:
        return None, None
    low, high = later[0] - earlier[1], later[1] - earlier[0]
    if isinstance(of, exp.Anonymous):
        return Fraction(min(low // _YEAR, 0)), Fraction(max(high // _YEAR, 0))
    step = _PARTS[_name_part(node)] if isinstance(node, exp.Extract) else timedelta(days=1)
    return Fraction(low // step), Fraction(-(-high // step))
