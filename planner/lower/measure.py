"""A measure's row value: clipped to its declared bounds and rounded to its grid, half up, in integers.

Guarantee: the value lies between `low` and `high` whatever the row holds, is NULL exactly when the column is NULL or
NaN, is the same on every engine, and computing it cannot fail: what is beyond the bounds never reaches arithmetic.

| symbol | name | meaning |
|---|---|---|
| L, U | `bounds` | declared range, in the user's unit |
| g = p/q | `grid` | step, in lowest terms |
| X | `sql` | `floor(clip(x) / g + 1/2)`, exact for integer and numeric columns, in double precision for doubles |

References: MATHS M2 (fixed point), DESIGN 7 (clip inside CASE, round explicitly).
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

from planner.catalog.model import Column, SqlType
from planner.errors import KeyholeError
from planner.lower.row import RowSql
from planner.values.sql_literals import decimal, double, duckdb_numeric, integer, numeric_modifier

_INT4 = 2**31
_INT8 = 2**63
_DUCKDB_SHORT = 10**18
_DUCKDB_DECIMAL = 10**38
_DUCKDB_HUGEINT = 2**127


@dataclass(frozen=True, slots=True)
class RowValue:
    """One measure as SQL. A sum of `sql` times `steps` is the sum of integers X, each from `low` to `high`."""

    sql: str
    steps: int
    low: int
    high: int


def row_value(row: RowSql, column: Column) -> RowValue:
    """The clipped and rounded value of a measure. Raises KH203 where bounds or grid are missing or too long."""
    computed = _computed(row, column)
    stored = row.measures.get(column.name)
    return computed if stored is None else replace(computed, sql=stored, steps=1)


def _computed(row: RowSql, column: Column) -> RowValue:
    step = 1 if column.grid is None and column.sql_type is SqlType.INTEGER else column.grid
    if column.bounds is None or step is None:
        raise KeyholeError("KH203", f'column "{column.name}" has no declared bounds or grid')
    bounds = Fraction(column.bounds[0]), Fraction(column.bounds[1])
    grid = Fraction(step)
    match column.sql_type:
        case SqlType.INTEGER:
            return _integer(row, column, bounds, grid)
        case SqlType.NUMERIC if row.dialect == "postgres":
            return _postgres_numeric(row, column, bounds, grid)
        case SqlType.NUMERIC:
            return _duckdb_decimal(row, column, bounds, grid)
        case SqlType.DOUBLE:
            return _double(row, column, bounds, grid)
        case _:
            raise KeyholeError("KH203", f'column "{column.name}" is not a number')


def counted(row: RowSql, column: Column) -> str:
    """An expression that is NULL exactly where the column is NULL or NaN."""
    if column.name in row.measures:
        return row.measures[column.name]
    expression = row.column(column.name)
    if column.sql_type is SqlType.DOUBLE:
        return f"NULLIF({expression}, CAST('NaN' AS double precision))"
    if column.sql_type is SqlType.NUMERIC and row.dialect == "postgres":
        return f"NULLIF({expression}, CAST('NaN' AS numeric))"
    return expression


def _half_up(value: Fraction) -> int:
    return floor(value + Fraction(1, 2))


def _clipped(
    row: RowSql, column: Column, bounds: tuple[Fraction, Fraction], grid: Fraction, *, inside: str, unit: Fraction
) -> str:
    """`inside` where the exact column rounds to within its bounds, else the bound reached, in multiples of `unit`."""
    expression = row.column(column.name)
    low, high = _half_up(bounds[0] / grid), _half_up(bounds[1] / grid)
    above = row.compare_exactly(expression, column, ">=", (high - Fraction(1, 2)) * grid)
    below = row.compare_exactly(expression, column, "<", (low + Fraction(1, 2)) * grid)
    spelled_low, spelled_high = (_spelled(value * unit) for value in (low, high))
    if column.sql_type is SqlType.NUMERIC and row.dialect == "postgres":
        spelled_high = f"CASE WHEN {expression} <> CAST('NaN' AS numeric) THEN {spelled_high} END"
    return f"CASE WHEN {above} THEN {spelled_high} WHEN {below} THEN {spelled_low} ELSE {inside} END"


def _spelled(value: Fraction) -> str:
    if value.denominator == 1:
        return integer(value.numerator)
    scale = 1
    while (value * 10**scale).denominator != 1:
        scale += 1
    return decimal(value, scale=scale)


def _stored_integer(low: int, high: int) -> str:
    return "integer" if max(abs(low), abs(high)) < _INT4 else "bigint"


def _integer(row: RowSql, column: Column, bounds: tuple[Fraction, Fraction], grid: Fraction) -> RowValue:
    p, q = grid.numerator, grid.denominator
    low, high = _half_up(bounds[0] / grid), _half_up(bounds[1] / grid)
    x = row.column(column.name)
    if grid == 1:
        inside = x
    else:
        # the largest number that the division sees, so that it fits the type it is done in
        largest = 2 * q * max(abs(ceil(bounds[0])), abs(ceil(bounds[1]))) + p * (2 * max(abs(low), abs(high)) + 2)
        wide = "bigint" if largest < _INT8 else _huge(row)
        inside = f"CAST({x} AS {wide}) * {q}" if p == 1 else _divided(row, f"CAST({x} AS {wide}) * {2 * q}", p, low)
        inside = f"CAST({inside} AS {_stored_integer(low, high)})"
    return RowValue(_clipped(row, column, bounds, grid, inside=inside, unit=Fraction(1)), 1, low, high)


def _huge(row: RowSql) -> str:
    return "hugeint" if row.dialect == "duckdb" else "numeric"


def _divided(row: RowSql, doubled: str, p: int, low: int) -> str:
    """`floor((doubled + p) / 2p)` where that is at least `low`: shifted so that the dividend is never negative."""
    dividend = f"{doubled} + {integer(p - 2 * p * low)}"
    quotient = f"({dividend}) // {2 * p}" if row.dialect == "duckdb" else f"div(CAST({dividend} AS numeric), {2 * p})"
    return f"{quotient} + {integer(low)}"


def _postgres_numeric(row: RowSql, column: Column, bounds: tuple[Fraction, Fraction], grid: Fraction) -> RowValue:
    p, q = grid.numerator, grid.denominator
    low, high = _half_up(bounds[0] / grid), _half_up(bounds[1] / grid)
    x = row.column(column.name)
    modifier = numeric_modifier(column.declared)
    if p == 1 and modifier is not None and q % 10 ** max(0, modifier[1]) == 0:
        # every value is a multiple of the grid already: sum as numeric, in the user's unit
        return RowValue(_clipped(row, column, bounds, grid, inside=x, unit=grid), q, low, high)
    inside = f"floor({x} * {q} + 0.5)" if p == 1 else _divided(row, f"floor({x} * {2 * q})", p, low)
    inside = f"CAST({inside} AS {_stored_integer(low, high)})"
    return RowValue(_clipped(row, column, bounds, grid, inside=inside, unit=Fraction(1)), 1, low, high)


def _duckdb_decimal(row: RowSql, column: Column, bounds: tuple[Fraction, Fraction], grid: Fraction) -> RowValue:
    p, q = grid.numerator, grid.denominator
    low, high = _half_up(bounds[0] / grid), _half_up(bounds[1] / grid)
    scale = duckdb_numeric(column.declared)[1]
    largest = 2 * q * (max(abs(floor(bounds[0])), abs(ceil(bounds[1]))) + 1)
    if largest * 10**scale >= _DUCKDB_DECIMAL or 2 * largest + 2 * p >= _DUCKDB_HUGEINT:
        raise KeyholeError(
            "KH203",
            f'the bounds of "{column.name}" have too many digits beside the {scale} decimals of {column.declared}',
            detail="DuckDB computes with 38 digits, and on larger numbers the statement would fail.",
            hint="Have the owner declare narrower bounds, or expose the column with fewer decimals in a view.",
        )
    # within the bounds fewer digits suffice, which leaves room for the multiplication
    digits = len(str(max(abs(floor(bounds[0])), abs(ceil(bounds[1])), 1))) + 1 + scale
    if largest * 10**scale >= _DUCKDB_SHORT:
        digits = max(digits, 19)  # a product of two decimals of up to 18 digits may have no more, whatever it needs
    x = f"TRY_CAST({row.column(column.name)} AS decimal({min(digits, 38)}, {scale}))"
    doubled = f"CAST(floor({x} * {2 * q}) AS hugeint)"
    inside = f"CAST({x} * {q} AS hugeint)" if p == 1 and q % 10**scale == 0 else _divided(row, doubled, p, low)
    inside = f"CAST({inside} AS {_stored_integer(low, high)})"
    return RowValue(_clipped(row, column, bounds, grid, inside=inside, unit=Fraction(1)), 1, low, high)


def _double(row: RowSql, column: Column, bounds: tuple[Fraction, Fraction], grid: Fraction) -> RowValue:
    step = float(grid)
    lower, upper = float(bounds[0]), float(bounds[1])
    # the same arithmetic as the engine's, so that rounding is monotone between exactly these two values
    low, high = floor(lower / step + 0.5), floor(upper / step + 0.5)
    x = f"CAST({row.column(column.name)} AS double precision)"
    quotient = x if step == 1 else f"{x} / {double(step)}"
    inside = f"CAST(floor({quotient} + {double(0.5)}) AS {_stored_integer(low, high)})"
    if step > 1:
        # PostgreSQL fails where a division underflows
        inside = f"CASE WHEN abs({x}) < {double(step / 4)} THEN 0 ELSE {inside} END"
    finite = f"CASE WHEN {x} <> CAST('NaN' AS double precision) THEN {integer(high)} END"
    sql = (
        f"CASE WHEN {x} >= {double(upper)} THEN {finite} "
        f"WHEN {x} <= {double(lower)} THEN {integer(low)} ELSE {inside} END"
    )
    return RowValue(sql, 1, low, high)
