"""Running mechanisms on streams, several runs side by side, and what their estimates are worth."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.audit.noise_ahead import NoiseAhead
from mechanisms.formula import Booleans, Integers
from mechanisms.streams.hierarchy import HierarchyMechanism
from mechanisms.streams.pegasus import PegasusState
from mechanisms.streams.stream import StreamMechanism, Tick
from tests.seeded_noise import SeededNoise

Floats = npt.NDArray[np.float64]


def estimate_counts(
    mechanism: StreamMechanism[Any],
    counts: Integers,
    *,
    runs: int,
    seed: int,
    look: Callable[[Tick[Any]], None] = lambda _: None,
) -> Floats:
    """Estimates of shape (ticks, runs), every run on the same counts with noise of its own; `look` sees each tick."""
    noise = NoiseAhead(SeededNoise(seed))
    states: tuple[Any, ...] = (mechanism.start(),) * runs
    found = np.empty((counts.size, runs))
    for place, count in enumerate(counts.tolist()):
        tick = mechanism.advance(states, np.full(runs, count, dtype=np.int64), noise=noise)
        states = tick.states
        found[place] = [float(estimate) for estimate in tick.estimates]
        look(tick)
    return found


class WindowSums:
    """Window sums as `WindowSumSmoother` makes them, of any length, from what each tick of PeGaSus made public."""

    def __init__(self) -> None:
        self._sizes: list[list[int]] = []
        self._medians: list[list[float]] = []

    def look(self, tick: Tick[PegasusState]) -> None:
        """The latest groups' sizes, and their medians by now."""
        self._sizes.append([len(state.noisy_counts) for state in tick.states])
        self._medians.append([float(estimate) for estimate in tick.estimates])

    def get_sums(self, window: int) -> Floats:
        """All sums of one length, shape (ticks, runs)."""
        sizes, medians = np.array(self._sizes), np.array(self._medians)
        places = np.arange(len(sizes))[:, np.newaxis]
        ends = np.where(np.vstack((sizes[1:] == 1, np.ones((1, sizes.shape[1]), dtype=np.bool_))), places, len(sizes))
        ends = np.minimum.accumulate(ends[::-1], axis=0)[::-1]
        final = np.take_along_axis(medians, ends, axis=0)
        before = np.vstack((np.zeros((1, sizes.shape[1])), np.cumsum(final, axis=0)))
        first = np.maximum(places - window + 1, 0)
        begun = np.maximum(places - sizes + 1, first)
        closed = np.take_along_axis(before, begun, axis=0) - before[first[:, 0]]
        return np.asarray(closed + medians * (places - begun + 1))


def estimate_hierarchy(mechanism: HierarchyMechanism[Any], counts: Integers, *, runs: int, seed: int) -> Floats:
    """The mean absolute error over all aggregations and ticks, by run; `counts` has shape (ticks, leaves)."""
    noise = NoiseAhead(SeededNoise(seed))
    states: tuple[Any, ...] = (mechanism.start(),) * runs
    errors = np.zeros(runs)
    for now in counts:
        tick = mechanism.advance(states, np.tile(now, (runs, 1)), noise=noise)
        states = tick.states
        true = mechanism.hierarchy.aggregate(now[np.newaxis, :])[0]
        for run, estimates in enumerate(tick.estimates):
            errors[run] += np.abs(np.array([float(estimate) for estimate in estimates]) - true).mean()
    return errors / len(counts)


def compute_scaled_error(estimates: Floats, counts: Integers) -> Floats:
    """The thesis's scaled total L1 error, by run."""
    return np.asarray(np.abs(estimates - counts[:, np.newaxis]).sum(axis=0) / counts.sum())


def sum_windows(values: Floats, window: int) -> Floats:
    """Sums over the last ticks, at the ticks at which the window is full."""
    sums = np.cumsum(np.vstack((np.zeros((1, values.shape[1])), values)), axis=0)
    return np.asarray(sums[window:] - sums[:-window])


def compute_changes(values: Floats, window: int) -> Floats:
    """By how much the ends of a window differ, at the ticks at which it is full."""
    return np.asarray(np.abs(values[window - 1 :] - values[: len(values) - window + 1]))


def compute_area_under_curve(scores: Floats, events: Booleans) -> Floats:
    """By run, the chance that an event scores higher than what is none, ties counted half."""
    found = []
    for column in scores.T:
        order = np.sort(column[~events])
        below = np.searchsorted(order, column[events], side="left")
        not_above = np.searchsorted(order, column[events], side="right")
        found.append((below + not_above).mean() / (2.0 * order.size))
    return np.array(found)


def compute_found_share(scores: Floats, events: Booleans, *, false_rate: float) -> Floats:
    """By run, the share of events found at the least threshold that lets no more than so many others through."""
    found = []
    for column in scores.T:
        others = np.sort(column[~events])[::-1]
        cut = others[min(others.size - 1, int(false_rate * others.size))]
        found.append((column[events] > cut).mean())
    return np.array(found)


def compute_curve(scores: Floats, events: Booleans, rates: Floats) -> Floats:
    """The share of events found at each rate at which others are reported, shape (rates, runs); at ties a chance."""
    found = []
    for column in scores.T:
        cuts = np.unique(column)[::-1]
        reported, true = (
            1.0 - np.searchsorted(np.sort(column[own]), cuts, side="left") / own.sum() for own in (~events, events)
        )
        last = np.append(reported[1:] != reported[:-1], True)
        found.append(np.interp(rates, np.append(0.0, reported[last]), np.append(0.0, true[last])))
    return np.array(found).T
