"""Formulas of alarms as subjects of an audit: when a key came into the answer, and what it was charged.

Proof: docs/proofs/audit.md.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from mechanisms.alarm.shapes import Regime
from mechanisms.audit.auditor import Neighbours, Release
from mechanisms.audit.events import Transcripts
from mechanisms.formula import AllOf, AnyOf, Cut, Formula, Integers
from mechanisms.protocol import Epsilons, Exposure, Noise
from mechanisms.standing.alarms import StandingAlarms, calibrate_standing
from mechanisms.standing.task import StandingTask
from mechanisms.threshold.joint_loss import all_at_once, sets_at_once

_LOOKS = 3  # before, at and after what a unit changes
_TOLERANCE = 4  # so that two alarms claim a loss of 2.3 together, half of which a thousand windows disprove

StandingWatcher: TypeAlias = Callable[[StandingAlarms, Integers, Noise], tuple[Integers, Epsilons]]
"""The look at which each window's key came into the answer, 0 if it did not, and what it cost; `values` has shape
(looks, functionals, windows). Tests pass broken ones."""


def watch_keys(standing: StandingAlarms, values: Integers, noise: Noise) -> tuple[Integers, Epsilons]:
    """As the product does it, each window with a key's state of its own, written and read at each look."""
    state = standing.draw(keys=values.shape[2], noise=noise)
    alerted_at = np.zeros(values.shape[2], dtype=np.int64)
    for look, seen in enumerate(values, 1):
        looked = standing.look(state, seen, look=look, noise=noise)
        alerted_at[looked.alerted & (alerted_at == 0)] = look
        state = looked.state
    return alerted_at, standing.spent(state)


def audited_standing(
    formula: type[AllOf] | type[AnyOf],
    *,
    exposures: tuple[Exposure, ...] = all_at_once(2),
    progressive: bool = False,
    looks: int = _LOOKS,
) -> StandingAlarms:
    """Two growing values above their thresholds, both or either."""
    joined: Formula = formula(tuple(Cut(functional, 0, above=True, tolerance=_TOLERANCE) for functional in (0, 1)))
    return calibrate_standing(
        StandingTask(
            formula=joined,
            sensitivities=(1, 1),
            exposures=exposures,
            regimes=(Regime.GROWING,) * 2,
            leasts=(None, None),
            looks=looks,
            fnr=0.05,
            fpr=0.1,
            progressive=progressive,
        )
    )


def pair_formulas(*, noise: Noise) -> Iterator[Neighbours]:
    """Both and either of two values, plain and as ladders; and either, where a unit changes one of them alone."""
    for progressive in (False, True):
        yield pair_both(audited_standing(AllOf, progressive=progressive), watch_keys, noise=noise)
        yield pair_either(audited_standing(AnyOf, progressive=progressive), watch_keys, noise=noise)
    apart = sets_at_once([[0], [1]], functionals=2)
    yield pair_either(audited_standing(AnyOf, exposures=apart), watch_keys, noise=noise, changed=(1, 0))


def pair_both(standing: StandingAlarms, watch: StandingWatcher, *, noise: Noise) -> Neighbours:
    """A unit that raises both values where their alarms ring half of the time: that both ring becomes likelier."""
    near = _middle(standing)
    values = np.full((_LOOKS, 2, 1), near, dtype=np.int64)
    return _make_pair(f"both of two values near {near}", standing, watch, (values, values + 1), noise)


def pair_either(
    standing: StandingAlarms, watch: StandingWatcher, *, noise: Noise, changed: tuple[int, int] = (1, 1)
) -> Neighbours:
    """A unit that raises `changed` of two values where their alarms ring oftener than not: that neither does becomes
    less likely."""
    near = _middle(standing) + 1
    values = np.full((_LOOKS, 2, 1), near, dtype=np.int64)
    more = values + np.array(changed, dtype=np.int64)[:, np.newaxis]
    return _make_pair(f"either of two values near {near}, {changed} more", standing, watch, (values, more), noise)


def _make_pair(
    described: str, standing: StandingAlarms, watch: StandingWatcher, values: tuple[Integers, Integers], noise: Noise
) -> Neighbours:
    def release_of(one: Integers) -> Release:
        def release(samples: int) -> Transcripts:
            alerted_at, claimed = watch(standing, np.repeat(one, samples, axis=2), noise)
            return Transcripts(seen=alerted_at[:, np.newaxis], claimed=claimed)

        return release

    named = f"{described}{', as ladders' * standing.task.progressive}"
    return Neighbours(description=named, first=release_of(values[0]), second=release_of(values[1]))


def _middle(standing: StandingAlarms) -> int:
    """The value at which the first literal's alarm is as likely as not to ring by its first look, rounded down."""
    sharpest = standing.ladders[0].rungs[-1]
    return -int(np.ceil(np.log(0.5 / sharpest.fnr) / float(sharpest.rate)))
