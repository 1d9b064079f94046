"""The dialect: every difference between engines as one field, read where the SQL is made."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from planner.catalog.catalog import Column
from planner.lower.dialects.grid import INT4, INT8, Grid
from planner.values.spelling import Spelling


@dataclass(frozen=True, slots=True)
class ExactValues:
    """The values an exact column can take: multiples of 10^-scale (None: any) from low to high (None: any)."""

    scale: int | None
    low: Fraction | None
    high: Fraction | None

    def holds(self, value: Fraction) -> bool:
        """Return True if the column can have the value."""
        if self.scale is not None and (value * 10**self.scale).denominator != 1:
            return False
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)


@dataclass(frozen=True, slots=True)
class Rounded:
    """A value in multiples of its grid as SQL: `sql` times `steps` is an integer."""

    sql: str
    steps: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The SQL of one engine, as far as it differs from another's. No expression made here can fail on data."""

    name: str
    """The engine in EXPLAIN, and in what a rollup is called."""

    spelling: Spelling
    """How names, types and constants are written."""

    huge_integer: str
    """The type of whole numbers beyond 64 bits; sums of such numbers are exact in it."""

    byte_order: str
    """Follows a text in ORDER BY so that its bytes decide; empty where they do anyway."""

    text_groups_are_bytes: bool
    """True if GROUP BY of a stored text column, under the collation it has, tells apart what differs in a byte."""

    numeric_nan: str | None
    """NaN as a numeric constant; None where a numeric is always a number."""

    materialized: str
    """Between a step's name and its text, where it is to be computed once and what is asked of it later stays out."""

    materialized_fence: str | None
    """Ends a step that is materialized, where that word alone does not keep later tests out of the step."""

    row_fence: str | None
    """Ends a subquery of rows, so that what is asked of them further out is not asked inside; None where nothing does,
    and questions that need it are refused."""

    without_statistics: Callable[[str], str]
    """A column as it is, of whose values the engine's optimizer knows nothing: it could leave out rows by them."""

    is_faster_on_copies: bool
    """Whether a copy of the rows that count is read faster than a table whose rows need no unit: an index finds few of
    its rows, and its numbers are small."""

    byte_length: str
    """The function that gives the bytes of a text without reading it."""

    enforces_lengths: bool
    """True if a column of type `varchar(n)` holds no longer text."""

    stored_column: Callable[[str, Column], str]
    """The quoted name of a stored column as a value of its declared type; text compares byte by byte."""

    ordered_column: Callable[[str, Column], str]
    """The quoted name of a stored column that is no text, in ORDER BY beside values that are made of it."""

    exact_values: Callable[[str], ExactValues]
    """The values of a declared numeric type."""

    canonical_numeric: Callable[[str, str], str]
    """A numeric expression of a declared type as text that is the same on every engine: without idle zeros."""

    short_numeric: Callable[[str, str], str]
    """A numeric expression of a declared type with a bounded number of digits. To every constant of up to 512 bits it
    compares as before, and so it does to NaN and infinities. Numbers that differ stay different."""

    moment_text: Callable[[str], str]
    """A timestamp expression as text: one for each value, and the same on every engine."""

    floor_quotient: Callable[[str, int], str]
    """A whole expression that is not negative, divided by a positive integer and rounded down, as a whole number."""

    rounded_numeric: Callable[[str, Column, Grid], Rounded]
    """A numeric expression, the value of a column within its bounds, rounded half up to the grid.

    Raises KH203 where the engine's numbers are too short for the column's bounds and decimals.
    """

    keys_at_once: int | None
    """Of how many keys a statement gives the aggregates at most, where a question with more is read by several that
    each find their rows cheaply; None where one statement is read piece by piece."""

    floor_moment: Callable[[str, timedelta, datetime], str]
    """A timestamp of the years 1 to 9999, rounded down to a whole number of steps after a moment."""

    truncate_moment: Callable[[str, str], str]
    """A timestamp of the years 1 to 9999 cut down to its hour, day, week, month, quarter or year, as date or timestamp.
    """

    extract_part: Callable[[str, str], str]
    """A part of a timestamp of the years 1 to 9999 as a number: `year`, `dow` and so on, as PostgreSQL counts them."""

    microseconds: Callable[[str], str]
    """A timestamp of the years 1 to 9999 as microseconds since 1970."""

    moment_at: Callable[[str], str]
    """The timestamp for a number of microseconds since 1970, a bigint of the years 1 to 9999 or NULL."""

    days: Callable[[str], str]
    """A date of the years 1 to 9999 as days since 1970."""

    whole_number: Callable[[str, str, int, int, str], str]
    """A numeric of a declared type as a whole number of 10^-scale, in a type for these; NULL where it has more digits
    before the point than said, or more behind it than `scale`."""

    whole_quotient: Callable[[str, str], str]
    """A whole number that is not negative divided by a positive one or NULL, without its remainder."""

    large_quotient: Callable[[str, str], str]
    """The same of a sum as `total` gives it, times a few thousand, by a count or NULL: the quotient is a bigint."""

    ascii_case: Callable[[str, str], str]
    """`lower` or `upper` of the ASCII letters of a text alone."""

    matches: Callable[[str, str], str]
    """Whether a text has a part of a regular expression that every engine reads alike. `^` is the beginning of the
    text, and `$`, which stands at the end of the expression alone, its end."""

    like: Callable[[str, str], str]
    """SQL for the test that a text matches a collapsed pattern, whose escape is the backslash."""

    total: Callable[[str, int], str]
    """The exact sum of up to 2^32 whole numbers, none larger than that, or of any number whose sum fits 38 digits."""

    pick_digits: Callable[[str, str, int], str]
    """So many digits of a constant text of digits, from a place on, of which the first is 1. Where the place is NULL it
    is NULL, or a text that the dialect's cast to an integer gives NULL for."""

    extreme_double: Callable[[str, str], str]
    """The `min` or `max` over a group of a double as `stored_column` gives it; a NaN is greater than all numbers."""

    generate_rows: Callable[[int], str]
    """So many rows that the engine makes up, as a relation `series` with the whole numbers from 0 as `i`."""

    array: tuple[str, str]
    """Before and behind the elements of an array."""

    def cast_whole(self, expression: str, largest: int) -> str:
        """Return a whole number in a type for numbers of that size."""
        return self.spelling.cast(expression, self.whole_type(largest))

    def whole_type(self, largest: int) -> str:
        """Return the narrowest type of whole numbers of that size."""
        return "integer" if largest < INT4 else "bigint" if largest < INT8 else self.huge_integer
