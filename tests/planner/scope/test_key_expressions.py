"""What Keyhole computes of key values is what PostgreSQL groups by, in bounded time, or it is refused."""

import random
from collections.abc import Iterator

import psycopg
import pytest

from planner.catalog.catalog import SqlType
from planner.scope.key_expressions import evaluate_rows
from planner.scope.key_values import NotExact, type_value
from tests.effort import rounds
from tests.planner.asked import asked, refusal, select


@pytest.fixture(scope="module")
def connection(postgres_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as opened:
        yield opened


_HOURS = range(24)
_NUMBERS = ["1", "2", "3", "7", "1.5", "0.25", "3.0", "7.00", "0.1", "12", "1e1", "5000", "1.2", "0.9"]


def _expression(random_: random.Random, depth: int) -> str:
    if depth == 0:
        return random_.choice(["hour", "hour", "(hour + 1)", *_NUMBERS])
    one, other = (_expression(random_, random_.randint(0, depth - 1)) for _ in range(2))
    return random_.choice(
        [
            f"({one} / {random_.choice(_NUMBERS)})",
            f"({one} {random_.choice('+-*/%')} {other})",
            f"({one} / {other})",
            f"floor({one})",
            f"(-{one})",
            f"({one})::int",
            f"({one})::numeric",
            f"({one} {random_.choice(['=', '<', '>='])} {other})",
            f"(CASE WHEN hour < {random_.randint(1, 23)} THEN {one} ELSE {other} END)",
            f"nullif({one}, {other})",
            f"coalesce({one}, {other})",
        ]
    )


def _ours(expression: str) -> list[int] | None:
    """For each hour the first of its group; None where refused."""
    tree = select(f"SELECT {expression}")
    found = evaluate_rows(tree.expressions[0], [{"hour": type_value(hour, SqlType.INTEGER)} for hour in _HOURS])
    first: dict[object, int] = {}
    return [first.setdefault((one.kind, one.raw), hour) for hour, one in zip(_HOURS, found, strict=True)]


def test_numbers_fall_into_postgresql_s_groups(connection: psycopg.Connection) -> None:
    """2,000 random expressions, 200 at quick, a third of which divide so that PostgreSQL rounds.

    What fails there is not judged.
    """
    random_ = random.Random(13)
    judged = divided = 0
    cases = rounds(2_000, quick=200)
    for _ in range(cases):
        expression = _expression(random_, random_.choice([1, 2, 2, 3]))
        try:
            ours = _ours(expression)
        except NotExact:
            continue
        query = f"SELECT min(hour) OVER (PARTITION BY x) FROM (SELECT hour, {expression} AS x FROM "
        query += "generate_series(0, 23) hour) q ORDER BY hour"
        try:
            theirs = [first for (first,) in connection.execute(query.encode()).fetchall()]
        except psycopg.Error:
            continue
        assert ours == theirs, expression
        judged += 1
        divided += "/" in expression
    assert judged >= cases * 3 // 8
    assert divided >= cases // 10


def test_a_rounded_quotient_is_only_grouped_by() -> None:
    for expression in ("hour / 7.0", "hour / 3.0", "CASE WHEN hour IS NULL THEN 1 ELSE hour END / 3.0"):
        assert asked(f"SELECT {expression} FROM visits GROUP BY 1 HAVING count(*) > 1").keys.size == 24
    for expression in (
        "floor(hour / 3.0 * 3.0)",
        "hour / 7.0 * 7.0 = hour",
        "(hour / 3.0 * 3.0) % 1",
        "hour / 3.0 = 1 / 3.0",
        "-(hour / 3.0)",
        "hour / 3.0 / 2",
        "(hour / 3.0)::text",
        "hour / 3.0 IN (1, 2)",
        "nullif(hour / 3.0, 1)",
        "CASE WHEN hour = 1 THEN 1.6 / 1.2 WHEN hour = 2 THEN 4 / 3.0 ELSE hour / 7.0 END",
        "hour / 3.0000000000000000000",
        "100000001 / 8192.0 * hour",
    ):
        error = refusal(f"SELECT {expression} FROM visits GROUP BY 1 HAVING count(*) > 1")
        assert error is not None, expression
        assert error.code == "KH202", expression


def test_a_pattern_with_a_percent_sign_is_not_read_as_another() -> None:
    for statement in (
        "SELECT to_char(month, '%m') FROM sales GROUP BY 1",
        "SELECT to_char(month, $$%Y$$) FROM sales GROUP BY 1",
        "SELECT to_char(month, E'%m') FROM sales GROUP BY 1",
        "SELECT to_char(month, '%Y-MM') AS x FROM sales GROUP BY x",
        "SELECT month, to_char(month, 'MM') FROM sales GROUP BY 1, to_char(month, '%m')",
        "SELECT to_char(month, '%m'), to_char(month, 'MM') FROM sales GROUP BY to_char(month, 'MM')",
        "SELECT x FROM (SELECT to_char(month, '%m') AS x, country FROM sales) q GROUP BY x",
        "WITH q AS (SELECT to_char(month, '%m') AS x FROM sales) SELECT x FROM q GROUP BY x",
    ):
        error = refusal(f"{statement} HAVING count(*) > 1")
        assert error is not None, statement
        assert error.code == "KH202", (statement, error)
    told = "SELECT to_char(month, 'MM') FROM sales WHERE country LIKE '%Y' GROUP BY 1 HAVING count(*) > 1"
    assert asked(told).keys.size > 0


def _nested(start: str, form: str, levels: int) -> str:
    for _ in range(levels):
        start = form.format(start)
    return start


def test_nesting_costs_no_more_than_its_length() -> None:
    """Twice the work for each level would be 32,768 times that of one level, for each hour."""
    for start, form in (
        ("(hour BETWEEN 0 AND 11)", "({} BETWEEN false AND true)"),
        ("hour", "(CASE {} WHEN 1 THEN 2 WHEN 2 THEN 3 ELSE 1 END)"),
    ):
        asked(f"SELECT {_nested(start, form, 15)} FROM visits GROUP BY 1 HAVING count(*) > 1")


def test_parts_times_values_are_bounded() -> None:
    error = refusal(f"SELECT {' + '.join(['hour'] * 150)} FROM visits GROUP BY 1 HAVING count(*) > 1")
    assert error is None
    several = " || ".join(["ward"] * 60 + ["hour", "day::text"])
    error = refusal(f"SELECT {several} FROM visits GROUP BY 1 HAVING count(*) > 1")
    assert error is not None
    assert error.code == "KH202"
