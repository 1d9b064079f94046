"""Figures 5.6 and 5.7: events found in what mechanisms make of a stream, and decided by alarms when windows close.

An event's chance to be found depends on the threshold that an estimate is held against; a curve has all of them.

**An alarm at close** decides one window of so many ticks, on the exact value with noise of its own: a jump by two
thresholds on the difference of the window's two ends, a low signal by one on its sum. Windows follow each other, so an
event is in one of them and the decision has the whole of epsilon. Every place at which windows may begin is run, each
by itself, so that all ticks are decided once, as those of the other mechanisms are. **Every tick** decides all
windows that the others do: an event is at an end of two of them, or in as many sums as they are long, each of which
gets its part of epsilon.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from benchmarks.streams.measures import (
    Floats,
    WindowSums,
    compute_area_under_curve,
    compute_changes,
    compute_curve,
    compute_found_share,
    sum_windows,
)
from benchmarks.streams.rows import BLOCK_TREE, LAPLACE, PEGASUS, PEGASUS_LARGE, SLIDING, ZEROS, Row
from benchmarks.streams.sliding import FNR, FPR, release_window_sums
from mechanisms.formula import AnyOf, Booleans, Cut, Integers
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.protocol import DecisionTask, Unachievable
from mechanisms.standing.close import StandingDecision, decide_at_close
from mechanisms.threshold.joint_loss import expose_all_functionals
from tests.seeded_noise import SeededNoise

JUMPS = ((12, 50), (48, 100))
LOW_SIGNALS = ((64, 300), (256, 4000))
FALSE_RATES = (0.05, 0.1)
CLOSE, EVERY_TICK = "alarm at close", "alarm at close, every tick"
GRID = tuple(round(1000 * (place / 32) ** 2) for place in range(33))  # thousandths, denser where few are reported
_WIDEST = 1 << 12  # units: tolerances that are looked through


@dataclass(frozen=True, slots=True)
class Watched:
    """What mechanisms made of one stream at one epsilon: estimates of counts, PeGaSus's window sums."""

    data: str
    counts: Integers
    epsilon: Fraction
    runs: int
    seed: int
    estimates: dict[str, Floats]
    sums: dict[str, WindowSums]


def measure_jumps(watched: Watched) -> Iterator[Row]:
    """Changes between the ends of a window, in either direction."""
    counts = watched.counts
    for place, (window, delta) in enumerate(JUMPS):
        change = counts[window - 1 :] - counts[: counts.size - window + 1]
        scores = {
            label: compute_changes(watched.estimates[label], window)
            for label in (LAPLACE, PEGASUS, PEGASUS_LARGE, ZEROS)
        }
        for label, parts in ((CLOSE, 1), (EVERY_TICK, 2)):
            scores[label] = np.abs(_add_noise(watched, change, parts=parts, salt=place))
        events = np.abs(change) >= delta
        yield from _measure_scores(watched, f"jumps of {delta} in {window}", window, events, scores)
        literals = (Cut(0, delta - 1, above=True, tolerance=0), Cut(0, -delta, above=False, tolerance=0))
        yield from _close_rows(watched, f"jumps of {delta} in {window}", window, change, literals, most=delta)


def measure_low_signals(watched: Watched, block_sums: dict[int, Floats]) -> Iterator[Row]:
    """Windows whose sum is low; `block_sums` by length are those of trees."""
    for place, (window, delta) in enumerate(LOW_SIGNALS):
        total = sum_windows(watched.counts[:, np.newaxis].astype(np.float64), window)[:, 0].astype(np.int64)
        scores = {
            LAPLACE: -sum_windows(watched.estimates[LAPLACE], window),
            BLOCK_TREE: -block_sums[window],
            PEGASUS: -watched.sums[PEGASUS].get_sums(window)[window - 1 :],
            PEGASUS_LARGE: -watched.sums[PEGASUS_LARGE].get_sums(window)[window - 1 :],
            ZEROS: sum_windows(watched.estimates[ZEROS], window),
            SLIDING: -release_window_sums(
                watched.counts, window, epsilon=watched.epsilon, runs=watched.runs, seed=watched.seed + window
            ),
        }
        for label, parts in ((CLOSE, 1), (EVERY_TICK, window)):
            scores[label] = -_add_noise(watched, total, parts=parts, salt=10 + place)
        yield from _measure_scores(watched, f"sums below {delta} in {window}", window, total < delta, scores)
        literals = (Cut(0, delta - 1, above=False, tolerance=0),)
        yield from _close_rows(watched, f"sums below {delta} in {window}", window, total, literals, most=_WIDEST)


