"""Formulas of alarms as subjects of an audit. A transcript is the look at which a key entered the answer.

Proof: docs/proofs/audit.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from mechanisms.alarm.shapes import Regime
from mechanisms.audit.auditor import Neighbours, Release
from mechanisms.audit.events import Transcripts
from mechanisms.formula import AllOf, AnyOf, Cut, Formula, Integers
from mechanisms.protocol import Epsilons, Exposure, Noise
from mechanisms.standing.alarms import StandingAlarms, calibrate_standing_alarms
from mechanisms.standing.distance import StandingDistance, calibrate_distance
from mechanisms.standing.standing_task import StandingTask
from mechanisms.threshold.joint_loss import expose_all_functionals, expose_functional_sets

_LOOKS = 3  # before, at and after what a unit changes
_TOLERANCE = 4  # so that two alarms claim a loss of 2.3 together, half of which a thousand windows disprove

_SIGNED_TOLERANCE, _COMING_TOLERANCE = 5, 2  # likewise, for one alarm on both values' distance
_FAR = 100  # from a cut: such a look adds next to nothing, or leaves the distance to the other value

Watched: TypeAlias = StandingAlarms | StandingDistance
StandingWatcher: TypeAlias = Callable[[Watched, Integers, Noise], tuple[Integers, Epsilons]]
"""The look at which each window's key came into the answer, 0 if it did not, and what it cost; `values` has shape
(looks, functionals, windows). Tests pass broken ones."""


def watch_keys(standing: Watched, values: Integers, noise: Noise) -> tuple[Integers, Epsilons]:
    """Run a question's looks. Return the look at which each key alerted (0: at none), and each key's loss.

    The looks run as in the product: the state of each window is written and read again at each look.
    """
    state = standing.draw_state(keys=values.shape[2], noise=noise)
    alerted_at = np.zeros(values.shape[2], dtype=np.int64)
    for look, seen in enumerate(values, 1):
        looked = standing.take_look(state, seen, look=look, noise=noise)
        alerted_at[looked.alerted & (alerted_at == 0)] = look
        state = looked.state
    return alerted_at, standing.compute_spent_losses(state)


def make_audited_alarms(
    formula: type[AllOf] | type[AnyOf],
    *,
    exposures: tuple[Exposure, ...] = expose_all_functionals(2),
    progressive: bool = False,
    looks: int = _LOOKS,
) -> StandingAlarms:
    """Return a standing question about two growing values.

    The formula demands both, or either, above their thresholds.
    """
    joined: Formula = formula(tuple(Cut(functional, 0, above=True, tolerance=_TOLERANCE) for functional in (0, 1)))
    return calibrate_standing_alarms(
        StandingTask(
            formula=joined,
            sensitivities=(1, 1),
            exposures=exposures,
            regimes=(Regime.GROWING,) * 2,
            least_values=(None, None),
            looks=looks,
            fnr=0.05,
            fpr=0.1,
            progressive=progressive,
        )
    )


def pair_formulas(*, noise: Noise) -> Iterator[Neighbours]:
    """Yield neighbours for formulas of two values, joined by AND or by OR, with single alarms and with ladders.

    Further pairs are for OR where a unit changes only one value, for formulas that are watched by their distance, and
    for windows that are compared with the ones before.
    """
    for progressive in (False, True):
        yield pair_two_value_streams(make_audited_alarms(AllOf, progressive=progressive), watch_keys, noise=noise)
        yield pair_either(make_audited_alarms(AnyOf, progressive=progressive), watch_keys, noise=noise)
    apart = expose_functional_sets([[0], [1]], functionals=2)
    yield pair_either(make_audited_alarms(AnyOf, exposures=apart), watch_keys, noise=noise, changed=(1, 0))
    yield pair_signed_streams(make_audited_distance(Regime.SIGNED), watch_keys, noise=noise)
    yield pair_one_value_streams(make_audited_distance(Regime.COMING_AND_GOING), watch_keys, noise=noise)
    yield pair_compared_windows(make_audited_trend(), watch_keys, noise=noise)


def make_audited_distance(regime: Regime) -> StandingDistance:
    """Return a standing question watched by its signed distance.

    In the regime `SIGNED` one value has to be above its cut and another below, and both grow. Otherwise both have to be
    above, and come and go.
    """
    signed = regime is Regime.SIGNED
    tolerance = _SIGNED_TOLERANCE if signed else _COMING_TOLERANCE
    literals = (Cut(0, 0, above=True, tolerance=tolerance), Cut(1, 0, above=not signed, tolerance=tolerance))
    task = replace(make_audited_alarms(AllOf).task, formula=AllOf(literals), monotone=False)
    return calibrate_distance(task if signed else replace(task, regimes=(regime,) * 2))


def make_audited_trend() -> StandingAlarms:
    """Return a standing question about a window's count minus that of the window before.

    A row counts in two windows. The sensitivity 2 is for both together.
    """
    return calibrate_standing_alarms(
        replace(
            make_audited_alarms(AnyOf).task,
            formula=Cut(0, 0, above=True, tolerance=_TOLERANCE),
            sensitivities=(2,),
            exposures=expose_all_functionals(1),
            regimes=(Regime.GROWING,),
            least_values=(None,),
        )
    )


def pair_compared_windows(standing: StandingAlarms, watch: StandingWatcher, *, noise: Noise) -> Neighbours:
    """Return neighbours in which a row raises the value of its window, and lowers that of the next window.

    Both windows are shown together. The claim is that of one window, whose loss covers both. The first window's alarm
    rings more often than not, the second's less often.
    """
    near = _find_middle(standing)

    def release_of(*levels: int) -> Release:
        def release(samples: int) -> Transcripts:
            shown = [watch(standing, np.full((_LOOKS, 1, samples), level), noise) for level in levels]
            return Transcripts(np.stack([one for one, _ in shown], axis=1), np.maximum(*(lost for _, lost in shown)))

        return release

    first, second = release_of(near + 1, near), release_of(near + 2, near - 1)
    return Neighbours(f"two windows near {near}", first=first, second=second)


def pair_signed_streams(standing: StandingDistance, watch: StandingWatcher, *, noise: Noise) -> Neighbours:
    """Return neighbours in which a unit raises both values at all looks.

    At the first look the value that must be above its cut decides, so the distance rises. At the second look the other
    value decides, so the distance falls.
    """
    near = _find_critical_distance(standing)
    values = np.array([[near, -_FAR], [near, _FAR], [near, _FAR]], dtype=np.int64)[:, :, np.newaxis]
    return _make_pair(f"one value up and another down near {near}", standing, watch, (values, values + 1), noise)


def pair_one_value_streams(standing: StandingDistance, watch: StandingWatcher, *, noise: Noise) -> Neighbours:
    """Return neighbours in which a unit raises the first of two values at the first look only."""
    near = _find_critical_distance(standing)
    values = np.array([[near, _FAR], [-_FAR, _FAR], [-_FAR, _FAR]], dtype=np.int64)[:, :, np.newaxis]
    more = values + np.array([[1, 0], [0, 0], [0, 0]], dtype=np.int64)[:, :, np.newaxis]
    return _make_pair(f"both of two values, for a look near {near}", standing, watch, (values, more), noise)


def pair_two_value_streams(standing: StandingAlarms, watch: StandingWatcher, *, noise: Noise) -> Neighbours:
    """Return neighbours in which a unit raises both values near the point at which alarms ring half of the time."""
    near = _find_middle(standing)
    values = np.full((_LOOKS, 2, 1), near, dtype=np.int64)
    return _make_pair(f"both of two values near {near}", standing, watch, (values, values + 1), noise)


def pair_either(
    standing: StandingAlarms, watch: StandingWatcher, *, noise: Noise, changed: tuple[int, int] = (1, 1)
) -> Neighbours:
    """Return neighbours in which a unit raises the values by `changed`.

    The alarms ring more often than not, and the unit makes silence of both even rarer.
    """
    near = _find_middle(standing) + 1
    values = np.full((_LOOKS, 2, 1), near, dtype=np.int64)
    more = values + np.array(changed, dtype=np.int64)[:, np.newaxis]
    return _make_pair(f"either of two values near {near}, {changed} more", standing, watch, (values, more), noise)


def _make_pair(
    described: str, standing: Watched, watch: StandingWatcher, values: tuple[Integers, Integers], noise: Noise
) -> Neighbours:
    def release_of(one: Integers) -> Release:
        def release(samples: int) -> Transcripts:
            alerted_at, claimed = watch(standing, np.repeat(one, samples, axis=2), noise)
            return Transcripts(revealed_values=alerted_at[:, np.newaxis], claimed_losses=claimed)

        return release

    named = f"{described}{', as ladders' * standing.task.progressive}"
    return Neighbours(description=named, first=release_of(values[0]), second=release_of(values[1]))


def _find_middle(standing: StandingAlarms) -> int:
    """Return the value, rounded down, at which the first literal's alarm rings at its first look half of the time."""
    sharpest = standing.ladders[0].rungs[-1]
    return -int(np.ceil(np.log(0.5 / sharpest.fnr) / float(sharpest.rate)))


def _find_critical_distance(standing: StandingDistance) -> int:
    """Return the highest distance whose own weight and the next one's are at most the unit of the secret threshold.

    Near this unit a change by one moves the probabilities most.
    """
    sharpest = standing.alarm.ladders[0].rungs[-1]
    shape = sharpest.task.regime.draw_shape
    below = shape.root * np.log(float(shape.high_probability) / sharpest.fnr) / float(sharpest.rate)
    return sharpest.task.cut - int(np.ceil(below))
