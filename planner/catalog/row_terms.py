"""Expressions of one row's columns that a question computes.

They never fail, have a type, and a limit known in advance.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import TypeAlias

Ends: TypeAlias = tuple[Fraction | None, Fraction | None]
"""The least and the greatest value of a term, in its steps; None without an end."""


CALENDAR_FUNCTIONS = frozenset(("part", "start", "moved"))
"""Functions of a time that follow the calendar: a part, the beginning of a unit, and some months later."""


ROUNDED_DOUBLES = frozenset(("round double", "trunc double"))
"""Functions of a double that was made a numeric."""
_CHARACTERS = 12  # that a regular expression reads in the time of a step
_DIGIT_STEPS = 16  # that finding a double's first digits takes
_AGE_STEPS = 20  # that each of the two times of an age takes


class TermKind(StrEnum):
    """The kind of value that an expression of a row has. Times and durations are whole days or microseconds.

    A month of an age has 30 days, as in PostgreSQL's comparison of intervals.
    """

    WHOLE = "integer"
    EXACT = "numeric"
    FLOATING = "double precision"
    DAY = "date"
    MOMENT = "timestamp"
    CLOCK = "time"
    LENGTH = "interval"
    AGE = "interval of months"
    TEXT = "text"
    TRUTH = "boolean"


@dataclass(frozen=True, slots=True)
class RowTerm:
    """An expression over the columns of one row. It has a value or NULL, and never fails.

    `function` is one of these: `column`, with the column's name as `value`; `stored`, a column that is compared as it
    is; `part`, `start` or `moved`, a part, a beginning or a shift by months of a column named by `value`, or of a
    computed moment, the second of `arguments`; `constant`; or a function of `arguments`. The functions `same` and
    `rest` return their first argument; that of `rest` is known to be at least 0 and below the limit.

    Exact kinds are whole numbers of 10^-scale, and none is larger than `limit`. The `limit` of a text is its greatest
    number of characters. For a double, neither it nor its inverse is larger than 10^limit unless it is 0.
    """

    function: str
    kind: TermKind
    arguments: tuple["RowTerm", ...] = ()
    value: str | int | float | bool = ""
    scale: int = 0
    limit: int = 0

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the expression reads."""
        if self.reads_stored:
            return frozenset((str(self.value),))
        return frozenset().union(*(one.columns for one in self.arguments))

    @property
    def reads_stored(self) -> bool:
        """Return True if `value` is the name of a column."""
        stored = self.function in ("column", "stored")
        return stored or (self.function in CALENDAR_FUNCTIONS and len(self.arguments) == 1)

    @property
    def size(self) -> int:
        """Return the number of computing steps of the term.

        The SQL of some functions repeats an argument, and each copy counts.
        """
        if self.function in ("age", "months"):
            return 1 + _AGE_STEPS * sum(one.size for one in self.arguments)
        if self.function in ("number", "matches"):
            return 1 + self.arguments[0].size + self.arguments[0].limit // _CHARACTERS
        if self.function in ROUNDED_DOUBLES:
            return 1 + _DIGIT_STEPS * self.arguments[0].size
        several = ("quotient", "remainder", "round", "trunc", "= by", "< by")
        by = self.function.endswith(" of")  # of two columns
        of_calendar = self.function in CALENDAR_FUNCTIONS and len(self.arguments) > 1
        times = 8 if self.function == "nearest" else 4 if of_calendar else 3 if self.function in several or by else 1
        return 1 + times * sum(one.size for one in self.arguments)


@dataclass(frozen=True, slots=True)
class Computed:
    """A computed value of a row: an expression of its columns that is compared or added up like a column.

    `ends` are its public least and greatest value, counted in its steps. `clipped` has True for each end that is a
    chosen clip. `unbounded_columns` are the columns about which too little is known.
    """

    term: RowTerm
    ends: Ends = field(default=(None, None), compare=False)
    clipped: tuple[bool, bool] = field(default=(False, False), compare=False)
    unbounded_columns: tuple[str, ...] = field(default=(), compare=False)
