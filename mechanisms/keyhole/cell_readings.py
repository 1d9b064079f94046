"""Thresholds on values that are read off the noisy sums of several cells: shares of a total, differences, windows.

Each cell of the key space has one noisy value for each sum, drawn once. A group is above a share q of the total if
`sum - q * total` is positive. A month is above the month before if the difference of their sums is positive. Both are
whole-number combinations of noisy cells. Every key that needs a cell reads the same value, so a cell is charged once.

Proof: docs/proofs/cell_readings.md.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from mechanisms.apportionment.keyhole import LossCurve, Shares
from mechanisms.keyhole.cell_means import (
    PairNoises,
    bound_missed_mean,
    bound_wrong_mean,
    find_pair_rates,
)
from mechanisms.keyhole.cell_rates import ReadingNoise, bound_missed_sum, bound_wrong_sum, find_rates, read_noise
from mechanisms.keyhole.contract import (
    OneShotKind,
    keep_contract,
    list_mentioned_functionals,
    list_task_tolerances,
    meet_contract,
)
from mechanisms.keyhole.taken_cells import (
    Weights,
    weigh_parts,
)
from mechanisms.protocol import (
    Calibration,
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
from mechanisms.threshold.one_shot import find_least_epsilon, round_up_to_float

_NO_NOISE = 1 << 30  # a tolerance at which a test needs no rates, for a reading that is exact
_MOST_KINDS = 100  # of keys whose values have different noise: each takes a few thousandths of a second to plan


def calibrate_on_cells(mechanism: str, task: DecisionTask) -> Calibration:
    """Return one noise rate for every sum, and one test for every functional, that together keep the contract.

    This is for comparisons that read several groups (cells).

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
    pairs = {one: pair for one in range(number) if (pair := weigh_pair(common, one)) is not None}
    noises = _read_noises(task, set(range(number)) - set(pairs))

    def find_loss(functional: int, fnr: float, fpr: float) -> tuple[float, float, float]:
        if functional in pairs:
            return _estimate_pair_loss(pairs[functional], prices, near[functional], fnr, fpr)
        noise = noises[functional]
        read = [(place, times) for one in noise.weights for place, times, _ in one]
        read += [(place, abs(times)) for place, times, _, _ in noise.deviations]
        return find_least_epsilon(
            sensitivity=max((times * math.ceil(prices[place]) for place, times in read), default=1),
            tolerance=near[functional] if noise.has_noise else _NO_NOISE,
            fnr=fnr / noise.candidates[0],
            fpr=fpr / noise.candidates[1],
            allow_block=False,
        )

    def calibrate_together(shares: Shares) -> Mapping[int, FunctionalTest]:
        rates = [Fraction(0)] * len(common.sensitivities)
        for one in (one for one in list_mentioned_functionals(task) if one in noises and noises[one].has_noise):
            for place, rate in find_rates(noises[one], prices, near[one], shares.fnr[one], shares.fpr[one]).items():
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
            made = meet_contract(mechanism, _make_apportionment_task(task, exposures), kind)
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
    """Return a question's calibration for given noise rates of its sums, such as those of stored values.

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
    counted = _make_apportionment_task(task, expose_all_functionals(len(calibration.tests)))
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


def _make_apportionment_task(task: DecisionTask, exposures: tuple[Exposure, ...]) -> DecisionTask:
    """Return the task with each reading counted as one functional of its own, as shares are apportioned."""
    return replace(task, sensitivities=(1,) * len(task.sensitivities), blocks=frozenset(), exposures=exposures)


def _make_tests(task: DecisionTask, rates: Sequence[Fraction], shares: Shares) -> dict[int, FunctionalTest]:
    """Return the test of every functional that has noise, at the sums' rates.

    Raise `Unachievable` if no noise meets the accuracy.
    """
    common, near = task.common, list_task_tolerances(task)
    assert common is not None
    found: dict[int, FunctionalTest] = {}
    for one in list_mentioned_functionals(task):
        pair = weigh_pair(common, one)
        if pair is not None:
            known = dict(enumerate(rates))
            found[one] = pair.make_test(known, near[one], shares.fnr[one], shares.fpr[one])
            continue
        noise = _read_noises(task, (one,))[one]
        if noise.has_noise:
            found[one] = noise.make_test(rates, near[one], shares, one)
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


def find_affordable_tolerance(
    common: CommonSums,
    functional: int,
    *,
    epsilon: float,
    fnr: float,
    fpr: float,
    is_above: Iterable[bool] = (True, False),
) -> int:
    """Return an estimate of the least tolerance at which one functional's test costs a cell `epsilon`.

    Parameters:
        is_above: as for `read_noise`.
    """
    prices = _list_rate_costs(common)
    noise = _read_to_plan(common, functional, is_above=is_above)
    if not noise.has_noise:
        return 0
    ratios = noise.balance_rates(prices)
    wanted = epsilon / sum(ratio * prices[place] for place, ratio in ratios.items())
    return max(0, math.ceil(noise.estimate_quantile_sum(ratios, fnr, fpr) / wanted) - 2)


def weigh_pair(common: CommonSums, functional: int) -> PairNoises | None:
    """Return the noises of a comparison of means. Return None if the functional is a sum.

    Raise `Unachievable` if no noise meets the accuracy.
    """
    pair = common.find_pair(functional)
    if pair is None:
        return None
    parts = tuple(zip(common.readings[functional], common.cells[functional], strict=True))
    own, other = (_check_kinds(weigh_parts(side, common.shape)) for side in (parts[:2], parts[2:]))
    return PairNoises(pair, tuple(place for place, _ in common.readings[functional]), own, other)


def _estimate_pair_loss(
    noises: PairNoises, prices: Sequence[float], tolerance: int, fnr: float, fpr: float
) -> tuple[float, float, float]:
    """Return about the loss of a comparison of means, by which rates are shared between functionals."""
    steps = max(1, math.floor(tolerance * noises.pair.step * noises.pair.rows))
    price = prices[noises.places[0]] + noises.pair.largest_mean * prices[noises.places[1]]
    return find_least_epsilon(
        sensitivity=max(1, math.ceil(price)), tolerance=steps, fnr=fnr, fpr=fpr, allow_block=False
    )


def _read_noises(task: DecisionTask, functionals: Iterable[int]) -> Mapping[int, ReadingNoise]:
    """Return the noise of some functionals' readings, in the directions in which they are compared."""
    assert task.common is not None
    ways: dict[int, set[bool]] = {}
    for literal in task.list_literals():
        ways.setdefault(literal.functional, set()).add(literal.above)
    return {one: _read_to_plan(task.common, one, is_above=ways.get(one, (True, False))) for one in sorted(functionals)}


def _read_to_plan(common: CommonSums, functional: int, *, is_above: Iterable[bool]) -> ReadingNoise:
    """Return the noise of a functional's reading. Raise `Unachievable` if it takes too long to work out."""
    found = read_noise(common, functional, is_above=is_above)
    _check_kinds(found.weights)
    return found


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
    """Return an upper bound on the probability that a literal is rejected although it holds by `distance`."""
    return (bound_missed_sum if test.pair is None else bound_missed_mean)(test, distance)


def bound_false_accept(test: FunctionalTest, distance: int) -> float:
    """Return an upper bound on the probability that a literal which fails is accepted. `distance` is negative."""
    return (bound_wrong_sum if test.pair is None else bound_wrong_mean)(test, distance)


def _calibrate_none(functional: int, fnr: float, fpr: float) -> FunctionalTest:
    raise AssertionError(f"functional {functional} has no noise of its own for {fnr} and {fpr}")


def _price_nothing(functional: int, fnr: float, fpr: float) -> tuple[float, float, float]:
    raise AssertionError(f"shares of functional {functional} are given: {fnr} and {fpr}")
