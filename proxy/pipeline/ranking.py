"""The last part of a question that ranks its keys: those that its formula left are put in their order."""

import numpy as np

from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Noise, Outcome
from mechanisms.ranking.run import Ranking, rank_keys
from planner.functionals.per_key_offsets import LIMIT
from planner.question.plan import Plan


def rank(plan: Plan, outcome: Outcome, values: Integers, *, noise: Noise) -> Ranking | None:
    """The ranking of the keys that passed; None where the question ranks nothing.

    Guarantee: no key's value is looked at that did not pass, and none where the mechanism stopped without an answer.
    What is revealed is drawn for this question alone and kept for no other.

    Parameters:
        values: the exact values of all functionals that were computed, the one that is ranked by in the last row.
    """
    if plan.ranking is None:
        return None
    exact = np.clip(values[-1], -LIMIT, LIMIT)
    return rank_keys(plan.ranking, exact, taking_part=outcome.passed, keep_path=False, noise=noise)


def rank_in_public(plan: Plan, passed: Booleans) -> Ranking | None:
    """The ranking that is known without data: of one key, of none, or of the first none."""
    if plan.ranking is None:
        return None
    first = np.flatnonzero(passed)[: plan.ranking.task.limit]
    return Ranking(ranked=first, epsilon=np.zeros(passed.shape), path=None)
