"""EXPLAIN in about ten lines: the question, its rates, its tolerance and its bounds, from public inputs alone."""

from dataclasses import replace

import pytest

from planner.catalog.catalog import Table
from planner.explain.balances import QuestionBalance
from planner.explain.brief_text import MOST_WARNINGS, VERBOSE_HINT, explain_briefly
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.question.plan import Plan
from tests.planner.asked import asked
from tests.planner.explain.test_render import APART, KPI, LARGE, NEGATED, PROGRESSIVE, REDUNDANT, planned
from tests.worlds.questions import ACCURACY, CAPPED, CLIPPED, ROWS

DETAILS = ("SQL", "sensitivity", "minimal", "ProBE", "SELECT u0", "Noise of", "looks ")


def _of(sql: str, tolerance: str = "10%") -> Plan:
    return plan_question(asked(sql, tolerance=tolerance), dialect=DUCKDB)


def test_one_threshold_is_told_in_ten_lines() -> None:
    lines = explain_briefly(planned("count(*) > 500", table=CLIPPED), left=None)
    assert lines == (
        "Question over 12 groups of sales (country, month), nothing is spent by EXPLAIN",
        "  Asked: count(*) > 500",
        "  Missed: a group that truly qualifies is missed at most 5 % of the time",
        "  Wrong: a group that fails even with the tolerance is returned at most 10 % of the time, on average at most "
        "1.2 of 12 groups",
        "  Tolerance: count(*) > 500: may err between 450 and 500",
        "  Bounds: of one (customer_id, month) at most 1 of 4 groups count; in each, it counts at most 20 rows; rows "
        "without customer_id or month do not count",
        VERBOSE_HINT,
    )


@pytest.mark.parametrize(
    ("having", "table"),
    [(KPI, CLIPPED), (LARGE, ROWS), (REDUNDANT, CLIPPED), (APART, ROWS), (NEGATED, CLIPPED), (KPI, CAPPED)],
)
def test_the_short_text_is_short_and_has_no_details(having: str, table: Table) -> None:
    made = planned(having, table=table, accuracy=PROGRESSIVE)
    lines = explain_briefly(made, left=None)
    assert len(lines) <= 8 + min(len(made.warnings), MOST_WARNINGS + 1)
    assert not any(detail in line for detail in DETAILS for line in lines)
    assert not any("\n" in line or len(line) > 600 for line in lines)


def test_every_threshold_has_its_tolerance_in_the_analysts_unit() -> None:
    (line,) = (one for one in explain_briefly(planned(KPI, table=CLIPPED), left=None) if "Tolerance" in one)
    assert line == (
        "  Tolerance: count(*) > 500: may err between 450 and 500; avg(amount) > 20: may err between 18 and 20 for "
        "groups of at least 50 rows; count(DISTINCT customer_id) > 30: may err between 27 and 30"
    )
    assert "; ... 60 more" in "\n".join(explain_briefly(planned(LARGE), left=None))


def test_a_guard_that_was_added_is_asked_and_warned_of() -> None:
    text = "\n".join(explain_briefly(_of("SELECT ward FROM visits GROUP BY ward HAVING avg(age) >= 65"), left=None))
    assert "  Asked: avg(age) >= 65 AND count(age) >= " in text
    assert " was added" in text


def test_the_rules_that_rewrote_a_statement_are_named() -> None:
    lines = explain_briefly(planned("count(*) > 500"), left=None, rules=("pull_up_subqueries",))
    assert "  Rewritten by: pull_up_subqueries" in lines


def test_a_scorecard_names_each_predicate() -> None:
    made = _of("SELECT ward, count(*) > 313 AS busy FROM visits GROUP BY ward")
    lines = explain_briefly(made, left=None)
    assert "  Asked: busy = count(*) > 313" in lines
    assert any(line.startswith("  Wrong: a predicate that fails even with the tolerance is shown as") for line in lines)
    assert any(line.endswith("of 3 groups for each predicate") for line in lines)


def test_a_ranking_says_what_it_ranks_by() -> None:
    made = _of("SELECT ward FROM visits GROUP BY ward ORDER BY sum(cost) DESC LIMIT 2", tolerance="2000")
    lines = explain_briefly(made, left=None)
    assert lines[1] == "  Asked: ranked by sum(cost), greatest first: 2 of 3 groups"
    assert lines[2].startswith(
        "  Ranking: one of the first 2 groups that is ahead of the next by more than 2000 in sum"
    )
    assert not any(line.startswith(("  Missed", "  Wrong", "  Asked: true")) for line in lines)


def test_a_condition_without_data_promises_exactness() -> None:
    lines = explain_briefly(planned("count(*) > 5 OR count(*) <= 5"), left=None)
    assert any(line.startswith("  Guarantee: the condition does not depend on data") for line in lines)
    assert not any(line.startswith(("  Missed", "  Bounds")) for line in lines)


def test_what_is_not_promised_is_not_said() -> None:
    text = "\n".join(explain_briefly(planned("count(*) > 500", accuracy=replace(ACCURACY, mechanism="nlm")), left=None))
    assert "  Missed: a group near a threshold may be missed, without a bound" in text
    assert "on average" not in "\n".join(explain_briefly(planned("count(*) <> 500"), left=None))


def test_a_refusal_is_told_with_what_would_fit() -> None:
    made = planned(KPI, table=CLIPPED)
    refused = QuestionBalance(version="1", epsilon=1.999, fitting_settings=("keyhole.tolerance = '40%'",))
    lines = explain_briefly(made, left=refused)
    assert "  Left for these groups: 1.99   -> this question would be refused" in lines
    assert "  Would fit: keyhole.tolerance = '40%'" in lines
    enough = explain_briefly(made, left=QuestionBalance(version="1", epsilon=100.0))
    assert not any("Left for these groups" in line for line in enough)


def test_the_short_text_depends_on_the_plan_alone() -> None:
    assert explain_briefly(planned(KPI), left=None) == explain_briefly(planned(KPI), left=None)
