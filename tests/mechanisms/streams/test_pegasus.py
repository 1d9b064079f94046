"""PeGaSus: the thesis's example, its Smoothers, window sums and event monitors against their definitions, its noise."""

import math
import statistics
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.streams.james_stein_as_printed import move_from_average
from mechanisms.formula import Integers
from mechanisms.streams.event_monitors import Direction, JumpMonitor, LastEstimates, LowSignalMonitor, TicksSeen
from mechanisms.streams.pegasus import Pegasus, PegasusState
from mechanisms.streams.smoothers import shrink_to_average, take_average, take_median
from mechanisms.streams.stream import compute_unit_epsilon
from mechanisms.streams.stream_names import SMOOTHERS
from mechanisms.streams.tick_laplace import BackwardSmoothing, TickLaplace
from mechanisms.streams.window_sum import WindowGroups, WindowSumSmoother
from mechanisms.streams.zeros import Zeros
from tests.effort import examples
from tests.mechanisms.streams.given_noise import GivenNoise, run_stream
from tests.seeded_noise import SeededNoise


class NoGroupNoise(GivenNoise):
    """What is given goes to counts, in order; the Grouper's noise is zero."""

    def __init__(self, values: Sequence[int], perturber_rate: Fraction) -> None:
        super().__init__(values)
        self.perturber_rate = perturber_rate

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        if rate == self.perturber_rate:
            return super().draw_discrete_laplace(rate=rate, size=size)
        return np.zeros(size, dtype=np.int64)


def test_the_thesiss_example_8() -> None:
    """Counts and noise in tenths: 5.6, 5, 5.6, 9.5 and 10.2 are released."""
    # theta is 2, so 20 in tenths: 4 / epsilon_g with epsilon_g = 1/5
    pegasus = Pegasus(epsilon=Fraction(1), sensitivity=1, theta_factor=Fraction(4))
    assert pegasus.grouper.theta == 20
    noise = NoGroupNoise([6, -6, 7, 5, 2], pegasus.perturber_rate)
    assert run_stream(pegasus, [50, 50, 60, 90, 100], noise=noise) == [56, 50, 56, 95, 102]


def test_the_loss_is_split_as_published() -> None:
    pegasus = Pegasus(epsilon=Fraction(1, 10), sensitivity=3)
    assert (pegasus.perturber_epsilon, pegasus.grouper_epsilon) == (Fraction(8, 100), Fraction(2, 100))
    noise = GivenNoise()
    run_stream(pegasus, [1], noise=noise)
    assert noise.rates == [Fraction(8, 300), Fraction(2, 100) / 12]
    assert pegasus.grouper.theta == 5 * 3 / Fraction(2, 100)
    with pytest.raises(ValueError, match="takes a part"):
        Pegasus(epsilon=Fraction(1), sensitivity=1, grouper_share=Fraction(1))


GROUPS = st.lists(st.integers(-50, 50), min_size=1, max_size=12)


@given(GROUPS)
@examples(500)
def test_smoothers_are_what_statistics_says(group: list[int]) -> None:
    ascending, latest, variance = sorted(group), group[-1], Fraction(9)
    assert float(take_median(ascending, latest, variance)) == statistics.median(group)
    assert take_average(ascending, latest, variance) == statistics.mean(map(Fraction, group))
    average = statistics.fmean(group)
    spread = sum((count - average) ** 2 for count in group)
    expected = float(latest)
    if len(group) > 3:
        factor = 1 - (len(group) - 3) * 9 / spread if spread > 1e-9 else 0.0
        expected = average + max(0.0, factor) * (latest - average)
    assert float(shrink_to_average(ascending, latest, variance)) == pytest.approx(expected, rel=1e-9, abs=1e-6)


def naive_groups(pegasus: Pegasus, counts: Sequence[int], seed: int) -> list[tuple[list[list[int]], Fraction]]:
    """After each tick, the noisy counts of all groups so far, in the order of ticks, and what was released."""
    noise = SeededNoise(seed)
    states: tuple[PegasusState, ...] = (pegasus.start(),)
    groups: list[list[int]] = []
    found = []
    for count in counts:
        tick = pegasus.advance(states, np.array([count]), noise=noise)
        before, states = states[0].noisy_counts, tick.states
        noisy = states[0].noisy_counts
        if len(noisy) > 1:
            (latest,) = statistics_difference(noisy, before)
            groups[-1] = [*groups[-1], latest]
        else:
            groups = [*groups, list(noisy)]
        found.append((groups.copy(), tick.estimates[0]))
    return found


def statistics_difference(larger: Sequence[int], smaller: Sequence[int]) -> list[int]:
    rest = list(larger)
    for value in smaller:
        rest.remove(value)
    return rest


COUNTS = st.lists(st.integers(0, 12), min_size=1, max_size=40)


