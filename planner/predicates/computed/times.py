"""Dates, moments and the time between them, as whole days since 1970 and whole microseconds.

A time outside of the years 1 to 9999 is NULL here, as in derived columns.
"""

from datetime import date, datetime, timedelta
from fractions import Fraction

from planner.catalog.catalog import Column, SqlType
from planner.catalog.row_terms import RowTerm, TermKind
from planner.predicates.computed.number_arithmetic import (
    NoTermError,
    add,
    count_steps,
    make_exact_term,
    multiply,
    negate,
    take_remainder,
)
from planner.values.constant import Interval

DAY = 86_400_000_000  # microseconds
_FARTHEST_DAYS = 3_000_000  # of a date of the years 1 to 9999, from 1970
_EPOCH = datetime(1970, 1, 1)
_CALENDAR = {"year": 9999, "quarter": 4, "month": 12, "week": 53, "day": 31, "doy": 366}
_PARTS_OF_DAY = {"hour": 3_600_000_000, "minute": 60_000_000}
_MOST_MONTHS = 12_000  # a thousand years, which no engine's calendar ends by
_MONTH = 32 * DAY  # longer than any
_FIRST_WEEK = 3 * DAY  # 1970 began on a Thursday


def _make_day_constant(days: int) -> RowTerm:
    return RowTerm("constant", TermKind.DAY, value=days, limit=max(abs(days), 1))


def make_length(microseconds: int) -> RowTerm:
    """Return the term for a constant duration."""
    return RowTerm("constant", TermKind.LENGTH, value=microseconds, limit=max(abs(microseconds), 1))


def make_time_constant(value: date) -> RowTerm:
    """Return the term for a constant date or moment."""
    if isinstance(value, datetime):
        steps = (value - _EPOCH) // timedelta(microseconds=1)
        return RowTerm("constant", TermKind.MOMENT, value=steps, limit=max(abs(steps), 1))
    return _make_day_constant((value - _EPOCH.date()).days)


def count_microseconds(span: Interval) -> int:
    """Return the length of an interval as PostgreSQL compares intervals: a month has 30 days, a day 24 hours."""
    return (30 * span.months + span.days) * DAY + span.microseconds


def make_time_column(column: Column) -> RowTerm:
    """Return the term for a stored or derived date or timestamp."""
    if column.sql_type is SqlType.DATE:
        return RowTerm("column", TermKind.DAY, value=column.name, limit=_FARTHEST_DAYS)
    return RowTerm("column", TermKind.MOMENT, value=column.name, limit=_FARTHEST_DAYS * DAY)


def convert_to_moment(term: RowTerm) -> RowTerm:
    """Return the term for a date or moment, converted to a moment. A date becomes its midnight."""
    if term.kind is TermKind.MOMENT:
        return term
    if term.kind is not TermKind.DAY:
        raise NoTermError
    if term.function == "constant":
        assert isinstance(term.value, int)
        return RowTerm("constant", TermKind.MOMENT, value=term.value * DAY, limit=term.limit * DAY)
    return make_exact_term("*", TermKind.MOMENT, term, make_length(DAY), scale=0, limit=term.limit * DAY)


def subtract_times(left: RowTerm, right: RowTerm) -> RowTerm:
    """Return the term for `left - right`: days between two dates, else the time between two moments."""
    if left.kind is right.kind is TermKind.DAY:
        return add(left, negate(right), kind=TermKind.WHOLE)
    return add(convert_to_moment(left), negate(convert_to_moment(right)), kind=TermKind.LENGTH)


def shift_time(time: RowTerm, by: RowTerm, sign: int) -> RowTerm:
    """Return the term for a date plus days, or a moment plus a duration. If `sign` is -1, subtract instead."""
    if by.kind not in (TermKind.WHOLE, TermKind.LENGTH):
        raise NoTermError
    by = by if sign > 0 else negate(by)
    if by.kind is TermKind.WHOLE and time.kind is TermKind.DAY:
        return add(time, by, kind=TermKind.DAY)
    if by.kind is TermKind.LENGTH:
        return add(convert_to_moment(time), by, kind=TermKind.MOMENT)
    raise NoTermError


