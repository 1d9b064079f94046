"""A measure's row value: clipped to its declared bounds and rounded to its grid, half up, in integers.

Guarantee: the value lies between `low` and `high` whatever the row holds, is NULL exactly when the column is NULL or
NaN, is the same on every engine, and computing it cannot fail: what is beyond the bounds never reaches arithmetic.

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
from planner.lower.dialects.grid import INT8, Grid, integer_type
from planner.lower.row import RowSql, compare_exactly
from planner.question.products import product_range
from planner.values.sql_literals import decimal, integer


@dataclass(frozen=True, slots=True)
class RowValue:
    """One measure as SQL. A sum of `sql` times `steps` is the sum of integers X, each from `low` to `high`."""

    sql: str
    steps: int
    low: int
    high: int
    kind: str | None = None  # the type that it has; None where that is not known

    def cast(self, dialect: Dialect, kind: str) -> str:
        """Return SQL for the value in that type, if it is a whole number."""
        return self.sql if self.kind == kind else dialect.spelling.cast(self.sql, kind)


def row_value(row: RowSql, column: Column, *, nan_is_zero: bool = False) -> RowValue:
    """Return the clipped and rounded value of a measure. Raise KH203 if bounds or grid are missing or too long.

    Parameters:
        nan_is_zero: whether the value of a NaN is zero rather than NULL; of a stored value, that of a NULL as well.
    """
    if isinstance(column.derivation, Product):
        return _product(row, column.derivation)
    computed = _compute_measure(row.dialect, row.column(column.name), column, " ELSE 0" if nan_is_zero else "")
    stored = row.measures.get(column.name)
    if stored is None:
        return computed
    return replace(computed, sql=f"COALESCE({stored}, 0)" if nan_is_zero else stored, steps=1, kind=None)


def _product(row: RowSql, product: Product) -> RowValue:
    """Return the product of the factors' values, NULL where one of them has none, in a type that no step overflows."""
    values = [row_value(row, row.table.get_column(factor)) for factor in product.columns]
    low, high = product_range([(value.low, value.high) for value in values], product.columns)
    kind = row.dialect.whole_type(prod(max(abs(value.low), abs(value.high), 1) for value in values))
    cast = row.dialect.spelling.cast
    whole = [
        value.cast(row.dialect, kind) if value.steps == 1 else cast(f"({value.sql}) * {integer(value.steps)}", kind)
        for value in values
    ]
    return RowValue(f"({' * '.join(whole)})", 1, low, high, kind)


@lru_cache(maxsize=256)
def _compute_measure(dialect: Dialect, expression: str, column: Column, otherwise: str) -> RowValue:
    """Return the value of a measure, a function of the policy alone: every question on a table asks for the same few.

    Parameters:
        otherwise: what ends the CASE that a NaN falls through; empty for NULL.
    """
    step = 1 if column.grid is None and column.sql_type is SqlType.INTEGER else column.grid
    if column.bounds is None or step is None:
        raise KeyholeError("KH203", f'column "{column.name}" has no declared bounds or grid')
    grid = Grid(Fraction(step), Fraction(column.bounds[0]), Fraction(column.bounds[1]))
    match column.sql_type:
        case SqlType.INTEGER:
            return _integer(dialect, expression, column, grid)
        case SqlType.NUMERIC:
            return _numeric(dialect, expression, column, grid, otherwise)
        case SqlType.DOUBLE:
            return _double(dialect, expression, grid, otherwise)
        case _:
            raise KeyholeError("KH203", f'column "{column.name}" is not a number')


def null_test_sql(row: RowSql, column: Column) -> str:
    """Return SQL for an expression that is NULL exactly where the column is NULL or NaN."""
    if column.name in row.measures:
        return row.measures[column.name]
    if isinstance(column.derivation, Product):
        factors = [
            null_test_sql(row, row.table.get_column(factor)) for factor in dict.fromkeys(column.derivation.columns)
        ]
        return f"CASE WHEN {' AND '.join(f'({factor}) IS NOT NULL' for factor in factors)} THEN 1 END"
    expression = row.column(column.name)
    if column.sql_type is SqlType.DOUBLE:
        return f"NULLIF({expression}, {row.dialect.spelling.nan})"
    nan = row.dialect.numeric_nan
    if column.sql_type is SqlType.NUMERIC and nan is not None:
        return f"NULLIF({expression}, {nan})"
    return expression


