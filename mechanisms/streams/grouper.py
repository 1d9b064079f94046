"""PeGaSus's deviation-based Grouper: it groups neighbouring ticks with similar counts, by sparse vectors.

An open group takes the next tick while the noisy deviation of its counts stays below a noisy threshold. Otherwise the
group is closed, and the tick becomes a closed group by itself. The next tick opens a group and draws a new threshold.
So each count is in exactly one sparse vector with one positive answer.

A deviation is a fraction of the group's size `n`, so both sides are multiplied by `n` and compared in whole numbers. On
a constant stream the published threshold, `5 / epsilon_g`, closes groups after 5.0 ticks on average, 3.0 over all
groups. Two, four and eight times this threshold close them after 9.3, 32.5 and 396 ticks.

| here | the thesis |
|---|---|
| `scale_deviation` | n dev |
| threshold_rate, deviation_rate | 1 / Lap(4 / epsilon_g), 1 / Lap(8 / epsilon_g), over the sensitivity |
| theta, theta_factor | theta; theta epsilon_g, 5 as published |

References: Chen's thesis, algorithm 16, equation 5.4, lemma 16, theorem 17. Proof: docs/proofs/streams.md.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.formula import Integers
from mechanisms.noise.exact import check_rate
from mechanisms.protocol import Noise
from mechanisms.streams.stream import check_budget, check_counts

THETA_FACTOR = Fraction(5)
"""As published: the threshold times `epsilon_g`. A larger one smooths more, and lags more behind what changes."""


@dataclass(frozen=True, slots=True)
class GrouperState:
    """The state of the Grouper: the open group's different counts, ascending, and how often each occurs.

    `threshold_noise` is the noise of the group's threshold. Without an open group the fields are empty or zero.
    """

    counts: tuple[int, ...]
    times: tuple[int, ...]
    threshold_noise: int


NO_GROUP = GrouperState(counts=(), times=(), threshold_noise=0)


@dataclass(frozen=True, slots=True)
class Grouper:
    """The Grouper for one loss.

    Guarantee: all decisions about one stream together are `epsilon`-private for one event, at any length of the stream
    (docs/proofs/streams.md).

    Parameters:
        epsilon: the thesis's `epsilon_g`.
        sensitivity: the most that one event changes one count.
        theta_factor: the threshold is this times `sensitivity / epsilon`.

    Raises:
        Unachievable: the noise lies outside the range of exact sampling.
        ValueError: a parameter outside its range.
    """

    epsilon: Fraction
    sensitivity: int
    theta_factor: Fraction = THETA_FACTOR

    def __post_init__(self) -> None:
        """Check every parameter's range."""
        check_budget(epsilon=self.epsilon, sensitivity=self.sensitivity)
        for rate in (self.threshold_rate, self.deviation_rate):
            check_rate(rate)

    @property
    def threshold_rate(self) -> Fraction:
        """The rate of the noise on the threshold.

        It has half of the loss, and a deviation changes by twice as much as a count.
        """
        return self.epsilon / (4 * self.sensitivity)

    @property
    def deviation_rate(self) -> Fraction:
        """The rate of the noise on each deviation."""
        return self.epsilon / (8 * self.sensitivity)

    @property
    def theta(self) -> Fraction:
        """The threshold before noise is added."""
        return self.theta_factor * self.sensitivity / self.epsilon

    def assign_ticks(
        self, states: Sequence[GrouperState], counts: Integers, *, noise: Noise
    ) -> tuple[tuple[GrouperState, ...], tuple[bool, ...]]:
        """Decide for one tick of each stream if it joins the open group.

        Return the states, and True for each that joined.
        """
        check_counts(states, counts)
        opening = sum(not state.counts for state in states)
        thresholds = iter(noise.draw_discrete_laplace(rate=self.threshold_rate, size=opening).tolist())
        deviations = iter(noise.draw_discrete_laplace(rate=self.deviation_rate, size=len(states) - opening).tolist())
        theta = self.theta
        after, joined = [], []
        for state, count in zip(states, counts.tolist(), strict=True):
            if state.counts:
                larger = _add_count(state, count)
                joins = _is_even(larger, deviation_noise=next(deviations), theta=theta)
                after.append(larger if joins else NO_GROUP)
            else:
                joins = False
                after.append(GrouperState(counts=(count,), times=(1,), threshold_noise=next(thresholds)))
            joined.append(joins)
        return tuple(after), tuple(joined)


def scale_deviation(counts: Sequence[int], times: Sequence[int]) -> int:
    """Return `n` times the sum of the distances of `n` counts to their mean, exactly.

    `counts` ascend, and `times` says how often each occurs.

    >>> scale_deviation((5, 6, 9), (2, 1, 1)) / 4
    5.5
    """
    size = sum(times)
    total = sum(count * often for count, often in zip(counts, times, strict=True))
    # what lies above the mean makes up half of all distances
    return 2 * sum(
        often * (size * count - total) for count, often in zip(counts, times, strict=True) if size * count > total
    )


def _add_count(state: GrouperState, count: int) -> GrouperState:
    counts, times = state.counts, state.times
    place = bisect_left(counts, count)
    if place < len(counts) and counts[place] == count:
        times = (*times[:place], times[place] + 1, *times[place + 1 :])
    else:
        counts, times = (*counts[:place], count, *counts[place:]), (*times[:place], 1, *times[place:])
    return GrouperState(counts=counts, times=times, threshold_noise=state.threshold_noise)


def _is_even(group: GrouperState, *, deviation_noise: int, theta: Fraction) -> bool:
    """Return True if `dev + noise < theta + threshold noise`, times the group's size and theta's denominator."""
    size = sum(group.times)
    excess = scale_deviation(group.counts, group.times) + size * (deviation_noise - group.threshold_noise)
    return excess * theta.denominator < size * theta.numerator
