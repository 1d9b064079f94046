"""Sums of sliding windows of one length by binary trees over blocks of ticks: SW_w.

Blocks are as long as the window. Each has a binary tree, and every sum of the tree gets noise. A window is the end of
one block and the beginning of the next. A node that would reach beyond its block ends with it, so the window may have
any length.

| here | the thesis |
|---|---|
| window, levels | w, log2(w) + 1 |

References: J. Bolot et al., Private decayed predicate sums on streams, ICDT 2013, as Chen's thesis runs it in section
5.6.2. Proof: docs/proofs/streams.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms.formula import Integers
from mechanisms.noise.exact import check_rate
from mechanisms.protocol import Noise
from mechanisms.streams.perturber import add_noise
from mechanisms.streams.stream import Tick, check_budget, check_counts


@dataclass(frozen=True, slots=True)
class BlockTreeState:
    """The state between ticks: `ticks` counts the ticks of the current block so far.

    For each level, leaves first, `sums` has the true sum of the incomplete node, and `nodes` the noisy sums of the
    complete ones. `before` has the noisy sums of the previous block, if there was one.
    """

    ticks: int
    sums: tuple[int, ...]
    nodes: tuple[tuple[int, ...], ...]
    before: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class BlockTree:
    """Estimates of the sum over the last `window` ticks, or over all ticks while there are fewer.

    Guarantee: `epsilon` at event level (docs/proofs/streams.md).

    Raises:
        Unachievable: the noise lies outside the range of exact sampling.
        ValueError: a parameter outside its range.
    """

    epsilon: Fraction
    sensitivity: int
    window: int
    name: str = "block_tree"

    def __post_init__(self) -> None:
        """Check every parameter's range."""
        check_budget(epsilon=self.epsilon, sensitivity=self.sensitivity)
        if self.window < 1:
            raise ValueError("a window has a tick or more")
        check_rate(self.rate)

    @property
    def levels(self) -> int:
        """The height of a block's tree, which is the number of sums that contain one count."""
        return (self.window - 1).bit_length() + 1

    @property
    def rate(self) -> Fraction:
        """The rate of the noise on every sum."""
        return self.epsilon / (self.levels * self.sensitivity)

    def start(self) -> BlockTreeState:
        """Return the state before the first tick."""
        empty = ((),) * self.levels
        return BlockTreeState(ticks=0, sums=(0,) * self.levels, nodes=empty, before=())

    def advance(self, states: Sequence[BlockTreeState], counts: Integers, *, noise: Noise) -> Tick[BlockTreeState]:
        """Advance one tick. The nodes that it completes get their noise."""
        check_counts(states, counts)
        begun = [self._begin_block(state) if state.ticks == self.window else state for state in states]
        sums = [[total + count for total in state.sums] for state, count in zip(begun, counts.tolist(), strict=True)]
        complete = [self._list_complete_levels(state.ticks + 1) for state in begun]
        exact = [total[level] for total, levels in zip(sums, complete, strict=True) for level in levels]
        noisy = iter(add_noise(np.array(exact, dtype=np.int64), rate=self.rate, noise=noise).tolist())
        after = []
        for state, total, levels in zip(begun, sums, complete, strict=True):
            nodes = list(state.nodes)
            for level in levels:
                nodes[level] = (*nodes[level], next(noisy))
                total[level] = 0
            after.append(
                BlockTreeState(ticks=state.ticks + 1, sums=tuple(total), nodes=tuple(nodes), before=state.before)
            )
        return Tick(states=tuple(after), estimates=tuple(Fraction(self._sum_window(state)) for state in after))

    def _begin_block(self, state: BlockTreeState) -> BlockTreeState:
        fresh = self.start()
        return BlockTreeState(ticks=0, sums=fresh.sums, nodes=fresh.nodes, before=state.nodes)

    def _list_complete_levels(self, ticks: int) -> list[int]:
        """Return the levels of the nodes that end at tick number `ticks` of a block."""
        return [level for level in range(self.levels) if ticks % (1 << level) == 0 or ticks == self.window]

    def _sum_window(self, state: BlockTreeState) -> int:
        total = sum(state.nodes[level][place] for level, place in self._list_nodes(0, state.ticks))
        if state.before:
            total += sum(state.before[level][place] for level, place in self._list_nodes(state.ticks, self.window))
        return total

    def _list_nodes(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the level and place of the fewest nodes that make up these ticks of a block, from one of its ends."""
        while start < end:
            level = self.levels - 1
            while start % (1 << level) or min(start + (1 << level), self.window) > end:
                level -= 1
            yield level, start >> level
            start = min(start + (1 << level), self.window)
