"""Thresholds on values that are read off the noisy sums of several cells: shares of a total, differences, windows.

Each cell of the key space has one noisy value for each sum, drawn once. A group is above a share q of the total if
`sum - q * total` is positive. A month is above the month before if the difference of their sums is positive. Both are
whole-number combinations of noisy cells. Every key that needs a cell reads the same value, so a cell is charged once.

Proof: docs/proofs/cell_readings.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from mechanisms.apportionment.keyhole import LossCurve, Shares
from mechanisms.keyhole.cell_means import (
    PairNoises,
    bound_missed_mean,
    bound_wrong_mean,
    find_pair_rates,
)
from mechanisms.keyhole.contract import (
    OneShotKind,
    keep_contract,
    list_mentioned_functionals,
    list_task_tolerances,
    meet_contract,
)
from mechanisms.keyhole.taken_cells import (
    Weights,
    count_candidates,
    weigh_noises,
    weigh_parts,
)
from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE
from mechanisms.noise.noise_sum import Noises, WeightedNoise, bound_largest_tail, find_largest_reach, merge_equal_noises
from mechanisms.protocol import (
    Calibration,
    CellNoise,
    CommonSums,
    DecisionTask,
    Exposure,
    FunctionalTest,
    Unachievable,
)
from mechanisms.threshold.joint_loss import (
    compute_joint_loss,
    expose_all_functionals,
    expose_functional_sets,
    list_sum_rates,
)
from mechanisms.threshold.one_shot import find_least_epsilon, round_rate_up, round_up_to_float

_WIDE = 0.01  # a rate at which noise is nearly continuous
_MOST_KINDS = 100  # of keys whose values have different noise: each takes a few thousandths of a second to plan
_STEP = 0.98  # of a guessed rate, which is tried below it
_GROWTH = 1.0005  # what a rate may be above the least, and is raised beyond what it seems to lack
_MOST_TRIED = 60  # rates; the guess is nearly always right, and each further one halves what is left


def calibrate_on_cells(mechanism: str, task: DecisionTask) -> Calibration:
    """Return one rate for every sum, and one test for every functional, which together keep the contract.

    Guarantee: that of `meet_contract` for `fnr` and `fpr`, for every key, from upper bounds of the tails of the noise
    in its reading. `worst_case_epsilon` is the loss of one cell: the largest sum, over the sums' exposures, of rate
    times sensitivity times part. Every answer is a function of the noisy cells. Proof: docs/proofs/cell_readings.md.

    Parameters:
        task: with `common.cells`.

    Raises:
        Unachievable: no finite loss meets the contract.
    """
    common = task.common
    assert common is not None
    assert common.cells, "a reading of the key's own cell alone is a common sum"
    number = len(common.readings)
    near, prices = list_task_tolerances(task), _list_rate_costs(common)
    pairs = {one: noises for one in range(number) if (noises := weigh_pair(common, one)) is not None}
    weights = [() if one in pairs else _weigh_to_plan(common, one) for one in range(number)]
    candidates = [1 if one in pairs else count_candidates(common, one) for one in range(number)]

    def find_loss(functional: int, fnr: float, fpr: float) -> tuple[float, float, float]:
        if functional in pairs:
            return _estimate_pair_loss(pairs[functional], prices, near[functional], fnr, fpr)
        every = (times * math.ceil(prices[place]) for one in weights[functional] for place, times, _ in one)
        cells = candidates[functional]
        return find_least_epsilon(
            sensitivity=max(every, default=1),
            tolerance=near[functional],
            fnr=fnr / cells,
            fpr=fpr / cells,
            allow_block=False,
        )

    def calibrate_together(shares: Shares) -> Mapping[int, FunctionalTest]:
        rates = [Fraction(0)] * len(common.sensitivities)
        for one in (one for one in list_mentioned_functionals(task) if weights[one]):
            fnr, fpr = shares.fnr[one] / candidates[one], shares.fpr[one] / candidates[one]
            for place, rate in _find_rates(weights[one], prices, near[one], fnr, fpr).items():
                rates[place] = max(rates[place], rate)
        compared = {one: pairs[one] for one in list_mentioned_functionals(task) if one in pairs}
        _raise_to_pairs(rates, compared, prices, near, shares)
        return _make_tests(task, rates, shares)

    # shares that are best for a sum of losses, and for the largest: readings may have all their sums in common, or none
    kind = _make_kind(find_loss, calibrate_together)
    one_by_one = expose_functional_sets(([one] for one in range(number)), functionals=number)
    found: list[Calibration] = []
    refused: Unachievable | None = None
    for exposures in dict.fromkeys((expose_all_functionals(number), one_by_one)):
        try:
            made = meet_contract(mechanism, _count_readings(task, exposures), kind)
        except Unachievable as refusal:
            refused = refusal
        else:
            found.append(_price_sums(made, task))
    if not found:
        assert refused is not None
        raise refused
    return min(found, key=lambda one: one.worst_case_epsilon)


def _raise_to_pairs(
    rates: list[Fraction],
    compared: Mapping[int, PairNoises],
    prices: tuple[float, ...],
    near: Sequence[int],
    shares: Shares,
) -> None:
    """Raise the rates of sums until they suffice for every comparison of means, the narrowest first.

    Comparisons that differ in a factor alone need much the same rates. So most are only checked.
    """
    for one, pair in sorted(compared.items(), key=lambda item: near[item[0]]):
        if pair.meets(dict(enumerate(rates)), near[one], shares.fnr[one], shares.fpr[one]):
            continue
        found = find_pair_rates(pair, prices, near[one], shares.fnr[one], shares.fpr[one])
        for place, rate in found.items():
            rates[place] = max(rates[place], rate)


def calibrate_at_rates(calibration: Calibration, rates: Sequence[Fraction]) -> Calibration:
    """Return a question's calibration with noise of other rates on its sums, such as those of stored values.

    Guarantee: the contract of `calibrate_on_cells`, checked for these rates, if they do not follow from the noise
    itself. Every functional keeps its shares, or smaller ones.

    Parameters:
        calibration: made by `calibrate_on_cells`.
        rates: one for each sum, positive for those that a test reads.

    Raises:
        Unachievable: the shares are not met at these rates.
    """
    task, near = calibration.task, list_task_tolerances(calibration.task)

    def calibrate_together(shares: Shares) -> Mapping[int, FunctionalTest]:
        made = _make_tests(task, rates, shares)
        if any(bound_false_accept(test, -near[one]) > shares.fpr[one] for one, test in made.items()):
            raise Unachievable("the stored noise is wider than the question needs")
        return made

    shares = Shares(
        fnr=tuple(test.fnr for test in calibration.tests), fpr=tuple(test.fpr for test in calibration.tests)
    )
    counted = _count_readings(task, expose_all_functionals(len(calibration.tests)))
    made = keep_contract(calibration.mechanism, counted, _make_kind(_price_nothing, calibrate_together), shares)
    return replace(_price_sums(made, task), notes=calibration.notes, compared=calibration.compared)


def _make_kind(loss: LossCurve, calibrate_together: Callable[[Shares], Mapping[int, FunctionalTest]]) -> OneShotKind:
    return OneShotKind(
        loss=loss,
        calibrate=_calibrate_none,
        is_tied=False,
        bound_false_reject=bound_false_reject,
        bound_false_accept=bound_false_accept,
        decides_several=True,
        calibrate_together=calibrate_together,
    )


def _count_readings(task: DecisionTask, exposures: tuple[Exposure, ...]) -> DecisionTask:
    """Return the task with each reading counted as one functional of its own, as shares are apportioned."""
    return replace(task, sensitivities=(1,) * len(task.sensitivities), blocks=frozenset(), exposures=exposures)


def _make_tests(task: DecisionTask, rates: Sequence[Fraction], shares: Shares) -> dict[int, FunctionalTest]:
    """Return the test of every functional that has noise, at the sums' rates. Raise `Unachievable`."""
    common, near = task.common, list_task_tolerances(task)
    assert common is not None
    found: dict[int, FunctionalTest] = {}
    for one in list_mentioned_functionals(task):
        pair = weigh_pair(common, one)
        if pair is not None:
            known = dict(enumerate(rates))
            found[one] = pair.make_test(known, near[one], shares.fnr[one], shares.fpr[one])
        elif weights := _weigh_to_plan(common, one):
            found[one] = _find_test(weights, rates, near[one], shares, one, count_candidates(common, one))
    return found


