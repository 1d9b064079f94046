"""Each difference between engines, asked of the real ones: what is written for Spark means the same on both."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from planner.catalog.catalog import Column, SqlType
from planner.errors import KeyholeError
from planner.lower.dialects.spark import SPELLING
from planner.values.like import collapse_wildcards, matches_pattern

TEXTS = (
    "", "a", "A", "a ", "it's", "back\\slash", "\\", "\\'", "${spark.sql.ansi.enabled}", "$", "zoë|1:x", "😀", '"', "`",
    "a%_\\b", "tab\tline\nend", "\\u0041", "--", "/*", "100%", "\\%\\_",
)  # fmt: skip
DAYS = (date(1, 1, 1), date(1, 12, 31), date(1582, 10, 4), date(1600, 2, 29), date(1677, 1, 3), date(1970, 1, 1),
        date(2024, 2, 29), date(2026, 1, 4), date(2027, 1, 3), date(2262, 12, 31), date(9999, 12, 31))  # fmt: skip
MOMENTS = tuple(
    datetime(day.year, day.month, day.day, hour, 59, 59, 999999) for day in DAYS for hour in (0, 23)
)  # fmt: skip


def test_a_text_is_itself(connected: Any) -> None:
    found = connected.rows(f"SELECT {', '.join(f'{SPELLING.quote_text(one)} AS c{i}' for i, one in enumerate(TEXTS))}")
    assert found == [TEXTS]


def test_texts_are_compared_byte_by_byte(connected: Any) -> None:
    pairs = [(a, b) for a in TEXTS[:6] for b in ("a", "b", "ä", "A")]
    tests = ", ".join(f"{SPELLING.quote_text(a)} < {SPELLING.quote_text(b)} AS c{i}" for i, (a, b) in enumerate(pairs))
    assert connected.rows(f"SELECT {tests}") == [tuple(a.encode() < b.encode() for a, b in pairs)]


@pytest.mark.parametrize("name", ["plain", "We`ird", 'q"uote', "a b", "back\\slash", "$", "it's"])
def test_a_name_is_itself(connected: Any, name: str) -> None:
    quoted = SPELLING.quote_identifier(name)
    assert connected.value(quoted, f"(SELECT 7 AS {quoted}) AS t") == 7


def test_a_name_that_would_be_replaced_is_refused() -> None:
    with pytest.raises(KeyholeError) as caught:
        SPELLING.quote_identifier("${spark.sql.ansi.enabled}")
    assert caught.value.code == "KH201"


@pytest.mark.parametrize("pattern", ["a%", "%", "_", "a\\%\\_\\\\b", "\\\\%", "a_%", "\\${", "it's", "100\\%", "\\a"])
def test_patterns_match_as_in_postgresql(connected: Any, pattern: str) -> None:
    asked = collapse_wildcards(pattern)
    tests = ", ".join(
        f"{connected.dialect.match_pattern(SPELLING.quote_text(one), asked)} AS c{i}" for i, one in enumerate(TEXTS)
    )
    assert connected.rows(f"SELECT {tests}") == [tuple(matches_pattern(one, pattern) for one in TEXTS)]


def test_digits_from_no_place_on_are_no_number(connected: Any) -> None:
    """Else a row without a time would be in the first group of those that its hour decides about."""
    picked = connected.dialect.spelling.write_cast(connected.dialect.pick_digits("000123", "place", 2), "integer")
    assert connected.rows(f"SELECT {picked} AS n FROM VALUES (5), (NULL), (3) AS t(place)") == [(23,), (None,), (1,)]


def test_sums_do_not_overflow(connected: Any) -> None:
    total = connected.dialect.sum_whole("x", 2**63)
    extremes = "(SELECT CAST(9223372036854775807 AS bigint) AS x UNION ALL SELECT CAST(9223372036854775807 AS bigint))"
    assert connected.value(total, f"{extremes} AS t") == 2 * (2**63 - 1)


@pytest.mark.parametrize(
    ("value", "declared", "shown"),
    [
        ("0.0000001", "numeric(38,10)", "0.0000001"),
        ("-0.0000001", "numeric(10,7)", "-0.0000001"),
        ("0", "numeric(10,2)", "0"),
        ("-0.50", "numeric(10,2)", "-0.5"),
        ("100", "numeric(10,0)", "100"),
        ("100", "numeric(10,2)", "100"),
        ("9" * 34 + ".9999", "numeric(38,4)", "9" * 34 + ".9999"),
    ],
)
def test_a_decimal_is_one_text(connected: Any, value: str, declared: str, shown: str) -> None:
    typed = f"CAST('{value}' AS {declared.replace('numeric', 'decimal')})"
    assert connected.value(connected.dialect.write_canonical_numeric(typed, declared)) == shown


def test_moments_are_cut_down_alike(connected: Any, tmp_path: Path) -> None:
    table = pa.table({"at": pa.array(MOMENTS, pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "moments.parquet")
    parts = ("year", "quarter", "month", "week", "day", "hour")
    cut = ", ".join(f"{connected.dialect.truncate_moment(part, '`at`')} AS {part}_" for part in parts)
    for at, *found in connected.rows(f"SELECT `at`, {cut} FROM parquet.`{tmp_path / 'moments.parquet'}`"):
        day = at.date()
        assert found == [
            date(day.year, 1, 1),
            date(day.year, (day.month - 1) // 3 * 3 + 1, 1),
            day.replace(day=1),
            day - timedelta(days=day.weekday()),
            day,
            at.replace(minute=0, second=0, microsecond=0),
        ]


def test_days_of_the_old_calendar(connected: Any, tmp_path: Path) -> None:
    """Spark 2 wrote days as Julius Caesar counted them, and a file's foot says so: Spark reads the day that was meant,
    whatever it is set to, and Sail, like DuckDB, the number that is there. No day and no moment fails, however far."""
    days = pa.array([-171653 + 9, -141427, -(2**31), 2**31 - 1], pa.int32()).cast(pa.date32())
    moments = pa.array([0, 1, -(2**63), 2**63 - 1], pa.int64()).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"d": days, "at": moments})
    with pq.ParquetWriter(tmp_path / "old.parquet", table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"org.apache.spark.version": "2.4.8"})
    found = connected.rows(
        "SELECT CAST(d AS string), CAST(TRY_CAST(at AS timestamp_ntz) IS NULL AS string) "
        f"FROM parquet.`{tmp_path / 'old.parquet'}`"
    )
    assert len(found) == 4
    assert [row[0] for row in found][:2] == [
        "1500-01-12" if connected.dialect.name == "spark" else "1500-01-21",
        "1582-10-15",
    ]


def test_parts_of_moments_are_counted_alike(connected: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"at": pa.array(MOMENTS, pa.timestamp("us"))}), tmp_path / "moments.parquet")
    parts = ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour")
    told = ", ".join(f"{connected.dialect.extract_part(part, '`at`')} AS {part}_" for part in parts)
    for at, *found in connected.rows(f"SELECT `at`, {told} FROM parquet.`{tmp_path / 'moments.parquet'}`"):
        assert found == [
            at.year, (at.month + 2) // 3, at.month, at.isocalendar().week, at.day, at.isoweekday() % 7, at.isoweekday(),
            at.timetuple().tm_yday, at.hour,
        ]  # fmt: skip


@pytest.mark.parametrize(
    "step", [timedelta(hours=2), timedelta(minutes=7), timedelta(days=7), timedelta(microseconds=3)]
)
def test_moments_begin_steps(connected: Any, tmp_path: Path, step: timedelta) -> None:
    origin = datetime(2026, 1, 5, 7, 30)
    pq.write_table(pa.table({"at": pa.array(MOMENTS[2:], pa.timestamp("us"))}), tmp_path / "moments.parquet")
    begun = connected.dialect.floor_moment("`at`", step, origin)
    for at, found in connected.rows(f"SELECT `at`, {begun} AS begun FROM parquet.`{tmp_path / 'moments.parquet'}`"):
        assert found == origin + (at - origin) // step * step


def test_odd_values_are_compared_and_fail_nothing(connected: Any, tmp_path: Path) -> None:
    doubles = [0.0, -0.0, float("nan"), -float("nan"), float("inf"), -float("inf"), 5e-324, None, 1e308]
    last, first = 2**31 - 1, -(2**31)
    days = pa.array([-719162, 2932896, 2932897, -719163, last, first, 0, None, 1], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"x": doubles, "d": days}), tmp_path / "odd.parquet")
    stored = connected.dialect.read_stored_column
    x = stored("`x`", Column("x", SqlType.DOUBLE, "double precision"))
    d = stored("`d`", Column("d", SqlType.DATE, "date"))
    moment = SPELLING.convert_to_timestamp(d)
    week = connected.dialect.truncate_moment("week", moment)
    year = f"CASE WHEN {d} BETWEEN {SPELLING.write_years(SqlType.DATE)} THEN {week} END"
    tests = (
        f"{x} >= {SPELLING.write_double(0.0)}",
        f"{x} > {SPELLING.write_double(1.0)}",
        f"NULLIF({x}, {SPELLING.nan}) IS NULL",
        year,
    )
    named = ", ".join(f"{test} AS c{i}" for i, test in enumerate((*tests, year)))
    found = connected.rows(f"SELECT {named} FROM parquet.`{tmp_path / 'odd.parquet'}`")
    assert [row[0] for row in found] == [True, True, True, True, True, False, True, None, True]
    assert [row[1] for row in found] == [False, False, True, True, True, False, False, None, True]
    assert [row[2] for row in found] == [False, False, True, True, False, False, False, True, False]
    assert [row[3] for row in found][:2] == [date(1, 1, 1), date(9999, 12, 27)]
    assert [row[3] for row in found][2:6] == [None] * 4


def test_zeros_and_nans_are_one_value_each(connected: Any, tmp_path: Path) -> None:
    """Whatever their sign, as PostgreSQL and DuckDB count them."""
    values = [0.0, -0.0, float("nan"), -float("nan"), 1.5, None]
    pq.write_table(pa.table({"x": values}), tmp_path / "zeros.parquet")
    x = connected.dialect.read_stored_column("`x`", Column("x", SqlType.DOUBLE, "double precision"))
    assert connected.value(f"count(DISTINCT {x})", f"parquet.`{tmp_path / 'zeros.parquet'}`") == 3


def test_a_branch_that_no_row_takes_fails_nothing(connected: Any) -> None:
    spared = SPELLING.write_cast("'x'", "integer")
    assert connected.value(f"CASE WHEN x < 5 THEN x ELSE {spared} END", "(SELECT 1 AS x) AS t") == 1


def test_products_of_decimals_keep_their_places(connected: Any) -> None:
    product = "CAST('1.0001' AS decimal(38, 4)) * CAST('10000' AS decimal(18, 0))"
    assert connected.value(product) == Decimal("10001.0000")
