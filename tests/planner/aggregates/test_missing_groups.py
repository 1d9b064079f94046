"""Groups that other groups lack, and rows that a total beside a join would lack."""

from dataclasses import replace

import pytest

from planner.errors import KeyholeError
from planner.statements.classify import classify
from tests.planner.asked import asked
from tests.worlds.retail import REGIONS, retail

_FRAME = "ORDER BY month ROWS BETWEEN {} PRECEDING AND CURRENT ROW"
_SHARE = (
    "SELECT r.region FROM sales s {} regions r ON r.name = s.country GROUP BY r.region "
    "HAVING sum(s.amount) > 0.3 * (SELECT sum(amount) FROM sales)"
)


@pytest.mark.parametrize("called", ["stddev", "stddev_pop"])
def test_a_standard_score_of_one_group_alone_has_no_value(called: str) -> None:
    """The first month of a calendar is alone in its frame, where PostgreSQL divides by 0 or compares NULL."""
    frame = _FRAME.format(5)
    sizes = (
        f"SELECT month, count(*) AS n, avg(count(*)) OVER ({frame}) AS mean, "
        f"{called}(count(*)) OVER ({frame}) AS spread FROM sales GROUP BY month"
    )
    scored = asked(f"SELECT month, (n - mean) / nullif(spread, 0) > 1 AS odd FROM ({sizes}) q")
    lacking = frozenset[int]().union(*(one.cells.indices_without_value for one in scored.functionals[0].cell_reads))
    assert lacking == {0}


def test_a_missing_neighbour_is_no_value_of_any_month_but_the_first() -> None:
    """The formula needs no noise, and costs nothing beside another comparison."""
    before = "SELECT month, count(*) AS n, lag(count(*), 2) OVER (ORDER BY month) AS b FROM sales GROUP BY month"
    question = asked(f"SELECT month FROM ({before}) q WHERE b IS NULL OR n > b")
    (read,) = question.functionals[0].cell_reads
    assert (read.factor, read.empty_value) == (0, 1)
    assert (read.cells.indices_without_groups, read.cells.indices_without_value) == (frozenset({0, 1}), frozenset())


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
def test_a_total_beside_a_join_that_drops_listed_rows_is_refused(join: str) -> None:
    """Rows of a listed country without a region are in the total of all rows, and in no group."""
    without_norway = replace(REGIONS, rows=tuple(row for row in REGIONS.rows if row[0] != "Norway"))
    assert classify(_SHARE.format(join), retail())
    with pytest.raises(KeyholeError, match="KH107"):
        classify(_SHARE.format(join), replace(retail(), public_tables=(without_norway,)))


_PART, _WHOLE = "count(*) FILTER (WHERE gift)", "sum(count(*) FILTER (WHERE gift)) OVER ()"


@pytest.mark.parametrize(
    ("share", "told"),
    [
        (f"1.0 * {_PART} / nullif({_WHOLE}, 0) >= 0.1", "; with > or < it is false there"),
        (f"1.0 * {_PART} / {_WHOLE} <= 0.1", "; with > or < it is false there"),
        (f"1.0 * {_PART} / nullif({_WHOLE}, 0) = 0.1", ""),
        (f"1.0 * {_PART} / nullif({_WHOLE}, 0) > 0.1", None),
        (f"{_PART} >= 0.1 * {_WHOLE}", None),
        ("1.0 * count(*) / nullif(sum(count(*)) OVER (), 0) >= 0.1", None),
    ],
)
def test_a_share_of_nothing_is_told(share: str, told: str | None) -> None:
    """PostgreSQL divides by 0 or has NULL. A total of all rows is 0 only if no group has rows."""
    question = asked(f"SELECT month FROM (SELECT month, {share} AS passes FROM sales GROUP BY month) q WHERE passes")
    found = [one for one in question.warnings if " is 0, where PostgreSQL has NULL" in one]
    assert [one.partition("has NULL")[2] for one in found] == ([] if told is None else [told])


@pytest.mark.parametrize(("mean", "told"), [("sum(amount) / count(*)", True), ("avg(amount)", False)])
def test_means_of_groups_without_values_are_told(mean: str, told: bool) -> None:
    """PostgreSQL's avg leaves a group out whose sum is NULL. A mean of values needs a count of these."""
    grouped = f"WITH g AS (SELECT country, {mean} AS a FROM sales GROUP BY country)"
    question = asked(f"{grouped} SELECT country FROM g WHERE a > (SELECT avg(a) FROM g)", guard="add")
    assert any("leaves its group out" in one for one in question.warnings) is told
    assert any("it is false if a listed group has fewer rows" in one for one in question.warnings)
