"""A ranking in words: what it promises, and what it costs. Depends on public inputs alone."""

from collections.abc import Iterator
from typing import Any

from mechanisms.formula import TRUE
from mechanisms.ranking.calibration import RankingCalibration
from planner.explain.rounded_numbers import at_most, percent, plain
from planner.question.plan import Plan
from planner.question.question import Ranked


def ranking_promise(plan: Plan) -> str | None:
    """Return the promise about the order and the end of a ranking; None if the question ranks nothing."""
    ranked, ranking, accuracy = plan.question.ranked, plan.ranking, plan.question.accuracy
    if ranked is None or ranking is None:
        return None
    limit, apart = ranking.task.limit, f"more than {plain(ranked.slack)} in {_by(ranked)}"
    within = f" in its {', '.join(ranked.partition)}" if ranked.partition else ""
    least = percent(min(accuracy.fnr, accuracy.fpr))
    if ranking.task.any_cut:
        return (
            f"wherever all are cut{within}, a group that is {apart} from the next beyond either cut stands on the "
            f"wrong side at most {least} of the time"
        )
    if ranking.task.offset:
        return (
            f"a group that belongs{within} behind the first {ranking.task.offset:,} and within the first {limit:,}, by "
            f"{apart}, is missed at most {percent(accuracy.fnr)} of the time; one that does not, by more than that, is "
            f"returned at most {percent(accuracy.fpr)} of the time"
        )
    if ranking.task.keys <= limit:
        order = f"stand in the wrong order at most {least} of the time"
        return f"all are ranked{within}, and two that are {apart} apart {order}"
    first, last, order = f"the first group{within}", "it", ""
    if limit > 1:
        swapped = percent(ranking.swapped, places=2)
        first, last = f"one of the first {limit:,} groups{within}", "the last of them"
        order = f"; two returned that are so far apart stand in the wrong order at most {swapped} of the time"
    return (
        f"{first} that is ahead of the next by {apart} is missed at most {percent(accuracy.fnr)} of the time; a group "
        f"that is behind {last} by more than that is returned at most {percent(accuracy.fpr)} of the time{order}"
    )


def _by(ranked: Ranked) -> str:
    """Write the value that is ranked by; of a mean, with the least number of values that divides it."""
    divided = "" if ranked.mean is None else f" (divided by {ranked.mean.rows:,} at least)"
    return f"{ranked.functional.name}{divided}"


def ranks_alone(plan: Plan) -> bool:
    """Return True if all groups are ranked, and nothing else decides which are returned."""
    return plan.ranking is not None and plan.minimised.formula == TRUE


def ranking_lines(plan: Plan) -> Iterator[str]:
    """Yield EXPLAIN's lines: the ranking's measure, its cost, and its looks."""
    ranked, ranking = plan.question.ranked, plan.ranking
    if ranked is None or ranking is None:
        return
    cost = f"epsilon {at_most(ranking.worst_case_epsilon)}" if ranking.rate else "costs nothing"
    yield f"  Ranked by {_order_text(ranked, ranking)}   either order within {plain(ranked.slack)}   {cost}"
    if ranking.rate:
        yield f"  Noise of the ranking: {'; '.join(_notes(plan, ranked, ranking))}"


def ranked_text(plan: Plan) -> str | None:
    """Return what a question ranks by, and how many groups it returns: `count(*), greatest first: 2 of 5 groups`."""
    ranked, ranking = plan.question.ranked, plan.ranking
    return None if ranked is None or ranking is None else _order_text(ranked, ranking)


def _order_text(ranked: Ranked, ranking: RankingCalibration) -> str:
    task = ranking.task
    way = "greatest" if task.descending else "least"
    parts = f" in each of {task.partitions:,} {', '.join(ranked.partition)}" if ranked.partition else ""
    behind = f" behind the first {task.offset:,}" if task.offset else ""
    return f"{_by(ranked)}, {way} first: {task.limit:,} of {task.keys:,} groups{parts}{behind}"


def _notes(plan: Plan, ranked: Ranked, ranking: RankingCalibration) -> Iterator[str]:
    functional = ranked.functional
    yield f"sensitivity {plain(functional.sensitivity * functional.unit_size)}"
    if ranking.looks:
        first = float(ranking.looks[0].rate) * functional.sensitivity
        yield f"looks {len(ranking.looks) + 1} times at most, first at epsilon {at_most(first)}"
    elif not plan.question.table.is_row_unit:
        yield _why_one_look(ranking)
    yield "drawn for this question alone"


def _why_one_look(ranking: RankingCalibration) -> str:
    if ranking.task.parts_once:
        return "one look, so that one privacy unit pays for as many groups as are returned and no more"
    return "one look, as the order is cut in several places"


def ranking_json(plan: Plan) -> dict[str, Any] | None:
    """Return the ranking for a program; null if the question ranks nothing. `tolerance` is in the analyst's unit."""
    ranked, ranking = plan.question.ranked, plan.ranking
    if ranked is None or ranking is None:
        return None
    return {
        "by": ranked.functional.name,
        "divided_by_at_least": None if ranked.mean is None else ranked.mean.rows,
        "order": "greatest first" if ranking.task.descending else "least first",
        "limit": ranking.task.limit,
        "offset": ranking.task.offset,
        "partition": list(ranked.partition),
        "tolerance": float(ranked.slack),
        "swapped_at_most": ranking.swapped,
        "epsilon": ranking.worst_case_epsilon,
        "looks": len(ranking.looks) + (ranking.rate > 0),
    }
