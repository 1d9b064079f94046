"""Thresholds on the standard deviation of several cells, beside a key's own cell and their mean."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mechanisms.formula import Cut
from mechanisms.keyhole.cell_readings import bound_false_accept, bound_false_reject, find_affordable_tolerance
from mechanisms.keyhole.cell_statistics import compute_statistics
from mechanisms.keyhole.noisy_cells import evaluate_literal
from mechanisms.protocol import LARGEST, OWN_CELL, Calibration, CommonSums, Deviation, Unachievable, UsedCells
from mechanisms.registry import MECHANISMS
from tests.effort import examples, rounds
from tests.mechanisms.keyhole.cell_worlds import Part, above, below, cell_task, common_sums, frame, total
from tests.seeded_noise import SeededNoise

SAMPLE, WHOLE = Deviation(is_sample=True), Deviation(is_sample=False)


def calibrate(common: CommonSums, *literals: Cut) -> Calibration:
    return MECHANISMS["keyhole"].calibrate(cell_task(common, *literals))


def measure(cells: list[int], spread: Deviation) -> Fraction:
    """Return the square of a standard deviation."""
    mean = Fraction(sum(cells), len(cells))
    return sum(((one - mean) ** 2 for one in cells), Fraction(0)) / (len(cells) - spread.is_sample)


@examples(300, quick=40)
@given(
    cells=st.lists(st.integers(-9, 9) | st.integers(-(2**50), 2**50), min_size=2, max_size=6),
    spread=st.sampled_from((SAMPLE, WHOLE, replace(SAMPLE, if_equal=-1))),
    times=st.sampled_from((-6, -2, 2, 4)),
)
def test_a_deviation_is_compared_by_its_square(cells: list[int], spread: Deviation, times: int) -> None:
    """Half of `times` a deviation is above, at or below a whole number if its square is."""
    (found,) = compute_statistics(np.array([cells], dtype=np.int64), spread, times).tolist()
    square = Fraction(times, 2) ** 2 * measure(cells, spread)
    if not square and spread.if_equal:
        assert found == -1
        return
    size = abs(found)
    assert (found > 0) is (times > 0) or not found
    low, high = size // 2, -(-size // 2)
    assert low**2 <= square <= high**2
    assert (low == high) is (math.isqrt(int(square)) ** 2 == square)


def test_a_frame_has_the_deviation_of_its_own_cells() -> None:
    where = replace(frame(4, length=3), statistic=SAMPLE)
    common = common_sums((4,), [(0, 2, where)])
    assert where.used_places[0] == (0,)
    lacking = common_sums((4,), [(0, 2, replace(where, used_places=((), *where.used_places[1:])))])
    sums = np.array([[5, 9, 1, 1]])
    found = [
        [bool(one) for one in evaluate_literal(lacking, above(0, 2 * least - 1, 9), sums)] for least in (2, 3, 4, 5)
    ]
    assert found == [
        [False, True, True, True],  # roots of 8, 16, 21 and a third
        [False, False, True, True],
        [False, False, True, True],
        [False, False, False, False],
    ]
    assert common.cells != lacking.cells


WORLDS = {
    "equal": [0] * 6,
    "one away": [90_000, 0, 0, 0, 0, 0],
    "two sides": [-40_000] * 3 + [40_000] * 3,
    "near": [-15, -10, 0, 5, 10, 10],
}


@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize("times", [-4, 4])
@pytest.mark.parametrize("spread", [SAMPLE, WHOLE], ids=["sample", "whole"])
def test_deviations_err_no_more_often_than_promised(spread: Deviation, times: int, rising: bool) -> None:
    """10,000 parts of six cells (quick: 3,000), with a value beside twice their deviation that just makes the literal
    hold, or fail with the tolerance. With rates as promised each count is too high with a probability below 1e-6. In
    some world errors are as frequent as a twentieth of what is allowed."""
    many, tolerance = rounds(10_000, quick=3_000), 600
    parts: list[Part] = [(1, 2, OWN_CELL), (0, times, replace(total(1), statistic=spread))]
    common = common_sums((many, 6), parts, sensitivities=(1, 1))
    literal = above(0, 0, tolerance) if rising else below(0, -1, tolerance)
    made, noise = calibrate(common, literal), SeededNoise(int(rising))
    frequent = []
    for cells in WORLDS.values():
        deviation = math.sqrt(measure(cells, spread)) * times
        for holds in (True, False):
            value = 1 if holds else -tolerance
            own = math.floor(((value if rising else -value) - deviation) / 2)
            own += rising is holds  # the nearest whole number on the side of the answer
            sums = np.tile(np.array([cells, [own] * 6], dtype=np.int64), many)
            assert bool(evaluate_literal(common, literal, sums)[0]) is holds
            passed = MECHANISMS["keyhole"].decide(made, sums, noise=noise).passed.reshape(many, 6)
            erred = int((passed[:, 0] != holds).sum())
            allowed = 0.05 if holds else 0.1
            assert erred <= stats.binom.isf(1e-6, many, allowed)
            frequent.append(erred / (allowed * many))
    assert max(frequent) > 0.05


def read_score(own: int, others: list[int], sign: int) -> float:
    """Return how far a cell is beyond the mean by one deviation, in sixteenths."""
    cells = [own, *others]
    return 16 * (own - sum(cells) / 8 - sign * math.sqrt(measure(cells, SAMPLE)))


@pytest.mark.parametrize("rising", [True, False])
def test_a_standard_score_errs_no_more_often_than_promised(rising: bool) -> None:
    """10,000 parts of eight cells (quick: 3,000), of which one is beyond their mean by one deviation, or short of it by
    the tolerance. With rates as promised each count is too high with a probability below 1e-6."""
    many, tolerance, sign = rounds(10_000, quick=3_000), 4_000, 1 if rising else -1
    spread = replace(total(1), statistic=SAMPLE)
    common = common_sums((many, 8), [(0, 16, OWN_CELL), (0, -2, total(1)), (0, -16 * sign, spread)])
    literal = above(0, 0, tolerance) if rising else below(0, -1, tolerance)
    made, noise, others = calibrate(common, literal), SeededNoise(int(rising)), [0, 0, 0, 900, 900, 900, 900]
    scores = [(own, sign * read_score(own, others, sign)) for own in range(-3_000, 3_000)]
    just = min((one for one in scores if one[1] > 0), key=lambda one: one[1])
    short = max((one for one in scores if one[1] <= -tolerance), key=lambda one: one[1])
    for (own, value), holds in ((just, True), (short, False)):
        assert abs(value + (0 if holds else tolerance)) < 20
        sums = np.tile(np.array([[own, *others]], dtype=np.int64), many)
        assert bool(evaluate_literal(common, literal, sums)[0]) is holds
        passed = MECHANISMS["keyhole"].decide(made, sums, noise=noise).passed.reshape(many, 8)
        erred = int((passed[:, 0] != holds).sum())
        assert erred <= stats.binom.isf(1e-6, many, 0.05 if holds else 0.1)


def test_the_shares_of_a_deviation_and_of_other_noise_add_up_to_the_bounds() -> None:
    common = common_sums((9,), [(0, 2, OWN_CELL), (0, -2, replace(total(0), statistic=WHOLE))])
    (test,) = calibrate(common, above(0, 0, 400)).tests
    assert min(test.deviation_errors) > 0
    assert 0.8 * test.fnr < bound_false_reject(test, 1) <= test.fnr
    assert 0.8 * test.fpr < bound_false_accept(test, -400) <= test.fpr
    assert bound_false_reject(test, -10_000) == bound_false_accept(test, 10_000) == 1.0


@pytest.mark.parametrize("times", [-4, 4])
@pytest.mark.parametrize("rising", [True, False])
def test_the_wide_error_is_on_the_side_to_which_a_raised_deviation_leads(times: int, rising: bool) -> None:
    """A value above a limit is missed if the deviation in the limit is too high, one below it if that is too low."""
    common = common_sums((60,), [(0, 2, OWN_CELL), (0, times, replace(total(0), statistic=WHOLE))])
    literal = above(0, 0, 900) if rising else below(0, -1, 900)
    missed, wrong = calibrate(common, literal).tests[0].deviation_errors
    wide, narrow = (missed, wrong) if (times < 0) is rising else (wrong, missed)
    assert wide > 1.5 * narrow > 0


def test_a_comparison_in_one_direction_needs_less_than_in_both() -> None:
    """Noise raises a deviation more than it lowers it. So each direction needs the wide error on one side alone."""
    common = common_sums((13,), [(0, 2, OWN_CELL), (0, -4, replace(total(0), statistic=WHOLE))])
    one, both = (calibrate(common, above(0, 0, 400), *more) for more in ((), (below(0, 0, 400),)))
    assert one.worst_case_epsilon < 0.95 * both.worst_case_epsilon
    needed = [
        find_affordable_tolerance(common, 0, epsilon=0.5, fnr=0.05, fpr=0.1, is_above=ways)
        for ways in ((True,), (True, False))
    ]
    assert needed[0] < 0.95 * needed[1]


def test_the_loss_is_that_of_one_cell_however_many_a_deviation_reads() -> None:
    common = common_sums((50,), [(0, 2, OWN_CELL), (0, -2, replace(total(0), statistic=WHOLE))], sensitivities=(3,))
    made = calibrate(common, above(0, 0, 900))
    rates = {float(noise.rate) for noise in made.tests[0].cell_noises}
    assert len(rates) == 1
    assert made.worst_case_epsilon == pytest.approx(3 * rates.pop())


def test_two_statistics_are_refused() -> None:
    spread, largest = replace(total(0), statistic=WHOLE), replace(total(0), statistic=LARGEST)
    pairs: tuple[tuple[UsedCells, UsedCells], ...] = ((spread, largest), (spread, replace(spread, statistic=SAMPLE)))
    for one, other in pairs:
        with pytest.raises(Unachievable, match="other groups' one") as refused:
            calibrate(common_sums((5,), [(0, 2, one), (0, -2, other)]), above(0, 0, 90))
        assert refused.value.remedy is not None
