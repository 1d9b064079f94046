"""A running sum by a tree of odd branching whose nodes may be added or subtracted, so that few nodes make any sum.

The number of ticks is written to the odd base `k` with digits from `-(k-1)/2` to `(k-1)/2`. A positive digit adds that
number of nodes of its level. A negative digit subtracts nodes that a higher digit added in excess. The released value
is the true sum plus, or minus, the noise of these nodes. A subtracted node reaches into future ticks, but their counts
cancel out, so nothing looks ahead.

| here | the paper |
|---|---|
| branching, levels | k, h |
| horizon | n, at most (k**h - 1) / 2 |

References: J. D. Andersson, R. Pagh, T. A. Steiner, S. Torkamani, Count on your elders: Laplace vs Gaussian noise,
2024 (arXiv 2408.07021). Proof: docs/proofs/streams.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from mechanisms.formula import Integers
from mechanisms.noise.exact import check_rate
from mechanisms.protocol import Noise
from mechanisms.streams.stream import Tick, check_budget, check_counts


@dataclass(frozen=True, slots=True)
class SignedTreeState:
    """The state between ticks: the number of ticks and the true sum so far, with the noise of nodes.

    All of it is secret. Take the largest multiple of a level's length up to now. For each level, leaves first, `before`
    has the noises of the nodes just before that multiple, and `behind` those of the nodes just after it that have been
    drawn.
    """

    ticks: int
    total: int
    before: tuple[tuple[int, ...], ...]
    behind: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class SignedTree:
    """Estimates of the sum of all counts so far, up to the horizon.

    Guarantee: `epsilon` at event level, over the whole horizon (docs/proofs/streams.md).

    Parameters:
        branching: odd, 3 or more.

    Raises:
        Unachievable: the noise lies outside the range of exact sampling.
        ValueError: a parameter outside its range, or a tick beyond the horizon.

    >>> SignedTree(epsilon=Fraction(1), sensitivity=1, horizon=365, branching=3).levels
    7
    """

    epsilon: Fraction
    sensitivity: int
    horizon: int
    branching: int
    name: str = "signed_tree"

    def __post_init__(self) -> None:
        """Check every parameter's range."""
        check_budget(epsilon=self.epsilon, sensitivity=self.sensitivity)
        if self.horizon < 1 or self.branching < 3 or self.branching % 2 == 0:
            raise ValueError("a horizon has a tick or more, and a signed tree an odd branching of three or more")
        check_rate(self.rate)

    @property
    def levels(self) -> int:
        """The least number of levels with which the tree covers every number of ticks up to the horizon."""
        levels = 1
        while self.branching**levels < 2 * self.horizon + 1:
            levels += 1
        return levels

    @property
    def rate(self) -> Fraction:
        """The rate of the noise of every node."""
        return self.epsilon / (self.levels * self.sensitivity)

    def start(self) -> SignedTreeState:
        """Return the state before the first tick."""
        none = ((),) * self.levels
        return SignedTreeState(ticks=0, total=0, before=none, behind=none)

    def advance(self, states: Sequence[SignedTreeState], counts: Integers, *, noise: Noise) -> Tick[SignedTreeState]:
        """Advance one tick. Nodes that are needed for the first time get their noise."""
        check_counts(states, counts)
        if any(state.ticks == self.horizon for state in states):
            raise ValueError("the horizon is over")
        half = self.branching // 2
        turns = [self._plan_tick(state) for state in states]
        draws = sum(half * len(turn.moved_levels) + len(turn.grown_levels) for turn in turns)
        drawn = iter(noise.draw_discrete_laplace(rate=self.rate, size=draws).tolist())
        after, estimates = [], []
        for state, turn, count in zip(states, turns, counts.tolist(), strict=True):
            before, behind = list(state.before), list(state.behind)
            for level in turn.moved_levels:
                before[level], behind[level] = tuple(next(drawn) for _ in range(half)), ()
            for level in turn.grown_levels:
                behind[level] = (*behind[level], next(drawn))
            total = state.total + count
            after.append(
                SignedTreeState(ticks=state.ticks + 1, total=total, before=tuple(before), behind=tuple(behind))
            )
            for digit, taken, added in zip(turn.digits, before, behind, strict=True):
                total += sum(added) if digit > 0 else -sum(taken[half + digit :])
            estimates.append(Fraction(total))
        return Tick(states=tuple(after), estimates=tuple(estimates))

    def _plan_tick(self, state: SignedTreeState) -> "_TickPlan":
        multiples, last = self._list_multiples(state.ticks + 1), self._list_multiples(state.ticks)
        digits = tuple(low - self.branching * high for low, high in pairwise(multiples))
        moved = tuple(level for level in range(self.levels) if multiples[level + 1] != last[level + 1])
        grown = tuple(level for level, digit in enumerate(digits) if digit > len(state.behind[level]))
        return _TickPlan(digits=digits, moved_levels=moved, grown_levels=grown)

    def _list_multiples(self, ticks: int) -> list[int]:
        """Return for each level the multiple of its nodes' length that is nearest to `ticks`.

        At the highest level it is zero.
        """
        found = [ticks]
        for _ in range(self.levels):
            found.append((found[-1] + self.branching // 2) // self.branching)
        return found


@dataclass(frozen=True, slots=True)
class _TickPlan:
    """The changes of a signed tree at one tick.

    `digits` are those of the new number of ticks, lowest first. `moved_levels` are the levels whose higher digits
    change, so that the noises before their multiple are drawn. `grown_levels` are the levels that need one more node
    after it.
    """

    digits: tuple[int, ...]
    moved_levels: tuple[int, ...]
    grown_levels: tuple[int, ...]
