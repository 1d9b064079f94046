"""Mechanisms that are not private at the loss they claim, for the auditor to find; never part of the product.

References: Chen's thesis, algorithms 2 to 5 (sparse vectors without a limit on positives), 6 and 7 (the attack);
docs/proofs/gradual_release.md on published code that refines noise.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mechanisms.certified import Probability
from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Calibration, DecisionTask, Mechanism, Noise, Outcome, Words
from mechanisms.threshold.joint_loss import expose_functional_sets, list_sum_rates
from tests.seeded_noise import SeededNoise

Answers = Callable[[Integers], Booleans]


def without_limit(
    distances: Integers, *, threshold_rate: Fraction, query_rate: Fraction | None, noise: Noise
) -> Booleans:
    """Algorithm 5 (GPTT): every query answered against one noisy threshold; no query noise when its rate is None.

    `distances` has shape (streams, queries): value minus threshold.
    """
    streams, queries = distances.shape
    threshold = noise.draw_discrete_laplace(rate=threshold_rate, size=streams)[:, np.newaxis]
    if query_rate is None:
        return distances >= threshold
    drawn = noise.draw_discrete_laplace(rate=query_rate, size=streams * queries)
    return distances + drawn.reshape(streams, queries) >= threshold


def variant_2(distances: Integers, *, epsilon: Fraction, noise: Noise) -> Booleans:
    """Algorithm 2: a quarter of the loss for the threshold, the rest for every query anew."""
    return without_limit(distances, threshold_rate=epsilon / 4, query_rate=epsilon * 3 / 4, noise=noise)


def variant_3(distances: Integers, *, epsilon: Fraction, noise: Noise) -> Booleans:
    """Algorithm 3: all of the loss for the threshold, exact values compared with it."""
    return without_limit(distances, threshold_rate=epsilon, query_rate=None, noise=noise)


def variant_4(distances: Integers, *, epsilon: Fraction, noise: Noise) -> Booleans:
    """Algorithm 4: half for the threshold, half for every query anew."""
    return without_limit(distances, threshold_rate=epsilon / 2, query_rate=epsilon / 2, noise=noise)


def variant_5(distances: Integers, *, epsilon: Fraction, noise: Noise) -> Booleans:
    """Algorithm 5 as its flawed analysis (eq. 3.8) allows: twice the threshold's loss whatever the query noise."""
    return without_limit(distances, threshold_rate=epsilon / 2, query_rate=2 * epsilon, noise=noise)


VARIANTS = {"algorithm 2": variant_2, "algorithm 3": variant_3, "algorithm 4": variant_4, "algorithm 5": variant_5}


class UnderNoised:
    """A mechanism that draws less noise than it claims, by a factor."""

    summary = "broken: too little noise"

    def __init__(self, honest: Mechanism, *, factor: Fraction) -> None:
        self.name = honest.name
        self._honest = honest
        self._factor = factor

    def calibrate(self, task: DecisionTask) -> Calibration:
        return self._honest.calibrate(task)

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        tests = tuple(replace(test, rate=test.rate * self._factor) for test in calibration.tests)
        return self._honest.decide(replace(calibration, tests=tests), aggregates, noise=noise)


class ApartForEachPredicate:
    """Every predicate on a noisy value of its own, at the loss of a value that all of them share."""

    summary = "broken: predicates do not share their noise"

    def __init__(self, honest: Mechanism) -> None:
        self.name = honest.name
        self._honest = honest

    def calibrate(self, task: DecisionTask) -> Calibration:
        return self._honest.calibrate(task)

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        task = calibration.task
        tasks = [replace(task, formula=predicate, predicates=()) for predicate in task.predicates]
        whole = self._honest.decide(calibration, aggregates, noise=noise)
        each = [self._honest.decide(replace(calibration, task=one), aggregates, noise=noise).passed for one in tasks]
        return replace(whole, predicates=tuple(whole.passed & passed for passed in each))


class SharperNoise:
    """One-sided noise at twice the rate that is asked for: all of epsilon on the target and all on each comparison."""

    def __init__(self, source: Noise) -> None:
        self._source = source

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        return self._source.draw_discrete_laplace(rate=rate, size=size)

    def draw_thinned_laplace(self, *, rate: Fraction, nonzero: Probability, size: int) -> Integers:
        return self._source.draw_thinned_laplace(rate=rate, nonzero=nonzero, size=size)

    def draw_geometric(self, *, rate: Fraction, size: int) -> Integers:
        return self._source.draw_geometric(rate=2 * rate, size=size)

    def draw_bernoulli(self, *, probability: Fraction, size: int) -> Booleans:
        return self._source.draw_bernoulli(probability=probability, size=size)

    def draw_bernoulli_by_digits(self, *, probability: Probability, size: int) -> Booleans:
        return self._source.draw_bernoulli_by_digits(probability=probability, size=size)

    def draw_words(self, *, size: int) -> Words:
        return self._source.draw_words(size=size)


class TakenForApart:
    """An honest mechanism that takes the functionals for disjoint: its loss is the maximum where it is a sum."""

    summary = "broken: claims a maximum for a sum"

    def __init__(self, honest: Mechanism) -> None:
        self.name = honest.name
        self._honest = honest

    def calibrate(self, task: DecisionTask) -> Calibration:
        functionals = len(task.sensitivities)
        alone = expose_functional_sets(((functional,) for functional in range(functionals)), functionals=functionals)
        return self._honest.calibrate(replace(task, exposures=alone))

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        return self._honest.decide(calibration, aggregates, noise=noise)


