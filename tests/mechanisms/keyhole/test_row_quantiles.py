"""Comparisons of a group's mean with a quantile of all rows, on noisy sums, rows and counts of rows by bin."""

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from mechanisms.formula import Cut, Integers
from mechanisms.keyhole.cell_readings import bound_false_accept, bound_false_reject
from mechanisms.keyhole.noisy_cells import evaluate_literal
from mechanisms.keyhole.row_quantiles import bound_rank_error, find_bin_rate, find_bins
from mechanisms.noise.noise_sum import WeightedNoise
from mechanisms.protocol import OWN_CELL, CommonSums, Exposure, MeanPair, RowQuantile, Unachievable
from mechanisms.registry import MECHANISMS
from mechanisms.threshold.joint_loss import compute_joint_loss, list_sum_rates
from tests.effort import examples, rounds
from tests.mechanisms.keyhole.cell_worlds import above, below, cell_task, common_sums, total
from tests.seeded_noise import SeededNoise

REACH = 80
WIDTH = 10
BINS = 16
GROUPS = 4
ROWS = 4_000
SLACK = Fraction(1, 50)
TOLERANCE = 2_000
"""In hundredths of a step, so 20 of the range from -80 to 80. A bin takes 10 of them."""
ALL = ROWS * GROUPS
HALF = Fraction(1, 2)


def pair_with(share: Fraction, times: Fraction = Fraction(1), *, slack: Fraction = SLACK) -> MeanPair:
    """Return a comparison with `times` a quantile of all rows."""
    first = Fraction(WIDTH, 2) - REACH
    one = RowQuantile(times, share, slack, first, Fraction(WIDTH), Fraction(WIDTH, 2), BINS)
    return MeanPair(Fraction(0), Fraction(0), Fraction(1, 100), REACH, 1, ROWS, ALL, quantile=one)


def compare_with_all(many: int, pair: MeanPair) -> CommonSums:
    """Return a comparison of each group's mean with the quantile of its row of groups. A row is in one bin."""
    parts = [(0, 1, OWN_CELL), (1, 1, OWN_CELL), *((2 + place, 1, total(1)) for place in range(BINS))]
    exposures: tuple[Exposure, ...] = tuple(
        tuple(Fraction(place in (0, 1, 2 + one)) for place in range(2 + BINS)) for one in range(BINS)
    )
    made = common_sums((many, GROUPS), parts, sensitivities=(REACH, *(1,) * (1 + BINS)), exposures=exposures)
    return replace(made, means=(pair,))


class Louder(SeededNoise):
    """Noise that is six times as wide as it should be."""

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        return super().draw_discrete_laplace(rate=rate / 6, size=size)


def find_rank(share: Fraction, *, interpolated: bool, rows: int) -> tuple[int, int]:
    """Return the places of the rows between which a quantile of SQL lies, from 1."""
    if interpolated:
        return floor(share * (rows - 1)) + 1, ceil(share * (rows - 1)) + 1
    return max(1, ceil(share * rows)), max(1, ceil(share * rows))


@examples(400, quick=60)
@given(
    counts=st.lists(st.integers(0, 30), min_size=1, max_size=20),
    noises=st.lists(st.integers(-9, 9), min_size=20, max_size=20),
    share=st.fractions(0, 1, max_denominator=20),
    part=st.fractions(0, 1, max_denominator=20),
    interpolated=st.booleans(),
    too_high=st.booleans(),
)
def test_a_bin_is_wrong_only_if_noise_exceeds_half_the_slack(
    counts: list[int], noises: list[int], share: Fraction, part: Fraction, interpolated: bool, too_high: bool
) -> None:
    """By brute force over ranks: with smaller noise the bin lies between the quantile's and that of the moved rank."""
    rows, slack = sum(counts), part * min(share, 1 - share)
    assume(rows)
    half = slack * rows / 2
    one = RowQuantile(Fraction(1), share, slack, Fraction(0), Fraction(1), Fraction(1, 2), len(counts))
    noisy = [count + noise for count, noise in zip(counts, noises, strict=False)]
    prefix = np.cumsum(noises[: len(counts)])
    worst = max(abs(int(done) - share * int(prefix[-1])) for done in prefix)
    moved = half if too_high else -half
    found = int(find_bins(one, [np.array([count]) for count in noisy], moved=moved)[0])
    bin_of_rank = np.repeat(np.arange(len(counts)), counts)
    low, high = (int(bin_of_rank[rank - 1]) for rank in find_rank(share, interpolated=interpolated, rows=rows))
    if worst > half - 1:
        return
    if too_high:
        assert high <= found <= bin_of_rank[max(1, ceil((share + slack) * rows)) - 1]
    else:
        assert bin_of_rank[max(1, ceil((share - slack) * rows)) - 1] <= found <= low


