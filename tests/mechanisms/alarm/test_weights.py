"""Weights are the first 128 binary digits of an exponential, whoever computes them."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.alarm import weights
from mechanisms.alarm.weights import DIGITS, ROUNDED, compute_weight
from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE
from tests.effort import examples
from tests.mechanisms.alarm.law_by_hand import weight_by_hand, within

rates = st.fractions(min_value=LEAST_RATE, max_value=GREATEST_RATE, max_denominator=1 << 60)
HALF_DIGIT = Fraction(1, 1 << 127)


@given(rates, st.floats(0, 300))
@examples(200)
def test_weights_are_what_decimal_arithmetic_gives(rate: Fraction, nats: float) -> None:
    steps = int(nats / rate)
    assert compute_weight(rate, steps) == weight_by_hand(rate, steps)


@given(rates, st.integers(0, 1 << 20), st.integers(1, 1 << 10))
@examples(200)
def test_quotients_are_the_exponential_but_for_the_last_digit(rate: Fraction, steps: int, further: int) -> None:
    scale = min(Fraction(1), Fraction(300) / (rate * (steps + further)))
    steps, further = int(steps * scale), max(1, int(further * scale))
    low, high = compute_weight(rate, steps), compute_weight(rate, steps + further)
    assert low <= high
    assert within(Fraction(high), low * (1 + 2 * HALF_DIGIT), rate * further)
    # the other way round, by the reciprocal of the certified bound
    assert not within(high / (1 - HALF_DIGIT), Fraction(low), rate * further)


def test_steps_are_read_in_digits_of_a_power_of_two() -> None:
    """Around the places where one product more is needed."""
    rate = Fraction(1, 1 << 14)
    for steps in (0, 1, 255, 256, 257, 511, 65535, 65536, 65537, (1 << 20) - 1):
        assert compute_weight(rate, steps) == weight_by_hand(rate, steps)
        assert steps == 0 or compute_weight(rate, steps - 1) <= compute_weight(rate, steps)


def test_what_the_first_digits_do_not_settle_is_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nearly all digits doubtful, every weight is: and it is the same one."""
    rate, steps = Fraction(7, 100), range(1, 900, 31)
    before = [compute_weight(rate, one) for one in steps]
    worked_out = []
    plainly = weights._compute_certain_weight

    def work_out(rate: Fraction, steps: int) -> int:
        worked_out.append(steps)
        return plainly(rate, steps)

    monkeypatch.setattr(weights, "_WRONG", weights._WORKING - DIGITS)
    monkeypatch.setattr(weights, "_compute_certain_weight", work_out)
    assert [compute_weight(rate, one) for one in steps] == before
    assert worked_out == list(steps)


def test_what_rounding_adds_to_a_loss_is_covered() -> None:
    """The most that the proof finds for each regime, from both ends of a quotient, in floats of 2**-127."""
    s_q = ((0, 1), (1, 1), (2, 1), (0, 0.5))
    downwards = [1 + 2 * (1 + q) for _, q in s_q[:3]] + [4 * 1.5 + 1]
    upwards = [2 * (1 + s) for s, _ in s_q[:2]] + [2 * (1 + max(2, 1 + 1)), 4.0]
    assert max(*downwards, *upwards) < 8 == ROUNDED / HALF_DIGIT


def test_a_weight_is_as_long_as_it_is_large() -> None:
    assert math.isclose(math.log2(compute_weight(Fraction(1, 10), 1000)), 127 + 100 / math.log(2), rel_tol=1e-12)
