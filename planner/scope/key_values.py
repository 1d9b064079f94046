"""Values of expressions of public keys, with PostgreSQL's types: comparing, converting and casting them.

A value that could depend on a collation, on a session's settings or on rounding is not exact.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import TypeAlias

from sqlglot import exp

from planner.catalog.catalog import SqlType, Value
from planner.parser.tree import write_short

Raw: TypeAlias = (
    str
    | bool
    | int
    | Fraction
    | date
    | datetime
    | tuple[str, date]
    | tuple[Fraction, Fraction]
    | tuple[Fraction, Fraction, Fraction]
    | None
)
NUMBERS = ("integer", "whole", "numeric", "double")  # whole: numeric without decimals
TIMES = ("date", "timestamp", "timestamptz")
TEXTS = ("text", "unknown")
_LARGEST = 2**31  # the end of integer, beyond which PostgreSQL would raise
_FINEST = 10_000  # denominators up to which numeric division keeps different quotients distinct
_TEXT_TYPES = ("TEXT", "VARCHAR")
_INTEGER_TYPES = ("INT", "BIGINT")


class NotExact(Exception):
    """The error for an expression whose values are not computed here. Its text names the part that is to blame."""


@dataclass(frozen=True, slots=True)
class TypedValue:
    """A value, None for NULL, and the name of its type: PostgreSQL's, or one of three more.

    - "unknown" is a quoted literal.
    - "opaque" is a text whose characters are unknown, so it can be compared for equality only.
    - "quotient" is a numeric that PostgreSQL rounds: its dividend, its divisor, and a whole number that is added.
    """

    kind: str
    raw: Raw


def type_value(value: Value | None, kind: SqlType) -> TypedValue:
    """Return a key's value, or NULL, with its type. Raise `NotExact` for a type whose values are not exact here."""
    if kind in (SqlType.NUMERIC, SqlType.DOUBLE):
        assert value is None or isinstance(value, int | Decimal)
        return TypedValue("numeric", None if value is None else Fraction(value))
    if value is None:
        return TypedValue(kind.value, None)
    if kind not in (SqlType.TEXT, SqlType.INTEGER, SqlType.BOOLEAN, SqlType.DATE, SqlType.TIMESTAMP):
        raise NotExact(f"a key of type {kind.value}")
    assert isinstance(value, str | bool | int | date)
    return TypedValue(kind.value, value)


def unify(found: Sequence[TypedValue], node: exp.Expr) -> list[TypedValue]:
    """Return the values converted to one type, chosen as PostgreSQL does for branches and the sides of an operator."""
    kinds = {one.kind for one in found} - {"unknown"}
    if not kinds:
        return [TypedValue("text", one.raw) for one in found]
    if kinds <= set(NUMBERS):
        kind = max(kinds, key=NUMBERS.index)
    elif len(kinds) == 1:
        (kind,) = kinds
    elif kinds == {"date", "timestamp"}:
        kind = "timestamp"
    else:
        raise NotExact(write_short(node))
    return [convert(one, kind, node) for one in found]


