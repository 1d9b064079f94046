"""Attackers' posteriors against the sum over all ways to place people, and channels against real mechanisms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from mechanisms.formula import Cut
from mechanisms.protocol import DecisionTask
from mechanisms.registry import MECHANISMS
from mechanisms.risk.channels import (
    Floats,
    compute_evidence_of_key,
    list_likelihoods_of_exact_count,
    list_likelihoods_of_key,
    list_likelihoods_of_noisy,
    list_likelihoods_without_release,
)
from mechanisms.risk.posterior import (
    bound_belief_in_place,
    bound_belief_in_presence,
    find_confidence_class,
    find_joint_posterior,
    find_posterior_of_one_place,
)
from mechanisms.threshold.joint_loss import expose_all_functionals
from tests.seeded_noise import SeededNoise


def place_everybody(likelihoods: list[Floats], prior: tuple[float, ...], people: int) -> list[float]:
    """The posterior of the first person, over every way to place all of them."""
    weights = [0.0] * len(prior)
    for placed in itertools.product(range(len(prior)), repeat=people):
        chance = math.prod(prior[place] for place in placed)
        chance *= math.prod(float(seen[placed.count(place)]) for place, seen in enumerate(likelihoods))
        weights[placed[0]] += chance
    return [weight / sum(weights) for weight in weights]


def test_the_joint_posterior_has_its_published_values() -> None:
    seen = [list_likelihoods_of_noisy(value, rate=0.8, most=6) for value in (2.7, -0.4, 4.1)]
    prior = (0.2, 0.3, 0.5)
    found = find_joint_posterior(seen, prior, people=6)
    assert found == pytest.approx([0.288094, 0.106819, 0.605087], abs=5e-7)
    assert found == pytest.approx(place_everybody(seen, prior, 6), rel=1e-9)
    alone = [find_posterior_of_one_place(one, share, people=6) for one, share in zip(seen, prior, strict=True)]
    assert alone == pytest.approx([0.2917, 0.1615, 0.5957], abs=5e-5)
    assert sum(alone) == pytest.approx(1.0489, abs=5e-5)


@pytest.mark.parametrize(
    ("people", "places", "seed"), [(1, 2, 1), (5, 3, 2), (7, 3, 3), (12, 2, 4), (4, 4, 5), (3, 1, 6)]
)
def test_the_joint_posterior_is_the_sum_over_all_placings(people: int, places: int, seed: int) -> None:
    chosen = np.random.default_rng(seed)
    prior = tuple(chosen.dirichlet(np.ones(places)).tolist())
    truth = chosen.multinomial(people, prior)
    noisy = [list_likelihoods_of_noisy(count + chosen.laplace(0, 2), rate=0.5, most=people) for count in truth]
    mixed = [
        list_likelihoods_of_exact_count(int(truth[0]), most=people),
        *(list_likelihoods_without_release(most=people) for _ in range(1, places)),
    ]
    for seen in (noisy, mixed):
        found = find_joint_posterior(seen, prior, people=people)
        assert found.sum() == pytest.approx(1.0, abs=1e-9)
        assert found == pytest.approx(place_everybody(seen, prior, people), rel=1e-9)


def test_many_people_and_places_are_found_as_well() -> None:
    chosen = np.random.default_rng(9)
    prior = chosen.dirichlet(np.ones(41))
    truth = chosen.multinomial(1500, prior)
    exact = find_joint_posterior(
        [list_likelihoods_of_exact_count(int(count), most=1500) for count in truth], prior, people=1500
    )
    assert exact == pytest.approx(truth / 1500, abs=1e-12)
    fine = find_joint_posterior(
        [list_likelihoods_of_noisy(float(c), rate=5.0, most=1500) for c in truth], prior, people=1500
    )
    assert fine == pytest.approx(truth / 1500, abs=1e-4)
    nothing = find_joint_posterior([list_likelihoods_without_release(most=1500)] * 41, prior, people=1500)
    assert nothing == pytest.approx(prior, abs=1e-12)


def test_the_published_bound_is_exceeded_and_the_repaired_one_is_reached() -> None:
    """One person and two places, both counts with Laplace noise of rate 1, seen far out on either side."""
    seen = [list_likelihoods_of_noisy(value, rate=1.0, most=1) for value in (30.0, -30.0)]
    here = float(find_joint_posterior(seen, (0.5, 0.5), people=1)[0])
    assert here == pytest.approx(0.8808, abs=5e-5)
    assert here > bound_belief_in_presence(1.0, prior=0.5)
    assert here == pytest.approx(bound_belief_in_place(1.0, prior=0.5), rel=1e-12)


def test_no_posterior_exceeds_its_bound() -> None:
    """Of noisy values within epsilon for a presence, whatever is seen; other people only hide more."""
    chosen = np.random.default_rng(3)
    for _ in range(60):
        prior = chosen.dirichlet(np.ones(3))
        epsilon = float(chosen.uniform(0.1, 2))
        seen = [list_likelihoods_of_noisy(float(chosen.normal(2, 8)), rate=epsilon, most=4) for _ in range(3)]
        found = find_joint_posterior(seen, prior, people=4)
        assert all(
            f <= bound_belief_in_place(epsilon, prior=float(p)) + 1e-12 for f, p in zip(found, prior, strict=True)
        )


@pytest.mark.parametrize("mechanism", ["keyhole", "progressive"])
def test_the_key_set_channel_is_the_mechanism(mechanism: str) -> None:
    """20,000 seeded decisions at each count: off by more than .02 with probability below 1e-7, were they drawn anew."""
    formula = Cut(functional=0, cut=40, above=True, tolerance=10)
    task = DecisionTask(formula=formula, sensitivities=(1,), exposures=expose_all_functionals(1), fnr=0.1, fpr=0.1)
    deciding = MECHANISMS[mechanism]
    calibration = deciding.calibrate(task)
    returned = list_likelihoods_of_key(calibration.tests[0], cut=40, most=60, is_returned=True)
    refused = list_likelihoods_of_key(calibration.tests[0], cut=40, most=60, is_returned=False)
    assert returned + refused == pytest.approx(np.ones(61))
    noise = SeededNoise(4)
    for count in (0, 25, 35, 40, 41, 60):
        counts = np.full((1, 20_000), count, dtype=np.int64)
        passed = deciding.decide(calibration, counts, noise=noise).passed
        assert returned[count] == pytest.approx(passed.mean(), abs=0.02)
    assert compute_evidence_of_key(calibration.tests[0]) == pytest.approx(9.0)


def test_classes_are_closed_above() -> None:
    assert [find_confidence_class(one) for one in (0.0, 0.1, 0.2, 0.25, 0.5, 0.6, 0.9, 0.91, 1.0)] == [
        0,
        0,
        1,
        1,
        2,
        3,
        4,
        5,
        5,
    ]


def test_a_count_that_says_nothing_leaves_the_prior_and_does_not_place_everybody() -> None:
    """The published sum begins at one person there, so that one alone is there for certain whatever was seen."""
    seen = list_likelihoods_of_noisy(4.0, rate=1e-9, most=1)
    assert find_posterior_of_one_place(seen, 0.3, people=1) == pytest.approx(0.3, abs=1e-8)
    assert find_posterior_of_one_place(np.array([0.0, seen[1]]), 0.3, people=1) == 1.0


def test_what_cannot_have_been_is_refused() -> None:
    with pytest.raises(ValueError, match="explains"):
        find_joint_posterior([list_likelihoods_of_exact_count(3, most=3)] * 2, (0.5, 0.5), people=3)
    with pytest.raises(ValueError, match="sums to one"):
        find_joint_posterior([list_likelihoods_without_release(most=3)] * 2, (0.5, 0.4), people=3)
    with pytest.raises(ValueError, match="likelihood"):
        find_joint_posterior([list_likelihoods_without_release(most=2)] * 2, (0.5, 0.5), people=3)
    with pytest.raises(ValueError, match="place"):
        find_joint_posterior([list_likelihoods_without_release(most=3)], (0.5, 0.5), people=3)
    with pytest.raises(ValueError, match="explains"):
        find_posterior_of_one_place(np.zeros(4), 0.5, people=3)
    with pytest.raises(ValueError, match="rate"):
        list_likelihoods_of_noisy(1.0, rate=0.0, most=3)
    with pytest.raises(ValueError, match="count"):
        list_likelihoods_of_exact_count(4, most=3)
