"""Times in expressions of keys, as PostgreSQL computes them: parts, truncations, shifts, and to_char in English.

to_char(met, 'HH24') depends on the hour alone, and is computed from a time in that hour (`InCycle`).
"""

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from fractions import Fraction

from sqlglot import exp

from planner.catalog.derived_columns import CLOCK_PARTS, DATE_PARTS, EXTRACTED_FROM_DATE
from planner.errors import KeyholeError
from planner.parser.tree import strip_parentheses, write_short
from planner.scope.key_values import (
    TIMES,
    NotExact,
    TypedValue,
    cast,
    convert,
    cut_text,
    make_exact_number,
    read_fraction,
    read_moment,
    to_text,
)
from planner.scope.name_resolution import find_numeric_scale, find_text_width, find_truncation_unit
from planner.values.constant import ConstantContext, Interval, NotConstant, Untyped
from planner.values.datetimes import extract_part, shift_moment, truncate_to_unit
from planner.values.datetimes import read_interval as read_span
from planner.values.expressions import fold_constant

_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NOTHING_GIVEN = ConstantContext(parameters={}, today=date.min)
_TRUNCATED = (*DATE_PARTS, "hour", "minute")
_FINEST_FIRST = ("second", "minute", "hour", "day", "doy", "dow", "week", "month", "quarter", "year")
_PIECES = {
    "%Y": "year", "%G": "year", "%y": "year", "Q": "quarter", "%m": "month", "%-m": "month", "Mon": "month",
    "MON": "month", "Month": "month", "F%month": "month", "%V": "week", "%d": "day", "%-d": "day", "%j": "doy",
    "%U": "doy", "%u": "dow", "I%u": "dow", "%uy": "dow", "%uay": "dow", "FM%uay": "dow", "%H": "hour", "%-H": "hour",
    "%I": "hour", "AM": "hour", "PM": "hour", "%M": "minute", "%S": "second",
}  # fmt: skip
_FORMAT = re.compile(
    r'"[^"%\\]*"|FM%uay(?![A-Za-z])|%-[mdH]|F%month(?![A-Za-z%])|%[YGymdHIMSVjU]|I?%u(?![A-Za-z])|Q'
    r"|(?:Month|Mon|MON|%uay|%uy|AM|PM)(?![A-Za-z%])|[-/ .:_,0-9]"
)
_CYCLES: dict[str, tuple[datetime, int, str]] = {
    "quarter": (datetime(2000, 1, 1), 1, "3 months"),
    "month": (datetime(2000, 1, 1), 1, "1 month"),
    "week": (datetime(2019, 12, 30), 1, "7 days"),  # 2020 had 53 weeks
    "day": (datetime(2000, 1, 1), 1, "1 day"),
    "doy": (datetime(2000, 1, 1), 1, "1 day"),
    "dow": (datetime(2000, 1, 2), 0, "1 day"),
    "hour": (datetime(2000, 1, 1), 0, "1 hour"),
    "minute": (datetime(2000, 1, 1), 0, "1 minute"),
}
"""By part of a time: the time of its first number, that number, and how far the times of two numbers lie apart."""


class InCycle(exp.Expression, exp.Func):
    """A time of which only one recurring part is known, such as the month of the year. `part` names it."""

    arg_types = {"this": True, "part": True}  # noqa: RUF012


TIME_FUNCTIONS = (exp.TimestampTrunc, exp.Extract, exp.TimeToStr, exp.Cast, exp.Date, exp.DateBin, InCycle)
"""The functions that `compute_time` computes."""


def find_cycle(node: exp.TimeToStr) -> str:
    """Return the one part of a time on which a pattern of to_char depends. It is empty for years, or several parts."""
    parts = set(_list_parts(node))
    if parts == {"month", "quarter"}:
        return "month"
    (part, *others) = parts or {""}
    return part if part in _CYCLES and not others else ""


def find_finest_part(node: exp.TimeToStr) -> str:
    """Return the finest part of a time that a pattern shows."""
    parts = _list_parts(node)
    finest = next((part for part in _FINEST_FIRST if part in parts), "day")
    weeks = "week" in parts and not {"month", "quarter"} & set(parts)
    return "day" if finest in ("doy", "dow") or (finest == "week" and not weeks) else finest


def _list_parts(node: exp.TimeToStr) -> list[str]:
    form = node.args["format"]
    return [_PIECES[piece] for piece in _FORMAT.findall(str(form.this)) if piece in _PIECES]


def write_in_cycle(part: str, number: str) -> str:
    """Return SQL for some time whose recurring part `part` has this number."""
    base, first, step = _CYCLES[part]
    return f"(TIMESTAMP '{base}' + ({number} - {first}) * interval '{step}')"


def _compute_in_cycle(node: InCycle, found: TypedValue) -> TypedValue:
    number = read_fraction(found, node)
    if number is None:
        return TypedValue("timestamp", None)
    base, first, step = _CYCLES[str(node.args["part"])]
    return TypedValue(
        "timestamp", shift_moment(base, _multiply_interval(read_span(step, node), int(number) - first), 1)
    )


