"""Derived columns: the few allowed expressions of one date or timestamp column, and their types."""

import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta

from planner.catalog.catalog import Column, Derivation, SqlType, Value
from planner.catalog.fault import Fault

DATE_PARTS = ("year", "quarter", "month", "week", "day")
EXTRACTED_FROM_DATE = ("year", "isoyear", "quarter", "month", "week", "day", "dow", "isodow", "doy")
TRUNCATIONS = ("hour", "day", "week", "month", "quarter", "year")
PART_RANGES = {
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "dow": (0, 6),
    "isodow": (1, 7),
    "doy": (1, 366),
    "hour": (0, 23),
    "minute": (0, 59),
}
CLOCK_PARTS = ("hour", "minute")
"""Parts of a time that a date does not have."""
"""The least and the greatest number of each part of a time that is one of few; a year is not."""
# what is the same for all times that one truncation puts together
_TRUNCATED_FURTHER: Mapping[str, tuple[str, ...]] = {
    "hour": ("day", "week", "month", "quarter", "year"),
    "day": ("week", "month", "quarter", "year"),
    "month": ("quarter", "year"),
    "quarter": ("year",),
}
_EXTRACTED: Mapping[str, tuple[str, ...]] = {
    "hour": (*EXTRACTED_FROM_DATE, "hour"),
    "day": EXTRACTED_FROM_DATE,
    "week": ("week", "isoyear"),
    "month": ("year", "quarter", "month"),
    "quarter": ("year", "quarter"),
    "year": ("year",),
}
_HINT = (
    "Allowed: date_trunc('month', column) with year, quarter, month, week, day or hour; "
    "extract(year from column) with year, isoyear, quarter, month, week, day, dow, isodow, doy or hour; column::date."
)
_NAME = r'(?:"(?P<quoted>(?:[^"]|"")+)"|(?P<bare>[A-Za-z_][A-Za-z0-9_$]*))'
_FORMS = (
    ("date_trunc", re.compile(rf"date_trunc\s*\(\s*'(?P<part>\w+)'\s*,\s*{_NAME}\s*\)", re.IGNORECASE)),
    ("extract", re.compile(rf"extract\s*\(\s*(?P<part>\w+)\s+from\s+{_NAME}\s*\)", re.IGNORECASE)),
    ("date", re.compile(rf"{_NAME}\s*::\s*date(?P<part>)", re.IGNORECASE)),
    ("date", re.compile(rf"cast\s*\(\s*{_NAME}\s+as\s+date\s*\)(?P<part>)", re.IGNORECASE)),
)


def parse_derivation(expression: str) -> Derivation:
    """Parse the derivation that a policy's `expression` names.

    Raise a `Fault` (KH010) for anything off the allow-list.
    """
    for function, form in _FORMS:
        match = form.fullmatch(expression.strip())
        if match is None:
            continue
        column = match["bare"] or match["quoted"].replace('""', '"')
        derivation = Derivation(function=function, part=match["part"].lower(), column=column)
        allowed = {"date_trunc": (*DATE_PARTS, "hour"), "extract": (*EXTRACTED_FROM_DATE, "hour"), "date": ("",)}
        if derivation.part not in allowed[function]:
            raise Fault("KH010", f"{function} of {derivation.part!r} is not on the allow-list", hint=_HINT)
        return derivation
    raise Fault("KH010", f"the expression {expression!r} is not on the allow-list", hint=_HINT)


def infer_derived_type(derivation: Derivation, base: SqlType) -> SqlType:
    """Return the type of the derived column over a base column of type `base`.

    Truncation to a day or coarser gives a date, as calendars count days. Raise a `Fault` (KH010) for a base that is
    neither a date nor a timestamp, and for an hour of a date.
    """
    if base not in (SqlType.DATE, SqlType.TIMESTAMP):
        problem = f'column "{derivation.column}" is of type {base.value}, not a date or timestamp'
        raise Fault("KH010", problem, hint=_HINT)
    if base is SqlType.DATE and derivation.part in CLOCK_PARTS:
        hint = "Use a part of a day or coarser, or a timestamp column."
        raise Fault("KH010", f'column "{derivation.column}" is a date and has no hours', hint=hint)
    if derivation.function == "extract":
        return SqlType.INTEGER
    return SqlType.TIMESTAMP if derivation.part == "hour" else SqlType.DATE


def find_calendar_step(base: Column) -> str | None:
    """Return the distance between a column's values, such as "month".

    Return None if the calendar does not determine it.
    """
    match base.derivation:
        case None:
            return "day" if base.sql_type is SqlType.DATE else None
        case Derivation(function="date"):
            return "day"
        case Derivation(function="date_trunc", part=part) if part in TRUNCATIONS:
            return part
        case _:
            return None


def is_derivable(derived: Derivation, base: Column) -> bool:
    """Return True if the derivation can be computed from `base`: from its own column, or from a finer part of it."""
    if base.derivation is None:
        return derived.column == base.name
    step = find_calendar_step(base)
    if not isinstance(base.derivation, Derivation) or base.derivation.column != derived.column or step is None:
        return False
    match derived.function:
        case "date_trunc":
            return derived.part in _TRUNCATED_FURTHER.get(step, ())
        case "extract":
            return derived.part in _EXTRACTED[step]
        case _:
            return step == "hour"


def describe_derivation(derivation: Derivation) -> str:
    """Return the derivation in readable form: `date_trunc(month visited)`."""
    return f"{derivation.function}({derivation.part} {derivation.column})"


def is_possible(derivation: Derivation, value: Value) -> bool:
    """Return True if the derivation can give `value`: a month's first day, an hour from 0 to 23, and so on."""
    if isinstance(value, date):
        return derivation.function != "date_trunc" or _is_truncated(derivation.part, value)
    low, high = PART_RANGES.get(derivation.part, (-4712, 294276))
    return isinstance(value, int) and low <= value <= high


def _is_truncated(part: str, value: date) -> bool:
    if isinstance(value, datetime):
        if value - value.replace(minute=0, second=0, microsecond=0) != timedelta(0):
            return False
        if part != "hour" and value.hour != 0:
            return False
    match part:
        case "year":
            return (value.month, value.day) == (1, 1)
        case "quarter":
            return value.day == 1 and value.month % 3 == 1
        case "month":
            return value.day == 1
        case "week":
            return value.isoweekday() == 1
        case _:
            return True