def _price_sums(found: Calibration, task: DecisionTask) -> Calibration:
    """Return a calibration for the task, with the loss of its sums."""
    common = task.common
    assert common is not None
    losses = [rate * sensitivity for rate, sensitivity in zip(list_sum_rates(found), common.sensitivities, strict=True)]
    tests = tuple(
        replace(test, epsilon=round_up_to_float(losses[test.cell_noises[0].place])) if test.cell_noises else test
        for test in found.tests
    )
    worst = round_up_to_float(compute_joint_loss(losses, common.exposures))
    return replace(found, task=task, tests=tests, worst_case_epsilon=worst)


def find_affordable_tolerance(common: CommonSums, functional: int, *, epsilon: float, fnr: float, fpr: float) -> int:
    """Return about the least tolerance at which one functional's test costs a cell `epsilon`."""
    prices = _list_rate_costs(common)
    weights = _weigh_to_plan(common, functional)
    if not weights:
        return 0
    ratios = _balance_rates(weights, prices)
    wanted = epsilon / sum(ratio * prices[place] for place, ratio in ratios.items())
    cells = count_candidates(common, functional)
    return max(0, math.ceil(_scaled_reach(weights, ratios, fnr / cells, fpr / cells) / wanted) - 2)


def weigh_pair(common: CommonSums, functional: int) -> PairNoises | None:
    """Return the noises of a comparison of means, or None for a sum. Raise `Unachievable`."""
    pair = common.find_pair(functional)
    if pair is None:
        return None
    parts = tuple(zip(common.readings[functional], common.cells[functional], strict=True))
    own, other = (_check_kinds(weigh_parts(side, common.shape)) for side in (parts[:2], parts[2:]))
    (first, _), (second, _), (third, _), (fourth, _) = common.readings[functional]
    return PairNoises(pair, (first, second, third, fourth), own, other)


