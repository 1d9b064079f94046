"""Constant expressions folded as PostgreSQL would, exactly; what would raise there is refused at planning."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.tree import bare, contains, name, position, write_node, write_short
from planner.values import functions as constant_calls
from planner.values.constant import (
    Constant,
    Foreign,
    Given,
    NotConstant,
    Number,
    ParameterValue,
    Span,
    Untyped,
    nearest_real,
    number,
    wrong,
)
from planner.values.constant_cases import choose
from planner.values.datetimes import (
    STEPS,
    add_spans,
    date_out_of_range,
    midnight,
    moment,
    scale_span,
    shift_moment,
    span,
    step_name,
    time_of_day,
    truncate_to_unit,
)
from planner.values.parameter_casts import read_parameter_cast

_MOST_BITS = 512  # of a fraction's parts, some 154 digits: folding stays cheap, and only numeric has more


def _bound_digits(value: Fraction, node: exp.Expr, *, integral: bool) -> Number:
    if value.numerator.bit_length() > _MOST_BITS or value.denominator.bit_length() > _MOST_BITS:
        raise wrong(node, "a constant is out of range")
    return Number(value, integral)


def fold(node: exp.Expr, given: Given) -> Constant:
    """Return the value of a constant expression. Raise `NotConstant`, KH109 for a parameter without value, or KH212."""
    node = bare(node)
    match node:
        case exp.Literal() | exp.National() | exp.Boolean() | exp.Null():
            return _literal(node)
        case exp.Parameter() if str(node.this.this).isdecimal():  # the parser reads PostgreSQL's operator @ as one, too
            return _parameter(node, given)
        case exp.Neg():
            return _negate(fold(node.this, given), node)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
            return _arithmetic(node, fold(node.this, given), fold(node.expression, given))
        case exp.Column() if (found := (name(node.args.get("table")), name(node.this))) in given.columns:
            return given.columns[found]
        case exp.CurrentDate():
            return given.today
        case exp.CurrentTimestamp() | exp.Localtimestamp():
            return midnight(given.today)
        case exp.Cast() if (computed := read_parameter_cast(node)) in given.casts and computed is not None:
            return given_value(given.casts[computed], node, given)
        case exp.Cast():
            value, to = fold(node.this, given), node.to
            zoned = to is not None and to.this == exp.DType.TIMESTAMPTZ and not to.expressions
            return _with_zone(value, node, given) if zoned else cast(value, to, node)
        case exp.TimestampTrunc() if node.args.get("zone") is None:
            return _truncate(fold(node.this, given), str(node.unit), node)
        case exp.Interval():
            return _interval(node)
        case _:
            return _call_function(node, given)


def _call_function(node: exp.Expr, given: Given) -> Constant:
    """Return the value of a function of constants."""
    match node:
        case exp.Case():
            return choose(node, lambda one: fold(one, given))
        case exp.Coalesce():
            return _coalesce((node.this, *node.expressions), given)
        case exp.DPipe():
            return constant_calls.concatenate(fold(node.this, given), fold(node.expression, given), node)
        case exp.Lower():
            return constant_calls.lower_text(fold(node.this, given), node)
        case exp.Nullif():
            return constant_calls.null_if(fold(node.this, given), fold(node.expression, given), node)
        case exp.Anonymous() if str(node.this).lower() == "make_date" and len(node.expressions) == 3:
            year, month, day = (fold(part, given) for part in node.expressions)
            return constant_calls.day(year, month, day, node)
        case exp.StrToDate() | exp.StrToTime():
            found = constant_calls.of_pattern(fold(node.this, given), _pattern(node), node)
            if found is None or isinstance(node, exp.StrToDate):
                return None if found is None else found.date()
            return constant_calls.with_zone(found, node, utc=given.utc, local=True)
        case exp.UnixToTime() if not node.args.get("scale"):
            return constant_calls.of_seconds(fold(node.this, given), node, utc=given.utc)
        case _:
            raise NotConstant(node)


def _pattern(node: exp.Expr) -> str | None:
    """Return a literal pattern of dates in the parser's spelling.

    Return None if the text may have meant something else by it.
    """
    pattern = node.args.get("format")
    if not isinstance(pattern, exp.Literal) or not pattern.is_string or "percent" in node.meta:
        return None
    return str(pattern.this)


def _with_zone(value: Constant, node: exp.Expr, given: Given) -> Constant:
    match value:
        case None:
            return None
        case Untyped(text) | str(text):
            return constant_calls.of_text(text, node, utc=given.utc)
        case date():
            return constant_calls.with_zone(midnight(value), node, utc=given.utc, local=True)
        case _:
            raise wrong(node, f"{write_short(node)} is not a constant that Keyhole folds")


def _coalesce(parts: tuple[exp.Expr, ...], given: Given) -> Constant:
    """Return the first that is not NULL. Anything may stand behind a text, but behind a number it decides the type."""
    values: list[Constant] = []
    for part in parts:
        try:
            values.append(fold(part, given))
        except NotConstant:
            found = _first(values)
            if found is None or isinstance(found, Number):
                raise
            return found
    return _first(values)


def _literal(node: exp.Expr) -> Constant:
    match node:
        case exp.Boolean():
            return bool(node.this)
        case exp.Null():
            return None
        case exp.National():
            return Foreign("character", str(node.this).rstrip(" "))  # the text to which PostgreSQL casts it
        case exp.Literal() if not node.is_string:
            return number(str(node.this), node)
        case _:
            return Untyped(str(node.this))


def uses_clock(node: exp.Expr) -> bool:
    """Return True if the expression depends on the day on which it is asked: the age of one time is until that day."""
    if contains(node, exp.CurrentDate, exp.CurrentTimestamp, exp.Localtimestamp):
        return True
    return any(str(one.this).lower() == "age" and len(one.expressions) == 1 for one in node.find_all(exp.Anonymous))


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
    return given_value(given.parameters[index], node, given)


def given_value(value: ParameterValue | None, node: exp.Expr, given: Given) -> Constant:
    """Return a parameter's value as a constant.

    Raise KH212 for a number out of range, and for a time with a time zone in sessions that are not in UTC.
    """
    match value:
        case bool() | None:
            return value
        case int():
            return _bound_digits(Fraction(value), node, integral=True)
        case Decimal():
            return Number(number(str(value), node).value, integral=False)
        case str():
            return Untyped(value)
        case datetime() if value.tzinfo is not None:
            return constant_calls.with_zone(value.replace(tzinfo=None), node, utc=given.utc, local=True)
        case _:
            return value


def _first(values: list[Constant]) -> Constant:
    """Return the first that is not NULL; among numbers, computed with as their common type."""
    whole = all(isinstance(value, Number) and value.integral for value in values if value is not None)
    first = next((value for value in values if value is not None), None)
    return Number(first.value, whole) if isinstance(first, Number) else first


def _negate(value: Constant, node: exp.Expr) -> Constant:
    match value:
        case None:
            return None
        case Number():
            return Number(-value.value, value.integral)
        case Span():
            return Span(-value.months, -value.days, -value.microseconds)
        case _:
            raise wrong(node, "only numbers and intervals can be negated")


def _arithmetic(node: exp.Expr, left: Constant, right: Constant) -> Constant:
    if left is None or right is None:
        return None
    if isinstance(left, Number) and isinstance(right, Untyped):
        right = number(right.text, node)
    if isinstance(right, Number) and isinstance(left, Untyped):
        left = number(left.text, node)
    if isinstance(left, Number) and isinstance(right, Number):
        if any(cast.to.this.value == _REAL for cast in node.find_all(exp.Cast)):
            raise wrong(node, "arithmetic with real is not folded", hint="Write the value itself, or cast to numeric.")
        return _numbers(node, left, right)
    return _moment(node, left, right)


def _numbers(node: exp.Expr, left: Number, right: Number) -> Number:
    integral = left.integral and right.integral
    if isinstance(node, exp.Div | exp.Mod) and right.value == 0:
        raise wrong(node, "a constant divides by zero")
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
    return _bound_digits(value, node, integral=integral)


def _moment(node: exp.Expr, left: Constant, right: Constant) -> Constant:
    """Return the value of dates and timestamps plus or minus intervals and days."""
    if isinstance(node, exp.Add) and not isinstance(left, date):
        left, right = right, left
    sign = -1 if isinstance(node, exp.Sub) else 1
    try:
        match left, right:
            case date(), Span() if isinstance(node, exp.Add | exp.Sub):
                return shift_moment(left, right, sign)
            case date(), Untyped(text) if isinstance(node, exp.Add | exp.Sub) and _parameter_in(node):
                return shift_moment(left, span(text, node), sign)
            case date(), Number(value, True) if not isinstance(left, datetime) and isinstance(node, exp.Add | exp.Sub):
                return left + timedelta(days=sign * int(value))
            case date(), date() if isinstance(node, exp.Sub) and type(left) is type(right) is date:
                return Number(Fraction((left - right).days), integral=True)
            case Span(), Span() if isinstance(node, exp.Add | exp.Sub):
                return add_spans(left, right, sign)
            case Number(), Span() if isinstance(node, exp.Mul):
                return scale_span(right, left.value, node)
            case Span(), Number() if isinstance(node, exp.Mul):
                return scale_span(left, right.value, node)
            case Span(), Number(value, _) if isinstance(node, exp.Div) and value:
                return scale_span(left, 1 / value, node)
    except (OverflowError, ValueError):
        raise date_out_of_range(node) from None
    raise wrong(node, f"{write_node(node)} is not arithmetic that Keyhole folds")


def _interval(node: exp.Expr) -> Span:
    unit = node.args.get("unit")
    quantity = node.this
    text = str(quantity.this) if isinstance(quantity, exp.Literal) else ""
    return span(f"{text} {unit}" if unit is not None else text, node)


def _truncate(value: Constant, unit: str, node: exp.Expr) -> Constant:
    if value is None:
        return None
    if not isinstance(value, date):
        raise wrong(node, "date_trunc needs a date or timestamp", hint="Write date_trunc('month', date '2026-12-31').")
    step = step_name(unit)
    if step not in STEPS:
        raise wrong(node, f"date_trunc to {unit.lower()} is not folded")
    return truncate_to_unit(value, step)


def _parameter_in(node: exp.Expr) -> bool:
    """Return True if a side is a bare parameter: text for it that is no number can only be an interval's."""
    return isinstance(bare(node.this), exp.Parameter) or isinstance(bare(node.expression), exp.Parameter)


