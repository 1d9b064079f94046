"""Sail, which reads Spark SQL.

It compares doubles by their bits: a NaN with a sign is less than all numbers, and a zero with a sign differs from zero.
Its `min` and `max` over groups take a NaN for the extreme or not, by the order of rows, and the greatest finite double
for an infinity. If its start is NULL, `substring` returns the text from the beginning.

It cannot plan a window whose PARTITION BY contains the same cast as its ORDER BY. Such rows are ordered by the stored
column, which has that type already unless it is a double. Nor can it plan a partition by a column after a value that is
computed from it, so stored columns come first (planner/lower/bounded_scan.py).
"""

from dataclasses import replace
from math import inf

from planner.catalog.catalog import Column, SqlType
from planner.lower.dialects.spark import SPARK, SPELLING
from planner.lower.dialects.standard import pick_digits


def _read_stored_column(name: str, column: Column) -> str:
    plain = SPARK.read_stored_column(name, column)
    if column.sql_type is not SqlType.DOUBLE:
        return plain
    zero = SPELLING.write_double(0.0)
    return f"CASE WHEN isnan({plain}) THEN {SPELLING.nan} WHEN {plain} = {zero} THEN {zero} ELSE {plain} END"


def _read_ordered_column(name: str, column: Column) -> str:
    return _read_stored_column(name, column) if column.sql_type is SqlType.DOUBLE else name


def _find_extreme_double(function: str, expression: str) -> str:
    infinity, minus_infinity = SPELLING.write_double(inf), SPELLING.write_double(-inf)
    is_finite = f"{expression} > {minus_infinity} AND {expression} < {infinity}"
    falling = [
        (f"isnan({expression})", SPELLING.nan),
        (f"{expression} = {infinity}", infinity),
        (is_finite, f"{function}(CASE WHEN {is_finite} THEN {expression} END)"),
        (f"{expression} = {minus_infinity}", minus_infinity),
    ]
    found = falling if function == "max" else falling[::-1]
    return f"CASE {' '.join(f'WHEN count(CASE WHEN {test} THEN 1 END) > 0 THEN {value}' for test, value in found)} END"


def _pick_digits(digits: str, place: str, width: int) -> str:
    return pick_digits(digits, f"COALESCE({place}, {len(digits) + 1})", width)


SAIL = replace(
    SPARK,
    name="sail",
    read_stored_column=_read_stored_column,
    read_ordered_column=_read_ordered_column,
    find_extreme_double=_find_extreme_double,
    pick_digits=_pick_digits,
)
