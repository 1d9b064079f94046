"""Durations and moments as owners write them: `"1 hour"`, `"1 day 6 hours"`, `"90 min"`, `"00:15:00"`; UTC."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isqrt

from planner.catalog.fault import Fault

_LENGTHS = 'Write a length such as "1 hour", "90 minutes" or "7 days".'
_SECONDS = {
    ("s", "sec", "second"): 1,
    ("m", "min", "minute"): 60,
    ("h", "hr", "hour"): 3600,
    ("d", "day"): 86_400,
    ("w", "week"): 604_800,
}
_UNITS = (timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1))
_UNEQUAL = frozenset({"month", "mon", "quarter", "year", "yr", "y"})
_CLOCK = re.compile(r"(?P<hours>\d{1,4}):(?P<minutes>[0-5]\d)(:(?P<seconds>[0-5]\d))?")
_PART = re.compile(r"(?P<count>\d+(\.\d+)?)?\s*(?P<unit>[a-z]+)\s*(,|and\b)?\s*")
_LONGEST = timedelta(days=36_525)  # a century: what is longer was not meant


def parse_duration(raw: object) -> timedelta:
    """Parse a duration in whole seconds from a text. It may be zero.

    The parts of the text are added up; units may be plural or shortened. Raise a `Fault` (KH002) for any other text,
    for months and longer units, whose lengths vary, and for more than a century.

    >>> str(parse_duration("1 day 6 hours")), str(parse_duration("90min")), str(parse_duration("00:15"))
    ('1 day, 6:00:00', '1:30:00', '0:15:00')
    """
    if not isinstance(raw, str):
        raise Fault("KH002", "a length of time is expected, in quotes", hint=_LENGTHS)
    text = raw.strip().lower()
    if match := _CLOCK.fullmatch(text):
        seconds = Decimal(int(match["hours"]) * 3600 + int(match["minutes"]) * 60 + int(match["seconds"] or 0))
    else:
        seconds = _add_parts(text)
    if seconds > _LONGEST.total_seconds():
        raise Fault("KH002", "is longer than a century", hint=_LENGTHS)
    if seconds % 1:
        raise Fault("KH002", "is no whole number of seconds", hint=_LENGTHS)
    return timedelta(seconds=int(seconds))


def _add_parts(text: str) -> Decimal:
    total, at = Decimal(0), 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None or not match[0]:
            raise Fault("KH002", "is not a length of time", hint=_LENGTHS)
        unit = match["unit"].removesuffix("s") if len(match["unit"]) > 2 else match["unit"]
        if unit in _UNEQUAL:
            hint = "Write it in days, hours, minutes or seconds; for calendar months declare a key column of months."
            raise Fault("KH002", f"{unit}s are of unequal length", hint=hint)
        seconds = next((seconds for names, seconds in _SECONDS.items() if unit in names), None)
        if seconds is None:
            raise Fault("KH002", f"{match['unit']} is not a unit of time", hint=_LENGTHS)
        total += Decimal(match["count"] or 1) * seconds
        at = match.end()
    if not text:
        raise Fault("KH002", "is empty", hint=_LENGTHS)
    return total


def write_duration(length: timedelta) -> str:
    """Write a duration as the text of a policy, in the largest unit that divides it.

    >>> write_duration(timedelta(minutes=90)), write_duration(timedelta(days=1)), write_duration(timedelta(days=14))
    ('90 minutes', '1 day', '14 days')
    """
    seconds = int(length.total_seconds())
    for name, size in (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if seconds % size == 0 and (seconds or size == 1):
            count = seconds // size
            return f"{count:,} {name}{'' if count == 1 else 's'}"
    raise AssertionError("a length of time is whole seconds")


def find_nearest_divisor(whole: timedelta, part: timedelta) -> timedelta:
    """Return a duration near `part` that divides `whole`, a round one if possible. Both are whole seconds.

    >>> str(find_nearest_divisor(timedelta(days=1), timedelta(hours=5)))
    '4:00:00'
    >>> str(find_nearest_divisor(timedelta(seconds=7), timedelta(0)))
    '0:00:01'
    """
    part = max(part, _UNITS[-1])
    for unit in _UNITS:
        units, left = divmod(whole, unit)
        if left:
            continue
        near = part // unit
        round_ones = [unit * count for count in _list_divisors(units) if near // 2 <= count <= 2 * near]
        if round_ones:
            return min(round_ones, key=lambda one: (abs(one - part), one))
    return whole


def _list_divisors(whole: int) -> set[int]:
    """Return all divisors, in a number of steps that is the square root.

    A century has too many seconds to try each of them while an owner waits.
    """
    small = [one for one in range(1, isqrt(whole) + 1) if not whole % one]
    return {*small, *(whole // one for one in small)}


def parse_moment(raw: object) -> date:
    """Parse a date, or a time in UTC without a zone. Raise a `Fault` (KH002), also for other time zones.

    >>> parse_moment("2026-01-01"), parse_moment("2026-01-01T06:00:00Z")
    (datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1, 6, 0))
    """
    read = raw
    if isinstance(raw, str):
        read = _read_moment(raw.strip())
    if not isinstance(read, date):
        hint = 'Write it in UTC, such as "2026-01-31" or "2026-01-31 08:00:00".'
        raise Fault("KH002", "is neither a date nor a moment", hint=hint)
    if isinstance(read, datetime):
        if read.tzinfo is not None:
            utc = read.astimezone(UTC).replace(tzinfo=None)
            if read.utcoffset():
                hint = f'Write it in UTC: "{utc.isoformat(sep=" ")}".'
                raise Fault("KH002", "is not in UTC, as all windows and looks are", hint=hint)
            read = utc
        if read.microsecond:
            raise Fault("KH002", "has parts of a second", hint="Write whole seconds.")
    return read


def _read_moment(text: str) -> date | None:
    readers: tuple[Callable[[str], date], ...] = (date.fromisoformat, datetime.fromisoformat)
    for reader in readers:
        try:
            return reader(text)
        except ValueError:
            continue
    return None
