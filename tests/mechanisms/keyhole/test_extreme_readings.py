"""Thresholds on the largest, the least or a quantile of several cells, beside a key's own cell."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from statistics import median_low

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mechanisms.formula import Integers
from mechanisms.keyhole.cell_readings import bound_false_accept, bound_false_reject
from mechanisms.keyhole.cell_statistics import compute_statistics, locate_quantile
from mechanisms.keyhole.noisy_cells import evaluate_literal
from mechanisms.keyhole.taken_cells import count_candidates
from mechanisms.noise.noise_sum import WeightedNoise, merge_equal_noises
from mechanisms.protocol import LARGEST, LEAST, OWN_CELL, Calibration, CommonSums, Quantile, Unachievable, UsedCells
from mechanisms.registry import MECHANISMS
from tests.effort import examples, rounds
from tests.mechanisms.keyhole.cell_worlds import Part, above, below, cell_task, common_sums, frame, list_keys, total
from tests.mechanisms.noise.convolved import exact_tail
from tests.seeded_noise import SeededNoise

DECILE = Quantile(Fraction(9, 10))
MEDIAN, HALFWAY = Quantile(Fraction(1, 2)), Quantile(Fraction(1, 2), interpolated=True)
ROUNDING = 3e-9  # of a tail that is inverted


def calibrate(common: CommonSums, tolerance: int, *, rising: bool = True) -> Calibration:
    cut = above(0, 0, tolerance) if rising else below(0, -1, tolerance)
    return MECHANISMS["keyhole"].calibrate(cell_task(common, cut))


def read_extreme(where: UsedCells, sums: Integers, key: tuple[int, ...]) -> int | None:
    """Return the largest, least or median cell of a key, found one by one; None if it takes none."""
    taken = [
        int(sums[cell])
        for cell in np.ndindex(*sums.shape)
        if all(
            axis in where.summed_axes or (at in where.used_places[own] if axis == where.axis else at == own)
            for axis, (at, own) in enumerate(zip(cell, key, strict=True))
        )
    ]
    if not taken:
        return None
    return median_low(taken) if where.statistic == MEDIAN else max(taken) if where.statistic == LARGEST else min(taken)


@st.composite
def extremes(draw: st.DrawFn, shape: tuple[int, ...]) -> UsedCells:
    axes = range(len(shape))
    axis = draw(st.none() | st.sampled_from(axes))
    whole = tuple(one for one in axes if one != axis and draw(st.booleans()))
    statistic = draw(st.sampled_from((LARGEST, LEAST, MEDIAN)))
    if axis is None:
        return UsedCells(whole or (0,), statistic=statistic)
    places = st.lists(st.integers(0, shape[axis] - 1), unique=True, max_size=3)
    taken = tuple(tuple(sorted(draw(places))) for _ in range(shape[axis]))
    return UsedCells(whole, axis, taken, empty_value=draw(st.none() | st.integers(-20, 20)), statistic=statistic)


@examples(200, quick=30)
@given(data=st.data(), own=st.integers(-2, 3), factor=st.sampled_from((-3, -1, 2)))
def test_the_largest_and_least_are_those_of_all_cells(data: st.DataObject, own: int, factor: int) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    where = data.draw(extremes(shape))
    parts = [(0, factor, where), *([(0, own, OWN_CELL)] if own else [])]
    common = common_sums(shape, parts)
    drawn = data.draw(st.lists(st.integers(-9, 9), min_size=math.prod(shape), max_size=math.prod(shape)))
    sums = np.array(drawn, dtype=np.int64).reshape(shape)
    values: list[int | None] = []
    for key in list_keys(common):
        found = read_extreme(where, sums, key)
        constant = None if where.empty_value is None else where.empty_value
        beside = constant if found is None else factor * found
        values.append(None if beside is None else beside + own * int(sums[key]))
    for cut in (-5, 0, 4):
        for literal in (above(0, cut, 9), below(0, cut, 9)):
            holds = [value is not None and (value > cut) == literal.above for value in values]
            assert evaluate_literal(common, literal, sums.reshape(1, -1)).tolist() == holds


READINGS: dict[str, tuple[tuple[int, ...], list[Part], tuple[int, int]]] = {
    "half the largest": ((6,), [(0, 2, OWN_CELL), (0, -1, replace(total(0), statistic=LARGEST))], (6, 1)),
    "twice the least of a part": ((2, 4), [(0, 1, OWN_CELL), (0, -2, replace(total(1), statistic=LEAST))], (1, 4)),
    "five in a row": ((9,), [(0, 1, replace(frame(9, length=5), statistic=LEAST))], (5, 1)),
    "another sum": ((3,), [(1, 1, OWN_CELL), (0, -1, replace(total(0), statistic=LARGEST))], (3, 1)),
    "twice the median": ((7,), [(0, 1, OWN_CELL), (0, -2, replace(total(0), statistic=MEDIAN))], (4, 4)),
    "between two": ((6,), [(0, 2, OWN_CELL), (0, -2, replace(total(0), statistic=HALFWAY))], (4, 4)),
    "the upper decile": ((20,), [(0, 1, OWN_CELL), (0, -1, replace(total(0), statistic=DECILE))], (18, 3)),
}


@pytest.mark.parametrize("reading", READINGS)
def test_every_cell_that_may_be_the_largest_is_allowed_for(reading: str) -> None:
    """The noises of each are those that the reading has if it is the one, and their tails are added."""
    shape, parts, cells = READINGS[reading]
    common = common_sums(shape, parts, sensitivities=(1, 1))
    made = calibrate(common, 90)
    (test,) = made.tests
    assert count_candidates(common, 0) == cells[::-1]
    assert test.candidates == cells
    rates = {one.place: float(one.rate) for one in test.cell_noises}
    own = {place: times for place, times, where in parts if where == OWN_CELL}
    ((place, factor, _),) = [one for one in parts if one[2].statistic]
    other = [*own.items(), (place, factor)]
    alone = (own | {place: own.get(place, 0) + factor}).items()
    tails = [
        [
            each * exact_tail(merge_equal_noises([WeightedNoise(abs(n), 1, rates[s]) for s, n in noises if n]), value)
            for noises in (other, alone)
        ]
        for each, value in ((cells[0], test.shift + 1), (cells[1], 90 - test.shift + 1))
    ]
    missed, wrong = map(max, tails)
    assert bound_false_reject(test, 1) == pytest.approx(missed, abs=sum(cells) * ROUNDING)
    assert bound_false_accept(test, -90) == pytest.approx(wrong, abs=sum(cells) * ROUNDING)
    assert 0.03 < missed <= test.fnr <= 0.05
    assert 0.06 < wrong <= test.fpr <= 0.1


FENCES: dict[str, tuple[tuple[int, ...], list[Part]]] = {
    "beyond the quartiles": (
        (6,),
        [
            (0, 2, OWN_CELL),
            (0, -5, replace(total(0), statistic=Quantile(Fraction(3, 4)))),
            (0, 3, replace(total(0), statistic=Quantile(Fraction(1, 4)))),
        ],
    ),
    "above the middle of another sum": (
        (4,),
        [
            (1, 2, OWN_CELL),
            (0, -1, replace(total(0), statistic=LARGEST)),
            (0, -1, replace(total(0), statistic=LEAST)),
        ],
    ),
}


@pytest.mark.parametrize("fence", FENCES)
def test_every_choice_of_cells_for_two_quantiles_is_allowed_for(fence: str) -> None:
    """The noises of each choice are those that the reading has with these cells, and their tails are added."""
    shape, parts = FENCES[fence]
    common = common_sums(shape, parts, sensitivities=(1, 1))
    (test,) = calibrate(common, 300).tests
    rates = {one.place: float(one.rate) for one in test.cell_noises}
    (own_place, own, _), *read = parts
    raised = lowered = 1
    for _, factor, where in read:
        assert isinstance(where.statistic, Quantile)
        low, _ = locate_quantile(where.statistic, shape[0])
        ways = (low + 1, shape[0] - low)
        raised, lowered = raised * ways[factor < 0], lowered * ways[factor > 0]
    assert test.candidates == (lowered, raised)
    for count, value, bound in (
        (lowered, test.shift + 1, bound_false_reject(test, 1)),
        (raised, 300 - test.shift + 1, bound_false_accept(test, -300)),
    ):
        tails = []
        for cells in product(range(shape[0]), repeat=2):
            noises = {(own_place, 0): own}
            for cell, (place, factor, _) in zip(cells, read, strict=True):
                noises[place, cell] = noises.get((place, cell), 0) + factor
            made = [WeightedNoise(abs(times), 1, rates[place]) for (place, _), times in noises.items() if times]
            tails.append(count * exact_tail(merge_equal_noises(made), value))
        assert bound == pytest.approx(max(tails), abs=count * ROUNDING)
    assert test.fnr <= 0.05
    assert test.fpr <= 0.1


@pytest.mark.parametrize("rising", [True, False])
def test_fences_of_quartiles_err_no_more_often_than_promised(rising: bool) -> None:
    """20,000 parts of six cells (quick: 5,000), of which one just exceeds a fence in another sum, or just fails with
    the tolerance. Cells are level, or those beyond a quartile are far away. With rates as promised each count is too
    high with a probability below 1e-6. In some world errors are as frequent as a thirtieth of what is allowed."""
    many, tolerance = rounds(20_000, quick=5_000), 240
    upper, lower = (replace(total(1), statistic=Quantile(Fraction(share, 4))) for share in (3, 1))
    common = common_sums((many, 6), [(1, 2, OWN_CELL), (0, -5, upper), (0, 3, lower)], sensitivities=(1, 1))
    made = calibrate(common, tolerance, rising=rising)
    noise, sign = SeededNoise(int(rising)), 1 if rising else -1
    frequent = []
    for far in ((0, 0), (1, 1), (0, 1), (1, 0)):  # cells below the lower quartile, and above the upper one
        cells = [-9_000] * far[0] + [0] * (6 - sum(far)) + [9_000] * far[1]
        for value, holds in ((2, True), (-tolerance, False)):
            sums = np.tile(np.array([cells, [sign * value // 2] * 6], dtype=np.int64), many)
            passed = MECHANISMS["keyhole"].decide(made, sums, noise=noise).passed.reshape(many, 6)
            erred = int((passed[:, 0] != holds).sum())
            allowed = 0.05 if holds else 0.1
            assert erred <= stats.binom.isf(1e-6, many, allowed)
            frequent.append(erred / (allowed * many))
    assert max(frequent) > 1 / 30


@examples(200, quick=30)
@given(
    cells=st.lists(st.integers(-9, 9), min_size=1, max_size=7),
    percent=st.integers(0, 100),
    times=st.sampled_from((-4, -2, 2, 6)),
)
def test_quantiles_lie_where_numpy_places_them(cells: list[int], percent: int, times: int) -> None:
    """A number between two whole steps is an odd number of half steps."""
    row, share = np.array([cells], dtype=np.int64), Fraction(percent, 100)
    (between,) = compute_statistics(row, Quantile(share, interpolated=True), times)
    place = share * (len(cells) - 1)
    low = sorted(cells)[math.floor(place)]
    exact = times * (low + (place - math.floor(place)) * (sorted(cells)[math.ceil(place)] - low)) / 2
    assert between == math.floor(exact) + math.ceil(exact)
    (listed,) = compute_statistics(row, Quantile(share), times)
    assert listed == times * np.percentile(cells, percent, method="inverted_cdf")


@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize("share", [MEDIAN, HALFWAY, DECILE], ids=["median", "between", "decile"])
def test_quantiles_err_no_more_often_than_promised(share: Quantile, rising: bool) -> None:
    """20,000 parts of six cells (quick: 5,000), of which one just exceeds their quantile in another sum, or just fails
    with the tolerance. Cells are level, or those beyond the quantile are far away. With rates as promised each count is
    too high with a probability below 1e-6. In some world errors are as frequent as a quarter of what is allowed."""
    many, tolerance = rounds(20_000, quick=5_000), 80
    parts = [(1, 2, OWN_CELL), (0, -2, replace(total(1), statistic=share))]
    made = calibrate(common_sums((many, 6), parts, sensitivities=(1, 1)), tolerance, rising=rising)
    noise, sign = SeededNoise(int(rising)), 1 if rising else -1
    low, part = locate_quantile(share, 6)
    frequent = []
    for lower, higher in product(range(low + 1), range(6 - low - bool(part))):  # cells that are far away
        cells = [-9_000] * lower + [0] * (6 - lower - higher) + [9_000] * higher
        for value, holds in ((2, True), (-tolerance, False)):
            sums = np.tile(np.array([cells, [sign * value // 2] * 6], dtype=np.int64), many)
            passed = MECHANISMS["keyhole"].decide(made, sums, noise=noise).passed.reshape(many, 6)
            erred = int((passed[:, 0] != holds).sum())
            allowed = 0.05 if holds else 0.1
            assert erred <= stats.binom.isf(1e-6, many, allowed)
            frequent.append(erred / (allowed * many))
    assert max(frequent) > 0.25


@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize("level", [True, False], ids=["all level", "one ahead"])
def test_the_real_mechanism_errs_no_more_often_than_promised(rising: bool, level: bool) -> None:
    """20,000 parts of six cells (quick: 5,000), of which one just meets half the largest or just fails it with the
    tolerance. The others are all the largest, or one is. With rates as promised each count is too high with a
    probability below 1e-6. In one direction of each world errors are as frequent as a quarter of what is allowed."""
    many, tolerance = rounds(20_000, quick=5_000), 80
    common = common_sums((many, 6), [(0, 2, OWN_CELL), (0, -1, replace(total(1), statistic=LARGEST))])
    made = calibrate(common, tolerance, rising=rising)
    noise = SeededNoise(int(rising) + 2 * int(level))
    largest = 5_001

    def returned(value: int) -> int:
        sums = np.full((many, 6), largest if level else 0, dtype=np.int64)
        sums[:, 1] = largest
        sums[:, 0] = (largest + value) // 2
        assert 2 * sums[0, 0] - largest == value
        passed = MECHANISMS["keyhole"].decide(made, sums.reshape(1, -1), noise=noise).passed
        return int(passed.reshape(many, 6)[:, 0].sum())

    missed, wrong = many - returned(1 if rising else -1), returned(-tolerance - 1 if rising else tolerance + 1)
    assert missed <= stats.binom.isf(1e-6, many, 0.05)
    assert wrong <= stats.binom.isf(1e-6, many, 0.1)
    if level:
        assert (missed > 0.05 * many / 4) if rising else (wrong > 0.1 * many / 4)


def test_the_largest_beside_other_groups_is_refused() -> None:
    largest = (0, -1, replace(total(0), statistic=LARGEST))
    least = (0, 1, replace(total(0), statistic=LEAST))
    for beside in ([(0, 1, total(0))], [least, (0, 1, replace(total(0), statistic=MEDIAN))]):
        with pytest.raises(Unachievable, match="compared with other groups") as refused:
            calibrate(common_sums((5,), [largest, *beside]), 90)
        assert refused.value.remedy is not None
