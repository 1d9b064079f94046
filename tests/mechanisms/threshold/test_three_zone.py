"""The three-zone test: exact crossing probabilities, the contract per literal, and the privacy of stopping early."""

import math
import random
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.protocol import FunctionalTest
from mechanisms.threshold.boundary_crossing import MARGIN, Crossing, Zone
from mechanisms.threshold.one_shot import calibrate_test, compute_acceptance, find_least_rate, round_rate_up
from mechanisms.threshold.three_zone import (
    SCHEDULE,
    EmptyGroups,
    Schedule,
    bound_false_accept,
    bound_false_reject,
    calibrate_exactly_at,
    calibrate_three_zone,
    cap_early_shares,
    compute_exact_acceptance,
    compute_exact_rejection,
    compute_expected_rate,
    make_crossing,
)
from tests.effort import cases, examples, rounds
from tests.in_turn import in_turn

Floats = npt.NDArray[np.float64]

REACH = 700
NOISES = np.arange(-REACH, REACH + 1)


@dataclass(frozen=True)
class Transcript:
    """The exact law of a run, up to tails below 1e-13: decided false or true at each early look, the last value."""

    false: list[float]
    true: list[float]
    undecided: list[float]
    last: Floats

    def rejected(self, test: FunctionalTest, distance: int) -> float:
        values = distance + NOISES
        at_boundary = float(self.last[values == -test.shift].sum())
        below = float(self.last[values < -test.shift].sum())
        return sum(self.false) + below + (1 - float(test.tie)) * at_boundary


def law(rate: float) -> Floats:
    return np.asarray(math.tanh(rate / 2) * np.exp(-rate * np.abs(NOISES)))


def refined(noise: int, coarse: float, fine: float) -> Floats:
    """M5's three-part law of the finer noise given the coarser one, for `noise >= 0`."""
    ratio, product = math.exp(coarse - fine), math.exp(-coarse - fine)
    same = ratio ** (noise + 1) * math.expm1(-2 * coarse) / math.expm1(-2 * fine)
    weights = np.zeros(NOISES.size)
    left, right = NOISES < 0, np.greater(NOISES, noise)
    middle = ~left & ~right
    weights[left] = product ** -NOISES[left].astype(float)
    weights[middle] = ratio ** NOISES[middle].astype(float)
    weights[right] = ratio**noise * product ** (NOISES[right] - noise).astype(float)
    weights *= (1 - same) / weights.sum()
    weights[noise + REACH] += same
    return weights


@lru_cache(maxsize=8)  # as many as two neighbours share; each has a megabyte times fifteen
def kernel(coarse: float, fine: float) -> Floats:
    half = np.array([refined(noise, coarse, fine) for noise in range(REACH + 1)])
    return np.vstack([half[:0:-1, ::-1], half])


def run(zones: list[Zone], last_rate: float, distance: int) -> Transcript:
    """Forward, coarse to fine: the other direction, and another formula, than the product's."""
    rates = [zone.rate for zone in zones] + [last_rate]
    values = distance + NOISES
    current = law(rates[0])
    false, true, undecided = [], [], []
    for place, zone in enumerate(zones):
        false.append(float(current[values < zone.low].sum()))
        true.append(float(current[values > zone.high].sum()))
        current = current * ((values >= zone.low) & (values <= zone.high))
        undecided.append(float(current.sum()))
        current = current @ kernel(rates[place], rates[place + 1])
    return Transcript(false=false, true=true, undecided=undecided, last=current)


ZONES = [Zone(rate=0.08, low=-50, high=31), Zone(rate=0.16, low=-20, high=17), Zone(rate=0.3, low=-9, high=9)]


