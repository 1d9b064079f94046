"""Noise on ticks of a sliding window as a subject of an audit. A transcript has the answers of all looks.

Proof: docs/proofs/audit.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from mechanisms.audit.auditor import Neighbours, Release, claim_always
from mechanisms.formula import Cut, Integers
from mechanisms.protocol import DecisionTask, Noise
from mechanisms.standing.sealed import compute_digest
from mechanisms.standing.sliding_noise import SlidingNoise, calibrate_sliding
from mechanisms.standing.window_noise import NoiseShape
from mechanisms.threshold.joint_loss import expose_all_functionals

SlidingWatcher: TypeAlias = Callable[[SlidingNoise, Integers, Noise], Integers]
"""Who is in the answer at each look, shape (keys, looks); `values` has shape (looks, keys). Tests pass broken ones."""

_RATE = Fraction(2)  # so that two thousand windows refute a quarter of it
_SHAPES = ((2, 1), (4, 2))  # windows and blocks


def watch_answers(sliding: SlidingNoise, values: Integers, noise: Noise) -> Integers:
    """Run the looks as the product does. The noise of a tick is drawn once and kept in the state."""
    state, seen = sliding.draw_state(keys=values.shape[1], noise=noise), []
    for look, one in enumerate(values, 1):
        looked = sliding.take_look(state, one[np.newaxis, :], look=look, noise=noise)
        state = looked.state
        seen.append(looked.alerted)
    return np.array(seen, dtype=np.int64).T.copy()


def make_audited_sliding(window: int, block: int) -> SlidingNoise:
    """Return noise with a loss of two, split evenly between ticks and blocks if there are blocks.

    A key is in the answer if its noisy value is above zero.
    """
    task = DecisionTask(Cut(0, 0, above=True, tolerance=1), (1,), expose_all_functionals(1), fnr=0.05, fpr=0.1)
    found = calibrate_sliding(task, window=window, looks=window + 2)
    test = replace(found.calibration.tests[0], rate=_RATE, shift=0)
    calibration = replace(found.calibration, tests=(test,), worst_case_epsilon=float(_RATE))
    part = Fraction(1) if block == 1 else Fraction(1, 2)
    shape = NoiseShape(window, block, part, ())
    return SlidingNoise(calibration, shape, looks=window + 2, digest=compute_digest((calibration, shape)))


def pair_one_sliding_window(
    sliding: SlidingNoise, watch: SlidingWatcher, *, noise: Noise, late: int = 0, charged: float = 1.0
) -> Neighbours:
    """Return neighbours that differ by an event in the second tick. The middle looks see the event.

    Parameters:
        late: the number of looks that miss the event although its tick is past. A positive number breaks the proof.
        charged: the part of the worst case that is claimed.
    """
    window = sliding.shape.window_looks

    def release_of(event: int) -> Release:
        def draw(samples: int) -> Integers:
            values = np.zeros((window + 2, samples), dtype=np.int64)
            values[1 + late : window + 1] = event
            return watch(sliding, values, noise)

        return claim_always(draw, epsilon=sliding.worst_case_epsilon * charged)

    return Neighbours(f"an event more in windows of {window} looks", release_of(0), release_of(1))


def pair_sliding_windows(*, noise: Noise) -> Iterator[Neighbours]:
    """Yield neighbours for noise on ticks alone, and for noise on ticks and blocks."""
    for window, block in _SHAPES:
        yield pair_one_sliding_window(make_audited_sliding(window, block), watch_answers, noise=noise)
