"""The optimal one-shot test: reference values, optimality, exact rates, privacy."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mechanisms.formula import Cut
from mechanisms.keyhole.run_once import run_on_one_value
from mechanisms.noise.discrete_laplace import compute_lower_tail, compute_mass, compute_upper_tail
from mechanisms.protocol import FunctionalTest, Unachievable
from mechanisms.threshold.one_shot import (
    calibrate_test,
    compute_acceptance,
    compute_rejection,
    count_blocks_in_tolerance,
    find_least_epsilon,
    round_up_to_float,
)
from tests.in_turn import in_turn
from tests.seeded_noise import SeededNoise


def optimal_epsilon(*, steps: int, fnr: float, fpr: float) -> float:
    """The linear programme's optimum: least epsilon whose acceptance can fall from 1 - fnr to fpr in `steps`."""

    def falls_to(epsilon: float) -> float:
        accepted = 1.0 - fnr
        for _ in range(steps):
            accepted = max(math.exp(-epsilon) * accepted, 1.0 - math.exp(epsilon) * (1.0 - accepted), 0.0)
        return accepted

    low, high = 0.0, 60.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if falls_to(middle) > fpr else (low, middle)
    return high


def without_tie(*, tolerance: int, fnr: float, fpr: float) -> float:
    """The least rate of a test that never randomises its boundary."""

    def meets(rate: float) -> bool:
        spread = 1.0 + math.exp(-rate)
        return any(
            math.exp(-rate * (shift + 1)) / spread <= fnr and math.exp(-rate * (tolerance - shift + 1)) / spread <= fpr
            for shift in range(tolerance + 1)
        )

    low, high = 0.0, 60.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def plain(tolerance: int, fnr: float = 0.05, fpr: float = 0.1) -> FunctionalTest:
    return calibrate_test(sensitivity=1, tolerance=tolerance, fnr=fnr, fpr=fpr, allow_block=False)


@pytest.mark.parametrize(
    ("tolerance", "epsilon"), [(0, "2.890"), (1, "1.897"), (4, "0.782"), (10, "0.353"), (100, "0.0387")]
)
def test_reference_values(tolerance: int, epsilon: str) -> None:
    places = len(epsilon.split(".")[1])
    assert f"{plain(tolerance).epsilon:.{places}f}" == epsilon


def test_the_tie_is_worth_its_coin() -> None:
    assert round(without_tie(tolerance=1, fnr=0.05, fpr=0.1), 3) == 2.197
    assert round(without_tie(tolerance=4, fnr=0.05, fpr=0.1), 3) == 0.883
    for tolerance in (1, 4, 10):
        assert plain(tolerance).epsilon < without_tie(tolerance=tolerance, fnr=0.05, fpr=0.1)


