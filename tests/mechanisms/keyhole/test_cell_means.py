"""Comparisons of a group's mean with the mean of other groups, on the noisy sums and rows of cells."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mechanisms.formula import AllOf, Integers
from mechanisms.keyhole.cell_means import (
    PairNoises,
    bound_error,
    decide_means,
    find_pair_rates,
)
from mechanisms.keyhole.cell_readings import bound_false_accept, bound_false_reject
from mechanisms.keyhole.exact_means import compare_exact_means
from mechanisms.keyhole.group_averages import bound_average_error
from mechanisms.keyhole.noisy_cells import evaluate_literal
from mechanisms.protocol import (
    OWN_CELL,
    Calibration,
    CellNoise,
    CommonSums,
    DecisionTask,
    MeanPair,
    Unachievable,
    UsedCells,
)
from mechanisms.registry import MECHANISMS
from mechanisms.threshold.joint_loss import compute_joint_loss, list_sum_rates
from tests.effort import examples, rounds
from tests.mechanisms.keyhole.cell_worlds import above, below, cell_task, common_sums, lag, total
from tests.seeded_noise import SeededNoise

NAMES = ("keyhole", "progressive")
REACH = 100
ROWS = 400
ROUNDING = 1e-12  # of shares
BEYOND = 10_000_000
"""Rows of keys whose answer is in no doubt."""


def mean_pair(
    *, times: Fraction = Fraction(1), constant: Fraction = Fraction(0), other_reach: int = REACH, other_rows: int = ROWS
) -> MeanPair:
    """Return a comparison of means in hundredths of a step."""
    return MeanPair(times, constant, Fraction(1, 100), REACH, other_reach, ROWS, other_rows)


def compare_means(shape: tuple[int, ...], own: UsedCells, other: UsedCells, pair: MeanPair) -> CommonSums:
    """Return a comparison of the means of two readings of sum 0 over the rows of sum 1."""
    parts = [(0, 1, own), (1, 1, own), (0, 1, other), (1, 1, other)]
    return replace(common_sums(shape, parts, sensitivities=(REACH, 1)), means=(pair,))


def calibrate(name: str, task: DecisionTask) -> Calibration:
    return MECHANISMS[name].calibrate(task)


class Silence(SeededNoise):
    """Noise that is always zero, so that decisions are those of the shifted thresholds on exact values."""

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        return np.zeros(size, dtype=np.int64)


class Louder(SeededNoise):
    """Noise that is six times as wide as it should be."""

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        return super().draw_discrete_laplace(rate=rate / 6, size=size)


def count_errors(reading: str, side: float, *, rising: bool, many: int, noise: SeededNoise) -> tuple[int, int]:
    """Return how many of `many` questions miss a key that just qualifies, and return one that fails by the tolerance.

    Both means have as few rows as counts demand. The other mean is `side` times nine tenths of the range's end.
    """
    tolerance = 2_500
    size = {"the month before": 2, "all groups": 7}[reading]
    where = lag(2, axis=1) if size == 2 else total(1)
    pair = mean_pair(other_rows=ROWS if size == 2 else ROWS * size)
    common = compare_means((many, size), OWN_CELL, where, pair)
    made = calibrate("keyhole", cell_task(common, above(0, 0, tolerance) if rising else below(0, -1, tolerance)))

    def count_returned(difference: Fraction) -> int:
        """Return how often the last key passes if its mean is so far beyond the other one."""
        mean = Fraction(side) * REACH * Fraction(9, 10)
        sums = np.full(size, math.floor(mean * ROWS), dtype=np.int64)
        sums[-1] = (math.ceil if difference > 0 else math.floor)((mean + difference) * ROWS)
        if size > 2:  # the mean of all groups is the wanted one
            wanted = (math.floor if difference > 0 else math.ceil)(mean * ROWS * size)
            sums[:-1] = (wanted - sums[-1]) // (size - 1)
            sums[0] += wanted - sums.sum()
        exact = np.array([np.tile(sums, many), np.full(size * many, ROWS)])
        passed = MECHANISMS["keyhole"].decide(made, exact, noise=noise).passed
        return int(passed.reshape(many, size)[:, -1].sum())

    sign = 1 if rising else -1
    return many - count_returned(sign * Fraction(1, ROWS)), count_returned(-sign * tolerance * pair.step)


@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize("side", [-1.0, -0.4, 0.0, 0.7, 1.0])
@pytest.mark.parametrize("reading", ["the month before", "all groups"])
def test_the_real_mechanism_errs_no_more_often_than_promised(reading: str, side: float, rising: bool) -> None:
    """10,000 questions (quick: 2,000). With rates as promised each count is too high with a probability below 1e-6."""
    many = rounds(10_000, quick=2_000)
    noise = SeededNoise(int(10 * side) + 40 + rising)
    missed, wrong = count_errors(reading, side, rising=rising, many=many, noise=noise)
    assert missed <= stats.binom.isf(1e-6, many, 0.05)
    assert wrong <= stats.binom.isf(1e-6, many, 0.1)


@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize("own", [-40 * REACH, -2 * REACH, 2 * REACH, 40 * REACH])
def test_a_ratio_beyond_the_other_range_errs_no_more_often_than_promised(own: int, rising: bool) -> None:
    """2,000 ratios that no row bounds, whose bar lies within the range of the other side: its end, or within it. With
    rates as promised each count is too high with a probability below 1e-6."""
    many, tolerance = 2_000, 2_500
    pair = mean_pair(other_rows=7 * ROWS)
    common = compare_means((many, 7), OWN_CELL, total(1), pair)
    made = calibrate("keyhole", cell_task(common, above(0, 0, tolerance) if rising else below(0, -1, tolerance)))
    for bar in (0, REACH, -REACH):
        sums = np.zeros((2, many, 7), dtype=np.int64)
        sums[1] = ROWS
        sums[0, :, 0] = own * ROWS
        sums[0, :, 1:] = (7 * bar * ROWS - own * ROWS) // 6  # so that all groups together have the bar
        decided = MECHANISMS["keyhole"].decide(made, sums.reshape(2, -1), noise=SeededNoise(own % 97 + bar % 7))
        passed = int(decided.passed.reshape(many, 7)[:, 0].sum())
        holds = (own > bar) is rising
        assert (many - passed if holds else passed) <= stats.binom.isf(1e-6, many, 0.05 if holds else 0.1)


@pytest.mark.parametrize("reading", ["the month before", "all groups"])
def test_noise_six_times_as_wide_breaks_the_promise(reading: str) -> None:
    """At the end of the range, where rows count the most."""
    missed, wrong = count_errors(reading, 1.0, rising=True, many=2_000, noise=Louder(3))
    assert missed > stats.binom.isf(1e-6, 2_000, 0.05)
    assert wrong > stats.binom.isf(1e-6, 2_000, 0.1)


fractions = st.fractions(-3, 3, max_denominator=12)


def count_errors_of_averages(side: int, *, rising: bool, many: int, noise: SeededNoise) -> tuple[int, int]:
    """Return how many of `many` questions miss a group just beyond the mean of seven means, and how many return one
    that fails by the tolerance. Each group has as few rows as counts demand. The others' mean is `side`."""
    tolerance, groups = 4_000, 7
    pair = replace(mean_pair(), averaged_groups=groups)
    common = compare_means((many, groups), OWN_CELL, total(1), pair)
    made = calibrate("keyhole", cell_task(common, above(0, 0, tolerance) if rising else below(0, -1, tolerance)))

    def count_returned(difference: Fraction) -> int:
        apart = difference * groups / (groups - 1)  # the group is one of those that are averaged
        sums = np.full(groups, side * ROWS, dtype=np.int64)
        sums[-1] += (math.ceil if difference > 0 else math.floor)(apart * ROWS)
        exact = np.array([np.tile(sums, many), np.full(groups * many, ROWS)])
        passed = MECHANISMS["keyhole"].decide(made, exact, noise=noise).passed
        return int(passed.reshape(many, groups)[:, -1].sum())

    sign = 1 if rising else -1
    return many - count_returned(sign * Fraction(1, ROWS)), count_returned(-sign * tolerance * pair.step)


