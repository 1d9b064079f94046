"""The spelling of names, types and constants in an engine.

Differences are fields; the rest is one text for all engines.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from planner.catalog.catalog import Column, SqlType, Value
from planner.errors import KeyholeError
from planner.values.sql_literals import (
    find_duckdb_numeric,
    find_integer_limit,
    quote_name,
    quote_text,
    write_decimal,
    write_integer,
)

_MICROSECOND = timedelta(microseconds=1)
_LAST = datetime(9999, 12, 31, 23, 59, 59, 999999)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """The SQL spelling of one engine.

    Every text that it writes is one token sequence, whatever name or value it contains.
    """

    quote_identifier: Callable[[str], str]
    """The name, quoted. Raises KH201 on a character that no name can hold."""

    quote_text: Callable[[str], str]
    """A text constant. Raises KH212 on what SQL text cannot hold: NUL and unpaired surrogates."""

    cast_function: str
    """CAST, or the form of it that gives NULL, where an engine may compute what a CASE would have spared."""

    text_type: str
    double_type: str

    timestamp_type: str
    """The type of a moment without a time zone, which also stands before such a constant."""

    def write_cast(self, expression: str, kind: str) -> str:
        """Return the SQL of an expression cast to a type into which its value fits."""
        return f"{self.cast_function}({expression} AS {kind})"

    def write_double(self, value: float) -> str:
        """Return a double constant as SQL that all engines read as exactly the same number."""
        return self.write_cast(f"'{value!r}'", self.double_type)

    @property
    def nan(self) -> str:
        """The SQL of NaN as a double."""
        return self.write_cast("'NaN'", self.double_type)

    def write_timestamp(self, value: datetime) -> str:
        """Return a timestamp as an SQL constant."""
        return f"{self.timestamp_type.upper()} '{value.isoformat(sep=' ')}'"

    def convert_to_timestamp(self, expression: str) -> str:
        """Return the SQL that converts a date or timestamp to a timestamp."""
        return self.write_cast(expression, self.timestamp_type)

    def write_interval(self, length: timedelta) -> str:
        """Return a duration as an SQL constant in microseconds, without days or months."""
        return f"INTERVAL '{length // _MICROSECOND} microseconds'"

    def write_years(self, kind: SqlType) -> str:
        """Return the SQL for the range of supported times, `least AND greatest`: the years 1 to 9999."""
        match kind:
            case SqlType.DATE:
                return f"DATE '{date.min.isoformat()}' AND DATE '{_LAST.date().isoformat()}'"
            case SqlType.TIMESTAMP:
                return f"{self.write_timestamp(datetime.min)} AND {self.write_timestamp(_LAST)}"
            case _:
                raise KeyholeError("KH900", "only dates and timestamps have years")

    def write_constant(self, value: Value, *, column: Column) -> str:
        """Return an SQL constant of a column's type. Exact columns need `write_exact_comparison`."""
        if column.sql_type is SqlType.DOUBLE and isinstance(value, int | Decimal):
            return self.write_double(_round_to_double(value))
        if column.sql_type is SqlType.UUID:
            return self.write_cast(self.quote_text(str(value)), "uuid")
        match value:
            case bool():
                return "TRUE" if value else "FALSE"
            case int():
                return write_integer(value)
            case Decimal():
                return write_decimal(Fraction(value), scale=max(0, -_find_exponent(value)))
            case datetime():
                return self.write_timestamp(value)
            case date():
                return f"DATE '{value.isoformat()}'"
            case str():
                return self.quote_text(value)

    def write_type(self, column: Column) -> str:
        """Return the SQL name of a column's type. It is as wide as the declared type, or wider."""
        match column.sql_type:
            case SqlType.TEXT:
                return self.text_type
            case SqlType.DOUBLE:
                return self.double_type
            case SqlType.TIMESTAMP:
                return self.timestamp_type
            case SqlType.INTEGER:
                return {15: "smallint", 31: "integer", 63: "bigint"}[find_integer_limit(column.declared).bit_length()]
            case SqlType.NUMERIC:
                precision, scale = find_duckdb_numeric(column.declared)
                return f"decimal({precision}, {scale})"
            case _:
                return column.sql_type.value


def _round_to_double(value: int | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _find_exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise KeyholeError("KH212", "a numeric constant is not finite")
    return exponent


STANDARD = Spelling(
    quote_identifier=quote_name,
    quote_text=quote_text,
    cast_function="CAST",
    text_type="text",
    double_type="double precision",
    timestamp_type="timestamp",
)
"""The SQL that PostgreSQL and DuckDB read alike."""
