"""Comparisons of a group's mean with a mean and a standard deviation of all rows, on noisy sums, rows and squares."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mechanisms.formula import Integers
from mechanisms.keyhole.cell_means import decide_means
from mechanisms.keyhole.cell_readings import bound_false_accept, bound_false_reject
from mechanisms.keyhole.noisy_cells import evaluate_literal
from mechanisms.keyhole.row_deviations import bound_deviation_error, compute_deviations, find_largest_deviation
from mechanisms.noise.noise_sum import WeightedNoise, bound_upper_tail
from mechanisms.protocol import OWN_CELL, CellNoise, CommonSums, MeanPair, RowDeviation, Unachievable
from mechanisms.registry import MECHANISMS
from mechanisms.threshold.joint_loss import compute_joint_loss, list_sum_rates
from tests.effort import examples, rounds
from tests.mechanisms.keyhole.cell_worlds import above, below, cell_task, common_sums, total
from tests.seeded_noise import SeededNoise

REACH = 100
ROWS = 4_000
GROUPS = 4
TOLERANCE = 1_500
"""In hundredths of a step, so 15 of the range from -100 to 100."""
LEAST = 12


def pair_with(
    times: Fraction, factor: Fraction, *, least: Fraction = Fraction(LEAST), is_sample: bool = True
) -> MeanPair:
    """Return a comparison with `times` the mean and `factor` times the deviation of all rows."""
    deviation = RowDeviation(factor, Fraction(1), least, is_sample=is_sample)
    return MeanPair(times, Fraction(0), Fraction(1, 100), REACH, REACH, ROWS, ROWS * GROUPS, deviation)


def compare_with_all(many: int, pair: MeanPair) -> CommonSums:
    """Return a comparison of each group's mean with all groups of its row: sums, rows, and squares."""
    whole = total(1)
    parts = [(0, 1, OWN_CELL), (1, 1, OWN_CELL), (0, 1, whole), (1, 1, whole), (2, 1, whole)]
    return replace(common_sums((many, GROUPS), parts, sensitivities=(REACH, 1, REACH**2)), means=(pair,))


class Silence(SeededNoise):
    """Noise that is always zero."""

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        return np.zeros(size, dtype=np.int64)


class Louder(SeededNoise):
    """Noise that is six times as wide as it should be."""

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        return super().draw_discrete_laplace(rate=rate / 6, size=size)


