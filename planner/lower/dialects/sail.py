"""Sail, which reads Spark SQL.

It compares doubles by their bits, calls a NaN with a sign less than all numbers, and counts a zero with a sign as
another value than zero. Its `min` and `max` over groups take a NaN for the extreme or not, by the order in which rows
come, and the greatest finite double for an infinity. From a NULL on, `substring` gives what it gives from the beginning
on.

It cannot plan a window whose rows are ordered by a cast that PARTITION BY has, too, as part of what it is partitioned
by: such rows are ordered by the column as it is stored, which is of that type already, if it is no double. Nor can it
plan one partitioned by a column behind what is computed of it: stored columns come first
(planner/lower/bounded_scan.py).
"""

from dataclasses import replace
from math import inf

from planner.catalog.catalog import Column, SqlType
from planner.lower.dialects.spark import SPARK, SPELLING
from planner.lower.dialects.standard import pick_digits


def _stored_column(name: str, column: Column) -> str:
    plain = SPARK.stored_column(name, column)
    if column.sql_type is not SqlType.DOUBLE:
        return plain
    zero = SPELLING.double(0.0)
    return f"CASE WHEN isnan({plain}) THEN {SPELLING.nan} WHEN {plain} = {zero} THEN {zero} ELSE {plain} END"


def _ordered_column(name: str, column: Column) -> str:
    return _stored_column(name, column) if column.sql_type is SqlType.DOUBLE else name


def _extreme_double(function: str, expression: str) -> str:
    infinity, minus_infinity = SPELLING.double(inf), SPELLING.double(-inf)
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
    stored_column=_stored_column,
    ordered_column=_ordered_column,
    extreme_double=_extreme_double,
    pick_digits=_pick_digits,
)
