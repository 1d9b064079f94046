"""Functions of one column whose comparisons with constants are conditions on the column itself, without any arithmetic.

A term is known by how it is compared: `x::date >= d` is `x >= d`, `age + 5 > 70` is `age > 65`, `left(t, 2) = 'ab'` is
`t LIKE 'ab%'`. What is not exactly such a condition, for every value PostgreSQL has, is no term.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from math import floor

from sqlglot import exp

from planner.catalog import Column, SqlType
from planner.column_comparison import compared, is_real, unlisted
from planner.condition import Compare, Condition, IsNull, Like, Not, Within, all_of, any_of, as_double, evaluate
from planner.constant import cast
from planner.constant_calls import text_of
from planner.constant_value import Constant, Number, Span, Untyped, number, wrong
from planner.letter_case import escaped, lowered_spellings
from planner.like import parts
from planner.moments import STEPS, instant, midnight, moment, shifted, step_name, truncated
from planner.reference import referenced
from planner.row_scope import RowScope, combined
from planner.sql_literal import integer_limit
from planner.syntax import bare, written
from planner.truth import UNKNOWN, Truth, known_unless_null

FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
Comparing = Callable[[str, Constant, exp.Expr], Truth]
LikePattern = Callable[[str, exp.Expr], Truth]


@dataclass(frozen=True, slots=True)
class Term:
    """A function of `column`, by what `term operator constant` and, of a text, `term LIKE pattern` are.

    `exact` says that its values are integers or numerics, `plain` that they are the column's own.
    """

    column: Column
    compare: Comparing
    like: LikePattern | None = None
    exact: bool = False
    plain: bool = False


def term(node: exp.Expr, within: RowScope) -> Term | None:
    """The term that an expression is; None if it is none. Raises KH201 for unknown names, KH205, KH212."""
    node = bare(node)
    column = referenced(node, within.scope)
    if column is not None:
        return _plain(column)
    match node:
        case exp.Cast():
            return _cast(node, within)
        case exp.Date() if not node.expressions and node.args.get("zone") is None:
            return _truncated(node.this, "day", within, of_dates=True)
        case exp.TimestampTrunc() if node.args.get("zone") is None:
            return _truncated(node.this, step_name(str(node.unit)), within, of_dates=False)
        case exp.Extract():
            return _extracted(node, within)
        case exp.Add() | exp.Sub() | exp.Mul():
            return _arithmetic(node, within)
        case exp.Neg():
            return _scaled(term(node.this, within), Number(Fraction(-1), integral=True))
        case exp.Abs():
            return _absolute(node, within)
        case exp.Left() | exp.Right() | exp.Substring() | exp.Lower():
            return _text(node, within)
        case exp.Coalesce():
            return _coalesced(node, within)
        case _:
            return None


def _plain(column: Column) -> Term | None:
    if column.sql_type is SqlType.OTHER:
        return None

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        return compared(column, operator, constant, at)

    def like(pattern: str, _: exp.Expr) -> Truth:
        found = Like(column.name, pattern)
        return known_unless_null(column.name, true=found, false=Not(found))

    text = column.sql_type is SqlType.TEXT
    exact = column.sql_type in (SqlType.INTEGER, SqlType.NUMERIC)
    return Term(column, compare, like=like if text else None, exact=exact, plain=True)


_WIDTHS = {"SMALLINT": 15, "INT": 31, "BIGINT": 63}
_EXACT_DOUBLE = 53


def _cast(node: exp.Cast, within: RowScope) -> Term | None:
    """A cast that no value of the column can fail, and that keeps all of them apart."""
    if isinstance(node, exp.TryCast):
        return None
    inner = term(node.this, within)
    to = node.to.this
    kind = str(to.value) if isinstance(to, exp.DType) and not node.to.expressions else ""
    if inner is None or not inner.plain:
        return None
    column = inner.column
    match column.sql_type:
        case SqlType.TEXT if kind in ("TEXT", "VARCHAR"):
            return inner
        case SqlType.BOOLEAN if kind == "BOOLEAN":
            return inner
        case SqlType.INTEGER if kind in _WIDTHS and integer_limit(column.declared).bit_length() <= _WIDTHS[kind]:
            return inner
        case SqlType.INTEGER | SqlType.NUMERIC if kind == "DECIMAL":
            return replace(inner, compare=_retyped(inner, "DECIMAL"))
        case SqlType.INTEGER if kind == "DOUBLE" and integer_limit(column.declared).bit_length() < _EXACT_DOUBLE:
            return replace(inner, compare=_as_doubles(inner), exact=False, plain=False)
        case SqlType.DOUBLE if kind == "DOUBLE":
            return _plain(replace(column, declared="double precision"))
        case SqlType.DATE | SqlType.TIMESTAMP if kind == "TIMESTAMP":
            return replace(inner, compare=_retyped(inner, "TIMESTAMP"))
        case SqlType.TIMESTAMP if kind == "DATE":
            return _truncated(node.this, "day", within, of_dates=True)
        case _:
            return None


def _retyped(inner: Term, kind: str) -> Comparing:
    """A comparison whose quoted constants are of another type than the column."""

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        if isinstance(constant, Untyped):
            constant = cast(constant, exp.DataType(this=exp.DType(kind)), at)
            if isinstance(constant, Number):
                constant = Number(constant.value, integral=False)
        return inner.compare(operator, constant, at)

    return compare


def _as_doubles(inner: Term) -> Comparing:
    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        if isinstance(constant, Untyped):
            constant = number(constant.text, at)
        if isinstance(constant, Number):
            constant = Number(Fraction(float(constant.value)), integral=False)
        return inner.compare(operator, constant, at)

    return compare


def _moment(constant: Constant, at: exp.Expr) -> datetime | None:
    """A constant of time as a timestamp."""
    match constant:
        case None:
            return None
        case Untyped(text):
            return moment(text, at)
        case date():
            return midnight(constant)
        case _:
            raise wrong(at, f"{written(at)[:80]} is not a date or timestamp")


def _stepped(
    column: Column, operator: str, start: datetime, following: datetime, at: exp.Expr, *, whole: bool
) -> Truth:
    """A step function of a time: `start` to `following` is the step that holds the constant, which is it if `whole`."""
    if operator in ("=", "<>"):
        if whole:
            sides = (compared(column, ">=", start, at), compared(column, "<", following, at))
            equal = combined(sides, conjunction=True)
        else:
            equal = known_unless_null(column.name, true=any_of(()), false=Not(IsNull(column.name)))
        return equal if operator == "=" else equal.negated()
    edge = start if whole and operator in (">=", "<") else following
    return compared(column, ">=" if operator in (">", ">=") else "<", edge, at)


def _times(node: exp.Expr, within: RowScope) -> tuple[Column, bool] | None:
    """The date or timestamp that is read, and whether PostgreSQL makes it a timestamp without time zone."""
    inner = term(node, within)
    if inner is None or inner.column.sql_type not in (SqlType.DATE, SqlType.TIMESTAMP) or not inner.plain:
        return None
    return inner.column, inner.column.sql_type is SqlType.TIMESTAMP or isinstance(bare(node), exp.Cast)


def _truncated(node: exp.Expr, unit: str, within: RowScope, *, of_dates: bool) -> Term | None:
    found = _times(node, within)
    if found is None or unit not in STEPS:
        return None
    column, local = found
    local = local or of_dates
    if not local and not within.given.utc:
        raise unlisted(
            node,
            f'date_trunc of the date "{column.name}" is a timestamp with time zone',
            detail="What it is compared with depends on the session's TimeZone, which is not UTC here.",
            hint=f"Write date_trunc('{unit}', {written(node)}::timestamp), or SET TimeZone TO 'UTC' first.",
        )

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        value = instant(constant.text, at) if not local and isinstance(constant, Untyped) else _moment(constant, at)
        if value is None:
            return UNKNOWN
        if of_dates and isinstance(constant, Untyped):
            value = midnight(value.date())
        start = truncated(value, unit)
        assert start is not None
        return _stepped(column, operator, start, _next(start, STEPS[unit], at), at, whole=start == value)

    return Term(column, compare)


def _next(start: datetime, step: Span, at: exp.Expr) -> datetime:
    try:
        return shifted(start, step, 1)
    except (ValueError, OverflowError):
        raise wrong(at, "a date is out of range") from None


_EPOCH = datetime(1970, 1, 1)
_FARTHEST_SECONDS = 2**33  # up to here a double keeps microseconds apart, which date_part gives
_MICROSECOND = Span(0, 0, 1)


def _extracted(node: exp.Extract, within: RowScope) -> Term | None:
    part = str(node.this).lower().strip("'")
    found = _times(node.expression, within)
    if found is None or part not in ("year", "epoch") or not (part == "year" or found[1] or within.given.utc):
        return None
    column = found[0]

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        if constant is None:
            return UNKNOWN
        value = number(constant.text, at) if isinstance(constant, Untyped) else constant
        if not isinstance(value, Number):
            raise wrong(at, f"{written(at)[:80]} is not a number")
        below = floor(value.value)
        if part == "year":
            if not 2 <= below <= 9998:
                raise wrong(at, f"the year {written(at)[:80]} is out of range")
            start, step = datetime(below, 1, 1), STEPS["year"]
        else:
            if abs(below) > _FARTHEST_SECONDS or below != value.value:
                raise wrong(at, f"{written(at)[:80]} is no whole number of seconds between 1698 and 2242")
            start, step = _EPOCH + timedelta(seconds=below), _MICROSECOND
        return _stepped(column, operator, start, _next(start, step, at), at, whole=below == value.value)

    return Term(column, compare)


def _arithmetic(node: exp.Add | exp.Sub | exp.Mul, within: RowScope) -> Term | None:
    left, right = bare(node.this), bare(node.expression)
    if within.is_constant(left) == within.is_constant(right):
        return None
    turned = within.is_constant(left)
    inner, constant = term(right if turned else left, within), left if turned else right
    if inner is None:
        return None
    by = within.constant(constant)
    if inner.column.sql_type in (SqlType.DATE, SqlType.TIMESTAMP):
        backwards = turned and isinstance(node, exp.Sub)
        return None if backwards else _later(inner, by, 1 if isinstance(node, exp.Add) else -1)
    by = number(by.text, constant) if isinstance(by, Untyped) else by
    if not inner.exact or not isinstance(by, Number):
        return None
    if not by.integral and constant.find(exp.Cast, exp.Parameter) is not None:
        return None  # it may be a double, with which PostgreSQL would round
    if isinstance(node, exp.Mul):
        return _scaled(inner, by)
    if turned and isinstance(node, exp.Sub):
        return _moved(_scaled(inner, Number(Fraction(-1), integral=True)), by, 1)
    return _moved(inner, by, 1 if isinstance(node, exp.Add) else -1)


def _numeric(constant: Constant, inner: Term, by: Number, at: exp.Expr) -> Number:
    """The constant as a number of the type that the arithmetic has."""
    found = number(constant.text, at) if isinstance(constant, Untyped) else constant
    whole = inner.column.sql_type is SqlType.INTEGER and by.integral
    if not isinstance(found, Number) or (isinstance(constant, Untyped) and whole and not found.integral):
        raise wrong(at, f"{written(at)[:80]} is not a number of the type that it is compared with")
    return found


def _moved(moved: Term | None, by: Number, sign: int) -> Term | None:
    if moved is None:
        return None
    inner = moved

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        if constant is None:
            return UNKNOWN
        value = _numeric(constant, inner, by, at).value - sign * by.value
        return inner.compare(operator, Number(value, integral=False), at)

    return Term(inner.column, compare, exact=True)


def _scaled(scaled: Term | None, by: Number) -> Term | None:
    """The term times a constant. NaN, which only numerics have, is the largest number whatever the sign."""
    if scaled is None or not scaled.exact or by.value == 0:
        return None
    inner = scaled
    if by.value < 0 and inner.column.sql_type is not SqlType.INTEGER:
        return None

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        if constant is None:
            return UNKNOWN
        value = _numeric(constant, inner, by, at).value / by.value
        return inner.compare(operator if by.value > 0 else FLIPPED[operator], Number(value, integral=False), at)

    return Term(inner.column, compare, exact=True)


def _later(inner: Term, by: Constant, sign: int) -> Term | None:
    """A date plus days, or a date or timestamp plus an interval without months."""
    if not inner.plain or inner.column.sql_type not in (SqlType.DATE, SqlType.TIMESTAMP):
        return None
    match by:
        case Number(value, True) if inner.column.sql_type is SqlType.DATE:
            apart, of_dates = Span(0, int(value), 0), True
        case Span(0, _, _):
            apart, of_dates = by, False
        case _:
            return None

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        value = _moment(constant, at)
        if value is None:
            return UNKNOWN
        if of_dates and isinstance(constant, Untyped):
            value = midnight(value.date())
        try:
            return compared(inner.column, operator, shifted(value, apart, -sign), at)
        except (ValueError, OverflowError):
            raise wrong(at, "a date is out of range") from None

    return Term(inner.column, compare)


def _absolute(node: exp.Abs, within: RowScope) -> Term | None:
    inner = term(node.this, within)
    if inner is None or not inner.plain or not (inner.exact or inner.column.sql_type is SqlType.DOUBLE):
        return None
    if is_real(inner.column):
        return None
    one = Number(Fraction(1), integral=True)

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        if constant is None:
            return UNKNOWN
        value = _numeric(constant, inner, one, at)
        opposite = Number(-value.value, value.integral)
        if operator in ("=", "<>"):
            sides = [inner.compare("=", found, at) for found in dict.fromkeys((value, opposite))]
            equal = combined(sides, conjunction=False)
            if value.value < 0:
                equal = known_unless_null(inner.column.name, true=any_of(()), false=Not(IsNull(inner.column.name)))
            return equal if operator == "=" else equal.negated()
        sides = [inner.compare(operator, value, at), inner.compare(FLIPPED[operator], opposite, at)]
        return combined(sides, conjunction=operator in ("<", "<="))

    return Term(inner.column, compare)


def _text(node: exp.Expr, within: RowScope) -> Term | None:
    inner = term(node.this, within)
    if inner is None or not inner.plain or inner.column.sql_type is not SqlType.TEXT:
        return None
    column = inner.column
    if isinstance(node, exp.Lower):
        return Term(column, _lowered(column, node), like=_lowered_like(column))
    length = _length(node, within)
    if length is None:
        return None

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        text = _compared_text(operator, constant, at)
        if text is None:
            return UNKNOWN
        if len(text) < length:
            return inner.compare(operator, text, at)
        if len(text) > length:
            equal = known_unless_null(column.name, true=any_of(()), false=Not(IsNull(column.name)))
        else:
            found = Like(column.name, f"%{escaped(text)}" if isinstance(node, exp.Right) else f"{escaped(text)}%")
            equal = known_unless_null(column.name, true=found, false=Not(found))
        return equal if operator == "=" else equal.negated()

    return Term(column, compare)


def _length(node: exp.Expr, within: RowScope) -> int | None:
    """How many characters `left`, `right` or a `substring` from the first one keeps."""
    begin = node.args.get("start")
    count = node.args.get("length") if isinstance(node, exp.Substring) else node.args.get("expression")
    if count is None or (isinstance(node, exp.Substring) and (begin is None or not within.is_constant(begin))):
        return None
    first = within.constant(begin) if begin is not None else Number(Fraction(1), integral=True)
    found = within.constant(count) if within.is_constant(count) else None
    if not isinstance(found, Number) or not found.integral or not isinstance(first, Number) or first.value != 1:
        return None
    return int(found.value) if 0 < found.value < 10_000 else None


def _compared_text(operator: str, constant: Constant, at: exp.Expr) -> str | None:
    if constant is None:
        return None
    text = text_of(constant)
    if text is None or "\x00" in text:
        raise wrong(at, f"{written(at)[:80]} is not text")
    if operator not in ("=", "<>"):
        raise unlisted(at, "the order of texts depends on a collation", hint="Use =, <>, IN or LIKE.")
    return text


def _lowered(column: Column, node: exp.Expr) -> Comparing:
    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        text = _compared_text(operator, constant, at)
        if text is None:
            return UNKNOWN
        spelled = ["".join(parts(found)[i] or "" for i in range(len(text))) for found in
                   lowered_spellings(list(text), node)]  # fmt: skip
        equal = one_of(column, spelled)
        return equal if operator == "=" else equal.negated()

    return compare


def _lowered_like(column: Column) -> LikePattern:
    def like(pattern: str, at: exp.Expr) -> Truth:
        return any_like(column, lowered_spellings(parts(pattern), at))

    return like


def one_of(column: Column, texts: list[str]) -> Truth:
    """That a text column is one of some texts."""
    match sorted(set(texts)):
        case []:
            return known_unless_null(column.name, true=any_of(()), false=Not(IsNull(column.name)))
        case [text]:
            equal, other = Compare(column.name, "=", text), Compare(column.name, "<>", text)
            return known_unless_null(column.name, true=equal, false=other)
        case several:
            found = Within(column.name, tuple(several))
            return known_unless_null(column.name, true=found, false=Not(found))


def any_like(column: Column, patterns: list[str]) -> Truth:
    """That a text column is LIKE one of some patterns."""
    if not patterns:
        return one_of(column, [])
    found = [Like(column.name, pattern) for pattern in dict.fromkeys(patterns)]
    return known_unless_null(column.name, true=any_of(found), false=all_of(Not(one) for one in found))


def without_nulls(node: exp.Coalesce, within: RowScope) -> tuple[exp.Expr, ...]:
    """The arguments of COALESCE but the constants that are NULL."""
    arguments = (node.this, *node.expressions)
    return tuple(one for one in arguments if not within.is_constant(one) or within.constant(one) is not None)


def _coalesced(node: exp.Coalesce, within: RowScope) -> Term | None:
    """A column with a constant in place of NULL."""
    arguments = without_nulls(node, within)
    inner = term(arguments[0], within) if arguments else None
    if inner is None or not inner.plain or len(arguments) == 1:
        return inner
    if not within.is_constant(arguments[1]) or is_real(inner.column):
        return None
    default = within.constant(arguments[1])
    if not _of_type(default, inner.column):
        return None
    equal = inner.compare("=", default, arguments[1]).true
    if not isinstance(equal, Compare):
        return None
    shown = _seen(equal, inner.column)
    assert isinstance(shown, Compare)
    null, standing = IsNull(inner.column.name), {inner.column.name: shown.value}

    def patched(found: Truth) -> Truth:
        if evaluate(_seen(found.true, inner.column), standing) is True:
            true = any_of((found.true, null))
            return Truth(true, found.false, found.false, true)
        false = any_of((found.false, null))
        return Truth(found.true, false, false, found.true)

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        return UNKNOWN if constant is None else patched(inner.compare(operator, constant, at))

    plain_like = inner.like

    def like(pattern: str, at: exp.Expr) -> Truth:
        assert plain_like is not None
        return patched(plain_like(pattern, at))

    return Term(inner.column, compare, like=None if plain_like is None else like)


def _seen(condition: Condition, column: Column) -> Condition:
    """The condition on one column as its type sees it."""
    return as_double(condition) if column.sql_type is SqlType.DOUBLE else condition


def _of_type(default: Constant, column: Column) -> bool:
    """Whether the constant beside the column leaves COALESCE the column's type."""
    match default:
        case Untyped():
            return True
        case Number(_, integral):
            return integral or column.sql_type in (SqlType.NUMERIC, SqlType.DOUBLE)
        case bool():
            return column.sql_type is SqlType.BOOLEAN
        case str():
            return column.sql_type is SqlType.TEXT
        case datetime():
            return column.sql_type is SqlType.TIMESTAMP
        case date():
            return column.sql_type in (SqlType.DATE, SqlType.TIMESTAMP)
        case _:
            return False
