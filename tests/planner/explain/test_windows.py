"""Comparisons with other groups are explained, also where they cost nothing."""

import json

import pytest

from planner.explain.brief_text import explain_briefly
from planner.explain.document import explain_json
from planner.explain.render import explain_text
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
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
