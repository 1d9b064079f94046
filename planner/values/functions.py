"""Functions of constants, computed where PostgreSQL's result depends on no setting but the given ones."""

import re
from datetime import date, datetime, timedelta
from fractions import Fraction

from sqlglot import exp

from planner.parser.tree import write_short
from planner.values.constant import Constant, Number, Untyped, refuse_constant
from planner.values.datetimes import read_instant

_PATTERNS = {
    "%Y-%m-%d": re.compile(r"(\d{4})-(\d\d)-(\d\d)\Z", re.ASCII),
    "%Y%m%d": re.compile(r"(\d{4})(\d\d)(\d\d)\Z", re.ASCII),
    "%Y-%m-%d %H:%M": re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d)\Z", re.ASCII),
    "%Y-%m-%d %H:%M:%S": re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)\Z", re.ASCII),
    "%Y-%m-%d %H:%M:%S.%f": re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6})\Z", re.ASCII),
    "%Y-%m-%d %H:%M:%S.MS": re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{3})\Z", re.ASCII),
}
_EPOCH = datetime(1970, 1, 1)


def get_text(value: Constant) -> str | None:
    """Return the text of a constant that is text, or can become text."""
    return value.text if isinstance(value, Untyped) else value if isinstance(value, str) else None


def concatenate(left: Constant, right: Constant, node: exp.Expr) -> Constant:
    """Return `left || right` of two texts."""
    if left is None or right is None:
        return None
    first, second = get_text(left), get_text(right)
    if first is None or second is None:
        raise refuse_constant(
            node, f"{write_short(node)} joins something that is not text", hint="Write the whole text: 'ab%'."
        )
    return first + second


def lower_text(value: Constant, node: exp.Expr) -> Constant:
    """Return the value of `lower(value)` for ASCII text without I, which Turkish collations lower to another letter."""
    if value is None:
        return None
    text = get_text(value)
    if text is None or not text.isascii() or "I" in text:
        raise refuse_constant(
            node,
            f"{write_short(node)} depends on a collation",
            hint="Write the text in lower case: 'kidney'.",
        )
    return text.lower()


def fold_nullif(value: Constant, other: Constant, node: exp.Expr) -> Constant:
    """Return the value of `nullif(value, other)` for two texts or two numbers."""
    if value is None or other is None:
        return value
    first, second = get_text(value), get_text(other)
    if isinstance(value, Number) and isinstance(other, Number):
        return None if value.value == other.value else value
    if first is None or second is None:
        raise refuse_constant(node, f"{write_short(node)} compares constants of different types")
    return None if first == second else first


def fold_make_date(year: Constant, month: Constant, day_: Constant, node: exp.Expr) -> date | None:
    """Return the date `make_date(year, month, day)`. Return None if an argument is NULL."""
    if year is None or month is None or day_ is None:
        return None
    parts = [part.value for part in (year, month, day_) if isinstance(part, Number) and part.is_integral]
    try:
        return date(*map(int, parts)) if len(parts) == 3 else _refuse_date(node)
    except (ValueError, OverflowError):
        return _refuse_date(node)


def _refuse_date(node: exp.Expr) -> date:
    raise refuse_constant(node, f"{write_short(node)} is not a date", hint="Write it as date '2026-12-31'.")


def parse_by_pattern(value: Constant, pattern: str | None, node: exp.Expr) -> datetime | None:
    """Return `to_timestamp(value, pattern)` as local time.

    Each part of the value must have as many digits as its part of the pattern.
    """
    if value is None:
        return None
    text = get_text(value)
    found = _PATTERNS[pattern].match(text) if text is not None and pattern in _PATTERNS else None
    if found is None:
        raise _refuse_unread_function(node)
    parts = list(found.groups())
    microseconds = parts.pop().ljust(6, "0") if len(parts) == 7 else "0"
    try:
        year, month, day, hour, minute, second = [*map(int, parts), 0, 0, 0][:6]
        return datetime(year, month, day, hour, minute, second) + timedelta(microseconds=int(microseconds))
    except ValueError:
        raise _refuse_unread_function(node) from None


def _refuse_unread_function(node: exp.Expr) -> Exception:
    return refuse_constant(
        node,
        f"{write_short(node.this)} is not read with this pattern",
        detail="The patterns YYYY-MM-DD and YYYYMMDD, with HH24:MI, HH24:MI:SS and .MS or .US behind the first, are "
        "read where every digit is there.",
        hint="Write date '2026-12-31' or timestamp '2026-12-31 23:59:59'.",
    )


def convert_to_zone(at: datetime, node: exp.Expr, *, is_utc: bool, is_local: bool) -> datetime:
    """Return a timestamp with time zone as a session in UTC shows it.

    If it `is_local`, it was written as local time of the session. Raise KH212 in sessions of other time zones, whose
    daylight saving time a comparison with a timestamp without time zone depends on.
    """
    if not is_utc:
        kept = f"timestamp '{at.isoformat(sep=' ')}'"
        raise refuse_constant(
            node,
            "a timestamp with time zone means another moment in every time zone",
            detail="PostgreSQL compares it with a timestamp without time zone by the session's TimeZone, "
            f"which is not UTC here; the literal {'is local time' if is_local else 'is given here in UTC'}.",
            hint=f"Write {kept}, or SET TimeZone TO 'UTC' first.",
        )
    return at


def parse_timestamptz(text: str, node: exp.Expr, *, is_utc: bool) -> datetime:
    """Return the value of `text::timestamptz` in a session in UTC. Raise KH212 in other sessions."""
    return convert_to_zone(read_instant(text, node), node, is_utc=is_utc, is_local=False)


def convert_seconds(value: Constant, node: exp.Expr, *, is_utc: bool) -> datetime | None:
    """Return the value of `to_timestamp(seconds)` for whole seconds, or None for NULL."""
    if value is None:
        return None
    if not isinstance(value, Number) or value.value.denominator != 1 or abs(value.value) > Fraction(10) ** 10:
        raise refuse_constant(
            node,
            f"{write_short(node)} is not supported as a constant",
            hint="Write it as timestamp '2026-12-31 23:59:59'.",
        )
    return convert_to_zone(_EPOCH + timedelta(seconds=int(value.value)), node, is_utc=is_utc, is_local=False)