def make_world(mean: Fraction, deviation: float, own: Fraction, *, is_sample: bool) -> list[list[int]]:
    """Return sums, rows and squares of the groups, the last of which has a mean of its own.

    All rows together have nearly the mean and the deviation. Each group has as many rows as counts demand.
    """
    rows = ROWS * GROUPS
    wanted = math.floor(mean * rows)
    last = math.floor(own * ROWS)
    sums = [(wanted - last) // (GROUPS - 1)] * (GROUPS - 1) + [last]
    sums[0] += wanted - sum(sums)
    squares = [round(deviation**2 * (rows - is_sample) + wanted * wanted / rows), *[0] * (GROUPS - 1)]
    return [sums, [ROWS] * GROUPS, squares]


def count_errors(
    mean: Fraction, deviation: float, times: Fraction, factor: Fraction, *, rising: bool, many: int, noise: SeededNoise
) -> tuple[int, int]:
    """Return how many of `many` questions miss a group that just qualifies, and return one that fails by the tolerance.

    All means have as few rows as counts demand.
    """
    pair = pair_with(times, factor)
    common = compare_with_all(many, pair)
    literal = above(0, 0, TOLERANCE) if rising else below(0, -1, TOLERANCE)
    made = MECHANISMS["keyhole"].calibrate(cell_task(common, literal))
    bar = times * mean + factor * Fraction(max(deviation, LEAST))

    def count_returned(difference: Fraction) -> int:
        exact = make_world(mean, deviation, bar + difference, is_sample=True)
        sums = np.array([np.tile(one, many) for one in exact], dtype=np.int64)
        passed = MECHANISMS["keyhole"].decide(made, sums, noise=noise).passed
        return int(passed.reshape(many, GROUPS)[:, -1].sum())

    sign = 1 if rising else -1
    near = Fraction(1, 100)  # what whole sums of rows are rounded by is less
    return many - count_returned(sign * near), count_returned(-sign * (TOLERANCE * pair.step + near))


@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize(
    ("mean", "deviation", "times", "factor"),
    [
        (Fraction(0), 0.0, Fraction(1), Fraction(1)),  # below the least, where a root errs the most
        (Fraction(0), float(LEAST), Fraction(1), Fraction(1)),
        (Fraction(80), float(LEAST), Fraction(1), Fraction(1)),  # where the sum's noise counts the most in the square
        (Fraction(-80), 20.0, Fraction(1), Fraction(-1)),
        (Fraction(0), 100.0, Fraction(0), Fraction(1, 2)),  # where the rows' noise counts the most
    ],
)
def test_the_real_mechanism_errs_no_more_often_than_promised(
    mean: Fraction, deviation: float, times: Fraction, factor: Fraction, rising: bool
) -> None:
    """10,000 questions (quick: 2,000). With rates as promised each count is too high with a probability below 1e-6."""
    many = rounds(10_000, quick=2_000)
    noise = SeededNoise(int(mean + deviation) + 200 + rising)
    missed, wrong = count_errors(mean, deviation, times, factor, rising=rising, many=many, noise=noise)
    assert missed <= stats.binom.isf(1e-6, many, 0.05)
    assert wrong <= stats.binom.isf(1e-6, many, 0.1)


def test_noise_six_times_as_wide_breaks_the_promise() -> None:
    missed, wrong = count_errors(
        Fraction(-80), 20.0, Fraction(1), Fraction(-1), rising=False, many=2_000, noise=Louder(5)
    )
    assert missed > stats.binom.isf(1e-6, 2_000, 0.05)
    assert wrong > stats.binom.isf(1e-6, 2_000, 0.1)


@pytest.mark.parametrize("is_sample", [True, False])
def test_a_deviation_that_errs_needs_as_much_noise_as_the_proof_says(is_sample: bool) -> None:
    """Random sums and noises, some of which make a deviation too high, or too low, by more than an error.

    Then the weighted noises of the proof reach T, with weights in their bounds. In some cases they hardly do.
    """
    rng, size, least, fewest, error, off = np.random.default_rng(7 + is_sample), 400_000, LEAST, 50, 5.0, 3.0
    pair = replace(pair_with(Fraction(1), Fraction(1), is_sample=is_sample), other_rows=fewest)
    far = find_largest_deviation(pair)
    rows = np.where(rng.random(size) < 0.7, fewest, rng.integers(fewest, 90, size))
    mean = REACH * rng.uniform(-1, 1, size) * (rng.random(size) < 0.8)
    room = np.sqrt((REACH**2 - mean**2) * rows / (rows - is_sample))
    near = np.minimum(room, least + rng.uniform(0, 9, size))
    spread = np.where(rng.random(size) < 0.6, near, room * rng.random(size))
    squares = spread**2 * (rows - is_sample) + mean**2 * rows
    of_squares, of_sum, of_rows = (rng.normal(0, width, size) for width in (9_000, 60, 0.7))
    noisy_sum, noisy_rows = mean * rows + of_sum, rows + of_rows
    found = compute_deviations(pair, noisy_sum, noisy_rows, squares + of_squares)
    within = np.abs(noisy_sum / noisy_rows - mean) <= off
    true, linear = np.maximum(spread, least), of_squares - 2 * mean * of_sum
    needed = (2 * least * error + error**2) * (fewest - is_sample) - off**2 * fewest
    top, low = (true + error) ** 2, (spread - error) ** 2 + off**2
    for wrong, noise, weight, limit in (
        (found > true + error, linear, mean**2 - top, far**2),
        (found < true - error, -linear, low - mean**2, far**2 + off**2),
    ):
        reached = (noise + weight * of_rows)[wrong & within]
        assert reached.size > 500
        assert needed <= reached.min() < 1.5 * needed
        assert np.abs(weight[wrong & within]).max() <= limit


fractions = st.fractions(-3, 3, max_denominator=12)


@examples(100, quick=20)
@given(
    times=fractions,
    factor=fractions.filter(bool),
    sums=st.lists(st.integers(-40, 40), min_size=GROUPS, max_size=GROUPS),
    rows=st.lists(st.integers(0, 4), min_size=GROUPS, max_size=GROUPS),
    squares=st.lists(st.integers(0, 900), min_size=GROUPS, max_size=GROUPS),
    is_sample=st.booleans(),
    least=st.sampled_from([Fraction(0), Fraction(3, 2)]),
)
def test_exact_comparisons_are_those_of_roots(
    times: Fraction,
    factor: Fraction,
    sums: list[int],
    rows: list[int],
    squares: list[int],
    is_sample: bool,
    least: Fraction,
) -> None:
    """Too few rows leave nothing to compare, and so do groups without rows. Roots are those of 60 decimals."""
    pair = pair_with(times, factor, least=least, is_sample=is_sample)
    exact = np.array([sums, rows, squares], dtype=np.int64)
    held = evaluate_literal(compare_with_all(1, pair), above(0, 0, 9), exact)
    all_rows, all_sums = sum(rows), sum(sums)
    for place in range(GROUPS):
        if not rows[place] or all_rows <= is_sample:
            assert not held[place]
            continue
        square = (Fraction(sum(squares)) - Fraction(all_sums**2, all_rows)) / (all_rows - is_sample)
        square = max(square, least**2)
        root = Fraction(math.isqrt(int(square * 10**120)), 10**60)
        difference = Fraction(sums[place], rows[place]) - times * Fraction(all_sums, all_rows)
        if abs(difference - factor * root) > Fraction(1, 10**50):
            assert held[place] == (difference > factor * root)


def test_ties_of_whole_roots_are_no_more() -> None:
    """A mean of 7 is not above the mean 1 and twice the deviation 3; a sum that is one more is."""
    pair = pair_with(Fraction(1), Fraction(2), least=Fraction(0), is_sample=False)
    rows, squares = [5] * GROUPS, [20 * (9 + 1), 0, 0, 0]
    for more in (0, 1):
        sums = [35 + more, -15 - more, 0, 0]
        held = evaluate_literal(compare_with_all(1, pair), above(0, 0, 9), np.array([sums, rows, squares]))
        assert held[0] == bool(more)


@examples(40, quick=8)
@given(
    times=st.sampled_from([Fraction(0), Fraction(1), Fraction(-3, 2)]),
    factor=st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(-2)]),
    least=st.integers(0, 40).map(Fraction),
    tolerance=st.integers(1_000, 9_000),
    is_sample=st.booleans(),
)
def test_shares_are_kept_and_the_loss_is_that_of_every_sum(
    times: Fraction, factor: Fraction, least: Fraction, tolerance: int, is_sample: bool
) -> None:
    """The stated bounds keep the shares, and a cell's loss is the joint loss of the rates of all three sums."""
    common = compare_with_all(2, pair_with(times, factor, least=least, is_sample=is_sample))
    made = MECHANISMS["keyhole"].calibrate(cell_task(common, above(0, 0, tolerance)))
    test = made.tests[0]
    assert bound_false_reject(test, 1) <= test.fnr <= 0.05 + 1e-12
    assert bound_false_accept(test, -tolerance) <= test.fpr <= 0.1 + 1e-12
    rates = list_sum_rates(made)
    assert all(rates)
    losses = [rate * moved for rate, moved in zip(rates, common.sensitivities, strict=True)]
    assert compute_joint_loss(losses, common.exposures) <= Fraction(made.worst_case_epsilon)
    mean_error, error = test.side_errors
    assert abs(times) * mean_error + abs(factor) * error <= test.other_error


