"""A loss in plain figures, held against the published values, and against dp-accounting and enumeration."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from mechanisms.risk.advantage import (
    bound_advantage,
    bound_guess,
    bound_posterior,
    bound_true_positive_rate,
    find_epsilon_for_advantage,
    find_epsilon_for_guess,
    find_epsilon_for_posterior,
)
from mechanisms.risk.fixed_list import TradeOff, compose_fixed_losses
from tests.in_turn import in_turn

LISTS = [
    ([1.0], 0.4621, 0.4621, 0.0272, 0.2718),
    ([0.5] * 2, 0.4621, 0.2449, 0.0272, 0.2718),
    ([0.1] * 10, 0.4621, 0.1225, 0.0214, 0.1653),
    ([0.02] * 50, 0.4621, 0.0561, 0.0144, 0.1270),
    ([0.1] * 20, 0.7616, 0.1747, 0.0296, 0.2015),
    ([0.25] * 8, 0.7616, 0.2679, 0.0487, 0.2786),
    ([0.1] * 40, 0.9640, 0.2466, 0.0445, 0.2564),
]


@in_turn(("losses", "adaptive", "fixed", "at_1", "at_10"), LISTS)
def test_lists_have_their_published_advantages(
    losses: list[float], adaptive: float, fixed: float, at_1: float, at_10: float
) -> None:
    assert bound_advantage(sum(losses)) == pytest.approx(adaptive, abs=5e-5)
    composed = compose_fixed_losses(losses)
    assert composed.largest_advantage == pytest.approx(fixed, abs=5e-5)
    assert composed.find_true_positive_rate(false_positive_rate=0.01) == pytest.approx(at_1, abs=5e-5)
    assert composed.find_true_positive_rate(false_positive_rate=0.1) == pytest.approx(at_10, abs=5e-5)
    assert composed.greatest_loss == pytest.approx(sum(losses), rel=1e-9)


GUESSES = {1.0: (0.8161, 0.2718, 0.0272), 2.0: (0.9323, 0.7389, 0.0739), 0.5: (0.6967, 0.1649, 0.0165)}


@pytest.mark.parametrize("epsilon", GUESSES)
def test_guesses_among_many_have_their_published_bounds(epsilon: float) -> None:
    assert [bound_guess(epsilon, candidates=many) for many in (2, 10, 100)] == pytest.approx(GUESSES[epsilon], abs=5e-5)


def test_targets_are_turned_into_losses() -> None:
    assert [find_epsilon_for_advantage(a) for a in (0.1, 0.25, 0.5)] == pytest.approx(
        [0.2007, 0.5108, 1.0986], abs=5e-5
    )
    beliefs = [(0.5, 0.75, 1.0986), (0.1, 0.2, 0.8109), (0.01, 0.05, 1.6507)]
    for prior, posterior, epsilon in beliefs:
        assert find_epsilon_for_posterior(prior=prior, posterior=posterior) == pytest.approx(epsilon, abs=5e-5)


@in_turn("epsilon", [0.01, 0.3, 1.0, 4.0])
@in_turn("many", [2, 3, 10, 1000])
def test_targets_are_inverses(epsilon: float, many: int) -> None:
    assert find_epsilon_for_advantage(bound_advantage(epsilon)) == pytest.approx(epsilon, rel=1e-9)
    success = bound_guess(epsilon, candidates=many)
    assert find_epsilon_for_guess(candidates=many, success=success) == pytest.approx(epsilon, rel=1e-6)
    believed = bound_posterior(epsilon, prior=1 / many)
    assert find_epsilon_for_posterior(prior=1 / many, posterior=believed) == pytest.approx(epsilon, rel=1e-9)


def enumerate_list(losses: list[float]) -> list[tuple[float, float]]:
    """Every outcome of randomised responses: its probability where the unit is there, and where it is not."""
    found = []
    for signs in itertools.product((1, -1), repeat=len(losses)):
        chances = [1 / (1 + math.exp(-sign * loss)) for sign, loss in zip(signs, losses, strict=True)]
        found.append((math.prod(chances), math.prod(1 - chance for chance in chances)))
    return found


def test_composition_is_enumeration() -> None:
    losses = [random.Random(7).uniform(0.01, 1.5) for _ in range(9)]
    outcomes = enumerate_list(losses)
    composed = compose_fixed_losses(losses)
    assert composed.largest_advantage == pytest.approx(sum(max(0.0, p - q) for p, q in outcomes), abs=1e-7)
    ordered = sorted(outcomes, key=lambda one: -one[0] / one[1])
    accused = np.cumsum([q for _, q in ordered])
    found = np.cumsum([p for p, _ in ordered])
    for rate in (0.003, 0.05, 0.5):
        expected = float(np.interp(rate, [0, *accused], [0, *found]))
        assert composed.find_true_positive_rate(false_positive_rate=rate) == pytest.approx(expected, abs=1e-7)


def test_many_different_losses_are_rounded_up_and_never_understate() -> None:
    losses = [0.01 + 0.003 * math.sqrt(place) for place in range(60)]
    composed = compose_fixed_losses(losses)
    assert sum(losses) <= composed.greatest_loss <= sum(losses) + 60 * 1e-4
    low, high = compose_fixed_losses([min(losses)] * 60), compose_fixed_losses([max(losses)] * 60)
    assert low.largest_advantage < composed.largest_advantage < high.largest_advantage
    assert composed.largest_advantage < bound_advantage(sum(losses))
    assert composed.present_probabilities.sum() == pytest.approx(1.0)
    assert composed.absent_probabilities.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("losses", [[1.0], [0.1] * 20, [0.3, 0.3, 0.7, 1.1]])
def test_compositions_are_those_of_dp_accounting(losses: list[float]) -> None:
    from dp_accounting.pld.common import DifferentialPrivacyParameters
    from dp_accounting.pld.privacy_loss_distribution import from_privacy_parameters

    together = None
    for loss in losses:
        one = from_privacy_parameters(DifferentialPrivacyParameters(loss, 0.0), value_discretization_interval=1e-4)
        together = one if together is None else together.compose(one)
    assert together is not None
    composed = compose_fixed_losses(losses)
    assert composed.largest_advantage == pytest.approx(together.get_delta_for_epsilon(0.0), abs=len(losses) * 1e-4)
    for epsilon in (0.1, 0.4, 0.9):
        delta = float(
            np.sum(np.maximum(composed.present_probabilities - math.exp(epsilon) * composed.absent_probabilities, 0.0))
        )
        assert delta == pytest.approx(together.get_delta_for_epsilon(epsilon), abs=len(losses) * 1e-4)


def guess_two_places(epsilon: float, draws: int, seed: int) -> float:
    """How often the better of two places is right, with the counts of both published with Laplace noise."""
    noise = np.random.default_rng(seed).laplace(0, 1 / epsilon, (2, draws))
    here = np.abs(noise[0]) + np.abs(noise[1])  # the logarithm of the likelihood of "here", over -epsilon
    there = np.abs(noise[0] + 1) + np.abs(noise[1] - 1)
    return float(np.mean(here < there) + np.mean(here == there) / 2)


@pytest.mark.parametrize(("epsilon", "published"), [(0.5, 0.6210), (1.0, 0.7241), (2.0, 0.8646)])
def test_two_places_with_laplace_noise_stay_below_the_bound(epsilon: float, published: float) -> None:
    """10^5 seeded draws: off by more than .01 with probability below 1e-9, were they drawn anew."""
    right = guess_two_places(epsilon, 100_000, seed=5)
    assert right == pytest.approx(published, abs=0.01)
    assert right < bound_guess(epsilon, candidates=2)


def test_a_fixed_list_is_never_worse_than_its_sum() -> None:
    for losses, *_ in LISTS:
        composed = compose_fixed_losses(losses)
        for rate in (0.0, 0.001, 0.02, 0.3, 1.0):
            of_sum = bound_true_positive_rate(sum(losses), false_positive_rate=rate)
            assert composed.find_true_positive_rate(false_positive_rate=rate) <= of_sum + 1e-9
        assert composed.bound_guess(candidates=10) <= bound_guess(sum(losses), candidates=10) + 1e-9


def test_huge_losses_protect_from_nothing_and_none_from_everything() -> None:
    assert bound_guess(1e6, candidates=10) == pytest.approx(1.0)
    assert bound_posterior(1e6, prior=0.01) == pytest.approx(1.0)
    assert bound_posterior(5.0, prior=0.0) == 0.0
    assert bound_advantage(0.0) == 0.0
    assert bound_guess(0.0, candidates=4) == pytest.approx(0.25)
    nothing: TradeOff = compose_fixed_losses([0.0, 0.0])
    assert nothing.largest_advantage == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("wrong", [[], [-0.1], [math.inf], [math.nan]])
def test_losses_out_of_range_are_refused(wrong: list[float]) -> None:
    with pytest.raises(ValueError, match="loss"):
        compose_fixed_losses(wrong)


def test_wishes_out_of_range_are_refused() -> None:
    for advantage in (0.0, 1.0):
        with pytest.raises(ValueError, match="advantage"):
            find_epsilon_for_advantage(advantage)
    with pytest.raises(ValueError, match="belief"):
        find_epsilon_for_posterior(prior=0.5, posterior=0.4)
    with pytest.raises(ValueError, match="guess"):
        find_epsilon_for_guess(candidates=10, success=0.1)
    with pytest.raises(ValueError, match="candidates"):
        bound_guess(1.0, candidates=1)
    with pytest.raises(ValueError, match="loss"):
        bound_advantage(-1.0)
    with pytest.raises(ValueError, match="probability"):
        bound_true_positive_rate(1.0, false_positive_rate=1.5)
