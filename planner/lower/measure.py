"""The value of a measure in a row: clipped to its declared bounds and rounded to its grid, half up, in integers.

Guarantee: the value lies between `low` and `high` whatever the row holds. It is NULL exactly if the column is NULL or
NaN. It is the same on every engine. Computing it cannot fail, because no number beyond the bounds reaches arithmetic.

| symbol | name | meaning |
|---|---|---|
| L, U | `bounds` | declared range, in the user's unit |
| g = p/q | `grid` | step, in lowest terms |
| X | `sql` | `floor(clip(x) / g + 1/2)`, exact for integer and numeric columns, in double precision for doubles |

References: docs/decisions/0002-rewriting.md (clip inside CASE, round explicitly).
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, prod

from planner.catalog.catalog import Column, Product, SqlType
from planner.errors import KeyholeError
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.grid import INT8, Grid, choose_integer_type
from planner.lower.row import RowSql, write_exact_comparison
from planner.question.products import find_product_range
from planner.values.sql_literals import write_decimal, write_integer


@dataclass(frozen=True, slots=True)
class RowValue:
    """The value of a measure in one row, as SQL for a whole number of grid steps, from `low` to `high`.

    The number is `sql` times `steps`. A caller sums `sql` and multiplies once.
    """

    sql: str
    steps: int
    low: int
    high: int
    kind: str | None = None  # the type that it has; None where that is not known

    def cast(self, dialect: Dialect, kind: str) -> str:
        """Return SQL for the value. A whole number is cast to the given integer type."""
        return self.sql if self.kind == kind else dialect.spelling.write_cast(self.sql, kind)


def make_row_value(row: RowSql, column: Column, *, nan_is_zero: bool = False) -> RowValue:
    """Return the clipped and rounded value of a measure. Raise KH203 if bounds or grid are missing or too long.

    Parameters:
        nan_is_zero: True if the value of a NaN is zero instead of NULL. Then a stored value is zero for NULL, too.
    """
    if isinstance(column.derivation, Product):
        return _multiply_values(row, column.derivation)
    computed = _compute_measure(row.dialect, row.write_column(column.name), column, " ELSE 0" if nan_is_zero else "")
    stored = row.measures.get(column.name)
    if stored is None:
        return computed
    return replace(computed, sql=f"COALESCE({stored}, 0)" if nan_is_zero else stored, steps=1, kind=None)


def _multiply_values(row: RowSql, product: Product) -> RowValue:
    """Return the product of the factors' values, NULL if a factor is, in a type in which no step overflows."""
    values = [make_row_value(row, row.table.get_column(factor)) for factor in product.columns]
    low, high = find_product_range([(value.low, value.high) for value in values], product.columns)
    kind = row.dialect.choose_whole_type(prod(max(abs(value.low), abs(value.high), 1) for value in values))
    cast = row.dialect.spelling.write_cast
    whole = [
        value.cast(row.dialect, kind)
        if value.steps == 1
        else cast(f"({value.sql}) * {write_integer(value.steps)}", kind)
        for value in values
    ]
    return RowValue(f"({' * '.join(whole)})", 1, low, high, kind)


@lru_cache(maxsize=256)
def _compute_measure(dialect: Dialect, expression: str, column: Column, otherwise: str) -> RowValue:
    """Return the value of a measure. It depends on the policy alone, so a cache serves all questions on a table.

    Parameters:
        otherwise: the end of the CASE that a NaN reaches. Empty for NULL.
    """
    step = 1 if column.grid is None and column.sql_type is SqlType.INTEGER else column.grid
    if column.bounds is None or step is None:
        raise KeyholeError("KH203", f'column "{column.name}" has no declared bounds or grid')
    grid = Grid(Fraction(step), Fraction(column.bounds[0]), Fraction(column.bounds[1]))
    match column.sql_type:
        case SqlType.INTEGER:
            return _make_integer_value(dialect, expression, column, grid)
        case SqlType.NUMERIC:
            return _make_numeric_value(dialect, expression, column, grid, otherwise)
        case SqlType.DOUBLE:
            return _make_double_value(dialect, expression, grid, otherwise)
        case _:
            raise KeyholeError("KH203", f'column "{column.name}" is not a number')