def test_a_least_deviation_makes_the_comparison_cheaper() -> None:
    """A root of a small number errs much: without a least one the same tolerance costs more than twice as much."""
    costs = [
        MECHANISMS["keyhole"]
        .calibrate(cell_task(compare_with_all(2, pair_with(Fraction(1), Fraction(1), least=least)), above(0, 0, 900)))
        .worst_case_epsilon
        for least in (Fraction(0), Fraction(9))
    ]
    assert costs[0] > 2 * costs[1]


def test_far_from_the_bar_decisions_are_exact() -> None:
    """Without noise, where both sides differ by more than the tolerance. Too few rows let nobody pass."""
    pair = pair_with(Fraction(1), Fraction(1))
    made = MECHANISMS["keyhole"].calibrate(cell_task(compare_with_all(1, pair), above(0, 0, TOLERANCE)))
    for own in range(-90, 90, 9):
        exact = np.array(make_world(Fraction(5), 30.0, Fraction(own), is_sample=True), dtype=np.int64)
        passed = MECHANISMS["keyhole"].decide(made, exact, noise=Silence(0)).passed
        if abs(own - 35) > TOLERANCE * pair.step:
            assert passed[-1] == (own > 35)
    few = [np.array([one]) for one in (90 * ROWS, ROWS, 1, 1, 1)]
    assert not decide_means(made.tests[0], above(0, 0, TOLERANCE), few).any()


