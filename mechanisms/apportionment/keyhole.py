"""Keyhole's apportionment: shares per functional under the exact constraints, for the least joint loss.

An OR needs the largest of its children's shares, not their sum, and a repeated literal is not run again. The loss is
convex in the logarithms of the shares, up to the granularity of the noise. So it is minimised by solving linearised
programmes and keeping the best solution.

Proof: docs/proofs/apportionment.md.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np

from mechanisms.apportionment.clauses import Constraint
from mechanisms.apportionment.convex_split import Floats, SplitProgram, minimise_largest_objective
from mechanisms.apportionment.tree import (
    SharesTree,
    bound_shares,
    build_shares_tree,
    is_read_once,
    share_in_closed_form,
)
from mechanisms.formula import AllOf, AnyOf, Formula, list_literals
from mechanisms.protocol import Exposure

LossCurve = Callable[[int, float, float], tuple[float, float, float]]
"""`loss(functional, fnr share, fpr share)`: epsilon and its slopes (<= 0) in the logarithms of the two shares."""

_ROUNDS = 5  # linearised programmes at most; about three are usual for typical questions
_FIRST_STEP, _LAST_STEP = 0.5, 0.008  # in logarithms of weights and shares: a bend may be off by as much as a half
_MOST_PASSES = 40  # over all coordinates; some ten are usual
_MOST_POLISHED = 4  # functionals: what steps cost grows with their square
_LEAST_SAVED = 1e-4  # of the loss, for which steps of one length are repeated
_WORTHWHILE = 5e-4  # a further round must save so much of the loss
_MOST_ROWS = 60  # programmes of a tree at most; 7 to 8 are usual (docs/benchmarks.md)
_MOST_REPEATED = 4  # repeated functionals whose neighbouring constraints are added beforehand, each some tree bounds
_NEARBY = (0.5, 0.8, 0.93, 0.98, 1.02, 1.08, 1.25, 2.0)  # moves a repeated share, to find what binds next

_Leaves: TypeAlias = tuple[tuple[int, int], ...]  # functionals, and how often each


@dataclass(frozen=True, slots=True)
class Shares:
    """The parts of the false-negative and the false-positive rate that each functional's test may use."""

    fnr: tuple[float, ...]
    fpr: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Objective:
    """The loss to minimise, and the contract to keep.

    `formulas` are those with literals. Each may use the whole of both rates. `used_functionals` lists their
    functionals. `exposures` are the parts by which one unit changes these functionals at once, in the order of
    `used_functionals`. The loss is the largest sum, over exposures, of epsilons times parts. `is_tied` if the loss
    depends only on the smaller of the two shares, as TSLM's does.
    """

    formulas: tuple[Formula, ...]
    used_functionals: tuple[int, ...]
    functional_count: int
    exposures: tuple[Exposure, ...]
    loss: LossCurve
    fnr: float
    fpr: float
    is_tied: bool

    @property
    def is_plain_sum(self) -> bool:
        """Return True if the loss is the sum of all epsilons."""
        return len(self.exposures) == 1 and all(part == 1 for part in self.exposures[0])

    @property
    def has_closed_form(self) -> bool:
        """The parts of the two error rates, false negative and false positive, that each functional's test may use.

        The constraints decide if they really have.
        """
        return self.is_plain_sum and not self.is_tied and len(self.formulas) == 1 and is_read_once(self.formulas[0])


@dataclass(frozen=True, slots=True)
class _Effort:
    """The limits of a search: the most linearised programmes, and the accuracy of each.

    `excess` is the part of a rate by which the tree's bound may still exceed it. Scaling removes it in the end, which
    costs less than a thousandth of the loss.
    """

    rounds: int
    gap: float
    excess: float


_FULL_EFFORT = _Effort(rounds=_ROUNDS, gap=1e-5, excess=3e-3)
_ROUGH_EFFORT = _Effort(rounds=1, gap=1e-2, excess=6e-3)
"""While constraints are still being found: their number is the cost, not how near each solution is."""


