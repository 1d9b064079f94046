r"""Spark SQL, as Apache Spark 4 reads it: decimals of at most 38 digits, casts that give NULL, and no collations.

Guarantee: no expression fails on data, and all give the integers that DuckDB and PostgreSQL give, in a session that has
`REQUIRED_SETTINGS`. SQL for Spark differs if Spark would answer differently:

- Spark reads backslashes in texts, and replaces `${name}` by a setting's value in texts and names. So texts are
escaped, and such a name is refused.
- A sum of bigints overflows. A sum that could overflow is computed as decimal(38, 0).
- `date_trunc` gives a moment with a time zone, and `extract(dow ...)` counts from 1. Both are computed from calendar
fields.
- A CASE may evaluate branches that it does not take, so casts are TRY_CAST.

References: docs/decisions/0027-spark.md.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

from planner.catalog.catalog import Column
from planner.errors import KeyholeError
from planner.lower.dialects.decimals import count_digits, find_exact_values, keep_numeric
from planner.lower.dialects.dialect import Dialect, RoundedSql
from planner.lower.dialects.grid import INT4, INT8, Grid
from planner.lower.dialects.standard import find_extreme_double, pick_digits, translate_case
from planner.values.spelling import Spelling
from planner.values.sql_literals import find_duckdb_numeric, quote_text

REQUIRED_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        # decimals are written without exponents, else another row of a unit would be chosen, silently
        "spark.sql.ansi.enabled": "true",
        # names that differ in case are different columns, as in a policy
        "spark.sql.caseSensitive": "true",
        # moments have no time zone, and the few that are converted are converted in UTC
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
        # the product of two decimals keeps all decimal places, and fails rather than rounds; none is that long
        "spark.sql.decimalOperations.allowPrecisionLoss": "false",
        "spark.sql.legacy.literal.pickMinimumPrecision": "true",
        # texts are read as they are escaped here, and no `${...}` becomes the value of a setting
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.variable.substitute": "false",
        # GROUP BY 1 means the first column
        "spark.sql.groupByOrdinal": "true",
        # dates before 1582 are those that stand in the file
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
        # every row counts: no file is left out because it cannot be read
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
    }
)
"""Settings that a session must have. They are read back before the first statement."""

_LONGEST_DECIMAL = 10**38  # Spark's decimals have at most 38 digits
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1)
_HOUR = timedelta(hours=1)
_DAYS_SINCE_MONDAY = "pmod(dayofweek({moment}) + 5, 7)"  # of which Spark counts Sunday as 1
_FIELDS = {
    "year": "year({moment})",
    "isoyear": f"year(date_add(CAST({{moment}} AS DATE), 3 - ({_DAYS_SINCE_MONDAY})))",  # of the week's Thursday
    "quarter": "quarter({moment})",
    "month": "month({moment})",
    "week": "weekofyear({moment})",
    "day": "day({moment})",
    "dow": "dayofweek({moment}) - 1",
    "isodow": f"{_DAYS_SINCE_MONDAY} + 1",
    "doy": "dayofyear({moment})",
    "hour": "hour({moment})",
    "minute": "minute({moment})",
}
_DATES = {
    "year": "make_date(year({moment}), 1, 1)",
    "quarter": "make_date(year({moment}), 3 * quarter({moment}) - 2, 1)",
    "month": "make_date(year({moment}), month({moment}), 1)",
    "week": f"date_sub({{date}}, {_DAYS_SINCE_MONDAY})",
    "day": "{date}",
}


def _identifier(name: str) -> str:
    if "\x00" in name or "${" in name:
        raise KeyholeError("KH201", "a column name contains a character that no name can hold on Spark")
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    quote_text(value)  # raises on what no engine's text can hold
    quoted = value.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return "'" + quoted.replace("\n", "\\n") + "'"  # statements are indented line by line, outside of constants


SPELLING = Spelling(
    quote_identifier=_identifier,
    quote_text=_text,
    cast_function="TRY_CAST",
    text_type="string",
    double_type="double",
    timestamp_type="timestamp_ntz",
)


def _read_stored_column(name: str, column: Column) -> str:
    return SPELLING.write_cast(name, SPELLING.write_type(column))


def _write_canonical_numeric(expression: str, declared: str) -> str:
    spelled = SPELLING.write_cast(expression, SPELLING.text_type)
    if find_duckdb_numeric(declared)[1] == 0:
        return spelled
    return f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM {spelled}))"


def _write_moment(moment: str) -> str:
    return SPELLING.write_cast(moment, SPELLING.text_type)


def _divide_down(dividend: str, divisor: int) -> str:
    return f"({dividend}) div {divisor}"


def _round_numeric(expression: str, column: Column, grid: Grid) -> RoundedSql:
    p, q = grid.p, grid.q
    scale = find_duckdb_numeric(column.declared)[1]
    largest = 2 * q * (grid.largest_whole + 1)
    # `div` gives a bigint
    if max(largest * 10**scale, 2 * (largest + p)) >= _LONGEST_DECIMAL or grid.high - grid.low >= INT8:
        raise KeyholeError(
            "KH203",
            f'the bounds of "{column.name}" have too many digits beside the {scale} decimals of {column.declared}',
            detail="Spark computes with 38 digits, and on larger numbers the statement would fail.",
            hint="Have the owner declare narrower bounds, or expose the column with fewer decimals in a view.",
        )
    x = SPELLING.write_cast(expression, f"decimal({count_digits(grid, scale)}, {scale})")
    if p == 1 and q % 10**scale == 0:
        return RoundedSql(SPELLING.write_cast(f"{x} * {q}", grid.whole_type))
    return RoundedSql(SPELLING.write_cast(grid.round_doubled(f"floor({x} * {2 * q})", _divide_down), grid.whole_type))


def _floor_moment(moment: str, step: timedelta, origin: datetime) -> str:
    size = step // _MICROSECOND
    begins = (origin - _EPOCH) // _MICROSECOND % size
    micros = f"unix_micros({SPELLING.write_cast(moment, 'timestamp_ltz')})"
    return SPELLING.convert_to_timestamp(f"timestamp_micros({micros} - pmod({micros} - {begins}, {size}))")


def _truncate_moment(part: str, moment: str) -> str:
    if part == "hour":
        return _floor_moment(moment, _HOUR, _EPOCH)
    return _DATES[part].format(moment=moment, date=SPELLING.write_cast(moment, "date"))


def _extract_part(part: str, moment: str) -> str:
    return _FIELDS[part].format(moment=moment)


def _match_regex(expression: str, pattern: str) -> str:
    # a dollar would match before a line's end as well
    anchored = f"{pattern[:-1]}\\z" if pattern.endswith("$") else pattern
    return f"{expression} RLIKE {_text(anchored)}"


def _match_pattern(expression: str, pattern: str) -> str:
    return rf"{expression} LIKE {_text(pattern)} ESCAPE '\\'"


def _sum_whole(expression: str, largest: int) -> str:
    return f"sum({expression})" if largest < INT4 else f"sum({SPELLING.write_cast(expression, 'decimal(38, 0)')})"


def _generate_rows(count: int) -> str:
    return f"(SELECT id AS i FROM range({count})) AS series"


def _count_microseconds(moment: str) -> str:
    return f"unix_micros({SPELLING.write_cast(moment, 'timestamp_ltz')})"


def _make_moment(microseconds: str) -> str:
    return SPELLING.convert_to_timestamp(f"timestamp_micros({microseconds})")


def _count_days(day: str) -> str:
    return f"datediff({day}, DATE '1970-01-01')"


def _convert_to_whole(expression: str, declared: str, digits: int, scale: int, kind: str) -> str:
    x = SPELLING.write_cast(expression, f"decimal({digits + scale}, {scale})")
    fits = f"{x} IS NOT NULL" if find_duckdb_numeric(declared)[1] <= scale else f"{x} = {expression}"
    factor = SPELLING.write_cast(str(10**scale), f"decimal({scale + 1}, 0)")
    return f"CASE WHEN {fits} THEN {SPELLING.write_cast(f'{x} * {factor}', kind)} END"


def _divide_whole(dividend: str, divisor: str) -> str:
    return f"({dividend} div {divisor})"


def _divide_large(dividend: str, divisor: str) -> str:
    return f"(({dividend}) div nullif({divisor}, 0))"


SPARK = Dialect(
    name="spark",
    spelling=SPELLING,
    huge_integer="decimal(38, 0)",
    byte_order="",
    # a policy cannot expose a column that has a collation
    text_groups_are_bytes=True,
    numeric_nan=None,
    materialized="AS",
    materialized_fence=None,
    row_fence=None,
    hide_statistics=str,
    is_faster_on_copies=False,
    byte_length="octet_length",
    enforces_lengths=False,
    keys_at_once=None,
    read_stored_column=_read_stored_column,
    read_ordered_column=_read_stored_column,
    find_exact_values=find_exact_values,
    write_canonical_numeric=_write_canonical_numeric,
    shorten_numeric=keep_numeric,
    write_moment=_write_moment,
    divide_down=_divide_down,
    round_numeric=_round_numeric,
    floor_moment=_floor_moment,
    truncate_moment=_truncate_moment,
    extract_part=_extract_part,
    count_microseconds=_count_microseconds,
    make_moment=_make_moment,
    count_days=_count_days,
    convert_to_whole=_convert_to_whole,
    divide_whole=_divide_whole,
    divide_large=_divide_large,
    change_ascii_case=translate_case,
    match_regex=_match_regex,
    match_pattern=_match_pattern,
    sum_whole=_sum_whole,
    pick_digits=pick_digits,
    find_extreme_double=find_extreme_double,
    generate_rows=_generate_rows,
    array=("array(", ")"),
)
