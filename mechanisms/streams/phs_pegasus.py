"""PHS-PGS: PeGaSus on the aggregations that seem large enough.

Parts of a small aggregation are released as zero for free.

There are two ways of finding small aggregations. `PhsPegasus` compares noisy counts, as the thesis does, but correctly.
`PhsPegasusFree`, ours, uses the estimates released at the tick before, at no loss. In both, an aggregation whose parts
are pruned also gets the Perturber's loss of their levels.

What is printed but does not hold: algorithm 18's PRUNE draws noise for both sides of each comparison at
`2 / epsilon_pr`, as if one answer in all were paid for. Every "not small" on a path costs up to half of `epsilon_pr`
and none is paid by another: eight in a row lose up to four times what is claimed (theorem 20). With one noisy threshold
a tick, which is how the proof reads it, aggregations beside the path pin it down: a sparse vector without a limit.
Here a comparison has noise of its own on the count alone, and the levels above the leaves, one less than the height,
share `epsilon_pr`. A leaf has nothing to prune and is not compared.

| here | the thesis |
|---|---|
| prune_epsilon, prune_below | epsilon_pr, beta |
| `Pruning.shares` | epsilon_agg |

References: Chen's thesis, algorithm 18, theorems 20 and 21. Proof: docs/proofs/streams.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms.formula import Booleans, Integers
from mechanisms.noise.exact import check_rate
from mechanisms.protocol import Noise
from mechanisms.streams.grouper import THETA_FACTOR
from mechanisms.streams.hierarchy import Hierarchy, HierarchyTick, Pruning, prune_parts_of_small
from mechanisms.streams.hs_pegasus import HierarchyState
from mechanisms.streams.pegasus import GROUPER_SHARE, Pegasus
from mechanisms.streams.perturber import add_noise
from mechanisms.streams.stream import check_budget


@dataclass(frozen=True, slots=True)
class PrunedPegasus:
    """PeGaSus on the aggregations that a pruning keeps. Pruned ticks are skipped.

    Guarantee: `epsilon` at event level, if prunings depend on the counts of their own tick only through releases whose
    loss is counted separately (docs/proofs/streams.md).

    Parameters and exceptions as for `Pegasus`.
    """

    hierarchy: Hierarchy
    epsilon: Fraction
    sensitivity: int
    grouper_share: Fraction
    theta_factor: Fraction

    def __post_init__(self) -> None:
        """Check every parameter's range."""
        check_rate(self.pegasus.perturber_rate)
        check_rate(self.compute_perturber_rate(self.hierarchy.levels))

    @property
    def pegasus(self) -> Pegasus:
        """The PeGaSus mechanism that runs on an aggregation without pruned parts."""
        return Pegasus(
            epsilon=self.epsilon / self.hierarchy.levels,
            sensitivity=self.sensitivity,
            grouper_share=self.grouper_share,
            theta_factor=self.theta_factor,
        )

    def compute_perturber_rate(self, share: int) -> Fraction:
        """Return the rate of noise on a count with the loss of `share` levels.

        The Grouper's part of the loss, that of one level, is subtracted first.
        """
        return (share * self.epsilon - self.grouper_share * self.epsilon) / (self.hierarchy.levels * self.sensitivity)

    def start(self) -> HierarchyState:
        """Return a state without groups."""
        return HierarchyState(nodes=(self.pegasus.start(),) * len(self.hierarchy.parents))

    def advance(
        self, states: Sequence[HierarchyState], aggregates: Integers, pruning: Pruning, *, noise: Noise
    ) -> HierarchyTick[HierarchyState]:
        """Advance one tick: perturb, group and smooth the unpruned aggregations, and release zeros for the others."""
        kept = list(zip(*(places.tolist() for places in np.nonzero(~pruning.pruned)), strict=True))
        nodes = [states[row].nodes[place] for row, place in kept]
        counts, shares = aggregates[~pruning.pruned], pruning.shares[~pruning.pruned]
        noisy = np.empty_like(counts)
        for share in np.unique(shares).tolist():
            alike = shares == share
            noisy[alike] = add_noise(counts[alike], rate=self.compute_perturber_rate(share), noise=noise)
        groups, joined = self.pegasus.grouper.assign_ticks([node.grouper for node in nodes], counts, noise=noise)
        tick = self.pegasus.smooth_groups(nodes, noisy, groups, joined)
        after = [list(state.nodes) for state in states]
        estimates = [[Fraction(0)] * len(self.hierarchy.parents) for _ in states]
        for (row, place), node, estimate in zip(kept, tick.states, tick.estimates, strict=True):
            after[row][place], estimates[row][place] = node, estimate
        return HierarchyTick(
            states=tuple(HierarchyState(nodes=tuple(nodes)) for nodes in after), estimates=tuple(map(tuple, estimates))
        )