@dataclass(frozen=True, slots=True)
class _FoundShares:
    """Shares and their logarithms, at which the next programme may start."""

    shares: Shares
    point: Floats


def apportion_by_clauses(
    objective: Objective,
    *,
    fnr: Sequence[Constraint],
    fpr: Sequence[Constraint],
    weigh_fnr: Callable[[int, int], float],
    weigh_fpr: Callable[[int, int], float],
    trees: Sequence[Formula] = (),
    least: float = 1.0,
) -> Shares:
    """Return shares of least loss under the constraints of all terms and clauses.

    The weighted shares of each constraint sum to at most the contract's rate.

    Parameters:
        fnr, fpr: the formulas' constraints.
        weigh_fnr, weigh_fpr: the error rate at a distance as a multiple of the share, `weigh(functional, distance)`.
        trees: the formulas with too many constraints to enumerate. They keep the contract by the tree's bounds.
        least: the least weight of a functional in a constraint. No share exceeds the whole rate, even with `least`
            below 1.
    """
    plain = all(len(part.scenarios[0]) == 1 for constraint in (*fnr, *fpr) for part in constraint.parts)
    if plain and not trees and objective.has_closed_form:
        return _apportion_read_once_formula(objective)
    rows_fnr = _build_matrix(objective, fnr, weigh_fnr, least) / objective.fnr
    rows_fpr = _build_matrix(objective, fpr, weigh_fpr, least) / objective.fpr
    if len(objective.formulas) > 1:
        rows_fnr, rows_fpr = _drop_slack(rows_fnr), _drop_slack(rows_fpr)
    if trees:
        return _apportion_under_trees(objective, trees, rows_fnr, rows_fpr)
    return _minimise_loss(objective, rows_fnr, rows_fpr, _FULL_EFFORT, start=None).shares


def apportion_by_trees(objective: Objective) -> Shares:
    """Return shares of least loss under the tree bounds of all formulas.

    Each violated sum of leaves becomes a constraint, until every tree's bound holds. The optimisation is rough while
    constraints are still being found, and accurate at the end.
    """
    if objective.has_closed_form:
        return _apportion_read_once_formula(objective)
    nothing = np.zeros((0, len(objective.used_functionals)))
    return _apportion_under_trees(objective, objective.formulas, nothing, nothing)


def _drop_slack(rows: Floats) -> Floats:
    """Return the rows that no other row dominates. Several formulas often have the same constraints."""
    distinct = np.unique(rows, axis=0)
    kept = [row for row in distinct if not np.any(np.all(distinct >= row, axis=1) & np.any(distinct > row, axis=1))]
    return np.array(kept).reshape(-1, rows.shape[1])


def _apportion_under_trees(
    objective: Objective, trees: Sequence[Formula], given_fnr: Floats, given_fpr: Floats
) -> Shares:
    """Return shares that obey the given rows and the bounds of the trees."""
    sides = [
        _Side(
            bound,
            tuple(
                build_shares_tree(part, is_fnr=fnr) for tree in trees for part in _list_bounding_parts(tree, is_fnr=fnr)
            ),
            {},
        )
        for bound, fnr in ((objective.fnr, True), (objective.fpr, False))
    ]
    counted = Counter(cut.functional for tree in trees for cut in list_literals(tree))
    repeated = tuple(functional for functional, count in counted.items() if count > 1)[:_MOST_REPEATED]
    shares = Shares(
        fnr=(objective.fnr,) * objective.functional_count, fpr=(objective.fpr,) * objective.functional_count
    )
    excess = 1.0
    effort, point = _ROUGH_EFFORT, None
    for _ in range(_MOST_ROWS):
        excess = 1.0
        for side, chosen in zip(sides, (shares.fnr, shares.fpr), strict=True):
            for part in side.parts:
                value, leaves = bound_shares(part, chosen)
                if value > side.bound * (1.0 + 1e-6):
                    for cut_off in dict.fromkeys((leaves, *_list_leaves_of_near_shares(part, chosen, repeated))):
                        side.add_row(cut_off, objective)
                excess = max(excess, value / side.bound)
        if excess <= 1.0 + effort.excess:
            if effort is _FULL_EFFORT or (point is None and not given_fnr.size + given_fpr.size):
                break
            effort = _FULL_EFFORT
        rows = [
            np.vstack((given, _stack_rows(side.rows, objective)))
            for side, given in zip(sides, (given_fnr, given_fpr), strict=True)
        ]
        found = _minimise_loss(objective, rows[0], rows[1], effort, start=point)
        shares, point = found.shares, found.point
    return Shares(fnr=tuple(share / excess for share in shares.fnr), fpr=tuple(share / excess for share in shares.fpr))