def _estimate_pair_loss(
    noises: PairNoises, prices: Sequence[float], tolerance: int, fnr: float, fpr: float
) -> tuple[float, float, float]:
    """Return about the loss of a comparison of means, by which rates are shared between functionals."""
    steps = max(1, math.floor(tolerance * noises.pair.step * noises.pair.rows))
    price = prices[noises.places[0]] + noises.pair.reach * prices[noises.places[1]]
    return find_least_epsilon(
        sensitivity=max(1, math.ceil(price)), tolerance=steps, fnr=fnr, fpr=fpr, allow_block=False
    )


def _weigh_to_plan(common: CommonSums, functional: int) -> tuple[Weights, ...]:
    """Return the noises in a functional's reading. Raise `Unachievable` if they take too long to work out."""
    return _check_kinds(weigh_noises(common, functional))


def _check_kinds(found: tuple[Weights, ...]) -> tuple[Weights, ...]:
    if len(found) > _MOST_KINDS:
        raise Unachievable(
            "groups at different places read too many different numbers of groups",
            remedy=f"Write a frame of at most {_MOST_KINDS} ROWS.",
        )
    return found


def _list_rate_costs(common: CommonSums) -> tuple[float, ...]:
    """Return the highest cost of a unit of each sum's rate."""
    return tuple(
        float(max(one[place] for one in common.exposures)) * sensitivity
        for place, sensitivity in enumerate(common.sensitivities)
    )


def bound_false_reject(test: FunctionalTest, distance: int) -> float:
    """Return an upper bound of the chance that a literal is rejected at a distance at which it holds."""
    if test.pair is not None:
        return bound_missed_mean(test, distance)
    return min(1.0, test.candidates * bound_largest_tail(_list_noise_kinds(test.cell_noises), test.shift + distance))


def bound_false_accept(test: FunctionalTest, distance: int) -> float:
    """Return an upper bound of the chance that a literal is accepted at a distance, negative where it fails."""
    if test.pair is not None:
        return bound_wrong_mean(test, distance)
    return min(
        1.0, test.candidates * bound_largest_tail(_list_noise_kinds(test.cell_noises), 1 - test.shift - distance)
    )


