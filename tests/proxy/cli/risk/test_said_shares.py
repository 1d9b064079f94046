"""Shares that a question says outright: ratios of counts, a part of a count, means of a column between 0 and 1."""

from fractions import Fraction
from pathlib import Path

import pytest

from planner.catalog.pins import Pins
from planner.functionals.said_shares import ShareThreshold, find_shares
from planner.lower.dialects.duckdb import DUCKDB
from planner.policy.file import Policy
from planner.policy.simulated_catalog import simulate_catalog
from proxy.owner.risk.question_risks import plan_questions

POLICY = """
[source]
url = "duckdb:///nowhere.duckdb"
[accuracy]
tolerance = "15%"
min_rows = 200
[budget]
epsilon_per_predicate = 2.0
epsilon_per_query = 1.0
[tables.patients]
privacy_unit = "row"
refresh = "static"
[tables.patients.columns.ward]
key = { values = ["A", "B", "C"] }
[tables.patients.columns.smoker]
type = "boolean"
filter = true
[tables.patients.columns.died]
bounds = [0, 1]
[tables.patients.columns.age]
bounds = [0, 110]
"""


UNITS = (
    POLICY.partition("[tables.patients.columns.died]")[0]
    .replace("[tables.patients]", "epsilon_per_unit = 9.0\n[tables.patients]")
    .replace('"row"', '"patient"\nmax_groups_per_unit = 2\nrows_per_unit = 9')
    + """
[tables.patients.columns.patient]
type = "integer"
"""
)


def shares(having: str, text: str = POLICY) -> tuple[ShareThreshold, ...]:
    sql = f"SELECT ward FROM patients GROUP BY ward HAVING {having}"
    policy = Policy.parse(text, path=Path("keyhole.toml"))
    catalog = simulate_catalog(policy, sql, pins=Pins(), keys=None).catalog
    (question,) = plan_questions("one", sql, catalog, DUCKDB)
    return find_shares(question.plan.question)


@pytest.mark.parametrize(
    ("having", "share", "above", "column"),
    [
        ("1.0 * count(*) FILTER (WHERE smoker) / count(*) > 0.5", Fraction(1, 2), True, "smoker"),
        ("count(*) FILTER (WHERE smoker) > 0.3 * count(*) + 30", Fraction(3, 10), True, "smoker"),
        ("avg(died) > 0.2 AND count(*) > 500", Fraction(1, 5), True, "died"),
        ("avg(CASE WHEN smoker THEN 1 ELSE 0 END) <= 0.4 AND count(*) >= 50", Fraction(2, 5), False, "smoker"),
    ],
)
def test_shares_are_found(having: str, share: Fraction, above: bool, column: str) -> None:
    (found,) = shares(having)
    assert (found.share, found.is_above, found.columns) == (share, above, (column,))


@pytest.mark.parametrize(
    "having",
    [
        "count(DISTINCT patient) FILTER (WHERE smoker) * 1.0 / count(DISTINCT patient) > 0.4",
        "count(DISTINCT CASE WHEN smoker THEN patient END) > 0.4 * count(DISTINCT patient)",
    ],
)
def test_shares_of_units_are_found(having: str) -> None:
    (found,) = shares(having, UNITS)
    assert (found.share, found.is_above, found.columns) == (Fraction(2, 5), True, ("smoker",))


@pytest.mark.parametrize("having", ["count(*) > 100", "avg(age) > 40 AND count(*) > 500", "sum(age) > 9000"])
def test_what_is_no_share_is_none(having: str) -> None:
    assert shares(having) == ()
