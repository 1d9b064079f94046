"""A ranking in words: its promise and its cost. Depends on public inputs alone."""

from collections.abc import Iterator
from typing import Any

from mechanisms.formula import TRUE
from mechanisms.ranking.calibration import RankingCalibration
from planner.explain.rounded_numbers import spell_number, write_ceiling, write_percent
from planner.question.plan import Plan
from planner.question.question import Ranked


def write_ranking_promise(plan: Plan) -> str | None:
    """Return the ranking's promise: how often the order is wrong, or the wrong groups are returned.

    Return None if the question ranks nothing.
    """
    ranked, ranking, accuracy = plan.question.ranked, plan.ranking, plan.question.accuracy
    if ranked is None or ranking is None:
        return None
    limit, apart = ranking.task.limit, f"more than {spell_number(ranked.tolerance_value)} in {_write_measure(ranked)}"
    within = f" in its {', '.join(ranked.partition)}" if ranked.partition else ""
    least = write_percent(min(accuracy.fnr, accuracy.fpr))
    if ranking.task.allows_any_cut:
        return (
            f"in every part of the order{within}, a group that is {apart} from the next group beyond either end "
            f"stands outside at most {least} of the time"
        )
    if ranking.task.offset:
        return (
            f"a group that belongs{within} behind the first {ranking.task.offset:,} and within the first {limit:,}, by "
            f"{apart}, is missed at most {write_percent(accuracy.fnr)} of the time; one that does not, by more than "
            "that, is "
            f"returned at most {write_percent(accuracy.fpr)} of the time"
        )
    if ranking.task.keys <= limit:
        order = f"stand in the wrong order at most {least} of the time"
        return f"all are ranked{within}, and two that are {apart} apart {order}"
    first, last, order = f"the first group{within}", "it", ""
    if limit > 1:
        swapped = write_percent(ranking.swap_rate, places=2)
        first, last = f"one of the first {limit:,} groups{within}", "the last of them"
        order = f"; two returned that are so far apart stand in the wrong order at most {swapped} of the time"
    return (
        f"{first} that is ahead of the next by {apart} is missed at most {write_percent(accuracy.fnr)} of the time; a "
        "group "
        f"that is behind {last} by more than that is returned at most {write_percent(accuracy.fpr)} of the time{order}"
    )


def _write_measure(ranked: Ranked) -> str:
    """Return the words for the ranked value; for a mean, with the least number of values that divides it."""
    divided = "" if ranked.mean is None else f" (divided by {ranked.mean.least_rows:,} at least)"
    return f"{ranked.functional.name}{divided}"


def is_ranking_only(plan: Plan) -> bool:
    """Return True if all groups are ranked, and nothing else decides which are returned."""
    return plan.ranking is not None and plan.minimised.formula == TRUE


def write_ranking_lines(plan: Plan) -> Iterator[str]:
    """Yield EXPLAIN's lines: the ranking's measure, its cost, and its looks."""
    ranked, ranking = plan.question.ranked, plan.ranking
    if ranked is None or ranking is None:
        return
    cost = f"epsilon {write_ceiling(ranking.worst_case_epsilon)}" if ranking.noise_rate else "costs nothing"
    within = spell_number(ranked.tolerance_value)
    yield f"  Ranked by {_write_order(ranked, ranking)}   either order within {within}   {cost}"
    if ranking.noise_rate:
        yield f"  Noise of the ranking: {'; '.join(_write_notes(plan, ranked, ranking))}"


def write_ranking(plan: Plan) -> str | None:
    """Return the ranked value and the number of returned groups: `count(*), greatest first: 2 of 5 groups`."""
    ranked, ranking = plan.question.ranked, plan.ranking
    return None if ranked is None or ranking is None else _write_order(ranked, ranking)


def _write_order(ranked: Ranked, ranking: RankingCalibration) -> str:
    task = ranking.task
    way = "greatest" if task.descending else "least"
    parts = f" in each of {task.partitions:,} {', '.join(ranked.partition)}" if ranked.partition else ""
    behind = f" behind the first {task.offset:,}" if task.offset else ""
    return f"{_write_measure(ranked)}, {way} first: {task.limit:,} of {task.keys:,} groups{parts}{behind}"


def _write_notes(plan: Plan, ranked: Ranked, ranking: RankingCalibration) -> Iterator[str]:
    functional = ranked.functional
    yield f"sensitivity {spell_number(functional.sensitivity * functional.unit_size)}"
    if ranking.looks:
        first = float(ranking.looks[0].rate) * functional.sensitivity
        yield f"looks {len(ranking.looks) + 1} times at most, first at epsilon {write_ceiling(first)}"
    elif ranked.cells is not None:
        moved = spell_number(ranked.cells.moved * functional.unit_size)
        yield f"a group counts in several values, which one unit changes together by at most {moved}: all are charged"
    elif not plan.question.table.is_row_unit:
        yield _explain_one_look(ranking)
    yield "drawn for this question alone"


def _explain_one_look(ranking: RankingCalibration) -> str:
    if ranking.task.has_one_edge:
        return "one look, so that one privacy unit pays for as many groups as are returned and no more"
    return "one look, as the order is cut in several places"


def write_ranking_json(plan: Plan) -> dict[str, Any] | None:
    """Return the ranking as a JSON document, None if the question ranks nothing.

    `tolerance` is in the analyst's unit.
    """
    ranked, ranking = plan.question.ranked, plan.ranking
    if ranked is None or ranking is None:
        return None
    return {
        "by": ranked.functional.name,
        "divided_by_at_least": None if ranked.mean is None else ranked.mean.least_rows,
        "order": "greatest first" if ranking.task.descending else "least first",
        "limit": ranking.task.limit,
        "offset": ranking.task.offset,
        "partition": list(ranked.partition),
        "tolerance": float(ranked.tolerance_value),
        "swapped_at_most": ranking.swap_rate,
        "epsilon": ranking.worst_case_epsilon,
        "looks": len(ranking.looks) + (ranking.noise_rate > 0),
    }