@lru_cache(maxsize=256)
def _list_noise_kinds(noises: tuple[CellNoise, ...]) -> tuple[Noises, ...]:
    """Return the noises of each kind of key."""
    return tuple(
        merge_equal_noises(
            [WeightedNoise(one.times, one.count, float(one.rate)) for one in noises if one.variant == variant]
        )
        for variant in sorted({one.variant for one in noises})
    )


def _find_rates(
    weights: tuple[Weights, ...], prices: tuple[float, ...], tolerance: int, fnr: float, fpr: float
) -> dict[int, Fraction]:
    """Return rates of a functional's sums at which its test is met, nearly the cheapest ones.

    Their common factor is guessed from the reach of other noise, then raised until both shares fit.
    """
    ratios = _balance_rates(weights, prices)
    room = tolerance + 2
    low, factor, step = 0.0, _scaled_reach(weights, ratios, fnr, fpr) / room, _STEP
    found: dict[int, Fraction] | None = None
    for _ in range(_MOST_TRIED):
        rates = {place: round_rate_up(max(factor * ratio, float(LEAST_RATE))) for place, ratio in ratios.items()}
        if any(rate > GREATEST_RATE for rate in rates.values()):
            break
        made = [
            merge_equal_noises([WeightedNoise(times, count, float(rates[place])) for place, times, count in one])
            for one in weights
        ]
        reached = find_largest_reach(made, fnr) + find_largest_reach(made, fpr)
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


def _balance_rates(weights: tuple[Weights, ...], prices: tuple[float, ...]) -> dict[int, float]:
    """Return how the rates of a functional's sums relate.

    Among rates that leave a value the same variance the cheapest ones grow with the cube root of the noise's part in
    it over the sum's price.
    """
    parts: dict[int, float] = {}
    for one in weights:
        own: dict[int, float] = {}
        for place, times, count in one:
            own[place] = own.get(place, 0.0) + times * times * count
        parts = {place: max(part, parts.get(place, 0.0)) for place, part in own.items()} | {
            place: part for place, part in parts.items() if place not in own
        }
    return {place: (part / max(prices[place], 1e-9)) ** (1.0 / 3.0) for place, part in parts.items()}


def _scaled_reach(weights: tuple[Weights, ...], ratios: Mapping[int, float], fnr: float, fpr: float) -> float:
    """Return about the reach on both sides, in the unit of a value, at a factor of one.

    The reach of wide noise times its rate hardly depends on the rate.
    """
    factor = _WIDE / min(ratios.values())
    made = [
        merge_equal_noises([WeightedNoise(times, count, factor * ratios[place]) for place, times, count in one])
        for one in weights
    ]
    return factor * (find_largest_reach(made, fnr) + find_largest_reach(made, fpr))


def _find_test(
    weights: tuple[Weights, ...],
    rates: Sequence[Fraction],
    tolerance: int,
    shares: Shares,
    functional: int,
    candidates: int,
) -> FunctionalTest:
    """Return the test at the sums' noise rates, with the least shift whose false-negative rate is at most its share.

    `candidates` is the number of values that `fnr` is divided among.
    """
    noises = tuple(
        CellNoise(variant, place, times, count, rates[place])
        for variant, one in enumerate(weights)
        for place, times, count in one
    )
    bare = FunctionalTest(
        epsilon=0.0,
        rate=noises[0].rate,
        shift=0,
        tie=Fraction(0),
        fnr=shares.fnr[functional],
        fpr=shares.fpr[functional],
        tolerance=tolerance,
        cell_noises=noises,
        candidates=candidates,
    )
    shift = find_largest_reach(_list_noise_kinds(noises), bare.fnr / candidates) - 1
    return replace(bare, shift=shift)


def _calibrate_none(functional: int, fnr: float, fpr: float) -> FunctionalTest:
    raise AssertionError(f"functional {functional} has no noise of its own for {fnr} and {fpr}")


def _price_nothing(functional: int, fnr: float, fpr: float) -> tuple[float, float, float]:
    raise AssertionError(f"shares of functional {functional} are given: {fnr} and {fpr}")
