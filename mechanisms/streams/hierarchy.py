"""Hierarchies of aggregated streams as forests, and their pruning at a tick.

| here | the thesis |
|---|---|
| parents, levels | AGG; h |
| shares | epsilon_agg |

References: Chen's thesis, definition 6, algorithm 18. Proof: docs/proofs/streams.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, Protocol

import numpy as np

from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Noise
from mechanisms.streams.stream import State


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A forest of aggregations, each identified by its place. An aggregation without parts has a count at each tick.

    Parameters:
        parents: for each aggregation the place of its parent, which comes before it, or -1 without a parent.

    Raises:
        ValueError: no aggregation, or one that does not come after its parent.
    """

    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the order."""
        if not self.parents or any(not -1 <= parent < place for place, parent in enumerate(self.parents)):
            raise ValueError("an aggregation comes after the one that contains it")

    @property
    def node_levels(self) -> tuple[int, ...]:
        """The level of each aggregation. A root has level 1, any other aggregation has its parent's level plus one."""
        found: list[int] = []
        for parent in self.parents:
            found.append(1 if parent < 0 else found[parent] + 1)
        return tuple(found)

    @property
    def levels(self) -> int:
        """The height, which is the most aggregations that contain one count."""
        return max(self.node_levels)

    @property
    def leaves(self) -> tuple[int, ...]:
        """The places of the aggregations without parts, in order."""
        containing = set(self.parents)
        return tuple(place for place in range(len(self.parents)) if place not in containing)

    @property
    def inner(self) -> tuple[int, ...]:
        """The places of the aggregations with parts, in order."""
        return tuple(sorted(set(self.parents) - {-1}))

    def aggregate(self, counts: Integers) -> Integers:
        """Sum counts of shape (hierarchies, leaves) to shape (hierarchies, aggregations).

        Raises:
            ValueError: another shape.
        """
        if counts.ndim != 2 or counts.shape[1] != len(self.leaves) or counts.dtype != np.int64:
            raise ValueError("a hierarchy has one 64-bit count for each aggregation without parts")
        found = np.zeros((counts.shape[0], len(self.parents)), dtype=np.int64)
        found[:, self.leaves] = counts
        for place in range(len(self.parents) - 1, 0, -1):
            if self.parents[place] >= 0:
                found[:, self.parents[place]] += found[:, place]
        return found


def make_balanced_hierarchy(*, branching: int, levels: int) -> Hierarchy:
    """Return one tree in which every aggregation has `branching` parts, down to the last level.

    >>> tree = make_balanced_hierarchy(branching=2, levels=8)
    >>> len(tree.parents), len(tree.leaves)
    (255, 128)
    """
    nodes = sum(branching**level for level in range(levels))
    return Hierarchy(parents=tuple((place - 1) // branching if place else -1 for place in range(nodes)))


@dataclass(frozen=True, slots=True)
class Pruning:
    """The pruning of hierarchies at one tick. Both arrays have shape (hierarchies, aggregations).

    `pruned` is True for aggregations that are released as zero. `shares` has the number of levels whose loss an
    aggregation may use: its own level and the pruned levels below it, or zero if it is pruned.
    """

    pruned: Booleans
    shares: Integers


def prune_parts_of_small(hierarchy: Hierarchy, small: Booleans) -> Pruning:
    """Prune all aggregations that are contained in a small one.

    An aggregation that is not pruned keeps its own level's loss. If it is small or has no parts, it also gets the loss
    of all levels below.

    The shares on a path add up to the height at most, whatever is small (docs/proofs/streams.md).

    Parameters:
        small: bool of shape (hierarchies, aggregations).
    """
    pruned = np.zeros(small.shape, dtype=np.bool_)
    for place, parent in enumerate(hierarchy.parents):
        if parent >= 0:
            pruned[:, place] = pruned[:, parent] | small[:, parent]
    last = small.copy()
    last[:, hierarchy.leaves] = True
    down = hierarchy.levels - np.array(hierarchy.node_levels, dtype=np.int64) + 1
    return Pruning(pruned=pruned, shares=np.where(pruned, 0, np.where(last, down, 1)))


@dataclass(frozen=True, slots=True)
class HierarchyTick(Generic[State]):
    """The result of one tick of some hierarchies: their secret states after it, and the estimates by aggregation."""

    states: tuple[State, ...]
    estimates: tuple[tuple[Fraction, ...], ...]


class HierarchyMechanism(Protocol[State]):
    """The interface of a mechanism that releases an estimate for every aggregation and tick.

    Guarantee: as for `StreamMechanism`, an event being a change of one leaf's count at one tick
    (docs/proofs/streams.md).
    """

    @property
    def name(self) -> str:
        """The mechanism's name in documents and tables."""

    @property
    def hierarchy(self) -> Hierarchy:
        """The forest of aggregations for which it releases estimates."""

    @property
    def epsilon(self) -> Fraction:
        """The loss of one event, over all aggregations that contain it."""

    @property
    def sensitivity(self) -> int:
        """The largest change of one tick's count by one event."""

    def start(self) -> State:
        """Return the state of a hierarchy before its first tick."""

    def advance(self, states: Sequence[State], counts: Integers, *, noise: Noise) -> HierarchyTick[State]:
        """Advance one tick of some hierarchies. `counts` has shape (hierarchies, leaves), integer units."""