@dataclass(frozen=True, slots=True)
class _Side:
    """One error rate of a tree: its bound, and the parts whose largest bound is the tree's.

    The rows are the sums of leaves that exceeded the bound so far.
    """

    bound: float
    parts: tuple[SharesTree, ...]
    rows: dict[_Leaves, Floats]

    def add_row(self, leaves: Sequence[int], objective: Objective) -> None:
        """Add the constraint that the shares of these leaves' functionals sum to the bound at most."""
        counts = tuple(sorted(Counter(leaves).items()))
        if counts not in self.rows:
            row = np.zeros(len(objective.used_functionals))
            for functional, count in counts:
                row[objective.used_functionals.index(functional)] = count
            self.rows[counts] = row / self.bound


def _list_leaves_of_near_shares(
    tree: SharesTree, shares: Sequence[float], repeated: Sequence[int]
) -> Iterator[tuple[int, ...]]:
    """Yield the leaves that would attain the bound if a repeated functional's share were somewhat smaller or larger.

    The tree implies a constraint for any leaves that its nodes may choose. These leaves are likely to bind next.
    """
    for functional in repeated if tree.depends_on_shares else ():
        for factor in _NEARBY:
            moved = list(shares)
            moved[functional] *= factor
            yield bound_shares(tree, moved)[1]


def _list_bounding_parts(formula: Formula, *, is_fnr: bool) -> tuple[Formula, ...]:
    """Return the parts whose bounds' maximum is the formula's bound.

    These are the children of an OR for false negatives, and of an AND for false positives.
    """
    largest = AnyOf if is_fnr else AllOf
    if not isinstance(formula, largest) or not formula.children:
        return (formula,)
    return tuple(part for child in formula.children for part in _list_bounding_parts(child, is_fnr=is_fnr))


def _stack_rows(rows: Mapping[_Leaves, Floats], objective: Objective) -> Floats:
    return np.array(list(rows.values())) if rows else np.zeros((0, len(objective.used_functionals)))


def _build_matrix(
    objective: Objective, constraints: Sequence[Constraint], weigh: Callable[[int, int], float], least: float
) -> Floats:
    rows = np.zeros((len(constraints), len(objective.used_functionals)))
    for row, constraint in zip(rows, constraints, strict=True):
        for part in constraint.parts:
            weighed = [sum(weigh(part.functional, d) for d in scenario) for scenario in part.scenarios]
            row[objective.used_functionals.index(part.functional)] = max(least, *weighed)
    return rows if least >= 1.0 else np.vstack((rows, np.eye(len(objective.used_functionals))))