def calibrate_close(epsilon: Fraction, literals: tuple[Cut, ...], *, most: int) -> StandingDecision | None:
    """Keyhole's one-shot test of the least tolerance that epsilon pays for; None if that is `most` or more.

    Of several literals one has to hold.
    """
    low, high = -1, most
    while high - low > 1:
        middle = (low + high) // 2
        enough = _price_literals(literals, middle) <= float(epsilon)
        low, high = (low, middle) if enough else (middle, high)
    return None if high == most else decide_at_close(Keyhole(), _make_task(literals, high))


@lru_cache(maxsize=256)
def _price_literals(literals: tuple[Cut, ...], tolerance: int) -> float:
    try:
        return Keyhole().calibrate(_make_task(literals, tolerance)).worst_case_epsilon
    except Unachievable:
        return math.inf


def _make_task(literals: tuple[Cut, ...], tolerance: int) -> DecisionTask:
    tolerant = tuple(replace(one, tolerance=tolerance) for one in literals)
    return DecisionTask(AnyOf(tolerant), (1,), expose_all_functionals(1), fnr=FNR, fpr=FPR)


def _add_noise(watched: Watched, values: Integers, *, parts: int, salt: int) -> Floats:
    """What a one-shot test compares: each value with noise of its own, a part of epsilon for each."""
    noise = SeededNoise(watched.seed + 1000 * salt + parts)
    drawn = noise.draw_discrete_laplace(rate=watched.epsilon / parts, size=values.size * watched.runs)
    return np.asarray(values[:, np.newaxis] + drawn.reshape(values.size, watched.runs), dtype=np.float64)


def _measure_scores(
    watched: Watched, what: str, window: int, events: Booleans, scores: dict[str, Floats]
) -> Iterator[Row]:
    for label, values in scores.items():
        found = {"events": compute_area_under_curve(values, events)}
        found |= {f"found at {rate:g}": compute_found_share(values, events, false_rate=rate) for rate in FALSE_RATES}
        for measure, by_run in found.items():
            yield Row.from_values(f"{measure}, {what}", watched.data, watched.epsilon, label, by_run, x=window)
        for x, by_run in zip(GRID, compute_curve(values, events, np.array(GRID) / 1000.0), strict=True):
            yield Row.from_values(f"curve, {what}", watched.data, watched.epsilon, label, by_run, x=x)


def _close_rows(
    watched: Watched, what: str, window: int, values: Integers, literals: tuple[Cut, ...], *, most: int
) -> Iterator[Row]:
    """How Keyhole's own test does: its tolerance, events missed, others reported, and those that are wrong."""
    test = calibrate_close(watched.epsilon, literals, most=most)
    if test is None:
        return
    noise = SeededNoise(watched.seed + window)
    drawn = test.draw_state(keys=values.size, noise=noise)
    looks = (test.take_look(drawn, values[np.newaxis], look=1, noise=noise) for _ in range(watched.runs))
    alerted = np.column_stack([looked.alerted for looked in looks])
    tolerance = test.calibration.tests[0].tolerance
    events = np.any([one.evaluate(values) for one in literals], axis=0)
    beyond = ~np.any([replace(one, tolerance=tolerance).relax().evaluate(values) for one in literals], axis=0)
    told = {
        "tolerance": np.full(watched.runs, float(tolerance)),
        "missed": (~alerted[events]).mean(axis=0),
        "reported": alerted[~events].mean(axis=0),
    }
    if beyond.any():
        told["wrong"] = alerted[beyond].mean(axis=0)
    for measure, by_run in told.items():
        yield Row.from_values(f"{measure}, {what}", watched.data, watched.epsilon, CLOSE, by_run, x=window)
