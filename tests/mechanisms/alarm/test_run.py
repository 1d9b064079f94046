"""An alarm rings at the look that its secret number says, on states that are stored, read and repeated."""

import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.alarm.calibration import AlarmCalibration
from mechanisms.alarm.run import FIRST_DIGITS, AlarmState, draw_alarms, look_at_values
from mechanisms.alarm.shapes import Regime
from tests.effort import examples
from tests.in_turn import in_turn
from tests.mechanisms.alarm.chosen_digits import ChosenDigits, first_digits
from tests.mechanisms.alarm.law_by_hand import calibrated, rung_by_hand, totals_by_hand, weight_by_hand
from tests.seeded_noise import SeededNoise

NO_DIGITS = ChosenDigits()
ONE = 1 << FIRST_DIGITS
uniforms = st.one_of(
    st.integers(0, ONE - 1),
    st.integers(0, 127).map(lambda ones: ONE - (ONE >> ones)),  # so near to one that it hardly ever rings
    st.integers(1, 128).map(lambda zeros: ONE >> zeros),
)


def watch(
    calibration: AlarmCalibration, uniform: int, values: list[int], *, store: bool = False
) -> tuple[AlarmState, ...]:
    """The states after each look, of an alarm with one secret number; stored and read again after each if asked for."""
    states, seen = draw_alarms(keys=1, noise=first_digits([uniform], FIRST_DIGITS)), []
    for look, value in enumerate(values, 1):
        states = look_at_values(calibration, states, np.array([value]), look=look, noise=SeededNoise(look))
        if store:
            states = tuple(
                AlarmState.from_integers(pickle.loads(pickle.dumps(state.to_integers()))) for state in states
            )
        seen.append(states[0])
    return tuple(seen)


@given(st.sampled_from(list(Regime)), uniforms, st.lists(st.integers(-30, 90), min_size=1, max_size=6), st.booleans())
@examples(400)
def test_it_rings_at_the_first_look_whose_chance_is_above_its_number(
    regime: Regime, uniform: int, values: list[int], store: bool
) -> None:
    """By fractions; a number of which 128 digits do not decide is one in 2**100 and not among these."""
    made = calibrated(regime, looks=6, tolerance=9, least=-30)
    chances = rung_by_hand(made, totals_by_hand(made, values))
    rung = next((look for look, chance in enumerate(chances, 1) if Fraction(uniform, ONE) < chance), 0)
    undecided = any(abs(chance - Fraction(uniform, ONE)) <= Fraction(1, ONE) for chance in chances)
    states = watch(made, uniform, values, store=store)
    assert undecided or states[-1].rang_at == rung
    totals = totals_by_hand(made, values)
    for look, state in enumerate(states, 1):
        assert state.last_look == look
        if undecided:
            continue
        assert state.rang_at == (rung if rung and rung <= look else 0)
        assert state.total_weight == (0 if state.rang_at else totals[look - 1])


def test_a_look_that_is_repeated_is_the_same_look() -> None:
    made = calibrated(looks=4, tolerance=9)
    states = draw_alarms(keys=200, noise=SeededNoise(1))
    values = np.arange(-100, 100) // 8
    first = look_at_values(made, states, values, look=1, noise=NO_DIGITS)
    assert look_at_values(made, states, values, look=1, noise=NO_DIGITS) == first
    assert {state.rang_at for state in first} == {0, 1}


def test_digits_that_do_not_decide_are_continued() -> None:
    """A number that begins as the chance does takes the side that its next digits say, and keeps them."""
    made = calibrated(looks=4, tolerance=9)
    total = weight_by_hand(made.rate, -made.lowest_value)
    (chance,) = rung_by_hand(made, [total])
    tied, whole = int(chance * ONE), int(chance * ONE * 2**128)
    further = whole & ((1 << 128) - 1)
    state = AlarmState(
        secret_digits=tied, digit_count=FIRST_DIGITS, total_weight=0, highest_steps=0, last_look=0, rang_at=0
    )
    for digits, rung, used in (
        ([(0, 64)], 1, 1),
        ([((1 << 64) - 1, 64)], 0, 1),
        ([(further >> 64, 64), (0, 64)], 1, 2),
        ([(further >> 64, 64), ((1 << 64) - 1, 64)], 0, 2),
    ):
        noise = ChosenDigits(*digits)
        (after,) = look_at_values(made, [state], np.array([0]), look=1, noise=noise)
        assert after.rang_at == rung
        assert noise.left == []
        if not rung:
            drawn = tied
            for number, size in digits:
                drawn = drawn << size | number
            assert (after.secret_digits, after.digit_count) == (drawn, FIRST_DIGITS + 64 * used)
            assert AlarmState.from_integers(after.to_integers()) == after
            again = replace(state, secret_digits=after.secret_digits, digit_count=after.digit_count)
            assert look_at_values(made, [again], np.array([0]), look=1, noise=NO_DIGITS) == (after,)