@pytest.mark.parametrize(("error", "mean_error"), [(1_500, 0), (1_500, 900), (2_000, 300)])
def test_the_bound_is_that_of_the_weighted_noises(error: int, mean_error: int) -> None:
    """The tail of 200,000 draws, at the proof's weights, is at most the bound, and at least seven tenths of it.

    Errors are in hundredths of a step. Each count is above the bound with a probability below 1e-6.
    """
    pair, rates, draws = pair_with(Fraction(1), Fraction(1)), (1e-6, 2e-4, 1e-2), 200_000
    noises = [CellNoise(1, place, 1, GROUPS, Fraction(rates[(1, 2, 0)[place]])) for place in range(3)]
    wide, off, far = error / 100, mean_error / 100, find_largest_deviation(pair)
    needed = (2 * LEAST * wide + wide**2) * (ROWS * GROUPS - 1) - off**2 * ROWS * GROUPS
    noise, summed = SeededNoise(error + mean_error), np.zeros(draws)
    for one, weight in zip(noises, (2 * REACH, far**2 + off**2, 1), strict=True):
        for _ in range(GROUPS):
            summed += weight * noise.draw_discrete_laplace(rate=one.rate, size=draws)
    bound = bound_deviation_error(pair, noises, (1, 1, 2), error=error, mean_error=mean_error)
    reached = int((summed >= needed).sum())
    assert reached <= stats.binom.isf(1e-6, draws, bound)
    assert reached >= 0.7 * bound * draws > 200


def test_squares_of_many_rows_are_added_without_a_limit() -> None:
    """Each group has a fifth of what 64-bit integers hold, and the square of all rows is theirs together."""
    pair, rows = pair_with(Fraction(0), Fraction(1), least=Fraction(0), is_sample=False), 1 << 21
    one = 1 << 20  # the deviation of rows with the mean 0
    exact = np.array([[0, 0, 0, (one + 1) * rows], [rows] * 4, [one * one * rows] * 4], dtype=np.int64)
    exact[0, 0] = -exact[0, 3]
    pair = replace(pair, largest_mean=1 << 21, largest_other_mean=1 << 21)
    assert evaluate_literal(compare_with_all(1, pair), above(0, 0, 9), exact).tolist() == [False, False, False, True]
    exact[0] = [-(one - 1) * rows, 0, 0, (one - 1) * rows]
    assert not evaluate_literal(compare_with_all(1, pair), above(0, 0, 9), exact).any()


def test_both_errors_of_the_right_side_are_added() -> None:
    """Far from the bar nothing else is left of the chance of an error."""
    pair = pair_with(Fraction(1), Fraction(1))
    made = MECHANISMS["keyhole"].calibrate(cell_task(compare_with_all(2, pair), above(0, 0, TOLERANCE)))
    (test,), (mean_error, error) = made.tests, made.tests[0].side_errors
    rates = list(map(float, list_sum_rates(made)))
    wide = REACH + math.ceil(mean_error * pair.step)
    weighed = (WeightedNoise(1, GROUPS, rates[0]), WeightedNoise(wide, GROUPS, rates[1]))
    of_mean = 2 * bound_upper_tail(weighed, math.floor(mean_error * pair.step * pair.other_rows))
    kind = [one for one in test.cell_noises if one.variant == 1]
    spread = bound_deviation_error(pair, kind, test.counted, error=error, mean_error=mean_error)
    assert bound_false_reject(test, 10_000_000) == pytest.approx(of_mean + spread, rel=1e-6)
    assert of_mean > 0.01 * spread > 0


def test_bounds_fall_with_the_error() -> None:
    """They are 1 where the mean's own error leaves nothing, and fall to nothing."""
    pair = pair_with(Fraction(1), Fraction(1))
    noises = [CellNoise(1, place, 1, GROUPS, Fraction(1, wide)) for place, wide in enumerate((3_000, 30, 300_000))]
    found = [
        bound_deviation_error(pair, noises, (1, 1, 2), error=error, mean_error=100) for error in range(0, 3_000, 100)
    ]
    assert found[0] == 1.0
    assert found == sorted(found, reverse=True)
    assert found[-1] < 1e-4


@pytest.mark.parametrize("tolerance", [1, 1 << 25])
def test_tolerances_out_of_reach_are_refused(tolerance: int) -> None:
    common = compare_with_all(1, pair_with(Fraction(1), Fraction(1)))
    with pytest.raises(Unachievable) as refused:
        MECHANISMS["keyhole"].calibrate(cell_task(common, above(0, 0, tolerance)))
    assert refused.value.remedy is not None