def move_months(time: RowTerm, months: int) -> RowTerm:
    """Return the term for a date or timestamp shifted by a number of months, as PostgreSQL shifts it."""
    if abs(months) > _MOST_MONTHS:
        raise NoTermError
    by = RowTerm("constant", TermKind.WHOLE, value=months, limit=abs(months))
    limit = (_FARTHEST_DAYS + 31 * abs(months)) * DAY
    return _apply_calendar("moved", TermKind.MOMENT, by, time, limit=limit)


def _apply_calendar(function: str, kind: TermKind, by: RowTerm, time: RowTerm, *, limit: int) -> RowTerm:
    """Return a calendar function of a stored or a computed time.

    It is NULL outside of the years 1 to 9999.
    """
    if time.kind not in (TermKind.DAY, TermKind.MOMENT):
        raise NoTermError
    if time.function == "column":
        return RowTerm(function, kind, (by,), time.value, limit=limit)
    return RowTerm(function, kind, (by, convert_to_moment(time)), limit=limit)


def take_day(term: RowTerm) -> RowTerm:
    """Return the term for the date of a moment."""
    return term if term.kind is TermKind.DAY else count_steps(convert_to_moment(term), DAY, kind=TermKind.DAY)


def take_clock(term: RowTerm) -> RowTerm:
    """Return the term for a moment's time of day, without time zone."""
    at = convert_to_moment(term)
    begun = multiply(count_steps(at, DAY, kind=TermKind.WHOLE), _make_number(DAY))
    return RowTerm("rest", TermKind.CLOCK, (add(at, negate(begun), kind=TermKind.WHOLE),), limit=DAY)


def truncate(unit: str, term: RowTerm) -> RowTerm:
    """Return the term for the beginning of a moment's hour, day, week, month, quarter or year."""
    at = convert_to_moment(term)
    if unit in ("hour", "minute", "day", "week"):
        step = {**_PARTS_OF_DAY, "day": DAY, "week": 7 * DAY}[unit]
        shift = _FIRST_WEEK if unit == "week" else 0
        moved = add(at, make_length(shift), kind=TermKind.MOMENT) if shift else at
        floor = count_steps(moved, step, kind=TermKind.WHOLE)
        begun = make_exact_term("*", TermKind.MOMENT, floor, make_length(step), scale=0, limit=floor.limit * step)
        return add(begun, make_length(-shift), kind=TermKind.MOMENT) if shift else begun
    if unit in ("month", "quarter", "year"):
        named = RowTerm("text", TermKind.TEXT, value=unit)
        return convert_to_moment(_apply_calendar("start", TermKind.DAY, named, term, limit=_FARTHEST_DAYS))
    raise NoTermError


def extract(part: str, term: RowTerm) -> RowTerm:
    """Return the term for a part of a time or duration, as PostgreSQL's numeric."""
    if term.kind is TermKind.LENGTH:
        return _extract_from_length(part, term)
    at = convert_to_moment(term)
    if part == "epoch":
        return RowTerm("same", TermKind.EXACT, (at,), scale=6, limit=at.limit)
    if part in ("dow", "isodow"):
        # days since the Sunday, or the Monday, before 1970
        first = 4 if part == "dow" else 3
        days = add(take_day(at), _make_day_constant(first), kind=TermKind.WHOLE)
        weeks = count_steps(days, 7, kind=TermKind.WHOLE)
        within = add(days, negate(multiply(weeks, _make_number(7))), kind=TermKind.WHOLE)
        within = RowTerm("rest", TermKind.EXACT, (within,), limit=7)
        return within if part == "dow" else add(within, _make_number(1))
    if part in _PARTS_OF_DAY:
        step = _PARTS_OF_DAY[part]
        larger = DAY if part == "hour" else _PARTS_OF_DAY["hour"]
        begun = count_steps(at, larger, kind=TermKind.WHOLE)
        rest = add(at, negate(multiply(begun, _make_number(larger))), kind=TermKind.WHOLE)
        return count_steps(RowTerm("rest", TermKind.WHOLE, (rest,), limit=larger), step, kind=TermKind.EXACT)
    if part in _CALENDAR:
        named = RowTerm("text", TermKind.TEXT, value=part)
        return _apply_calendar("part", TermKind.EXACT, named, term, limit=_CALENDAR[part])
    raise NoTermError


def _make_number(value: int) -> RowTerm:
    return RowTerm("constant", TermKind.WHOLE, value=value, limit=max(1, abs(value)))


