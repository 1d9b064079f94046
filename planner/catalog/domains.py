"""Public key domains: the values that a key column may take, from a list, a range or a public table."""

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from hashlib import sha256

from planner.catalog.catalog import SqlType, Value
from planner.catalog.fault import Fault

MAX_VALUES = 1_000_000  # the default of `max_keys`: a key with more values could not be grouped by, even alone
KEY_TYPES = (SqlType.TEXT, SqlType.INTEGER, SqlType.BOOLEAN, SqlType.DATE, SqlType.TIMESTAMP)

_STEP = re.compile(r"\s*(?P<count>\d+)?\s*(?P<unit>second|minute|hour|day|week|month|quarter|year)s?\s*")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_LONGEST = 2**63  # the end of bigint


def parse_value(raw: object, kind: SqlType) -> Value:
    """Parse a policy's value as a value of a key's type. Dates and timestamps may be ISO text.

    Raise a `Fault` (KH003) if the value is none of that type.
    """
    match kind, raw:
        case (SqlType.BOOLEAN, bool()):
            return raw
        case (SqlType.TEXT, str()) if "\x00" not in raw:
            return raw
        case (SqlType.INTEGER, int()) if not isinstance(raw, bool) and -_LONGEST <= raw < _LONGEST:
            return raw
        case (SqlType.TIMESTAMP, datetime()) if raw.tzinfo is None:
            return raw
        case (SqlType.DATE, date()) if not isinstance(raw, datetime):
            return raw
        case (SqlType.TIMESTAMP, date()) if not isinstance(raw, datetime):
            return datetime(raw.year, raw.month, raw.day)
        case (SqlType.DATE | SqlType.TIMESTAMP, str()):
            return _parse_iso(raw, kind)
        case _:
            raise Fault("KH003", f"{_show_value(raw)} is not a value of type {kind.value}", hint=_write_example(kind))


def _parse_iso(raw: str, kind: SqlType) -> Value:
    try:
        if kind is SqlType.DATE:
            return date.fromisoformat(raw)
        parsed = datetime.fromisoformat(raw)
    except ValueError:
        raise Fault(
            "KH003", f"{_show_value(raw)} is not a value of type {kind.value}", hint=_write_example(kind)
        ) from None
    if parsed.tzinfo is not None:
        raise Fault("KH003", f"{_show_value(raw)} has a time zone", hint="Write it in UTC, without an offset.")
    return parsed


def _show_value(raw: object) -> str:
    return str(raw) if isinstance(raw, Decimal | date) else repr(raw)


def _write_example(kind: SqlType) -> str:
    examples = {
        SqlType.TEXT: '"Germany"',
        SqlType.INTEGER: "42",
        SqlType.BOOLEAN: "true",
        SqlType.DATE: '"2026-01-31"',
        SqlType.TIMESTAMP: '"2026-01-31 08:00:00"',
    }
    return f"Write values of type {kind.value} like {examples[kind]}."


def list_values(values: Sequence[object], kind: SqlType) -> tuple[Value, ...]:
    """Return the domain of `values = [...]`, in the owner's order.

    Raise a `Fault` (KH003) on an empty or repeated value.
    """
    domain = tuple(parse_value(raw, kind) for raw in values)
    if not domain:
        raise Fault("KH003", "the key domain is empty", hint="List at least one value.")
    seen: set[Value] = set()
    for value in domain:
        if value in seen:
            raise Fault("KH003", f"the value {_show_value(value)} is listed twice", hint="List every value once.")
        seen.add(value)
    return domain


def expand_range(
    first: object, last: object, step: object, kind: SqlType, *, most: int = MAX_VALUES
) -> tuple[Value, ...]:
    """Return the domain of `range = [first, last], step = ...`. It includes `last` if a step ends there.

    `step` is a whole number for integers (1 if absent), text such as "1 month" for dates (a day if absent) and
    timestamps (an hour if absent). Raise a `Fault` (KH003), also for more than `most` values; the number is checked
    before any value is made.
    """
    if kind not in (SqlType.INTEGER, SqlType.DATE, SqlType.TIMESTAMP):
        problem = f"a range needs integers, dates or timestamps, not {kind.value}"
        raise Fault("KH003", problem, hint="Use values = [...].")
    start, stop = parse_value(first, kind), parse_value(last, kind)
    if isinstance(start, int) and isinstance(stop, int):
        if step is not None and (isinstance(step, bool) or not isinstance(step, int) or step < 1):
            raise Fault("KH003", f"{_show_value(step)} is not a step for integers", hint="Write step = 1 or more.")
        _check_countable((stop - start) // (step or 1) + 1 if stop >= start else 0, most)
        return tuple(range(start, stop + 1, step or 1))
    assert isinstance(start, date)
    assert isinstance(stop, date)
    return _step_calendar(start, stop, _parse_step(step, kind), most)


def _parse_step(step: object, kind: SqlType) -> tuple[int, str]:
    default = "1 day" if kind is SqlType.DATE else "1 hour"
    text = default if step is None else step
    match = _STEP.fullmatch(text) if isinstance(text, str) else None
    count = int(match["count"] or 1) if match else 0
    if match is None or count < 1 or (kind is SqlType.DATE and match["unit"] in ("second", "minute", "hour")):
        problem = f"{_show_value(step)} is not a step for type {kind.value}"
        raise Fault("KH003", problem, hint=f'Write a step such as "{default}" or "1 month".')
    return count, match["unit"]


def _step_calendar(start: date, stop: date, step: tuple[int, str], most: int) -> tuple[Value, ...]:
    count, unit = step
    if unit in _SECONDS:
        width = timedelta(seconds=count * _SECONDS[unit])
        size = (stop - start) // width + 1 if stop >= start else 0
        _check_countable(size, most)
        return tuple(start + index * width for index in range(size))
    if start.day > 28:
        hint = "Start on day 1 to 28 of a month."
        raise Fault("KH003", f"a step of {unit}s cannot start on day {start.day}", hint=hint)
    months = count * _MONTHS[unit]
    size = max(0, (stop.year - start.year) * 12 + stop.month - start.month) // months + 1 if stop >= start else 0
    _check_countable(size, most)
    steps = (_add_months(start, index * months) for index in range(size))
    return tuple(value for value in steps if value <= stop)


def _add_months(start: date, months: int) -> date:
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    return start.replace(year=year, month=month + 1)


def _check_countable(size: int, most: int) -> None:
    if size < 1:
        raise Fault("KH003", "the range is empty", hint="Write the earlier end first.")
    if size > most:
        hint = f"Choose a longer step, or raise limits.max_keys = {most}."
        raise Fault("KH003", f"the range has {size:,} values, more than {most:,}", hint=hint)


def list_distinct(values: Sequence[Value | None], kind: SqlType) -> tuple[Value, ...]:
    """Return the domain of `values_from`: the distinct values of a pinned public column, sorted, without NULL."""
    present = {value for value in values if value is not None}
    if not present:
        return list_values((), kind)
    ordered: tuple[Value, ...] = tuple(sorted(present))  # they are of one type
    return ordered


def digest_domain(values: Sequence[Value], kind: SqlType) -> str:
    """Return a sha256 in hex of a key domain: its type, its values and their order."""
    digest = sha256(kind.value.encode())
    for value in values:
        text = encode_value(value).encode()
        digest.update(len(text).to_bytes(8, "big"))
        digest.update(text)
    return digest.hexdigest()


def encode_value(value: Value) -> str:
    """Return a value as text for the pin file."""
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat(sep=" ")
        case date():
            return value.isoformat()
        case _:
            return str(value)
