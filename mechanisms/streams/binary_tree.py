"""The binary mechanism: a running sum made of noisy sums of dyadic ranges of ticks.

| here | the paper |
|---|---|
| horizon, levels | T, log2 T rounded up |
| sums, noisy | alpha_j and its noisy value, the p-sums |

References: T.-H. H. Chan, E. Shi, D. Song, Private and continual release of statistics, 2011, algorithm 2. Proof:
docs/proofs/streams.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms.formula import Integers
from mechanisms.noise.exact import check_rate
from mechanisms.protocol import Noise
from mechanisms.streams.perturber import add_noise
from mechanisms.streams.stream import Tick, check_budget, check_counts


@dataclass(frozen=True, slots=True)
class BinaryTreeState:
    """The state between ticks: `ticks` counts them.

    For each level, `sums` and `noisy_sums` have the true and the noisy sum of a dyadic range, or 0.  The binary digits
    of `ticks` say which levels have a range.
    """

    ticks: int
    sums: tuple[int, ...]
    noisy_sums: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BinaryTree:
    """Estimates of the sum of all counts so far, up to the horizon.

    Guarantee: `epsilon` at event level, over the whole horizon (docs/proofs/streams.md).

    Raises:
        Unachievable: the noise lies outside the range of exact sampling.
        ValueError: a parameter outside its range, or a tick beyond the horizon.
    """

    epsilon: Fraction
    sensitivity: int
    horizon: int
    name: str = "binary_tree"

    def __post_init__(self) -> None:
        """Check every parameter's range."""
        check_budget(epsilon=self.epsilon, sensitivity=self.sensitivity)
        if self.horizon < 1:
            raise ValueError("a horizon has a tick or more")
        check_rate(self.rate)

    @property
    def levels(self) -> int:
        """The number of noisy sums that contain one count, at most."""
        return self.horizon.bit_length()

    @property
    def rate(self) -> Fraction:
        """The rate of the noise on every sum."""
        return self.epsilon / (self.levels * self.sensitivity)

    def start(self) -> BinaryTreeState:
        """Return the state before the first tick."""
        return BinaryTreeState(ticks=0, sums=(0,) * self.levels, noisy_sums=(0,) * self.levels)

    def advance(self, states: Sequence[BinaryTreeState], counts: Integers, *, noise: Noise) -> Tick[BinaryTreeState]:
        """Advance one tick. Ranges that end together are merged into one, with new noise."""
        check_counts(states, counts)
        if any(state.ticks == self.horizon for state in states):
            raise ValueError("the horizon is over")
        levels = [_find_lowest_digit(state.ticks + 1) for state in states]
        merged = [
            sum(state.sums[:level]) + count for state, level, count in zip(states, levels, counts.tolist(), strict=True)
        ]
        noisy = add_noise(np.array(merged, dtype=np.int64), rate=self.rate, noise=noise).tolist()
        after = tuple(
            BinaryTreeState(
                ticks=state.ticks + 1,
                sums=(*(0,) * level, total, *state.sums[level + 1 :]),
                noisy_sums=(*(0,) * level, value, *state.noisy_sums[level + 1 :]),
            )
            for state, level, total, value in zip(states, levels, merged, noisy, strict=True)
        )
        return Tick(states=after, estimates=tuple(Fraction(sum(state.noisy_sums)) for state in after))


def _find_lowest_digit(number: int) -> int:
    """Return the place of the lowest binary digit that is one."""
    return (number & -number).bit_length() - 1
