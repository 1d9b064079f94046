"""A running sum by a tree of odd branching whose nodes may be taken away as well as added: few of them make any sum.

The number of ticks is written with digits from `-(k-1)/2` to `(k-1)/2` to the odd base `k`; a positive digit adds so
many nodes of its level, a negative one takes them away from what a higher digit added too much. What is released is
the true sum plus, or minus, the noise of these nodes: the counts of ticks to come, which a node that is taken away
reaches into, cancel out, so nothing looks ahead.

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
    """Ticks and true sum so far.

    By level, leaves first, the noises of the nodes just before the multiple that the higher digits make, and of those
    just behind it as far as they have been drawn. All of it is secret.
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
        """The least number of digits that write every number of ticks up to the horizon."""
        levels = 1
        while self.branching**levels < 2 * self.horizon + 1:
            levels += 1
        return levels

    @property
    def rate(self) -> Fraction:
        """Of the noise of every node."""
        return self.epsilon / (self.levels * self.sensitivity)

    def start(self) -> SignedTreeState:
        """Return the state before the first tick."""
        none = ((),) * self.levels
        return SignedTreeState(ticks=0, total=0, before=none, behind=none)

    def advance(self, states: Sequence[SignedTreeState], counts: Integers, *, noise: Noise) -> Tick[SignedTreeState]:
        """Advance one tick: the nodes that are needed first now get their noise."""
        check_counts(states, counts)
        if any(state.ticks == self.horizon for state in states):
            raise ValueError("the horizon is over")
        half = self.branching // 2
        turns = [self._plan_tick(state) for state in states]
        draws = sum(half * len(turn.moved) + len(turn.grown) for turn in turns)
        drawn = iter(noise.draw_discrete_laplace(rate=self.rate, size=draws).tolist())
        after, estimates = [], []
        for state, turn, count in zip(states, turns, counts.tolist(), strict=True):
            before, behind = list(state.before), list(state.behind)
            for level in turn.moved:
                before[level], behind[level] = tuple(next(drawn) for _ in range(half)), ()
            for level in turn.grown:
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
        return _TickPlan(digits=digits, moved=moved, grown=grown)

    def _list_multiples(self, ticks: int) -> list[int]:
        """Return the multiple of the length of its nodes that is nearest to so many ticks, by level.

        The highest is none.
        """
        found = [ticks]
        for _ in range(self.levels):
            found.append((found[-1] + self.branching // 2) // self.branching)
        return found


@dataclass(frozen=True, slots=True)
class _TickPlan:
    """The changes of one tick.

    They are the digits, lowest first, the levels whose higher digits change, so what lies before their multiple is
    drawn, and those that reach one node farther behind it.
    """

    digits: tuple[int, ...]
    moved: tuple[int, ...]
    grown: tuple[int, ...]
