"""Numbers rounded to `real`, texts of arrays, times with zones, and letters in capitals, as PostgreSQL has them."""

import random
from datetime import date, datetime
from fractions import Fraction
from math import isinf

import psycopg
import pytest
from sqlglot import exp

from planner.errors import KeyholeError
from planner.predicates.letter_case import list_spellings, lower_pattern
from planner.predicates.where_refusals import refuse_unlisted_expression
from planner.values.array_literals import read_members
from planner.values.constant import ConstantContext, Interval, Number, round_to_real
from planner.values.expressions import fold_constant
from planner.values.like import matches_pattern, split_pattern
from tests.in_turn import in_turn
from tests.planner.asked import select

_NODE = exp.Column(this=exp.to_identifier("x"))


def test_real_is_rounded_once(postgres_url: str) -> None:
    """2,000 decimals, among them ones half way between two reals and just beside."""
    random_ = random.Random(4)
    texts = ["0", "0.1", "16777217", "16777217.0000000001", "16777219", "3.4028235e38", "1e-45", "0.3", "-0.1"]
    texts += [f"{random_.uniform(-1, 1):.{random_.randint(1, 25)}f}e{random_.randint(-30, 30)}" for _ in range(1_000)]
    texts += [f"{random_.randint(2**24, 2**26)}.{random_.choice(['0', '5', '00000000000001'])}" for _ in range(1_000)]
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute("SELECT x::real::float8 FROM unnest(%s::text[]) x", (texts,)).fetchall()
    assert [float(round_to_real(Fraction(text)) or 0) for text in texts] == [number for (number,) in found]


def test_real_has_a_range() -> None:
    assert round_to_real(Fraction(10) ** 39) is None
    assert round_to_real(Fraction(1, 10**60)) is None
    assert not isinf(round_to_real(Fraction("3.4028235e38")) or 0)


def test_arrays_are_read_as_postgresql_reads_them(postgres_url: str) -> None:
    texts = [
        "{}",
        "{a}",
        "{a,b}",
        ' { a , "b" } ',
        '{"a,b","c\\"d","e\\\\f"}',
        '{NULL,null,"NULL"}',
        "{a b, c}",
        '{""}',
    ]
    with psycopg.connect(postgres_url) as connection:
        for text in texts:
            row = connection.execute("SELECT %s::text::text[]", (text,)).fetchone()
            assert row is not None
            assert read_members(text) == row[0], text


@in_turn("text", ["", "a", "{a", "{a}b", "{{a},{b}}", "{a,}", "{,}", "[0:1]={a,b}", '{"a}'])
def test_what_is_no_array_of_one_dimension(text: str) -> None:
    assert read_members(text) is None


def _folded(expression: str, *, utc: bool) -> object:
    return fold_constant(
        select(f"SELECT {expression}").expressions[0],
        ConstantContext(parameters={}, today=date(2011, 1, 1), is_utc=utc),
    )


_ZONED = [
    "'2011-01-01T00:00:00Z'::timestamptz",
    "'2011-01-01 02:00:00+02'::timestamptz",
    "'2010-12-31 18:30:00-05:30'::timestamptz",
    "'20110101'::timestamptz",
    "to_timestamp('2011-01-01 00:00:00.000', 'YYYY-MM-DD HH24:MI:SS.MS')",
    "to_timestamp(1293840000)",
    "(date '2011-01-01')::timestamptz",
]