def test_values_far_above_the_cut_are_weighed_only_if_they_have_to_be() -> None:
    """The greatest value there is rings at once; a number of nothing but ones stays silent at what is far above the
    cut, and its total is exact all the same."""
    made = calibrated(looks=4, tolerance=9)
    assert watch(made, 0, [2**62])[-1].rang_at == watch(made, ONE - ONE // 2**60, [2**62])[-1].rang_at == 1
    ones = AlarmState(
        secret_digits=(ONE << 1024) - 1,
        digit_count=FIRST_DIGITS + 1024,
        total_weight=0,
        highest_steps=0,
        last_look=0,
        rang_at=0,
    )
    value = int(600 / made.rate)  # 866 digits up; further than what is weighed at first
    (after,) = look_at_values(made, [ones], np.array([value]), look=1, noise=NO_DIGITS)
    assert (after.rang_at, after.total_weight) == (0, weight_by_hand(made.rate, value - made.lowest_value))
    (after,) = look_at_values(made, [ones], np.array([2 * value]), look=1, noise=ChosenDigits((0, 64)))
    assert after.rang_at == 1


def test_values_that_fall_count_as_the_highest_so_far_where_they_should_grow() -> None:
    up, down = [0, 5, 5, 5], [0, 5, -20, 3]
    for regime in Regime:
        made = calibrated(regime, looks=4, tolerance=9, least=-30)
        # nearly one, so that it does not ring
        totals = [watch(made, ONE - 1, values)[-1].total_weight for values in (up, down)]
        assert (totals[0] == totals[1]) == (regime is Regime.GROWING)


def test_looks_may_be_left_out() -> None:
    made = calibrated(looks=6, tolerance=9)
    states = draw_alarms(keys=1, noise=first_digits([ONE - 1], FIRST_DIGITS))
    for look in (2, 5):
        states = look_at_values(made, states, np.array([0]), look=look, noise=NO_DIGITS)
    assert states[0].last_look == 5
    assert states[0].total_weight == 2 * weight_by_hand(made.rate, -made.lowest_value)


def test_an_alarm_that_has_rung_stays_and_keeps_no_secret() -> None:
    made = calibrated(looks=6, tolerance=9)
    first, *_, last = watch(made, 5, [40, -30, 40])
    assert first.to_integers() == (0, 0, 0, 0, 1, 1)
    assert last.to_integers() == (0, 0, 0, 0, 3, 1)


@pytest.mark.parametrize("look", [0, 1, 2, 5])
def test_looks_out_of_order_are_mistakes(look: int) -> None:
    made = calibrated(looks=4, tolerance=9)
    states = look_at_values(made, draw_alarms(keys=1, noise=SeededNoise(1)), np.array([0]), look=2, noise=NO_DIGITS)
    with pytest.raises(ValueError, match="in order"):
        look_at_values(made, states, np.array([0]), look=look, noise=NO_DIGITS)


def test_a_look_has_one_value_for_each_key() -> None:
    made = calibrated(looks=4, tolerance=9)
    states = draw_alarms(keys=2, noise=SeededNoise(1))
    with pytest.raises(ValueError, match="one value"):
        look_at_values(made, states, np.array([0]), look=1, noise=NO_DIGITS)


SOUND = AlarmState(secret_digits=5, digit_count=FIRST_DIGITS, total_weight=7, highest_steps=2, last_look=3, rang_at=0)


@in_turn(
    "numbers",
    [
        SOUND.to_integers()[:-1],
        replace(SOUND, total_weight=-1).to_integers(),
        replace(SOUND, digit_count=FIRST_DIGITS - 1).to_integers(),
        replace(SOUND, secret_digits=1 << FIRST_DIGITS).to_integers(),
        replace(SOUND, rang_at=2).to_integers(),
        (0, 0, 0, 0, 3, 4),
        (0, 0, 0, 0, 3, 0),
    ],
)
def test_numbers_that_no_state_has_are_not_read(numbers: tuple[int, ...]) -> None:
    assert AlarmState.from_integers(SOUND.to_integers()) == SOUND
    with pytest.raises(ValueError, match="alarm"):
        AlarmState.from_integers(numbers)


def test_what_is_printed_of_a_state_tells_no_secret() -> None:
    (state,) = draw_alarms(keys=1, noise=first_digits([ONE // 3], FIRST_DIGITS))
    assert repr(state) == "AlarmState(last_look=0, rang_at=0)"


def test_numbers_are_drawn_for_each_key() -> None:
    """A thousand of 128 digits are all different, and each digit is one in about half of them: between 380 and 620 of
    1,000 but for a chance of 1e-12 over all 128."""
    drawn = [state.secret_digits for state in draw_alarms(keys=1000, noise=SeededNoise(3))]
    assert len(set(drawn)) == 1000
    ones = [sum(number >> place & 1 for number in drawn) for place in range(FIRST_DIGITS)]
    assert 380 < min(ones) <= max(ones) < 620
    assert draw_alarms(keys=0, noise=NO_DIGITS) == ()
