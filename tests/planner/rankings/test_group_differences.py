"""Rankings by differences from other groups: sensitivities by brute force, places of missing values, refusals."""

from itertools import product

import numpy as np
import pytest

from mechanisms.ranking.calibration import bound_unit_loss, calibrate_ranking
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.question.question import Ranked
from planner.rankings.mean_scores import compute_scores
from planner.rankings.ranked import make_ranking_task
from tests.planner.asked import asked, refusal

BY_MONTH = "SELECT month FROM sales GROUP BY month ORDER BY {} DESC NULLS LAST LIMIT 3"
DIFFERENCES = (
    "count(*) - lag(count(*)) OVER (ORDER BY month)",
    "lag(count(*)) OVER (ORDER BY month)",
    "count(*) - 2 * lead(count(*), 2) OVER (ORDER BY month)",
    "count(*) + lag(count(*), 1, 0) OVER (ORDER BY month)",
    "sum(count(*)) OVER (ORDER BY month ROWS 2 PRECEDING)",
    "count(*) - sum(count(*)) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)",
    "2 * count(*) - sum(count(*)) OVER (ORDER BY month ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "count(*) - count(*) FILTER (WHERE gift) - lag(count(*)) OVER (ORDER BY month)",
)


def rank_by(text: str) -> Ranked:
    ranked = asked(BY_MONTH.format(text), tolerance="1000").ranked
    assert ranked is not None
    return ranked


@pytest.mark.parametrize("text", DIFFERENCES)
def test_what_a_unit_in_one_cell_changes_is_attained_and_never_more(text: str) -> None:
    """Brute force: a unit raises or lowers each sum of one cell by its sensitivity, in every place of the calendar."""
    ranked = rank_by(text)
    assert ranked.cells is not None
    sums = ranked.cells.sums
    keys = ranked.cells.common.shape[0]
    before = np.full((len(sums), keys), 10_000, dtype=np.int64)
    value = compute_scores(ranked, before)
    largest = together = 0
    for cell, signs in product(range(keys), product((-1, 0, 1), repeat=len(sums))):
        after = before.copy()
        after[:, cell] += np.array(signs) * [one.sensitivity for one in sums]
        change = np.abs(compute_scores(ranked, after) - value)
        largest, together = max(largest, int(change.max())), max(together, int(change.sum()))
    # parts of one sum in one group are added up as if they were different sums
    assert largest <= ranked.functional.sensitivity
    assert together <= ranked.cells.moved
    if "ROWS BETWEEN 1 PRECEDING" not in text:
        assert (largest, together) == (ranked.functional.sensitivity, ranked.cells.moved)


@pytest.mark.parametrize(
    ("order", "first"), [("DESC", True), ("DESC NULLS LAST", False), ("ASC", False), ("ASC NULLS FIRST", True)]
)
def test_the_first_month_stands_where_null_does(order: str, first: bool) -> None:
    ranked = asked(
        BY_MONTH.format(DIFFERENCES[0]).replace("DESC NULLS LAST", order),
        tolerance="1000",
    ).ranked
    assert ranked is not None
    assert ranked.cells is not None
    values = compute_scores(ranked, np.arange(13, dtype=np.int64)[np.newaxis] ** 2)
    ordered = np.argsort(-values if ranked.descending else values, kind="stable").tolist()
    assert ordered.index(0) == (0 if first else 12)
    falling = list(range(12, 0, -1)) if order.startswith("DESC") else list(range(1, 13))
    assert [one for one in ordered if one] == falling


def test_a_month_pays_for_two_values_and_a_unit_for_each_of_its_months() -> None:
    question = asked(BY_MONTH.format(DIFFERENCES[0]), tolerance="1000")
    assert question.ranked is not None
    task = make_ranking_task(question, question.ranked)
    calibrated = calibrate_ranking(task)
    alone = calibrate_ranking(make_ranking_task(question, rank_by("count(*)")))
    assert (task.sensitivity, task.moved, calibrated.looks) == (100, 200, ())
    assert alone.looks
    assert calibrated.worst_case_epsilon == pytest.approx(200 * float(calibrated.noise_rate))
    assert bound_unit_loss(calibrated, groups=5, signed=True) == pytest.approx(5 * calibrated.worst_case_epsilon)
    plan = plan_question(question, dialect=DUCKDB)
    assert plan.worst_case_epsilon == calibrated.worst_case_epsilon


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("count(*) - avg(count(*)) OVER ()", "earlier or later"),
        ("avg(count(*)) OVER (ORDER BY month ROWS 2 PRECEDING)", "earlier or later"),
        ("count(*)::numeric / lag(count(*)) OVER (ORDER BY month)", "small divisor"),
        ("coalesce(count(*) - lag(count(*)) OVER (ORDER BY month), 0)", "sums"),
    ],
)
def test_other_values_of_groups_are_refused_with_what_to_rank_by(text: str, word: str) -> None:
    refused = refusal(BY_MONTH.format(text))
    assert refused is not None
    assert refused.code == "KH204"
    assert word in (refused.detail or "")
    assert "ank by" in (refused.hint or "")


def test_a_difference_among_the_groups_that_having_leaves_is_refused() -> None:
    """There PostgreSQL's window reads the groups that HAVING leaves alone."""
    refused = refusal(
        "SELECT month FROM sales GROUP BY month HAVING count(*) > 100 "
        "ORDER BY count(*) - lag(count(*)) OVER (ORDER BY month) LIMIT 3"
    )
    assert refused is not None
    assert refused.code == "KH204"
    assert "beside HAVING" in refused.message