def _multiply_interval(by: Interval, count: int) -> Interval:
    return Interval(by.months * count, by.days * count, by.microseconds * count)


def compute_time(node: exp.Expr, of: Callable[[exp.Expr], TypedValue]) -> TypedValue:
    """Return the value of a function of a time, or of a cast. Raise `NotExact` if it is not known exactly."""
    match node:
        case InCycle():
            return _compute_in_cycle(node, of(node.this))
        case exp.TimestampTrunc():
            found, part = of(node.this), find_truncation_unit(node)
            if found.kind not in TIMES or part not in _TRUNCATED:
                raise NotExact(write_short(node))
            kind = "timestamp" if found.kind == "timestamp" else "timestamptz"
            return TypedValue(kind, None if found.raw is None else truncate_to_unit(read_moment(found), part))
        case exp.DateBin():
            return _compute_bin(node, of(node.expression))
        case exp.Extract() if (ends := read_age(node)) is not None:
            return _compute_age(node, *map(of, ends))
        case exp.Extract():
            found, part = of(node.expression), str(node.this).lower().strip("'")
            hours = part in CLOCK_PARTS and found.kind == "timestamp"
            if found.kind not in TIMES or not (hours or part in EXTRACTED_FROM_DATE):
                raise NotExact(write_short(node))
            return TypedValue("whole", None if found.raw is None else extract_part(part, read_moment(found)))
        case exp.TimeToStr():
            return _format_time(node, of(node.this))
        case exp.Date():
            return cast(of(node.this), "DATE", node)
        case exp.Cast():
            return _compute_cast(node, of)
        case _:
            raise NotExact(write_short(node))


