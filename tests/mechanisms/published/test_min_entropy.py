"""Min-entropy against enumeration of every vertex; all deterministic but for seeded inputs, so no false alarms."""

import math
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from mechanisms.published.min_entropy import (
    Values,
    bound_posteriors,
    bracket_min_entropy,
    compute_entropy,
    compute_min_entropy_by_class,
    compute_min_entropy_by_level,
    compute_true_min_entropy_by_class,
    minimise_entropy,
)
from tests.in_turn import in_turn


def least_in_box(low: Values, high: Values) -> float:
    """Every vertex of a box cut with the simplex: all keys but one at a bound, the one taking what is left."""
    best = math.inf
    for free in range(low.size):
        others = [key for key in range(low.size) if key != free]
        for side in product((False, True), repeat=len(others)):
            point = np.empty(low.size)
            point[others] = [high[key] if up else low[key] for key, up in zip(others, side, strict=True)]
            point[free] = 1.0 - point[others].sum()
            if low[free] - 1e-12 <= point[free] <= high[free] + 1e-12:
                best = min(best, compute_entropy(point))
    return best


def least_of_weights(epsilons: Values, priors: Values) -> float:
    """Every vertex of the true posterior set: each weight at its least or its most, normalised."""
    sides = np.array(list(product((-1.0, 1.0), repeat=epsilons.size)))
    weights = priors * np.exp(sides * epsilons)
    posteriors = weights / weights.sum(axis=1, keepdims=True)
    return float(np.min(-np.sum(posteriors * np.log(posteriors), axis=1)))


@in_turn("seed", range(60))
def test_algorithm_5_finds_the_least_vertex(seed: int) -> None:
    generator = np.random.default_rng(seed)
    epsilons = generator.exponential(scale=generator.choice([0.1, 1.0, 3.0]), size=generator.integers(1, 11))
    posterior = minimise_entropy(epsilons.tolist())
    low, high = bound_posteriors(epsilons.tolist())
    assert posterior.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all(posterior >= low - 1e-12)
    assert np.all(posterior <= high + 1e-12)
    assert compute_entropy(posterior) == pytest.approx(least_in_box(low, high), abs=1e-10)


def test_the_printed_comparison_of_algorithm_5_would_overstate_gamma() -> None:
    """Spreading the slack evenly is feasible in the box and has more entropy: the lower option is the bound."""
    assert compute_entropy(minimise_entropy([0.5] * 6)) < math.log(6) - 0.1


@in_turn("seed", range(60))
def test_counts_per_level_agree_with_algorithm_5(seed: int) -> None:
    generator = np.random.default_rng(1000 + seed)
    losses = np.concatenate((generator.exponential(size=generator.integers(0, 3)), generator.choice([[0.0], [0.7]])))
    counts = generator.integers(1, 5, size=losses.size)
    every = np.repeat(losses, counts).tolist()
    expected = compute_entropy(minimise_entropy(every))
    assert compute_min_entropy_by_level(losses.tolist(), counts.tolist()) == pytest.approx(expected, abs=1e-10)


def test_levels_hold_many_keys_and_refuse_too_many() -> None:
    many = compute_min_entropy_by_level([0.01, 0.2, 1.2], [5000, 400, 100])
    assert 0.0 < many < math.log(5500)
    with pytest.raises(ValueError, match="too many keys"):
        compute_min_entropy_by_level([0.1, 0.2, 0.3, 0.4], [1000] * 4)
    with pytest.raises(ValueError, match="at least one key"):
        compute_min_entropy_by_level([0.1], [0])
    with pytest.raises(ValueError, match="between 1 and 24 keys"):
        minimise_entropy([0.1] * 25)


@in_turn("priors", ["uniform", "general"])
@in_turn("seed", range(40))
def test_the_bracket_holds_the_true_minimum(seed: int, priors: str) -> None:
    generator = np.random.default_rng(2000 + seed)
    keys = int(generator.integers(1, 13))
    epsilons = generator.exponential(scale=generator.choice([0.1, 1.0, 3.0]), size=keys)
    epsilons[generator.random(keys) < 0.2] = 0.0
    weights = np.full(keys, 1.0 / keys) if priors == "uniform" else generator.dirichlet(np.ones(keys))
    given = None if priors == "uniform" else weights.tolist()
    bracket = bracket_min_entropy(epsilons.tolist(), priors=given)
    truth = least_of_weights(epsilons, weights)
    assert bracket.lower <= truth <= bracket.upper
    low, high = bound_posteriors(epsilons.tolist(), priors=given)
    assert least_in_box(low, high) <= truth + 1e-10 if keys <= 8 else True


