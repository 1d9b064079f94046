"""Distances between values of a key, as conditions of joins say them: `b.month = a.month - interval '1 month'`.

In a calendar `b = a - interval '1 month'` and `b + interval '1 month' = a` differ at the ends of months. A key whose
values are no later than the 28th, or a distance in days, has no such ends.
"""

from dataclasses import dataclass, replace
from datetime import date, datetime, time

from sqlglot import exp

from planner.catalog.catalog import SqlType, Table
from planner.errors import KeyholeError
from planner.parser.tree import contains_type, read_name, strip_parentheses
from planner.values.constant import Constant, ConstantContext, Interval, NotConstant, Number
from planner.values.expressions import fold_constant

_FIRST_OF_MONTH = frozenset(("month", "quarter", "year"))
_LAST_SURE_DAY = 28  # which every month has: a later day would cost some month its exact distance
_CLOCK_UNITS = (("hour", 3_600_000_000), ("minute", 60_000_000), ("second", 1_000_000), ("microsecond", 1))
_MOST_VALUES = 10_000  # of a key, of which each is looked at for every join along it
_NO_PARAMETERS = ConstantContext({}, date.min)
_ANOTHER_DAY = ConstantContext({}, date(2001, 2, 3))


@dataclass(frozen=True, slots=True)
class Shift:
    """A distance between keys: months, days and microseconds, or whole steps for numbers.

    All of them have the same sign.
    """

    months: int = 0
    days: int = 0
    microseconds: int = 0
    steps: int = 0

    @property
    def is_none(self) -> bool:
        """Return True if the distance is zero."""
        return self == Shift()

    @property
    def is_later(self) -> bool:
        """Return True if the distance leads towards larger values."""
        return max(self.months, self.days, self.microseconds, self.steps) > 0

    def negate(self) -> "Shift":
        """Return the distance in the other direction."""
        return Shift(-self.months, -self.days, -self.microseconds, -self.steps)

    def add(self, other: "Shift") -> "Shift | None":
        """Return the sum of two distances. Return None if they have opposite directions."""
        return _make(
            Interval(self.months + other.months, self.days + other.days, self.microseconds + other.microseconds),
            self.steps + other.steps,
        )

    def spell(self, *, of_dates: bool) -> str:
        """Return the distance as SQL after a plus or minus. Steps `of_dates` are days."""
        if self.steps and not of_dates:
            return str(abs(self.steps))
        parts = [(self.months, "month"), (self.days + self.steps, "day")]
        unit, length = next(one for one in _CLOCK_UNITS if self.microseconds % one[1] == 0)
        parts.append((self.microseconds // length, unit))
        said = " ".join(f"{abs(count)} {unit}{'s' * (abs(count) > 1)}" for count, unit in parts if count)
        return f"interval '{said}'"


@dataclass(frozen=True, slots=True)
class ShiftedColumn:
    """A column, by its qualifier and name, plus a distance. It `is_cast` if the sum is cast to a date or timestamp."""

    table: str
    name: str
    shift: Shift
    is_cast: bool = False


@dataclass(frozen=True, slots=True)
class Calendar:
    """Facts about a key's listed values.

    They are all dates, all before the 29th of their month, or all midnights. `may_be_null` is True if one may be NULL.
    """

    are_dates: bool
    are_early: bool
    may_be_null: bool
    are_midnights: bool = False

    def can_compare(self, column: ShiftedColumn) -> bool:
        """Return True if adding the distance to the column and casting the sum gives every value unchanged."""
        return not column.is_cast or (self.are_midnights and not column.shift.microseconds)

    def can_invert(self, shift: Shift) -> bool:
        """Return True if subtracting the distance undoes adding it, for all values of the key."""
        return not shift.months or (self.are_early and not shift.days and not shift.microseconds)


def read_shifted_column(node: exp.Expr) -> ShiftedColumn | None:
    """Return a column plus or minus a constant, with PostgreSQL's meaning. Return None for other expressions."""
    node = strip_parentheses(node)
    if isinstance(node, exp.Cast) and node.to.this in (exp.DType.DATE, exp.DType.TIMESTAMP) and not node.to.expressions:
        found = read_shifted_column(node.this)
        return None if found is None else replace(found, is_cast=True)
    if isinstance(node, exp.Column):
        return ShiftedColumn(read_name(node.args.get("table")), read_name(node.this), Shift())
    if not isinstance(node, exp.Add | exp.Sub):
        return None
    left, right = strip_parentheses(node.this), strip_parentheses(node.expression)
    if isinstance(node, exp.Add) and isinstance(right, exp.Column):
        left, right = right, left
    shift = read_shift(right) if isinstance(left, exp.Column) else None
    if shift is None or shift.is_none:
        return None
    signed = shift if isinstance(node, exp.Add) else shift.negate()
    return ShiftedColumn(read_name(left.args.get("table")), read_name(left.this), signed)


def read_shift(node: exp.Expr) -> Shift | None:
    """Return a constant as a distance. Return None for any other expression."""
    if contains_type(node, exp.Column, exp.Query, exp.Parameter, exp.AggFunc):
        return None
    try:
        value = fold_constant(node, _NO_PARAMETERS)
    except (KeyholeError, NotConstant):
        return None
    match value:
        case Interval():
            return _make(value, 0)
        case Number(number, True):
            return Shift(steps=int(number))
        case _:
            return None


def measure(start: exp.Expr, end: exp.Expr) -> Shift | None:
    """Return the distance from one constant to another, of whole numbers or of days. Return None for other constants.

    The current date is not a constant here.
    """
    first, last = _fold_alike(start), _fold_alike(end)
    match first, last:
        case Number(one, True), Number(other, True):
            return Shift(steps=int(other - one))
        case date(), date() if type(first) is date and type(last) is date:
            return Shift(days=(last - first).days)
        case _:
            return None


def _fold_alike(node: exp.Expr) -> Constant:
    """Return the value that a constant has on every day. Return None for others, and for NULL."""
    if contains_type(node, exp.Column, exp.Query, exp.Parameter, exp.AggFunc):
        return None
    try:
        one, other = (fold_constant(node, given) for given in (_NO_PARAMETERS, _ANOTHER_DAY))
    except (KeyholeError, NotConstant):
        return None
    return one if one == other else None


def _make(value: Interval, steps: int) -> Shift | None:
    parts = (value.months, value.days, value.microseconds)
    if (min(parts) < 0 < max(parts)) or (steps and any(parts)):
        return None
    return Shift(*parts, steps=steps)


def read_calendar(node: exp.Expr, table: Table) -> Calendar:
    """Return what the policy says about the values of an expression over rows of the table."""
    node = strip_parentheses(node)
    if isinstance(node, exp.Cast) and node.to.this in (exp.DType.DATE, exp.DType.TIMESTAMP):
        inner, of_date = read_calendar(node.this, table), node.to.this == exp.DType.DATE
        may_be_null = inner.may_be_null and not isinstance(strip_parentheses(node.this), exp.Column)
        return Calendar(of_date, inner.are_early, may_be_null, of_date or inner.are_midnights)
    if isinstance(node, exp.TimestampTrunc):
        unit = str(node.args["unit"].name).lower()
        may_be_null = not isinstance(node.this, exp.Column)
        are_midnights = unit not in ("hour", "minute", "second")
        return Calendar(
            are_dates=False, are_early=unit in _FIRST_OF_MONTH, may_be_null=may_be_null, are_midnights=are_midnights
        )
    named = read_name(node.this) if isinstance(node, exp.Column) else ""
    found = next((column for column in table.columns if column.name == named), None)
    if found is None:
        return Calendar(are_dates=False, are_early=False, may_be_null=True)
    values = found.domain or ()
    is_known = 0 < len(values) <= _MOST_VALUES
    are_early = is_known and all(isinstance(value, date) and value.day <= _LAST_SURE_DAY for value in values)
    are_dates = found.sql_type is SqlType.DATE
    starts = is_known and all(isinstance(value, datetime) and value.time() == time.min for value in values)
    are_midnights = are_dates or starts
    return Calendar(are_dates, are_early, not values and not found.required, are_midnights)
