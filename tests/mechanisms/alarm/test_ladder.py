"""A ladder of alarms keeps the contract and costs what it reserves at most; a rung begins where the one before rang."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.alarm.calibration import calibrate_alarm
from mechanisms.alarm.ladder import (
    LADDER,
    LadderCalibration,
    LadderSchedule,
    LadderState,
    calibrate_ladder,
    climb_at_values,
    draw_ladders,
    sum_losses_so_far,
)
from mechanisms.alarm.run import AlarmState
from mechanisms.alarm.shapes import Regime
from tests.in_turn import in_turn
from tests.mechanisms.alarm.chosen_digits import ChosenDigits
from tests.mechanisms.alarm.law_by_hand import (
    calibrated,
    outcomes_by_hand,
    rung_by_hand,
    totals_by_hand,
    weight_by_hand,
    within,
)
from tests.seeded_noise import SeededNoise

THREE = LadderSchedule(parts=(Fraction(1, 4), Fraction(1, 2)), shares=(5, 15, 80))
DIGITS = 128


def ladder(
    schedule: LadderSchedule = LADDER, *, cut: int = 50, tolerance: int = 10, looks: int = 24
) -> LadderCalibration:
    return calibrate_ladder(calibrated(looks=looks, cut=cut, tolerance=tolerance).task, schedule=schedule)


def begin(*uniforms: int) -> LadderState:
    """Rungs with secret numbers of a test's choice."""
    return LadderState(
        tuple(
            AlarmState(secret_digits=one, digit_count=DIGITS, total_weight=0, highest_steps=0, last_look=0, rang_at=0)
            for one in uniforms
        )
    )


@pytest.mark.parametrize(
    ("cut", "tolerance", "alarm", "reserved"),
    [(50, 10, 0.645, 0.872), (100, 20, 0.338, 0.457), (20, 5, 1.182, 1.599), (50, 20, 0.338, 0.457)],
)
def test_what_is_reserved(cut: int, tolerance: int, alarm: float, reserved: float) -> None:
    made = ladder(cut=cut, tolerance=tolerance)
    assert round(calibrate_alarm(made.task).worst_case_epsilon, 3) == alarm
    assert round(made.worst_case_epsilon, 3) == reserved


@in_turn("schedule", [LADDER, THREE])
@in_turn("regime", Regime)
def test_rates_and_loss_are_those_of_the_rungs(schedule: LadderSchedule, regime: Regime) -> None:
    task = calibrated(regime, looks=24, cut=50, tolerance=10, least=0).task
    made = calibrate_ladder(task, schedule=schedule)
    missed = Fraction(0)
    for rung in made.rungs:
        above = weight_by_hand(rung.rate, task.cut + 1 - rung.lowest_value)
        missed += 1 - rung_by_hand(rung, [above])[0]
    assert missed <= Fraction(made.fnr) <= Fraction(task.fnr)
    assert (made.fpr, made.fpr <= task.fpr) == (made.rungs[-1].fpr, True)
    assert made.loss == sum(rung.loss for rung in made.rungs)
    assert Fraction(made.worst_case_epsilon) >= made.loss
    parts = [rung.rate / made.rungs[-1].rate for rung in made.rungs]
    assert parts == [*schedule.parts, 1]


def test_a_rung_begins_at_the_look_at_which_the_one_before_rang() -> None:
    """The first rings at the second look by its number; the second counts that look and those after it, no others."""
    made = ladder(looks=6)
    first, last = made.rungs
    values = [30, 40, 45, 45]
    chances = rung_by_hand(first, totals_by_hand(first, values))
    between = int((chances[0] + chances[1]) / 2 * 2**DIGITS)
    states: tuple[LadderState, ...] = (begin(between, 2**DIGITS - 1),)
    seen = []
    for look, value in enumerate(values, 1):
        states = climb_at_values(made, states, np.array([value]), look=look, noise=ChosenDigits())
        seen.append(states[0])
    assert [state.rungs[0].rang_at for state in seen] == [0, 2, 2, 2]
    assert [state.begun_rungs for state in seen] == [1, 2, 2, 2]
    assert [state.rungs[1].total_weight for state in seen] == [0, *totals_by_hand(last, values[1:])]
    assert [sum_losses_so_far(made, state) for state in seen[:2]] == [first.worst_case_epsilon, made.worst_case_epsilon]
    assert seen[-1].rang_at == 0
    assert LadderState.from_integers(seen[-1].to_integers()) == seen[-1]


