"""Values in the place of parameters that a statement groups by."""

from datetime import date, datetime
from decimal import Decimal

from planner.statements.key_parameters import bind_keys, find_key_parameters
from planner.values.constant import ArrayValue, ForeignValue, Interval, ParameterValue
from tests.in_turn import in_turn

_BY = "SELECT x > $1 AS high, $2::text FROM t WHERE y < $3 GROUP BY 1 HAVING count(*) > $4"
VALUES: list[tuple[ParameterValue | None, str | None]] = [
    (5, "x > 5"),
    (-5, "x > (-5)"),
    (Decimal("-0.5"), "x > (-0.5)"),
    (True, "x > TRUE"),
    (None, "x > NULL"),
    ("it's", "x > 'it''s'"),
    ("$2", "x > '$2'"),
    ("\\'", None),
    ("\0", None),
    (date(2026, 1, 5), "x > date '2026-01-05'"),
    (datetime(2026, 1, 5, 12), "x > timestamp '2026-01-05 12:00:00'"),
    (Interval(1, -2, 3_000_000), "x > interval '1 months -2 days 3000000 microseconds'"),
    (Interval(0, 0, 0), "x > interval '0 days'"),
    (ForeignValue("name", "A"), "x > 'A'"),
    (ForeignValue("point", "(1,2)"), None),
    (ArrayValue((1, 2)), None),
]


@in_turn(("value", "written"), VALUES)
def test_a_value_is_one_constant(value: ParameterValue | None, written: str | None) -> None:
    found = bind_keys(_BY, {1: value, 2: "a", 3: 4, 4: 40})
    expected = _BY.replace("x > $1", written).replace("$2::text", "'a'::text") if written is not None else None
    assert found == expected


def test_a_length_that_is_cast_is_a_text() -> None:
    for sql in ("date_bin($1::interval, t, o)", "date_bin(CAST($1 AS interval), t, o)"):
        found = bind_keys(f"SELECT {sql} FROM t GROUP BY 1", {1: Interval(0, 7, 0)})
        assert found == f"SELECT {sql.replace('$1', chr(39) + '7 days' + chr(39))} FROM t GROUP BY 1"


def test_parameters_of_keys_alone_are_written() -> None:
    for sql, wanted in {
        _BY: {1, 2},
        "SELECT a FROM t GROUP BY a, width_bucket(x, 0, 9, $2) HAVING sum(y) > $1": {2},
        "SELECT count(*) > $1 FROM t GROUP BY a": set(),
        "WITH q AS (SELECT floor(x / $7) AS f FROM t GROUP BY 1 HAVING count(*) > $1) SELECT f FROM q": {7},
        "SELECT a FROM t WHERE a > $1": set(),
        "SELECT '$1' FROM t GROUP BY a": set(),
        "INSERT INTO t VALUES ($1)": set(),
        "SELECT $1 FROM (((": set(),
    }.items():
        assert find_key_parameters(sql) == wanted, sql
    assert bind_keys(_BY, {2: "a", 3: 4, 4: 40}) is None
    assert bind_keys("SELECT a FROM t GROUP BY a HAVING count(*) > $1", {1: 5}) is None
