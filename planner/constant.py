"""Constant expressions folded as PostgreSQL would, exactly; what would raise there is refused at planning."""

import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from planner.catalog import Value
from planner.errors import KeyholeError
from planner.syntax import bare, name, position, written

_MOST_BITS = 512


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number; `integral` if PostgreSQL would compute with it as an integer."""

    value: Fraction
    integral: bool


@dataclass(frozen=True, slots=True)
class Untyped:
    """A quoted text that takes the type of what it is compared with."""

    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """An interval as PostgreSQL keeps it."""

    months: int
    days: int
    microseconds: int


Constant: TypeAlias = Number | Untyped | Span | str | bool | date | datetime | None


class NotConstant(Exception):
    """The expression, or the part of it in `node`, is no constant."""

    def __init__(self, node: exp.Expr) -> None:
        super().__init__("not a constant")
        self.node = node


@dataclass(frozen=True, slots=True)
class Given:
    """What constants may depend on: the parameters' values by number, and the day on which the question is asked.

    `columns` are the columns that have one known value, by qualifier and name as written.
    """

    parameters: Mapping[int, Value | None]
    today: date
    columns: Mapping[tuple[str, str], Constant] = field(default_factory=dict)


def _wrong(node: exp.Expr, message: str) -> KeyholeError:
    return KeyholeError("KH212", message, position=position(node))


def number(text: str, node: exp.Expr) -> Number:
    """The number that a literal writes."""
    cleaned = text.strip().replace("_", "")
    try:
        value = Decimal(cleaned)
    except InvalidOperation:
        raise _wrong(node, f"{text[:40]!r} is not a number") from None
    if not value.is_finite() or abs(value.adjusted()) > 60 or len(cleaned) > 100:
        raise _wrong(node, f"{text[:40]!r} is out of range")
    return Number(Fraction(value), re.fullmatch(r"[+-]?\d+", cleaned) is not None)


def _bounded(value: Fraction, node: exp.Expr, *, integral: bool) -> Number:
    if value.numerator.bit_length() > _MOST_BITS or value.denominator.bit_length() > _MOST_BITS:
        raise _wrong(node, "a constant is out of range")
    return Number(value, integral)


def fold(node: exp.Expr, given: Given) -> Constant:
    """The value of a constant expression. Raises `NotConstant`, KH109 for a parameter without value, or KH212."""
    node = bare(node)
    match node:
        case exp.Literal() | exp.RawString() | exp.Boolean() | exp.Null():
            return _literal(node)
        case exp.Parameter():
            return _parameter(node, given)
        case exp.Neg():
            return _negated(fold(node.this, given), node)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
            return _arithmetic(node, fold(node.this, given), fold(node.expression, given))
        case exp.Column() if (found := (name(node.args.get("table")), name(node.this))) in given.columns:
            return given.columns[found]
        case exp.Coalesce() if given.columns:
            return _first([fold(part, given) for part in (node.this, *node.expressions)])
        case exp.CurrentDate():
            return given.today
        case exp.CurrentTimestamp() | exp.Localtimestamp():
            return datetime.combine(given.today, datetime.min.time())
        case exp.Cast():
            return cast(fold(node.this, given), node.to, node)
        case exp.TimestampTrunc() if node.args.get("zone") is None:
            return _truncated(fold(node.this, given), str(node.unit), node)
        case exp.Interval():
            return _interval(node)
        case _:
            raise NotConstant(node)


def _literal(node: exp.Expr) -> Constant:
    match node:
        case exp.Boolean():
            return bool(node.this)
        case exp.Null():
            return None
        case exp.Literal() if not node.is_string:
            return number(str(node.this), node)
        case _:
            return Untyped(str(node.this))


def uses_clock(node: exp.Expr) -> bool:
    """Whether the expression depends on the day on which it is asked."""
    return node.find(exp.CurrentDate, exp.CurrentTimestamp, exp.Localtimestamp) is not None


def _dollar(node: exp.Expr) -> int | None:
    at = position(node)
    return None if at is None else max(at - 1, 1)


def _parameter(node: exp.Expr, given: Given) -> Constant:
    index = int(str(node.this.this))
    if index not in given.parameters:
        raise KeyholeError(
            "KH109",
            f"parameter ${index} has no value",
            hint="Bind a value, or write the constant into the statement.",
            position=_dollar(node),
        )
    match given.parameters[index]:
        case bool() | None as value:
            return value
        case int() as value:
            return _bounded(Fraction(value), node, integral=True)
        case Decimal() as value:
            return Number(number(str(value), node).value, integral=False)
        case str() as value:
            return Untyped(value)
        case datetime() as value if value.tzinfo is not None:
            raise _wrong(node, "a timestamp with time zone depends on a setting; pass one without")
        case value:
            return value


def _first(values: list[Constant]) -> Constant:
    """The first that is not NULL; among numbers, computed with as their common type."""
    whole = all(isinstance(value, Number) and value.integral for value in values if value is not None)
    first = next((value for value in values if value is not None), None)
    return Number(first.value, whole) if isinstance(first, Number) else first


def _negated(value: Constant, node: exp.Expr) -> Constant:
    match value:
        case None:
            return None
        case Number():
            return Number(-value.value, value.integral)
        case Span():
            return Span(-value.months, -value.days, -value.microseconds)
        case _:
            raise _wrong(node, "only numbers and intervals can be negated")


def _arithmetic(node: exp.Expr, left: Constant, right: Constant) -> Constant:
    if left is None or right is None:
        return None
    if isinstance(left, Number) and isinstance(right, Untyped):
        right = number(right.text, node)
    if isinstance(right, Number) and isinstance(left, Untyped):
        left = number(left.text, node)
    if isinstance(left, Number) and isinstance(right, Number):
        return _numbers(node, left, right)
    return _moment(node, left, right)


def _numbers(node: exp.Expr, left: Number, right: Number) -> Number:
    integral = left.integral and right.integral
    if isinstance(node, exp.Div | exp.Mod) and right.value == 0:
        raise _wrong(node, "a constant divides by zero")
    match node:
        case exp.Add():
            value = left.value + right.value
        case exp.Sub():
            value = left.value - right.value
        case exp.Mul():
            value = left.value * right.value
        case exp.Div():
            value = left.value / right.value
            value = Fraction(int(value)) if integral else value
        case _:
            value = left.value - right.value * int(left.value / right.value)
    return _bounded(value, node, integral=integral)


def _moment(node: exp.Expr, left: Constant, right: Constant) -> Constant:
    """Dates and timestamps plus or minus intervals and days."""
    if isinstance(node, exp.Add) and not isinstance(left, date):
        left, right = right, left
    sign = -1 if isinstance(node, exp.Sub) else 1
    try:
        match left, right:
            case date(), Span() if isinstance(node, exp.Add | exp.Sub):
                return _shifted(left, right, sign)
            case date(), Number(value, True) if not isinstance(left, datetime) and isinstance(node, exp.Add | exp.Sub):
                return left + timedelta(days=sign * int(value))
            case date(), date() if isinstance(node, exp.Sub) and type(left) is type(right) is date:
                return Number(Fraction((left - right).days), integral=True)
    except (OverflowError, ValueError):
        raise _wrong(node, "a date is out of range") from None
    raise _wrong(node, f"{written(node)} is not arithmetic that Keyhole folds")


def _shifted(moment: date, span: Span, sign: int) -> datetime:
    at = moment if isinstance(moment, datetime) else datetime.combine(moment, datetime.min.time())
    month = at.year * 12 + at.month - 1 + sign * span.months
    year, month = divmod(month, 12)
    at = at.replace(year=year, month=month + 1, day=min(at.day, monthrange(year, month + 1)[1]))
    return at + sign * timedelta(days=span.days, microseconds=span.microseconds)


_UNITS = {
    "year": (12, 0, 0),
    "month": (1, 0, 0),
    "week": (0, 7, 0),
    "day": (0, 1, 0),
    "hour": (0, 0, 3_600_000_000),
    "minute": (0, 0, 60_000_000),
    "second": (0, 0, 1_000_000),
}
_SPAN_PART = re.compile(r"\s*([+-]?\d{1,6})\s*([a-z]+?)s?(?=[\s\d+-]|\Z)", re.IGNORECASE)


def _interval(node: exp.Expr) -> Span:
    unit = node.args.get("unit")
    quantity = node.this
    text = str(quantity.this) if isinstance(quantity, exp.Literal) else ""
    return _span(f"{text} {unit}" if unit is not None else text, node)


def _span(text: str, node: exp.Expr) -> Span:
    totals = [0, 0, 0]
    at = 0
    while at < len(text.rstrip()):
        match = _SPAN_PART.match(text, at)
        if match is None or match[2].lower() not in _UNITS:
            raise _wrong(node, f"{text[:40]!r} is not an interval that Keyhole folds")
        for index, size in enumerate(_UNITS[match[2].lower()]):
            totals[index] += int(match[1]) * size
        at = match.end()
    return Span(*totals)


def _truncated(value: Constant, unit: str, node: exp.Expr) -> Constant:
    if value is None:
        return None
    if not isinstance(value, date):
        raise _wrong(node, "date_trunc needs a date or timestamp")
    at = value if isinstance(value, datetime) else datetime.combine(value, datetime.min.time())
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit.lower().strip("'"):
        case "year":
            return midnight.replace(month=1, day=1)
        case "quarter":
            return midnight.replace(month=3 * ((at.month - 1) // 3) + 1, day=1)
        case "month":
            return midnight.replace(day=1)
        case "week" | "week(monday)":
            return midnight - timedelta(days=at.weekday())
        case "day":
            return midnight
        case "hour":
            return at.replace(minute=0, second=0, microsecond=0)
        case _:
            raise _wrong(node, f"date_trunc to {unit.lower()} is not folded")


_MOMENT = re.compile(r"\s*(\d{4}-\d{1,2}-\d{1,2})(?:[ T](\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?))?\s*\Z")


def moment(text: str, node: exp.Expr) -> datetime:
    """A date or timestamp in ISO form."""
    match = _MOMENT.match(text)
    try:
        if match is None:
            raise ValueError
        year, month, day = (int(part) for part in match[1].split("-"))
        clock = (match[2] or "0:0").split(":")
        seconds = Decimal(clock[2]) if len(clock) > 2 else Decimal(0)
        whole = datetime(year, month, day, int(clock[0]), int(clock[1]))
        if seconds >= 60:
            raise ValueError
        return whole + timedelta(microseconds=int(seconds * 1_000_000))
    except ValueError:
        raise _wrong(
            node, f"{text[:40]!r} is not a date or timestamp of the form 2026-12-31 or 2026-12-31 23:59:59"
        ) from None


_TRUE = frozenset(("t", "true", "y", "yes", "on", "1"))
_FALSE = frozenset(("f", "false", "n", "no", "off", "0"))


def truth(text: str, node: exp.Expr) -> bool:
    """A boolean as PostgreSQL reads it from text."""
    word = text.strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise _wrong(node, f"{text[:40]!r} is not a boolean")


_INTEGERS = frozenset(("INT", "BIGINT", "SMALLINT"))
_EXACT = frozenset(("DECIMAL", "DOUBLE"))
_TEXTS = frozenset(("TEXT", "VARCHAR"))


def cast(value: Constant, to: exp.DataType, node: exp.Expr) -> Constant:
    """The constant cast to a type. Raises KH212 for what does not fit or is not folded."""
    kind = to.this.value if isinstance(to.this, exp.DataType.Type) else ""
    if to.expressions:
        raise _wrong(node, f"a cast to {written(to)} is not folded; write the constant as it is meant")
    if value is None:
        return None
    result = _cast(value, str(kind), node)
    if result is None:
        raise _wrong(node, f"{written(node)} is not a constant that Keyhole folds")
    return result


def _cast(value: Constant, kind: str, node: exp.Expr) -> Constant:
    match value:
        case Untyped(text):
            return _cast_text(text, kind, node)
        case Number(whole, True) if kind in _INTEGERS:
            return Number(whole, integral=True)
        case Number(exact, _) if kind in _EXACT:
            return Number(exact, integral=False)
        case str() if kind in _TEXTS:
            return value
        case bool() if kind == "BOOLEAN":
            return value
        case date() if kind == "DATE":
            return value.date() if isinstance(value, datetime) else value
        case date() if kind == "TIMESTAMP":
            return value if isinstance(value, datetime) else datetime.combine(value, datetime.min.time())
        case _:
            return None


def _cast_text(text: str, kind: str, node: exp.Expr) -> Constant:
    if kind in _INTEGERS | _EXACT:
        exact = number(text, node)
        if kind in _INTEGERS and not exact.integral:
            raise _wrong(node, f"{text[:40]!r} is not an integer")
        return Number(exact.value, integral=kind in _INTEGERS)
    if kind in _TEXTS:
        return text
    match kind:
        case "UUID":
            return Untyped(text)
        case "BOOLEAN":
            return truth(text, node)
        case "DATE":
            return moment(text, node).date()
        case "TIMESTAMP":
            return moment(text, node)
        case "INTERVAL":
            return _span(text, node)
        case _:
            return None