class UnderReported:
    """An honest mechanism, but for keys that did not pass it reports half of the loss."""

    summary = "broken: claims less ex post than was lost"

    def __init__(self, honest: Mechanism) -> None:
        self.name = honest.name
        self._honest = honest

    def calibrate(self, task: DecisionTask) -> Calibration:
        return self._honest.calibrate(task)

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        outcome = self._honest.decide(calibration, aggregates, noise=noise)
        return replace(outcome, epsilon=np.where(outcome.passed, outcome.epsilon, outcome.epsilon / 2))


class CountForNothing:
    """Reads a mean's thresholds off a noisy sum and a noisy count, and charges the sum alone."""

    summary = "broken: the count's noise is not charged"

    def __init__(self, honest: Mechanism) -> None:
        self.name = honest.name
        self._honest = honest

    def calibrate(self, task: DecisionTask) -> Calibration:
        made = self._honest.calibrate(task)
        assert task.common is not None
        return replace(made, worst_case_epsilon=float(list_sum_rates(made)[0] * task.common.sensitivities[0]))

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        outcome = self._honest.decide(calibration, aggregates, noise=noise)
        return replace(outcome, epsilon=np.minimum(outcome.epsilon, calibration.worst_case_epsilon))


class ApartForEachMonth:
    """Values that are read off several cells, each month's on noise of its own, at the loss of one noisy cell."""

    summary = "broken: the answers that read a cell do not share its noise"

    def __init__(self, honest: Mechanism) -> None:
        self.name = honest.name
        self._honest = honest

    def calibrate(self, task: DecisionTask) -> Calibration:
        return self._honest.calibrate(task)

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        assert calibration.task.common is not None
        months = calibration.task.common.shape[-1]
        each = [self._honest.decide(calibration, aggregates, noise=noise) for _ in range(months)]
        month = np.arange(aggregates.shape[1]) % months
        predicates = zip(*(one.predicates for one in each), strict=True)
        return replace(
            each[0],
            passed=np.choose(month, [one.passed for one in each]),
            predicates=tuple(np.choose(month, values) for values in predicates),
        )


class HalfOfACell(ApartForEachMonth):
    """Values on shared noisy cells, where each of two answers that read a cell is taken to lose half of it."""

    summary = "broken: claims half of a cell's loss"

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        outcome = self._honest.decide(calibration, aggregates, noise=noise)
        return replace(outcome, epsilon=outcome.epsilon / 2)


def fresh_refinement(value: int, *, coarse: Fraction, fine: Fraction, seed: int) -> Callable[[int], Integers]:
    """A "gradual release" that draws new noise for the finer value and claims the finer loss alone."""
    noise = SeededNoise(seed)

    def draw(samples: int) -> Integers:
        first = value + noise.draw_discrete_laplace(rate=coarse, size=samples)
        return np.column_stack((first, value + noise.draw_discrete_laplace(rate=fine, size=samples)))

    return draw


def noise_down(value: int, *, coarse: float, fine: float, seed: int) -> Callable[[int], Integers]:
    """Published "noise down": finer noise from coarser, but the sign is dropped and one uniform serves twice.

    Three parts, as gradual release has them, for the absolute noise, which is then used as it is; the uniform that
    chose the part is the one that is inverted within it. It claims the finer loss.
    """
    noise = SeededNoise(seed)
    uniform = np.random.Generator(np.random.PCG64(seed))
    together, ratio = coarse + fine, fine - coarse

    def draw(samples: int) -> Integers:
        first = noise.draw_discrete_laplace(rate=Fraction(coarse), size=samples)
        size, u = np.abs(first), uniform.random(samples)
        stays = np.exp(-ratio * (size + 1)) * math.expm1(-2 * coarse) / math.expm1(-2 * fine)
        side = 1 / math.expm1(together)
        middle, right = np.expm1(-ratio * (size + 1)) / math.expm1(-ratio), np.exp(-ratio * size) * side
        whole = side + middle + right
        below = -1 - np.floor(-np.log(u) / together)
        between = np.floor(np.log1p(u * np.expm1(-ratio * (size + 1))) / -ratio)
        beyond = size + 1 + np.floor(-np.log(u) / together)
        refined = np.where(u < side / whole, below, np.where(u < (side + middle) / whole, between, beyond))
        second = np.where(u < stays, size, refined).astype(np.int64)
        return np.column_stack((value + first, value + second))

    return draw


def partition_by_differences(counts: Integers, answers: Answers, *, threshold: int) -> list[Integers]:
    """Algorithm 6: cells with the same set of larger cells, by ascending count, from difference queries alone.

    `answers` decides one stream of distances, difference minus threshold.
    """
    cells = counts.size
    differences = counts[np.newaxis, :] - counts[:, np.newaxis] - threshold
    larger = answers(differences.ravel()).reshape(cells, cells)
    np.fill_diagonal(larger, val=False)
    groups: dict[bytes, list[int]] = {}
    for cell in range(cells):
        groups.setdefault(larger[cell].tobytes(), []).append(cell)
    ordered = sorted(groups.values(), key=lambda group: -int(larger[group[0]].sum()))
    return [np.array(group, dtype=np.int64) for group in ordered]


def reconstructed(counts: Integers, partition: list[Integers], *, rate: Fraction, noise: Noise) -> Integers:
    """Algorithm 7: each group's noisy total, divided by its size and rounded, for all its cells."""
    result = np.empty(counts.size, dtype=np.int64)
    for group in partition:
        total = int(counts[group].sum()) + int(noise.draw_discrete_laplace(rate=rate, size=1)[0])
        result[group] = round(total / group.size)
    return result
