"""Comparisons of two means that are read off the noisy sums of several cells: a group's mean beside that of all groups.

A mean is a sum over a number of rows. Both have one noisy value for each cell, drawn once, as all sums of cells have.
`sum / rows > times * other sum / other rows + constant` is decided in two steps on these values. The other mean is
divided and confined to its range. Then `sum - bar * rows` is compared with 0, where `bar` is the right side, moved by
the test's shift. Its noise is that of a sum whose weights the range bounds. A standard deviation of the other rows may
be added to the right side. Or the right side is a multiple of a quantile of the other rows.

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
from mechanisms.keyhole.group_averages import AveragedGroups, bound_average_error
from mechanisms.keyhole.row_deviations import (
    MOST_DEVIATION_STEPS,
    Numbers,
    bound_deviation_error,
    compute_deviations,
)
from mechanisms.keyhole.row_quantiles import (
    bound_quantile_error,
    find_bin_rate,
    find_farthest_side,
    find_right_sides,
    find_width_error,
)
from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE
from mechanisms.noise.noise_sum import Noises, WeightedNoise, bound_upper_tail, merge_equal_noises
from mechanisms.protocol import CellNoise, FunctionalTest, MeanPair, Unachievable
from mechanisms.threshold.one_shot import round_rate_up

Kinds: TypeAlias = tuple[tuple[tuple[int, int, int], ...], ...]
"""By kind of key: a sum, by how much its noise counts, and in how many cells."""

_OTHER_SHARE = 0.1  # of both rates, for the other mean: it is mostly that of many more rows
_DEVIATION_SHARE = 0.65  # of both rates, for an other side with a deviation, whose noise costs the most
_RANK_SHARE = 0.2  # of both rates, for the ranks of a quantile, whose bins cost about as much as the own mean
_MEAN_SHARE = 0.15  # of that, for the mean beside a standard deviation: the deviation errs far more
_ROOT = 5.0  # what the noise of squares is divided by beside a group's own: of rates tried, these cost the least
_WIDE = 0.05  # a rate at which noise is nearly continuous
_NEAR = 1.003  # what rates may be above the least
_REMEDY = "Widen the tolerance of the mean, or demand more rows by a count beside it."  # it is not sought by trying
_MOST_TRIED = 40  # rates; four are tried as a rule
_LEAST_BOUND = 1e-300  # whose logarithm is finite
_HALVED = 5  # of so many numbers tried in a search, one lies in the middle
_MOST_STEPS = 1 << 40  # of a tolerance and both means: floats then round far less than a step


@dataclass(frozen=True, slots=True)
class PairNoises:
    """The noises of a comparison of means: `first_noises` for the first mean, `second_noises` for the second.

    `places` are the positions of the sums that it reads: sum, rows, other sum, other rows, and squares for a
    deviation. A quantile's bins follow the first two.
    """

    pair: MeanPair
    places: tuple[int, ...]
    first_noises: Kinds
    second_noises: Kinds

    def balance_rates(self, prices: Sequence[float]) -> dict[int, float]:
        """Return the nearly cheapest ratios between the rates of the sums: the cube roots of variance over price."""
        one = self.pair.deviation
        far = self.pair.rows / (self.pair.other_rows * max(1, self.pair.averaged_groups))
        own = {self.places[0]: 1.0, self.places[1]: float(self.pair.largest_mean)}
        if self.pair.quantile is not None:
            other = dict.fromkeys(self.places[2:], 0.0)
        elif one is None:
            times, reach = float(abs(self.pair.other_factor)), self.pair.largest_other_mean
            other = {self.places[2]: times * far, self.places[3]: times * far * reach}
        else:
            root = far * float(abs(one.times)) / (_ROOT * max(1.0, float(one.least)))
            squares = root * float(one.square)
            reach = self.pair.largest_other_mean
            other = {self.places[2]: 2 * root * reach, self.places[3]: root * reach * reach, self.places[4]: squares}
        most: dict[int, float] = {}
        for kinds, weights in ((self.first_noises, own), (self.second_noises, other)):
            for kind in kinds:
                parts: dict[int, float] = {}
                for place, times_, count in kind:
                    weight = weights[place] * times_
                    parts[place] = parts.get(place, 0.0) + weight * weight * count
                most |= {place: max(part, most.get(place, 0.0)) for place, part in parts.items()}
        return {place: (part / max(prices[place], 1e-9)) ** (1.0 / 3.0) for place, part in most.items()}

    def make_test(self, rates: Mapping[int, Fraction], tolerance: int, fnr: float, fpr: float) -> FunctionalTest:
        """Return the test at given noise rates, with the least shift whose false-negative rate is at most `fnr`."""
        noises = tuple(
            CellNoise(2 * variant + side, place, times, count, rates[place])
            for side, kinds in enumerate((self.first_noises, self.second_noises))
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
            counted=(self.places[1], *self.places[3:]) if self.pair.quantile is None else self.places[1:3],
        )
        test = _find_other_error(bare, self.find_other_share(fnr, fpr), near=tolerance // 4)
        error = test.other_error
        room = _find_least_number(lambda margin: bound_error(test, margin), fnr, near=tolerance // 2)
        return replace(test, shift=error + room + 1)

    def find_other_share(self, fnr: float, fpr: float) -> float:
        """Return the share of the error rates that is left to the second side."""
        if self.pair.quantile is not None:
            return _RANK_SHARE * min(fnr, fpr)
        return (_OTHER_SHARE if self.pair.deviation is None else _DEVIATION_SHARE) * min(fnr, fpr)

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
    """Return noise rates of the sums at which a comparison of means keeps its contract. They are nearly the cheapest.

    Raises:
        Unachievable: the tolerance is too narrow, or its steps are too fine.
    """
    one = noises.pair.deviation
    times, most = abs(noises.pair.other_factor), _MOST_STEPS
    if one is not None:
        times, most = times + 2 * abs(one.times), MOST_DEVIATION_STEPS
    far = noises.pair.largest_mean + times * noises.pair.largest_other_mean + abs(noises.pair.constant)
    far += find_farthest_side(noises.pair)
    is_apart = all(len(set(part)) == len(part) for part in (noises.places[:2], noises.places[2:]))
    is_plain = all(
        number == 1 for kinds in (noises.first_noises, noises.second_noises) for kind in kinds for _, number, _ in kind
    )
    if not is_apart or not is_plain or tolerance + far / noises.pair.step > most:
        raise Unachievable("means of these sums cannot be compared", remedy=_REMEDY)
    ratios, fixed = noises.balance_rates(prices), dict[int, Fraction]()
    if noises.pair.quantile is not None:  # it reads ranks, whatever the tolerance
        rate = find_bin_rate(noises.pair, noises.second_noises, noises.find_other_share(fnr, fpr))
        fixed = dict.fromkeys(noises.places[2:], rate)
    factor, low, high = _WIDE / max(ratios.values()), 0.0, math.inf
    for tried in range(_MOST_TRIED):
        rates = _scale_ratios(ratios, factor) | fixed
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
            if factor >= high:  # the tolerance that is needed jumps somewhere between
                factor = math.sqrt(low * high)
        elif factor <= low * _NEAR * _NEAR or needed * _NEAR >= tolerance:
            return rates
        else:
            high, factor = factor, max(factor * needed / tolerance, low * _NEAR)
    raise Unachievable("the tolerances are too narrow for means that are read off several groups", remedy=_REMEDY)


def _scale_ratios(ratios: Mapping[int, float], factor: float) -> dict[int, Fraction]:
    return {place: round_rate_up(max(factor * ratio, float(LEAST_RATE))) for place, ratio in ratios.items()}


def bound_missed_mean(test: FunctionalTest, distance: int) -> float:
    """Return an upper bound on the probability that a literal is rejected although it holds by `distance`."""
    return bound_error(test, test.shift + distance - 2 - test.other_error)


def bound_wrong_mean(test: FunctionalTest, distance: int) -> float:
    """Return an upper bound on the probability that a literal which fails is accepted. `distance` is negative."""
    return bound_error(test, -distance - test.shift - test.other_error - 1)


def bound_error(test: FunctionalTest, margin: int) -> float:
    """Return an upper bound on the probability that noise exceeds a margin between both means, in steps.

    The margin is what remains of their difference if the second mean errs by `other_error`, less one step for rounding
    of floats. The second mean may err by more, and noise may leave the first mean without rows; both probabilities are
    added.
    """
    pair, counted = test.pair, test.counted[0]
    assert pair is not None
    beyond = math.floor(margin * pair.step * pair.rows)
    if beyond <= 0:
        return 1.0
    wide = pair.largest_mean + math.ceil(test.tolerance * pair.step)
    own = max(
        bound_upper_tail(_weigh_rows(kind, counted, wide), beyond)
        + bound_upper_tail(_take_rows(kind, counted), pair.rows)
        for kind in _list_kinds(test.cell_noises, 0)
    )
    if pair.quantile is not None:
        return min(1.0, own + bound_quantile_error(pair, _list_kinds(test.cell_noises, 1)))
    if pair.deviation is None:
        return min(1.0, own + _bound_other_error(test, test.other_error))
    mean_error, error = test.side_errors
    return min(1.0, own + _bound_mean_error(test, mean_error) + _bound_spread_error(test, error, mean_error))


def _find_other_error(bare: FunctionalTest, share: float, *, near: int) -> FunctionalTest:
    """Return a test with the least error of the right side that is exceeded with a share at most."""
    pair = bare.pair
    assert pair is not None
    if pair.quantile is not None:
        if bound_quantile_error(pair, _list_kinds(bare.cell_noises, 1)) >= min(bare.fnr, bare.fpr):
            raise Unachievable("the noise in bins of rows is too wide for a quantile", remedy=_REMEDY)
        return replace(bare, other_error=find_width_error(pair))
    if pair.deviation is None:
        error = _find_least_number(lambda one: _bound_other_error(bare, one), share, near=near)
        return replace(bare, other_error=error)
    mean_error = _find_least_number(lambda one: _bound_mean_error(bare, one), _MEAN_SHARE * share, near=near)
    left = share - _bound_mean_error(bare, mean_error)
    error = _find_least_number(lambda one: _bound_spread_error(bare, one, mean_error), left, near=near)
    both = math.ceil(abs(pair.other_factor) * mean_error + abs(pair.deviation.times) * error)
    return replace(bare, other_error=both, side_errors=(mean_error, error))


def _bound_mean_error(test: FunctionalTest, error: int) -> float:
    """Return an upper bound of the chance that the mean beside a deviation errs by more than some steps.

    It may err in either direction. It errs if no rows are left.
    """
    pair, counted = test.pair, test.counted[1]
    assert pair is not None
    assert pair.deviation is not None
    beyond, rows = math.floor(error * pair.step * pair.other_rows), pair.other_rows - pair.deviation.is_sample
    if beyond <= 0 or rows <= 0:
        return 1.0
    bounds: list[float] = []
    for kind in _list_kinds(test.cell_noises, 1):
        summed = tuple(one for one in kind if one.place != test.counted[2])
        wide = pair.largest_other_mean + math.ceil(error * pair.step)
        weighed = bound_upper_tail(_weigh_rows(summed, counted, wide), beyond)
        bounds.append(2.0 * weighed + bound_upper_tail(_take_rows(kind, counted), rows))
    return max(bounds)


def _bound_spread_error(test: FunctionalTest, error: int, mean_error: int) -> float:
    """Return an upper bound of the chance that a deviation errs by more than some steps, in one direction."""
    pair = test.pair
    assert pair is not None
    return max(
        bound_deviation_error(pair, kind, test.counted, error=error, mean_error=mean_error)
        for kind in _list_kinds(test.cell_noises, 1)
    )


def _bound_other_error(test: FunctionalTest, error: int) -> float:
    """Return an upper bound of the chance that the right side errs by more than some steps, in one direction."""
    pair, counted = test.pair, test.counted[1]
    assert pair is not None
    if pair.averaged_groups:
        kinds = _list_kinds(test.cell_noises, 1)
        return max(bound_average_error(pair, kind, counted, error) for kind in kinds)
    beyond = math.floor(error * pair.step * pair.other_rows / abs(pair.other_factor))
    if beyond <= 0:
        return 1.0
    return max(
        bound_upper_tail(_weigh_rows(kind, counted, pair.largest_other_mean), beyond)
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


def decide_means(
    test: FunctionalTest, cut: Cut, sums: Sequence[Integers], groups: AveragedGroups | None = None
) -> Booleans:
    """Return True for each key whose noisy sum, rows, other sum, other rows and squares meet a literal.

    A key without noisy rows in the other mean does not meet it.

    Parameters:
        groups: the cells of the other mean, if it is that of groups' means.
    """
    pair = test.pair
    assert pair is not None
    total, rows = (values.astype(np.float64) for values in sums[:2])
    step, far = float(pair.step), pair.largest_mean + float(test.shift * pair.step)
    is_mean = pair.quantile is None
    right, known = _compute_right_sides(pair, sums[2:], groups) if is_mean else find_right_sides(pair, cut, sums[2:])
    if cut.above:
        bar = right - test.shift * step
        held = (bar < pair.largest_mean) & (total - np.maximum(bar, -far) * rows > 0)
    else:
        bar = right + test.shift * step
        held = (bar > -pair.largest_mean) & (total - np.minimum(bar, far) * rows < 0)
    return np.asarray(held & known, dtype=np.bool_)


def _compute_right_sides(
    pair: MeanPair, sums: Sequence[Integers], groups: AveragedGroups | None
) -> tuple[Numbers, Booleans]:
    """Return the right side of each key with a mean there, and True for the keys whose mean has rows."""
    total, rows, *squares = (values.astype(np.float64) for values in sums)
    known = np.asarray(rows > (pair.deviation is not None and pair.deviation.is_sample), dtype=np.bool_)
    other = np.clip(total / np.where(known, rows, 1.0), -pair.largest_other_mean, pair.largest_other_mean)
    if groups is not None:
        other, known = groups.compute_averages(pair)
    right = float(pair.other_factor) * other + float(pair.constant)
    if pair.deviation is not None:
        right += compute_deviations(pair, total, rows, squares[0])
    return right, known