def classes(seed: int, most_keys: int) -> tuple[Values, Values, npt.NDArray[np.int64]]:
    generator = np.random.default_rng(3000 + seed)
    kinds = int(generator.integers(1, 4))
    counts = generator.integers(1, most_keys // kinds + 1, size=kinds)
    losses = generator.exponential(scale=generator.choice([0.1, 1.0, 3.0]), size=kinds)
    losses[generator.random(kinds) < 0.2] = 0.0
    priors = generator.dirichlet(np.ones(kinds)) / counts
    return losses, priors, counts


@in_turn("seed", range(40))
def test_classes_with_priors_agree_with_every_vertex(seed: int) -> None:
    """Up to nine keys for the box, twelve for the true set."""
    losses, priors, counts = classes(seed, 9)
    keys, weights = np.repeat(losses, counts), np.repeat(priors, counts)
    low, high = bound_posteriors(keys.tolist(), priors=weights.tolist())
    in_box = compute_min_entropy_by_class(losses.tolist(), priors.tolist(), counts.tolist())
    assert in_box == pytest.approx(least_in_box(low, high), abs=1e-9)
    losses, priors, counts = classes(seed, 12)
    truly = compute_true_min_entropy_by_class(losses.tolist(), priors.tolist(), counts.tolist())
    keys, weights = np.repeat(losses, counts), np.repeat(priors, counts)
    assert truly == pytest.approx(least_of_weights(keys, weights), abs=1e-10)


@in_turn("seed", range(20))
def test_equal_priors_are_the_levels(seed: int) -> None:
    losses, _, counts = classes(seed, 20)
    levels = dict.fromkeys(losses.tolist(), 0)
    for loss, count in zip(losses.tolist(), counts.tolist(), strict=True):
        levels[loss] += count
    uniform = [1.0 / int(counts.sum())] * losses.size
    by_class = compute_min_entropy_by_class(losses.tolist(), uniform, counts.tolist())
    assert by_class == pytest.approx(compute_min_entropy_by_level(list(levels), list(levels.values())), abs=1e-10)


@pytest.mark.parametrize(("most_keys", "upper", "typical"), [(6, 0.05, 1e-3), (60, 2e-3, 1e-4), (300, 1e-6, 1e-5)])
def test_the_gap_of_the_bracket_with_general_priors(most_keys: int, upper: float, typical: float) -> None:
    """200 seeded cases against the exact method. The bracket's upper end is close to the truth in all of them; its
    width is small in half of them and below .4 in all: it is wide where one key outweighs the others."""
    widths = []
    for seed in range(200):
        losses, priors, counts = classes(seed, most_keys)
        exact = compute_true_min_entropy_by_class(losses.tolist(), priors.tolist(), counts.tolist())
        keys, weights = np.repeat(losses, counts), np.repeat(priors, counts)
        bracket = bracket_min_entropy(keys.tolist(), priors=weights.tolist())
        assert bracket.lower <= exact <= bracket.upper <= exact + upper
        widths.append(bracket.upper - bracket.lower)
    assert max(widths) < 0.4
    assert np.median(widths) < typical


def test_classes_are_checked() -> None:
    for by_class in (compute_min_entropy_by_class, compute_true_min_entropy_by_class):
        with pytest.raises(ValueError, match="at least one key"):
            by_class([0.1], [0.5], [0])
        with pytest.raises(ValueError, match="sum to one"):
            by_class([0.1], [0.5], [1])
        with pytest.raises(ValueError, match="too many keys"):
            by_class([0.1, 0.2, 0.3, 0.4], [1 / 4000] * 4, [1000] * 4)


def test_the_bracket_is_narrow_for_many_keys() -> None:
    epsilons = np.random.default_rng(7).exponential(size=100_000)
    bracket = bracket_min_entropy(epsilons.tolist())
    assert bracket.upper - bracket.lower < 1e-4


def test_no_loss_leaves_the_prior() -> None:
    bracket = bracket_min_entropy([0.0] * 8)
    assert bracket.lower <= math.log(8) <= bracket.upper
    assert compute_min_entropy_by_level([0.0], [8]) == pytest.approx(math.log(8))


def test_lemma_a2_needs_a_shift_below_the_distance() -> None:
    def f(x: float) -> float:
        return -x * math.log(x)

    assert f(0.5) + f(0.4) < f(0.45) + f(0.45)
    assert f(0.5) + f(0.4) > f(0.2) + f(0.7)


def test_priors_are_checked() -> None:
    with pytest.raises(ValueError, match="sum to one"):
        bracket_min_entropy([0.1, 0.1], priors=[0.5, 0.6])
    with pytest.raises(ValueError, match="at least one key"):
        bracket_min_entropy([])
