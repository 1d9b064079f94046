"""DuckDB: decimals of at most 38 digits that fail if they are too short, and texts whose collation cannot be asked."""

from datetime import datetime, timedelta
from itertools import pairwise

from planner.catalog.catalog import Column, SqlType
from planner.errors import KeyholeError
from planner.lower.dialects.decimals import find_exact_values, keep_numeric
from planner.lower.dialects.dialect import Dialect, RoundedSql
from planner.lower.dialects.grid import INT8, Grid
from planner.lower.dialects.standard import (
    extract_part,
    find_extreme_double,
    match_pattern,
    pick_digits,
    sum_whole,
    translate_case,
    truncate_moment,
)
from planner.values.spelling import STANDARD
from planner.values.sql_literals import find_duckdb_numeric

_MORE_THAN_ALL_GROUPS = 2**62  # rows or groups that no step has, so that the LIMIT leaves out none
_PIECES = 8  # of generated rows: threads that read one do not share it
_SHORT_DIGITS = 18  # decimals of up to so many are kept in 64 bits
_SHORT_DECIMAL = 10**_SHORT_DIGITS
_LONGEST_DECIMAL = 10**38  # DuckDB's decimals have at most 38 digits
_FIRST_MOMENT = "TIMESTAMP '290309-12-22 (BC) 00:00:00'"  # that has a text
_LARGEST_HUGEINT = 2**127  # the end of its 128 bits


def _read_stored_column(name: str, column: Column) -> str:
    # a cast keeps a column's own collation, and DuckDB does not tell which columns have one
    cast = f"TRY_CAST({name} AS {STANDARD.write_type(column)})"
    return f'{cast} COLLATE "C"' if column.sql_type is SqlType.TEXT else cast


def _write_canonical_numeric(expression: str, declared: str) -> str:
    spelled = f"CAST({expression} AS text)"
    return f"rtrim(rtrim({spelled}, '0'), '.')" if find_duckdb_numeric(declared)[1] > 0 else spelled


def _write_moment(moment: str) -> str:
    # The text of an earlier one, which a file can hold, is an internal error that ends the database. It may be made of
    # values that a CASE leaves out, too, so the cast is handed none.
    return (
        f"CASE WHEN {moment} >= {_FIRST_MOMENT} THEN CAST(GREATEST({moment}, {_FIRST_MOMENT}) AS text)"
        f" WHEN {moment} IS NOT NULL THEN COALESCE(CAST(epoch_us({moment}) AS text), '-infinity') END"
    )


def _divide_down(dividend: str, divisor: int) -> str:
    return f"({dividend}) // {divisor}"


def _round_numeric(expression: str, column: Column, grid: Grid) -> RoundedSql:
    p, q = grid.p, grid.q
    scale = find_duckdb_numeric(column.declared)[1]
    largest = 2 * q * (grid.largest_whole + 1)
    if largest * 10**scale >= _LONGEST_DECIMAL or 2 * largest + 2 * p >= _LARGEST_HUGEINT:
        raise KeyholeError(
            "KH203",
            f'the bounds of "{column.name}" have too many digits beside the {scale} decimals of {column.declared}',
            detail="DuckDB computes with 38 digits, and on larger numbers the statement would fail.",
            hint="Have the owner declare narrower bounds, or expose the column with fewer decimals in a view.",
        )
    x, precision = expression, find_duckdb_numeric(column.declared)[0]
    if precision + len(str(q if grid.rounds_by_cast else 2 * q)) > _SHORT_DIGITS:
        # within the bounds fewer digits suffice, which leaves room for the multiplication
        precision = len(str(max(grid.largest_whole, 1))) + 1 + scale
        if largest * 10**scale >= _SHORT_DECIMAL:
            precision = max(
                precision, 19
            )  # a product of decimals of up to 18 digits may have no more, whatever it needs
        precision = min(precision, 38)
        x = f"TRY_CAST({expression} AS decimal({precision}, {scale}))"
    if grid.rounds_by_cast:
        return RoundedSql(grid.round_away(x if q == 1 else f"{x} * {q}", cast="TRY_CAST"))
    # 128 bits only where the cast lets through what 64 do not hold: dividing them takes several times as long
    widest = 10 ** (precision - scale) * 2 * q + 2 * p * (abs(grid.low) + 1)
    whole = "bigint" if widest < INT8 else "hugeint"
    rounded = grid.round_doubled(f"CAST(floor({x} * {2 * q}) AS {whole})", _divide_down)
    return RoundedSql(STANDARD.write_cast(rounded, grid.whole_type))


