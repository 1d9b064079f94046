"""Thresholds of one mean that are read off one noisy sum and one noisy count."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mechanisms.audit.subjects import audit_mechanism
from mechanisms.audit.worst_cases import make_audit_tasks, widen_tolerances
from mechanisms.formula import AllOf, AnyOf, Cut, Formula
from mechanisms.keyhole.common_sums import read_functionals
from mechanisms.keyhole.key_parts import KEYS_AT_ONCE
from mechanisms.keyhole.noise_continuation import decide_with_all_revealed, plan_on_paths
from mechanisms.noise.discrete_laplace import compute_mass
from mechanisms.noise.exact import ExactNoise
from mechanisms.noise.random_bytes import draw_random_bytes
from mechanisms.protocol import Calibration, CommonSums, DecisionTask, FunctionalTest, Unachievable
from mechanisms.registry import MECHANISMS
from mechanisms.threshold.joint_loss import compute_joint_loss, expose_all_functionals, list_sum_rates
from mechanisms.threshold.three_zone import bound_false_accept, bound_false_reject
from tests.effort import examples, is_quick, rounds
from tests.mechanisms.audit.broken import CountForNothing
from tests.seeded_noise import SeededNoise

NAMES = ("keyhole", "progressive")


def outside(tolerance: int) -> Formula:
    """A mean above a threshold, or below its opposite."""
    return AnyOf((Cut(0, 0, above=True, tolerance=tolerance), Cut(1, -1, above=False, tolerance=tolerance)))


def mean_task(
    formula: Formula,
    *,
    times: int,
    moved: int = 100,
    scale: int = 1,
    counted: bool = False,
    predicates: tuple[Formula, ...] = (),
) -> DecisionTask:
    """Functionals `S - times C` and `S + times C`, in steps of which `scale` make one, and C itself if `counted`."""
    readings = (((0, 1), (1, -times)), ((0, 1), (1, times)), ((1, 1),))[: 2 + counted]
    most = (moved + times) // scale
    return DecisionTask(
        formula=formula,
        sensitivities=(most, most, 1)[: 2 + counted],
        exposures=expose_all_functionals(2 + counted),
        fnr=0.05,
        fpr=0.1,
        predicates=predicates,
        common=CommonSums(
            sensitivities=(moved, 1),
            exposures=expose_all_functionals(2),
            readings=readings,
            scales=(scale, scale, 1)[: 2 + counted],
        ),
    )


def law(test: FunctionalTest, part: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """All values of a test's noise at a part of its rates, and their probabilities, by convolution."""
    assert test.beside is not None
    rates = float(test.rate * part), float(test.beside.rate * part)
    near, far = (np.arange(-int(45 / rate) - 1, int(45 / rate) + 2) for rate in rates)
    own = np.array([compute_mass(rates[0], int(value)) for value in near])
    other = np.zeros(abs(test.beside.factor) * (far[-1] - far[0]) + 1)
    other[:: max(1, abs(test.beside.factor))] = [compute_mass(rates[1], int(value)) for value in far]
    both = np.convolve(own, other)
    first = int(near[0]) + abs(test.beside.factor) * int(far[0])
    return np.arange(first, first + both.size), both


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("times", "scale", "tolerance"), [(1, 1, 20), (3, 1, 24), (3, 5, 6), (2, 4, 5)])
def test_rates_are_those_of_the_noise_value_by_value(name: str, times: int, scale: int, tolerance: int) -> None:
    """Early looks under the union bound, the last look by itself, against convolutions of both laws."""
    made = MECHANISMS[name].calibrate(mean_task(outside(tolerance), times=times, moved=4, scale=scale))
    for test in made.tests:
        missed = passed = 0.0
        for look in test.looks:
            values, chances = law(test, look.rate / test.rate)
            missed += chances[scale + values <= look.rejecting].sum()
            passed += chances[values - scale * tolerance >= look.accepting].sum()
        values, chances = law(test, Fraction(1))
        missed += chances[scale + values <= -test.shift].sum()
        passed += chances[values - scale * tolerance > -test.shift].sum()
        assert missed <= test.fnr
        assert passed <= test.fpr
        assert bound_false_reject(test, 1) == pytest.approx(missed, rel=1e-6)
        assert bound_false_accept(test, -tolerance) == pytest.approx(passed, rel=1e-6)
    assert made.fnr is not None
    assert made.fpr is not None
    assert 0.9 * 0.05 < made.fnr <= 0.05
    assert 0.75 * 0.1 < made.fpr <= 0.1  # without a coin, whole steps leave some of it


