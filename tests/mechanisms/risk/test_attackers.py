"""Attackers' confidences: sums over people, against the joint posterior, and never beyond the bound."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms.formula import Cut
from mechanisms.protocol import DecisionTask
from mechanisms.registry import MECHANISMS
from mechanisms.risk.attack_confidence import NO_CONFIDENCES, KeyTest, View, add_confidences, find_confidences
from mechanisms.risk.channels import list_likelihoods_of_exact_count
from mechanisms.risk.posterior import CONFIDENCES, bound_belief_in_place, find_confidence_class, find_joint_posterior
from mechanisms.threshold.joint_loss import expose_all_functionals
from tests.seeded_noise import SeededNoise

COUNTS = np.array([3, 0, 14, 40, 23])
PRIOR = np.array([0.1, 0.1, 0.2, 0.35, 0.25])
NONE = np.zeros(5, dtype=np.bool_)


def asked(mechanism: str = "keyhole") -> KeyTest:
    formula = Cut(functional=0, cut=12, above=True, tolerance=4)
    task = DecisionTask(formula=formula, sensitivities=(1,), exposures=expose_all_functionals(1), fnr=0.05, fpr=0.1)
    return KeyTest(MECHANISMS[mechanism].calibrate(task).tests[0], formula.cut)


@pytest.mark.parametrize("view", list(View))
def test_everybody_is_in_one_class(view: View) -> None:
    found = find_confidences(COUNTS, PRIOR, NONE, view=view, question=asked(), noise=SeededNoise(1))
    assert found.people == sum(found.people_by_class) == 80
    assert 0 <= found.people_raised <= 80
    assert 0 < found.total_belief <= 80 * found.highest_belief


def test_without_an_answer_the_prior_is_all_there_is() -> None:
    found = find_confidences(COUNTS, PRIOR, NONE, view=View.PRIOR, question=asked(), noise=SeededNoise(1))
    assert found.people_raised == 0
    assert found.total_belief == pytest.approx(float(COUNTS @ PRIOR))
    assert found.highest_belief == pytest.approx(0.35)


def test_exact_counts_are_shares_of_the_people() -> None:
    found = find_confidences(COUNTS, PRIOR, NONE, view=View.EXACT_COUNTS, question=asked(), noise=SeededNoise(1))
    assert found.total_belief == pytest.approx(float(COUNTS @ COUNTS) / 80)
    classes = [0.0] * len(CONFIDENCES)
    for count in COUNTS.tolist():
        classes[find_confidence_class(count / 80)] += count
    assert found.people_by_class == tuple(classes)


def test_open_places_are_known_and_the_rest_is_sharper() -> None:
    opened = np.array([False, False, False, True, True])
    found = find_confidences(COUNTS, PRIOR, opened, view=View.EXACT_COUNTS, question=asked(), noise=SeededNoise(1))
    assert found.people == 17
    seen = [list_likelihoods_of_exact_count(count, most=17) for count in (3, 0, 14)]
    after = find_joint_posterior(seen, PRIOR[:3] / PRIOR[:3].sum(), people=17)
    assert found.total_belief == pytest.approx(float(COUNTS[:3] @ after))
    everything = np.ones(5, dtype=np.bool_)
    noise = SeededNoise(1)
    assert find_confidences(COUNTS, PRIOR, everything, view=View.PRIOR, question=asked(), noise=noise) == NO_CONFIDENCES


def test_an_exact_key_set_says_who_is_above() -> None:
    """One place of two, with a person in it or not: above says that he is there."""
    question = KeyTest(asked().test, 0)
    found = find_confidences(
        np.array([1, 0]), np.array([0.5, 0.5]), NONE[:2], view=View.EXACT_KEYS, question=question, noise=SeededNoise(1)
    )
    assert found.people_by_class == (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    assert found.highest_belief == pytest.approx(1.0)


@pytest.mark.parametrize("view", [View.KEY_SET, View.PATIENT_ANALYST])
@pytest.mark.parametrize("mechanism", ["keyhole", "progressive"])
def test_no_belief_passes_the_bound_of_two_presences(view: View, mechanism: str) -> None:
    """Whatever is drawn: 40 seeded observations each."""
    question = asked(mechanism)
    for seed in range(40):
        noise = SeededNoise(seed)
        found = find_confidences(
            np.array([1, 0]), np.array([0.3, 0.7]), NONE[:2], view=view, question=question, noise=noise
        )
        assert found.highest_belief <= bound_belief_in_place(question.test.epsilon, prior=0.3) + 1e-9


def test_more_that_is_shown_is_more_that_is_believed() -> None:
    """Of days drawn by the prior, the true place is believed in the more, the more is shown: 200 seeded days of 30
    people at three places. A day's mean belief has a deviation near 1.6 people, so that one out of order by more than
    .6 would come by chance less than once in 1e3, were they drawn anew."""
    prior, question, noise = np.array([0.2, 0.3, 0.5]), asked(), SeededNoise(3)
    days = np.random.default_rng(3).multinomial(30, prior, size=200)
    nothing, keys, noisy, counts = (
        add_confidences(
            [find_confidences(day, prior, NONE[:3], view=view, question=question, noise=noise) for day in days],
            divisor=200,
        ).total_belief
        for view in (View.PRIOR, View.KEY_SET, View.PATIENT_ANALYST, View.EXACT_COUNTS)
    )
    assert nothing < keys + 0.6
    assert keys < noisy + 0.6
    assert noisy < counts + 0.6
    assert nothing + 0.4 < counts


def test_parts_add_up_and_days_are_averaged() -> None:
    one = find_confidences(COUNTS, PRIOR, NONE, view=View.EXACT_COUNTS, question=asked(), noise=SeededNoise(1))
    two = add_confidences([one, one], divisor=2)
    assert (two.people, two.people_by_class, two.highest_belief) == (
        one.people,
        one.people_by_class,
        one.highest_belief,
    )


def test_a_place_without_a_prior_is_refused() -> None:
    with pytest.raises(ValueError, match="prior"):
        find_confidences(
            COUNTS, np.array([0.0, 1, 1, 1, 1]), NONE, view=View.PRIOR, question=asked(), noise=SeededNoise(1)
        )