@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize("side", [-50, 0, 50])
def test_means_of_means_err_no_more_often_than_promised(side: int, rising: bool) -> None:
    """10,000 questions (quick: 2,000). With rates as promised each count is too high with a probability below 1e-6."""
    many = rounds(10_000, quick=2_000)
    missed, wrong = count_errors_of_averages(side, rising=rising, many=many, noise=SeededNoise(side + 60 + rising))
    assert missed <= stats.binom.isf(1e-6, many, 0.05)
    assert wrong <= stats.binom.isf(1e-6, many, 0.1)


def test_noise_six_times_as_wide_breaks_the_promise_of_means_of_means() -> None:
    many = 2_000
    missed, wrong = count_errors_of_averages(0, rising=True, many=many, noise=Louder(5))
    assert missed > stats.binom.isf(1e-6, many, 0.05)
    assert wrong > stats.binom.isf(1e-6, many, 0.1)


def test_rates_are_found_where_the_needed_tolerance_jumps() -> None:
    """No rates need exactly the given tolerance, so a search by proportion would go to and fro."""
    pair = MeanPair(Fraction(21, 20), Fraction(75), Fraction(1, 10), 1500, 1500, rows=180, other_rows=162)
    noises = PairNoises(pair, (1, 0, 1, 0), *[(((0, 1, 1), (1, 1, 1)),)] * 2)
    rates = find_pair_rates(noises, (1.0, 1500.0), 2500, 0.02, 0.1)
    assert noises.meets(rates, 2500, 0.02, 0.1)
    assert not noises.meets({place: rate * 99 / 100 for place, rate in rates.items()}, 2500, 0.02, 0.1)