@examples(40)
@given(
    name=st.sampled_from(NAMES),
    times=st.integers(0, 60),
    moved=st.integers(1, 200),
    scale=st.integers(1, 10),
    tolerance=st.integers(0, 3000),
    counted=st.booleans(),
    both=st.booleans(),
)
def test_the_loss_is_that_of_seeing_both_sums(
    name: str, times: int, moved: int, scale: int, tolerance: int, counted: bool, both: bool
) -> None:
    """A unit that moves the sum by all it may and the count by one: the worst case, neither more nor less."""
    first, second = (
        Cut(0, 0, above=True, tolerance=tolerance),
        Cut(1, 0, above=True, tolerance=tolerance) if both else Cut(1, -1, above=False, tolerance=tolerance),
    )
    formula: Formula = AllOf((first, second)) if both else AnyOf((first, second))
    if counted:
        formula = AllOf((Cut(2, 200, above=True, tolerance=50), formula))
    task = mean_task(formula, times=times, moved=moved, scale=scale, counted=counted)
    try:
        made = MECHANISMS[name].calibrate(task)
    except Unachievable:
        assert tolerance < 50
        return
    rates = list_sum_rates(made)
    assert Fraction(made.worst_case_epsilon) >= rates[0] * moved + rates[1]
    assert made.worst_case_epsilon == pytest.approx(float(rates[0] * moved + rates[1]), rel=1e-12)
    for test, reading in zip(made.tests, task.common.readings if task.common else (), strict=True):
        assert test.rate == rates[reading[0][0]]
        assert test.beside is None or test.beside.rate == rates[1]
    assert made.fnr is not None
    assert made.fpr is not None
    assert made.fnr <= 0.05
    assert made.fpr <= 0.1


@pytest.mark.parametrize("name", NAMES)
def test_both_sides_of_a_mean_cost_little_more_than_one(name: str) -> None:
    """Two sides of a mean of values from -1 to 1 in hundredths, at .05 and a tolerance of .03 for 400 rows."""
    task = mean_task(outside(1200), times=5)
    together = MECHANISMS[name].calibrate(task).worst_case_epsilon
    apart = MECHANISMS[name].calibrate(replace(task, common=None)).worst_case_epsilon
    counted = AllOf((Cut(2, 200, above=True, tolerance=100), outside(1200)))
    of_count = mean_task(counted, times=5, counted=True)
    assert together < 0.62 * apart
    assert MECHANISMS[name].calibrate(of_count).worst_case_epsilon < 1.03 * together
    assert (
        MECHANISMS[name].calibrate(of_count).worst_case_epsilon
        < 0.58 * MECHANISMS[name].calibrate(replace(of_count, common=None)).worst_case_epsilon
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [1, 4])
def test_the_real_mechanism_errs_no_more_often_than_promised(name: str, scale: int) -> None:
    """60,000 keys (quick: 15,000) of each kind: sums of 1,000 rows that just exceed the upper threshold, and sums that
    just fail it with the tolerance. With rates as promised each count is too high with a probability below 1e-6, two
    counts for each of four cases. Misses must be at least half of what is allowed: the test is not vacuous."""
    keys, times, tolerance, rows = rounds(60_000, quick=15_000), 3, 80, 1_000
    task = mean_task(outside(tolerance), times=times, moved=10, scale=scale)
    made = MECHANISMS[name].calibrate(task)
    noise = SeededNoise(71 + scale)

    def returned(value: int) -> int:
        sums = np.array([np.full(keys, scale * value + times * rows), np.full(keys, rows)])
        outcome = MECHANISMS[name].decide(made, sums, noise=noise)
        assert outcome.epsilon.max() <= made.worst_case_epsilon
        return int(outcome.passed.sum())

    missed, wrongly = keys - returned(1), returned(-tolerance)
    assert keys * 0.05 / 2 < missed <= stats.binom.isf(1e-6, keys, 0.05)
    # the other side's share of what may come wrongly cannot be used by a key that is far from it
    assert keys * 0.05 / 2 < wrongly <= stats.binom.isf(1e-6, keys, 0.1)


def test_keys_far_from_both_thresholds_stop_early() -> None:
    task = mean_task(outside(80), times=3, moved=10)
    made = MECHANISMS["progressive"].calibrate(task)
    sums = np.array([[0, 200_000, 3_000], [100_000, 1_000, 1_000]])
    lost = MECHANISMS["progressive"].decide(made, np.repeat(sums, 200, axis=1), noise=SeededNoise(5)).epsilon
    parts = sorted(set(lost / made.worst_case_epsilon))
    assert max(parts) <= 1.0
    assert {round(part * 16) for part in parts} <= {1, 2, 4, 8, 12, 16}
    assert lost[:400].max() < 0.2 * made.worst_case_epsilon
    assert lost[400:].mean() > 0.5 * made.worst_case_epsilon


