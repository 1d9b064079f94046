"""EXPLAIN and guarantees of rankings, from public inputs alone."""

from dataclasses import replace

import pytest

from planner.explain.document import explain_json
from planner.explain.guarantee import write_guarantee, write_guarantee_json
from planner.explain.render import explain_text
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.question.plan import Plan
from tests.planner.asked import asked
from tests.worlds.retail import retail


def planned(sql: str, tolerance: str = "100", mechanism: str = "progressive") -> Plan:
    return plan_question(asked(sql, tolerance=tolerance, mechanism=mechanism), dialect=DUCKDB)


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        (
            "SELECT ward FROM visits GROUP BY ward ORDER BY count(*) DESC LIMIT 1",
            "the first group that is ahead of the next by more than 100 in count(*) is missed at most 5 % of the time; "
            "a group that is behind it by more than that is returned at most 10 % of the time; at most 0.05 epsilon.",
        ),
        (
            "SELECT ward FROM visits GROUP BY ward ORDER BY count(*)",
            "all are ranked, and two that are more than 100 in count(*) apart stand in the wrong order at most 5 % of "
            "the time; at most 0.04 epsilon.",
        ),
        (
            "SELECT ward FROM visits GROUP BY ward HAVING sum(cost) > 9000 ORDER BY count(*) DESC LIMIT 2",
            "a group that truly qualifies is missed at most 5 % of the time; one that fails even with a slack of 100 "
            "is returned at most 10 % of the time; of what is left, one of the first 2 groups that is ahead of the "
            "next by more than 100 in count(*) is missed at most 5 % of the time; a group that is behind the last of "
            "them by more than that is returned at most 10 % of the time; two returned that are so far apart stand in "
            "the wrong order at most 4.69 % of the time; at most 2.97 epsilon.",
        ),
        (
            "SELECT ward FROM visits WHERE ward = 'A' GROUP BY ward ORDER BY count(*) DESC LIMIT 5",
            "the condition does not depend on data: the answer is exact and nothing was spent.",
        ),
    ],
)
def test_the_guarantee_says_who_is_missed_and_who_is_returned_wrongly(sql: str, sentence: str) -> None:
    assert write_guarantee(planned(sql)).startswith(sentence)


def test_explain_says_what_is_ranked_by_and_compares_with_nothing() -> None:
    made = planned("SELECT ward FROM visits GROUP BY ward ORDER BY sum(cost) DESC LIMIT 2", "2000")
    lines = explain_text(made, left=None)
    assert lines[1] == "  Ranked by sum(cost), greatest first: 2 of 3 groups   either order within 2000   epsilon 8.43"
    assert lines[2].startswith("  Noise of the ranking: sensitivity 5000; looks 9 times at most, first at epsilon 0.27")
    assert lines[3] == "  Worst case 8.43 with mechanism ranking"
    assert not any(line.startswith(("  true", "  Wrong groups")) for line in lines)
    document = explain_json(made, left=None)
    assert document["one_shot_epsilon"] is None
    assert document["ranking"] == write_guarantee_json(made)["ranking"]
    assert document["ranking"]["looks"] == 9


def test_thresholds_beside_a_ranking_are_explained_as_ever() -> None:
    made = planned("SELECT ward FROM visits GROUP BY ward HAVING count(*) > 900 ORDER BY sum(cost) DESC LIMIT 2", "500")
    lines = explain_text(made, left=None)
    assert lines[1].startswith("  A        minimal")
    assert lines[3].startswith("  Ranked by sum(cost), greatest first: 2 of 3 groups")
    assert " with mechanism progressive and ranking (separate sums " in lines[5]
    together = made.calibration.worst_case_epsilon + made.ranking.worst_case_epsilon if made.ranking else 0.0
    assert made.worst_case_epsilon == pytest.approx(together)
    assert made.worst_case_epsilon >= together


def test_a_unit_in_more_groups_than_are_returned_takes_one_look() -> None:
    """A customer's month counts in one country, or in five."""
    sql = "SELECT country FROM sales GROUP BY country ORDER BY count(*) DESC LIMIT 2"
    catalog = retail()
    wider = replace(catalog, tables=tuple(replace(table, groups_per_unit=5) for table in catalog.tables))
    one, many = (
        explain_text(plan_question(asked(sql, catalog=known, tolerance="100"), dialect=DUCKDB), left=None)
        for known in (catalog, wider)
    )
    assert "looks 9 times at most" in one[2]
    assert "one look, so that one privacy unit pays for as many groups as are returned and no more" in many[2]
