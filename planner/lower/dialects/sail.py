"""Sail, which reads Spark SQL: it compares doubles by their bits, calls a NaN with a sign less than all numbers, and
counts a zero with a sign as another value than zero.

It cannot plan a window whose rows are ordered by a cast that PARTITION BY has, too, as part of what it is partitioned
by: such rows are ordered by the column as it is stored, which is of that type already. Nor can it plan one partitioned
by a column behind what is computed of it: stored columns come first (planner/lower/bounded_scan.py).
"""

from dataclasses import replace

from planner.catalog.model import Column, SqlType
from planner.lower.dialects.spark import SPARK, SPELLING


def _stored_column(name: str, column: Column) -> str:
    plain = SPARK.stored_column(name, column)
    if column.sql_type is not SqlType.DOUBLE:
        return plain
    zero = SPELLING.double(0.0)
    return f"CASE WHEN isnan({plain}) THEN {SPELLING.nan} WHEN {plain} = {zero} THEN {zero} ELSE {plain} END"


def _ordered_column(name: str, _: Column) -> str:
    return name


SAIL = replace(SPARK, name="sail", stored_column=_stored_column, ordered_column=_ordered_column)
