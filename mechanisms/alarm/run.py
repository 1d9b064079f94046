"""The run of an alarm, look by look: its secret number, its total and the look at which it rang.

One uniform number for each key and window decides its alarm. The alarm rings once the number is below the probability
of having rung that belongs to the total. The first digits are drawn and stored before any data are read. So a look that
is repeated on the same values has the same answer. Further digits are drawn if the first ones do not decide, about once
in 2**100 looks.

A state is as secret as the data. Its whole numbers are canonical: `AlarmState.to_integers` and
`AlarmState.from_integers` write and read them.

Proof: docs/proofs/alarm.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from math import ceil

import numpy as np

from mechanisms.alarm.calibration import AlarmCalibration
from mechanisms.alarm.shapes import Regime
from mechanisms.alarm.weights import compute_weight
from mechanisms.formula import Integers
from mechanisms.protocol import Noise

FIRST_DIGITS = 128
"""Binary digits of the uniform number that are drawn before the first look."""

FURTHER_DIGITS = 64
"""Binary digits that are drawn at once where these do not decide."""

_CERTAIN = 90.0  # nats above the cut: one alarm in 2**128 has not rung there, for weights that are still short
_FAIR = Fraction(1, 2)  # the chance of each digit


@dataclass(frozen=True, slots=True)
class AlarmState:
    """One key's alarm in one window, between looks.

    `secret_digits` has the first `digit_count` binary digits of the secret number. `total_weight` is the sum of the
    weights of all looks so far. `highest_steps` is the most steps above `lowest_value` of any look's value, or 0 if
    the regime does not use it. `last_look` is the number of the last look, counted from 1. `rang_at` is the look at
    which the alarm rang, or 0 if it has not rung. The first four fields are zero after it rang, so that no secret is
    kept. `repr` shows none of these four.
    """

    secret_digits: int = field(repr=False)
    digit_count: int = field(repr=False)
    total_weight: int = field(repr=False)
    highest_steps: int = field(repr=False)
    last_look: int
    rang_at: int

    def to_integers(self) -> tuple[int, ...]:
        """Return the whole state as integers, which the ledger stores.

        >>> state = AlarmState.from_integers((0, 0, 0, 0, 7, 5))
        >>> state.rang_at, state.to_integers()
        (5, (0, 0, 0, 0, 7, 5))
        """
        return self.secret_digits, self.digit_count, self.total_weight, self.highest_steps, self.last_look, self.rang_at

    @staticmethod
    def from_integers(integers: Sequence[int]) -> "AlarmState":
        """Return the state that `to_integers` wrote.

        Raises:
            ValueError: the numbers are not those of a state.
        """
        if len(integers) != len(AlarmState.__slots__) or min(integers) < 0:
            raise ValueError("an alarm's state is six whole numbers, none negative")
        state = AlarmState(*integers)
        drawn = state.digit_count >= FIRST_DIGITS and state.secret_digits >> state.digit_count == 0
        silent = state.rang_at > 0 and not any(integers[:4])
        if state.rang_at > state.last_look or not (silent or (drawn and state.rang_at == 0)):
            raise ValueError("an alarm has a secret number until it rings, and none afterwards")
        return state


def draw_alarms(*, keys: int, noise: Noise) -> tuple[AlarmState, ...]:
    """Return the states of one window before its first look, one for each key.

    They must be stored before data are read.

    Guarantee: independent uniform numbers, exact (docs/proofs/alarm.md).
    """
    return tuple(
        AlarmState(
            secret_digits=uniform, digit_count=FIRST_DIGITS, total_weight=0, highest_steps=0, last_look=0, rang_at=0
        )
        for uniform in _draw_digits(keys, FIRST_DIGITS, noise)
    )


def look_at_values(
    calibration: AlarmCalibration, states: Sequence[AlarmState], values: Integers, *, look: int, noise: Noise
) -> tuple[AlarmState, ...]:
    """Return the states after one look. An alarm with this look as `rang_at` has just rung.

    Guarantee: when a privacy unit changes the values as the regime allows, the probability of what the looks of one
    window show of a key changes by a factor of at most `exp(loss)`, whenever the looks are made. They show when the
    alarm rang, or that it did not. The error rates of `AlarmTask` hold (docs/proofs/alarm.md). Values must be the
    window's as of the time of their look: totals are stored, and never computed again from rows that came later.

    Parameters:
        states: each key's, after the look before.
        values: exact, int64, shape (keys,).
        look: its number, from 1; looks may be left out, none is made twice on stored states.
        noise: read only where the digits at hand do not decide.

    Raises:
        ValueError: values of another number of keys, a look beyond the last or before one that was made.
    """
    if values.shape != (len(states),):
        raise ValueError("an alarm's look has one value for each key")
    if not max((state.last_look for state in states), default=0) < look <= calibration.task.looks:
        raise ValueError("an alarm's looks are made in order, and no more than it was calibrated for")
    most = _limit_weighed_steps(calibration)
    weigh = cache(partial(compute_weight, calibration.rate))  # many keys have the same value
    return tuple(
        _make_rung_state(look, rang_at=state.rang_at)
        if state.rang_at
        else _look_at_value(calibration, state, value, look=look, most=most, weigh=weigh, noise=noise)
        for state, value in zip(states, values.tolist(), strict=True)
    )


def compute_chances_by_look(calibration: AlarmCalibration, values: Sequence[int]) -> tuple[float, ...]:
    """Return the probability that an alarm has rung by each look of a window with these values.

    Only simulations use it. For simulations.

    >>> from mechanisms.alarm.calibration import AlarmTask, calibrate_alarm
    >>> rates = {"fnr": 0.05, "fpr": 0.1, "regime": Regime.GROWING, "least_value": 0}
    >>> task = AlarmTask(looks=3, cut=9, tolerance=4, sensitivity=1, **rates)
    >>> [round(chance, 3) for chance in compute_chances_by_look(calibrate_alarm(task), [5, 5, 10])]
    [0.033, 0.067, 0.951]
    """
    shape = calibration.task.regime.draw_shape
    total = highest = 0
    chances = []
    for value in values:
        steps = _count_steps(calibration, value, highest)
        highest = steps if calibration.task.regime is Regime.GROWING else 0
        total += compute_weight(calibration.rate, min(steps, _limit_weighed_steps(calibration)))
        chances.append(
            shape.compute_chance(total, calibration.threshold_step, bits=FURTHER_DIGITS) / 2.0**FURTHER_DIGITS
        )
    return tuple(chances)


def _count_steps(calibration: AlarmCalibration, value: int, highest: int) -> int:
    """Return the steps by which a value is weighed.

    If values cannot fall, a lower value counts as the highest before.
    """
    return max(0, value - calibration.lowest_value, highest)


def _limit_weighed_steps(calibration: AlarmCalibration) -> int:
    """Return the most steps that are weighed at first. An alarm with a higher value has almost surely rung."""
    return calibration.task.cut + 1 - calibration.lowest_value + ceil(_CERTAIN / calibration.rate)


def _look_at_value(
    calibration: AlarmCalibration,
    state: AlarmState,
    value: int,
    *,
    look: int,
    most: int,
    weigh: Callable[[int], int],
    noise: Noise,
) -> AlarmState:
    """Return one key's state after a look. At most `most` steps of its value are weighed at first."""
    steps = _count_steps(calibration, value, state.highest_steps)
    uniform, digits = state.secret_digits, state.digit_count
    while True:
        counted = min(steps, most)
        total = state.total_weight + weigh(counted)
        uniform, digits, rings = _decide_ring(calibration, uniform, digits, total, noise)
        if rings:
            return _make_rung_state(look, rang_at=look)
        if counted == steps:
            break
        # a value far above the cut is weighed by more only if less has left the alarm silent
        most *= 2
    highest = steps if calibration.task.regime is Regime.GROWING else 0
    return AlarmState(
        secret_digits=uniform, digit_count=digits, total_weight=total, highest_steps=highest, last_look=look, rang_at=0
    )