def test_all_rungs_may_ring_at_one_look() -> None:
    made = ladder(THREE, looks=6)
    (state,) = climb_at_values(made, (begin(0, 0, 0),), np.array([60]), look=3, noise=ChosenDigits())
    assert (state.rang_at, state.begun_rungs) == (3, 3)
    (state,) = climb_at_values(made, (state,), np.array([0]), look=4, noise=ChosenDigits())
    assert state.rang_at == 3
    assert climb_at_values(made, (), np.array([], dtype=np.int64), look=1, noise=ChosenDigits()) == ()


def test_what_has_begun_covers_what_was_shown() -> None:
    """All outcomes of two rungs over three looks, in fractions, on growing values that a unit moves in any way it may:
    within the loss of the rungs that have begun, and it takes nearly all of it."""
    made = ladder(cut=0, tolerance=1, looks=3)
    closest = 0.0
    for values in ((-3, -1, 0), (-2, -2, 2), (0, 0, 3), (-3, 1, 1), (-1, 2, 40)):
        for change in ((0, 0, 1), (0, 1, 1), (1, 1, 1)):
            moved = [value + by for value, by in zip(values, change, strict=True)]
            ours, theirs = joint(made, moved), joint(made, list(values))
            for (begun, mine), (_, other) in zip(ours, theirs, strict=True):
                loss = sum((rung.loss for rung in made.rungs[:begun]), Fraction(0))
                assert within(mine, other, loss)
                assert within(other, mine, loss)
                closest = max(closest, abs(math.log(mine / other)) / float(loss))
    assert closest > 0.99


def joint(made: LadderCalibration, values: list[int]) -> list[tuple[int, Fraction]]:
    """Each outcome of two rungs, how many had begun and its chance."""
    first, last = made.rungs
    *rang, never = outcomes_by_hand(first, values)
    found = [(1, never)]
    for look, chance in enumerate(rang):
        found += [(2, chance * then) for then in outcomes_by_hand(last, values[look:])]
    return found


def test_most_keys_pay_for_the_first_rung_alone() -> None:
    """Ten thousand keys at a fifth of the cut: fewer than one in ten climbs; the chance of more is below 1e-9."""
    made = ladder()
    noise = SeededNoise(5)
    states = draw_ladders(made, keys=2000, noise=noise)
    for look in range(1, 4):
        states = climb_at_values(made, states, np.full(2000, 10), look=look, noise=noise)
    climbed = sum(state.begun_rungs > 1 for state in states)
    (chance,) = rung_by_hand(made.rungs[0], [3 * weight_by_hand(made.rungs[0].rate, 10 - made.rungs[0].lowest_value)])
    assert float(chance) < 0.02
    assert climbed < 0.05 * 2000
    assert len({rung.secret_digits for state in states for rung in state.rungs if not rung.rang_at}) == 4000 - climbed


@pytest.mark.parametrize(
    ("parts", "shares"),
    [((), (50, 50)), ((Fraction(1, 2),), (50, 40)), ((Fraction(1, 2),), (0, 100)), ((Fraction(1),), (10, 90))],
)
def test_a_ladder_without_rising_rungs_is_none(parts: tuple[Fraction, ...], shares: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="ladder"):
        LadderSchedule(parts=parts, shares=shares)


def test_numbers_that_no_ladder_has_are_not_read() -> None:
    for numbers in ((), (0, 0, 0)):
        with pytest.raises(ValueError, match="rungs"):
            LadderState.from_integers(numbers)


def test_shares_never_sum_to_more_than_the_rate() -> None:
    for fnr in (0.05, 0.1, 1 / 3, 1e-7):
        made = calibrate_ladder(replace(ladder(THREE).task, fnr=fnr), schedule=THREE)
        assert sum(Fraction(rung.task.fnr) for rung in made.rungs) <= Fraction(fnr)