def read_age(node: exp.Expr | None) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the later and the earlier time of `extract(year FROM age(later, earlier))`.

    Return None for anything else.
    """
    of = strip_parentheses(node.expression) if isinstance(node, exp.Extract) else None
    if not isinstance(of, exp.Anonymous) or str(of.this).lower() != "age" or len(of.expressions) != 2:
        return None
    assert node is not None
    return (of.expressions[0], of.expressions[1]) if str(node.this).lower().strip("'") == "year" else None


def _compute_age(node: exp.Expr, later: TypedValue, earlier: TypedValue) -> TypedValue:
    kind = "timestamp" if "timestamp" in (later.kind, earlier.kind) else "date"
    sides = [convert(one, kind, node) if one.kind == "unknown" else one for one in (later, earlier)]
    if any(one.kind not in ("date", "timestamp") for one in sides):
        raise NotExact(write_short(node))
    if None in (sides[0].raw, sides[1].raw):
        return TypedValue("whole", None)
    after, before = map(read_moment, sides)
    years = _count_years(after, before) if after >= before else -_count_years(before, after)
    return TypedValue("whole", Fraction(years))


def _count_years(after: datetime, before: datetime) -> int:
    """Return the whole years between two times. A year ends at the day and time of the year at which it began."""
    return after.year - before.year - (_locate_in_year(before) > _locate_in_year(after))


def _locate_in_year(at: datetime) -> tuple[int, int, time]:
    return at.month, at.day, at.time()


def read_stride(node: exp.DateBin) -> tuple[timedelta, datetime]:
    """Return the width of the steps of date_bin and the start of one.

    Raise `NotExact` for values that PostgreSQL refuses.
    """
    try:
        width, begun = (
            fold_constant(node.this, _NOTHING_GIVEN),
            node.args["unit"],
        )  # sqlglot parses a literal at this place as a Var
        origin = Untyped(str(begun.this)) if isinstance(begun, exp.Var) else fold_constant(begun, _NOTHING_GIVEN)
        width = read_span(width.text, node) if isinstance(width, Untyped) else width
        found = (
            convert(TypedValue("unknown", origin.text), "timestamp", node).raw
            if isinstance(origin, Untyped)
            else origin
        )
    except (KeyholeError, NotConstant, KeyError):
        raise NotExact(write_short(node)) from None
    if not isinstance(width, Interval) or width.months or not isinstance(found, date):
        raise NotExact(write_short(node))
    step = timedelta(days=width.days, microseconds=width.microseconds)
    if step <= timedelta(0):
        raise NotExact(write_short(node))
    return step, found if isinstance(found, datetime) else datetime(found.year, found.month, found.day)


def _compute_bin(node: exp.DateBin, found: TypedValue) -> TypedValue:
    step, origin = read_stride(node)
    if found.kind != "timestamp":
        raise NotExact(write_short(node))
    if found.raw is None:
        return found
    return TypedValue("timestamp", origin + (read_moment(found) - origin) // step * step)


def read_shift(node: exp.Add | exp.Sub) -> Interval:
    """Return the constant interval by which a time is moved. Raise `NotExact` if it is not a constant."""
    try:
        by = fold_constant(strip_parentheses(node.expression), _NOTHING_GIVEN)
    except (KeyholeError, NotConstant):
        by = None
    if not isinstance(by, Interval):
        raise NotExact(write_short(node))
    return by if isinstance(node, exp.Add) else Interval(-by.months, -by.days, -by.microseconds)


def shift_time(node: exp.Add | exp.Sub, found: TypedValue) -> TypedValue:
    """Return a date or timestamp moved later or earlier by a constant.

    Raise `NotExact` for a result beyond the calendar.
    """
    by = read_shift(node)
    if found.kind not in ("date", "timestamp"):
        raise NotExact(write_short(node))
    return TypedValue("timestamp", None if found.raw is None else shift_moment(read_moment(found), by, 1))


def count_days(left: TypedValue, right: TypedValue, node: exp.Expr) -> TypedValue:
    """Return the days between two dates, or a date moved by some days. Raise `NotExact` for other types."""
    if isinstance(node, exp.Add) and left.kind == "integer":
        left, right = right, left
    if isinstance(node, exp.Sub) and {left.kind, right.kind} <= {"date", "unknown"}:
        left, right = (convert(one, "date", node) for one in (left, right))
        if not isinstance(left.raw, date) or not isinstance(right.raw, date):
            return TypedValue("integer", None)
        return make_exact_number(Fraction((left.raw - right.raw).days), "integer", node)
    if left.kind != "date" or right.kind != "integer" or not isinstance(node, exp.Add | exp.Sub):
        raise NotExact(write_short(node))
    days = read_fraction(right, node)
    if days is None or not isinstance(left.raw, date):
        return TypedValue("date", None)
    return TypedValue("date", left.raw + timedelta(days=int(days if isinstance(node, exp.Add) else -days)))


def _format_time(node: exp.TimeToStr, found: TypedValue) -> TypedValue:
    form = node.args["format"]
    if found.kind not in TIMES or not isinstance(form, exp.Literal) or not form.is_string:
        raise NotExact(write_short(node))
    pieces = _FORMAT.findall(str(form.this))
    hours = any(_PIECES.get(piece) in ("hour", "minute", "second") for piece in pieces)
    if "".join(pieces) != str(form.this) or (hours and found.kind != "timestamp"):
        raise NotExact(write_short(node))
    if found.raw is None:
        return TypedValue("text", None)
    moment = read_moment(found)
    if moment.year < 1001:  # so that the year of its week has four digits, too
        raise NotExact(write_short(node))
    return TypedValue("text", "".join(_show_piece(piece, moment) for piece in pieces))


def _show_piece(piece: str, at: datetime) -> str:
    """Return to_char's text for a piece of a pattern. Names are English, whatever the session's language."""
    iso, month, day = at.isocalendar(), _MONTHS[at.month - 1], _DAYS[at.weekday()]
    of_year, half = at.timetuple().tm_yday, "AM" if at.hour < 12 else "PM"
    texts = {
        "%Y": str(at.year), "%G": str(iso.year), "%y": f"{at.year % 100:02}", "Q": str((at.month - 1) // 3 + 1),
        "%m": f"{at.month:02}", "%-m": str(at.month), "Mon": month[:3], "MON": month[:3].upper(),
        "Month": f"{month:9}", "F%month": month, "%V": f"{iso.week:02}", "%d": f"{at.day:02}", "%-d": str(at.day),
        "%j": f"{of_year:03}", "%U": f"{(of_year - 1) // 7 + 1:02}", "%u": str(at.isoweekday() % 7 + 1),
        "I%u": str(at.isoweekday()), "%uy": day[:3], "%uay": f"{day:9}", "FM%uay": day, "%H": f"{at.hour:02}",
        "%-H": str(at.hour), "%I": f"{(at.hour - 1) % 12 + 1:02}", "AM": half, "PM": half, "%M": f"{at.minute:02}",
        "%S": f"{at.second:02}",
    }  # fmt: skip
    return texts.get(piece, piece.strip('"'))


def _compute_cast(node: exp.Cast, of: Callable[[exp.Expr], TypedValue]) -> TypedValue:
    """Return the value of a cast. Raise `NotExact` if the result may differ from PostgreSQL's."""
    if (width := find_text_width(node)) is not None:
        return cut_text(to_text(of(node.this), node), width, node)
    if (sizes := find_numeric_scale(node)) is not None:
        return _cast_decimals(node, *sizes, of)
    kind = node.to.this
    value = str(kind.value) if isinstance(kind, exp.DataType.Type) else ""
    if node.to.expressions and value != "TIMESTAMP":
        raise NotExact(write_short(node))
    return cast(of(node.this), value, node)


def _cast_decimals(node: exp.Cast, precision: int, scale: int, of: Callable[[exp.Expr], TypedValue]) -> TypedValue:
    """Return a cast to `numeric(p, s)`, which rounds as round does. Raise `NotExact` for a value with more digits."""
    exact = exp.Cast(this=node.this.copy(), to=exp.DataType(this=exp.DType.DECIMAL))
    found = of(exp.Round(this=exact, decimals=exp.Literal.number(scale)))
    value = read_fraction(found, node)
    if value is not None and abs(value) >= 10 ** (precision - scale):
        raise NotExact(write_short(node))
    return found
