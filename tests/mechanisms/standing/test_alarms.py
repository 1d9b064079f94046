"""Formulas of alarms: their prices, their states as bytes, and what combining them promises."""

from fractions import Fraction

import numpy as np
import pytest

from mechanisms.alarm.shapes import Regime
from mechanisms.formula import AllOf, AnyOf, Cut, Formula
from mechanisms.protocol import Exposure
from mechanisms.standing.alarms import calibrate_standing
from mechanisms.standing.state_bytes import read_states, write_states
from mechanisms.standing.task import StandingTask
from mechanisms.threshold.joint_loss import all_at_once, sets_at_once
from tests.seeded_noise import SeededNoise

_FEW = 6


def _above(functional: int, cut: int = 400, tolerance: int = 39) -> Cut:
    return Cut(functional, cut, above=True, tolerance=tolerance)


def _task(
    formula: Formula,
    *,
    functionals: int = 2,
    exposures: tuple[Exposure, ...] | None = None,
    regime: Regime = Regime.GROWING,
    looks: int = 24,
    progressive: bool = False,
) -> StandingTask:
    return StandingTask(
        formula=formula,
        sensitivities=(1,) * functionals,
        exposures=all_at_once(functionals) if exposures is None else exposures,
        regimes=(regime,) * functionals,
        leasts=(0,) * functionals,
        looks=looks,
        fnr=0.05,
        fpr=0.1,
        progressive=progressive,
    )


@pytest.mark.parametrize("join", [AllOf, AnyOf])
def test_two_equal_thresholds_cost_what_halving_a_rate_costs(join: type[AllOf] | type[AnyOf]) -> None:
    """2 ln 2400 for 24 looks, whichever of the rates is halved."""
    found = calibrate_standing(_task(join((_above(0), _above(1)))))
    assert found.worst_case_epsilon * 40 == pytest.approx(15.56644, abs=1e-4)
    assert found.fnr <= 0.05
    assert found.fpr <= 0.1


def test_one_threshold_costs_what_its_alarm_costs() -> None:
    assert calibrate_standing(_task(_above(0))).worst_case_epsilon * 40 == pytest.approx(7.0900768, abs=1e-6)


def test_what_no_unit_changes_at_once_costs_once_where_values_grow() -> None:
    formula, apart = AnyOf((_above(0), _above(1))), sets_at_once([[0], [1]], functionals=2)
    together = calibrate_standing(_task(formula))
    assert calibrate_standing(_task(formula, exposures=apart)).worst_case_epsilon == pytest.approx(
        together.worst_case_epsilon / 2, rel=1e-3
    )
    coming = Regime.COMING_AND_GOING
    assert calibrate_standing(_task(formula, exposures=apart, regime=coming)).worst_case_epsilon == (
        calibrate_standing(_task(formula, regime=coming)).worst_case_epsilon
    )


def test_two_thresholds_on_one_functional_have_an_alarm_each() -> None:
    low, high = _above(0, 100, 9), _above(0, 400, 39)
    found = calibrate_standing(_task(AnyOf((AllOf((low, _above(1))), high))))
    assert found.literals == (low, _above(1), high)
    assert len(found.alarms) == 3


@pytest.mark.parametrize(
    "formula", [AllOf(()), Cut(0, 5, above=False, tolerance=1), AllOf((_above(0), Cut(1, 5, False, 1)))]
)
def test_what_may_become_false_is_no_alarm(formula: Formula) -> None:
    with pytest.raises(ValueError, match="AND and OR"):
        calibrate_standing(_task(formula))


@pytest.mark.parametrize("progressive", [False, True])
def test_a_key_that_is_in_the_answer_stays_and_costs_no_more(progressive: bool) -> None:
    formula = AnyOf((AllOf((_above(0), _above(1))), _above(0, 900, 80)))
    found = calibrate_standing(_task(formula, progressive=progressive))
    noise = SeededNoise(11)
    state, before = found.draw(keys=_FEW, noise=noise), np.zeros(_FEW, dtype=np.bool_)
    for look in range(1, 25):
        # the first never comes near, the second crosses one of both, the third both, the others far beyond
        steps = np.array([[0, 30, 30, 60, 90, 200], [0, 0, 30, 60, 90, 200]], dtype=np.int64) * look
        looked = found.look(state, steps, look=look, noise=noise)
        assert not np.any(before & ~looked.alerted)
        state, before = looked.state, looked.alerted
    assert before.tolist()[0] is False
    assert before.tolist()[3:] == [True, True, True]
    assert np.all(found.spent(state) <= found.worst_case_epsilon)
    if not progressive:
        assert np.all(found.spent(state) == found.worst_case_epsilon)
    else:
        assert found.spent(state)[0] < found.worst_case_epsilon


def test_a_look_that_is_repeated_on_the_same_state_is_the_same_look() -> None:
    found = calibrate_standing(_task(AllOf((_above(0), _above(1)))))
    drawn = found.draw(keys=50, noise=SeededNoise(5))
    values = np.arange(300, 400, dtype=np.int64).reshape(2, 50)
    first, again = (found.look(drawn, values, look=3, noise=SeededNoise(seed)) for seed in (1, 2))
    assert first.state == again.state
    assert first.alerted.tolist() == again.alerted.tolist()


def test_states_survive_being_written() -> None:
    states = [[(0, 1, 2**200), (5, 0, 2**6000)], [(1, 1, 1), (2**127, 0, 3)]]
    assert read_states(write_states(states), alarms=2, keys=2) == states


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: body[:-1],
        lambda body: body + b"\x00",
        lambda body: b"\x02" + body[1:],
        lambda body: b"",
        lambda body: body[:9] + b"\xff\xff" + body[11:],
        lambda body: body[:11] + b"\x00\x02\x00" + body[13:],
    ],
)
def test_bytes_that_nobody_wrote_are_refused(spoil: object) -> None:
    body = write_states([[(3, 128, 9, 0, 1, 0)]])
    with pytest.raises(ValueError, match="states"):
        read_states(spoil(body), alarms=1, keys=1)  # type: ignore[operator]


def test_states_of_another_window_are_refused() -> None:
    found = calibrate_standing(_task(_above(0), functionals=1))
    state = found.draw(keys=3, noise=SeededNoise(1))
    with pytest.raises(ValueError, match="states"):
        found.look(state, np.zeros((1, 4), dtype=np.int64), look=1, noise=SeededNoise(1))
    with pytest.raises(ValueError, match="functional"):
        found.look(state, np.zeros((2, 3), dtype=np.int64), look=1, noise=SeededNoise(1))


def test_losses_of_parts_are_the_largest_sum_of_their_exposures() -> None:
    half = Fraction(1, 2)
    found = calibrate_standing(
        _task(AllOf((_above(0), _above(1))), exposures=((Fraction(1), half), (half, Fraction(1))))
    )
    whole = calibrate_standing(_task(AllOf((_above(0), _above(1)))))
    assert found.worst_case_epsilon == pytest.approx(0.75 * whole.worst_case_epsilon, rel=1e-3)
