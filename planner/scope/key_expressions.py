"""What an expression of public key values is, value by value, as PostgreSQL would compute it; only what is exact.

Guarantee: two key values have the same result here if and only if PostgreSQL groups their rows together. PostgreSQL
itself computes what is shown, from one value of each group. Whatever could depend on a collation, on a session's
settings or on rounding is refused.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import TypeAlias

from sqlglot import exp

from planner.catalog.derived_columns import DATE_PARTS, EXTRACTED_FROM_DATE
from planner.catalog.model import SqlType, Value
from planner.parser.tree import written
from planner.scope.names import part_of
from planner.values.datetimes import extract_part, truncate_to_unit

Raw: TypeAlias = str | bool | int | Fraction | date | datetime | tuple[str, date] | tuple[Fraction, Fraction] | None
_NUMBERS = ("integer", "whole", "numeric")  # whole: numeric without decimals
_TIMES = ("date", "timestamp", "timestamptz")
_TEXTS = ("text", "unknown")
_LARGEST = 2**31
_FINEST = 10_000  # denominators up to which numeric division keeps different quotients apart
_ROUNDED_BELOW = 10_000  # quotients below this keep 16 decimals, however their operands are written
_MOST_WRITTEN = 16  # decimals that all literals beside a rounded quotient have together
_MOST_STEPS = 500_000
_TEXT_TYPES = ("TEXT", "VARCHAR")
_INTEGER_TYPES = ("INT", "BIGINT")
_FORMAT = re.compile(r'"[^"%\\]*"|%[YmdH]|Q|[-/ .:_,]')


class NotExact(Exception):
    """An expression whose values are not computed here; the text names the part of it."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A value with its PostgreSQL type; `unknown` is a quoted literal.

    `opaque` is text that is only told apart, and `quotient` a numeric that PostgreSQL rounds, by what it divides.
    """

    kind: str
    raw: Raw


_ALLOWED: dict[type[exp.Expr], frozenset[str]] = {
    kind: frozenset(args)
    for kind, args in (
        (exp.Column, ("this", "table")),
        (exp.Literal, ("this", "is_string")),
        (exp.Boolean, ("this",)),
        (exp.Null, ()),
        (exp.Paren, ("this",)),
        (exp.Neg, ("this",)),
        (exp.Add, ("this", "expression")),
        (exp.Sub, ("this", "expression")),
        (exp.Mul, ("this", "expression")),
        (exp.Div, ("this", "expression", "typed", "safe")),
        (exp.Mod, ("this", "expression")),
        (exp.Floor, ("this",)),
        (exp.Ceil, ("this",)),
        (exp.DPipe, ("this", "expression", "safe")),
        (exp.Upper, ("this",)),
        (exp.Lower, ("this",)),
        (exp.Coalesce, ("this", "expressions")),
        (exp.Nullif, ("this", "expression")),
        (exp.Case, ("this", "ifs", "default")),
        (exp.If, ("this", "true")),
        (exp.And, ("this", "expression")),
        (exp.Or, ("this", "expression")),
        (exp.Not, ("this",)),
        (exp.Is, ("this", "expression")),
        (exp.EQ, ("this", "expression")),
        (exp.NEQ, ("this", "expression")),
        (exp.LT, ("this", "expression")),
        (exp.LTE, ("this", "expression")),
        (exp.GT, ("this", "expression")),
        (exp.GTE, ("this", "expression")),
        (exp.In, ("this", "expressions")),
        (exp.Between, ("this", "low", "high")),
        (exp.Cast, ("this", "to", "_type")),
        (exp.Date, ("this",)),
        (exp.TimestampTrunc, ("this", "unit")),
        (exp.Extract, ("this", "expression")),
        (exp.TimeToStr, ("this", "format")),
    )
}


def given(value: Value, kind: SqlType) -> Typed:
    """A key's value. Raises `NotExact` for a type whose values are not exact here."""
    if kind not in (SqlType.TEXT, SqlType.INTEGER, SqlType.BOOLEAN, SqlType.DATE, SqlType.TIMESTAMP):
        raise NotExact(f"a key of type {kind.value}")
    assert isinstance(value, str | bool | int | date)
    return Typed(kind.value, value)


