"""A ladder of alarms: the cheapest first, and each alarm starts the next one at the look at which it rings.

A key far from its cut never leaves the first rung and loses only that rung's epsilon. The last rung has all of the
contract's `fpr`. The `fnr` is split over the rungs. The sum of all rungs must be reserved. So a ladder saves loss if
most keys stay far below their cut, and costs a third more if they do not. It is used only if the owner asks for it.

Proof: docs/proofs/alarm.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from mechanisms.alarm.calibration import AlarmCalibration, AlarmTask, calibrate_alarm, fit_alarm
from mechanisms.alarm.run import AlarmState, draw_alarms, look_at_values
from mechanisms.formula import Integers
from mechanisms.noise.exact import LEAST_RATE
from mechanisms.protocol import Noise
from mechanisms.threshold.one_shot import round_up_to_float


@dataclass(frozen=True, slots=True)
class LadderSchedule:
    """The rates of the early rungs, as rising fractions of the last rung's rate, and every rung's share of `fnr`.

    Shares are whole hundredths that sum to 100.
    """

    parts: tuple[Fraction, ...]
    shares: tuple[int, ...]

    def __post_init__(self) -> None:
        """Raise ValueError for rungs that do not rise or shares that do not add up to the rate."""
        rising = (Fraction(0), *self.parts, Fraction(1))
        if len(self.shares) != len(self.parts) + 1 or min(self.shares) < 1 or sum(self.shares) != 100:
            raise ValueError("a ladder has a share of the rate of misses for each rung, all of it together")
        if any(low >= high for low, high in pairwise(rising)):
            raise ValueError("the rates of a ladder's rungs rise")


LADDER = LadderSchedule(parts=(Fraction(1, 3),), shares=(10, 90))
"""One cheap rung at a third of the rate. Found on taxis' hourly pick-ups: it costs 35 % more where every key comes near
its cut, and half where most stay below a quarter of it (docs/results/alarms.md)."""


@dataclass(frozen=True, slots=True)
class LadderCalibration:
    """The calibration of a ladder, fixed before any data is touched. `loss` is the sum over all rungs."""

    task: AlarmTask
    rungs: tuple[AlarmCalibration, ...]
    loss: Fraction
    worst_case_epsilon: float
    fnr: float
    fpr: float


@dataclass(frozen=True, slots=True)
class LadderState:
    """One key's ladder in one window, between looks: the states of all its rungs, drawn at once."""

    rungs: tuple[AlarmState, ...]

    @property
    def rang_at(self) -> int:
        """The look at which the last rung rang, or 0 if it has not rung. This is the ladder's answer."""
        return self.rungs[-1].rang_at

    @property
    def begun_rungs(self) -> int:
        """The number of rungs that have read data, after at least one look."""
        return 1 + sum(state.rang_at > 0 for state in self.rungs[:-1])

    def to_integers(self) -> tuple[int, ...]:
        """Return the whole state as integers, which the ledger stores."""
        return tuple(number for state in self.rungs for number in state.to_integers())

    @staticmethod
    def from_integers(integers: Sequence[int]) -> "LadderState":
        """Return the state that was stored.

        Raises:
            ValueError: numbers that no state has.
        """
        each = len(AlarmState.__slots__)
        if not integers or len(integers) % each:
            raise ValueError("a ladder's state is that of its rungs")
        return LadderState(
            tuple(AlarmState.from_integers(integers[at : at + each]) for at in range(0, len(integers), each))
        )


def calibrate_ladder(task: AlarmTask, *, schedule: LadderSchedule = LADDER) -> LadderCalibration:
    """Return a ladder that keeps an alarm's contract.

    Guarantee: the rates of `AlarmTask` for every stream; `loss` for every privacy unit (docs/proofs/alarm.md).

    Raises:
        Unachievable: as `calibrate_alarm`.

    >>> from mechanisms.alarm.shapes import Regime
    >>> rates = {"fnr": 0.05, "fpr": 0.1, "regime": Regime.GROWING, "least_value": 0}
    >>> task = AlarmTask(looks=24, cut=50, tolerance=10, sensitivity=1, **rates)
    >>> round(calibrate_ladder(task).worst_case_epsilon, 3), round(calibrate_alarm(task).worst_case_epsilon, 3)
    (0.872, 0.645)
    """
    tasks = [replace(task, fnr=_round_down_to_hundredths(task.fnr, share)) for share in schedule.shares]
    last = calibrate_alarm(tasks[-1])
    rates = [max(LEAST_RATE, part * last.rate) for part in schedule.parts]
    rungs = (*(fit_alarm(one, rate=rate) for one, rate in zip(tasks, rates, strict=False)), last)
    loss = sum((rung.loss for rung in rungs), Fraction(0))
    return LadderCalibration(
        task=task,
        rungs=rungs,
        loss=loss,
        worst_case_epsilon=round_up_to_float(loss),
        fnr=min(task.fnr, round_up_to_float(sum((Fraction(rung.fnr) for rung in rungs), Fraction(0)))),
        fpr=last.fpr,
    )


def draw_ladders(calibration: LadderCalibration, *, keys: int, noise: Noise) -> tuple[LadderState, ...]:
    """Return the states of one window before its first look, one for each key.

    They must be stored before data are read.

    Guarantee: as `draw_alarms`, with numbers of its own for each rung (docs/proofs/alarm.md).
    """
    drawn = [draw_alarms(keys=keys, noise=noise) for _ in calibration.rungs]
    return tuple(LadderState(rungs) for rungs in zip(*drawn, strict=True))


def climb_at_values(
    calibration: LadderCalibration, states: Sequence[LadderState], values: Integers, *, look: int, noise: Noise
) -> tuple[LadderState, ...]:
    """Return the states after one look. If a rung rings at this look, the next rung takes the same look.

    Guarantee, parameters, errors: as `look_at_values`, with the rates and the loss of the ladder. At any time a key has
    lost the sum over the rungs that have begun, `sum_losses_so_far` (docs/proofs/alarm.md).

    Raises:
        ValueError: as `look_at_values`.
    """
    rungs = [[state.rungs[place] for state in states] for place in range(len(calibration.rungs))]
    ringing = np.arange(len(states))
    for calibrated, column in zip(calibration.rungs, rungs, strict=True):
        looked = look_at_values(calibrated, [column[key] for key in ringing], values[ringing], look=look, noise=noise)
        for key, state in zip(ringing, looked, strict=True):
            column[key] = state
        ringing = np.array([key for key in ringing if column[key].rang_at], dtype=np.int64)
    return tuple(LadderState(own) for own in zip(*rungs, strict=True))


def sum_losses_so_far(calibration: LadderCalibration, state: LadderState) -> float:
    """Return the loss of a key's window so far, rounded up.

    The charge reveals this number. The loss includes what that reveals.

    Guarantee: docs/proofs/alarm.md.
    """
    return round_up_to_float(sum((rung.loss for rung in calibration.rungs[: state.begun_rungs]), Fraction(0)))


def _round_down_to_hundredths(rate: float, share: int) -> float:
    """Return a share of a rate in hundredths, rounded down, so all shares together are no more than the rate."""
    part = Fraction(rate) * share / 100
    nearest = float(part)
    return nearest if Fraction(nearest) <= part else float(np.nextafter(nearest, 0.0))