@pytest.mark.parametrize("groups", [1, 3, 20])
@pytest.mark.parametrize("mean", [-REACH, 0, REACH])
def test_bounds_of_means_of_means_exceed_the_frequency_of_errors(groups: int, mean: int) -> None:
    """200,000 draws. Each frequency is within five of its deviations, which fails once in 3 million."""
    pair = replace(mean_pair(), averaged_groups=groups)
    kind = (CellNoise(1, 2, 1, groups, Fraction(1, 2000)), CellNoise(1, 3, 1, groups, Fraction(1, 40)))
    noise, many = SeededNoise(1000 + groups + mean), 200_000
    drawn = [noise.draw_discrete_laplace(rate=one.rate, size=many * groups) for one in kind]
    means = np.clip((mean * ROWS + drawn[0]) / np.maximum(1, ROWS + drawn[1]), -REACH, REACH)
    errors = means.reshape(many, groups).mean(axis=1) - mean
    seen = 0
    for error in (300, 600, 1200):
        bound = bound_average_error(pair, kind, 3, error)
        for side in (errors, -errors):
            share = float((side > error * pair.step).mean())
            seen += share > 0
            assert share <= bound + 5 * math.sqrt(bound / many)
    assert seen > 0


def test_means_of_means_are_those_of_groups_with_rows() -> None:
    """Exact comparisons leave out groups without rows, as PostgreSQL does; with noise such a group lets nobody pass."""
    pair = replace(mean_pair(), averaged_groups=3)
    common = compare_means((2, 3), OWN_CELL, total(1), pair)
    sums = np.array([[6, 3, 0, -360, -90, 90], [2, 1, 0, 4, 1, 1]])
    assert evaluate_literal(common, above(0, 0, 0), sums).tolist() == [False, False, False, False, False, True]
    made = calibrate("keyhole", cell_task(common, above(0, 0, 4_000)))
    many = MECHANISMS["keyhole"].decide(made, BEYOND * sums, noise=Silence(1)).passed
    assert many.tolist() == [False, False, False, False, False, True]


