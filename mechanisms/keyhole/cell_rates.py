"""The noise of readings of cells, and the rates of their sums at which a test of them is met.

Proof: docs/proofs/cell_readings.md.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from mechanisms.apportionment.keyhole import Shares
from mechanisms.keyhole.taken_cells import (
    DeviationParts,
    Weights,
    count_candidates,
    list_deviations,
    weigh_noises,
)
from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE
from mechanisms.noise.noise_deviation import find_greatest_excess, find_greatest_shortfall
from mechanisms.noise.noise_sum import (
    Noises,
    WeightedNoise,
    bound_largest_tail,
    find_largest_quantile,
    merge_equal_noises,
)
from mechanisms.protocol import CellNoise, CommonSums, FunctionalTest, Unachievable
from mechanisms.threshold.one_shot import round_rate_up

_DEVIATION = -1
"""The variant of the noise of a standard deviation."""
_DEVIATION_SHARE = 0.25  # of both rates, for a standard deviation: its error grows slowly as its share falls
_SURE = 1.0 + 1e-9  # what floats of a deviation's error are rounded up by
_WIDE = 0.01  # a rate at which noise is nearly continuous
_STEP = 0.98  # of a guessed rate, which is tried below it
_GROWTH = 1.0005  # what a rate may be above the least, and is raised beyond what it seems to lack
_MOST_TRIED = 60  # rates; the guess is nearly always right, and each further one halves what is left


@dataclass(frozen=True, slots=True)
class ReadingNoise:
    """The noise of one functional's reading: that of each kind of key, and the standard deviations in it.

    A quantile errs only if the noise of one of `candidates` cells is large. The first number is for errors that miss a
    key, the second for errors that return one wrongly. `is_above` has the directions in which the functional is
    compared.
    """

    weights: tuple[Weights, ...]
    candidates: tuple[int, int] = (1, 1)
    deviations: DeviationParts = frozenset()
    is_above: tuple[bool, ...] = (True, False)

    @property
    def has_noise(self) -> bool:
        """True if noise changes the functional's value in some key."""
        return bool(self.weights or self.deviations)

    def bound_deviations(self, rates: Mapping[int, Fraction], fnr: float, fpr: float) -> tuple[int, int]:
        """Return the errors of standard deviations for misses and for wrong answers, in steps of the functional."""
        found = [0, 0]
        for place, factor, cells, is_sample in self.deviations:
            wider = math.sqrt(cells / (cells - 1)) if is_sample else 1.0
            for side, share in enumerate((fnr, fpr)):
                # a literal above a threshold is missed if its reading is too low
                for raises in {(factor > 0) is (above is bool(side)) for above in self.is_above}:
                    error = _bound_error(cells, float(rates[place]), _DEVIATION_SHARE * share, raises=raises)
                    found[side] = max(found[side], 2 * math.ceil(_SURE * wider * abs(factor) * error / 2.0))
        return found[0], found[1]

    def sum_quantiles(self, rates: Mapping[int, Fraction], fnr: float, fpr: float) -> int:
        """Return the sum of two quantiles of the noise, one on each side.

        A share `fnr` of the noise lies beyond the first quantile, and a share `fpr` beyond the second.
        """
        made = [
            merge_equal_noises([WeightedNoise(times, count, float(rates[place])) for place, times, count in one])
            for one in self.weights
        ]
        left = 1.0 - _DEVIATION_SHARE if self.deviations else 1.0
        missed, wrong = (
            max(1, find_largest_quantile(made, left * share / cells))
            for share, cells in zip((fnr, fpr), self.candidates, strict=True)
        )
        return missed + wrong + sum(self.bound_deviations(rates, fnr, fpr))

    def balance_rates(self, prices: Sequence[float]) -> dict[int, float]:
        """Return the cheapest ratios between the rates of the sums.

        Among rates with the same variance of the value, a rate is proportional to a cube root: that of the noise's part
        in the value over the sum's price.
        """
        parts: dict[int, float] = {}
        deviations = tuple((place, abs(factor), 1) for place, factor, _, _ in self.deviations)
        for one in self.weights or ((),):
            own: dict[int, float] = {}
            for place, times, count in (*one, *deviations):
                own[place] = own.get(place, 0.0) + times * times * count
            parts = {place: max(part, parts.get(place, 0.0)) for place, part in own.items()} | {
                place: part for place, part in parts.items() if place not in own
            }
        return {place: (part / max(prices[place], 1e-9)) ** (1.0 / 3.0) for place, part in parts.items()}

    def estimate_quantile_sum(self, ratios: Mapping[int, float], fnr: float, fpr: float) -> float:
        """Return an estimate of `sum_quantiles` for these rates, in the unit of a value.

        For wide noise, the reach times the rate hardly depends on the rate, so one estimate serves all factors.
        """
        factor = _WIDE / min(ratios.values())
        rates = {place: Fraction(factor * ratio) for place, ratio in ratios.items()}
        return factor * self.sum_quantiles(rates, fnr, fpr)

    def make_test(self, rates: Sequence[Fraction], tolerance: int, shares: Shares, functional: int) -> FunctionalTest:
        """Return the test at the sums' rates, with the least shift whose false-negative rate is at most its share.

        A value that just holds is 1 beyond the threshold, one that just fails is `tolerance` short of it.
        """
        noises = tuple(
            CellNoise(variant, place, times, count, rates[place])
            for variant, one in enumerate(self.weights)
            for place, times, count in one
        )
        deviations = tuple(
            CellNoise(_DEVIATION, place, abs(factor), cells, rates[place])
            for place, factor, cells, _ in sorted(self.deviations)
        )
        fnr, fpr = shares.fnr[functional], shares.fpr[functional]
        test = FunctionalTest(
            epsilon=0.0,
            rate=(noises or deviations)[0].rate,
            shift=0,
            tie=Fraction(0),
            fnr=fnr,
            fpr=fpr,
            tolerance=tolerance,
            cell_noises=(*noises, *deviations),
            candidates=self.candidates,
            deviation_errors=self.bound_deviations(dict(enumerate(rates)), fnr, fpr),
        )
        left = fnr * (1.0 - _DEVIATION_SHARE if self.deviations else 1.0)
        reach = max(1, find_largest_quantile(_list_kinds(test.cell_noises), left / self.candidates[0]))
        return replace(test, shift=reach - 1 + test.deviation_errors[0])


