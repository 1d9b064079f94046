"""The contract of a ranking: least noise that keeps it, in the worst case, by exact sums of the law."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import exp
from typing import Any

import pytest

from mechanisms.protocol import Unachievable
from mechanisms.ranking.calibration import (
    ONE_LOOK,
    SCHEDULE,
    RankingCalibration,
    RankingSchedule,
    bound_unit_loss,
    calibrate_ranking,
)
from mechanisms.ranking.ranking_task import RankingTask
from tests.effort import cases
from tests.in_turn import in_turn
from tests.mechanisms.ranking.law_by_hand import overtaken

TASK = RankingTask(keys=30, limit=5, descending=True, sensitivity=1, tolerance=20, fnr=0.05, fpr=0.1)

# keys, limit, and rate times tolerance for tolerances of 100 and 10
REFERENCE = [
    (10, 1, 5.42, 5.61),
    (10, 5, 4.84, 5.02),
    (100, 1, 7.81, 8.06),
    (100, 5, 7.77, 8.02),
    (100, 20, 7.60, 7.84),
    (500, 1, 9.44, 9.71),
    (500, 5, 9.43, 9.70),
    (500, 20, 9.40, 9.67),
    (10_000, 5, 12.45, 12.74),
]


@in_turn(("keys", "limit", "of_a_hundred", "of_ten"), REFERENCE)
def test_reference_values(keys: int, limit: int, of_a_hundred: float, of_ten: float) -> None:
    for tolerance, expected in ((100, of_a_hundred), (10, of_ten)):
        task = replace(TASK, keys=keys, limit=limit, tolerance=tolerance)
        found = calibrate_ranking(task, schedule=ONE_LOOK)
        assert round(float(found.noise_rate) * tolerance, 2) == expected
        assert found.looks == ()


def worst_rates(calibration: RankingCalibration, rate: Fraction) -> tuple[float, float, float]:
    """Missed, returned and swapped at the worst case, as the proof's sum over looks, from laws summed up by hand."""
    task, looks = calibration.task, calibration.looks
    behind, everything = task.keys - task.limit, task.keys <= task.limit
    missed = returned = 0.0
    if not everything:
        early = sum(
            float(overtaken(look.rate, behind=behind, ahead=task.limit, distance=look.settled_gap + 1))
            for look in looks
        )
        missed = early + float(overtaken(rate, behind=behind, ahead=1, distance=task.tolerance))
        returned = early + float(overtaken(rate, behind=1, ahead=task.limit, distance=task.tolerance))
    swapped = float(overtaken(rate, behind=1, ahead=1, distance=task.tolerance)) + sum(
        float(overtaken(look.rate, behind=1, ahead=1, distance=look.settled_gap + 1 + task.tolerance)) for look in looks
    )
    return missed, returned, swapped


@pytest.mark.parametrize(
    ("keys", "limit", "tolerance", "looks"),
    cases((3, 30, 200), (1, 5, 50), (1, 6), (False, True), quick=9),
)
def test_the_contract_is_kept_and_hardly_more(keys: int, limit: int, tolerance: int, looks: bool) -> None:
    """By the law summed up by hand; with one look a rate one in a thousand less does not keep it."""
    task = replace(TASK, keys=keys, limit=limit, tolerance=tolerance)
    found = calibrate_ranking(task, schedule=SCHEDULE if looks else ONE_LOOK)
    missed, returned, swapped = worst_rates(found, found.noise_rate)
    assert missed <= found.fnr <= task.fnr
    assert returned <= found.fpr <= task.fpr
    assert swapped <= found.swap_rate <= min(task.fnr, task.fpr)
    assert found.worst_case_epsilon >= found.noise_rate
    if not looks:
        less = worst_rates(found, found.noise_rate * Fraction(999, 1000))
        assert less[0] > task.fnr or less[1] > task.fpr or less[2] > min(task.fnr, task.fpr)
        assert found.looks == ()
    if looks and (keys, limit) == (200, 5):
        assert len(found.looks) == len(SCHEDULE.rates)


def test_the_stricter_of_the_two_rates_decides() -> None:
    """With hardly any keys beyond the limit and many within it is the one of wrongly returned keys."""
    task = replace(TASK, keys=101, limit=100, fnr=0.1, fpr=0.05, tolerance=6)
    for schedule in (ONE_LOOK, SCHEDULE):
        found = calibrate_ranking(task, schedule=schedule)
        assert bool(found.looks) == (schedule is SCHEDULE)
        assert found.fnr < 0.01
        assert 0.045 < found.fpr <= 0.05
        assert worst_rates(found, found.noise_rate)[1] <= found.fpr


