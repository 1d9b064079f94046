"""Accumulating alarms as subjects of an audit. A transcript is the look at which each alarm rang.

Proof: docs/proofs/audit.md.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from mechanisms.alarm.calibration import AlarmCalibration, AlarmTask, calibrate_alarm
from mechanisms.alarm.ladder import LadderState, calibrate_ladder, climb_at_values, draw_ladders, sum_losses_so_far
from mechanisms.alarm.run import draw_alarms, look_at_values
from mechanisms.alarm.shapes import Regime
from mechanisms.audit.auditor import AuditReport, Neighbours, Release, audit_subject, claim_always
from mechanisms.audit.events import Transcripts
from mechanisms.audit.sliding import pair_sliding_windows
from mechanisms.audit.standing import pair_formulas
from mechanisms.formula import Integers
from mechanisms.protocol import Noise

_FAR = 100  # below the cut: such a look adds next to nothing
_LOOKS = 3  # before, at and after what a unit changes
# so that each regime claims 2 to 3.8, and some value weighs little less than what the secret draw is a multiple of
_TOLERANCES = {Regime.GROWING: 1, Regime.COMING_AND_GOING: 2, Regime.SIGNED: 5, Regime.SLIDING: 3}

Epochs = tuple[tuple[int, ...], ...]
"""The values of one window, or of each of two epochs of a sliding one."""


class Watcher(Protocol):
    """The type of a function that runs an alarm on many windows at once. Tests pass broken functions."""

    def __call__(self, calibration: AlarmCalibration, values: Integers, *, noise: Noise) -> Integers:
        """Return the look at which each window's alarm rang, 0 where it did not.

        `values` has shape (windows, looks).
        """


def watch_windows(calibration: AlarmCalibration, values: Integers, *, noise: Noise) -> Integers:
    """Run the alarm as the product does, with a separate state for each window."""
    states = draw_alarms(keys=len(values), noise=noise)
    for look, seen in enumerate(values.T, 1):
        states = look_at_values(calibration, states, seen, look=look, noise=noise)
    return np.array([state.rang_at for state in states], dtype=np.int64)


def audit_alarms(
    *, samples: int, noise: Noise, subject: str = "alarm", progress: Callable[[str], None] | None = None
) -> AuditReport:
    """Audit an alarm in each regime, a ladder, formulas of both, and noise on the ticks of a window.

    Parameters:
        samples: as for `audit`.
    """
    windows = (pair_windows(make_audited_alarm(regime), watch_windows, noise=noise) for regime in Regime)
    pairs = (*windows, pair_ladders(noise=noise), *pair_formulas(noise=noise), *pair_sliding_windows(noise=noise))
    return audit_subject(subject, pairs, samples=samples, progress=progress)


def pair_windows(calibration: AlarmCalibration, watch: Watcher, *, noise: Noise) -> Neighbours:
    """Return neighbours for an alarm that rings about half of the time.

    A unit changes the values by what the regime allows.

    In a sliding window it changes them in two epochs. The claim is the calibration's worst case.
    """
    regime = calibration.task.regime
    near = _find_critical_value(calibration)
    early, late = (near, -_FAR, -_FAR), (-_FAR, -_FAR, near)
    epochs: tuple[Epochs, Epochs] = {
        Regime.GROWING: (((near, near, near),), ((near + 1, near + 1, near + 1),)),
        Regime.COMING_AND_GOING: ((early,), ((near + 1, -_FAR, -_FAR),)),
        Regime.SIGNED: ((early,), ((near + 1, -_FAR - 1, -_FAR),)),
        Regime.SLIDING: ((late, early), ((-_FAR, -_FAR, near + 1), (near + 1, -_FAR, -_FAR))),
    }[regime]
    first, second = (_watch_epochs(watch, calibration, one, noise) for one in epochs)
    return Neighbours(description=f"{regime.value} values near {near}", first=first, second=second)


def pair_ladders(*, noise: Noise) -> Neighbours:
    """Return neighbours in which a unit raises all values of a window by one.

    The claim is the loss of the begun rungs.
    """
    calibration = calibrate_ladder(make_audited_alarm(Regime.GROWING).task)

    def release_of(value: int) -> Release:
        def release(samples: int) -> Transcripts:
            states: tuple[LadderState, ...] = draw_ladders(calibration, keys=samples, noise=noise)
            for look in range(1, _LOOKS + 1):
                states = climb_at_values(calibration, states, np.full(samples, value), look=look, noise=noise)
            seen = [[rung.rang_at for rung in state.rungs] for state in states]
            claimed = [sum_losses_so_far(calibration, state) for state in states]
            return Transcripts(revealed_values=np.array(seen, dtype=np.int64), claimed_losses=np.array(claimed))

        return release

    near = _find_critical_value(calibration.rungs[-1])
    return Neighbours(
        description=f"a ladder on values near {near}", first=release_of(near), second=release_of(near + 1)
    )


def make_audited_alarm(regime: Regime) -> AlarmCalibration:
    """Return the alarm on which the audit tests a regime."""
    return calibrate_alarm(
        AlarmTask(
            looks=_LOOKS,
            cut=0,
            tolerance=_TOLERANCES[regime],
            sensitivity=1,
            fnr=0.05,
            fpr=0.1,
            regime=regime,
            least_value=-2 * _FAR,
        )
    )


def _find_critical_value(calibration: AlarmCalibration) -> int:
    """Return the highest value whose own weight and the next value's are at most the unit of the secret threshold.

    Near this unit a change by one moves the probabilities most.
    """
    shape = calibration.task.regime.draw_shape
    below = shape.root * np.log(float(shape.high_probability) / calibration.fnr) / float(calibration.rate)
    return -int(np.ceil(below))


def _watch_epochs(watch: Watcher, calibration: AlarmCalibration, epochs: Epochs, noise: Noise) -> Release:
    def draw(samples: int) -> Integers:
        return np.column_stack([watch(calibration, np.tile(values, (samples, 1)), noise=noise) for values in epochs])

    return claim_always(draw, epsilon=calibration.worst_case_epsilon)