def _clip_sql(
    dialect: Dialect,
    x: str,
    column: Column,
    grid: Grid,
    *,
    inside: str,
    unit: Fraction = Fraction(1),
    otherwise: str = "",
) -> str:
    """Return SQL for `inside` where the exact column lies within its bounds, else the bound, in multiples of `unit`.

    DuckDB leaves out a branch that no value of the column can take by the least and greatest that it has.
    """
    above = compare_exactly(dialect, x, column, ">", grid.upper)
    below = compare_exactly(dialect, x, column, "<", grid.lower)
    spelled_low, spelled_high = (_spell_number(value * unit) for value in (grid.low, grid.high))
    nan = dialect.numeric_nan
    if column.sql_type is SqlType.NUMERIC and nan is not None:
        spelled_high = f"CASE WHEN {x} <> {nan} THEN {spelled_high}{otherwise} END"
    return f"CASE WHEN {above} THEN {spelled_high} WHEN {below} THEN {spelled_low} ELSE {inside} END"


def _spell_number(value: Fraction) -> str:
    if value.denominator == 1:
        return integer(value.numerator)
    scale = 1
    while (value * 10**scale).denominator != 1:
        scale += 1
    return decimal(value, scale=scale)


def _integer(dialect: Dialect, x: str, column: Column, grid: Grid) -> RowValue:
    p, q = grid.p, grid.q
    inside = x
    if grid.step != 1:
        # the largest number in the division: it has to fit the type in which the engine divides
        largest = 2 * q * max(abs(ceil(grid.lower)), abs(ceil(grid.upper)))
        largest += p * (2 * max(abs(grid.low), abs(grid.high)) + 2)
        wide = dialect.spelling.cast(x, "bigint" if largest < INT8 else dialect.huge_integer)
        inside = f"{wide} * {q}" if p == 1 else grid.round_doubled(f"{wide} * {2 * q}", dialect.floor_quotient)
        inside = dialect.spelling.cast(inside, grid.whole_type)
    kind = None if grid.step == 1 else grid.whole_type
    return RowValue(_clip_sql(dialect, x, column, grid, inside=inside), 1, grid.low, grid.high, kind)


def _numeric(dialect: Dialect, x: str, column: Column, grid: Grid, otherwise: str) -> RowValue:
    made = dialect.rounded_numeric(x, column, grid)
    unit = Fraction(1, made.steps)
    clipped = _clip_sql(dialect, x, column, grid, inside=made.sql, unit=unit, otherwise=otherwise)
    return RowValue(clipped, made.steps, grid.low, grid.high, grid.whole_type if made.steps == 1 else None)


def _double(dialect: Dialect, expression: str, grid: Grid, otherwise: str) -> RowValue:
    spelling = dialect.spelling
    double = spelling.double
    step, lower, upper = float(grid.step), float(grid.lower), float(grid.upper)
    # the same arithmetic as the engine's, so that rounding is monotone between exactly these two values
    low, high = floor(lower / step + 0.5), floor(upper / step + 0.5)
    x = spelling.cast(expression, spelling.double_type)
    quotient = x if step == 1 else f"{x} / {double(step)}"
    inside = spelling.cast(f"floor({quotient} + {double(0.5)})", integer_type(low, high))
    if step > 1:
        # PostgreSQL fails where a division underflows
        inside = f"CASE WHEN abs({x}) < {double(step / 4)} THEN 0 ELSE {inside} END"
    finite = f"CASE WHEN {x} <> {spelling.nan} THEN {integer(high)}{otherwise} END"
    sql = (
        f"CASE WHEN {x} >= {double(upper)} THEN {finite} "
        f"WHEN {x} <= {double(lower)} THEN {integer(low)} ELSE {inside} END"
    )
    return RowValue(sql, 1, low, high, integer_type(low, high))
