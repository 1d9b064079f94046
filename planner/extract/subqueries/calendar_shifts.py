"""Distances between values of a key, as conditions of joins say them: `b.month = a.month - interval '1 month'`.

In a calendar `b = a - interval '1 month'` and `b + interval '1 month' = a` differ at the ends of months. A key whose
values are no later than the 28th, or a distance in days, has no such ends.
"""

from dataclasses import dataclass
from datetime import date

from sqlglot import exp

from planner.catalog.catalog import SqlType, Table
from planner.errors import KeyholeError
from planner.parser.tree import contains_type, read_name, strip_parentheses
from planner.values.constant import ConstantContext, Interval, NotConstant, Number
from planner.values.expressions import fold_constant

_FIRST_OF_MONTH = frozenset(("month", "quarter", "year"))
_LAST_SURE_DAY = 28  # which every month has: a later day would cost some month its exact distance
_CLOCK_UNITS = (("hour", 3_600_000_000), ("minute", 60_000_000), ("second", 1_000_000), ("microsecond", 1))
_MOST_VALUES = 10_000  # of a key, of which each is looked at for every join along it
_NO_PARAMETERS = ConstantContext({}, date.min)


@dataclass(frozen=True, slots=True)
class Shift:
    """A distance in months, days and microseconds, or, of numbers, in whole steps. All have one sign."""

    months: int = 0
    days: int = 0
    microseconds: int = 0
    steps: int = 0

    @property
    def is_none(self) -> bool:
        """Return True for no distance at all."""
        return self == Shift()

    @property
    def is_later(self) -> bool:
        """Return True for a distance towards larger values."""
        return max(self.months, self.days, self.microseconds, self.steps) > 0

    def negate(self) -> "Shift":
        """Return the distance in the other direction."""
        return Shift(-self.months, -self.days, -self.microseconds, -self.steps)

    def add(self, other: "Shift") -> "Shift | None":
        """Return both distances one after the other. Return None if they are in opposite directions."""
        return _make(
            Interval(self.months + other.months, self.days + other.days, self.microseconds + other.microseconds),
            self.steps + other.steps,
        )

    def spell(self, *, of_dates: bool) -> str:
        """Return its length as PostgreSQL reads it behind a plus or minus. Steps `of_dates` are days."""
        if self.steps and not of_dates:
            return str(abs(self.steps))
        parts = [(self.months, "month"), (self.days + self.steps, "day")]
        unit, length = next(one for one in _CLOCK_UNITS if self.microseconds % one[1] == 0)
        parts.append((self.microseconds // length, unit))
        said = " ".join(f"{abs(count)} {unit}{'s' * (abs(count) > 1)}" for count, unit in parts if count)
        return f"interval '{said}'"


@dataclass(frozen=True, slots=True)
class ShiftedColumn:
    """A column, by its qualifier and name, plus a distance."""

    table: str
    name: str
    shift: Shift


@dataclass(frozen=True, slots=True)
class Calendar:
    """Facts about a key's listed values: if they `are_dates`, if all are before the 29th, and if one may be NULL."""

    are_dates: bool
    are_early: bool
    may_be_null: bool

    def can_invert(self, shift: Shift) -> bool:
        """Return True if a value plus the distance is another exactly where this one less the distance is the value."""
        return not shift.months or (self.are_early and not shift.days and not shift.microseconds)


def read_shifted_column(node: exp.Expr) -> ShiftedColumn | None:
    """Return a column to or from which a constant is added or subtracted, as PostgreSQL computes it.

    None for others.
    """
    node = strip_parentheses(node)
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
    """Return a constant as a distance. Return None for anything else."""
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


def _make(value: Interval, steps: int) -> Shift | None:
    parts = (value.months, value.days, value.microseconds)
    if (min(parts) < 0 < max(parts)) or (steps and any(parts)):
        return None
    return Shift(*parts, steps=steps)


def read_calendar(node: exp.Expr, table: Table) -> Calendar:
    """Return what is known of the values of an expression over rows of the table."""
    node = strip_parentheses(node)
    if isinstance(node, exp.Cast) and node.to.this in (exp.DType.DATE, exp.DType.TIMESTAMP):
        are_early = read_calendar(node.this, table).are_early
        return Calendar(node.to.this == exp.DType.DATE, are_early, may_be_null=not isinstance(node.this, exp.Column))
    if isinstance(node, exp.TimestampTrunc):
        are_early = str(node.args["unit"].name).lower() in _FIRST_OF_MONTH
        return Calendar(are_dates=False, are_early=are_early, may_be_null=not isinstance(node.this, exp.Column))
    named = read_name(node.this) if isinstance(node, exp.Column) else ""
    found = next((column for column in table.columns if column.name == named), None)
    if found is None:
        return Calendar(are_dates=False, are_early=False, may_be_null=True)
    values = found.domain or ()
    is_known = 0 < len(values) <= _MOST_VALUES
    are_early = is_known and all(isinstance(value, date) and value.day <= _LAST_SURE_DAY for value in values)
    return Calendar(found.sql_type is SqlType.DATE, are_early, may_be_null=not values and not found.required)