@examples(100, quick=20)
@given(
    times=fractions.filter(bool),
    constant=fractions,
    sums=st.lists(st.integers(-(1 << 40), 1 << 40), min_size=6, max_size=6),
    rows=st.lists(st.integers(0, 50), min_size=6, max_size=6),
)
def test_exact_comparisons_are_those_of_fractions(
    times: Fraction, constant: Fraction, sums: list[int], rows: list[int]
) -> None:
    """Ties and groups without rows included. In a month without a month before there is nothing to compare."""
    pair = mean_pair(times=times, constant=constant)
    common = compare_means((6,), OWN_CELL, lag(6), pair)
    exact = np.array([sums, rows], dtype=np.int64)
    for cut, at_least in ((above(0, 0, 9), False), (above(0, -1, 9), True)):
        expected = []
        for place in range(6):
            if not place or not rows[place] or not rows[place - 1]:
                expected.append(False)
                continue
            difference = (
                Fraction(sums[place], rows[place]) - times * Fraction(sums[place - 1], rows[place - 1]) - constant
            )
            expected.append(difference >= 0 if at_least else difference > 0)
        assert evaluate_literal(common, cut, exact).tolist() == expected


@examples(60, quick=12)
@given(
    name=st.sampled_from(NAMES),
    times=st.sampled_from([Fraction(1), Fraction(6, 5), Fraction(-1), Fraction(1, 10)]),
    constant=st.integers(-50, 50).map(Fraction),
    own=st.lists(st.integers(-REACH, REACH), min_size=4, max_size=4),
    rising=st.booleans(),
)
def test_far_from_the_bar_decisions_are_exact(
    name: str, times: Fraction, constant: Fraction, own: list[int], rising: bool
) -> None:
    """Without noise, where both means differ by more than the tolerance and no bound confines the right side."""
    pair = mean_pair(times=times, constant=constant)
    common = compare_means((4,), OWN_CELL, lag(4), pair)
    tolerance = 2_500
    made = calibrate(name, cell_task(common, above(0, 0, tolerance) if rising else below(0, -1, tolerance)))
    exact = np.array([[BEYOND * one for one in own], [BEYOND] * 4])
    passed = MECHANISMS[name].decide(made, exact, noise=Silence(0)).passed
    assert not passed[0]
    for place in range(1, 4):
        difference = own[place] - times * own[place - 1] - constant
        if abs(difference) > tolerance * pair.step:
            assert passed[place] == ((difference > 0) == rising)


@examples(40, quick=8)
@given(
    name=st.sampled_from(NAMES),
    times=st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(-2)]),
    tolerance=st.integers(1_000, 9_000),
    both=st.booleans(),
)
def test_shares_are_kept_and_the_loss_is_that_of_every_sum(
    name: str, times: Fraction, tolerance: int, both: bool
) -> None:
    """The stated bounds keep the shares, and a cell's loss is the joint loss of the rates of both sums."""
    common = compare_means((4,), OWN_CELL, lag(4), mean_pair(times=times))
    guarded = replace(
        common,
        readings=(*common.readings, ((1, 1),)),
        cells=(*common.cells, (OWN_CELL,)),
        scales=(1, 1),
        means=(*common.means, None),
    )
    literal = above(0, 0, tolerance)
    task = cell_task(guarded, AllOf((literal, above(1, 499, 100)))) if both else cell_task(common, literal)
    made = calibrate(name, task)
    test = made.tests[0]
    assert bound_false_reject(test, 1) <= test.fnr <= 0.05 + ROUNDING
    assert bound_false_accept(test, -tolerance) <= test.fpr <= 0.1 + ROUNDING
    assert made.fnr is not None
    assert made.fpr is not None
    assert made.fnr <= 0.05
    assert made.fpr <= 0.1
    rates = list_sum_rates(made)
    losses = [rate * moved for rate, moved in zip(rates, common.sensitivities, strict=True)]
    assert compute_joint_loss(losses, common.exposures) <= Fraction(made.worst_case_epsilon)


