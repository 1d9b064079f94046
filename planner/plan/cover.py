"""The cheapest set of prime implicants that covers all true points: branch and bound over essential choices."""

from collections.abc import Sequence
from dataclasses import dataclass

NODES = 400  # of the search; beyond, the best cover found so far is kept


@dataclass(frozen=True, slots=True)
class Candidate:
    """A prime implicant: the points that it covers, as bits of an integer, and its number of literals."""

    points: int
    literals: int

    @property
    def cost(self) -> int:
        """The rank by which covers are compared: first by the number of literals, then by the number of terms."""
        return (self.literals << 16) + 1


def find_minimal_cover(points: int, candidates: Sequence[Candidate]) -> tuple[int, ...]:
    """Return the indices, ascending, of a cover with the fewest literals, then the fewest terms.

    Guarantee: the union is exactly `points`. All candidates together must cover exactly `points`. No chosen candidate
    is redundant. The cost is minimal unless the search ran into its limit of `NODES`. Deterministic.

    References: Petrick 1956; the essential rows of McCluskey 1956.
    """
    essential = _find_essential_candidates(candidates)
    covered = 0
    for index in essential:
        covered |= candidates[index].points
    rest = points & ~covered
    if not rest:
        return essential
    open_candidates = [index for index, candidate in enumerate(candidates) if candidate.points & rest]
    search = _Search(candidates=candidates, usable=open_candidates)
    search.descend(rest, chosen=(), cost=0)
    return tuple(sorted((*essential, *search.best)))


def _find_essential_candidates(candidates: Sequence[Candidate]) -> tuple[int, ...]:
    once = twice = 0
    for candidate in candidates:
        twice |= once & candidate.points
        once |= candidate.points
    alone = once & ~twice
    return tuple(index for index, candidate in enumerate(candidates) if candidate.points & alone)


class _Search:
    """Branch and bound, seeded with the greedy cover."""

    def __init__(self, *, candidates: Sequence[Candidate], usable: Sequence[int]) -> None:
        self._candidates = candidates
        self._usable = usable
        self._nodes = 0
        self.best: tuple[int, ...] = ()
        self._best_cost: int | None = None

    def descend(self, rest: int, *, chosen: tuple[int, ...], cost: int) -> None:
        if self._best_cost is None:
            self._seed(rest)
        if not rest:
            if self._best_cost is None or cost < self._best_cost:
                self.best, self._best_cost = chosen, cost
            return
        self._nodes += 1
        point = rest & -rest
        covering = sorted(
            (index for index in self._usable if self._candidates[index].points & point),
            key=lambda index: (
                -(self._candidates[index].points & rest).bit_count(),
                self._candidates[index].cost,
                index,
            ),
        )
        for index in covering:
            candidate = self._candidates[index]
            dear = self._best_cost is not None and cost + candidate.cost >= self._best_cost
            if dear or self._nodes > NODES:
                continue
            self.descend(rest & ~candidate.points, chosen=(*chosen, index), cost=cost + candidate.cost)

    def _seed(self, rest: int) -> None:
        chosen: list[int] = []
        left = rest
        while left:
            index = min(
                self._usable,
                key=lambda one: (-(self._candidates[one].points & left).bit_count(), self._candidates[one].cost, one),
            )
            chosen.append(index)
            left &= ~self._candidates[index].points
        for index in reversed(chosen.copy()):
            others = 0
            for other in chosen:
                others |= 0 if other == index else self._candidates[other].points
            if not rest & ~others:
                chosen.remove(index)
        self.best = tuple(chosen)
        self._best_cost = sum(self._candidates[index].cost for index in chosen)
