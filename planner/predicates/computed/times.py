"""Dates, moments and the time between them, as whole days since 1970 and whole microseconds.

Rows whose times lie outside of the years 1 to 9999 have none here, as derived columns have none.
"""

from datetime import date, datetime, timedelta
from fractions import Fraction

from planner.catalog.model import Column, SqlType
from planner.catalog.row_terms import Kind, RowTerm
from planner.predicates.computed.numbers import NoTermError, added, floored, multiplied, negated, whole
from planner.values.model import Span

DAY = 86_400_000_000  # microseconds
_FARTHEST_DAYS = 3_000_000  # of a date of the years 1 to 9999, from 1970
_EPOCH = datetime(1970, 1, 1)
_CALENDAR = {"year": 9999, "quarter": 4, "month": 12, "week": 53, "day": 31, "doy": 366}
_PARTS_OF_DAY = {"hour": 3_600_000_000, "minute": 60_000_000}
_FIRST_WEEK = 3 * DAY  # 1970 began on a Thursday


def _day_constant(days: int) -> RowTerm:
    return RowTerm("constant", Kind.DAY, value=days, limit=max(abs(days), 1))


def length(microseconds: int) -> RowTerm:
    """Return a constant length of time."""
    return RowTerm("constant", Kind.LENGTH, value=microseconds, limit=max(abs(microseconds), 1))


def time_constant(value: date) -> RowTerm:
    """Return a constant date or moment."""
    if isinstance(value, datetime):
        steps = (value - _EPOCH) // timedelta(microseconds=1)
        return RowTerm("constant", Kind.MOMENT, value=steps, limit=max(abs(steps), 1))
    return _day_constant((value - _EPOCH.date()).days)


def span_microseconds(span: Span) -> int:
    """Return how long an interval is where PostgreSQL compares intervals: a month has 30 days, a day 24 hours."""
    return (30 * span.months + span.days) * DAY + span.microseconds


def time_column(column: Column) -> RowTerm:
    """Return a stored or derived date or timestamp."""
    if column.sql_type is SqlType.DATE:
        return RowTerm("column", Kind.DAY, value=column.name, limit=_FARTHEST_DAYS)
    return RowTerm("column", Kind.MOMENT, value=column.name, limit=_FARTHEST_DAYS * DAY)


def moment(term: RowTerm) -> RowTerm:
    """Return a date or moment as a moment: a date's is its midnight."""
    if term.kind is Kind.MOMENT:
        return term
    if term.kind is not Kind.DAY:
        raise NoTermError
    if term.function == "constant":
        assert isinstance(term.value, int)
        return RowTerm("constant", Kind.MOMENT, value=term.value * DAY, limit=term.limit * DAY)
    return whole("*", Kind.MOMENT, term, length(DAY), scale=0, limit=term.limit * DAY)


def difference(left: RowTerm, right: RowTerm) -> RowTerm:
    """Return the days between dates, or the time between moments, of which one may be a date."""
    if left.kind is right.kind is Kind.DAY:
        return added(left, negated(right), kind=Kind.WHOLE)
    return added(moment(left), negated(moment(right)), kind=Kind.LENGTH)


def shifted(time: RowTerm, by: RowTerm, sign: int) -> RowTerm:
    """Return a date some days later, or a moment some time later; earlier if `sign` is -1."""
    by = by if sign > 0 else negated(by)
    if by.kind is Kind.WHOLE and time.kind is Kind.DAY:
        return added(time, by, kind=Kind.DAY)
    if by.kind is Kind.LENGTH:
        return added(moment(time), by, kind=Kind.MOMENT)
    raise NoTermError


def day_of(term: RowTerm) -> RowTerm:
    """Return the date of a moment."""
    return term if term.kind is Kind.DAY else floored(moment(term), DAY, kind=Kind.DAY)


def truncated(unit: str, term: RowTerm) -> RowTerm:
    """Return the beginning of a moment's hour, day or week, or of a stored one's month, quarter or year."""
    at = moment(term)
    if unit in ("hour", "minute", "day", "week"):
        step = {**_PARTS_OF_DAY, "day": DAY, "week": 7 * DAY}[unit]
        shift = _FIRST_WEEK if unit == "week" else 0
        moved = added(at, length(shift), kind=Kind.MOMENT) if shift else at
        floor = floored(moved, step, kind=Kind.WHOLE)
        begun = whole("*", Kind.MOMENT, floor, length(step), scale=0, limit=floor.limit * step)
        return added(begun, length(-shift), kind=Kind.MOMENT) if shift else begun
    if unit in ("month", "quarter", "year") and term.function == "column":
        start = RowTerm("start", Kind.DAY, (RowTerm("text", Kind.TEXT, value=unit),), term.value,
                        limit=_FARTHEST_DAYS)  # fmt: skip
        return moment(start)
    raise NoTermError


def extracted(part: str, term: RowTerm) -> RowTerm:
    """Return a part of a time, or of a length of time, as PostgreSQL's numeric."""
    if term.kind is Kind.LENGTH:
        return _part_of_length(part, term)
    at = moment(term)
    if part == "epoch":
        return RowTerm("same", Kind.EXACT, (at,), scale=6, limit=at.limit)
    if part in ("dow", "isodow"):
        # days since the Sunday, or the Monday, before 1970
        first = 4 if part == "dow" else 3
        days = added(day_of(at), _day_constant(first), kind=Kind.WHOLE)
        weeks = floored(days, 7, kind=Kind.WHOLE)
        within = added(days, negated(multiplied(weeks, _number(7))), kind=Kind.WHOLE)
        within = RowTerm("same", Kind.EXACT, (within,), limit=7)
        return within if part == "dow" else added(within, _number(1))
    if part in _PARTS_OF_DAY:
        step = _PARTS_OF_DAY[part]
        larger = DAY if part == "hour" else _PARTS_OF_DAY["hour"]
        begun = floored(at, larger, kind=Kind.WHOLE)
        rest = added(at, negated(multiplied(begun, _number(larger))), kind=Kind.WHOLE)
        return floored(RowTerm("same", Kind.WHOLE, (rest,), limit=larger), step, kind=Kind.EXACT)
    if part in _CALENDAR and term.function == "column":
        return RowTerm("part", Kind.EXACT, (RowTerm("text", Kind.TEXT, value=part),), term.value,
                       limit=_CALENDAR[part])  # fmt: skip
    raise NoTermError


def _number(value: int) -> RowTerm:
    return RowTerm("constant", Kind.WHOLE, value=value, limit=max(1, abs(value)))


def _part_of_length(part: str, term: RowTerm) -> RowTerm:
    """A part of the time between two moments, of which PostgreSQL keeps whole days, and the rest of a day."""
    if part == "epoch":
        return RowTerm("same", Kind.EXACT, (term,), scale=6, limit=term.limit)
    if part == "day" and 4 * (term.limit + DAY) < 2**63:
        return whole("trunc", Kind.EXACT, term, _number(DAY), scale=0, limit=term.limit // DAY + 1)
    raise NoTermError


def as_length(value: Fraction) -> RowTerm:
    """Return so many microseconds."""
    if value.denominator != 1:
        raise NoTermError
    return length(int(value))
