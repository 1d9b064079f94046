"""PostgreSQL: numerics of any length, with a NaN of their own, and databases that order text in their own way."""

from datetime import datetime, timedelta

from planner.catalog.catalog import Column, SqlType
from planner.lower.dialects.dialect import Dialect, ExactValues, Rounded
from planner.lower.dialects.grid import Grid
from planner.lower.dialects.standard import extract_part, extreme_double, like, pick_digits, total, truncate_moment
from planner.values.spelling import STANDARD
from planner.values.sql_literals import numeric_modifier

_SINGLE = frozenset({"real", "float4"})
# of a numeric without a precision, which may have 16,000 digits behind the point and more before it: no constant that a
# question may have is as long (planner/values/expressions.py)
_PLACES = 600
_LARGEST = "CAST('1e200' AS numeric)"


def _stored_column(name: str, column: Column) -> str:
    if column.sql_type is SqlType.TEXT:
        return f'CAST({name} AS text) COLLATE "C"'
    if column.sql_type is SqlType.DOUBLE and column.declared.strip().lower() in _SINGLE:
        return f"CAST({name} AS double precision)"
    return name


def _exact_values(declared: str) -> ExactValues:
    modifier = numeric_modifier(declared)
    return ExactValues(scale=None if modifier is None else max(0, modifier[1]), low=None, high=None)


def _canonical_numeric(expression: str, _: str) -> str:
    return f"CAST(trim_scale({expression}) AS text)"


def _short_numeric(expression: str, declared: str) -> str:
    """Cut a number's magnitude and decimals, and put an md5 of all of it behind the cut, so that order is kept."""
    if numeric_modifier(declared) is not None:
        return expression
    cut = f"trunc({expression}, {_PLACES})"
    whole = f"md5({_canonical_numeric(expression, declared)})"
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


def _moment_text(moment: str) -> str:
    return STANDARD.cast(moment, STANDARD.text_type)


def _floor_quotient(dividend: str, divisor: int) -> str:
    return f"div(CAST({dividend} AS numeric), {divisor})"


def _rounded_numeric(expression: str, column: Column, grid: Grid) -> Rounded:
    p, q = grid.p, grid.q
    modifier = numeric_modifier(column.declared)
    if p == 1 and modifier is not None and q % 10 ** max(0, modifier[1]) == 0:
        # every value is a multiple of the grid already: sum as numeric, in the user's unit
        return Rounded(expression, steps=q)
    if grid.rounds_by_cast:
        return Rounded(grid.round_away(expression if q == 1 else f"{expression} * {q}", cast="CAST"))
    rounded = grid.round_doubled(f"floor({expression} * {2 * q})", _floor_quotient)
    return Rounded(STANDARD.cast(rounded, grid.whole_type))


def _floor_moment(moment: str, step: timedelta, origin: datetime) -> str:
    return f"date_bin({STANDARD.interval(step)}, {moment}, {STANDARD.timestamp(origin)})"


def _generate_rows(count: int) -> str:
    return f"generate_series(CAST(0 AS bigint), {count - 1}) AS series(i)"


def _microseconds(moment: str) -> str:
    return f"CAST(extract(epoch FROM {moment}) * 1000000 AS bigint)"


def _moment_at(microseconds: str) -> str:
    # an interval is multiplied by a double, which holds the days and what is left of one, and not all microseconds
    days, rest = f"{microseconds} / 86400000000", f"{microseconds} % 86400000000"
    return f"(TIMESTAMP '1970-01-01' + ({days}) * INTERVAL '1 day' + ({rest}) * INTERVAL '1 microsecond')"


def _days(day: str) -> str:
    return f"({day} - DATE '1970-01-01')"


def _whole_number(expression: str, declared: str, digits: int, scale: int, kind: str) -> str:
    modifier = numeric_modifier(declared)
    fits = f"abs({expression}) < {10**digits}"
    if modifier is None or modifier[1] > scale:
        fits += f" AND {expression} = trunc({expression}, {scale})"
    return f"CASE WHEN {fits} THEN CAST({expression} * {10**scale} AS {kind}) END"


def _whole_quotient(dividend: str, divisor: str) -> str:
    return f"({dividend} / {divisor})"


def _large_quotient(dividend: str, divisor: str) -> str:
    return f"CAST(div({dividend}, NULLIF({divisor}, 0)) AS bigint)"


def _ascii_case(function: str, text: str) -> str:
    return f'{function}({text} COLLATE "C")'


def _matches(text: str, pattern: str) -> str:
    return f"{text} ~ {STANDARD.text(pattern)}"


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
    without_statistics=str,  # its planner leaves out no row by what it knows of the values
    is_faster_on_copies=True,
    byte_length="octet_length",
    enforces_lengths=True,
    keys_at_once=None,
    stored_column=_stored_column,
    ordered_column=_stored_column,
    exact_values=_exact_values,
    canonical_numeric=_canonical_numeric,
    short_numeric=_short_numeric,
    moment_text=_moment_text,
    floor_quotient=_floor_quotient,
    rounded_numeric=_rounded_numeric,
    floor_moment=_floor_moment,
    truncate_moment=truncate_moment,
    extract_part=extract_part,
    microseconds=_microseconds,
    moment_at=_moment_at,
    days=_days,
    whole_number=_whole_number,
    whole_quotient=_whole_quotient,
    large_quotient=_large_quotient,
    ascii_case=_ascii_case,
    matches=_matches,
    like=like,
    total=total,
    pick_digits=pick_digits,
    extreme_double=extreme_double,
    generate_rows=_generate_rows,
    array=("ARRAY[", "]"),
)