def read_noise(common: CommonSums, functional: int, *, is_above: Iterable[bool] = (True, False)) -> ReadingNoise:
    """Return the noise of a functional's reading. Raise `Unachievable` if its noise cannot be bounded.

    Parameters:
        is_above: for each literal of it, True if values above a threshold hold.
    """
    directions = tuple(sorted(set(is_above)))
    raised, lowered = count_candidates(common, functional)
    missed = max(lowered if above else raised for above in directions)
    wrong = max(raised if above else lowered for above in directions)
    return ReadingNoise(
        weigh_noises(common, functional), (missed, wrong), list_deviations(common, functional), directions
    )


def _bound_error(cells: int, rate: float, share: float, *, raises: bool) -> float:
    """Return a bound on how much noise raises or lowers a deviation of all cells, with a share at most.

    Discrete noise is continuous noise, rounded to the nearest whole number, or nearer to 0.
    """
    if raises:
        return find_greatest_excess(cells, share) / rate + 0.5
    return find_greatest_shortfall(share) / (rate * math.sqrt(cells))


def bound_missed_sum(test: FunctionalTest, distance: int) -> float:
    """Return an upper bound on the probability that a literal is rejected although it holds by `distance`."""
    return _bound_side_error(test, test.shift + distance, 0, test.fnr)


def bound_wrong_sum(test: FunctionalTest, distance: int) -> float:
    """Return an upper bound on the probability that a literal which fails is accepted. `distance` is negative."""
    return _bound_side_error(test, 1 - test.shift - distance, 1, test.fpr)


def _bound_side_error(test: FunctionalTest, error: int, side: int, share: float) -> float:
    """Return an upper bound of the chance of an error, in the way that misses (0) or returns wrongly (1)."""
    kinds = _list_kinds(test.cell_noises)
    error -= test.deviation_errors[side]
    tail = bound_largest_tail(kinds, error) if kinds else float(error <= 0)
    beside = _DEVIATION_SHARE * share if test.deviation_errors[side] else 0.0
    return min(1.0, test.candidates[side] * tail + beside)


@lru_cache(maxsize=256)
def _list_kinds(noises: tuple[CellNoise, ...]) -> tuple[Noises, ...]:
    """Return the noises of each kind of key, without those of standard deviations."""
    return tuple(
        merge_equal_noises(
            [WeightedNoise(one.times, one.count, float(one.rate)) for one in noises if one.variant == variant]
        )
        for variant in sorted({one.variant for one in noises} - {_DEVIATION})
    )


def find_rates(
    noise: ReadingNoise, prices: tuple[float, ...], tolerance: int, fnr: float, fpr: float
) -> dict[int, Fraction]:
    """Return noise rates of a functional's sums at which its test keeps its shares. They are nearly the cheapest.

    The rates' common factor is estimated, then raised until both shares fit.

    Raises:
        Unachievable: the tolerance is too narrow.
    """
    ratios = noise.balance_rates(prices)
    room = tolerance + 2
    low, factor, step = 0.0, noise.estimate_quantile_sum(ratios, fnr, fpr) / room, _STEP
    found: dict[int, Fraction] | None = None
    for _ in range(_MOST_TRIED):
        rates = {place: round_rate_up(max(factor * ratio, float(LEAST_RATE))) for place, ratio in ratios.items()}
        if any(rate > GREATEST_RATE for rate in rates.values()):
            break
        reached = noise.sum_quantiles(rates, fnr, fpr)
        if reached <= room:
            found, high = rates, factor
        else:
            low = factor
        if found is None:
            factor *= _GROWTH * min(2.0, reached / room)
        elif high <= low * _GROWTH:
            return found
        elif not low:  # the guess may be far above the least where the tolerance is a few steps
            factor, step = factor * step, step * step
        else:
            factor = 0.5 * (low + high)
    if found is None:
        raise Unachievable("the tolerances are too narrow for thresholds that are read off several groups")
    return found