def _make_rung_state(look: int, *, rang_at: int) -> AlarmState:
    """Return an alarm that has rung, without its secret digits."""
    return AlarmState(secret_digits=0, digit_count=0, total_weight=0, highest_steps=0, last_look=look, rang_at=rang_at)


def _decide_ring(
    calibration: AlarmCalibration, uniform: int, digits: int, total: int, noise: Noise
) -> tuple[int, int, bool]:
    """Return the uniform number, its digits, and True if it is below the chance of having rung.

    Further digits are drawn if the known ones do not decide.
    """
    shape = calibration.task.regime.draw_shape
    while True:
        chance = shape.compute_chance(total, calibration.threshold_step, bits=digits)
        if uniform != chance:
            return uniform, digits, uniform < chance
        (more,) = _draw_digits(1, FURTHER_DIGITS, noise)
        uniform, digits = uniform << FURTHER_DIGITS | more, digits + FURTHER_DIGITS


def _draw_digits(keys: int, digits: int, noise: Noise) -> list[int]:
    """Draw `digits` random binary digits for each key. Return them as one whole number per key."""
    drawn = noise.draw_bernoulli(probability=_FAIR, size=keys * digits).reshape(keys, digits)
    return [int.from_bytes(row.tobytes(), "big") for row in np.packbits(drawn, axis=1)]