_TRUE = frozenset(("t", "true", "y", "yes", "on", "1"))
_FALSE = frozenset(("f", "false", "n", "no", "off", "0"))


def truth(text: str, node: exp.Expr) -> bool:
    """Return the value of a boolean as PostgreSQL reads it from text."""
    word = text.strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise wrong(node, f"{text[:40]!r} is not a boolean")


_INTEGERS = {"INT": ("integer", 2**31), "BIGINT": ("bigint", 2**63), "SMALLINT": ("smallint", 2**15)}
"""PostgreSQL's name of each, and the end of its range."""
_EXACT = frozenset(("DECIMAL", "DOUBLE"))
_REAL = "FLOAT"  # the parser's name of it
_TEXTS = frozenset(("TEXT", "VARCHAR"))


def cast(value: Constant, to: exp.DataType, node: exp.Expr) -> Constant:
    """Return the constant cast to a type. Raise KH212 for a value that does not fit or a cast that is not folded."""
    kind = to.this.value if isinstance(to.this, exp.DataType.Type) else ""
    if to.expressions:
        raise wrong(node, f"a cast to {write_node(to)} is not folded; write the constant as it is meant")
    if value is None:
        return None
    result = _cast(value, str(kind), node)
    if result is None:
        raise wrong(node, f"{write_node(node)} is not a constant that Keyhole folds")
    return result