def test_early_looks_cost_little_or_are_left_out() -> None:
    for fnr in (0.4, 1e-6):
        for limit in (1, 5, 30):
            task = replace(TASK, limit=limit, fnr=fnr, fpr=fnr, tolerance=200)
            one, several = (calibrate_ranking(task, schedule=schedule) for schedule in (ONE_LOOK, SCHEDULE))
            assert one.noise_rate <= several.noise_rate <= one.noise_rate * Fraction(21, 20)
            assert [look.rate for look in several.looks] == sorted({look.rate for look in several.looks})
            assert all(later.settled_gap <= earlier.settled_gap for earlier, later in pairwise(several.looks))
            assert fnr == 0.4 or several.looks


@pytest.mark.parametrize(("keys", "limit"), [(0, 5), (1, 5), (30, 0), (1, 0)])
def test_what_is_known_in_public_costs_nothing(keys: int, limit: int) -> None:
    """No key, one key, nothing returned: even with a tolerance of zero."""
    for tolerance in (0, 100):
        found = calibrate_ranking(replace(TASK, keys=keys, limit=limit, tolerance=tolerance))
        assert found.noise_rate == found.worst_case_epsilon == 0
        assert not found.looks
        assert (found.fnr, found.fpr, found.swap_rate) == (0.0, 0.0, 0.0)


def test_where_all_keys_are_returned_the_order_alone_is_promised_and_paid_for() -> None:
    """By the law of two draws, whatever the number of keys; one key less within the limit costs more."""
    few, many = (calibrate_ranking(replace(TASK, keys=keys, limit=keys), schedule=ONE_LOOK) for keys in (2, 1000))
    assert few.noise_rate == many.noise_rate
    assert (few.fnr, few.fpr) == (0.0, 0.0)
    assert 0.0499 < few.swap_rate <= 0.05
    assert few.noise_rate < calibrate_ranking(replace(TASK, keys=1000, limit=999), schedule=ONE_LOOK).noise_rate


def test_a_tolerance_of_zero_and_rates_beyond_exact_noise_are_refused() -> None:
    with pytest.raises(Unachievable, match="tolerance above zero"):
        calibrate_ranking(replace(TASK, tolerance=0))
    with pytest.raises(Unachievable, match="more noise levels"):
        calibrate_ranking(replace(TASK, tolerance=1, fnr=1e-40, fpr=1e-40))


@pytest.mark.parametrize(
    "wrong",
    [{"keys": -1}, {"limit": -1}, {"sensitivity": 0}, {"tolerance": -1}, {"fnr": 0.0}, {"fpr": 1.0}],
    ids=str,
)
def test_parameters_outside_their_ranges(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"ranking is of|rates lie"):
        replace(TASK, **wrong)


def test_the_widest_and_the_narrowest_noise() -> None:
    """Tolerances as wide as sums of cents, where the noise is as wide as can be drawn: one look, which keeps the
    contract all the more; and rates so loose that the widest noise does."""
    wide = calibrate_ranking(replace(TASK, tolerance=10**12))
    assert 5.0 < float(wide.noise_rate) * 10**12 < 8.0
    assert wide.looks
    for task in (replace(TASK, tolerance=10**17), replace(TASK, limit=1, fnr=0.99, fpr=0.6)):
        assert calibrate_ranking(task).noise_rate < Fraction(1, 1 << 47)


def test_losses_of_a_unit_are_whole_numbers_of_a_keys() -> None:
    task = replace(TASK, sensitivity=3)
    one, several = calibrate_ranking(task, schedule=ONE_LOOK), calibrate_ranking(task)
    for calibration, groups, signed, keys in (
        (one, 3, False, 3),
        (one, 20, False, 5),
        (one, 20, True, 10),
        (several, 20, False, 20),
    ):
        lost = bound_unit_loss(calibration, groups=groups, signed=signed)
        assert lost == pytest.approx(float(calibration.noise_rate) * 3 * keys, rel=1e-12)
        assert Fraction(lost) >= calibration.noise_rate * 3 * keys


def test_a_schedule_of_ones_own() -> None:
    """Half of the noise's rate for half of the early share: the gap is where the law says."""
    schedule = RankingSchedule(rates=(Fraction(1, 2),), shares=(0.01,))
    found = calibrate_ranking(TASK, schedule=schedule)
    (look,) = found.looks
    assert look.rate == found.noise_rate / 2
    chances = [
        float(overtaken(look.rate, behind=25, ahead=5, distance=gap + 1))
        for gap in (look.settled_gap, look.settled_gap - 1)
    ]
    assert chances[0] <= 0.01 * 0.05 < chances[1] < chances[0] * exp(look.rate) * 1.01
