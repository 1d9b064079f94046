"""How an engine spells names, types and constants: what differs is a field, the rest is one text for all."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from planner.catalog.catalog import Column, SqlType, Value
from planner.errors import KeyholeError
from planner.values.sql_literals import decimal, duckdb_numeric, identifier, integer, integer_limit, text

_MICROSECOND = timedelta(microseconds=1)
_LAST = datetime(9999, 12, 31, 23, 59, 59, 999999)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """The words of one engine. Every text it makes is one token sequence, whatever name or value it is made of."""

    identifier: Callable[[str], str]
    """The name, quoted. Raises KH201 on a character that no name can hold."""

    text: Callable[[str], str]
    """A text constant. Raises KH212 on what SQL text cannot hold: NUL and unpaired surrogates."""

    cast_function: str
    """CAST, or the form of it that gives NULL, where an engine may compute what a CASE would have spared."""

    text_type: str
    double_type: str

    timestamp_type: str
    """The type of a moment without a time zone, which also stands before such a constant."""

    def cast(self, expression: str, kind: str) -> str:
        """Return the expression as a value of that type, which it fits."""
        return f"{self.cast_function}({expression} AS {kind})"

    def double(self, value: float) -> str:
        """Return a double constant, spelled so that all engines read the same bits."""
        return self.cast(f"'{value!r}'", self.double_type)

    @property
    def nan(self) -> str:
        """Not a number, as a double."""
        return self.cast("'NaN'", self.double_type)

    def timestamp(self, value: datetime) -> str:
        """Return a timestamp constant."""
        return f"{self.timestamp_type.upper()} '{value.isoformat(sep=' ')}'"

    def as_moment(self, expression: str) -> str:
        """Return a date or timestamp as a timestamp."""
        return self.cast(expression, self.timestamp_type)

    def interval(self, length: timedelta) -> str:
        """Return a length of time as a constant: a number of microseconds, and no days or months."""
        return f"INTERVAL '{length // _MICROSECOND} microseconds'"

    def years(self, kind: SqlType) -> str:
        """Return the SQL for `least AND greatest` value with which times are computed: the years 1 to 9999."""
        match kind:
            case SqlType.DATE:
                return f"DATE '{date.min.isoformat()}' AND DATE '{_LAST.date().isoformat()}'"
            case SqlType.TIMESTAMP:
                return f"{self.timestamp(datetime.min)} AND {self.timestamp(_LAST)}"
            case _:
                raise KeyholeError("KH900", "years of what is neither a date nor a timestamp")

    def constant(self, value: Value, *, column: Column) -> str:
        """Return a constant of a column's type; exact columns need `write_exact_comparison` instead."""
        if column.sql_type is SqlType.DOUBLE and isinstance(value, int | Decimal):
            return self.double(_nearest_double(value))
        if column.sql_type is SqlType.UUID:
            return self.cast(self.text(str(value)), "uuid")
        match value:
            case bool():
                return "TRUE" if value else "FALSE"
            case int():
                return integer(value)
            case Decimal():
                return decimal(Fraction(value), scale=max(0, -_exponent(value)))
            case datetime():
                return self.timestamp(value)
            case date():
                return f"DATE '{value.isoformat()}'"
            case str():
                return self.text(value)

    def type_name(self, column: Column) -> str:
        """Return a column's type, wide enough for the declared one."""
        match column.sql_type:
            case SqlType.TEXT:
                return self.text_type
            case SqlType.DOUBLE:
                return self.double_type
            case SqlType.TIMESTAMP:
                return self.timestamp_type
            case SqlType.INTEGER:
                return {15: "smallint", 31: "integer", 63: "bigint"}[integer_limit(column.declared).bit_length()]
            case SqlType.NUMERIC:
                precision, scale = duckdb_numeric(column.declared)
                return f"decimal({precision}, {scale})"
            case _:
                return column.sql_type.value


def _nearest_double(value: int | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise KeyholeError("KH212", "a numeric constant is not finite")
    return exponent


STANDARD = Spelling(
    identifier=identifier,
    text=text,
    cast_function="CAST",
    text_type="text",
    double_type="double precision",
    timestamp_type="timestamp",
)
"""The SQL that PostgreSQL and DuckDB read alike."""