def _apportion_read_once_formula(objective: Objective) -> Shares:
    """Return the closed form with weights from the true loss.

    The weights are iterated, and searched nearby at the end.
    """
    at_first = [1.0] * objective.functional_count
    for functional in objective.used_functionals:
        _, slope_fnr, slope_fpr = objective.loss(functional, 0.5 * objective.fnr, 0.5 * objective.fpr)
        at_first[functional] = -0.5 * (slope_fnr + slope_fpr)
    weights = [at_first, at_first]
    best, best_weights, least = None, weights, math.inf
    for _ in range(_ROUNDS):
        shares = _apportion_in_closed_form(objective, weights)
        total, slopes = 0.0, ([0.0] * objective.functional_count, [0.0] * objective.functional_count)
        for functional in objective.used_functionals:
            epsilon, slopes[0][functional], slopes[1][functional] = objective.loss(
                functional, shares.fnr[functional], shares.fpr[functional]
            )
            total += epsilon
        improved = total < least * (1.0 - _WORTHWHILE)
        if total < least:
            best, best_weights, least = shares, weights, total
        if not improved:
            break
        floor = 1e-6 * max(abs(slope) for side in slopes for slope in side)
        weights = [[max(-slope, floor) for slope in side] for side in slopes]
    assert best is not None
    if 1 < len(objective.used_functionals) <= _MOST_POLISHED:
        return _polish_closed_form(objective, best_weights, least)
    return best


def _apportion_in_closed_form(objective: Objective, weights: Sequence[Sequence[float]]) -> Shares:
    given = [
        share_in_closed_form(objective.formulas[0], bound=bound, weights=weights[side], is_fnr=side == 0)
        for side, bound in enumerate((objective.fnr, objective.fpr))
    ]
    return Shares(
        fnr=tuple(given[0].get(f, objective.fnr) for f in range(objective.functional_count)),
        fpr=tuple(given[1].get(f, objective.fpr) for f in range(objective.functional_count)),
    )


def _polish_closed_form(objective: Objective, weights: Sequence[Sequence[float]], least: float) -> Shares:
    """Search weights near the given ones. Return the closed form of least loss."""
    used = list(objective.used_functionals)
    loss = cache(objective.loss)

    def shares_at(point: Floats) -> Shares:
        moved = [list(side) for side in weights]
        for side, values in zip(moved, np.exp(point).reshape(2, -1).tolist(), strict=True):
            for functional, value in zip(used, values, strict=True):
                side[functional] = value
        return _apportion_in_closed_form(objective, moved)

    def total(point: Floats) -> float:
        shares = shares_at(point)
        return sum(loss(functional, shares.fnr[functional], shares.fpr[functional])[0] for functional in used)

    start = np.log(np.array([[max(side[functional], 1e-12) for functional in used] for side in weights])).reshape(-1)
    return shares_at(_search_along_coordinates(total, start, least))


def _search_along_coordinates(loss: Callable[[Floats], float], start: Floats, least: float) -> Floats:
    """Return the point of least loss that is found by steps along single coordinates.

    The loss of an integer test has kinks, so its slopes do not suffice.
    """
    point, step = start, _FIRST_STEP
    for _ in range(_MOST_PASSES):
        before = least
        for place in range(point.size):
            for moved in (step, -step):
                candidate = point.copy()
                candidate[place] += moved
                value = loss(candidate)
                if value < least:
                    point, least = candidate, value
                    break
        if least >= before * (1.0 - _LEAST_SAVED):
            step /= 2.0
        if step < _LAST_STEP:
            break
    return point