def _extract_from_length(part: str, term: RowTerm) -> RowTerm:
    """Return the term for a part of the time between two moments.

    PostgreSQL keeps that time as whole days and the rest of a day.
    """
    if part == "epoch":
        return RowTerm("same", TermKind.EXACT, (term,), scale=6, limit=term.limit)
    if part == "day" and 4 * (term.limit + DAY) < 2**63:
        return make_exact_term("trunc", TermKind.EXACT, term, _make_number(DAY), scale=0, limit=term.limit // DAY + 1)
    raise NoTermError


def compute_age(later: RowTerm, earlier: RowTerm) -> RowTerm:
    """Return `age(later, earlier)` as the length that PostgreSQL compares: months of 30 days, and the rest.

    It cannot be added to a time, for which PostgreSQL uses the months' own lengths. Raise `NoTermError` unless both
    are dates or moments.
    """
    return RowTerm("age", TermKind.AGE, _convert_times(later, earlier), limit=2 * _FARTHEST_DAYS * DAY)


def count_age_months(later: RowTerm, earlier: RowTerm) -> RowTerm:
    """Return the number of whole months in `age(later, earlier)`, twelve a year.

    Raise `NoTermError` unless both are dates or moments.
    """
    return RowTerm("months", TermKind.EXACT, _convert_times(later, earlier), limit=12 * 10_000)


def _convert_times(later: RowTerm, earlier: RowTerm) -> tuple[RowTerm, RowTerm]:
    if not {later.kind, earlier.kind} <= {TermKind.DAY, TermKind.MOMENT}:
        raise NoTermError
    # a number of days and one of microseconds would be one text
    later, earlier = (convert_to_moment(one) if one.function == "constant" else one for one in (later, earlier))
    return later, earlier


def join_months(years: RowTerm, months: RowTerm) -> RowTerm | None:
    """Return the term for the months of an age that is written as `12 * years + months`.

    Return None for any other sum.
    """
    twelve = _make_number(12)
    if years.function != "*" or months.function != "remainder" or twelve not in years.arguments:
        return None
    (counted,) = (one for one in years.arguments if one != twelve)
    of, by = months.arguments
    return of if of.function == "months" and by == twelve and counted == extract_age("year", *of.arguments) else None


def extract_age(part: str, later: RowTerm, earlier: RowTerm) -> RowTerm:
    """Return the years of `age(later, earlier)`, or its months beyond the full years.

    Raise `NoTermError` if no term computes it.

    A whole month ends on the same day of the month, as PostgreSQL counts. Each time is encoded as one number: its
    months since the year 0, each longer than any real month, plus the time since its month began. The whole months
    between two times are the difference of these numbers, divided without remainder.
    """
    apart = add(_encode_months(later), negate(_encode_months(earlier)), kind=TermKind.WHOLE)
    match part:
        case "year":
            return _count_whole_steps(apart, 12 * _MONTH)
        case "month":
            return take_remainder(count_age_months(later, earlier), _make_number(12))
        case _:
            raise NoTermError


def _count_whole_steps(term: RowTerm, step: int) -> RowTerm:
    return make_exact_term("trunc", TermKind.EXACT, term, _make_number(step), scale=0, limit=term.limit // step + 1)


def _encode_months(term: RowTerm) -> RowTerm:
    """Return a time's months since the year 0, multiplied by `_MONTH`, plus its time since the month began."""
    if term.function == "constant":
        return _make_constant_age(term)
    years, months = (
        multiply(extract(part, term), _make_number(size)) for part, size in (("year", 12 * _MONTH), ("month", _MONTH))
    )
    into = subtract_times(convert_to_moment(term), truncate("month", term))
    return add(add(years, months, kind=TermKind.WHOLE), into, kind=TermKind.WHOLE)


def _make_constant_age(term: RowTerm) -> RowTerm:
    if term.kind not in (TermKind.DAY, TermKind.MOMENT):
        raise NoTermError
    assert isinstance(term.value, int)
    steps = term.value * (DAY if term.kind is TermKind.DAY else 1)
    found = _EPOCH + timedelta(microseconds=steps)
    into = found - datetime(found.year, found.month, 1)
    return _make_number((12 * found.year + found.month) * _MONTH + into // timedelta(microseconds=1))


def convert_to_length(value: Fraction) -> RowTerm:
    """Return the term for a duration of a number of microseconds."""
    if value.denominator != 1:
        raise NoTermError
    return make_length(int(value))