@dataclass(frozen=True, slots=True)
class PhsPegasus:
    """PHS-PGS with PRUNE corrected.

    Guarantee: `epsilon` at event level, `prune_epsilon` of it for pruning (docs/proofs/streams.md).

    Parameters:
        prune_epsilon: the loss for pruning, which the thesis leaves open; above 0 and below `epsilon`.
        prune_below: the thesis's beta, which it leaves open. The parts of an aggregation with a noisy count below it
            are pruned for the tick. Others, and exceptions, as for `Pegasus`.
    """

    hierarchy: Hierarchy
    epsilon: Fraction
    sensitivity: int
    prune_epsilon: Fraction
    prune_below: int
    grouper_share: Fraction = GROUPER_SHARE
    theta_factor: Fraction = THETA_FACTOR
    name: str = "phs_pegasus"

    def __post_init__(self) -> None:
        """Check every parameter's range."""
        check_budget(epsilon=self.epsilon, sensitivity=self.sensitivity)
        if not 0 < self.prune_epsilon < self.epsilon:
            raise ValueError("pruning takes a part of the loss and leaves one")
        check_rate(self.prune_rate)
        check_rate(self.pruned.pegasus.perturber_rate)

    @property
    def prune_rate(self) -> Fraction:
        """The rate of the noise on each comparison.

        A path from root to leaf has one comparison fewer than it has levels.
        """
        return self.prune_epsilon / (max(1, self.hierarchy.levels - 1) * self.sensitivity)

    @property
    def pruned(self) -> PrunedPegasus:
        """The mechanism that runs on the aggregations that are not pruned."""
        return PrunedPegasus(
            hierarchy=self.hierarchy,
            epsilon=self.epsilon - self.prune_epsilon,
            sensitivity=self.sensitivity,
            grouper_share=self.grouper_share,
            theta_factor=self.theta_factor,
        )

    def start(self) -> HierarchyState:
        """Return a state without groups."""
        return self.pruned.start()

    def advance(
        self, states: Sequence[HierarchyState], counts: Integers, *, noise: Noise
    ) -> HierarchyTick[HierarchyState]:
        """Advance one tick: prune, then run PeGaSus on the remaining aggregations."""
        aggregates = self.hierarchy.aggregate(counts)
        small = find_small_aggregations(
            self.hierarchy, aggregates, rate=self.prune_rate, prune_below=self.prune_below, noise=noise
        )
        return self.pruned.advance(states, aggregates, prune_parts_of_small(self.hierarchy, small), noise=noise)


def find_small_aggregations(
    hierarchy: Hierarchy, aggregates: Integers, *, rate: Fraction, prune_below: int, noise: Noise
) -> Booleans:
    """Make the comparisons of PRUNE, in its corrected form.

    Return True for aggregations with parts whose noisy count is below the bound.

    Guarantee: `rate * sensitivity` for each aggregation that contains the event and has parts, one less than the height
    (docs/proofs/streams.md).

    Parameters:
        aggregates: shape (hierarchies, aggregations).
    """
    small = np.zeros(aggregates.shape, dtype=np.bool_)
    small[:, hierarchy.inner] = add_noise(aggregates[:, hierarchy.inner], rate=rate, noise=noise) < prune_below
    return small


@dataclass(frozen=True, slots=True)
class FreePruningState:
    """One PeGaSus for each aggregation, and True for those whose last estimate was below the bound."""

    nodes: HierarchyState
    are_small: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class PhsPegasusFree:
    """PHS-PGS that prunes by the estimates of the tick before. At the first tick nothing is pruned.

    A part of a small aggregation is estimated again one tick after the aggregation has grown, level by level.

    Guarantee: `epsilon` at event level. Pruning depends only on released estimates, so it adds no loss
    (docs/proofs/streams.md).

    Parameters and exceptions as for `PhsPegasus`.
    """

    hierarchy: Hierarchy
    epsilon: Fraction
    sensitivity: int
    prune_below: int
    grouper_share: Fraction = GROUPER_SHARE
    theta_factor: Fraction = THETA_FACTOR
    name: str = "phs_pegasus_free"

    def __post_init__(self) -> None:
        """Check every parameter's range."""
        check_rate(self.pruned.pegasus.perturber_rate)

    @property
    def pruned(self) -> PrunedPegasus:
        """The mechanism that runs on the aggregations that are not pruned."""
        return PrunedPegasus(
            hierarchy=self.hierarchy,
            epsilon=self.epsilon,
            sensitivity=self.sensitivity,
            grouper_share=self.grouper_share,
            theta_factor=self.theta_factor,
        )

    def start(self) -> FreePruningState:
        """Return a state without groups, in which no aggregation is small."""
        return FreePruningState(nodes=self.pruned.start(), are_small=(False,) * len(self.hierarchy.parents))

    def advance(
        self, states: Sequence[FreePruningState], counts: Integers, *, noise: Noise
    ) -> HierarchyTick[FreePruningState]:
        """Advance one tick: run PeGaSus on the aggregations that are not pruned by the last estimates.

        The new estimates prune for the next tick.
        """
        pruning = prune_parts_of_small(self.hierarchy, np.array([state.are_small for state in states], dtype=np.bool_))
        aggregates = self.hierarchy.aggregate(counts)
        tick = self.pruned.advance([state.nodes for state in states], aggregates, pruning, noise=noise)
        after = tuple(
            FreePruningState(nodes=nodes, are_small=tuple(estimate < self.prune_below for estimate in estimates))
            for nodes, estimates in zip(tick.states, tick.estimates, strict=True)
        )
        return HierarchyTick(states=after, estimates=tick.estimates)
