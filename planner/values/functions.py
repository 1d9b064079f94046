"""Functions of constants, folded where PostgreSQL's result is the same under every setting but the ones given."""

import re
from datetime import date, datetime, timedelta
from fractions import Fraction

from sqlglot import exp

from planner.parser.tree import write_short
from planner.values.constant import Constant, Number, Untyped, wrong
from planner.values.datetimes import instant

_PATTERNS = {
    "%Y-%m-%d": re.compile(r"(\d{4})-(\d\d)-(\d\d)\Z", re.ASCII),
    "%Y%m%d": re.compile(r"(\d{4})(\d\d)(\d\d)\Z", re.ASCII),
    "%Y-%m-%d %H:%M": re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d)\Z", re.ASCII),
    "%Y-%m-%d %H:%M:%S": re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)\Z", re.ASCII),
    "%Y-%m-%d %H:%M:%S.%f": re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6})\Z", re.ASCII),
    "%Y-%m-%d %H:%M:%S.MS": re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{3})\Z", re.ASCII),
}
_EPOCH = datetime(1970, 1, 1)


def text_of(value: Constant) -> str | None:
    """Return the text of a constant that is text, or may become it."""
    return value.text if isinstance(value, Untyped) else value if isinstance(value, str) else None


def concatenate(left: Constant, right: Constant, node: exp.Expr) -> Constant:
    """Return `left || right` of two texts."""
    if left is None or right is None:
        return None
    first, second = text_of(left), text_of(right)
    if first is None or second is None:
        raise wrong(node, f"{write_short(node)} joins what is not text", hint="Write the whole text: 'ab%'.")
    return first + second


def lower_text(value: Constant, node: exp.Expr) -> Constant:
    """Return `lower(value)` of ASCII without I, which Turkish collations lower to another letter."""
    if value is None:
        return None
    text = text_of(value)
    if text is None or not text.isascii() or "I" in text:
        raise wrong(
            node,
            f"{write_short(node)} depends on a collation",
            hint="Write the text in lower case: 'kidney'.",
        )
    return text.lower()


def null_if(value: Constant, other: Constant, node: exp.Expr) -> Constant:
    """Return `nullif(value, other)` of two texts or two numbers."""
    if value is None or other is None:
        return value
    first, second = text_of(value), text_of(other)
    if isinstance(value, Number) and isinstance(other, Number):
        return None if value.value == other.value else value
    if first is None or second is None:
        raise wrong(node, f"{write_short(node)} compares constants of different types")
    return None if first == second else first


def day(year: Constant, month: Constant, day_: Constant, node: exp.Expr) -> date | None:
    """Return `make_date(year, month, day)`."""
    if year is None or month is None or day_ is None:
        return None
    parts = [part.value for part in (year, month, day_) if isinstance(part, Number) and part.integral]
    try:
        return date(*map(int, parts)) if len(parts) == 3 else _not_a_date(node)
    except (ValueError, OverflowError):
        return _not_a_date(node)


def _not_a_date(node: exp.Expr) -> date:
    raise wrong(node, f"{write_short(node)} is not a date", hint="Write it as date '2026-12-31'.")


def of_pattern(value: Constant, pattern: str | None, node: exp.Expr) -> datetime | None:
    """Return `to_timestamp(value, pattern)` as local time.

    It needs digits at full length in the places that the pattern names.
    """
    if value is None:
        return None
    text = text_of(value)
    found = _PATTERNS[pattern].match(text) if text is not None and pattern in _PATTERNS else None
    if found is None:
        raise _unread(node)
    parts = list(found.groups())
    microseconds = parts.pop().ljust(6, "0") if len(parts) == 7 else "0"
    try:
        year, month, day, hour, minute, second = [*map(int, parts), 0, 0, 0][:6]
        return datetime(year, month, day, hour, minute, second) + timedelta(microseconds=int(microseconds))
    except ValueError:
        raise _unread(node) from None


def _unread(node: exp.Expr) -> Exception:
    return wrong(
        node,
        f"{write_short(node.this)} is not read with this pattern",
        detail="The patterns YYYY-MM-DD and YYYYMMDD, with HH24:MI, HH24:MI:SS and .MS or .US behind the first, are "
        "read where every digit is there.",
        hint="Write date '2026-12-31' or timestamp '2026-12-31 23:59:59'.",
    )


def with_zone(at: datetime, node: exp.Expr, *, utc: bool, local: bool) -> datetime:
    """Return a timestamp with time zone as a session in UTC shows it.

    `local` if it is local time of the session itself.

    Raises KH212 in other sessions: comparing it with a timestamp without time zone depends on their daylight saving.
    """
    if not utc:
        kept = f"timestamp '{at.isoformat(sep=' ')}'"
        raise wrong(
            node,
            "a timestamp with time zone means another moment in every time zone",
            detail="PostgreSQL compares it with a timestamp without time zone by the session's TimeZone, "
            f"which is not UTC here; the literal {'is local time' if local else 'is given here in UTC'}.",
            hint=f"Write {kept}, or SET TimeZone TO 'UTC' first.",
        )
    return at


def of_text(text: str, node: exp.Expr, *, utc: bool) -> datetime:
    """Return `text::timestamptz` in a session in UTC. Raise KH212 in others."""
    return with_zone(instant(text, node), node, utc=utc, local=False)


def of_seconds(value: Constant, node: exp.Expr, *, utc: bool) -> datetime | None:
    """Return `to_timestamp(seconds)` of whole seconds."""
    if value is None:
        return None
    if not isinstance(value, Number) or value.value.denominator != 1 or abs(value.value) > Fraction(10) ** 10:
        raise wrong(node, f"{write_short(node)} is not folded", hint="Write it as timestamp '2026-12-31 23:59:59'.")
    return with_zone(_EPOCH + timedelta(seconds=int(value.value)), node, utc=utc, local=False)
