"""PostgreSQL: numerics of any length, with a NaN of their own, and databases that order text in their own way."""

from datetime import datetime, timedelta

from planner.catalog.catalog import Column, SqlType
from planner.lower.dialects.dialect import Dialect, ExactValues, RoundedSql
from planner.lower.dialects.grid import Grid
from planner.lower.dialects.standard import (
    extract_part,
    find_extreme_double,
    match_pattern,
    pick_digits,
    sum_whole,
    truncate_moment,
)
from planner.values.spelling import STANDARD
from planner.values.sql_literals import read_numeric_modifier

_SINGLE = frozenset({"real", "float4"})
# of a numeric without a precision, which may have 16,000 digits behind the point and more before it: no constant that a
# question may have is as long (planner/values/expressions.py)
_PLACES = 600
_LARGEST = "CAST('1e200' AS numeric)"


def _read_stored_column(name: str, column: Column) -> str:
    if column.sql_type is SqlType.TEXT:
        return f'CAST({name} AS text) COLLATE "C"'
    if column.sql_type is SqlType.DOUBLE and column.declared.strip().lower() in _SINGLE:
        return f"CAST({name} AS double precision)"
    return name


def _find_exact_values(declared: str) -> ExactValues:
    modifier = read_numeric_modifier(declared)
    return ExactValues(scale=None if modifier is None else max(0, modifier[1]), low=None, high=None)


def _write_canonical_numeric(expression: str, _: str) -> str:
    return f"CAST(trim_scale({expression}) AS text)"


def _shorten_numeric(expression: str, declared: str) -> str:
    """Return SQL that cuts a number's magnitude and decimals. An md5 of the whole number follows the cut number.

    So order and differences are kept.
    """
    if read_numeric_modifier(declared) is not None:
        return expression
    cut = f"trunc({expression}, {_PLACES})"
    whole = f"md5({_write_canonical_numeric(expression, declared)})"
    halves = (
        f"CAST(CAST('x' || {part} AS bit(64)) AS bigint)" for part in (f"left({whole}, 16)", f"right({whole}, 16)")
    )
    first, second = (f"({half} + CAST({2**63} AS numeric))" for half in halves)
    apart = f"({first} * {2**64} + {second})"  # below 10^39
    follows = f"(CAST('1e39' AS numeric) + {apart}) * CAST('1e-{_PLACES + 40}' AS numeric)"
    return (
        f"CASE WHEN scale({expression}) IS NULL THEN {expression}"  # no number, or an infinity
        f" WHEN abs({expression}) > {_LARGEST} THEN sign({expression}) * ({_LARGEST} + 1 + {apart})"
        f" WHEN scale({expression}) <= {_PLACES} THEN {expression}"
        f" WHEN {expression} = {cut} THEN {cut} ELSE {cut} + sign({expression}) * {follows} END"
    )


def _write_moment(moment: str) -> str:
    return STANDARD.write_cast(moment, STANDARD.text_type)


def _divide_down(dividend: str, divisor: int) -> str:
    return f"div(CAST({dividend} AS numeric), {divisor})"


def _round_numeric(expression: str, column: Column, grid: Grid) -> RoundedSql:
    p, q = grid.p, grid.q
    modifier = read_numeric_modifier(column.declared)
    if p == 1 and modifier is not None and q % 10 ** max(0, modifier[1]) == 0:
        # every value is a multiple of the grid already: sum as numeric, in the user's unit
        return RoundedSql(expression, steps=q)
    if grid.rounds_by_cast:
        return RoundedSql(grid.round_away(expression if q == 1 else f"{expression} * {q}", cast="CAST"))
    rounded = grid.round_doubled(f"floor({expression} * {2 * q})", _divide_down)
    return RoundedSql(STANDARD.write_cast(rounded, grid.whole_type))


def _floor_moment(moment: str, step: timedelta, origin: datetime) -> str:
    return f"date_bin({STANDARD.write_interval(step)}, {moment}, {STANDARD.write_timestamp(origin)})"


def _generate_rows(count: int) -> str:
    return f"generate_series(CAST(0 AS bigint), {count - 1}) AS series(i)"


def _count_microseconds(moment: str) -> str:
    return f"CAST(extract(epoch FROM {moment}) * 1000000 AS bigint)"


def _make_moment(microseconds: str) -> str:
    # an interval is multiplied by a double, which holds the days and what is left of one, and not all microseconds
    days, rest = f"{microseconds} / 86400000000", f"{microseconds} % 86400000000"
    return f"(TIMESTAMP '1970-01-01' + ({days}) * INTERVAL '1 day' + ({rest}) * INTERVAL '1 microsecond')"


def _count_days(day: str) -> str:
    return f"({day} - DATE '1970-01-01')"


def _convert_to_whole(expression: str, declared: str, digits: int, scale: int, kind: str) -> str:
    modifier = read_numeric_modifier(declared)
    fits = f"abs({expression}) < {10**digits}"
    if modifier is None or modifier[1] > scale:
        fits += f" AND {expression} = trunc({expression}, {scale})"
    return f"CASE WHEN {fits} THEN CAST({expression} * {10**scale} AS {kind}) END"


def _divide_whole(dividend: str, divisor: str) -> str:
    return f"({dividend} / {divisor})"


def _divide_large(dividend: str, divisor: str) -> str:
    return f"CAST(div({dividend}, NULLIF({divisor}, 0)) AS bigint)"


def _change_ascii_case(function: str, text: str) -> str:
    return f'{function}({text} COLLATE "C")'


def _match_regex(text: str, pattern: str) -> str:
    return f"{text} ~ {STANDARD.quote_text(pattern)}"


POSTGRES = Dialect(
    name="postgres",
    spelling=STANDARD,
    huge_integer="numeric",
    byte_order=' COLLATE "C"',
    # a policy cannot expose a column whose collation is not deterministic
    text_groups_are_bytes=True,
    numeric_nan="CAST('NaN' AS numeric)",
    materialized="AS MATERIALIZED",
    materialized_fence=None,
    row_fence="OFFSET 0",
    hide_statistics=str,  # its planner leaves out no row by what it knows of the values
    is_faster_on_copies=True,
    byte_length="octet_length",
    enforces_lengths=True,
    keys_at_once=None,
    read_stored_column=_read_stored_column,
    read_ordered_column=_read_stored_column,
    find_exact_values=_find_exact_values,
    write_canonical_numeric=_write_canonical_numeric,
    shorten_numeric=_shorten_numeric,
    write_moment=_write_moment,
    divide_down=_divide_down,
    round_numeric=_round_numeric,
    floor_moment=_floor_moment,
    truncate_moment=truncate_moment,
    extract_part=extract_part,
    count_microseconds=_count_microseconds,
    make_moment=_make_moment,
    count_days=_count_days,
    convert_to_whole=_convert_to_whole,
    divide_whole=_divide_whole,
    divide_large=_divide_large,
    change_ascii_case=_change_ascii_case,
    match_regex=_match_regex,
    match_pattern=match_pattern,
    sum_whole=sum_whole,
    pick_digits=pick_digits,
    find_extreme_double=find_extreme_double,
    generate_rows=_generate_rows,
    array=("ARRAY[", "]"),
)
