"""HS-PGS and HS-LM: each aggregation of a hierarchy is a separate stream, with one part of the loss for each level.

| here | the thesis |
|---|---|
| `HsPegasus`, `HsLaplace` | HS-PGS, HS-LM |
| hierarchy, its levels | AGG, h |

References: Chen's thesis, section 5.5.1, theorem 19, and section 5.6.4. Proof: docs/proofs/streams.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.formula import Integers
from mechanisms.noise.exact import check_rate
from mechanisms.protocol import Noise
from mechanisms.streams.grouper import THETA_FACTOR
from mechanisms.streams.hierarchy import Hierarchy, HierarchyTick
from mechanisms.streams.pegasus import GROUPER_SHARE, Pegasus, PegasusState
from mechanisms.streams.perturber import add_noise
from mechanisms.streams.stream import Stateless, check_budget


@dataclass(frozen=True, slots=True)
class HierarchyState:
    """One PeGaSus for each aggregation."""

    nodes: tuple[PegasusState, ...]


@dataclass(frozen=True, slots=True)
class HsPegasus:
    """PeGaSus with the median on every aggregation.

    Guarantee: `epsilon` at event level (docs/proofs/streams.md).

    Parameters and exceptions as for `Pegasus`.
    """

    hierarchy: Hierarchy
    epsilon: Fraction
    sensitivity: int
    grouper_share: Fraction = GROUPER_SHARE
    theta_factor: Fraction = THETA_FACTOR
    name: str = "hs_pegasus"

    def __post_init__(self) -> None:
        """Check every parameter's range."""
        check_rate(self.pegasus.perturber_rate)

    @property
    def pegasus(self) -> Pegasus:
        """The PeGaSus mechanism that runs on each aggregation."""
        return Pegasus(
            epsilon=self.epsilon / self.hierarchy.levels,
            sensitivity=self.sensitivity,
            grouper_share=self.grouper_share,
            theta_factor=self.theta_factor,
        )

    def start(self) -> HierarchyState:
        """Return a state without groups."""
        return HierarchyState(nodes=(self.pegasus.start(),) * len(self.hierarchy.parents))

    def advance(
        self, states: Sequence[HierarchyState], counts: Integers, *, noise: Noise
    ) -> HierarchyTick[HierarchyState]:
        """Return the states after one tick, and the estimates of all aggregations of all hierarchies."""
        nodes = [node for state in states for node in state.nodes]
        tick = self.pegasus.advance(nodes, self.hierarchy.aggregate(counts).ravel(), noise=noise)
        width = len(self.hierarchy.parents)
        parts = [slice(start, start + width) for start in range(0, len(nodes), width)]
        return HierarchyTick(
            states=tuple(HierarchyState(nodes=tick.states[part]) for part in parts),
            estimates=tuple(tick.estimates[part] for part in parts),
        )


@dataclass(frozen=True, slots=True)
class HsLaplace:
    """The Laplace mechanism on every aggregation.

    Guarantee: `epsilon` at event level (docs/proofs/streams.md).

    Raises:
        Unachievable: the noise lies outside the range of exact sampling.
        ValueError: a parameter outside its range.
    """

    hierarchy: Hierarchy
    epsilon: Fraction
    sensitivity: int
    name: str = "hs_laplace"

    def __post_init__(self) -> None:
        """Check every parameter's range."""
        check_budget(epsilon=self.epsilon, sensitivity=self.sensitivity)
        check_rate(self.rate)

    @property
    def rate(self) -> Fraction:
        """The rate of the noise on each aggregation's count."""
        return self.epsilon / (self.hierarchy.levels * self.sensitivity)

    def start(self) -> Stateless:
        """Return the empty state."""
        return Stateless()

    def advance(self, states: Sequence[Stateless], counts: Integers, *, noise: Noise) -> HierarchyTick[Stateless]:
        """Add noise to the counts of one tick, summed by aggregation. Nothing is kept between ticks."""
        noisy = add_noise(self.hierarchy.aggregate(counts), rate=self.rate, noise=noise)
        return HierarchyTick(states=tuple(states), estimates=tuple(tuple(map(Fraction, row)) for row in noisy.tolist()))