@pytest.mark.parametrize("distance", [-25, -6, 0, 1, 4, 30])
def test_closed_form_equals_forward_dynamic_programming(distance: int) -> None:
    crossing = Crossing.from_zones(ZONES, last_rate=0.4)
    oracle = run(ZONES, 0.4, distance)
    assert crossing.list_early_rejections(distance) == pytest.approx(oracle.false, rel=1e-9, abs=1e-15)
    assert crossing.list_early_acceptances(distance) == pytest.approx(oracle.true, rel=1e-9, abs=1e-15)
    assert crossing.list_undecided_chances(distance) == pytest.approx(oracle.undecided, rel=1e-9)
    for value in (-60, -12, -3, 0, 9, 14, 40):
        below = oracle.last[distance + NOISES <= value].sum()
        assert crossing.compute_probability_last_at_most(value, distance) == pytest.approx(below, rel=1e-8, abs=1e-15)
        above = oracle.last[distance + NOISES >= value].sum()
        assert crossing.compute_probability_last_at_least(value, distance) == pytest.approx(above, rel=1e-8, abs=1e-15)


def test_zones_must_be_nested_and_rates_must_rise() -> None:
    for zones in (
        [Zone(rate=0.1, low=-5, high=5), Zone(rate=0.2, low=-6, high=5)],
        [Zone(rate=0.2, low=-5, high=5), Zone(rate=0.1, low=-5, high=5)],
        [Zone(rate=0.2, low=5, high=4)],
    ):
        with pytest.raises(ValueError, match="zones must shrink"):
            Crossing.from_zones(zones, last_rate=0.5)


def empty_groups() -> st.SearchStrategy[EmptyGroups | None]:
    """Few or many groups without rows, far below a threshold or just below."""
    known = st.builds(EmptyGroups, st.integers(1, 10**7), st.sampled_from([1e-12, 1e-8, 1e-4, 0.05]))
    return st.none() | known


CONTRACTS = [(0.05, 0.1, 4), (0.05, 0.1, 0), (0.01, 0.01, 6), (0.2, 0.02, 3), (0.001, 0.3, 5)]


def calibrated(fnr: float, fpr: float, tolerance: int, *, schedule: Schedule = SCHEDULE) -> FunctionalTest:
    return calibrate_three_zone(
        sensitivity=1,
        tolerance=tolerance,
        fnr=fnr,
        fpr=fpr,
        allow_block=False,
        is_two_sided=False,
        schedule=schedule,
    )


@pytest.mark.parametrize(("fnr", "fpr", "tolerance"), CONTRACTS)
def test_contract_at_the_worst_case_by_dynamic_programming(fnr: float, fpr: float, tolerance: int) -> None:
    test = calibrated(fnr, fpr, tolerance)
    zones = list(make_crossing(test).zones)
    edge, beyond = run(zones, float(test.rate), 1), run(zones, float(test.rate), -tolerance)
    assert edge.rejected(test, 1) == pytest.approx(compute_exact_rejection(test, 1), rel=1e-8)
    assert edge.rejected(test, 1) <= fnr
    assert 1 - beyond.rejected(test, -tolerance) == pytest.approx(compute_exact_acceptance(test, -tolerance), rel=1e-8)
    assert 1 - beyond.rejected(test, -tolerance) <= fpr


@pytest.mark.parametrize(
    ("tolerance", "distances"),
    cases([2, 6], [(-9, -8), (-3, -2), (0, 1), (1, 2), (6, 7), (15, 16)], quick=3),
)
def test_every_outcome_is_as_private_as_the_look_it_stopped_at(tolerance: int, distances: tuple[int, int]) -> None:
    """The exact law of (decision, stopping look, last value) for neighbouring true values."""
    test = calibrated(0.05, 0.1, tolerance)
    zones = list(make_crossing(test).zones)
    here, there = (run(zones, float(test.rate), distance) for distance in distances)
    for first, second in ((here, there), (there, here)):
        for place, zone in enumerate(zones):
            for stopped, neighbour in (
                (first.false, second.false),
                (first.true, second.true),
                (first.undecided, second.undecided),
            ):
                assert stopped[place] <= math.exp(zone.rate) * neighbour[place] * (1 + 1e-9) + 1e-12
    # per last noisy value: the true values differ by one, so the same value stands one place further
    reached, other = here.last[1:], there.last[:-1]
    bound = math.exp(float(test.rate)) * (1 + 1e-9)
    assert np.all(reached <= bound * other + 1e-12)
    assert np.all(other <= bound * reached + 1e-12)