def test_blocks_for_a_sensitivity_of_five() -> None:
    for tolerance, epsilon in ((0, 2.89), (25, 0.638)):
        blocks = calibrate_test(sensitivity=5, tolerance=tolerance, fnr=0.05, fpr=0.1, allow_block=True)
        assert blocks.block == 5
        assert blocks.epsilon == pytest.approx(epsilon, abs=5e-4)
        assert blocks.epsilon == float(blocks.rate)
        steps = -(-(tolerance + 1) // 5)
        assert blocks.epsilon == pytest.approx(optimal_epsilon(steps=steps, fnr=0.05, fpr=0.1), rel=1e-8)
    shared = calibrate_test(sensitivity=5, tolerance=0, fnr=0.05, fpr=0.1, allow_block=False)
    assert shared.block == 1
    assert shared.epsilon == pytest.approx(5 * 2.8904, abs=1e-3)
    assert round(5 * without_tie(tolerance=0, fnr=0.05, fpr=0.1), 1) == 14.7
    assert round(5 * without_tie(tolerance=25, fnr=0.05, fpr=0.1), 3) == 0.765


def test_matches_the_linear_programme_and_meets_both_rates() -> None:
    """400 random contracts: within 1e-6 of the optimum, never below it, both rates met strictly."""
    chance = random.Random(7)
    for _ in range(400):
        fnr, fpr = 10 ** chance.uniform(-8, -0.05), 10 ** chance.uniform(-8, -0.05)
        if fnr + fpr > 0.99:
            continue
        tolerance = chance.choice((0, 1, 2, 3, 7, 20, 60))
        test = plain(tolerance, fnr, fpr)
        best = optimal_epsilon(steps=tolerance + 1, fnr=fnr, fpr=fpr)
        assert best * (1 - 1e-12) <= test.epsilon <= best * (1 + 1e-6)
        assert compute_rejection(test, 1) <= fnr
        assert compute_acceptance(test, -tolerance) <= fpr


def test_no_tolerance_has_the_known_lower_bound() -> None:
    for fnr, fpr in ((0.05, 0.1), (0.2, 0.001), (1e-6, 0.3), (0.6, 0.2)):
        bound = max(math.log((1 - fnr) / fpr), math.log((1 - fpr) / fnr))
        assert plain(0, fnr, fpr).epsilon == pytest.approx(bound, rel=1e-8)


@pytest.mark.parametrize("tolerance", [10**4, 10**7, 10**11, 10**15])
def test_wide_tolerances_stay_exact(tolerance: int) -> None:
    test = plain(tolerance)
    assert compute_rejection(test, 1) <= 0.05
    assert compute_acceptance(test, -tolerance) <= 0.1


def test_hopeless_contracts_are_refused() -> None:
    with pytest.raises(Unachievable):
        plain(0, 1e-40, 0.1)
    assert plain(3, 0.5, 0.5).epsilon > 0


def test_rates_are_exact_sums_of_the_law() -> None:
    """Acceptance at every distance equals the sum of the law over accepted values, tie included, for blocks too."""
    for sensitivity, tolerance in ((1, 0), (1, 4), (5, 2), (5, 25)):
        test = calibrate_test(sensitivity=sensitivity, tolerance=tolerance, fnr=0.2, fpr=0.1, allow_block=True)
        rate = float(test.rate)
        for distance in range(-40, 40):
            place = (distance - 1) // test.block + 1
            summed = sum(
                compute_mass(rate, value) * (1.0 if value + place > -test.shift else float(test.tie))
                for value in range(-test.shift - place, 400)
            )
            assert compute_acceptance(test, distance) == pytest.approx(summed, abs=1e-12)
            assert compute_acceptance(test, distance) + compute_rejection(test, distance) == pytest.approx(
                1.0, abs=1e-12
            )


def test_tails_of_the_law() -> None:
    for rate in (1e-3, 0.7, 5.0):
        for value in range(-8, 9):
            assert compute_upper_tail(rate, value) == pytest.approx(
                compute_upper_tail(rate, value + 1) + compute_mass(rate, value), rel=1e-12
            )
            assert compute_lower_tail(rate, value - 1) + compute_upper_tail(rate, value) == pytest.approx(1.0)


@in_turn(("sensitivity", "tolerance"), [(1, 0), (1, 1), (1, 30), (5, 0), (5, 25), (7, 200)])
@in_turn("allow_block", [True, False])
def test_acceptance_is_indistinguishable_between_neighbours(
    sensitivity: int, tolerance: int, allow_block: bool
) -> None:
    """Auditor on exact probabilities: values one unit's contribution apart, both answers, within e^epsilon.

    The bound is attained somewhere, so a test with less noise would be found out.
    """
    test = calibrate_test(sensitivity=sensitivity, tolerance=tolerance, fnr=0.05, fpr=0.1, allow_block=allow_block)
    greatest = 0.0
    for distance in range(-tolerance - 60, 60):
        for step in range(1, sensitivity + 1):
            for rate in (compute_acceptance, compute_rejection):
                ratio = math.log(rate(test, distance + step) / rate(test, distance))
                greatest = max(greatest, abs(ratio))
    assert greatest <= test.epsilon * (1 + 1e-12)
    assert greatest == pytest.approx(test.epsilon, rel=1e-9)


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize(("sensitivity", "tolerance"), [(1, 0), (1, 6), (5, 3)])
def test_what_runs_is_what_was_calibrated(above: bool, sensitivity: int, tolerance: int) -> None:
    """100,000 keys per distance, six cases of six distances; false alarm 1e-8 per side and distance."""
    test = calibrate_test(sensitivity=sensitivity, tolerance=tolerance, fnr=0.05, fpr=0.1, allow_block=True)
    cut = Cut(functional=0, cut=-17, above=above, tolerance=tolerance)
    noise = SeededNoise(sensitivity * 100 + tolerance * 2 + above)
    for distance in (-tolerance - 3, -tolerance, 0, 1, 2, 9):
        value = cut.cut + distance if above else cut.cut + 1 - distance
        passed = int(run_on_one_value(cut, (test,), np.full((1, 100_000), value), noise=noise).sum())
        chance = compute_acceptance(test, distance)
        assert stats.binom.cdf(passed, 100_000, chance) > 1e-8
        assert stats.binom.sf(passed - 1, 100_000, chance) > 1e-8


def test_slopes_are_derivatives() -> None:
    chance = random.Random(2)
    for _ in range(50):
        fnr, fpr = chance.uniform(0.001, 0.3), chance.uniform(0.001, 0.3)
        tolerance = chance.choice((3, 11, 40))
        step = 1e-7

        def at(fnr: float, fpr: float, width: int = tolerance) -> tuple[float, float, float]:
            return find_least_epsilon(sensitivity=3, tolerance=width, fnr=fnr, fpr=fpr, allow_block=False)

        epsilon, slope_fnr, slope_fpr = at(fnr, fpr)
        ahead, beside = at(fnr * math.exp(step), fpr), at(fnr, fpr * math.exp(step))
        assert (ahead[0] - epsilon) / step == pytest.approx(slope_fnr, rel=1e-3)
        assert (beside[0] - epsilon) / step == pytest.approx(slope_fpr, rel=1e-3)


def test_the_cheaper_of_sum_and_blocks_is_what_both_solved_for_say() -> None:
    """Noise on blocks costs what the test of unit sensitivity at their tolerance does."""
    chance = random.Random(4)
    chosen = set()
    for _ in range(400):
        fnr, fpr = chance.uniform(0.001, 0.6), chance.uniform(0.001, 0.6)
        sensitivity, tolerance = chance.choice((2, 5, 20)), chance.choice((0, 1, 9, 19, 20, 101))
        steps = count_blocks_in_tolerance(sensitivity=sensitivity, tolerance=tolerance)
        ways = [
            find_least_epsilon(sensitivity=units, tolerance=width, fnr=fnr, fpr=fpr, allow_block=False)
            for units, width in ((sensitivity, tolerance), (1, steps))
        ]
        best = find_least_epsilon(sensitivity=sensitivity, tolerance=tolerance, fnr=fnr, fpr=fpr, allow_block=True)
        assert best == min(ways, key=lambda way: way[0])
        chosen.add(best == ways[0])
    assert chosen == {True, False}


def test_rounding_never_understates() -> None:
    assert Fraction(round_up_to_float(Fraction(1, 3))) >= Fraction(1, 3)
    assert round_up_to_float(Fraction(1, 4)) == 0.25
    assert count_blocks_in_tolerance(sensitivity=5, tolerance=25) == 5