def _hide_statistics(name: str) -> str:
    return f"LEAST({name}, NULL)"


def _floor_moment(moment: str, step: timedelta, origin: datetime) -> str:
    return f"time_bucket({STANDARD.write_interval(step)}, {moment}, {STANDARD.write_timestamp(origin)})"


def _generate_rows(count: int) -> str:
    # in pieces, which several threads read
    ends = [count * piece // _PIECES for piece in range(_PIECES + 1)]
    pieces = " UNION ALL ".join(f"SELECT range AS i FROM range({low}, {high})" for low, high in pairwise(ends))
    return f"({pieces}) AS series"


def _count_microseconds(moment: str) -> str:
    return f"epoch_us({moment})"


def _make_moment(microseconds: str) -> str:
    return f"make_timestamp({microseconds})"


def _count_days(day: str) -> str:
    return f"({day} - DATE '1970-01-01')"


def _convert_to_whole(expression: str, declared: str, digits: int, scale: int, kind: str) -> str:
    # of 38 digits, so that the product with 10^scale is kept in 128 bits
    x = f"TRY_CAST({expression} AS decimal(38, {scale}))"
    fits = f"{x} > {-(10**digits)} AND {x} < {10**digits}"
    if find_duckdb_numeric(declared)[1] > scale:
        fits += f" AND {x} = {expression}"
    return f"CASE WHEN {fits} THEN CAST({x} * {10**scale} AS {kind}) END"


def _divide_whole(dividend: str, divisor: str) -> str:
    return f"({dividend} // {divisor})"


def _divide_large(dividend: str, divisor: str) -> str:
    return f"CAST(({dividend}) // NULLIF({divisor}, 0) AS bigint)"


def _match_regex(text: str, pattern: str) -> str:
    return f"regexp_matches({text}, {STANDARD.quote_text(pattern)})"


DUCKDB = Dialect(
    name="duckdb",
    spelling=STANDARD,
    huge_integer="hugeint",
    byte_order="",
    text_groups_are_bytes=False,
    numeric_nan=None,
    # MATERIALIZED alone does not stop DuckDB from moving a test into the step
    materialized="AS MATERIALIZED",
    materialized_fence=f"LIMIT {_MORE_THAN_ALL_GROUPS}",
    row_fence="OFFSET 0",  # a LIMIT that is above all rows is taken out before tests are moved once more behind a join
    hide_statistics=_hide_statistics,
    is_faster_on_copies=False,
    byte_length="strlen",
    enforces_lengths=False,
    # memory of the engine's groups, some 250 bytes a key, against reading the key columns once more for each block:
    # of ten million keys in twenty million rows, half as many or twice as many took a fifth longer
    keys_at_once=1 << 20,
    read_stored_column=_read_stored_column,
    read_ordered_column=_read_stored_column,
    find_exact_values=find_exact_values,
    write_canonical_numeric=_write_canonical_numeric,
    shorten_numeric=keep_numeric,
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
    change_ascii_case=translate_case,
    match_regex=_match_regex,
    match_pattern=match_pattern,
    sum_whole=sum_whole,
    pick_digits=pick_digits,
    find_extreme_double=find_extreme_double,
    generate_rows=_generate_rows,
    array=("ARRAY[", "]"),
)
