"""Predicates compared with each other, and quotients of integers: what PostgreSQL says of every group and of none."""

import random

from tests.effort import rounds
from tests.planner.aggregates.test_arithmetic import World, world
from tests.planner.asked import asked, refusal

__all__ = ("world",)  # the fixture
_MORE = ("age > 2", "insured", "cost >= 1", "age IS NULL")


def _never_null(random_: random.Random) -> str:
    counted = random_.choice(["count(*)", "count(age)", "count(cost) FILTER (WHERE insured)"])
    return f"({counted} {random_.choice(['>', '>=', '<', '<=', '='])} {random_.randint(0, 4)})"


def _predicate(random_: random.Random) -> str:
    threshold = random_.randint(0, 6)
    return random_.choice(
        [
            _never_null(random_),
            _never_null(random_),
            f"(sum(age) > {threshold})",
            f"(avg(cost) {random_.choice(['>', '<='])} {threshold / 2})",
            f"bool_and({random_.choice(_MORE)})",
            f"({_never_null(random_)} AND NOT avg(age) > {threshold})",
        ]
    )


def _compared(random_: random.Random) -> str:
    one, other = _predicate(random_), _predicate(random_)
    sure, also = _never_null(random_), _never_null(random_)
    return random_.choice(
        [
            f"{one} = {other}",
            f"{one} <> {other}",
            f"NOT ({one} = {other})",
            f"({one} <> {other}) = {_never_null(random_)}",
            f"{sure} IS DISTINCT FROM {also}",
            f"{sure} IS NOT DISTINCT FROM {also}",
            f"NOT ({sure} IS DISTINCT FROM {also})",
            f"{sure} IS DISTINCT FROM true",
            f"false IS NOT DISTINCT FROM {sure}",
            f"({one} = {other}) IS TRUE",
            f"{sure} IS NOT UNKNOWN",
            f"{sure} IS UNKNOWN OR {one}",
        ]
    )


def _quotient(random_: random.Random) -> str:
    where = random_.choice(_MORE)
    operator = random_.choice(["=", "<>", "<", "<=", ">", ">="])
    counted = f"count(*) FILTER (WHERE {where})"
    threshold = random_.choice([str(random_.randint(-3, 4)), f"{random_.uniform(-3, 4):.1f}"])
    percent = random_.randint(0, 10) * 10
    return random_.choice(
        [
            f"{counted} * 100 / count(*) {operator} {percent}",
            f"100 * {counted} / count(*) {operator} {percent}",
            f"100 * ({counted} / count(*)) {operator} {percent}",
            f"(sum(age) - 3 * count(age)) / count(*) {operator} {threshold}",
            f"(count(*) - 7) / 2 {operator} {threshold}",
            f"-(count(*) / 2) {operator} {threshold}",
            f"(count(*) - 5) / -2 {operator} {threshold}",
            f"(sum(CASE WHEN {where} THEN 1 ELSE 0 END) * 100 / count(*))::numeric {operator} {percent}",
            f"round(100 * {counted} / nullif(count(*), 0)) {operator} {percent}",
            f"{percent} {operator} ({counted} * 100) / count(*)",
            f"trunc(avg(cost - 2)) {operator} {threshold}",
            f"trunc(avg(cost - 1), 1) {operator} {threshold}",
        ]
    )


def _ratio(random_: random.Random) -> str:
    above = random_.choice(["sum(cost) FILTER (WHERE insured)", "sum(age)", "count(*) FILTER (WHERE insured)"])
    below = random_.choice(["sum(cost)", "sum(age)", "sum(CASE WHEN insured THEN cost END)"])
    operator = random_.choice(["<", "<=", ">", ">=", "="])
    divided = f"1.0 * {above} / nullif({below}, 0)"
    return f"{divided} {operator} {random_.randint(1, 12) / 4} AND {below} >= {random_.choice(['0.5', '1', '3'])}"


def test_what_is_accepted_agrees_with_postgresql(world: World) -> None:
    """Guards that are added are of one value here, which is what SQL's NULL says."""
    random_ = random.Random(20260201)
    accepted = {_compared: 0, _quotient: 0, _ratio: 0}
    cases = rounds(600, quick=60)
    for number in range(cases):
        kind = (_compared, _quotient, _ratio)[number % 3]
        having = kind(random_)
        sql = f"SELECT ward FROM visits GROUP BY ward HAVING {having}"
        error = refusal(sql, tolerance="1", min_rows="1")
        if error is not None:
            assert error.code in ("KH220", "KH206", "KH303"), (having, error.code, error.message)
            continue
        accepted[kind] += 1
        assert world.decided(asked(sql, tolerance="1", min_rows="1")) == world.held(having), having
    assert min(accepted.values()) > cases // 6, accepted