def images(node: exp.Expr, rows: Sequence[Mapping[str, Typed]]) -> list[Typed]:
    """The expression's values for each of `rows`. Raises `NotExact`, also for what would take too long."""
    size = sum(1 for _ in node.walk())
    if size * len(rows) > _MOST_STEPS:
        raise NotExact(f"an expression of {size:,} parts")
    found: list[Typed] = []
    operands: dict[Fraction, Raw] = {}
    for values in rows:
        one = image(node, values)
        match one.raw:
            case (Fraction() as dividend, Fraction() as divisor):
                if operands.setdefault(dividend / divisor, one.raw) != one.raw:  # they may be rounded differently
                    raise NotExact(written(node)[:80])
        found.append(one)
    return found


def image(node: exp.Expr, values: Mapping[str, Typed]) -> Typed:
    """The expression's value where its columns, by their text, have `values`. Raises `NotExact`."""
    allowed = _ALLOWED.get(type(node))
    if allowed is None or any(value and key not in allowed for key, value in node.args.items()):
        raise NotExact(written(node)[:80])
    try:
        return _image(node, lambda inner: image(inner, values), values)
    except (ArithmeticError, ValueError):
        raise NotExact(written(node)[:80]) from None


def _image(node: exp.Expr, of: Callable[[exp.Expr], Typed], values: Mapping[str, Typed]) -> Typed:
    match node:
        case exp.Column():
            return values[written(node)]
        case exp.Literal() | exp.Boolean() | exp.Null():
            return _literal(node)
        case exp.Paren():
            return of(node.this)
        case exp.Neg():
            return _computed(exp.Sub, Typed("integer", 0), of(node.this), node)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
            return _computed(type(node), of(node.this), of(node.expression), node)
        case exp.Floor() | exp.Ceil():
            return _rounded(node, of(node.this))
        case exp.DPipe():
            return _concatenated(of(node.this), of(node.expression), node)
        case exp.Upper() | exp.Lower():
            return _folded(node, of(node.this))
        case exp.Coalesce() | exp.Nullif() | exp.Case():
            return _chosen(node, of)
        case exp.TimestampTrunc() | exp.Extract() | exp.TimeToStr() | exp.Cast() | exp.Date():
            return _of_times(node, of)
        case _:
            return _truth(node, of)


def _literal(node: exp.Expr) -> Typed:
    match node:
        case exp.Boolean():
            return Typed("boolean", bool(node.this))
        case exp.Null():
            return Typed("unknown", None)
        case exp.Literal() if not node.is_string:
            return _number(Fraction(str(node.this)), "integer" if str(node.this).isdigit() else "numeric", node)
        case _:
            return Typed("unknown", str(node.this))


def _chosen(node: exp.Expr, of: Callable[[exp.Expr], Typed]) -> Typed:
    if isinstance(node, exp.Case):
        return _case(node, of)
    if isinstance(node, exp.Nullif):
        first, other = of(node.this), of(node.expression)
        same = _compared(exp.EQ, first, other, node)
        promoted = first.kind in _NUMBERS and other.kind in _NUMBERS  # PostgreSQL's nullif(1, 2.5) is numeric
        kind = max(first.kind, other.kind, key=_NUMBERS.index) if promoted else first.kind
        return Typed(kind, None if same.raw is True else first.raw)
    found = _unified([of(node.this), *map(of, node.expressions)], node)
    return next((one for one in found if one.raw is not None), found[0])


def _truth(node: exp.Expr, of: Callable[[exp.Expr], Typed]) -> Typed:
    match node:
        case exp.And() | exp.Or():
            left, right = _boolean(of(node.this), node), _boolean(of(node.expression), node)
            decisive = isinstance(node, exp.Or)
            if decisive in (left, right):
                return Typed("boolean", decisive)
            return Typed("boolean", None if None in (left, right) else not decisive)
        case exp.Not():
            return _negated(Typed("boolean", _boolean(of(node.this), node)))
        case exp.Is(expression=exp.Null()):
            return Typed("boolean", of(node.this).raw is None)
        case exp.Is(expression=exp.Boolean() as wanted):
            return Typed("boolean", _boolean(of(node.this), node) is bool(wanted.this))
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return _compared(type(node), of(node.this), of(node.expression), node)
        case exp.In() if node.expressions:
            first, *others = _unified([of(node.this), *map(of, node.expressions)], node)
            return _any([_compared(exp.EQ, first, other, node) for other in others])
        case exp.Between():
            inner = of(node.this)
            low = _compared(exp.LT, inner, of(node.args["low"]), node)
            high = _compared(exp.GT, inner, of(node.args["high"]), node)
            return _negated(_any([low, high]))
        case _:
            raise NotExact(written(node)[:80])