@pytest.mark.parametrize("name", NAMES)
def test_bands_are_those_of_the_exact_mean_where_nothing_is_near(name: str) -> None:
    """Four bands of a mean and a count: predicates over two readings, and over the count that they are read off. Any
    other answer has a probability below 1e-6."""
    low, high = (Cut(place, 0, above=True, tolerance=500) for place in (0, 1))
    many = Cut(2, 5_000, above=True, tolerance=1_000)
    task = mean_task(many, times=2, moved=10, counted=True, predicates=(high, AllOf((high, low)), low))
    made = MECHANISMS[name].calibrate(task)
    rows = 50_000
    sums = np.array([[-3 * rows, 0, 3 * rows, 3], [rows, rows, rows, 1]])
    outcome = MECHANISMS[name].decide(made, sums, noise=SeededNoise(8))
    assert outcome.passed.tolist() == [True, True, True, False]
    assert [one.tolist() for one in outcome.predicates] == [
        [False, True, True, False],
        [False, False, True, False],
        [False, False, True, False],
    ]
    assert task.common is not None
    assert read_functionals(task.common, sums)[:, 2].tolist() == [rows, 5 * rows, rows]


@pytest.mark.parametrize("name", NAMES)
def test_more_keys_than_one_part_are_decided_each_as_its_own(name: str) -> None:
    """Side by side on two threads, all of them far from the thresholds: none is decided wrongly."""
    made = MECHANISMS[name].calibrate(mean_task(outside(80), times=3, moved=10))
    keys = 2 * KEYS_AT_ONCE + 5
    inside = np.arange(keys) % 7 == 0
    sums = np.array([np.where(inside, 0, 10**7), np.full(keys, 10**6)])
    outcome = MECHANISMS[name].decide(made, sums, noise=ExactNoise(draw_random_bytes, threads=2))
    assert np.array_equal(outcome.passed, ~inside)
    assert np.all(outcome.epsilon > 0)


def test_a_mean_with_two_thresholds_on_one_reading_is_refused() -> None:
    """The tails of its noise are not convex, so nothing would bound them between two thresholds."""
    formula = AllOf((Cut(0, 10, above=True, tolerance=100), Cut(0, 900, above=False, tolerance=100)))
    with pytest.raises(Unachievable, match="noise of its own"):
        MECHANISMS["keyhole"].calibrate(mean_task(AnyOf((formula, outside(100))), times=3))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_left_for_other_questions(name: str) -> None:
    task = mean_task(outside(80), times=3, moved=10)
    made = MECHANISMS[name].calibrate(task)
    sums = np.array([[0, 9_000], [1_000, 1_000]])
    assert MECHANISMS[name].decide(made, sums, noise=SeededNoise(1)).paths == ()
    assert plan_on_paths(made, (None, None)) is None
    in_full = decide_with_all_revealed(made, sums, noise=SeededNoise(1))
    assert in_full.epsilon.tolist() == [made.worst_case_epsilon] * 2


def test_the_worst_case_is_reached_and_not_passed() -> None:
    """The joint law of both noisy sums and of their neighbours', enumerated: no pair of values tells more, and some
    pair tells it all."""
    made: Calibration = MECHANISMS["keyhole"].calibrate(mean_task(outside(40), times=2, moved=4))
    rates = [float(rate) for rate in list_sum_rates(made)]
    values = range(-30, 31)
    logs = [
        math.log(compute_mass(rates[0], first) * compute_mass(rates[1], second))
        - math.log(compute_mass(rates[0], first - 4) * compute_mass(rates[1], second - 1))
        for first in values
        for second in values
    ]
    assert max(map(abs, logs)) == pytest.approx(made.worst_case_epsilon, rel=1e-9)
    assert compute_joint_loss(
        [rate * moved for rate, moved in zip(list_sum_rates(made), (4, 1), strict=True)], expose_all_functionals(2)
    ) <= (Fraction(made.worst_case_epsilon))


@pytest.mark.parametrize("broken", [False, True])
def test_the_auditor_finds_out_that_the_count_is_not_charged(broken: bool) -> None:
    """200,000 keys (quick: 60,000) from either database; the honest mechanism passes (false alarm 1e-6), and shows
    twice as much as the broken one claims."""
    honest = MECHANISMS["keyhole"]
    task = widen_tolerances(honest, make_audit_tasks()["two sides of a mean"], most_epsilon=6.0)
    subject = CountForNothing(honest) if broken else honest
    report = audit_mechanism(subject, task, samples=60_000 if is_quick() else 200_000, noise=SeededNoise(9))
    assert report.is_flagged == broken
    assert report.epsilon_lower > 1.6
