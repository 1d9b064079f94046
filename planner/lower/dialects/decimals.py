"""Decimals of at most 38 digits, the numerics of DuckDB and Spark."""

from fractions import Fraction
from functools import lru_cache

from planner.lower.dialects.dialect import ExactValues
from planner.lower.dialects.grid import Grid
from planner.values.sql_literals import find_duckdb_numeric


@lru_cache(maxsize=256)
def find_exact_values(declared: str) -> ExactValues:
    """Return the exact values that a column of a declared type can have."""
    precision, scale = find_duckdb_numeric(declared)
    limit = Fraction(10**precision - 1, 10**scale)
    return ExactValues(scale=scale, low=-limit, high=limit)


def count_digits(grid: Grid, scale: int) -> int:
    """Return the number of digits that hold every value within the grid's bounds, with room for a multiplication."""
    return min(len(str(max(grid.largest_whole, 1))) + 1 + scale, 38)


def keep_numeric(expression: str, _: str) -> str:
    """Return the SQL of a numeric unchanged. In these engines every numeric has at most 38 digits."""
    return expression