@given(COUNTS, st.integers(1, 12), st.integers(0, 2**32), st.sampled_from([5, 40]))
@examples(200)
def test_window_sums_are_those_of_algorithm_17(counts: list[int], window: int, seed: int, factor: int) -> None:
    pegasus = Pegasus(epsilon=Fraction(1), sensitivity=1, theta_factor=Fraction(factor))
    smoother, noise = WindowSumSmoother(window=window), SeededNoise(seed)
    states: tuple[PegasusState, ...] = (pegasus.start(),)
    windows: tuple[WindowGroups, ...] = (smoother.start(),)
    for place, (groups, estimate) in enumerate(naive_groups(pegasus, counts, seed)):
        tick = pegasus.advance(states, np.array([counts[place]]), noise=noise)
        states = tick.states
        sums = smoother.advance(windows, tick)
        windows = sums.states
        by_tick = [Fraction(statistics.median(map(Fraction, group))) for group in groups for _ in group]
        assert len(by_tick) == place + 1
        assert sums.estimates == (sum(by_tick[-window:], Fraction(0)),)
        assert tick.estimates == (estimate,)
        assert estimate == by_tick[-1]


@pytest.mark.parametrize("direction", ["jump", "drop", "either"])
@given(COUNTS, st.integers(2, 6), st.integers(1, 5))
@examples(200, quick=10)
def test_jumps_are_as_defined(direction: Direction, counts: list[int], window: int, delta: int) -> None:
    monitor = JumpMonitor(window=window, delta=Fraction(delta), direction=direction)
    states: tuple[LastEstimates, ...] = (monitor.start(),)
    for place, count in enumerate(counts):
        watch = monitor.advance(states, [Fraction(count)])
        states = watch.states
        change = count - counts[place - window + 1] if place >= window - 1 else 0
        expected = {"jump": change >= delta, "drop": -change >= delta, "either": abs(change) >= delta}
        assert watch.occurred == (expected[direction],)


@given(COUNTS, st.integers(1, 6), st.integers(1, 40))
@examples(200)
def test_low_signals_are_as_defined(counts: list[int], window: int, delta: int) -> None:
    monitor = LowSignalMonitor(window=window, delta=Fraction(delta))
    states: tuple[TicksSeen, ...] = (monitor.start(),)
    for place in range(len(counts)):
        total = sum(counts[max(0, place - window + 1) : place + 1])
        watch = monitor.advance(states, [Fraction(total)])
        states = watch.states
        assert watch.occurred == (place >= window - 1 and total < delta,)


def test_monitors_check_their_windows() -> None:
    for wrong in (
        lambda: JumpMonitor(window=1, delta=Fraction(1)),
        lambda: JumpMonitor(window=2, delta=Fraction(0)),
        lambda: LowSignalMonitor(window=0, delta=Fraction(1)),
        lambda: WindowSumSmoother(window=0),
    ):
        with pytest.raises(ValueError, match=r"window|jump"):
            wrong()


def test_backward_smoothing_is_the_mean_of_the_last_noisy_counts() -> None:
    noise = GivenNoise([1, -2, 3, 0])
    smoothed = BackwardSmoothing(epsilon=Fraction(1, 2), sensitivity=2, ticks_back=2)
    assert run_stream(smoothed, [10, 20, 30, 40], noise=noise) == [
        11,
        Fraction(29, 2),
        Fraction(62, 3),
        Fraction(91, 3),
    ]
    assert noise.rates == [Fraction(1, 4)] * 4
    assert run_stream(TickLaplace(epsilon=Fraction(1), sensitivity=1), [10, 20], noise=GivenNoise([1, -2])) == [11, 18]
    with pytest.raises(ValueError, match="looks back"):
        BackwardSmoothing(epsilon=Fraction(1), sensitivity=1, ticks_back=0)


def test_zeros_draw_nothing() -> None:
    noise = GivenNoise()
    assert run_stream(Zeros(), [10, 20], noise=noise) == [0, 0]
    assert not noise.rates
    assert Zeros().epsilon == 0


def test_a_unit_loses_by_its_ticks() -> None:
    assert compute_unit_epsilon(Fraction(1, 10), sensitivity_ticks=96) == Fraction(96, 10)
    with pytest.raises(ValueError, match="number of ticks"):
        compute_unit_epsilon(Fraction(1), sensitivity_ticks=-1)


def leave(group: Sequence[int], latest: int, variance: Fraction) -> Fraction:
    """No smoothing."""
    del group, variance
    return Fraction(latest)


def test_james_stein_as_printed_is_worse_than_no_smoothing_and_corrected_better() -> None:
    """15 streams of 200 ticks with three events each at epsilon .1, seeded, the same noise for all: by logarithm to ten
    of the scaled error, printed at least .1 above no smoothing (with continuous noise, where no two counts tie, .4),
    corrected below it, and the median below that."""
    ticks, streams, epsilon = 200, 15, Fraction(1, 10)
    rng = np.random.default_rng(83)
    counts = (rng.random((ticks, streams)) < 3 / ticks).astype(np.int64)

    def error(pegasus: Pegasus) -> float:
        noise, states = SeededNoise(84), (pegasus.start(),) * streams
        total = 0.0
        for row in counts:
            tick = pegasus.advance(states, row, noise=noise)
            states = tick.states
            total += float(np.abs(np.array(tick.estimates, dtype=np.float64) - row).sum())
        return math.log10(total / counts.sum())

    measured = {
        name: error(Pegasus(epsilon=epsilon, sensitivity=1, smooth=smooth, name=name))
        for name, smooth in {**SMOOTHERS, "as printed": move_from_average, "none": leave}.items()
    }
    assert measured["as printed"] > measured["none"] + 0.1
    assert measured["pegasus"] < measured["pegasus_james_stein"] < measured["none"]
    assert measured["pegasus"] == pytest.approx(measured["pegasus_average"], abs=0.05)