def _any(found: Sequence[Typed]) -> Typed:
    raws = [one.raw for one in found]
    return Typed("boolean", True if True in raws else None if None in raws else False)


def _negated(found: Typed) -> Typed:
    return Typed("boolean", None if found.raw is None else not found.raw)


def _boolean(found: Typed, node: exp.Expr) -> bool | None:
    if found.raw is not None and (found.kind != "boolean" or not isinstance(found.raw, bool)):
        raise NotExact(written(node)[:80])
    return None if found.raw is None else bool(found.raw)


def _number(value: Fraction, kind: str, node: exp.Expr) -> Typed:
    if abs(value.numerator) >= _LARGEST or value.denominator > _FINEST:
        raise NotExact(written(node)[:80])
    return Typed(kind, value)


def _fraction(found: Typed, node: exp.Expr) -> Fraction | None:
    if found.kind not in _NUMBERS:
        raise NotExact(written(node)[:80])
    assert found.raw is None or isinstance(found.raw, int | Fraction)
    return None if found.raw is None else Fraction(found.raw)


def _computed(operation: type[exp.Expr], left: Typed, right: Typed, node: exp.Expr) -> Typed:
    left, right = _unified([left, right], node)
    a, b = _fraction(left, node), _fraction(right, node)
    kind = left.kind
    if a is None or b is None:
        return Typed(kind, None)
    if operation is exp.Mod:
        quotient = a / b
        return _number(a - b * (floor(quotient) if quotient >= 0 else ceil(quotient)), kind, node)
    if operation is exp.Div:
        if kind != "integer":
            return _quotient(a, b, node)
        return _number(Fraction(floor(a / b) if a / b >= 0 else ceil(a / b)), kind, node)
    return _number(a + b if operation is exp.Add else a - b if operation is exp.Sub else a * b, kind, node)


def _quotient(dividend: Fraction, divisor: Fraction, node: exp.Expr) -> Typed:
    """A numeric quotient: a number where PostgreSQL computes all its digits, else only what is divided by what."""
    found = _number(dividend / divisor, "numeric", node)
    assert isinstance(found.raw, Fraction)
    decimals = next((places for places in range(17) if (found.raw * 10**places).denominator == 1), None)
    if decimals is not None and decimals <= _kept(found.raw):
        return found
    literals = [one for one in node.find_all(exp.Literal) if not one.is_string]
    nested = any(one is not node for one in node.find_all(exp.Div))
    if nested or abs(found.raw) >= _ROUNDED_BELOW or sum(map(_decimals, literals)) > _MOST_WRITTEN:
        raise NotExact(written(node)[:80])
    return Typed("quotient", (dividend, divisor))


