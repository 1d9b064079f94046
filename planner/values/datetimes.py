"""Dates, timestamps and intervals as PostgreSQL reads them from text and computes with them."""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.tree import write_node
from planner.values.constant import Interval, TimeOfDay, refuse_constant

_MOMENT = re.compile(
    r"\s*(?:(\d{4})-(\d{1,2})-(\d{1,2})|(\d{4})(\d{2})(\d{2}))"
    r"(?:(?:[ ]+|T)(\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)\s*(Z|UTC|[+-]\d{1,2}(?::?\d{2})?)?"
    r"|[ ]+(Z|UTC|[+-]\d{1,2}(?::?\d{2})?))?\s*\Z",
    re.IGNORECASE,
)
_MOMENTS_KEPT = 8_192  # texts of times whose meaning is kept: lists of thousands are read several times, in a megabyte
_LONGEST_KEPT = 64  # characters of such a text, which may have any number of blanks around it
_OFFSET = re.compile(r"([+-])(\d{1,2}):?(\d{2})?\Z")
_FARTHEST_HOURS = 15  # offsets from UTC that PostgreSQL reads end before the sixteenth hour


def read_moment(text: str, node: exp.Expr) -> datetime:
    """Return a date or timestamp without time zone from ISO text.

    A zone after it is read and dropped, as PostgreSQL does.
    """
    return _read_zoned_moment(text, node)[0]


def read_instant(text: str, node: exp.Expr) -> datetime:
    """Return a timestamp with time zone as a session in UTC shows it. Without a zone it is in UTC."""
    at, offset = _read_zoned_moment(text, node)
    try:
        return at - offset
    except OverflowError:
        raise refuse_date_range(node) from None


def _read_zoned_moment(text: str, node: exp.Expr) -> tuple[datetime, timedelta]:
    found = (_parse_moment if len(text) <= _LONGEST_KEPT else _parse_moment.__wrapped__)(text)
    if found is None:
        raise _refuse_moment(text, node)
    return found


@lru_cache(_MOMENTS_KEPT)
def _parse_moment(text: str) -> tuple[datetime, timedelta] | None:
    match = _MOMENT.match(text)
    try:
        if match is None or not text.isascii():
            return None
        year, month, day = (int(part) for part in match.groups()[:6] if part is not None)
        clock = (match[7] or "0:0").split(":")
        seconds = Decimal(clock[2]) if len(clock) > 2 else Decimal(0)
        whole = datetime(year, month, day, int(clock[0]), int(clock[1]))
        if seconds >= 60:
            return None
        return whole + timedelta(microseconds=int(seconds * 1_000_000)), _parse_offset(match[8] or match[9])
    except ValueError:
        return None


def _parse_offset(text: str | None) -> timedelta:
    found = _OFFSET.match(text or "")
    if found is None:
        return timedelta(0)
    hours, minutes = int(found[2]), int(found[3] or 0)
    if hours > _FARTHEST_HOURS or minutes > 59:
        raise ValueError
    return (1 if found[1] == "+" else -1) * timedelta(hours=hours, minutes=minutes)


def _refuse_moment(text: str, node: exp.Expr) -> KeyholeError:
    return refuse_constant(
        node,
        f"{text[:40]!r} is not a date or timestamp of the form 2026-12-31 or 2026-12-31 23:59:59",
        detail="Only the forms are read that mean the same under every DateStyle, in the years 1 to 9999.",
        hint="Write year, month and day in this order: '2026-12-31' or '2026-12-31 23:59:59'.",
    )


def refuse_date_range(node: exp.Expr) -> KeyholeError:
    """Return KH212 for a date before the year 1 or after 9999."""
    return refuse_constant(node, "a date is out of range")


_UNITS = {
    "year": (12, 0, 0),
    "mon": (1, 0, 0),
    "month": (1, 0, 0),
    "week": (0, 7, 0),
    "day": (0, 1, 0),
    "hour": (0, 0, 3_600_000_000),
    "minute": (0, 0, 60_000_000),
    "second": (0, 0, 1_000_000),
}
_SPAN_PART = re.compile(r"\s*([+-]?\s*\d{1,6}(?:\.\d{1,6})?)\s*([a-z]+?)s?(?=[\s\d+-]|\Z)", re.IGNORECASE)
_SPAN_CLOCK = re.compile(r"\s*([+-]?)\s*(\d{1,6}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?(?=\s|\Z)")


_DAY = 86_400_000_000  # microseconds


def read_interval(text: str, node: exp.Expr) -> Interval:
    """Return an interval from numbers with units, which a time of day may follow."""
    if re.fullmatch(r"\s*0+\s*", text):
        return Interval(0, 0, 0)
    totals = [0, 0, 0]
    at = 0
    while at < len(text.rstrip()):
        clock = _SPAN_CLOCK.match(text, at)
        if clock is not None:
            totals[2] += _parse_clock(clock)
            at = clock.end()
            continue
        match = _SPAN_PART.match(text, at)
        if match is None or match[2].lower() not in _UNITS:
            raise refuse_constant(node, f"{text[:40]!r} is not an interval that Keyhole folds", hint=_SPELL_SPAN)
        part = scale_interval(Interval(*_UNITS[match[2].lower()]), Fraction("".join(match[1].split())), node)
        for index, size in enumerate((part.months, part.days, part.microseconds)):
            totals[index] += size
        at = match.end()
    return Interval(*totals)