@pytest.mark.parametrize(("moved", "place"), [(0, 1), (1, 2), (-30, 0), (-31, 0), (-29, 1), (20, 2), (21, 3)])
def test_a_rank_at_the_edge_of_a_bin_is_in_it(moved: int, place: int) -> None:
    """Of 80 rows, 10, 40, 60 and 80 are in the bins so far: the median's 40 are just reached in the second."""
    one = RowQuantile(Fraction(1), Fraction(1, 2), SLACK, Fraction(5), Fraction(10), Fraction(5), bins=4)
    for scale in (1, 1 << 55):  # beyond which 64 bits are too few
        counts = [np.array([count * scale]) for count in (10, 30, 20, 20)]
        assert find_bins(one, counts, moved=Fraction(moved * scale)).tolist() == [place]


def make_world(share: Fraction, *, bin_: int, own: Fraction, place: str) -> list[list[int]]:
    """Return sums, rows and bins of groups. The last group has a mean of its own.

    Parameters:
        place: `full` if no further rows lie between the quantile's bin and the last one, so that noise moves it far
            up. `empty` if only the rows that the slack leaves out lie below it, so that noise moves it far down.
    """
    counted = [0] * BINS
    if place == "full":
        counted[bin_] = ceil(share * ALL)
        counted[-1] = ALL - counted[bin_]
    else:
        counted[0] = ceil((share - SLACK) * ALL) - 1
        counted[bin_] = ALL - counted[0]
    return [[0] * (GROUPS - 1) + [floor(own * ROWS)], [ROWS] * GROUPS, *([count, 0, 0, 0] for count in counted)]


def mirror(world: list[list[int]]) -> list[list[int]]:
    """Return the world in which all values have the other sign."""
    return [[-one for one in world[0]], world[1], *world[:1:-1]]


def count_errors(share: Fraction, times: Fraction, *, rising: bool, many: int, noise: SeededNoise) -> tuple[int, int]:
    """Return how many of `many` questions miss a group that just qualifies, and return one that fails by the tolerance.

    The quantile is at the end of its bin that is the farthest from the middle. `rising` and the sign of `times` decide
    in which direction it may err; the other direction is a mirror image.
    """
    is_low = rising == (times > 0)
    share = share if is_low else 1 - share
    common = compare_with_all(many, pair_with(share, times))
    literal = above(0, 0, TOLERANCE) if rising else below(0, -1, TOLERANCE)
    made = MECHANISMS["keyhole"].calibrate(cell_task(common, literal))
    bin_ = BINS // 2
    low = Fraction(bin_ * WIDTH - REACH)

    def count_returned(world: list[list[int]]) -> int:
        sums = np.array([np.tile(one, many) for one in world], dtype=np.int64)
        passed = MECHANISMS["keyhole"].decide(made, sums, noise=noise).passed
        return int(passed.reshape(many, GROUPS)[:, -1].sum())

    def make(quantile: Fraction, difference: Fraction, place: str) -> list[list[int]]:
        # in a mirrored world the quantile has the other sign, and the own mean with it
        side = 1 if is_low else -1
        own = times * quantile * side + (1 if rising else -1) * difference
        world = make_world(share if is_low else 1 - share, bin_=bin_, own=own * side, place=place)
        return world if is_low else mirror(world)

    near = Fraction(1, 100)
    missed = many - count_returned(make(low, near, "full"))
    wrong = count_returned(make(low + WIDTH - near, -TOLERANCE * Fraction(1, 100) - near, "empty"))
    return missed, wrong


@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize(
    ("share", "times"),
    [
        (Fraction(1, 2), Fraction(1)),
        (Fraction(1, 2), Fraction(-1)),
        (Fraction(9, 10), Fraction(1)),
        (Fraction(1, 20), Fraction(3, 2)),
    ],
)
def test_the_real_mechanism_errs_no_more_often_than_promised(share: Fraction, times: Fraction, rising: bool) -> None:
    """10,000 questions (quick: 1,000). With rates as promised each count is too high with a probability below 1e-6."""
    many = rounds(10_000, quick=1_000)
    noise = SeededNoise(int(20 * share + 4 * times) + 200 + rising)
    missed, wrong = count_errors(share, times, rising=rising, many=many, noise=noise)
    assert missed <= stats.binom.isf(1e-6, many, 0.05)
    assert wrong <= stats.binom.isf(1e-6, many, 0.1)


def test_noise_six_times_as_wide_breaks_the_promise() -> None:
    for rising in (True, False):
        missed, wrong = count_errors(Fraction(1, 2), Fraction(1), rising=rising, many=1_000, noise=Louder(5))
        assert missed > stats.binom.isf(1e-6, 1_000, 0.05)
        assert wrong > stats.binom.isf(1e-6, 1_000, 0.1)


class Silence(SeededNoise):
    """Noise that is always zero."""

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        return np.zeros(size, dtype=np.int64)


