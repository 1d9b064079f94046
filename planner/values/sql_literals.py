"""Names, numbers and texts as SQL that DuckDB and PostgreSQL read alike, and the ranges of declared number types."""

import re
from fractions import Fraction
from functools import lru_cache

from planner.errors import KeyholeError

_MODIFIER = re.compile(r"\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\)")
_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")
_DUCKDB_DIGITS = 38  # the most that its decimals have
_INTEGER_BITS = {"smallint": 15, "int2": 15, "integer": 31, "int": 31, "int4": 31}


def quote_name(name: str) -> str:
    """Return the name as a quoted SQL identifier. Raise KH201 if it has a character that no name can have."""
    if "\x00" in name:
        raise KeyholeError("KH201", "a column name contains a NUL character")
    return '"' + name.replace('"', '""') + '"'


def quote_text(value: str) -> str:
    """Return an SQL text constant. Raise KH212 for NUL and unpaired surrogates, which PostgreSQL's text cannot hold."""
    if _UNWRITABLE.search(value):
        raise KeyholeError("KH212", "a text constant contains a character that SQL text cannot hold")
    quoted = value.replace("'", "''")
    if "\n" in value:  # statements are indented line by line, and that must not reach into a constant
        return "E'" + quoted.replace("\\", "\\\\").replace("\n", "\\n") + "'"
    return f"'{quoted}'"


def write_integer(value: int) -> str:
    """Return an SQL integer constant, in parentheses if it is negative."""
    return str(value) if value >= 0 else f"({value})"


def write_decimal(value: Fraction, *, scale: int) -> str:
    """Return a terminating decimal as an exact SQL numeric constant with `scale` places, which must be enough."""
    steps = value * 10**scale
    if steps.denominator != 1:
        raise ValueError("the constant has more decimal places than its type")
    digits = str(abs(steps.numerator)).rjust(scale + 1, "0")
    body = f"{digits[:-scale]}.{digits[-scale:]}" if scale > 0 else digits
    return body if steps >= 0 else f"(-{body})"


def read_numeric_modifier(declared: str) -> tuple[int, int] | None:
    """Return precision and scale of `numeric(p, s)`, None for a numeric without them."""
    found = _MODIFIER.search(declared)
    return None if found is None else (int(found[1]), int(found[2] or 0))


def find_integer_limit(declared: str) -> int:
    """Return the largest value of a declared integer type. The least is its negative minus one."""
    bits = _INTEGER_BITS.get(declared.strip().lower(), 63)
    return (1 << bits) - 1


@lru_cache(maxsize=256)
def find_duckdb_numeric(declared: str) -> tuple[int, int]:
    """Return precision and scale of the DuckDB decimal for a declared numeric type (at most 38 digits)."""
    precision, scale = read_numeric_modifier(declared) or (_DUCKDB_DIGITS, 10)
    scale = min(max(scale, 0), _DUCKDB_DIGITS)
    return min(max(precision, scale, 1), _DUCKDB_DIGITS), scale
