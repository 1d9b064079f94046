"""The public range of a column in a question, from the constants in WHERE and from declared bounds and keys."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from planner.catalog.catalog import Column, Derivation, SqlType, Value
from planner.catalog.derived_columns import find_calendar_step
from planner.errors import KeyholeError
from planner.parser.tree import strip_parentheses
from planner.predicates.condition import read_row_condition
from planner.question.condition import Compare, Condition, Within
from planner.scope.name_resolution import Scope
from planner.values.constant import ConstantContext
from planner.values.datetimes import truncate_to_unit
from planner.values.expressions import uses_clock

_DAYS = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}
_NOTHING_GIVEN = ConstantContext(parameters={}, today=date.min)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A range of moments, from `first` to before `end`."""

    first: datetime
    end: datetime


def list_fixed_conditions(select: exp.Select, scope: Scope) -> tuple[Condition, ...]:
    """Return the conjuncts of WHERE whose meaning never changes: those without parameters and without the clock."""
    where = select.args.get("where")
    return () if where is None else tuple(_list_fixed_conditions(where.this, scope))


def _list_fixed_conditions(node: exp.Expr, scope: Scope) -> Iterator[Condition]:
    inner = strip_parentheses(node)
    if isinstance(inner, exp.And) and not inner.args.get("negate"):
        yield from _list_fixed_conditions(inner.this, scope)
        yield from _list_fixed_conditions(inner.expression, scope)
        return
    if uses_clock(inner) or inner.find(exp.Parameter, exp.Placeholder, exp.Query) is not None:
        return
    try:
        condition = read_row_condition(inner, scope, _NOTHING_GIVEN)
    except KeyholeError:
        return  # it is refused where it is read for its own sake
    yield from condition.list_conjuncts()


def find_number_range(column: Column, said: tuple[Condition, ...]) -> tuple[Fraction | None, Fraction | None]:
    """Return the least and the greatest number of a column that a question asks about. An open end is None."""
    lows: list[Fraction] = []
    highs: list[Fraction] = []
    if column.bounds is not None:
        lows.append(Fraction(column.bounds[0]))
        highs.append(Fraction(column.bounds[1]))
    for operator, value in _list_compared_values(column.name, said):
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            continue
        if operator in (">", ">=", "="):
            lows.append(Fraction(value))
        if operator in ("<", "<=", "="):
            highs.append(Fraction(value))
    return max(lows, default=None), min(highs, default=None)


def find_time_range(column: Column, scope: Scope, said: tuple[Condition, ...]) -> TimeRange | None:
    """Return the range of moments of a date or timestamp to which WHERE, or else a declared key, limits the question.

    If WHERE leaves an end open, it is the end of the key with the shortest calendar. Return None if an end is still
    open.
    """
    first, past = find_time_ends(column, scope, said)
    return None if first is None or past is None else TimeRange(first, past)


def find_time_ends(
    column: Column, scope: Scope, said: tuple[Condition, ...]
) -> tuple[datetime | None, datetime | None]:
    """Return the first moment of a date or timestamp, and the first one after its range, as in `find_time_range`.

    An open end is None.
    """
    found = _list_ends(column, "", said)
    spans: list[TimeRange] = []
    for key in scope.table.columns:
        part = _find_truncation(key, column)
        if not part or not key.domain:
            continue
        lows, pasts = _list_ends(key, part, said)
        found = found[0] + lows, found[1] + pasts
        days = [value for value in key.domain if isinstance(value, date)]
        spans.append(TimeRange(find_moment(min(days)), find_end(part, max(days))))
    for key in scope.wide_keys:
        if key.name == column.name:
            days = [value for value in key.domain or () if isinstance(value, date)]
            spans.append(TimeRange(find_moment(min(days)), find_end("day", max(days))))
    narrow = min(spans, key=lambda one: one.end - one.first, default=None)
    first = max(found[0], default=None if narrow is None else narrow.first)
    past = min(found[1], default=None if narrow is None else narrow.end)
    return first, past


def _find_truncation(key: Column, column: Column) -> str:
    derived = key.derivation
    if not isinstance(derived, Derivation) or derived.column != column.name or derived.function == "extract":
        return ""
    return find_calendar_step(key) or ""


def _list_ends(column: Column, part: str, said: tuple[Condition, ...]) -> tuple[list[datetime], list[datetime]]:
    """Return the first moments of a column, and the first ones after it, that conditions give.

    Parameters:
        part: the calendar part for which a value of the column stands, or "".
    """
    firsts: list[datetime] = []
    pasts: list[datetime] = []
    whole = part or ("day" if column.sql_type is SqlType.DATE else "")
    for operator, value in _list_compared_values(column.name, said):
        if not isinstance(value, date):
            continue
        if operator in (">", ">=", "="):
            firsts.append(find_end(whole, value) if operator == ">" and whole else find_moment(value))
        if operator in ("<", "<=", "="):
            pasts.append(find_moment(value) if operator == "<" else find_end(whole, value))
    return firsts, pasts


def _list_compared_values(name: str, said: tuple[Condition, ...]) -> Iterator[tuple[str, Value]]:
    for one in said:
        match one:
            case Compare(column, operator, value) if column == name:
                yield operator, value
            case Within(column, values) if column == name and values:
                yield ">=", min(values)
                yield "<=", max(values)
            case _:
                pass


def find_moment(value: date) -> datetime:
    """Return the first moment of a date, or the moment itself."""
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


def find_end(part: str, value: date) -> datetime:
    """Return the moment at which a day, month or other `part` of time ends, if it begins with `value`."""
    try:
        if part == "hour":
            return find_moment(value) + timedelta(hours=1)
        if not part:
            return find_moment(value) + timedelta(microseconds=1)
        days = _DAYS[part]
        start = find_moment(value)
        return (
            start + timedelta(days=days)
            if part in ("day", "week")
            else truncate_to_unit(start + timedelta(days=days), part)
        )
    except OverflowError:
        return datetime.max