def convert(found: TypedValue, kind: str, node: exp.Expr) -> TypedValue:
    """Return the value converted to another type to which PostgreSQL converts implicitly.

    Raise `NotExact` for other types.
    """
    raw = found.raw
    if raw is None or found.kind == kind:
        return TypedValue(kind, raw)
    if found.kind in NUMBERS and kind in NUMBERS:
        return TypedValue(kind, round_to_double(raw) if kind == "double" else raw)
    if kind == "text" and found.kind == "unknown":
        return TypedValue(kind, raw)
    if kind == "integer" and isinstance(raw, str) and re.fullmatch(r"-?\d{1,9}", raw):
        return TypedValue(kind, int(raw))
    if kind in ("date", "timestamp") and isinstance(raw, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", raw):
        return convert(TypedValue("date", date.fromisoformat(raw)), kind, node)
    if kind == "timestamp" and isinstance(raw, str) and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", raw):
        return TypedValue(kind, datetime.fromisoformat(raw))
    if kind == "timestamp" and found.kind == "date" and isinstance(raw, date):
        return TypedValue(kind, datetime(raw.year, raw.month, raw.day))
    raise NotExact(write_short(node))


def round_to_double(raw: Raw) -> Fraction:
    """Return the double precision number that is nearest to a number."""
    assert isinstance(raw, int | Fraction)
    return Fraction(float(raw))


def compare(operation: type[exp.Expr], left: TypedValue, right: TypedValue, node: exp.Expr) -> TypedValue:
    """Return the comparison of two values of one type. If one is NULL, the result is NULL.

    Raise `NotExact` if the result depends on a collation or on the session.
    """
    left, right = unify([left, right], node)
    a, b = left.raw, right.raw
    if left.kind in ("opaque", "quotient", "timestamptz"):
        raise NotExact(write_short(node))
    if a is None or b is None:
        return TypedValue("boolean", None)
    if operation in (exp.EQ, exp.NEQ):
        return TypedValue("boolean", (a == b) is (operation is exp.EQ))
    if left.kind == "text":  # the order of texts depends on a collation
        raise NotExact(write_short(node))
    match a, b:
        case (int() | Fraction() as one, int() | Fraction() as other):
            less, more = one < other, one > other
        case (date() as day, date() as later):
            less, more = day < later, day > later
        case _:
            raise NotExact(write_short(node))
    results: dict[type[exp.Expr], bool] = {exp.LT: less, exp.GT: more, exp.LTE: not more, exp.GTE: not less}
    return TypedValue("boolean", results[operation])


def disjoin(found: Sequence[TypedValue]) -> TypedValue:
    """Return the disjunction (OR) of booleans, NULL if it is unknown."""
    raws = [one.raw for one in found]
    return TypedValue("boolean", True if True in raws else None if None in raws else False)


def negate(found: TypedValue) -> TypedValue:
    """Return the negation (NOT) of a boolean, NULL if it is unknown."""
    return TypedValue("boolean", None if found.raw is None else not found.raw)


def read_boolean(found: TypedValue, node: exp.Expr) -> bool | None:
    """Return the truth value of a boolean, None for NULL. Raise `NotExact` for another type."""
    if found.raw is not None and (found.kind != "boolean" or not isinstance(found.raw, bool)):
        raise NotExact(write_short(node))
    return None if found.raw is None else bool(found.raw)


def make_exact_number(value: Fraction, kind: str, node: exp.Expr) -> TypedValue:
    """Return a number that PostgreSQL computes with exactly.

    Raise `NotExact` for numbers that may be too long for that.
    """
    if abs(value.numerator) >= _LARGEST or value.denominator > _FINEST:
        raise NotExact(write_short(node))
    return TypedValue(kind, value)


def read_fraction(found: TypedValue, node: exp.Expr) -> Fraction | None:
    """Return the value of a number, None for NULL. Raise `NotExact` for another type."""
    if found.kind not in NUMBERS:
        raise NotExact(write_short(node))
    assert found.raw is None or isinstance(found.raw, int | Fraction)
    return None if found.raw is None else Fraction(found.raw)


def read_moment(found: TypedValue) -> datetime:
    """Return a date or timestamp as a timestamp; a date is its midnight."""
    raw = found.raw
    assert isinstance(raw, date)
    return raw if isinstance(raw, datetime) else datetime(raw.year, raw.month, raw.day)


def to_text(found: TypedValue, node: exp.Expr) -> TypedValue:
    """Return the value as text. A date gives an opaque text, because its text depends on the session."""
    raw = found.raw
    match found.kind:
        case "opaque":
            return found
        case "date" | "timestamp":
            return TypedValue("opaque", (found.kind, raw) if isinstance(raw, date) else None)
        case "text" | "unknown":
            return TypedValue("text", raw)
        case "integer" | "whole":
            return TypedValue("text", str(int(raw)) if isinstance(raw, int | Fraction) else None)
        case "boolean":
            return TypedValue("text", None if raw is None else "true" if raw else "false")
        case _:
            raise NotExact(write_short(node))


def cut_text(found: TypedValue, width: int, node: exp.Expr) -> TypedValue:
    """Return the first characters of a text. Raise `NotExact` for an opaque text, whose characters are unknown."""
    if found.kind != "text" or not isinstance(found.raw, str | None):
        raise NotExact(write_short(node))
    return TypedValue("text", None if found.raw is None else found.raw[:width])


def cast(found: TypedValue, kind: str, node: exp.Expr) -> TypedValue:
    """Return the value of `CAST(found AS kind)`. Raise `NotExact` if it is not known exactly."""
    if kind in _TEXT_TYPES:
        return to_text(found, node)
    if kind in _INTEGER_TYPES:
        return _convert_integer(found, kind, node)
    if kind == "DOUBLE" and found.kind in NUMBERS:
        return TypedValue("double", None) if found.raw is None else convert(found, "double", node)
    if kind == "DECIMAL" and found.kind == "double":
        return _convert_double(found.raw, node)
    if kind == "DECIMAL" and found.kind in NUMBERS:
        return TypedValue("whole" if found.kind == "integer" else found.kind, found.raw)
    if kind == "BOOLEAN" and found.kind == "boolean":
        return found
    if kind in ("DATE", "TIMESTAMP") and found.kind == "unknown":
        return convert(found, kind.lower(), node)
    moment = None if found.kind not in TIMES or found.raw is None else read_moment(found)
    if kind == "DATE" and found.kind in TIMES:
        return TypedValue("date", None if moment is None else moment.date())
    rounds = isinstance(node, exp.Cast) and bool(node.to.expressions) and moment is not None and moment.microsecond > 0
    if kind == "TIMESTAMP" and found.kind in TIMES and not rounds:
        return TypedValue("timestamp", moment)
    if kind == "TIMESTAMPTZ" and found.kind in ("date", "timestamptz"):
        return TypedValue("timestamptz", moment)
    raise NotExact(write_short(node))


def _convert_double(raw: Raw, node: exp.Expr) -> TypedValue:
    """Return the numeric that PostgreSQL makes of a double, from its first 15 digits."""
    if raw is None:
        return TypedValue("numeric", None)
    assert isinstance(raw, int | Fraction)
    found = make_exact_number(Fraction(Decimal(format(float(raw), ".15g"))), "numeric", node)
    return TypedValue("whole", found.raw) if raw == found.raw and Fraction(raw).denominator == 1 else found


def _convert_integer(found: TypedValue, kind: str, node: exp.Expr) -> TypedValue:
    raw = found.raw
    if found.kind == "double" and isinstance(raw, Fraction):
        raw = Fraction(round(raw))  # halves to even numbers
    if found.kind in NUMBERS and not (isinstance(raw, Fraction) and raw.denominator != 1):
        return TypedValue("integer", raw)
    if found.kind == "numeric" and isinstance(raw, Fraction):
        return TypedValue("integer", floor(abs(raw) + Fraction(1, 2)) * (1 if raw > 0 else -1))
    if found.kind == "boolean" and kind == "INT":
        return TypedValue("integer", None if raw is None else int(bool(raw)))
    if found.kind in TEXTS:
        return convert(TypedValue("unknown", raw), "integer", node)
    raise NotExact(write_short(node))