def add_intervals(left: Interval, right: Interval, sign: int) -> Interval:
    """Return the sum of two intervals. If `sign` is -1, return their difference."""
    return Interval(
        left.months + sign * right.months,
        left.days + sign * right.days,
        left.microseconds + sign * right.microseconds,
    )


def scale_interval(length: Interval, factor: Fraction, node: exp.Expr) -> Interval:
    """Return an interval times a number.

    A fraction of a day becomes hours, as in PostgreSQL. Raise KH212 for fractions of months and of microseconds.
    """
    months, days = length.months * factor, length.days * factor
    whole = days.numerator // days.denominator if days >= 0 else -(-days.numerator // days.denominator)
    microseconds = length.microseconds * factor + (days - whole) * _DAY
    if months.denominator != 1 or microseconds.denominator != 1 or abs(microseconds) >= 2**62 or abs(whole) >= 2**31:
        raise refuse_constant(node, f"{write_node(node)[:60]} is not an interval that Keyhole folds", hint=_SPELL_SPAN)
    return Interval(int(months), whole, int(microseconds))


_SPELL_SPAN = "Write numbers with year, month, week, day, hour, minute or second: interval '1 month 2.5 days'."


def _parse_clock(match: re.Match[str]) -> int:
    hours, minutes, seconds = int(match[2]), int(match[3]), int(match[4] or 0)
    microseconds = int((match[5] or "").ljust(6, "0"))
    whole = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + microseconds
    return -whole if match[1] == "-" else whole


_TIME_OF_DAY = re.compile(r"\s*(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?\s*")


def read_time_of_day(text: str, node: exp.Expr) -> TimeOfDay:
    """Return a time of day from text such as '18:30' or '18:30:00.5'. Raise KH212 for anything else."""
    match = _TIME_OF_DAY.fullmatch(text)
    hours, minutes, seconds = (0, 60, 0) if match is None else (int(match[i] or 0) for i in (1, 2, 3))
    found = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000
    if match is None or minutes > 59 or seconds > 59 or found > _DAY:
        raise refuse_constant(node, f"{text[:40]!r} is not a time of the day", hint="Write hours and minutes: '18:30'.")
    return TimeOfDay(found + int((match[4] or "").ljust(6, "0")))


def shift_moment(at: date, by: Interval, sign: int) -> datetime:
    """Return the time plus (sign 1) or minus (-1) an interval.

    Raise ValueError or OverflowError for a result outside the years 1 to 9999.
    """
    at = move_to_midnight(at)
    month = at.year * 12 + at.month - 1 + sign * by.months
    year, month = divmod(month, 12)
    at = at.replace(year=year, month=month + 1, day=min(at.day, monthrange(year, month + 1)[1]))
    return at + sign * timedelta(days=by.days, microseconds=by.microseconds)


def move_to_midnight(at: date) -> datetime:
    """Return a date as the timestamp at its start. Return a timestamp unchanged."""
    return at if isinstance(at, datetime) else datetime.combine(at, datetime.min.time())


STEPS = {
    "year": Interval(12, 0, 0),
    "quarter": Interval(3, 0, 0),
    "month": Interval(1, 0, 0),
    "week": Interval(0, 7, 0),
    "day": Interval(0, 1, 0),
    "hour": Interval(0, 0, 3_600_000_000),
    "minute": Interval(0, 0, 60_000_000),
    "second": Interval(0, 0, 1_000_000),
}


def normalise_unit(unit: str) -> str:
    """Return the canonical name, one of `STEPS`, of a unit of date_trunc."""
    unit = unit.lower().strip("'")
    return "week" if unit == "week(monday)" else unit


def truncate_to_unit(value: date, unit: str) -> datetime:
    """Return `date_trunc(unit, value)`, for a unit in `STEPS`."""
    at = move_to_midnight(value)
    start = at.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year":
            return start.replace(month=1, day=1)
        case "quarter":
            return start.replace(month=3 * ((at.month - 1) // 3) + 1, day=1)
        case "month":
            return start.replace(day=1)
        case "week":
            return start - timedelta(days=at.weekday())
        case "day":
            return start
        case "hour":
            return at.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return at.replace(second=0, microsecond=0)
        case "second":
            return at.replace(microsecond=0)
        case _:
            raise ValueError(f"date_trunc has no unit {unit!r} here")


def extract_part(part: str, moment: datetime) -> int:
    """Return `extract(part from moment)`, for the parts that derived columns may have."""
    return _PARTS[part](moment)


_PARTS: dict[str, Callable[[datetime], int]] = {
    "year": lambda moment: moment.year,
    "isoyear": lambda moment: moment.isocalendar().year,
    "quarter": lambda moment: (moment.month - 1) // 3 + 1,
    "month": lambda moment: moment.month,
    "week": lambda moment: moment.isocalendar().week,
    "day": lambda moment: moment.day,
    "dow": lambda moment: moment.isoweekday() % 7,
    "isodow": lambda moment: moment.isoweekday(),
    "doy": lambda moment: moment.timetuple().tm_yday,
    "hour": lambda moment: moment.hour,
    "minute": lambda moment: moment.minute,
}
