"""A bound on DPPWLM's error rates under every rule of choosing levels.

DPPWLM hands the shares of skipped levels on, and its rule sees the noise. Take the rule as an adversary who sees one
literal's own noise and picks, after each look, any later level of the finite grid: the greatest probability of an
error is the value of a finite game, found by going back from the last level. Whatever else a rule sees (other keys,
other functionals) is independent of this noise, so no rule does better; and where the formula is settled first, the
literal's verdict no longer counts.

The value given the present noise falls with that noise: the finer noise given the coarser one grows stochastically
with it (docs/proofs/carried_shares.md, 3), the winning zone lies below and the losing zone above. So the noise of a
level is cut into cells, each with its value at its least point, which is never too low: **a certified upper bound**,
exact where every cell is one integer (256 cells come within one per cent). The law is gradual release's, in closed
form; integer cut-offs are those of the run. Distance 1 (or minus the tolerance) is the worst: with the same noise, a
value further off errs no more.

| here | docs/proofs/gradual_release.md |
|---|---|
| coarse, fine | -ln a1, -ln a2 |
| together, ratio | s, r |

References: MIDE theorem 5.6; docs/proofs/carried_shares.md; for formulas settled early docs/proofs/short_cuts.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mechanisms.noise.discrete_laplace import compute_lower_tail
from mechanisms.protocol import Look

Values = npt.NDArray[np.float64]
Node = tuple[int, int]

CELLS = 256  # of the grid on which carried shares are computed: finer ones are tighter and slower
_MARGIN = 1e-9  # relative: more than rounding loses on the way


@dataclass(frozen=True, slots=True)
class Zones:
    """The noise values with which one look decides wrongly, and those with which it decides rightly.

    Noise of at most `wrong_up_to` leads to a wrong decision, noise of at least `right_from` to a right one.
    """

    wrong_up_to: int
    right_from: int


class ZonesOf(Protocol):
    """A function that returns the zones of one look for one kind of error. The last look leaves nothing undecided."""

    def __call__(self, look: Look, *, is_last: bool) -> Zones:
        """Return the zones of one look, in noise or mirrored noise."""


def find_zones_of_misses(look: Look, *, is_last: bool) -> Zones:
    """Return the zones of a look for misses. A miss is the rejection of a literal that holds by distance one."""
    return Zones(wrong_up_to=look.rejecting - 1, right_from=look.rejecting if is_last else look.accepting - 1)


def make_zones_of_returns(tolerance: int) -> ZonesOf:
    """Return the function that finds a look's zones for wrong returns, with the sign of the noise reversed.

    A wrong return is an acceptance at minus the tolerance.
    """

    def zones(look: Look, *, is_last: bool) -> Zones:
        accepting = look.rejecting + 1 if is_last else look.accepting
        return Zones(wrong_up_to=-tolerance - accepting, right_from=-tolerance - look.rejecting)

    return zones


def bound_any_rule(
    levels: Sequence[Fraction],
    *,
    fine_steps: int,
    look_of: Callable[[Fraction, int], Look],
    zones_of: ZonesOf,
    cells: int = CELLS,
) -> float:
    """Bound the probability that one literal is decided wrongly under the worst choice of levels.

    Parameters:
        levels: the plan, coarse to fine, at least two levels. Every interval is cut into `fine_steps` steps.
        look_of: returns the look at a rate that uses a number of parts of the share.
        zones_of: returns the zones of a look.
        cells: the number of cells of a level's undecided zone, >= 1.
    """
    last = (len(levels) - 1, fine_steps)
    nodes = [(0, fine_steps), *((i, s) for i in range(1, len(levels)) for s in range(1, fine_steps + 1))]

    def rate(node: Node) -> Fraction:
        high, low = levels[node[0]], levels[max(0, node[0] - 1)]
        return low + (high - low) * node[1] / fine_steps if node[0] else high

    def zones(node: Node, parts: int) -> Zones:
        return zones_of(look_of(rate(node), parts), is_last=node == last)

    edges = {node: _list_edges(zones(node, 1), cells) for node in nodes if node != last}
    later: dict[Node, Values] = {}
    for node in reversed(nodes[:-1]):
        start = edges[node][:-1]
        best = np.zeros(start.size)
        for following in _list_choices(node, nodes, last):
            zone = zones(following, max(1, following[0] - node[0]))
            conditional = RefinedNoise(coarse=float(rate(node)), fine=float(rate(following)), value=start)
            chance = conditional.compute_cumulative_probability(np.array([zone.wrong_up_to]))[:, 0]
            if following != last:
                within = np.clip(edges[following], zone.wrong_up_to + 1, zone.right_from)
                chance = (
                    chance + np.diff(conditional.compute_cumulative_probability(within - 1), axis=1) @ later[following]
                )
            np.maximum(best, chance, out=best)
        later[node] = best
    return min(1.0, _sum_from_start(nodes[0], float(levels[0]), zones, edges, later) * (1.0 + _MARGIN))


def _list_choices(node: Node, nodes: Sequence[Node], last: Node) -> list[Node]:
    """Return the steps that algorithm 4 may take.

    They lead to a later interval or, inside the last interval, to its end.
    """
    return [other for other in nodes if other[0] > node[0]] or [last]


def _sum_from_start(
    first: Node,
    rate: float,
    zones: Callable[[Node, int], Zones],
    edges: dict[Node, Values],
    later: dict[Node, Values],
) -> float:
    below = np.array([_compute_probability_below(rate, edge) for edge in edges[first]])
    return compute_lower_tail(rate, zones(first, 1).wrong_up_to) + float(np.diff(below) @ later[first])


def _compute_probability_below(rate: float, edge: float) -> float:
    return compute_lower_tail(rate, int(edge) - 1)


def _list_edges(zone: Zones, cells: int) -> Values:
    """Return the first integers of the open zone's cells, and its end. A short zone has a cell for every integer."""
    width = zone.right_from - zone.wrong_up_to - 1
    if width <= cells:
        return np.arange(zone.wrong_up_to + 1, zone.right_from + 1, dtype=np.float64)
    return np.round(zone.wrong_up_to + 1 + np.linspace(0.0, float(width), cells + 1))


