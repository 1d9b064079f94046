"""The ranking of a question's keys, the last step. It orders the keys that passed the question's formula."""

import numpy as np

from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Noise, Outcome
from mechanisms.ranking.run import Ranking, number_within_partition, rank_keys
from planner.question.plan import Plan
from planner.rankings.mean_scores import compute_scores


def rank_passed_keys(plan: Plan, outcome: Outcome, values: Integers, *, noise: Noise) -> Ranking | None:
    """Rank the keys that passed, with new noise. Return None if the question has no ranking.

    Guarantee: only values of keys that passed are used, and none if the mechanism stopped without an answer. Its noise
    is drawn for this question alone and stored for no other.

    Parameters:
        values: the exact values of all functionals. The last row or two are those of the ranking.
    """
    if plan.ranking is None:
        return None
    ranked, partition = plan.question.ranked, _find_partitions(plan)
    assert ranked is not None
    exact = compute_scores(ranked, values)
    return rank_keys(
        plan.ranking, exact, taking_part=outcome.passed, keeps_path=False, noise=noise, partition=partition
    )


def rank_without_data(plan: Plan, passed: Booleans) -> Ranking | None:
    """Return the ranking if no data is needed: of at most one key, or with LIMIT 0. Return None otherwise."""
    if plan.ranking is None:
        return None
    members, partition = np.flatnonzero(passed), _find_partitions(plan)
    within = np.zeros(members.size, dtype=np.int64) if partition is None else partition[members]
    order = np.argsort(within, kind="stable")
    places = number_within_partition(within[order])
    kept = places <= plan.ranking.task.limit
    return Ranking(ranked_keys=members[order][kept], places=places[kept], epsilon=np.zeros(passed.shape), path=None)


def _find_partitions(plan: Plan) -> Integers | None:
    """Return the partition number of each key in the ranking. Return None if there is only one partition."""
    ranked = plan.question.ranked
    return None if ranked is None or not ranked.partition else plan.question.keys.number_values(ranked.partition)