def _kept(value: Fraction) -> int:
    """How many decimals PostgreSQL's division keeps at least: 16 digits, fewer by 4 for each 4 before the point."""
    return 16 - 4 * ((len(str(floor(abs(value)))) - 1) // 4)


def _decimals(literal: exp.Literal) -> int:
    exponent = Decimal(str(literal.this)).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else _MOST_WRITTEN + 1


def _rounded(node: exp.Expr, found: Typed) -> Typed:
    if isinstance(found.raw, tuple) and found.kind == "quotient":
        dividend, divisor = found.raw  # no whole number, and farther from one than PostgreSQL rounds
        assert isinstance(dividend, Fraction)
        assert isinstance(divisor, Fraction)
        found = Typed("numeric", dividend / divisor)
    value = _fraction(found, node)
    kind = "double" if found.kind == "integer" else "whole"  # PostgreSQL's, with which nothing is computed here
    if value is None:
        return Typed(kind, None)
    return Typed(kind, Fraction(floor(value) if isinstance(node, exp.Floor) else ceil(value)))


def _concatenated(left: Typed, right: Typed, node: exp.Expr) -> Typed:
    if left.kind not in _TEXTS and right.kind not in _TEXTS:
        raise NotExact(written(node)[:80])
    texts = [_text(one, node) for one in (left, right)]
    if any(one.kind == "opaque" for one in texts):
        raise NotExact(written(node)[:80])
    raws = [one.raw for one in texts]
    return Typed("text", None if None in raws else "".join(map(str, raws)))


def _folded(node: exp.Expr, found: Typed) -> Typed:
    if found.kind not in _TEXTS or not (found.raw is None or str(found.raw).isascii()):
        raise NotExact(written(node)[:80])
    if found.raw is None:
        return Typed("text", None)
    return Typed("text", str(found.raw).upper() if isinstance(node, exp.Upper) else str(found.raw).lower())


def _case(node: exp.Case, of: Callable[[exp.Expr], Typed]) -> Typed:
    default = node.args.get("default")
    branches = node.args["ifs"]
    results = [of(branch.args["true"]) for branch in branches]
    found = _unified([*results, Typed("unknown", None) if default is None else of(default)], node)
    tested = None if node.this is None else of(node.this)
    for branch, result in zip(branches, found, strict=False):
        if tested is None:
            met: Raw = _boolean(of(branch.this), node)
        else:
            met = _compared(exp.EQ, tested, of(branch.this), node).raw
        if met is True:
            return result
    return found[-1]


def _unified(found: Sequence[Typed], node: exp.Expr) -> list[Typed]:
    """The values as one type, as PostgreSQL chooses it for branches and for both sides of an operator."""
    kinds = {one.kind for one in found} - {"unknown"}
    if not kinds:
        return [Typed("text", one.raw) for one in found]
    if kinds <= set(_NUMBERS):
        kind = max(kinds, key=_NUMBERS.index)
    elif len(kinds) == 1:
        (kind,) = kinds
    elif kinds == {"date", "timestamp"}:
        kind = "timestamp"
    else:
        raise NotExact(written(node)[:80])
    return [_as(one, kind, node) for one in found]


def _as(found: Typed, kind: str, node: exp.Expr) -> Typed:
    raw = found.raw
    if raw is None or found.kind == kind:
        return Typed(kind, raw)
    if found.kind in _NUMBERS and kind in _NUMBERS:
        return Typed(kind, raw)
    if kind == "text" and found.kind == "unknown":
        return Typed(kind, raw)
    if kind == "integer" and isinstance(raw, str) and re.fullmatch(r"-?\d{1,9}", raw):
        return Typed(kind, int(raw))
    if kind in ("date", "timestamp") and isinstance(raw, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", raw):
        return _as(Typed("date", date.fromisoformat(raw)), kind, node)
    if kind == "timestamp" and isinstance(raw, str) and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", raw):
        return Typed(kind, datetime.fromisoformat(raw))
    if kind == "timestamp" and found.kind == "date" and isinstance(raw, date):
        return Typed(kind, datetime(raw.year, raw.month, raw.day))
    raise NotExact(written(node)[:80])


def _compared(operation: type[exp.Expr], left: Typed, right: Typed, node: exp.Expr) -> Typed:
    left, right = _unified([left, right], node)
    a, b = left.raw, right.raw
    if left.kind in ("opaque", "quotient", "timestamptz"):
        raise NotExact(written(node)[:80])
    if a is None or b is None:
        return Typed("boolean", None)
    if operation in (exp.EQ, exp.NEQ):
        return Typed("boolean", (a == b) is (operation is exp.EQ))
    if left.kind == "text":  # their order is a collation's
        raise NotExact(written(node)[:80])
    match a, b:
        case (int() | Fraction() as one, int() | Fraction() as other):
            less, more = one < other, one > other
        case (date() as day, date() as later):
            less, more = day < later, day > later
        case _:
            raise NotExact(written(node)[:80])
    results: dict[type[exp.Expr], bool] = {exp.LT: less, exp.GT: more, exp.LTE: not more, exp.GTE: not less}
    return Typed("boolean", results[operation])


def _text(found: Typed, node: exp.Expr) -> Typed:
    """The value as text; of a date only which one it is, for its text depends on the session."""
    raw = found.raw
    match found.kind:
        case "opaque":
            return found
        case "date" | "timestamp":
            return Typed("opaque", (found.kind, raw) if isinstance(raw, date) else None)
        case "text" | "unknown":
            return Typed("text", raw)
        case "integer" | "whole":
            return Typed("text", str(int(raw)) if isinstance(raw, int | Fraction) else None)
        case "boolean":
            return Typed("text", None if raw is None else "true" if raw else "false")
        case _:
            raise NotExact(written(node)[:80])


def _of_times(node: exp.Expr, of: Callable[[exp.Expr], Typed]) -> Typed:
    match node:
        case exp.TimestampTrunc():
            found, part = of(node.this), part_of(node)
            if found.kind not in _TIMES or part not in (*DATE_PARTS, "hour"):
                raise NotExact(written(node)[:80])
            kind = "timestamp" if found.kind == "timestamp" else "timestamptz"
            return Typed(kind, None if found.raw is None else truncate_to_unit(_moment(found), part))
        case exp.Extract():
            found, part = of(node.expression), str(node.this).lower().strip("'")
            hours = part == "hour" and found.kind == "timestamp"
            if found.kind not in _TIMES or not (hours or part in EXTRACTED_FROM_DATE):
                raise NotExact(written(node)[:80])
            return Typed("whole", None if found.raw is None else extract_part(part, _moment(found)))
        case exp.TimeToStr():
            return _formatted(node, of(node.this))
        case exp.Date():
            return _cast(of(node.this), "DATE", node)
        case exp.Cast():
            kind = node.to.this
            value = str(kind.value) if isinstance(kind, exp.DataType.Type) else ""
            if node.to.expressions and value != "TIMESTAMP":
                raise NotExact(written(node)[:80])
            return _cast(of(node.this), value, node)
        case _:
            raise NotExact(written(node)[:80])


def _moment(found: Typed) -> datetime:
    raw = found.raw
    assert isinstance(raw, date)
    return raw if isinstance(raw, datetime) else datetime(raw.year, raw.month, raw.day)


def _formatted(node: exp.TimeToStr, found: Typed) -> Typed:
    form = node.args["format"]
    if found.kind not in _TIMES or not isinstance(form, exp.Literal) or not form.is_string:
        raise NotExact(written(node)[:80])
    pieces = _FORMAT.findall(str(form.this))
    if "".join(pieces) != str(form.this) or ("%H" in pieces and found.kind != "timestamp"):
        raise NotExact(written(node)[:80])
    if found.raw is None:
        return Typed("text", None)
    moment = _moment(found)
    if moment.year < 1000:
        raise NotExact(written(node)[:80])
    texts = {"%Y": str(moment.year), "%m": f"{moment.month:02}", "%d": f"{moment.day:02}", "%H": f"{moment.hour:02}"}
    texts["Q"] = str((moment.month - 1) // 3 + 1)
    return Typed("text", "".join(texts.get(piece, piece.strip('"')) for piece in pieces))


def _cast(found: Typed, kind: str, node: exp.Expr) -> Typed:
    if kind in _TEXT_TYPES:
        return _text(found, node)
    if kind in _INTEGER_TYPES:
        return _integer(found, kind, node)
    if kind == "DECIMAL" and found.kind in _NUMBERS:
        return Typed("whole" if found.kind == "integer" else found.kind, found.raw)
    if kind == "BOOLEAN" and found.kind == "boolean":
        return found
    if kind in ("DATE", "TIMESTAMP") and found.kind == "unknown":
        return _as(found, kind.lower(), node)
    moment = None if found.kind not in _TIMES or found.raw is None else _moment(found)
    if kind == "DATE" and found.kind in _TIMES:
        return Typed("date", None if moment is None else moment.date())
    rounds = isinstance(node, exp.Cast) and bool(node.to.expressions) and moment is not None and moment.microsecond > 0
    if kind == "TIMESTAMP" and found.kind in _TIMES and not rounds:
        return Typed("timestamp", moment)
    if kind == "TIMESTAMPTZ" and found.kind in ("date", "timestamptz"):
        return Typed("timestamptz", moment)
    raise NotExact(written(node)[:80])


def _integer(found: Typed, kind: str, node: exp.Expr) -> Typed:
    raw = found.raw
    if found.kind in _NUMBERS and not (isinstance(raw, Fraction) and raw.denominator != 1):
        return Typed("integer", raw)
    if found.kind == "boolean" and kind == "INT":
        return Typed("integer", None if raw is None else int(bool(raw)))
    if found.kind in _TEXTS:
        return _as(Typed("unknown", raw), "integer", node)
    raise NotExact(written(node)[:80])
