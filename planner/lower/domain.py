"""Tests that restrict grouping columns to public values, in SQL, as cheap as the values allow."""

from datetime import date, datetime, timedelta
from itertools import pairwise

from planner.catalog.catalog import Column, Derivation, SqlType, Value
from planner.catalog.listed_values import remember_of_list
from planner.lower.row import RowSql

LONGEST_LIST = 1000  # values spelled in the statement; without the list more rows are read, and the same are kept
ORDERED = frozenset({SqlType.INTEGER, SqlType.DATE, SqlType.TIMESTAMP})
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_SPANS = {"week": timedelta(weeks=1), "day": timedelta(days=1), "hour": timedelta(hours=1)}


def write_restriction(row: RowSql, column: Column, values: tuple[Value, ...]) -> str | None:
    """Return SQL for a test that is true for every row whose key is among `values`, and false for NULL.

    It is exact for gapless ranges and for up to `LONGEST_LIST` values. For more values of an ordered type, it tests
    the range of the values. For more values of other types return None: there is no test.
    """
    if not values:
        return "FALSE"
    if is_gapless(column, values):
        return _write_range(row, column, values)
    if len(values) <= LONGEST_LIST:
        return row.write_within(row.write_column(column.name), column, values)
    return _write_range(row, column, values) if column.sql_type in ORDERED else None


def write_domain_test(row: RowSql, expression: str, column: Column, values: tuple[Value, ...]) -> str | None:
    """Return SQL for the test of `write_restriction` on an expression that already holds the key.

    Return None if the SQL would be long.
    """
    constant = row.dialect.spelling.write_constant
    if is_gapless(column, values) or (column.sql_type in ORDERED and len(values) > LONGEST_LIST):
        least, most = min(values), max(values)
        return f"{expression} BETWEEN {constant(least, column=column)} AND {constant(most, column=column)}"
    return row.write_within(expression, column, values) if 0 < len(values) <= LONGEST_LIST else None


def is_gapless(column: Column, values: tuple[Value, ...]) -> bool:
    """Return True if no value that the column can take is missing between the least and the greatest of `values`."""
    if column.sql_type not in ORDERED or not values:
        return False
    return _is_gapless(values, column.derivation.part if isinstance(column.derivation, Derivation) else "")


@remember_of_list
def _is_gapless(values: tuple[Value, ...], part: str) -> bool:
    first, last = values[0], values[-1]
    if isinstance(first, int) and isinstance(last, int) and len(values) > 2:  # most are numbered one after the other
        in_order = last - first + 1 == len(values) and values == tuple(range(first, last + 1))
        if in_order:
            return True
    numbers = [value for value in values if type(value) is int]
    if len(numbers) == len(values):
        return len(set(numbers)) == len(numbers) == max(numbers) - min(numbers) + 1
    ordered = sorted(values)
    return (
        all(_find_next_value(part, a) == b for a, b in pairwise(ordered))
        and _find_next_value(part, ordered[-1]) is not None
    )


def find_next_value(column: Column, value: Value) -> Value | None:
    """Return the next value that the column can take. Return None if it is unknown or beyond the calendar."""
    return _find_next_value(column.derivation.part if isinstance(column.derivation, Derivation) else "", value)


def _find_next_value(part: str, value: Value) -> Value | None:
    try:
        match value:
            case bool() | str():
                return None
            case int():
                return value + 1
            case datetime() if part in _SPANS:
                return value + _SPANS[part]
            case date() if part in _MONTHS:
                month = value.month - 1 + _MONTHS[part]
                return value.replace(year=value.year + month // 12, month=month % 12 + 1)
            case datetime():
                return None
            case date():
                return value + _SPANS["week" if part == "week" else "day"]
            case _:
                return None
    except (ValueError, OverflowError):
        return None


def _write_range(row: RowSql, column: Column, values: tuple[Value, ...]) -> str:
    least, most = min(values), max(values)
    derivation, constant = column.derivation, row.dialect.spelling.write_constant
    if isinstance(derivation, Derivation) and derivation.function in ("date_trunc", "date"):
        # on the stored column: cheaper than on the derived one, and within its calendar
        base = row.table.get_column(derivation.column)
        expression = row.write_column(base.name)
        after = find_next_value(column, most)
        if after is not None:
            first, last = (_convert_moment(value, base) for value in (least, after))
            return f"{expression} >= {constant(first, column=base)} AND {expression} < {constant(last, column=base)}"
    expression = row.write_column(column.name)
    return f"{expression} BETWEEN {constant(least, column=column)} AND {constant(most, column=column)}"


def _convert_moment(value: Value, base: Column) -> Value:
    if base.sql_type is SqlType.TIMESTAMP and isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    if base.sql_type is SqlType.DATE and isinstance(value, datetime):
        return value.date()
    return value
