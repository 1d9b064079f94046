"""The moments at which an expression of one date or timestamp takes a step, over a range.

    date_bin('15 minutes', met, '2026-01-01')   every quarter of an hour
    (met - interval '6 hours')::date            six o'clock of every day
    to_char(met, 'YYYY-MM-DD HH24:MI')          every minute

Guarantee: between two neighbouring moments the expression has one value. They are a function of the policy and the
statement.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlglot import exp

from planner.catalog.catalog import Column, SqlType, ValueGroups
from planner.groups.pieces import MOST_STEPS, TooManyCuts
from planner.groups.ranges import TimeRange
from planner.scope.key_expressions import evaluate
from planner.scope.key_times import find_finest_part, read_age, read_shift, read_stride
from planner.scope.key_values import NotExact, convert
from planner.scope.name_resolution import Scope, find_column, find_truncation_unit, name_cast_type, read_derivation
from planner.values.datetimes import truncate_to_unit

_FIXED = {
    "week": timedelta(weeks=1),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_AGE = "years of an age"
_EXTRACTED = {"isoyear": "week", "dow": "day", "isodow": "day", "doy": "day", "epoch": "", "microseconds": ""}


@dataclass(frozen=True, slots=True)
class TimeSteps:
    """The moments at which an expression of a time, such as its month, changes its value.

    The expression first shifts the time by `shift` or `months`. Its value then changes with each calendar `unit`, or
    every `width` from `origin` on.
    """

    shift: timedelta
    unit: str = ""
    width: timedelta = timedelta(0)
    origin: datetime = datetime(2000, 1, 1)
    months: int = 0

    @property
    def is_of_clock(self) -> bool:
        """True if the steps are hours, minutes or seconds of a time that was not shifted. A date has no such steps."""
        return not self.shift and not self.months and self.unit in ("hour", "minute", "second")


def list_steps(column: Column, items: Iterable[exp.Expr], scope: Scope) -> tuple[TimeSteps, ...]:
    """Return the steps of the expressions that read a time column.

    Return () if one of them does not change in steps.
    """
    found: dict[TimeSteps, None] = {}
    for item in items:
        copied: exp.Expr = exp.Tuple(expressions=[item.copy()]).expressions[0]
        for node in copied.find_all(exp.Column):
            if find_column(node, scope) == column and not _is_derived(node, scope):
                steps = _read_steps(node)
                if steps is None:
                    return ()
                found[steps] = None
    return tuple(found)


def _is_derived(node: exp.Column, scope: Scope) -> bool:
    """Return True if a column is inside a part of its time that is a column of its own."""
    around = node.parent
    while isinstance(around, exp.Paren | exp.Cast | exp.TimestampTrunc | exp.Extract | exp.Date):
        if read_derivation(around, scope) is not None and find_column(around, scope) is not None:
            return True
        around = around.parent
    return False


def _read_steps(node: exp.Column) -> TimeSteps | None:
    shift, months = timedelta(0), 0
    inner: exp.Expr = node
    while True:
        around = inner.parent
        match around:
            case exp.Paren():
                pass
            case exp.Cast() if name_cast_type(around) == "TIMESTAMP":
                pass
            case exp.Add() | exp.Sub() if around.this is inner:
                moved = _read_shift(around)
                if moved is None:
                    return None
                shift += moved[0]
                months += moved[1]
            case exp.DateBin() if not months and around.args.get("expression") is inner:
                try:
                    width, origin = read_stride(around)
                except NotExact:
                    return None
                return TimeSteps(shift, width=width, origin=origin)
            case exp.Anonymous() if not months:
                other = _read_other_end(around, inner)
                return None if other is None else TimeSteps(shift, _AGE, origin=other)
            case _:
                unit = _find_unit(around)
                if months:  # the end of a month may move into an earlier day, and never into another month
                    return TimeSteps(shift, unit, months=months) if unit in _MONTHS and not shift else None
                return TimeSteps(shift, unit) if unit in _FIXED or unit in _MONTHS else None
        inner = around


def _read_other_end(node: exp.Anonymous, inner: exp.Expr) -> datetime | None:
    """Return the constant time from which the years to a column are counted, or None for anything else."""
    around = node.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    ends = read_age(around)
    others = [one for one in ends or () if one is not inner]
    if len(others) != 1 or others[0].find(exp.Column) is not None:
        return None
    try:
        found = evaluate(others[0], {})
        raw = convert(found, "timestamp", node).raw if found.kind == "unknown" else found.raw
    except NotExact:
        return None
    if not isinstance(raw, date):
        return None
    return raw if isinstance(raw, datetime) else datetime(raw.year, raw.month, raw.day)


def _read_shift(node: exp.Add | exp.Sub) -> tuple[timedelta, int] | None:
    try:
        by = read_shift(node)
    except NotExact:
        return None
    return timedelta(days=by.days, microseconds=by.microseconds), by.months


def _find_unit(node: exp.Expr | None) -> str:
    match node:
        case exp.TimestampTrunc() if node.args.get("zone") is None:
            return find_truncation_unit(node)
        case exp.Cast() if name_cast_type(node) == "DATE":
            return "day"
        case exp.Date() if not node.expressions and node.args.get("zone") is None:
            return "day"
        case exp.Extract():
            part = str(node.this).lower().strip("'")
            return _EXTRACTED.get(part, part)
        case exp.TimeToStr():
            return find_finest_part(node)
        case _:
            return ""


def list_starts(steps: Iterable[TimeSteps], times: TimeRange) -> list[datetime]:
    """Return the moments at which the parts of a range begin, in rising order.

    Raise `TooManyCuts` if there are too many of them.
    """
    found: set[datetime] = set()
    for one in steps:
        try:
            found.update(_list_starts(one, times))
        except OverflowError:
            raise TooManyCuts(MOST_STEPS + 1) from None
    if len(found) > MOST_STEPS:
        raise TooManyCuts(len(found))
    return sorted(found)


def _list_starts(one: TimeSteps, times: TimeRange) -> list[datetime]:
    first, past = times.first + one.shift, times.end + one.shift
    if first >= past:
        return []
    if one.unit == _AGE:
        years = (_start_year(year, one.origin) for year in range(first.year, min(past.year, date.max.year) + 1))
        return [start - one.shift for start in (first, *years) if first <= start < past]
    width = one.width or _FIXED.get(one.unit, timedelta(0))
    if width:
        size = (past - first) // width + 2
        if size > MOST_STEPS + 2:
            raise TooManyCuts(size - 2)
        origin = one.origin if one.width else truncate_to_unit(first, one.unit)
        begun = origin + (first - origin) // width * width
        return [start - one.shift for i in range(size) if (start := begun + i * width) < past]
    months = _MONTHS[one.unit]
    if (size := (past.year - first.year) * 12 // months) > MOST_STEPS:
        raise TooManyCuts(size)
    month = _number_months(first) + one.months
    month -= month % months
    starts = [_start_month(month - one.months)]
    while (later := _start_month(month + months - one.months)) < past:
        starts.append(later)
        month += months
    return [start - one.shift for start in starts]


def _number_months(at: datetime) -> int:
    return at.year * 12 + at.month - 1


def _start_month(number: int) -> datetime:
    """Return the first moment of a month by its number since the year 0, limited to the years that exist."""
    if number < 12:
        return datetime.min
    return datetime(number // 12, number % 12 + 1, 1) if number // 12 <= date.max.year else datetime.max


def _start_year(year: int, origin: datetime) -> datetime:
    """Return the first moment of a year that is a whole number of years away from the origin."""
    try:
        same = origin.replace(year=year)
    except ValueError:  # there is no 29 February, so the years are whole from the next day on
        return datetime(year, 3, 1)
    return same + timedelta(microseconds=1) if same <= origin else same


def group_times(column: Column, starts: list[datetime], times: TimeRange, *, nullable: bool) -> ValueGroups | None:
    """Return the groups of a range of times that these moments separate, and a group for NULL if `nullable`."""
    if not starts:
        return None
    cuts: list[date] = [*starts, times.end]
    if column.sql_type is SqlType.DATE:
        ends = [
            one.date() + timedelta(days=one > datetime(one.year, one.month, one.day)) for one in (*starts, times.end)
        ]
        cuts = sorted(set(ends))
    count = len(cuts) - 1
    shown = tuple(cuts[:-1])
    return ValueGroups(
        column=column.name,
        kind=column.sql_type,
        cut_points=tuple(cuts),
        groups=(None, *range(count), None),
        null_group=count if nullable else None,
        shown_values=(*shown, None) if nullable else shown,
    )
