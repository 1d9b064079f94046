"""What an alarm costs, and that it keeps what it says: the published numbers, to their last digit."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.alarm.calibration import AlarmTask, calibrate_alarm, fit_alarm, price_alarm
from mechanisms.alarm.run import compute_chances_by_look
from mechanisms.alarm.shapes import Regime
from mechanisms.alarm.weights import ROUNDED
from mechanisms.protocol import Unachievable
from tests.effort import examples
from tests.mechanisms.alarm.law_by_hand import EXPONENTS, FACTORS, calibrated, rung_by_hand, weight_by_hand

LOOKS = (1, 24, 168, 365, 10_000)
PRICES = {
    (0.05, 0.1): (3.9120, 7.0901, 9.0360, 9.8119, 13.1224),
    (0.01, 0.05): (6.2146, 9.3927, 11.3386, 12.1145, 15.4249),
    (0.05, 0.05): (4.6052, 7.7832, 9.7291, 10.5051, 13.8155),
}
OF_REGIMES = {
    Regime.GROWING: {12: 6.397, 24: 7.090, 168: 9.036, 365: 9.812, 10_000: 13.122},
    Regime.COMING_AND_GOING: {12: 11.354, 24: 12.741, 168: 16.632, 365: 18.184},
    Regime.SIGNED: {12: 16.495, 24: 18.575, 168: 24.412, 365: 26.740},
    Regime.SLIDING: {12: 17.739, 24: 19.125, 168: 23.017, 365: 24.569, 10_000: 31.190},
}

tasks = st.builds(
    AlarmTask,
    looks=st.integers(1, 20_000),
    cut=st.integers(-(10**6), 10**6),
    tolerance=st.one_of(st.integers(0, 20), st.integers(0, 10**6)),
    sensitivity=st.integers(1, 1000),
    fnr=st.floats(1e-9, 0.999),
    fpr=st.floats(1e-9, 0.999),
    regime=st.sampled_from((Regime.GROWING, Regime.COMING_AND_GOING, Regime.SIGNED)),
    least_value=st.none(),
)


@pytest.mark.parametrize(("fnr", "fpr"), PRICES)
def test_prices_of_one_window(fnr: float, fpr: float) -> None:
    for looks, price in zip(LOOKS, PRICES[fnr, fpr], strict=True):
        assert round(math.log(looks / (4 * fnr * fpr)), 4) == price
        assert round(price_alarm(looks=looks, fnr=fnr, fpr=fpr, regime=Regime.GROWING), 4) == price
        made = calibrated(looks=looks, cut=1000, tolerance=100, fnr=fnr, fpr=fpr)
        assert round(made.worst_case_epsilon * 101, 4) == price


@pytest.mark.parametrize("regime", Regime)
def test_prices_of_each_regime(regime: Regime) -> None:
    for looks, price in OF_REGIMES[regime].items():
        assert round(price_alarm(looks=looks, fnr=0.05, fpr=0.1, regime=regime), 3) == price
        made = calibrated(regime, looks=looks, cut=1000, tolerance=100, least=0)
        assert round(made.worst_case_epsilon * 101, 3) == price


def test_rates_and_chances_to_seven_places() -> None:
    for looks, price in zip(LOOKS[1:], (7.0900768, 9.0359870, 9.8119204, 13.1223634), strict=True):
        made = calibrated(looks=looks, cut=1000, tolerance=100)
        assert round(float(made.rate * 101), 7) == price
        assert 0.0999999999 < made.fpr <= 0.1
        assert 0.0499999999 < made.fnr <= 0.05


def test_two_literals_cost_twice_one_with_half_of_a_rate() -> None:
    """AND halves the rate of misses, OR that of false alarms: 2 ln 2400 for 24 looks either way."""
    for fnr, fpr in ((0.025, 0.1), (0.05, 0.05)):
        assert round(2 * price_alarm(looks=24, fnr=fnr, fpr=fpr, regime=Regime.GROWING), 3) == 15.566


def test_the_shapes_are_the_published_exponents() -> None:
    for regime, (s, q) in EXPONENTS.items():
        assert (regime.draw_shape.rise, Fraction(1, regime.draw_shape.root)) == (1 + s, q)
        assert regime.draw_shape.low_probability == q / (1 + s + q)
        assert regime.loss_factor == FACTORS[regime]


@given(tasks)
@examples(150)
def test_no_stream_exceeds_a_rate_and_a_smaller_rate_would(task: AlarmTask) -> None:
    """Both rates at their worst cases, in fractions; with a rate lower by a billionth one of them is exceeded, but for
    rates that are kept in the place of larger ones."""
    try:
        made = calibrate_alarm(task)
    except Unachievable:
        assert price_alarm(looks=task.looks, fnr=task.fnr, fpr=task.fpr, regime=task.regime) > 64 * (1 + task.tolerance)
        return
    above = weight_by_hand(made.rate, task.cut + 1 - made.lowest_value)
    below = task.looks * weight_by_hand(made.rate, task.cut - task.tolerance - made.lowest_value)
    missed, wrong = 1 - rung_by_hand(made, [above])[0], rung_by_hand(made, [below])[0]
    assert missed <= Fraction(made.fnr) <= Fraction(task.fnr)
    assert wrong <= Fraction(made.fpr) <= Fraction(task.fpr)
    assert made.loss == FACTORS[task.regime] * made.rate * task.sensitivity + ROUNDED
    assert Fraction(made.worst_case_epsilon) >= made.loss
    high, low = task.regime.draw_shape.high_probability, task.regime.draw_shape.low_probability
    if made.rate > 2**-40 and task.fnr <= high and task.fpr <= low:
        lower = fit_alarm(task, rate=made.rate * (1 - Fraction(1, 10**9)))
        assert lower.fpr > task.fpr


def test_a_sliding_window_keeps_its_rates() -> None:
    """Here the chance of a miss is a root."""
    made = calibrated(Regime.SLIDING, looks=24, cut=100, tolerance=20, least=0)
    above = weight_by_hand(made.rate, 101)
    below = 24 * weight_by_hand(made.rate, 80)
    missed, wrong = 1 - rung_by_hand(made, [above])[0], rung_by_hand(made, [below])[0]
    assert 0.0499999999 < missed <= Fraction(made.fnr) <= Fraction(0.05)
    assert 0.0999999999 < wrong <= Fraction(made.fpr) <= Fraction(0.1)


def test_misses_fall_with_looks_and_with_distance() -> None:
    made = calibrated(looks=24, cut=400, tolerance=100)
    chances = compute_chances_by_look(made, [401] * 24)
    for looks, missed in ((1, 0.05), (2, 0.025), (6, 0.05 / 6), (24, 0.05 / 24)):
        assert math.isclose(1 - chances[looks - 1], missed, rel_tol=1e-9)
    assert round(1 - compute_chances_by_look(made, [434])[0], 5) == 0.00493


def test_a_value_below_the_floor_counts_as_the_floor() -> None:
    made = calibrated(looks=24, cut=400, tolerance=10)
    assert compute_chances_by_look(made, [made.lowest_value]) == compute_chances_by_look(made, [-(10**15)])
    assert 24 * compute_chances_by_look(made, [made.lowest_value])[0] < 1e-18


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({"tolerance": 0, "fnr": 1e-300}, "grow faster"),
        ({"regime": Regime.SLIDING, "least_value": None}, "never falls below"),
        ({"regime": Regime.SLIDING, "least_value": 400}, "never falls below"),
        ({"regime": Regime.SLIDING, "cut": 10**6, "tolerance": 100, "least_value": 0}, "too small a part"),
    ],
    ids=["rates", "unknown", "too high", "too fine"],
)
def test_what_cannot_be_had_is_refused(task: dict[str, Any], reason: str) -> None:
    plain = calibrated(looks=24, cut=400, tolerance=40, least=0).task
    with pytest.raises(Unachievable, match=reason):
        calibrate_alarm(replace(plain, **task))


def test_an_early_rung_without_digits_for_its_rate_is_refused() -> None:
    task = replace(calibrated(looks=24, cut=400, tolerance=40, least=0).task, fnr=1e-290)
    with pytest.raises(Unachievable, match="more digits"):
        fit_alarm(task, rate=Fraction(1, 1000))


@pytest.mark.parametrize(
    "task", [{"looks": 0}, {"looks": 100_001}, {"sensitivity": 0}, {"tolerance": -1}, {"fnr": 0.0}, {"fpr": 1.0}]
)
def test_tasks_outside_their_ranges_are_no_tasks(task: dict[str, Any]) -> None:
    plain = calibrated(looks=24, cut=400, tolerance=40, least=0).task
    with pytest.raises(ValueError, match=r"alarm|error rates"):
        replace(plain, **task)