@pytest.mark.parametrize(("fnr", "fpr", "tolerance"), [(0.05, 0.1, 2_500), (0.2, 0.001, 40_000), (1e-6, 0.3, 9_000)])
def test_no_shift_is_wider_than_its_rate_needs(fnr: float, fpr: float, tolerance: int) -> None:
    """Searches end at the least number: with one less the bound is above its share."""
    common = compare_means((2, 7), OWN_CELL, total(1), mean_pair(other_rows=ROWS * 7))
    task = replace(cell_task(common, above(0, 0, tolerance)), fnr=fnr, fpr=fpr)
    (test,) = calibrate("keyhole", task).tests
    margin = test.shift - test.other_error - 1
    assert bound_error(test, margin) <= test.fnr < bound_error(test, margin - 1)
    assert test.other_error > 0


def test_many_comparisons_that_differ_in_a_factor_need_the_rates_of_the_narrowest() -> None:
    """Each of eight has a fourth of the rates of two, so all cost somewhat more, and far less than one by one."""
    pairs = tuple(mean_pair(times=Fraction(100 + one, 100), other_rows=ROWS * 7) for one in range(8))
    parts = [(0, 1, OWN_CELL), (1, 1, OWN_CELL), (0, 1, total(1)), (1, 1, total(1))]
    common = replace(common_sums((2, 7), *(parts for _ in pairs), sensitivities=(REACH, 1)), means=pairs)
    literals = tuple(above(place, 0, 2_500) for place in range(8))
    made = calibrate("keyhole", cell_task(common, AllOf(literals)))
    two = calibrate("keyhole", cell_task(replace(common, **_keep(common, 2)), AllOf(literals[:2])))
    assert two.worst_case_epsilon < made.worst_case_epsilon < 2 * two.worst_case_epsilon
    assert made.fnr is not None
    assert made.fpr is not None
    assert made.fnr <= 0.05
    assert made.fpr <= 0.1


def _keep(common: CommonSums, many: int) -> dict[str, Any]:
    return {name: getattr(common, name)[:many] for name in ("readings", "scales", "cells", "means")}


def test_bounds_fall_with_the_margin() -> None:
    """A margin without a whole step may always be outweighed."""
    common = compare_means((4,), OWN_CELL, lag(4), mean_pair())
    test = calibrate("keyhole", cell_task(common, above(0, 0, 2_500))).tests[0]
    bounds = [bound_error(test, margin) for margin in range(0, 4_000, 100)]
    assert bounds[0] == 1.0
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < 0.05


def test_a_mean_that_cannot_be_reached_lets_nobody_pass() -> None:
    """The bar is beyond what a group's mean can be: a group far below it never passes by noisy rows."""
    pair = mean_pair(times=Fraction(3))
    common = compare_means((4,), OWN_CELL, lag(4), pair)
    test = calibrate("keyhole", cell_task(common, above(0, 0, 2_500))).tests[0]
    sums = [np.array([one]) for one in (REACH * ROWS, ROWS, 90 * ROWS, ROWS)]
    assert not decide_means(test, above(0, 0, 2_500), sums).any()
    sums[1] = np.array([-ROWS])  # rows below 0 turn the comparison
    assert not decide_means(test, above(0, 0, 2_500), sums).any()


def test_signs_are_0_without_rows() -> None:
    sign, there = compare_exact_means(
        mean_pair(), [np.array([5, 5]), np.array([0, 1]), np.array([1, 1]), np.array([1, 0])]
    )
    assert sign.tolist() == [0, 0]
    assert there.tolist() == [False, False]


@pytest.mark.parametrize("tolerance", [1, 1 << 41])
def test_tolerances_out_of_reach_are_refused(tolerance: int) -> None:
    """With a remedy: to try one tolerance after another would take minutes."""
    common = compare_means((4,), OWN_CELL, lag(4), mean_pair())
    with pytest.raises(Unachievable) as refused:
        calibrate("keyhole", cell_task(common, above(0, 0, tolerance)))
    assert refused.value.remedy is not None
