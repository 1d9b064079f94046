"""Constant expressions, computed exactly as PostgreSQL would. An expression that would fail is refused at planning."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.tree import (
    contains_type,
    find_position,
    read_name,
    strip_parentheses,
    write_node,
    write_short,
)
from planner.values import functions as constant_calls
from planner.values.constant import (
    Constant,
    ConstantContext,
    ForeignValue,
    Interval,
    NotConstant,
    Number,
    ParameterValue,
    Untyped,
    read_number,
    refuse_constant,
    round_to_real,
)
from planner.values.constant_cases import fold_case
from planner.values.datetimes import (
    STEPS,
    add_intervals,
    move_to_midnight,
    normalise_unit,
    read_interval,
    read_moment,
    read_time_of_day,
    refuse_date_range,
    scale_interval,
    shift_moment,
    truncate_to_unit,
)
from planner.values.parameter_casts import read_parameter_cast

_MOST_BITS = 512  # of a fraction's parts, some 154 digits: folding stays cheap, and only numeric has more


def _bound_digits(value: Fraction, node: exp.Expr, *, is_integral: bool) -> Number:
    if value.numerator.bit_length() > _MOST_BITS or value.denominator.bit_length() > _MOST_BITS:
        raise refuse_constant(node, "a constant is out of range")
    return Number(value, is_integral)


def fold_constant(node: exp.Expr, given: ConstantContext) -> Constant:
    """Return the value of a constant expression.

    Raise `NotConstant`, KH109 for a parameter without value, KH212 for a value that does not fit.
    """
    node = strip_parentheses(node)
    match node:
        case exp.Literal() | exp.National() | exp.Boolean() | exp.Null():
            return _fold_literal(node)
        case exp.Parameter() if str(node.this.this).isdecimal():  # the parser reads PostgreSQL's operator @ as one, too
            return _fold_parameter(node, given)
        case exp.Neg():
            return _negate(fold_constant(node.this, given), node)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
            return _fold_arithmetic(node, fold_constant(node.this, given), fold_constant(node.expression, given))
        case exp.Column() if (found := (read_name(node.args.get("table")), read_name(node.this))) in given.columns:
            return given.columns[found]
        case exp.CurrentDate():
            return given.today
        case exp.CurrentTimestamp() | exp.Localtimestamp():
            return move_to_midnight(given.today)
        case exp.Cast() if (computed := read_parameter_cast(node)) in given.casts and computed is not None:
            return convert_parameter(given.casts[computed], node, given)
        case exp.Cast():
            value, to = fold_constant(node.this, given), node.to
            zoned = to is not None and to.this == exp.DType.TIMESTAMPTZ and not to.expressions
            return _add_zone(value, node, given) if zoned else cast(value, to, node)
        case exp.TimestampTrunc() if node.args.get("zone") is None:
            return _truncate(fold_constant(node.this, given), str(node.unit), node)
        case exp.Interval():
            return _fold_interval(node)
        case _:
            return _call_function(node, given)


def _call_function(node: exp.Expr, given: ConstantContext) -> Constant:
    """Return the value of a function of constants."""
    match node:
        case exp.Case():
            return fold_case(node, lambda one: fold_constant(one, given))
        case exp.Coalesce():
            return _fold_coalesce((node.this, *node.expressions), given)
        case exp.DPipe():
            return constant_calls.concatenate(
                fold_constant(node.this, given), fold_constant(node.expression, given), node
            )
        case exp.Lower():
            return constant_calls.lower_text(fold_constant(node.this, given), node)
        case exp.Nullif():
            return constant_calls.fold_nullif(
                fold_constant(node.this, given), fold_constant(node.expression, given), node
            )
        case exp.Anonymous() if str(node.this).lower() == "make_date" and len(node.expressions) == 3:
            year, month, day = (fold_constant(part, given) for part in node.expressions)
            return constant_calls.fold_make_date(year, month, day, node)
        case exp.StrToDate() | exp.StrToTime():
            found = constant_calls.parse_by_pattern(fold_constant(node.this, given), _read_pattern(node), node)
            if found is None or isinstance(node, exp.StrToDate):
                return None if found is None else found.date()
            return constant_calls.convert_to_zone(found, node, is_utc=given.is_utc, is_local=True)
        case exp.UnixToTime() if not node.args.get("scale"):
            return constant_calls.convert_seconds(fold_constant(node.this, given), node, is_utc=given.is_utc)
        case _:
            raise NotConstant(node)


def _read_pattern(node: exp.Expr) -> str | None:
    """Return a literal date pattern in the parser's spelling.

    Return None if the text may have had another meaning.
    """
    pattern = node.args.get("format")
    if not isinstance(pattern, exp.Literal) or not pattern.is_string or "percent" in node.meta:
        return None
    return str(pattern.this)


def _add_zone(value: Constant, node: exp.Expr, given: ConstantContext) -> Constant:
    match value:
        case None:
            return None
        case Untyped(text) | str(text):
            return constant_calls.parse_timestamptz(text, node, is_utc=given.is_utc)
        case date():
            return constant_calls.convert_to_zone(move_to_midnight(value), node, is_utc=given.is_utc, is_local=True)
        case _:
            raise refuse_constant(node, f"{write_short(node)} is not a constant that Keyhole folds")


def _fold_coalesce(parts: tuple[exp.Expr, ...], given: ConstantContext) -> Constant:
    """Return the first value that is not NULL. Any type may follow a text, but after a number it decides the type."""
    values: list[Constant] = []
    for part in parts:
        try:
            values.append(fold_constant(part, given))
        except NotConstant:
            found = _choose_first_not_null(values)
            if found is None or isinstance(found, Number):
                raise
            return found
    return _choose_first_not_null(values)


def _fold_literal(node: exp.Expr) -> Constant:
    match node:
        case exp.Boolean():
            return bool(node.this)
        case exp.Null():
            return None
        case exp.National():
            return ForeignValue("character", str(node.this).rstrip(" "))  # the text to which PostgreSQL casts it
        case exp.Literal() if not node.is_string:
            return read_number(str(node.this), node)
        case _:
            return Untyped(str(node.this))


def uses_clock(node: exp.Expr) -> bool:
    """Return True if the expression depends on the day on which it is asked.

    `age` with one argument is the distance to that day.
    """
    if contains_type(node, exp.CurrentDate, exp.CurrentTimestamp, exp.Localtimestamp):
        return True
    return any(str(one.this).lower() == "age" and len(one.expressions) == 1 for one in node.find_all(exp.Anonymous))


def _read_parameter_number(node: exp.Expr) -> int | None:
    at = find_position(node)
    return None if at is None else max(at - 1, 1)


def _fold_parameter(node: exp.Expr, given: ConstantContext) -> Constant:
    index = int(str(node.this.this))
    if index not in given.parameters:
        raise KeyholeError(
            "KH109",
            f"parameter ${index} has no value",
            hint="Bind a value, or write the constant into the statement.",
            position=_read_parameter_number(node),
        )
    return convert_parameter(given.parameters[index], node, given)


def convert_parameter(value: ParameterValue | None, node: exp.Expr, given: ConstantContext) -> Constant:
    """Return a parameter's value as a constant.

    Raise KH212 for a number out of range, and for a time with a time zone in sessions that are not in UTC.
    """
    match value:
        case bool() | None:
            return value
        case int():
            return _bound_digits(Fraction(value), node, is_integral=True)
        case Decimal():
            return Number(read_number(str(value), node).value, is_integral=False)
        case str():
            return Untyped(value)
        case datetime() if value.tzinfo is not None:
            return constant_calls.convert_to_zone(value.replace(tzinfo=None), node, is_utc=given.is_utc, is_local=True)
        case _:
            return value


def _choose_first_not_null(values: list[Constant]) -> Constant:
    """Return the first value that is not NULL. Numbers get their common type."""
    whole = all(isinstance(value, Number) and value.is_integral for value in values if value is not None)
    first = next((value for value in values if value is not None), None)
    return Number(first.value, whole) if isinstance(first, Number) else first


def _negate(value: Constant, node: exp.Expr) -> Constant:
    match value:
        case None:
            return None
        case Number():
            return Number(-value.value, value.is_integral)
        case Interval():
            return Interval(-value.months, -value.days, -value.microseconds)
        case _:
            raise refuse_constant(node, "only numbers and intervals can be negated")


def _fold_arithmetic(node: exp.Expr, left: Constant, right: Constant) -> Constant:
    if left is None or right is None:
        return None
    if isinstance(left, Number) and isinstance(right, Untyped):
        right = read_number(right.text, node)
    if isinstance(right, Number) and isinstance(left, Untyped):
        left = read_number(left.text, node)
    if isinstance(left, Number) and isinstance(right, Number):
        if any(cast.to.this.value == _REAL for cast in node.find_all(exp.Cast)):
            raise refuse_constant(
                node,
                "arithmetic with constants of type real is not supported",
                hint="Write the value itself, or cast to numeric.",
            )
        return _compute_numbers(node, left, right)
    return _compute_moment(node, left, right)


def _compute_numbers(node: exp.Expr, left: Number, right: Number) -> Number:
    integral = left.is_integral and right.is_integral
    if isinstance(node, exp.Div | exp.Mod) and right.value == 0:
        raise refuse_constant(node, "a constant divides by zero")
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
    return _bound_digits(value, node, is_integral=integral)


def _compute_moment(node: exp.Expr, left: Constant, right: Constant) -> Constant:
    """Return the value of dates and timestamps plus or minus intervals and days."""
    if isinstance(node, exp.Add) and not isinstance(left, date):
        left, right = right, left
    sign = -1 if isinstance(node, exp.Sub) else 1
    try:
        match left, right:
            case date(), Interval() if isinstance(node, exp.Add | exp.Sub):
                return shift_moment(left, right, sign)
            case date(), Untyped(text) if isinstance(node, exp.Add | exp.Sub) and _has_bare_parameter(node):
                return shift_moment(left, read_interval(text, node), sign)
            case date(), Number(value, True) if not isinstance(left, datetime) and isinstance(node, exp.Add | exp.Sub):
                return left + timedelta(days=sign * int(value))
            case date(), date() if isinstance(node, exp.Sub) and type(left) is type(right) is date:
                return Number(Fraction((left - right).days), is_integral=True)
            case Interval(), Interval() if isinstance(node, exp.Add | exp.Sub):
                return add_intervals(left, right, sign)
            case Number(), Interval() if isinstance(node, exp.Mul):
                return scale_interval(right, left.value, node)
            case Interval(), Number() if isinstance(node, exp.Mul):
                return scale_interval(left, right.value, node)
            case Interval(), Number(value, _) if isinstance(node, exp.Div) and value:
                return scale_interval(left, 1 / value, node)
    except (OverflowError, ValueError):
        raise refuse_date_range(node) from None
    raise refuse_constant(node, f"{write_node(node)} is not arithmetic that Keyhole folds")


def _fold_interval(node: exp.Expr) -> Interval:
    unit = node.args.get("unit")
    quantity = node.this
    text = str(quantity.this) if isinstance(quantity, exp.Literal) else ""
    return read_interval(f"{text} {unit}" if unit is not None else text, node)


def _truncate(value: Constant, unit: str, node: exp.Expr) -> Constant:
    if value is None:
        return None
    if not isinstance(value, date):
        raise refuse_constant(
            node, "date_trunc needs a date or timestamp", hint="Write date_trunc('month', date '2026-12-31')."
        )
    step = normalise_unit(unit)
    if step not in STEPS:
        raise refuse_constant(node, f"date_trunc to {unit.lower()} is not folded")
    return truncate_to_unit(value, step)


def _has_bare_parameter(node: exp.Expr) -> bool:
    """Return True if a side is a bare parameter. Text that is given for it and is no number must be an interval."""
    return isinstance(strip_parentheses(node.this), exp.Parameter) or isinstance(
        strip_parentheses(node.expression), exp.Parameter
    )


_TRUE = frozenset(("t", "true", "y", "yes", "on", "1"))
_FALSE = frozenset(("f", "false", "n", "no", "off", "0"))


def read_truth(text: str, node: exp.Expr) -> bool:
    """Return the value of a boolean as PostgreSQL reads it from text."""
    word = text.strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise refuse_constant(node, f"{text[:40]!r} is not a boolean")


_INTEGERS = {"INT": ("integer", 2**31), "BIGINT": ("bigint", 2**63), "SMALLINT": ("smallint", 2**15)}
"""PostgreSQL's name of each, and the end of its range."""
_EXACT = frozenset(("DECIMAL", "DOUBLE"))
_REAL = "FLOAT"  # the parser's name of it
_TEXTS = frozenset(("TEXT", "VARCHAR"))


