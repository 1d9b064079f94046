"""The Laplace mechanism at every tick, and its backward smoothing: the baselines of other stream mechanisms.

| here | the thesis |
|---|---|
| `TickLaplace` | LM |
| `BackwardSmoothing`, ticks_back | BS_k, k |

References: Chen's thesis, section 5.6.1. Proof: docs/proofs/streams.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.formula import Integers
from mechanisms.noise.exact import check_rate
from mechanisms.protocol import Noise
from mechanisms.streams.perturber import add_noise
from mechanisms.streams.stream import Stateless, Tick, check_budget, check_counts


@dataclass(frozen=True, slots=True)
class TickLaplace:
    """LM: every count with fresh noise, released as it is.

    Guarantee: `epsilon` at event level (docs/proofs/streams.md).

    Raises:
        Unachievable: the noise lies outside the range of exact sampling.
        ValueError: a parameter outside its range.
    """

    epsilon: Fraction
    sensitivity: int
    name: str = "tick_laplace"

    def __post_init__(self) -> None:
        """Check every parameter's range."""
        check_budget(epsilon=self.epsilon, sensitivity=self.sensitivity)
        check_rate(self.rate)

    @property
    def rate(self) -> Fraction:
        """The rate of the noise on every count."""
        return self.epsilon / self.sensitivity

    def start(self) -> Stateless:
        """Return the empty state."""
        return Stateless()

    def advance(self, states: Sequence[Stateless], counts: Integers, *, noise: Noise) -> Tick[Stateless]:
        """Return each count plus fresh noise. Nothing is kept between ticks."""
        check_counts(states, counts)
        noisy = add_noise(counts, rate=self.rate, noise=noise).tolist()
        return Tick(states=tuple(states), estimates=tuple(map(Fraction, noisy)))


@dataclass(frozen=True, slots=True)
class LastNoisyCounts:
    """The noisy counts of the last ticks, oldest first. They are public."""

    noisy_counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BackwardSmoothing:
    """BS_k: the mean of the noisy counts of this tick and of up to `ticks_back` ticks before it.

    Guarantee: `epsilon` at event level (docs/proofs/streams.md).

    Raises:
        Unachievable, ValueError: as for `TickLaplace`. ValueError also if `ticks_back` is below one.
    """

    epsilon: Fraction
    sensitivity: int
    ticks_back: int
    name: str = "backward_smoothing"

    def __post_init__(self) -> None:
        """Check every parameter's range."""
        check_rate(self.laplace.rate)
        if self.ticks_back < 1:
            raise ValueError("backward smoothing looks back one tick or more")

    @property
    def laplace(self) -> TickLaplace:
        """The mechanism whose output is smoothed."""
        return TickLaplace(epsilon=self.epsilon, sensitivity=self.sensitivity)

    def start(self) -> LastNoisyCounts:
        """Return the state before the first tick."""
        return LastNoisyCounts(noisy_counts=())

    def advance(self, states: Sequence[LastNoisyCounts], counts: Integers, *, noise: Noise) -> Tick[LastNoisyCounts]:
        """Add noise to the counts of one tick, and return the means with the noisy counts of earlier ticks."""
        check_counts(states, counts)
        noisy = add_noise(counts, rate=self.laplace.rate, noise=noise).tolist()
        kept = [
            (*state.noisy_counts, count)[-self.ticks_back - 1 :] for state, count in zip(states, noisy, strict=True)
        ]
        return Tick(
            states=tuple(LastNoisyCounts(noisy_counts=last) for last in kept),
            estimates=tuple(Fraction(sum(last), len(last)) for last in kept),
        )
