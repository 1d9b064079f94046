"""A formula of thresholds watched through a window: an alarm of its own for each threshold, combined by the formula.

A key is in the answer at a look if the formula holds of which alarms have rung by then. Alarms stay rung and the
formula has no negation, so a key stays in the answer until the window closes.

Proof: docs/proofs/alarm.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from mechanisms.alarm.calibration import AlarmCalibration, AlarmTask, alarm_price, calibrate_alarm
from mechanisms.alarm.ladder import (
    LadderCalibration,
    LadderState,
    calibrate_ladder,
    climb_at_values,
    draw_ladders,
    loss_so_far,
)
from mechanisms.alarm.run import AlarmState, draw_alarms, look_at_values
from mechanisms.alarm.shapes import Regime
from mechanisms.apportionment.keyhole import Objective, Shares, tree_shares
from mechanisms.apportionment.tree import tree_bound
from mechanisms.formula import Booleans, Cut, Integers, cuts, evaluate
from mechanisms.protocol import Epsilons, Exposure, Noise
from mechanisms.standing.protocol import Looked
from mechanisms.standing.state_bytes import read_states, write_states
from mechanisms.standing.task import StandingTask
from mechanisms.threshold.joint_loss import all_at_once, joint_loss, joint_losses
from mechanisms.threshold.one_shot import at_least

_NARROWER = 1.0 - 2.0**-40  # a share that is just too wide, against rounding


_State: TypeAlias = AlarmState | LadderState
_Alarm: TypeAlias = AlarmCalibration | LadderCalibration


@dataclass(frozen=True, slots=True)
class StandingAlarms:
    """A calibrated standing question; `literals` are its thresholds, each once, and `alarms` decide them in that order.

    Guarantee: that of `StandingTask`; one key's window tells of one privacy unit `worst_case_epsilon` at most, which is
    the largest sum over the exposures where all values grow, and the sum of all alarms otherwise.
    """

    task: StandingTask
    literals: tuple[Cut, ...]
    alarms: tuple[_Alarm, ...]
    fnr: float
    fpr: float
    worst_case_epsilon: float

    def draw(self, *, keys: int, noise: Noise) -> bytes:
        """As `Standing.draw`: a draw for each key and threshold."""
        drawn: list[Sequence[_State]] = []
        for alarm in self.alarms:
            if isinstance(alarm, LadderCalibration):
                drawn.append(draw_ladders(alarm, keys=keys, noise=noise))
            else:
                drawn.append(draw_alarms(keys=keys, noise=noise))
        return write_states([[state.integers() for state in states] for states in drawn])

    def look(self, state: bytes, values: Integers, *, look: int, noise: Noise) -> Looked:
        """As `Standing.look`."""
        if values.ndim != 2 or values.shape[0] != len(self.task.sensitivities):
            raise ValueError("a look has a value of each functional for each key")
        stored = read_states(state, alarms=len(self.alarms), keys=values.shape[1])
        after: list[Sequence[_State]] = []
        for literal, alarm, numbers in zip(self.literals, self.alarms, stored, strict=True):
            own = values[literal.functional]
            if isinstance(alarm, LadderCalibration):
                ladders = [LadderState.of(one) for one in numbers]
                after.append(climb_at_values(alarm, ladders, own, look=look, noise=noise))
            else:
                after.append(
                    look_at_values(alarm, [AlarmState.of(one) for one in numbers], own, look=look, noise=noise)
                )
        return Looked(
            state=write_states([[one.integers() for one in states] for states in after]),
            alerted=self._answer([np.array([one.rang_at > 0 for one in states], dtype=np.bool_) for states in after]),
        )

    def spent(self, state: bytes) -> Epsilons:
        """As `Standing.spent`: the worst case, but for rungs of ladders that were not begun."""
        stored = read_states(state, alarms=len(self.alarms), keys=None)
        keys = len(stored[0])
        losses = {
            place: np.array([loss_so_far(alarm, LadderState.of(one)) for one in numbers])
            if isinstance(alarm, LadderCalibration)
            else np.full(keys, alarm.worst_case_epsilon)
            for place, (alarm, numbers) in enumerate(zip(self.alarms, stored, strict=True))
        }
        spent = joint_losses(losses, _exposures(self.task, self.literals), keys=keys)
        return np.minimum(spent, self.worst_case_epsilon)

    def _answer(self, rung: Sequence[Booleans]) -> Booleans:
        known = dict(zip(self.literals, rung, strict=True))
        return evaluate(self.task.formula, lambda literal: known[literal], keys=rung[0].size)


def calibrate_standing(task: StandingTask) -> StandingAlarms:
    """The alarms of least loss that keep the contract of a formula of AND and OR over values above their cuts.

    Guarantee: that of `StandingAlarms`, checked on the alarms' own certified rates (docs/proofs/alarm.md).

    Raises:
        Unachievable: as `calibrate_alarm`.
        ValueError: a formula with a literal below its cut, or without any.

    >>> from mechanisms.formula import AllOf
    >>> both = AllOf(tuple(Cut(functional, 400, above=True, tolerance=39) for functional in (0, 1)))
    >>> growing = {"regimes": (Regime.GROWING,) * 2, "leasts": (0, 0)}
    >>> task = StandingTask(both, (1, 1), all_at_once(2), looks=24, fnr=0.05, fpr=0.1, **growing)
    >>> round(calibrate_standing(task).worst_case_epsilon * 40, 3)
    15.566
    """
    literals = tuple(dict.fromkeys(cuts(task.formula)))
    if not literals or not all(literal.above for literal in literals):
        raise ValueError("alarms watch AND and OR of values above their cuts")
    shares = _apportion(task, literals)
    share_of_fnr = share_of_fpr = 1.0
    while True:
        alarms = [
            _alarm(task, literal, fnr=fnr * share_of_fnr, fpr=fpr * share_of_fpr)
            for literal, fnr, fpr in zip(literals, shares.fnr, shares.fpr, strict=True)
        ]
        calibrated: list[_Alarm] = [
            calibrate_ladder(one) if task.progressive else calibrate_alarm(one) for one in alarms
        ]
        fnr = _bound(task, {literal: one.fnr for literal, one in zip(literals, calibrated, strict=True)}, fnr=True)
        fpr = _bound(task, {literal: one.fpr for literal, one in zip(literals, calibrated, strict=True)}, fnr=False)
        if fnr <= task.fnr and fpr <= task.fpr:
            break
        share_of_fnr *= _NARROWER * min(1.0, task.fnr / fnr)
        share_of_fpr *= _NARROWER * min(1.0, task.fpr / fpr)
    return StandingAlarms(
        task=task,
        literals=literals,
        alarms=tuple(calibrated),
        fnr=fnr,
        fpr=fpr,
        worst_case_epsilon=at_least(joint_loss([one.loss for one in calibrated], _exposures(task, literals))),
    )


def _alarm(task: StandingTask, literal: Cut, *, fnr: float, fpr: float) -> AlarmTask:
    functional = literal.functional
    return AlarmTask(
        looks=task.looks,
        cut=literal.cut,
        tolerance=literal.tolerance,
        sensitivity=task.sensitivities[functional],
        fnr=fnr,
        fpr=fpr,
        regime=task.regimes[functional],
        least=task.leasts[functional],
    )


def _bound(task: StandingTask, rates: Mapping[Cut, float], *, fnr: bool) -> float:
    """The union bound of the formula, rounded up by more than its additions lose."""
    bound, _ = tree_bound(task.formula, rates.__getitem__, fnr=fnr)
    return bound if len(rates) == 1 else at_least(Fraction(bound) * (1 + Fraction(len(rates), 2**52)))


def _exposures(task: StandingTask, literals: Sequence[Cut]) -> tuple[Exposure, ...]:
    """By what parts one unit changes the values of all literals at once. Where values do not only grow, it may change
    each of them most at another look: then all of them in full."""
    if any(task.regimes[literal.functional] is not Regime.GROWING for literal in literals):
        return all_at_once(len(literals))
    return tuple(tuple(exposure[literal.functional] for literal in literals) for exposure in task.exposures)


def _apportion(task: StandingTask, literals: Sequence[Cut]) -> Shares:
    """What of the rates each literal may use: Keyhole's split, with the price of an alarm for the loss."""
    places = {literal: place for place, literal in enumerate(literals)}
    apart = task.formula.mapped(lambda literal: replace(literal, functional=places[literal]))

    def loss(place: int, fnr: float, fpr: float) -> tuple[float, float, float]:
        literal = literals[place]
        regime = task.regimes[literal.functional]
        scale = task.sensitivities[literal.functional] / (literal.tolerance + 1)
        price = alarm_price(looks=task.looks, fnr=fnr, fpr=fpr, regime=regime)
        slope = regime.factor * scale
        return price * scale, -slope * regime.shape.root, -slope / regime.shape.rise

    return tree_shares(
        Objective(
            formulas=(apart,),
            used=tuple(range(len(literals))),
            functionals=len(literals),
            exposures=_exposures(task, literals),
            loss=loss,
            fnr=task.fnr,
            fpr=task.fpr,
            tied=False,
        )
    )