def cast(value: Constant, to: exp.DataType, node: exp.Expr) -> Constant:
    """Return the constant cast to a type. Raise KH212 for a value that does not fit or a cast that is not folded."""
    kind = to.this.value if isinstance(to.this, exp.DataType.Type) else ""
    if to.expressions:
        raise refuse_constant(node, f"a cast to {write_node(to)} is not folded; write the constant as it is meant")
    if value is None:
        return None
    result = _cast(value, str(kind), node)
    if result is None:
        raise refuse_constant(node, f"{write_node(node)} is not a constant that Keyhole folds")
    return result


def _cast(value: Constant, kind: str, node: exp.Expr) -> Constant:
    match value:
        case Untyped(text):
            return _cast_text(text, kind, node)
        case Number(whole, True) if kind in _INTEGERS:
            return _check_range(whole, kind, node)
        case Number(exact, _) if kind in _EXACT:
            return Number(exact, is_integral=False)
        case Number(exact, _) if kind == _REAL:
            return _round_to_real(exact, node)
        case str() if kind in _TEXTS:
            return value
        case bool() if kind == "BOOLEAN":
            return value
        case date() if kind == "DATE":
            return value.date() if isinstance(value, datetime) else value
        case date() if kind == "TIMESTAMP":
            return move_to_midnight(value)
        case _:
            return None


