"""Attackers' confidence about each person's place, counted by the published classes.

An attacker knows the exact counts of some places, and sees what a mechanism shows of the other places. He knows the
number of people at the other places, and a prior of each place. His success is his belief in the true place of a
person. A belief in a wrong place counts nothing.

| here | the thesis |
|---|---|
| open places | those of a student, an administrator; counts there are known |
| prior | p_l, of the closed places alone: divided by their sum |
| improved | the class is above the class of the prior |

Reference: PET evaluation (thesis), chapter 4. Proof: docs/proofs/posterior.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache

import numpy as np

from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import FunctionalTest, Noise
from mechanisms.risk.channels import (
    Floats,
    list_likelihoods_of_exact_count,
    list_likelihoods_of_key,
    list_likelihoods_of_noisy,
    list_likelihoods_without_release,
)
from mechanisms.risk.posterior import CONFIDENCES, find_confidence_class, find_joint_posterior


class View(Enum):
    """The attacker's view of the counts of closed places: how they were published."""

    PRIOR = "nothing"
    KEY_SET = "key set"
    PATIENT_ANALYST = "patient analyst"
    EXACT_KEYS = "exact key set"
    EXACT_COUNTS = "exact counts"


@dataclass(frozen=True, slots=True)
class KeyTest:
    """A question `count > cut` with its calibrated test."""

    test: FunctionalTest
    cut: int


@dataclass(frozen=True, slots=True)
class Confidences:
    """An attacker's confidence about where people are.

    `people_by_class` counts people by class of confidence, lowest first.

    `people_raised` counts people in a higher class than before the observation. `total_belief` is the sum, over people,
    of the belief in the place where each person is. `highest_belief` is the greatest of these beliefs. All fields
    except `highest_belief` are sums, or means over days.
    """

    people: float
    people_by_class: tuple[float, ...]
    people_raised: float
    total_belief: float
    highest_belief: float


NO_CONFIDENCES = Confidences(0.0, (0.0,) * len(CONFIDENCES), 0.0, 0.0, 0.0)


def find_confidences(
    counts: Integers, prior: Floats, known_places: Booleans, *, view: View, question: KeyTest, noise: Noise
) -> Confidences:
    """Return an attacker's confidence, at one time, about the people at those places that he does not know.

    Guarantee: beliefs are those of `find_joint_posterior`, from an observation drawn by the law of the mechanism
    (docs/proofs/posterior.md).

    Parameters:
        counts: of each place, true or synthetic. Nobody is at two places.
        prior: of each place, above 0.
        known_places: which places the attacker knows.

    Exact counts of two places, with three people and one:

    >>> from mechanisms.noise.exact import make_system_noise
    >>> from mechanisms.threshold.one_shot import calibrate_test
    >>> asked = KeyTest(calibrate_test(sensitivity=1, tolerance=1, fnr=0.1, fpr=0.1, allow_block=False), 2)
    >>> found = find_confidences(np.array([3, 1]), np.array([0.5, 0.5]), np.array([False, False]),
    ...     view=View.EXACT_COUNTS, question=asked, noise=make_system_noise())
    >>> found.people_by_class, found.people_raised, found.highest_belief
    ((0.0, 1.0, 0.0, 3.0, 0.0, 0.0), 3.0, 0.75)
    """
    hidden, known = counts[~known_places], prior[~known_places]
    people = int(hidden.sum())
    if people == 0:
        return NO_CONFIDENCES
    if not known.min() > 0:
        raise ValueError("a place where somebody may be has a prior above 0")
    before = known / known.sum()
    seen = [_draw_observation(int(count), people, view, question, noise) for count in hidden]
    after = find_joint_posterior(seen, before, people=people)
    classes = [0.0] * len(CONFIDENCES)
    better = 0.0
    for count, first, belief in zip(hidden.tolist(), before.tolist(), after.tolist(), strict=True):
        place = find_confidence_class(belief)
        classes[place] += count
        better += count * (place > find_confidence_class(first))
    there = hidden > 0
    return Confidences(float(people), tuple(classes), better, float(hidden @ after), float(after[there].max()))


def add_confidences(parts: Iterable[Confidences], *, divisor: int = 1) -> Confidences:
    """Return the sum of all parts, divided by `divisor`. `highest_belief` is the highest of all parts.

    >>> add_confidences([NO_CONFIDENCES, NO_CONFIDENCES]) == NO_CONFIDENCES
    True
    """
    listed = (NO_CONFIDENCES, *parts)
    return Confidences(
        sum(one.people for one in listed) / divisor,
        tuple(sum(column) / divisor for column in zip(*(one.people_by_class for one in listed), strict=True)),
        sum(one.people_raised for one in listed) / divisor,
        sum(one.total_belief for one in listed) / divisor,
        max(one.highest_belief for one in listed),
    )


def _draw_observation(count: int, people: int, view: View, question: KeyTest, noise: Noise) -> Floats:
    """Draw one observation of a place's count, as the view shows it.

    Return its likelihood for each count from 0 to `people`.
    """
    match view:
        case View.PRIOR:
            return list_likelihoods_without_release(most=people)
        case View.EXACT_COUNTS:
            return list_likelihoods_of_exact_count(count, most=people)
        case View.EXACT_KEYS:
            above = np.arange(people + 1) > question.cut
            return np.where(above if count > question.cut else ~above, 1.0, 0.0)
        case View.PATIENT_ANALYST:
            value = count + int(noise.draw_discrete_laplace(rate=question.test.rate, size=1)[0])
            return list_likelihoods_of_noisy(float(value), rate=float(question.test.rate), most=people)
        case View.KEY_SET:
            accepted = _list_acceptances(question, people)
            chance = min(1.0, max(0.0, float(accepted[count])))
            returned = bool(noise.draw_bernoulli(probability=Fraction(chance), size=1)[0])
            return accepted if returned else np.asarray(1.0 - accepted)


@lru_cache(maxsize=64)
def _list_acceptances(question: KeyTest, people: int) -> Floats:
    """Return for each count the probability that a place with it is returned.

    The result is cached, since it is the same for all places.
    """
    return list_likelihoods_of_key(question.test, cut=question.cut, most=people, is_returned=True)