def _minimise_loss(
    objective: Objective, rows_fnr: Floats, rows_fpr: Floats, effort: _Effort, *, start: Floats | None
) -> _FoundShares:
    """Minimise the joint loss under linear constraints on the shares, by linearisation in their logarithms."""
    size = len(objective.used_functionals)
    rows_fnr, rows_fpr = _cover_unused(rows_fnr, objective.fnr), _cover_unused(rows_fpr, objective.fpr)
    rows = _join_sides(rows_fnr, rows_fpr, is_tied=objective.is_tied)
    upper = None if objective.is_tied else len(rows_fnr)
    parts = np.array(objective.exposures, dtype=np.float64)

    def losses(point: Floats) -> tuple[Floats, Floats]:
        epsilons, slopes = np.empty(size), np.zeros_like(point)
        for place, functional in enumerate(objective.used_functionals):
            other = place if objective.is_tied else size + place
            epsilons[place], slope_fnr, slope_fpr = objective.loss(
                functional, float(np.exp(point[place])), float(np.exp(point[other]))
            )
            slopes[place] += slope_fnr
            slopes[other] += slope_fpr
        return epsilons, slopes

    def judge(epsilons: Floats) -> float:
        return float((parts @ epsilons).max()) + 1e-3 * float(epsilons.sum())

    point = _make_even_start(rows) if start is None else _tighten_sides(rows, start, is_tied=objective.is_tied)
    epsilons, slopes = losses(point)
    least = judge(epsilons)
    if not objective.is_tied and start is None:
        # at first both sides weigh the same: the slopes of an integer test jump
        slopes = np.tile(0.5 * (slopes[:size] + slopes[size:]), 2)
    for _ in range(effort.rounds):
        weights = np.maximum(-slopes, 1e-3 * float(np.abs(slopes).max()) + 1e-300)
        repeated = parts if objective.is_tied else np.tile(parts, (1, 2))
        program = SplitProgram(
            rows=rows,
            weights=repeated * weights,
            offsets=parts @ epsilons + (repeated * weights) @ point,
            upper=upper,
        )
        aim = minimise_largest_objective(program, start=point, gap=effort.gap)
        before = least
        for length in (1.0, 0.5, 0.2):
            candidate = _tighten_sides(rows, point + length * (aim - point), is_tied=objective.is_tied)
            candidate_epsilons, candidate_slopes = losses(candidate)
            value = judge(candidate_epsilons)
            if value < least:
                point, epsilons, slopes, least = candidate, candidate_epsilons, candidate_slopes, value
                break
        if least > before * (1.0 - _WORTHWHILE):
            break
    if effort is _FULL_EFFORT and 1 < size <= _MOST_POLISHED:

        def judge_near(near: Floats) -> float:
            return judge(losses(_tighten_sides(rows, near, is_tied=objective.is_tied))[0])

        point = _tighten_sides(rows, _search_along_coordinates(judge_near, point, least), is_tied=objective.is_tied)
    return _FoundShares(shares=_spread_shares(objective, np.exp(point)), point=point)


def _join_sides(rows_fnr: Floats, rows_fpr: Floats, *, is_tied: bool) -> Floats:
    """Return both sides' rows over one vector of variables."""
    if is_tied:
        return np.vstack((rows_fnr, rows_fpr))
    return np.vstack((np.hstack((rows_fnr, np.zeros_like(rows_fnr))), np.hstack((np.zeros_like(rows_fpr), rows_fpr))))


def _cover_unused(rows: Floats, bound: float) -> Floats:
    """Return the rows, and one more for each share that is in none of them. It bounds that share alone."""
    missing = np.flatnonzero(rows.sum(axis=0) == 0.0)
    own = np.zeros((missing.size, rows.shape[1]))
    own[np.arange(missing.size), missing] = 1.0 / bound
    return np.vstack((rows, own))


def _make_even_start(rows: Floats) -> Floats:
    """Return shares that are each an equal part of their fullest row."""
    return np.asarray(-np.log((rows * rows.astype(bool).sum(axis=1)[:, np.newaxis]).max(axis=0)))


def _tighten_sides(rows: Floats, point: Floats, *, is_tied: bool) -> Floats:
    """Scale each side up until one of its rows is full."""
    size = rows.shape[1]
    sides = (slice(0, size),) if is_tied else (slice(0, size // 2), slice(size // 2, size))
    result = point.copy()
    for side in sides:
        result[side] -= np.log(float((rows[:, side] @ np.exp(point[side])).max()))
    return result


def _spread_shares(objective: Objective, shares: Floats) -> Shares:
    size = len(objective.used_functionals)
    fnr = [objective.fnr] * objective.functional_count
    fpr = [objective.fpr] * objective.functional_count
    for place, functional in enumerate(objective.used_functionals):
        fnr[functional] = float(shares[place])
        fpr[functional] = float(shares[place if objective.is_tied else size + place])
    return Shares(fnr=tuple(fnr), fpr=tuple(fpr))