def test_far_from_the_bar_decisions_are_exact() -> None:
    """Without noise, where both sides differ by more than the tolerance: the bar is half the median, less 60."""
    pair = replace(pair_with(Fraction(1, 2), HALF), constant=Fraction(-60))
    made = MECHANISMS["keyhole"].calibrate(cell_task(compare_with_all(1, pair), above(0, 0, TOLERANCE)))
    for own in range(-75, 80, 5):
        exact = np.array(make_world(Fraction(1, 2), bin_=12, own=Fraction(own), place="full"), dtype=np.int64)
        passed = MECHANISMS["keyhole"].decide(made, exact, noise=Silence(0)).passed
        bar = 45 / 2 - 60  # the median is in the middle of its bin
        if abs(own - bar) > 20:
            assert passed[-1] == (own > bar)


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 20), Fraction(1, 3)])
def test_the_bound_of_ranks_is_no_less_than_what_noise_does(share: Fraction) -> None:
    """20,000 bisections beside the bound, of bins where noise errs the most; a bound of twice the frequency is near."""
    many, count = 20_000, BINS * GROUPS
    pair = replace(pair_with(share, slack=share / 10), other_rows=int(1_000 / share))
    assert pair.quantile is not None
    rate = find_bin_rate(pair, [[(2 + place, 1, GROUPS) for place in range(BINS)]], 0.05)
    bound = bound_rank_error(pair, (WeightedNoise(1, count, float(rate)),))
    assert 0.045 < bound <= 0.05
    half = pair.quantile.slack * pair.other_rows / 2
    counts = np.zeros((BINS, many), dtype=np.int64)
    counts[0], counts[-1] = share * pair.other_rows, (1 - share) * pair.other_rows
    drawn = SeededNoise(3).draw_discrete_laplace(rate=rate, size=many * count).reshape(BINS, many, GROUPS).sum(axis=2)
    found = find_bins(pair.quantile, list(counts + drawn), moved=-half)
    assert np.mean(found > 0) <= bound + 5 * np.sqrt(bound / many)


@examples(40, quick=8)
@given(
    share=st.sampled_from([Fraction(1, 2), Fraction(1, 10), Fraction(19, 20)]),
    times=st.sampled_from([Fraction(1), Fraction(-3, 2)]),
    tolerance=st.integers(1_800, 6_000),  # below 1,650 some are refused
)
def test_shares_are_kept_and_the_loss_is_that_of_one_bin(share: Fraction, times: Fraction, tolerance: int) -> None:
    """The stated bounds keep the shares. A cell's loss has the rates of sum and rows, and that of a single bin."""
    made = MECHANISMS["keyhole"].calibrate(
        cell_task(compare_with_all(2, pair_with(share, times)), above(0, 0, tolerance))
    )
    test = made.tests[0]
    assert bound_false_reject(test, 1) <= test.fnr <= 0.05 + 1e-12
    assert bound_false_accept(test, -tolerance) <= test.fpr <= 0.1 + 1e-12
    rates = list_sum_rates(made)
    assert len(set(rates[2:])) == 1
    assert all(rates)
    assert compute_joint_loss([rates[0] * REACH, rates[1], rates[2]], [(Fraction(1),) * 3]) <= made.worst_case_epsilon
    assert made.worst_case_epsilon < float(rates[0] * REACH + rates[1] + rates[2]) * (1 + 1e-9)


def test_a_tolerance_narrower_than_a_bin_is_refused() -> None:
    """So is a range of ranks that holds less than two rows."""
    for pair, tolerance in (
        (pair_with(Fraction(1, 2)), 900),
        (pair_with(Fraction(1, 2), slack=Fraction(1, ALL)), 4_000),
    ):
        with pytest.raises(Unachievable):
            MECHANISMS["keyhole"].calibrate(cell_task(compare_with_all(1, pair), above(0, 0, tolerance)))


@examples(60, quick=15)
@given(
    counts=st.lists(st.lists(st.integers(0, 5), min_size=GROUPS, max_size=GROUPS), min_size=BINS, max_size=BINS),
    sums=st.lists(st.integers(-200, 200), min_size=GROUPS, max_size=GROUPS),
    rows=st.lists(st.integers(0, 4), min_size=GROUPS, max_size=GROUPS),
    share=st.fractions(0, 1, max_denominator=12),
    times=st.fractions(-2, 2, max_denominator=4).filter(bool),
    rising=st.booleans(),
)
def test_exact_comparisons_are_those_of_the_middles_of_bins(
    counts: list[list[int]], sums: list[int], rows: list[int], share: Fraction, times: Fraction, rising: bool
) -> None:
    """Groups without rows, and quantiles of no rows, leave nothing to compare."""
    pair = pair_with(share, times)
    literal: Cut = above(0, 0, 9) if rising else below(0, -1, 9)
    held = evaluate_literal(compare_with_all(1, pair), literal, np.array([sums, rows, *counts], dtype=np.int64))
    found = np.repeat(np.arange(BINS), [sum(one) for one in counts])
    for place in range(GROUPS):
        if not rows[place] or not found.size:
            assert not held[place]
            continue
        middle = Fraction(WIDTH, 2) - REACH + WIDTH * int(found[max(1, ceil(share * found.size)) - 1])
        difference = Fraction(sums[place], rows[place]) - times * middle
        assert held[place] == (difference > 0 if rising else difference < 0)
