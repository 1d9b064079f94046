"""Comparisons of two means that are read off the noisy sums of several cells: a group's mean beside that of all groups.

A mean is a sum over a number of rows. Both have one noisy value for each cell, drawn once, as all sums of cells have.
`sum / rows > times * other sum / other rows + constant` is decided in two steps on these values. The other mean is
divided and confined to its range. Then `sum - bar * rows` is compared with 0, where `bar` is the right side, moved by
the test's shift. Its noise is that of a sum whose weights the range bounds.

Guarantee: a literal errs at most as often as `bound_missed_mean` and `bound_wrong_mean` say, for keys whose means have
as many rows as the pair demands. Privacy is that of the noisy cells. Proof: docs/proofs/cell_means.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from mechanisms.formula import Booleans, Cut, Integers
from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE
from mechanisms.noise.noise_sum import Noises, WeightedNoise, bound_upper_tail, merge_equal_noises
from mechanisms.protocol import CellNoise, FunctionalTest, MeanPair, Unachievable
from mechanisms.threshold.one_shot import round_rate_up

Kinds: TypeAlias = tuple[tuple[tuple[int, int, int], ...], ...]
"""By kind of key: a sum, by how much its noise counts, and in how many cells."""

_OTHER_SHARE = 0.1  # of both rates, for the other mean: it is mostly that of many more rows
_WIDE = 0.05  # a rate at which noise is nearly continuous
_NEAR = 1.003  # what rates may be above the least
_REMEDY = "Widen the tolerance of the mean, or demand more rows by a count beside it."  # it is not sought by trying
_MOST_TRIED = 40  # rates; four are tried as a rule
_LEAST_BOUND = 1e-300  # whose logarithm is finite
_HALVED = 5  # of so many numbers tried in a search, one lies in the middle
_MOST_STEPS = 1 << 40  # of a tolerance and both means: floats then round far less than a step


@dataclass(frozen=True, slots=True)
class PairNoises:
    """The noises of a comparison of means: those in the first mean, and those in the other.

    `places` are the four sums of the reading: sum, rows, other sum, other rows.
    """

    pair: MeanPair
    places: tuple[int, int, int, int]
    own: Kinds
    other: Kinds

    def balance_rates(self, prices: Sequence[float]) -> dict[int, float]:
        """Return how the rates of the sums relate, nearly as is cheapest: as the cube root of variance over price."""
        far = float(abs(self.pair.times)) * self.pair.rows / self.pair.other_rows
        sides = (
            (self.own, self.places[1], self.pair.reach, 1.0),
            (self.other, self.places[3], self.pair.other_reach, far),
        )
        most: dict[int, float] = {}
        for kinds, counted, reach, scale in sides:
            for kind in kinds:
                parts: dict[int, float] = {}
                for place, times, count in kind:
                    weight = scale * times * (reach if place == counted else 1)
                    parts[place] = parts.get(place, 0.0) + weight * weight * count
                most |= {place: max(part, most.get(place, 0.0)) for place, part in parts.items()}
        return {place: (part / max(prices[place], 1e-9)) ** (1.0 / 3.0) for place, part in most.items()}

    def make_test(self, rates: Mapping[int, Fraction], tolerance: int, fnr: float, fpr: float) -> FunctionalTest:
        """Return the test at given noise rates, with the least shift whose false-negative rate is at most `fnr`."""
        noises = tuple(
            CellNoise(2 * variant + side, place, times, count, rates[place])
            for side, kinds in enumerate((self.own, self.other))
            for variant, kind in enumerate(kinds)
            for place, times, count in kind
        )
        bare = FunctionalTest(
            epsilon=0.0,
            rate=noises[0].rate,
            shift=0,
            tie=Fraction(0),
            fnr=fnr,
            fpr=fpr,
            tolerance=tolerance,
            cell_noises=noises,
            pair=self.pair,
            counted=(self.places[1], self.places[3]),
        )
        error = _find_least_number(
            lambda one: _bound_other_error(bare, one), _OTHER_SHARE * min(fnr, fpr), near=tolerance // 4
        )
        test = replace(bare, other_error=error)
        room = _find_least_number(lambda margin: bound_error(test, margin), fnr, near=tolerance // 2)
        return replace(test, shift=error + room + 1)

    def find_tolerance(self, rates: Mapping[int, Fraction], most: int, fnr: float, fpr: float) -> int:
        """Return the least tolerance, in steps, beyond which the test at given rates keeps its error rates.

        The search is meant for tolerances up to `most`.
        """
        test = self.make_test(rates, most, fnr, fpr)
        room = _find_least_number(lambda margin: bound_error(test, margin), fpr, near=most // 2)
        return test.shift + test.other_error + 1 + room

    def meets(self, rates: Mapping[int, Fraction], tolerance: int, fnr: float, fpr: float) -> bool:
        """Return True if the test at given noise rates keeps `fnr` and `fpr` beyond a tolerance."""
        if not all(rates[place] for place in self.places):
            return False
        try:
            return self.find_tolerance(rates, tolerance, fnr, fpr) <= tolerance
        except Unachievable:
            return False


@lru_cache(maxsize=64)
def find_pair_rates(
    noises: PairNoises, prices: tuple[float, ...], tolerance: int, fnr: float, fpr: float
) -> Mapping[int, Fraction]:
    """Return rates of the sums at which a comparison of means is met, nearly the cheapest ones.

    Raises:
        Unachievable: the tolerance is too narrow, or counted in too fine steps.
    """
    far = noises.pair.reach + abs(noises.pair.times) * noises.pair.other_reach + abs(noises.pair.constant)
    is_apart = len(set(noises.places[:2])) == len(set(noises.places[2:])) == 2
    is_plain = all(times == 1 for kinds in (noises.own, noises.other) for kind in kinds for _, times, _ in kind)
    if not is_apart or not is_plain or tolerance + far / noises.pair.step > _MOST_STEPS:
        raise Unachievable("means of these sums cannot be compared", remedy=_REMEDY)
    ratios = noises.balance_rates(prices)
    factor, low = _WIDE / max(ratios.values()), 0.0
    for tried in range(_MOST_TRIED):
        rates = _scale_ratios(ratios, factor)
        if any(rate > GREATEST_RATE for rate in rates.values()):
            break
        try:
            needed = noises.find_tolerance(rates, tolerance, fnr, fpr)
        except Unachievable:  # so wide noise may leave no rows
            low, factor = factor, 2.0 * factor
            continue
        if not tried and needed < tolerance:
            factor *= needed / tolerance  # a guess that is far too high
        elif needed > tolerance:
            low, factor = factor, factor * max(_NEAR, min(2.0, needed / tolerance)) if tolerance else 2.0 * factor
        elif factor <= low * _NEAR * _NEAR or needed * _NEAR >= tolerance:
            return rates
        else:
            factor = max(factor * needed / tolerance, low * _NEAR)
    raise Unachievable("the tolerances are too narrow for means that are read off several groups", remedy=_REMEDY)


def _scale_ratios(ratios: Mapping[int, float], factor: float) -> dict[int, Fraction]:
    return {place: round_rate_up(max(factor * ratio, float(LEAST_RATE))) for place, ratio in ratios.items()}


def bound_missed_mean(test: FunctionalTest, distance: int) -> float:
    """Return an upper bound of the chance that a literal is rejected at a distance at which it holds."""
    return bound_error(test, test.shift + distance - 2 - test.other_error)


def bound_wrong_mean(test: FunctionalTest, distance: int) -> float:
    """Return an upper bound of the chance that a literal is accepted at a distance, negative where it fails."""
    return bound_error(test, -distance - test.shift - test.other_error - 1)


def bound_error(test: FunctionalTest, margin: int) -> float:
    """Return an upper bound of the chance that noise outweighs a margin between both means, in steps.

    The margin is left when the other mean errs by `other_error`, and floats by a step. The other may err by more, and
    noise may leave the first mean no rows; both are added.
    """
    pair, counted = test.pair, test.counted[0]
    assert pair is not None
    beyond = math.floor(margin * pair.step * pair.rows)
    if beyond <= 0:
        return 1.0
    wide = pair.reach + math.ceil(test.tolerance * pair.step)
    own = max(
        bound_upper_tail(_weigh_rows(kind, counted, wide), beyond)
        + bound_upper_tail(_take_rows(kind, counted), pair.rows)
        for kind in _list_kinds(test.cell_noises, 0)
    )
    return min(1.0, own + _bound_other_error(test, test.other_error))


def _bound_other_error(test: FunctionalTest, error: int) -> float:
    """Return an upper bound of the chance that the right side errs by more than some steps, in one direction."""
    pair, counted = test.pair, test.counted[1]
    assert pair is not None
    beyond = math.floor(error * pair.step * pair.other_rows / abs(pair.times))
    if beyond <= 0:
        return 1.0
    return max(
        bound_upper_tail(_weigh_rows(kind, counted, pair.other_reach), beyond)
        + bound_upper_tail(_take_rows(kind, counted), pair.other_rows)
        for kind in _list_kinds(test.cell_noises, 1)
    )


@lru_cache(maxsize=256)
def _list_kinds(noises: tuple[CellNoise, ...], side: int) -> tuple[tuple[CellNoise, ...], ...]:
    """Return the noises of each kind of key in the first mean (0) or the other (1)."""
    variants = sorted({one.variant for one in noises if one.variant % 2 == side})
    return tuple(tuple(one for one in noises if one.variant == variant) for variant in variants)


@lru_cache(maxsize=1024)
def _weigh_rows(kind: tuple[CellNoise, ...], counted: int, weight: int) -> Noises:
    """Return the noises of a sum and `weight` times its rows."""
    weighed = ((one, weight if one.place == counted else 1) for one in kind)
    return merge_equal_noises(
        [WeightedNoise(one.times * times, one.count, float(one.rate)) for one, times in weighed if times]
    )


@lru_cache(maxsize=1024)
def _take_rows(kind: tuple[CellNoise, ...], counted: int) -> Noises:
    """Return the noises of the rows."""
    return merge_equal_noises(
        [WeightedNoise(one.times, one.count, float(one.rate)) for one in kind if one.place == counted]
    )


def _find_least_number(bound: Callable[[int], float], share: float, *, near: int) -> int:
    """Return the least number of at least 0 from which on a falling bound is at most a share.

    Each value of the bound takes a thousandth of a second. The next number tried is where the logarithms of the values
    around it would meet the share. This is regula falsi, with the end that stays counted half (Illinois).

    Parameters:
        near: a guess.

    Raises:
        Unachievable: there is no such number below `_MOST_STEPS`.
    """

    def measure(number: int) -> float:
        return math.log(max(bound(number), _LEAST_BOUND) / share)

    low, above, high = -1, -math.log(share), max(1, near)
    below = measure(high)
    while below > 0.0:
        if high > _MOST_STEPS:
            raise Unachievable(
                "the tolerances are too narrow for means that are read off several groups", remedy=_REMEDY
            )
        low, above, high = high, below, 2 * high
        below = measure(high)
    last = tried = 0
    while high - low > 1:
        tried += 1
        part = above / (above - below) if tried % _HALVED else 0.5  # a jump would be approached slowly
        middle = min(high - 1, max(low + 1, low + round(part * (high - low))))
        found = measure(middle)
        side = 1 if found > 0.0 else -1
        if side > 0:
            low, above, below = middle, found, below / 2.0 if side == last else below
        else:
            high, below, above = middle, found, above / 2.0 if side == last else above
        last = side
    return high


def decide_means(test: FunctionalTest, cut: Cut, sums: Sequence[Integers]) -> Booleans:
    """Return True for each key whose noisy sum, rows, other sum and other rows meet a literal.

    A key without noisy rows in the other mean does not meet it.
    """
    pair = test.pair
    assert pair is not None
    total, rows, other_total, other_rows = (values.astype(np.float64) for values in sums)
    known = other_rows > 0
    other = np.clip(other_total / np.where(known, other_rows, 1.0), -pair.other_reach, pair.other_reach)
    step, far = float(pair.step), pair.reach + float(test.shift * pair.step)
    right = float(pair.times) * other + float(pair.constant)
    if cut.above:
        bar = right - test.shift * step
        held = (bar < pair.reach) & (total - np.maximum(bar, -far) * rows > 0)
    else:
        bar = right + test.shift * step
        held = (bar > -pair.reach) & (total - np.minimum(bar, far) * rows < 0)
    return np.asarray(held & known, dtype=np.bool_)


def compare_exact_means(pair: MeanPair, sums: Sequence[Integers]) -> tuple[Integers, Booleans]:
    """Return the sign of the difference of both sides for each key, and True for keys whose means have rows.

    It is exact, for owners and tests.
    """
    total, rows, other_total, other_rows = (values.astype(object) for values in sums)
    top, below, constant = pair.times.numerator, pair.times.denominator, pair.constant
    difference = (
        total * other_rows * (below * constant.denominator)
        - other_total * rows * (top * constant.denominator)
        - rows * other_rows * (below * constant.numerator)
    )
    sign = np.array([(one > 0) - (one < 0) for one in difference], dtype=np.int64)
    present = np.array([own > 0 and other > 0 for own, other in zip(rows, other_rows, strict=True)], dtype=np.bool_)
    return np.where(present, sign, 0), present
