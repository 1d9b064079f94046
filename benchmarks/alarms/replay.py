"""Alarms and ladders on windows whose values are known: what they cost, and how often and how late they were wrong."""

from dataclasses import dataclass

import numpy as np

from mechanisms.alarm.calibration import AlarmTask, calibrate_alarm, price_alarm
from mechanisms.alarm.ladder import calibrate_ladder, climb_at_values, draw_ladders, sum_losses_so_far
from mechanisms.alarm.run import compute_chances_by_look, draw_alarms, look_at_values
from mechanisms.alarm.shapes import Regime
from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Noise

FNR, FPR = 0.05, 0.1


@dataclass(frozen=True, slots=True)
class Replayed:
    """Losses of a window, what the alarm got wrong, and of how many.

    Losses: of one question a window, of one at each look, of the alarm, and of the ladder, reserved and on average.
    Of the windows whose value exceeded the cut, the alarm was `late` at the first look at which it did, by up to
    `most_looks_late`, or `never` rang; `early` it rang before it was true. Of those that stayed `beyond` the tolerance
    it was `wrong`.
    """

    one_question: float
    afresh: float
    alarm: float
    ladder: float
    ladder_mean: float
    windows: int
    true: int
    late: int
    never: int
    early: int
    most_looks_late: int
    beyond: int
    wrong: int


@dataclass(frozen=True, slots=True)
class Expected:
    """Of an alarm, over all of its draws: the parts of true windows that are late and that never ring, of those beyond
    the tolerance the part that rings."""

    late: float
    never: float
    wrong: float


def make_task(*, looks: int, cut: int, tolerance: int) -> AlarmTask:
    """Values that only grow from zero on, by one for each unit."""
    return AlarmTask(
        looks=looks,
        cut=cut,
        tolerance=tolerance,
        sensitivity=1,
        fnr=FNR,
        fpr=FPR,
        regime=Regime.GROWING,
        least_value=0,
    )


def expect(by_look: Integers, *, cut: int, tolerance: int) -> Expected:
    """Exact chances of each window, on average."""
    alarm = calibrate_alarm(make_task(looks=by_look.shape[1], cut=cut, tolerance=tolerance))
    first, beyond = find_first_look(by_look > cut), by_look[:, -1] <= cut - tolerance
    late, never = [], []
    different, often = np.unique(by_look[beyond], axis=0, return_counts=True)
    wrong = [compute_chances_by_look(alarm, values.tolist())[-1] for values in different]
    for values, look in zip(by_look[first > 0].tolist(), first[first > 0].tolist(), strict=True):
        chances = compute_chances_by_look(alarm, values)
        late.append(1.0 - chances[look - 1])
        never.append(1.0 - chances[-1])
    return Expected(
        late=float(np.mean(late)), never=float(np.mean(never)), wrong=float(np.average(wrong, weights=often))
    )


def replay(by_look: Integers, *, cut: int, tolerance: int, noise: Noise) -> Replayed:
    """One alarm and one ladder for each window, a row of values that only grow."""
    looks = by_look.shape[1]
    task = make_task(looks=looks, cut=cut, tolerance=tolerance)
    alarm, ladder = calibrate_alarm(task), calibrate_ladder(task)
    states = draw_alarms(keys=len(by_look), noise=noise)
    climbing = draw_ladders(ladder, keys=len(by_look), noise=noise)
    for look, values in enumerate(by_look.T, 1):
        states = look_at_values(alarm, states, values, look=look, noise=noise)
        climbing = climb_at_values(ladder, climbing, values, look=look, noise=noise)
    rang_at = np.array([state.rang_at for state in states])
    one = price_alarm(looks=1, fnr=FNR, fpr=FPR, regime=Regime.GROWING) / (tolerance + 1)
    first = find_first_look(by_look > cut)
    true, beyond = first > 0, by_look[:, -1] <= cut - tolerance
    late = true & ((rang_at > first) | (rang_at == 0))
    return Replayed(
        one_question=one,
        afresh=looks * one,
        alarm=alarm.worst_case_epsilon,
        ladder=ladder.worst_case_epsilon,
        ladder_mean=float(np.mean([sum_losses_so_far(ladder, state) for state in climbing])),
        windows=len(by_look),
        true=int(true.sum()),
        late=int(late.sum()),
        never=int((true & (rang_at == 0)).sum()),
        early=int((true & (rang_at > 0) & (rang_at < first)).sum()),
        most_looks_late=int((rang_at - first)[late & (rang_at > 0)].max(initial=0)),
        beyond=int(beyond.sum()),
        wrong=int((beyond & (rang_at > 0)).sum()),
    )


def find_first_look(holds: Booleans) -> Integers:
    """The first look, from 1, at which each row holds; 0 where none does."""
    return np.where(holds.any(axis=1), holds.argmax(axis=1) + 1, 0)