def _cast(value: Constant, kind: str, node: exp.Expr) -> Constant:
    match value:
        case Untyped(text):
            return _cast_text(text, kind, node)
        case Number(whole, True) if kind in _INTEGERS:
            return _check_range(whole, kind, node)
        case Number(exact, _) if kind in _EXACT:
            return Number(exact, integral=False)
        case Number(exact, _) if kind == _REAL:
            return _round_to_real(exact, node)
        case str() if kind in _TEXTS:
            return value
        case bool() if kind == "BOOLEAN":
            return value
        case date() if kind == "DATE":
            return value.date() if isinstance(value, datetime) else value
        case date() if kind == "TIMESTAMP":
            return midnight(value)
        case _:
            return None


def _check_range(value: Fraction, kind: str, node: exp.Expr) -> Number:
    name_, end = _INTEGERS[kind]
    if not -end <= value < end:
        raise wrong(node, f"{write_short(node)} is out of range for type {name_}")
    return Number(value, integral=True)


def _round_to_real(value: Fraction, node: exp.Expr) -> Number:
    """Return the `real` that is nearest to a number.

    It is compared by its own value, not by that of its decimal text.
    """
    nearest = nearest_real(value)
    if nearest is None:
        raise wrong(node, f"{write_node(node)} is out of range for type real")
    return _bound_digits(Fraction(nearest), node, integral=False)


def _cast_text(text: str, kind: str, node: exp.Expr) -> Constant:
    if kind == _REAL:
        return _round_to_real(number(text, node).value, node)
    if kind in _INTEGERS or kind in _EXACT:
        exact = number(text, node)
        if kind in _INTEGERS and not exact.integral:
            raise wrong(node, f"{text[:40]!r} is not an integer")
        return _check_range(exact.value, kind, node) if kind in _INTEGERS else Number(exact.value, integral=False)
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
            return span(text, node)
        case "TIME":
            return time_of_day(text, node)
        case _:
            return None
