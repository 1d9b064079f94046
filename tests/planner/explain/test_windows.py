"""Comparisons with other groups are explained, also where they cost nothing."""

import json

import pytest

from planner.explain.brief_text import explain_briefly
from planner.explain.document import explain_json
from planner.explain.render import explain_text
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from tests.in_turn import in_turn
from tests.planner.asked import asked

_TOTAL = "SELECT country FROM sales GROUP BY country HAVING sum(amount) > 0.02 * (SELECT sum(amount) FROM sales)"
_NEIGHBOUR = "SELECT month, count(*) > 1.2 * lag(count(*)) OVER (ORDER BY month) AS up FROM sales GROUP BY month"
_MEAN = (
    "SELECT month FROM (SELECT month, count(*) AS n, avg(count(*)) OVER (ORDER BY month ROWS 2 PRECEDING) AS m "
    "FROM sales GROUP BY month) q WHERE n > m + 50 AND m > 400"
)
_NOTHING = (
    "SELECT ward FROM visits WHERE ward = 'A' GROUP BY ward "
    "HAVING (SELECT count(*) FROM visits WHERE ward = 'A') - count(*) > 9"
)


@pytest.mark.parametrize("sql", [_TOTAL, _NEIGHBOUR, _MEAN, _NOTHING])
def test_both_depths_and_json(sql: str) -> None:
    made = plan_question(asked(sql), dialect=DUCKDB)
    assert bool(made.worst_case_epsilon) is (sql != _NOTHING)
    assert any("windows run over every listed group" in line for line in explain_briefly(made, left=None))
    assert any(line.lstrip().startswith("Noise of") for line in explain_text(made, left=None)) is (sql != _NOTHING)
    document = json.loads(json.dumps(explain_json(made, left=None), default=str))
    assert document["worst_case_epsilon"] == made.worst_case_epsilon
    assert sum(one["epsilon"] for one in document["common_sums"]) >= made.worst_case_epsilon
    assert not made.compared


_SIZES = "SELECT month FROM (SELECT month, count(*) AS n, sum(amount) AS s, {} FROM sales GROUP BY month) q WHERE {}"
_GRID = "SELECT country, month, count(*) > 0.1 * sum(count(*)) OVER ({}) AS p FROM sales GROUP BY country, month"
_BY_MONTH, _BOTH = "OVER (ORDER BY month)", "OVER (PARTITION BY country ORDER BY month)"


@in_turn(
    ("sql", "read", "readers"),
    [
        (_TOTAL, 4, 4),
        (_NEIGHBOUR, 2, 2),
        (_MEAN, 3, 3),
        (_SIZES.format(f"lag(count(*)) {_BY_MONTH} AS b, lead(count(*)) {_BY_MONTH} AS c", "n > b AND n > c"), 2, 3),
        (_SIZES.format(f"first_value(count(*)) {_BY_MONTH} AS b", "n > 2 * b"), 2, 13),
        (_SIZES.format(f"sum(count(*)) {_BY_MONTH} AS b", "b > 90000"), 13, 13),
        (_SIZES.format(f"lag(count(*), 12) {_BY_MONTH} AS b", "n > 2 * b"), 2, 2),
        (_SIZES.format("max(count(*)) OVER () AS b", "n > 0.5 * b"), 13, 13),
        (_SIZES.format("min(count(*)) OVER (ORDER BY month ROWS 3 PRECEDING) AS b", "b > 9000"), 4, 4),
        (_GRID.format(""), 52, 52),
        (_GRID.format("PARTITION BY month"), 4, 4),
        (_GRID.format("PARTITION BY month").replace("AS p", f"AS p, sum(count(*)) {_BOTH} > 9000 AS q"), 13, 16),
    ],
)
def test_it_says_how_many_groups_are_read(sql: str, read: int, readers: int) -> None:
    made = plan_question(asked(sql), dialect=DUCKDB)
    wanted = f"a comparison reads up to {read} groups, and a group counts in up to {readers} of them"
    assert sum(wanted in line for line in explain_text(made, left=None)) == 1
    (noise,) = explain_json(made, left=None)["common_sums"]
    assert noise["groups_read"] == {"read": read, "readers": readers}


def test_a_sum_of_its_own_group_alone_says_nothing_of_others() -> None:
    sql = _SIZES.format("sum(count(*)) OVER () AS total", "n > 0.2 * total AND s > 100000")
    first, second = explain_json(plan_question(asked(sql), dialect=DUCKDB), left=None)["common_sums"]
    assert first["groups_read"] == {"read": 13, "readers": 13}
    assert second["groups_read"] is None


def test_readings_of_one_noise_have_one_price() -> None:
    made = plan_question(asked(_MEAN.replace("n > m + 50", "n > 1.2 * m")), dialect=DUCKDB)
    rows = [line for line in explain_text(made, left=None) if line.startswith(("  A  ", "  B  "))]
    assert "100% of it" in rows[0]
    assert rows[1].endswith("read off the noise of A")