def write_null_test(row: RowSql, column: Column) -> str:
    """Return SQL for an expression that is NULL exactly if the column is NULL or NaN."""
    if column.name in row.measures:
        return row.measures[column.name]
    if isinstance(column.derivation, Product):
        factors = [
            write_null_test(row, row.table.get_column(factor)) for factor in dict.fromkeys(column.derivation.columns)
        ]
        return f"CASE WHEN {' AND '.join(f'({factor}) IS NOT NULL' for factor in factors)} THEN 1 END"
    expression = row.write_column(column.name)
    if column.sql_type is SqlType.DOUBLE:
        return f"NULLIF({expression}, {row.dialect.spelling.nan})"
    nan = row.dialect.numeric_nan
    if column.sql_type is SqlType.NUMERIC and nan is not None:
        return f"NULLIF({expression}, {nan})"
    return expression


def _write_clip(
    dialect: Dialect,
    x: str,
    column: Column,
    grid: Grid,
    *,
    inside: str,
    unit: Fraction = Fraction(1),
    otherwise: str = "",
) -> str:
    """Return SQL for `inside` if the exact column lies within its bounds, else for the bound, in multiples of `unit`.

    By a column's least and greatest value, DuckDB skips branches that no value can take.
    """
    above = write_exact_comparison(dialect, x, column, ">", grid.upper)
    below = write_exact_comparison(dialect, x, column, "<", grid.lower)
    spelled_low, spelled_high = (_write_number(value * unit) for value in (grid.low, grid.high))
    nan = dialect.numeric_nan
    if column.sql_type is SqlType.NUMERIC and nan is not None:
        spelled_high = f"CASE WHEN {x} <> {nan} THEN {spelled_high}{otherwise} END"
    return f"CASE WHEN {above} THEN {spelled_high} WHEN {below} THEN {spelled_low} ELSE {inside} END"


def _write_number(value: Fraction) -> str:
    if value.denominator == 1:
        return write_integer(value.numerator)
    scale = 1
    while (value * 10**scale).denominator != 1:
        scale += 1
    return write_decimal(value, scale=scale)


def _make_integer_value(dialect: Dialect, x: str, column: Column, grid: Grid) -> RowValue:
    p, q = grid.p, grid.q
    inside = x
    if grid.step != 1:
        # the largest number in the division: it has to fit the type in which the engine divides
        largest = 2 * q * max(abs(ceil(grid.lower)), abs(ceil(grid.upper)))
        largest += p * (2 * max(abs(grid.low), abs(grid.high)) + 2)
        wide = dialect.spelling.write_cast(x, "bigint" if largest < INT8 else dialect.huge_integer)
        inside = f"{wide} * {q}" if p == 1 else grid.round_doubled(f"{wide} * {2 * q}", dialect.divide_down)
        inside = dialect.spelling.write_cast(inside, grid.whole_type)
    kind = None if grid.step == 1 else grid.whole_type
    return RowValue(_write_clip(dialect, x, column, grid, inside=inside), 1, grid.low, grid.high, kind)


def _make_numeric_value(dialect: Dialect, x: str, column: Column, grid: Grid, otherwise: str) -> RowValue:
    made = dialect.round_numeric(x, column, grid)
    unit = Fraction(1, made.steps)
    clipped = _write_clip(dialect, x, column, grid, inside=made.sql, unit=unit, otherwise=otherwise)
    return RowValue(clipped, made.steps, grid.low, grid.high, grid.whole_type if made.steps == 1 else None)


def _make_double_value(dialect: Dialect, expression: str, grid: Grid, otherwise: str) -> RowValue:
    spelling = dialect.spelling
    double = spelling.write_double
    step, lower, upper = float(grid.step), float(grid.lower), float(grid.upper)
    # the same arithmetic as the engine's, so that rounding is monotone between exactly these two values
    low, high = floor(lower / step + 0.5), floor(upper / step + 0.5)
    x = spelling.write_cast(expression, spelling.double_type)
    quotient = x if step == 1 else f"{x} / {double(step)}"
    inside = spelling.write_cast(f"floor({quotient} + {double(0.5)})", choose_integer_type(low, high))
    if step > 1:
        # PostgreSQL fails where a division underflows
        inside = f"CASE WHEN abs({x}) < {double(step / 4)} THEN 0 ELSE {inside} END"
    finite = f"CASE WHEN {x} <> {spelling.nan} THEN {write_integer(high)}{otherwise} END"
    sql = (
        f"CASE WHEN {x} >= {double(upper)} THEN {finite} "
        f"WHEN {x} <= {double(lower)} THEN {write_integer(low)} ELSE {inside} END"
    )
    return RowValue(sql, 1, low, high, choose_integer_type(low, high))