@in_turn("expression", _ZONED)
def test_times_with_zones_mean_something_in_utc_alone(expression: str, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        row = connection.execute(f"SELECT ({expression})::timestamp".encode()).fetchone()
    assert row == (_folded(expression, utc=True),) == (datetime(2011, 1, 1),)
    with pytest.raises(KeyholeError, match="another moment in every time zone"):
        _folded(expression, utc=False)


def test_a_zone_is_dropped_from_a_timestamp_without_one() -> None:
    assert _folded("'2011-01-01T00:00:00+05:30'::timestamp", utc=False) == datetime(2011, 1, 1)


@in_turn("kind", ["date", "timestamp", "timestamptz"])
@in_turn(
    "text",
    ["2011-01-01 +00", "2011-01-01 -05", "2011-01-01 +05:30", "2011-01-01  -0530 ", "2011-1-1 Z", "20110101 utc",
     "2011-01-01 +15:59", "2011-01-01 +16", "2011-01-01T+00", "2011-01-01-05", "2011-01-01 +00:00:00"],
)  # fmt: skip
def test_a_zone_may_stand_behind_a_day(text: str, kind: str, postgres_url: str) -> None:
    """As pgjdbc writes a date in its simple mode; where PostgreSQL reads no date, none is read here."""
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        try:
            row = connection.execute(f"SELECT ('{text}'::{kind})::timestamp".encode()).fetchone()
        except psycopg.errors.DataError:
            row = None
    try:
        found = _folded(f"('{text}'::{kind})::timestamp", utc=True)
    except KeyholeError as error:
        assert row is None or text.endswith(":00:00")  # seconds of an offset are not read
        assert error.code == "KH212"  # noqa: PT017
    else:
        assert row == (found,)


@in_turn("text", ["5.0", "0.1", "-0", "1e3", "16777217", "3.4028235e38", "1e-45", " 7 "])
def test_a_cast_to_real_is_the_nearest_real(text: str, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("SELECT %s::text::real::float8", (text,)).fetchone()
    assert row is not None
    for expression in (f"'{text}'::real", f"CAST({text} AS real)", f"('{text}'::float4)"):
        found = _folded(expression, utc=False)
        assert isinstance(found, Number)
        assert (float(found.value), found.is_integral) == (row[0], False)


@pytest.mark.parametrize("expression", ["'1e39'::real", "1e-46::real", "'0.1'::real * 3", "coalesce('1'::real, 2) + 1"])
def test_what_real_would_round_is_not_folded(expression: str) -> None:
    with pytest.raises(KeyholeError, match="KH212"):
        _folded(expression, utc=False)


def test_spellings_are_what_every_collation_matches(postgres_url: str) -> None:
    """Every collation that the server has of Turkish, Lithuanian, root and C, over texts with letters that differ."""
    odd = [
        "",
        "a",
        "A",
        "s",
        "S",
        "\u017f",
        "ß",
        "\u0130",
        "\u0131",
        "K",
        "\u212a",
        "k",
        "j",
        "J\u0300",
        "É",
        "Σ",
        "\u1e9e",
    ]
    texts = [first + second for first in odd for second in odd]
    patterns = ["a%", "%s%", "%s", "j%", "%j", "as", "%a%s%", "%", "", "%j\u0301%".replace("\u0301", "")]
    with psycopg.connect(postgres_url) as connection:
        known = connection.execute(
            "SELECT collname FROM pg_collation WHERE collisdeterministic AND collencoding IN (-1, 6) AND collname IN "
            "('C', 'default', 'ucs_basic', 'C.utf8', 'en_US.utf8', 'und-x-icu', 'tr-x-icu', 'lt-x-icu', 'az-x-icu', "
            "'el-x-icu', 'tr_TR.utf8', 'pg_c_utf8')"
        ).fetchall()
        assert known
        for (collation,) in known:
            for pattern in patterns:
                found = connection.execute(
                    f'SELECT x FROM unnest(%s::text[]) x WHERE lower(x COLLATE "{collation}") LIKE %s'.encode(),
                    (texts, pattern),
                ).fetchall()
                spelt = list_spellings(split_pattern(pattern), _NODE) or []
                expected = [text for text in texts if any(matches_pattern(text, one) for one in spelt)]
                assert [text for (text,) in found] == expected, (collation, pattern)


@pytest.mark.parametrize("pattern", ["%i%", "k", "a_b", "abcdefg"])
def test_patterns_on_which_collations_differ_have_no_spellings(pattern: str) -> None:
    assert list_spellings(split_pattern(pattern), _NODE) is None


def test_letters_beyond_ascii_have_no_capitals() -> None:
    with pytest.raises(KeyholeError) as raised:
        list_spellings(split_pattern("é%"), _NODE)
    assert raised.value.code == refuse_unlisted_expression(_NODE, "").code


@pytest.mark.parametrize("pattern", ["%ki_%", "%İ", "\\%K\\_i%", ""])
def test_a_lowered_pattern_matches_lowered_texts(pattern: str) -> None:
    """As in the C collation, in which no character but A to Z has a small letter."""
    for text in ("", "KIT", "xkİ", "%k_I.", "\u212ait", "kit\u0130"):
        lowered = "".join(one.lower() if one.isascii() else one for one in text)
        plain = "".join(one.lower() if one.isascii() else one for one in pattern)
        assert matches_pattern(lowered, lower_pattern(split_pattern(pattern))) == matches_pattern(lowered, plain)


def test_intervals_are_read_and_multiplied_as_postgresql_does(postgres_url: str) -> None:
    """What stands beside one unit, and parts of days and weeks; each also moved, and times and by a number."""
    random_ = random.Random(7)
    units = ("day", "days", "weeks", "hour", "hours", "minutes", "seconds")
    lengths = ["0", "3 days 06:00", "-3 days 06:00", "1 day -06:30:15.5", "1.5 days", "-2.5 weeks", "2 days 1.5 hours"]
    lengths += ["2 weeks - 3 days", "- 2 days + 1.5 hours", "2 days - 06:00"]  # signs apart from their numbers
    lengths += [f"{random_.randint(-30, 30)} {random_.choice(units[:2])} {m}:{m:02}" for m in range(24)]
    lengths += [f"{random_.randint(-30, 30) / 4} {random_.choice(units)}" for _ in range(40)]
    changes = ("", " * 2", " * 1.5", " / 4", " - interval '90 minutes'", " + interval '1 day 01:00' * 3")
    texts = ["interval '1 mon 2 days' * 2", *(f"interval '{one}'{change}" for one in lengths for change in changes)]
    with psycopg.connect(postgres_url) as connection:
        for text in texts:
            row = connection.execute(f"SELECT extract(epoch FROM {text}) * 1000000".encode()).fetchone()
            found = fold_constant(
                select(f"SELECT {text}").expressions[0], ConstantContext(parameters={}, today=date(2026, 1, 1))
            )
            assert isinstance(found, Interval)
            assert row is not None
            assert (30 * found.months + found.days) * 86_400_000_000 + found.microseconds == row[0], text
