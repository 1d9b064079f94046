"""The dialect: every difference between engines as one field, read by the code that writes SQL."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from planner.catalog.catalog import Column
from planner.lower.dialects.grid import INT4, INT8, Grid
from planner.values.spelling import Spelling


@dataclass(frozen=True, slots=True)
class ExactValues:
    """The values of an exact column: multiples of 10^-scale (None: any number) from low to high (None: no limit)."""

    scale: int | None
    low: Fraction | None
    high: Fraction | None

    def holds(self, value: Fraction) -> bool:
        """Return True if the value is one that the column can have."""
        if self.scale is not None and (value * 10**self.scale).denominator != 1:
            return False
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)


@dataclass(frozen=True, slots=True)
class RoundedSql:
    """A rounded value as SQL: `sql` times `steps` is the value as a whole number of grid steps."""

    sql: str
    steps: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The differences between one engine's SQL and that of the others. No expression made here can fail on data."""

    name: str
    """The engine's name in EXPLAIN, and in the digest that names a rollup."""

    spelling: Spelling
    """The spelling of names, types and constants."""

    huge_integer: str
    """The type of whole numbers beyond 64 bits. Sums of these are exact in it."""

    byte_order: str
    """The suffix of a text in ORDER BY that orders it by bytes. Empty if the engine does so anyway."""

    text_groups_are_bytes: bool
    """True if GROUP BY of a stored text column separates texts that differ in a byte, whatever its collation."""

    numeric_nan: str | None
    """NaN as a numeric constant. None if a numeric is always a number."""

    materialized: str
    """The words between a step's name and its text that make the engine compute the step once, without later tests."""

    materialized_fence: str | None
    """The end of a materialized step that keeps later tests out of it. None if the word alone does so."""

    row_fence: str | None
    """The end of a subquery of rows that keeps outer tests out of it. None if the engine has none. Questions that need
    it are refused then."""

    hide_statistics: Callable[[str], str]
    """Return a column as an expression without statistics, by which the engine's optimizer could skip rows."""

    is_faster_on_copies: bool
    """True if a copy of the rows that count is read faster than a table whose rows need no unit. The copy has an index
    and small numbers."""

    byte_length: str
    """The SQL function that returns the number of bytes of a text without reading it."""

    enforces_lengths: bool
    """True if a column of type `varchar(n)` holds no longer text."""

    read_stored_column: Callable[[str, Column], str]
    """Return SQL for a stored column, by its quoted name, in its declared type. Text compares by bytes."""

    read_ordered_column: Callable[[str, Column], str]
    """Return SQL for a stored column that is no text in ORDER BY, beside values that are computed from it."""

    find_exact_values: Callable[[str], ExactValues]
    """Return the values of a declared numeric type."""

    write_canonical_numeric: Callable[[str, str], str]
    """Return SQL for a numeric of a declared type as text, without trailing zeros: the same on every engine."""

    shorten_numeric: Callable[[str, str], str]
    """Return SQL for a numeric of a declared type, cut to a bounded number of digits. It compares as before with every
    constant of up to 512 bits, NaN and infinities. Numbers that differ stay different."""

    write_moment: Callable[[str], str]
    """Return SQL for a timestamp as text: another text for each value, and the same on every engine."""

    divide_down: Callable[[str, int], str]
    """Return SQL for a whole number that is not negative, divided by a positive integer and rounded down."""

    round_numeric: Callable[[str, Column, Grid], RoundedSql]
    """Return SQL for a column's numeric value within its bounds, rounded half up to the grid.

    Raises KH203 if the engine's numbers are too short for the column's bounds and decimals.
    """

    keys_at_once: int | None
    """The most keys of one statement. A question with more is split into statements that each find their rows cheaply.
    None if one statement's answer is read piece by piece."""

    floor_moment: Callable[[str, timedelta, datetime], str]
    """Return SQL for a timestamp of the years 1 to 9999, rounded down to a whole number of steps after a moment."""

    truncate_moment: Callable[[str, str], str]
    """Return SQL for the hour, day, week, month, quarter or year of a timestamp of the years 1 to 9999.
    It is a date or a timestamp.
    """

    extract_part: Callable[[str, str], str]
    """Return SQL for a part of a timestamp of the years 1 to 9999, such as `dow`, numbered as in PostgreSQL."""

    count_microseconds: Callable[[str], str]
    """Return SQL for a timestamp of the years 1 to 9999 as microseconds since 1970."""

    make_moment: Callable[[str], str]
    """Return SQL for the timestamp of a number of microseconds since 1970, a bigint of the years 1 to 9999 or NULL."""

    count_days: Callable[[str], str]
    """Return SQL for a date of the years 1 to 9999 as days since 1970."""

    convert_to_whole: Callable[[str, str, int, int, str], str]
    """Return SQL for a numeric of a declared type as a whole number of 10^-scale, in a given type. It is NULL if it has
    more digits before the point than given, or more behind it than `scale`."""

    divide_whole: Callable[[str, str], str]
    """Return SQL for a whole number that is not negative, divided by a positive one or NULL, without remainder."""

    divide_large: Callable[[str, str], str]
    """Return SQL for such a quotient of a sum by `sum_whole`, times a few thousand, by a count or NULL, as bigint."""

    change_ascii_case: Callable[[str, str], str]
    """Return SQL for `lower` or `upper` of a text, applied to its ASCII letters alone."""

    match_regex: Callable[[str, str], str]
    """Return SQL for the test that a text contains a match of a regular expression that every engine reads alike. `^`
    is the beginning of the text. `$` may only end the expression and is the end of the text."""

    match_pattern: Callable[[str, str], str]
    """Return SQL for the test that a text matches a collapsed LIKE pattern, whose escape is the backslash."""

    sum_whole: Callable[[str, int], str]
    """Return SQL for the exact sum of whole numbers of up to a given size: of up to 2^32 of them, or of any number of
    them whose sum has up to 38 digits."""

    pick_digits: Callable[[str, str, int], str]
    """Return SQL for some digits of a constant text of digits, from a place on, counted from 1. If the place is NULL,
    it is NULL, or a text that becomes NULL when the dialect casts it to an integer."""

    find_extreme_double: Callable[[str, str], str]
    """Return SQL for the `min` or `max` of a double from `read_stored_column`. A NaN is greater than all numbers."""

    generate_rows: Callable[[int], str]
    """Return SQL for a relation `series` of that many generated rows, with the whole numbers from 0 as `i`."""

    array: tuple[str, str]
    """The texts before and behind the elements of an array."""

    def cast_whole(self, expression: str, largest: int) -> str:
        """Return SQL that casts a whole number to an integer type for numbers up to `largest`."""
        return self.spelling.write_cast(expression, self.choose_whole_type(largest))

    def choose_whole_type(self, largest: int) -> str:
        """Return the narrowest integer type that holds numbers up to `largest`."""
        return "integer" if largest < INT4 else "bigint" if largest < INT8 else self.huge_integer