def _check_range(value: Fraction, kind: str, node: exp.Expr) -> Number:
    name_, end = _INTEGERS[kind]
    if not -end <= value < end:
        raise refuse_constant(node, f"{write_short(node)} is out of range for type {name_}")
    return Number(value, is_integral=True)


def _round_to_real(value: Fraction, node: exp.Expr) -> Number:
    """Return the `real` that is nearest to a number.

    It is compared by its exact value, not by its decimal text.
    """
    nearest = round_to_real(value)
    if nearest is None:
        raise refuse_constant(node, f"{write_node(node)} is out of range for type real")
    return _bound_digits(Fraction(nearest), node, is_integral=False)


def _cast_text(text: str, kind: str, node: exp.Expr) -> Constant:
    if kind == _REAL:
        return _round_to_real(read_number(text, node).value, node)
    if kind in _INTEGERS or kind in _EXACT:
        exact = read_number(text, node)
        if kind in _INTEGERS and not exact.is_integral:
            raise refuse_constant(node, f"{text[:40]!r} is not an integer")
        return _check_range(exact.value, kind, node) if kind in _INTEGERS else Number(exact.value, is_integral=False)
    if kind in _TEXTS:
        return text
    match kind:
        case "UUID":
            return Untyped(text)
        case "BOOLEAN":
            return read_truth(text, node)
        case "DATE":
            return read_moment(text, node).date()
        case "TIMESTAMP":
            return read_moment(text, node)
        case "INTERVAL":
            return read_interval(text, node)
        case "TIME":
            return read_time_of_day(text, node)
        case _:
            return None
