"""PeGaSus: Perturber, Grouper and Smoother on one count per tick.

The Perturber gives a noisy count. The Grouper gives the group of the tick. The Smoother estimates from the noisy counts
of that group so far. The published choices are the median, four fifths of the loss for the Perturber, and a threshold
of `5 / epsilon_g`. Only the Perturber and the Grouper read counts. Window sums and event monitors use the same outputs
and cost nothing more (`mechanisms/streams/window_sum.py`, `mechanisms/streams/event_monitors.py`).

| here | the thesis |
|---|---|
| `Pegasus.perturber_epsilon`, `.grouper_epsilon` | epsilon_p, epsilon_g |
| `PegasusState.noisy_counts` | the noisy counts of G |
| take_average, take_median, shrink_to_average | AS, MS, JSS |

What is printed but does not hold: equation 5.2 compares two places of one user at one tick, which are two events: with
several released streams it is `exp(2 epsilon)`, and equation 5.3 `exp(2 k epsilon)`.

References: Y. Chen, A. Machanavajjhala, M. Hay, G. Miklau, PeGaSus: data-adaptive differentially private stream
processing, CCS 2017; Chen's thesis, algorithm 15, theorem 15. Proof: docs/proofs/streams.md.
"""

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.formula import Integers
from mechanisms.noise.exact import check_rate
from mechanisms.protocol import Noise
from mechanisms.streams.grouper import NO_GROUP, THETA_FACTOR, Grouper, GrouperState
from mechanisms.streams.perturber import add_noise
from mechanisms.streams.smoothers import Smoother, take_median
from mechanisms.streams.stream import Tick, check_budget

GROUPER_SHARE = Fraction(1, 5)
"""As published: the part of the loss that goes into finding groups."""


@dataclass(frozen=True, slots=True)
class PegasusState:
    """The Grouper's state, and the noisy counts of the latest tick's group so far, ascending.

    The noisy counts are public.
    """

    grouper: GrouperState
    noisy_counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pegasus:
    """One PeGaSus mechanism, for any number of streams in parallel.

    Guarantee: `epsilon` at event level, for the estimates, the noisy counts and the groups together
    (docs/proofs/streams.md). The error of an estimate is not bounded and depends on the data. On streams that alternate
    it does not shrink with the noise.

    Parameters:
        epsilon: the loss of one event.
        sensitivity: the most that one event changes one count.
        smooth: the Smoother.
        grouper_share: the Grouper's part of the loss, between 0 and 1.
        theta_factor: that of the Grouper.
        name: its name in tables.

    Raises:
        Unachievable: the noise lies outside the range of exact sampling.
        ValueError: a parameter outside its range.

    >>> from mechanisms.streams.state_integers import to_integers
    >>> pegasus = Pegasus(epsilon=Fraction(1, 10), sensitivity=1)
    >>> pegasus.perturber_epsilon, pegasus.grouper.theta, to_integers(pegasus.start())
    (Fraction(2, 25), Fraction(250, 1), (0, 0, 0, 0))
    """

    epsilon: Fraction
    sensitivity: int
    smooth: Smoother = take_median
    grouper_share: Fraction = GROUPER_SHARE
    theta_factor: Fraction = THETA_FACTOR
    name: str = "pegasus"

    def __post_init__(self) -> None:
        """Check every parameter's range."""
        check_budget(epsilon=self.epsilon, sensitivity=self.sensitivity)
        if not 0 < self.grouper_share < 1:
            raise ValueError("the Grouper takes a part of the loss and leaves one")
        check_rate(self.perturber_rate)
        check_rate(self.grouper.deviation_rate)

    @property
    def perturber_epsilon(self) -> Fraction:
        """The Perturber's part of the loss."""
        return self.epsilon - self.grouper_epsilon

    @property
    def grouper_epsilon(self) -> Fraction:
        """The Grouper's part of the loss."""
        return self.epsilon * self.grouper_share

    @property
    def perturber_rate(self) -> Fraction:
        """The rate of the noise on counts."""
        return self.perturber_epsilon / self.sensitivity

    @property
    def grouper(self) -> Grouper:
        """The Grouper, which decides if a tick joins the group before it."""
        return Grouper(epsilon=self.grouper_epsilon, sensitivity=self.sensitivity, theta_factor=self.theta_factor)

    def start(self) -> PegasusState:
        """Return a state without groups."""
        return PegasusState(grouper=NO_GROUP, noisy_counts=())

    def advance(self, states: Sequence[PegasusState], counts: Integers, *, noise: Noise) -> Tick[PegasusState]:
        """Advance one tick: add noise, extend or close the group, and estimate by smoothing over the group."""
        noisy = add_noise(counts, rate=self.perturber_rate, noise=noise)
        groups, joined = self.grouper.assign_ticks([state.grouper for state in states], counts, noise=noise)
        return self.smooth_groups(states, noisy, groups, joined)

    def smooth_groups(
        self,
        states: Sequence[PegasusState],
        noisy: Integers,
        groups: Sequence[GrouperState],
        joined: Sequence[bool],
    ) -> Tick[PegasusState]:
        """Estimate the count of each stream at this tick.

        The estimate is smoothed over the tick's whole group if the tick joined one. Otherwise it is the tick's own
        noisy count.
        """
        variance = 2 / (self.perturber_rate * self.perturber_rate)
        after, estimates = [], []
        for state, latest, group, joins in zip(states, noisy.tolist(), groups, joined, strict=True):
            counts = list(state.noisy_counts) if joins else []
            insort(counts, latest)
            after.append(PegasusState(grouper=group, noisy_counts=tuple(counts)))
            estimates.append(self.smooth(counts, latest, variance))
        return Tick(states=tuple(after), estimates=tuple(estimates))
