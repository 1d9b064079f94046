"""Whole years and months of an age, as PostgreSQL counts them: a month is whole on the day of its number.

An age is kept as one number: each month counts as `_MONTH` microseconds, longer than any, and the time since the
month's beginning is added. Of two such numbers the difference, divided without its remainder, is the whole months
between the times, before and after.
"""

from datetime import datetime, timedelta

from planner.catalog.row_terms import RowTerm, TermKind
from planner.predicates.computed import times
from planner.predicates.computed.numbers import NoTermError, add, multiply, negate, remainder, whole

_MONTH = 32 * times.DAY
_EPOCH = datetime(1970, 1, 1)


def extract(part: str, later: RowTerm, earlier: RowTerm) -> RowTerm:
    """Return the years, or the months beyond them, of `age(later, earlier)`. Raises `NoTermError`."""
    apart = add(_months_and_time(later), negate(_months_and_time(earlier)), kind=TermKind.WHOLE)
    match part:
        case "year":
            return _whole_steps(apart, 12 * _MONTH)
        case "month":
            return remainder(_whole_steps(apart, _MONTH), _number(12))
        case _:
            raise NoTermError


def _whole_steps(term: RowTerm, step: int) -> RowTerm:
    return whole("trunc", TermKind.EXACT, term, _number(step), scale=0, limit=term.limit // step + 1)


def _months_and_time(term: RowTerm) -> RowTerm:
    """Return a time's months since the year 0 as so many times `_MONTH`, and its time since the month began."""
    if term.function == "constant":
        return _constant(term)
    years, months = (
        multiply(times.extract(part, term), _number(size)) for part, size in (("year", 12 * _MONTH), ("month", _MONTH))
    )
    into = times.difference(times.moment(term), times.truncate("month", term))
    return add(add(years, months, kind=TermKind.WHOLE), into, kind=TermKind.WHOLE)


def _constant(term: RowTerm) -> RowTerm:
    if term.kind not in (TermKind.DAY, TermKind.MOMENT):
        raise NoTermError
    assert isinstance(term.value, int)
    steps = term.value * (times.DAY if term.kind is TermKind.DAY else 1)
    found = _EPOCH + timedelta(microseconds=steps)
    into = found - datetime(found.year, found.month, 1)
    return _number((12 * found.year + found.month) * _MONTH + into // timedelta(microseconds=1))


def _number(value: int) -> RowTerm:
    return RowTerm("constant", TermKind.WHOLE, value=value, limit=max(1, abs(value)))