@given(
    fnr=st.floats(1e-7, 0.45),
    fpr=st.floats(1e-7, 0.45),
    tolerance=st.integers(0, 3) | st.integers(4, 10**6),
    sensitivity=st.sampled_from([1, 1, 7]),
    two_sided=st.booleans(),
    empty=empty_groups(),
)
@examples(120)
def test_any_contract_is_met_by_nested_looks_at_a_bounded_surcharge(
    fnr: float, fpr: float, tolerance: int, sensitivity: int, two_sided: bool, empty: EmptyGroups | None
) -> None:
    test = calibrate_three_zone(
        sensitivity=sensitivity,
        tolerance=tolerance,
        fnr=fnr,
        fpr=fpr,
        allow_block=not two_sided,
        is_two_sided=two_sided,
        empty=empty,
    )
    rates = [look.rate for look in test.looks] + [test.rate]
    assert all(coarse < fine for coarse, fine in pairwise(rates))
    assert all(a.rejecting <= b.rejecting and b.accepting <= a.accepting for a, b in pairwise(test.looks))
    edge = -((tolerance + 1) // -test.block) - 1
    assert compute_exact_rejection(test, 1) <= fnr
    assert compute_exact_acceptance(test, -edge) <= fpr
    assert bound_false_reject(test, 1) <= fnr
    assert bound_false_accept(test, -tolerance) <= fpr
    least = find_least_rate(tolerance=edge, fnr=fnr, fpr=fpr).rate
    assert float(test.rate) <= least * 1.1
    # further on either side is never worse, and the bounds used for intervals dominate the exact law
    for distance in (1, 2, 5, 40, 1000):
        steps = (distance - 1) // test.block + 1
        assert compute_exact_rejection(test, steps) <= bound_false_reject(test, distance) * (1 + 1e-9) + 1e-300
        assert compute_exact_rejection(test, steps + 1) <= compute_exact_rejection(test, steps) * (1 + 1e-9)


@pytest.mark.parametrize("tolerance", [3, 30])
def test_bounds_are_convex_beyond_the_critical_distances_when_two_sided(tolerance: int) -> None:
    test = calibrate_three_zone(
        sensitivity=1, tolerance=tolerance, fnr=0.05, fpr=0.1, allow_block=False, is_two_sided=True
    )
    falling = np.array([bound_false_reject(test, distance) for distance in range(1, 200)])
    rising = np.array([bound_false_accept(test, distance) for distance in range(-tolerance - 200, -tolerance + 1)])
    assert np.all(np.diff(falling, 2) >= -1e-15)
    assert np.all(np.diff(rising, 2) >= -1e-15)


@pytest.mark.parametrize(("fnr", "fpr", "tolerance"), [(0.05, 0.1, 100), (0.05, 0.1, 10), (0.01, 0.01, 100)])
def test_exact_crossing_saves_a_fifth_of_the_surcharge_of_the_union_bound(
    fnr: float, fpr: float, tolerance: int
) -> None:
    union = calibrate_three_zone(
        sensitivity=1, tolerance=tolerance, fnr=fnr, fpr=fpr, allow_block=False, is_two_sided=True
    )
    exact = calibrated(fnr, fpr, tolerance)
    least = find_least_rate(tolerance=tolerance, fnr=fnr, fpr=fpr).rate
    assert float(exact.rate) - least <= 0.8 * (float(union.rate) - least)
    assert float(exact.rate) <= 1.026 * least


@in_turn("keys", [500, 68_509, 10**6])
@in_turn("tolerance", [100, 200, 300])
def test_early_looks_return_hardly_any_empty_group_however_many_there_are(keys: int, tolerance: int) -> None:
    """By the exact law, at a threshold of 1,000: as few as one look alone would, or one in twenty answers."""
    empty = EmptyGroups(steps_from_passing=1000, return_probability=0.05 / keys)
    usual = calibrated(0.05, 0.1, tolerance)
    test = calibrate_three_zone(
        sensitivity=1, tolerance=tolerance, fnr=0.05, fpr=0.1, allow_block=False, is_two_sided=False, empty=empty
    )
    alone = calibrate_test(sensitivity=1, tolerance=tolerance, fnr=0.05, fpr=0.1, allow_block=False)
    stray = keys * compute_exact_acceptance(test, -1000)
    assert stray <= 0.06 + 2.2 * keys * compute_acceptance(alone, -1000)
    if keys > 500:
        assert keys * compute_exact_acceptance(usual, -1000) > 12 * stray
    assert test.rate <= usual.rate
    assert compute_expected_rate(test, -1000) <= 1.01 * compute_expected_rate(usual, -1000)


@pytest.mark.parametrize(("sensitivity", "tolerance"), [(7, 700), (5, 23), (50, 1000)])
def test_empty_groups_are_as_far_in_blocks_as_they_are_in_units(sensitivity: int, tolerance: int) -> None:
    empty = EmptyGroups(steps_from_passing=40 * tolerance + 3, return_probability=1e-9)
    test = calibrate_three_zone(
        sensitivity=sensitivity,
        tolerance=tolerance,
        fnr=0.05,
        fpr=0.1,
        allow_block=True,
        is_two_sided=False,
        empty=empty,
    )
    assert test.block > 1
    steps = (-empty.steps_from_passing - 1) // test.block + 1
    assert sum(make_crossing(test).list_early_acceptances(steps)) <= empty.return_probability
    beyond = sum(make_crossing(test).list_early_acceptances(steps + 40 * tolerance // test.block))
    assert beyond > 1e3 * empty.return_probability


def test_back_loading_keeps_the_worst_case_near_one_shot_whatever_the_schedule() -> None:
    """With 95 % on the last of four looks the worst case costs 2 % over one-shot; dearer shares shrink."""
    halving = (Fraction(1, 8), Fraction(1, 4), Fraction(1, 2))
    least = find_least_rate(tolerance=100, fnr=0.05, fpr=0.1).rate
    back = calibrated(0.05, 0.1, 100, schedule=Schedule(rates=halving, shares=(0.05 / 3,) * 3))
    even = calibrated(0.05, 0.1, 100, schedule=Schedule(rates=halving, shares=(0.25,) * 3))
    assert float(back.rate) <= 1.02 * least
    assert float(even.rate) <= 1.06 * least


def test_far_values_stop_early_and_no_value_costs_more_than_the_last_look() -> None:
    test = calibrated(0.05, 0.1, 100)
    one_shot = find_least_rate(tolerance=100, fnr=0.05, fpr=0.1).rate
    for direction in (-1, 1):
        spent = [compute_expected_rate(test, direction * distance) for distance in (50, 300, 1000, 4000, 100_000)]
        assert all(near > far for near, far in pairwise(spent))
        assert spent[0] <= float(test.rate)
        assert spent[1] <= 0.75 * one_shot
        assert spent[2] <= 0.3 * one_shot
        assert spent[3] <= 0.1 * one_shot
        assert spent[4] == pytest.approx(float(test.looks[0].rate), rel=1e-6)


def test_what_is_left_out_of_the_bisection_changes_no_rate() -> None:
    """Wherever noise is many steps wide, the rate is the one that trying every step of the bisection ends at."""
    drawn = random.Random(7)
    for _ in range(rounds(60, quick=20)):
        fnr, fpr = (math.exp(drawn.uniform(math.log(1e-5), math.log(0.3))) for _ in range(2))
        tolerance = round(math.exp(drawn.uniform(math.log(400), math.log(1e6))))
        least = find_least_rate(tolerance=tolerance, fnr=fnr, fpr=fpr)
        schedule = cap_early_shares(SCHEDULE, least)
        kept = schedule.last * (1 - MARGIN)
        union = calibrate_test(sensitivity=1, tolerance=tolerance, fnr=fnr * kept, fpr=fpr * kept, allow_block=False)
        low, high, best = least.rate, float(union.rate), union.rate
        for _ in range(8):
            middle = round_rate_up(0.5 * (low + high))
            if calibrate_exactly_at(middle, union, tolerance, fnr, fpr, schedule) is None:
                low = float(middle)
            else:
                best, high = middle, float(middle)
        assert calibrated(fnr, fpr, tolerance).rate == best