@dataclass(frozen=True, slots=True)
class RefinedNoise:
    """The conditional distribution of finer noise, given values of coarser noise."""

    coarse: float
    fine: float
    value: Values

    def compute_cumulative_probability(self, bound: Values) -> Values:
        """Return `P(V2 <= bound | V1 = value)`, of shape (values, bounds)."""
        bound = bound.astype(np.float64)
        result = np.empty((self.value.size, bound.size))
        up = self.value >= 0.0
        result[up] = self._compute_at_most(self.value[up, np.newaxis], bound)
        result[~up] = 1.0 - self._compute_at_most(-self.value[~up, np.newaxis], -bound - 1.0)
        return result

    def _compute_at_most(self, value: Values, bound: Values) -> Values:
        """Return `compute_cumulative_probability` for `value >= 0`.

        The mixture has a left, a middle and a right part, and an atom.
        """
        together, ratio = self.coarse + self.fine, self.fine - self.coarse
        risen = np.exp(-ratio * (value + 1.0))
        atom = risen * math.expm1(-2.0 * self.coarse) / math.expm1(-2.0 * self.fine)
        side = math.exp(-together) / -math.expm1(-together)
        right = np.exp(-ratio * value) * side
        whole = side + np.expm1(-ratio * (value + 1.0)) / math.expm1(-ratio) + right
        left = side * np.exp(-together * np.maximum(-1.0 - bound, 0.0))
        middle = -np.expm1(-ratio * np.maximum(bound + 1.0, 0.0)) / -math.expm1(-ratio)
        rest = (1.0 - atom) / whole
        under = rest * (left + middle)
        over = 1.0 - rest * right * np.exp(-together * np.maximum(bound - value, 0.0))
        return np.asarray(np.where(bound < value, under, over))
