"""A small convex programme that splits error rates into shares.

Over `v = ln(share)`, minimise the largest of `offset_k - weights_k . v` subject to `rows . exp(v) <= 1`. With one
objective this is proportional fairness. Several objectives come from functionals that no record affects together. It is
solved by a log barrier and damped Newton steps. With at most two dozen variables a solution takes about a millisecond.

Proof: docs/proofs/apportionment.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_TIE_BREAK = 1e-3  # the weight of the sum beside the largest objective: enough to settle ties, too little to move it
_GROWTH = 40.0  # of the barrier's sharpness from stage to stage: fewer stages against more Newton steps in each
_INWARD = 1.05  # the start leaves every row a twentieth of room, for a barrier is infinite on the boundary
_FIRST_SHARPNESS = 10.0  # blunt enough for the first stage to be solved from any start
_MOST_STEPS = 120  # an end to what rounding could keep going; some twenty are usual
_WORTH_HALVING = 24  # variables from which two small systems take less time than one large one, calls included
_LARGEST = 700.0  # beyond, exp would be infinite; no share is near it


@dataclass(frozen=True, slots=True)
class SplitProgram:
    """The constraints and objectives of the programme.

    `rows` has shape (constraints, variables), and every variable is in some row. `weights` has shape (objectives,
    variables) and is >= 0.

    `upper` saves time if the first `upper` rows have only the first half of the variables, and the others the second
    half.
    """

    rows: Floats
    weights: Floats
    offsets: Floats
    upper: int | None = None


def minimise_largest_objective(program: SplitProgram, *, start: Floats, gap: float) -> Floats:
    """Return the `v` that minimises the largest objective, to within `gap` of the optimum relative to the mean weight.

    Among equal optima the smaller sum is taken.

    Guarantee: the result is strictly feasible.

    Parameters:
        start: a feasible `v` (it is moved inward first).
        gap: accuracy, for example 1e-6.
    """
    variables = start.size
    scale = max(float(program.weights.sum()) / variables, 1e-300)
    barrier = _Barrier(
        rows=program.rows,
        weights=program.weights / scale,
        offsets=program.offsets / scale,
        price=_make_linear_objective(program.weights / scale),
        has_several_objectives=len(program.weights) > 1,
        blocks=_cut_into_blocks(program),
    )
    point = start - np.log(_INWARD * max(1.0, float((program.rows @ np.exp(start)).max())))
    if barrier.has_several_objectives:
        point = np.append(point, float((barrier.offsets - barrier.weights @ point).max()) + 0.1)
    terms = len(program.rows) + len(program.weights)
    sharpness, target = _FIRST_SHARPNESS, terms / gap
    at = barrier.evaluate_barrier(point)
    if at is None:
        return np.asarray(point[:variables])  # so large that rounding took the room: the start is as good as any
    for _ in range(_MOST_STEPS):
        at, decrement = barrier.take_newton_step(at, sharpness)
        if decrement < 0.1:
            if sharpness >= target:
                break
            sharpness = min(sharpness * _GROWTH, target)
    return np.asarray(at.point[:variables])


def _cut_into_blocks(program: SplitProgram) -> "tuple[_Block, ...]":
    """Return the rows as blocks whose linear systems are solved separately."""
    count, variables = program.rows.shape
    if program.upper is None or len(program.weights) > 1 or variables < _WORTH_HALVING:
        return (_Block(program.rows, slice(0, count), slice(0, variables)),)
    upper, half = program.upper, variables // 2
    corners = ((slice(0, upper), slice(0, half)), (slice(upper, count), slice(half, variables)))
    return tuple(_Block(np.ascontiguousarray(program.rows[corner]), *corner) for corner in corners)


def _make_linear_objective(weights: Floats) -> Floats:
    """Return the linear objective on `v`: the only objective, or the tie-break between several."""
    if len(weights) == 1:
        return np.asarray(weights[0] + 1e-9)
    return np.asarray(_TIE_BREAK * weights.max(axis=0) + 1e-9)


class _Block(NamedTuple):
    """Some rows, cut to the variables that they have, with the places of both."""

    rows: Floats
    row_places: slice
    variable_places: slice


class _Point(NamedTuple):
    """A point with the parts of the barrier function that do not depend on the sharpness."""

    point: Floats
    shares: Floats
    slack: Floats
    room: Floats | None
    price_term: float
    bound: float
    barrier_term: float
    bound_barrier_term: float

    def compute_barrier(self, sharpness: float) -> float:
        """Return the value of the barrier function."""
        total = -sharpness * self.price_term - self.barrier_term
        return total if self.room is None else total + (sharpness * self.bound - self.bound_barrier_term)


@dataclass(frozen=True, slots=True)
class _Barrier:
    rows: Floats
    weights: Floats
    offsets: Floats
    price: Floats
    has_several_objectives: bool
    blocks: tuple[_Block, ...]

    def evaluate_barrier(self, point: Floats) -> _Point | None:
        """Return the parts of the barrier at a point, or None if the barrier is infinite there."""
        variables = self.rows.shape[1]
        v = point[:variables]
        if np.maximum.reduce(v) > _LARGEST:
            return None
        shares = np.exp(v)
        slack = 1.0 - self.rows @ shares
        if np.minimum.reduce(slack) <= 0.0:
            return None
        priced, barred = float(self.price @ v), float(np.add.reduce(np.log(slack)))
        if not self.has_several_objectives:
            return _Point(point, shares, slack, None, priced, 0.0, barred, 0.0)
        bound = float(point[variables])
        room = bound - self.offsets + self.weights @ v
        if np.minimum.reduce(room) <= 0.0:
            return None
        return _Point(point, shares, slack, room, priced, bound, barred, float(np.add.reduce(np.log(room))))

    def take_newton_step(self, at: _Point, sharpness: float) -> tuple[_Point, float]:
        """Return one damped Newton step and the decrement before it."""
        pull = 1.0 / at.slack
        slope, curved = np.empty_like(at.shares), []
        for rows, own, about in self.blocks:
            steep = (rows * pull[own, np.newaxis]) * at.shares[about]
            np.add.reduce(steep, axis=0, out=slope[about])
            curvature = steep.T @ steep
            curvature.flat[:: curvature.shape[0] + 1] += slope[about]
            curved.append(curvature)
        gradient = slope - sharpness * self.price
        if at.room is not None:
            gradient, curved[0] = self._add_bound(at.room, sharpness, gradient, curved[0])
        direction = _solve_blocks(curved, -gradient)
        decrement = -float(gradient @ direction)
        here, length = at.compute_barrier(sharpness), 1.0
        while True:
            reached = self.evaluate_barrier(at.point + length * direction)
            if reached is not None and not reached.compute_barrier(sharpness) > here - 0.1 * length * decrement:
                return reached, decrement
            length *= 0.5
            if length < 1e-9:
                return at, 0.0

    def _add_bound(self, room: Floats, sharpness: float, gradient: Floats, curvature: Floats) -> tuple[Floats, Floats]:
        variables = self.rows.shape[1]
        push = 1.0 / room
        steep = np.column_stack((self.weights, np.ones(len(push)))) * push[:, np.newaxis]
        whole = steep.T @ steep
        whole[:variables, :variables] += curvature
        rise = np.append(gradient, sharpness) - np.add.reduce(steep, axis=0)
        return rise, whole


def _solve_blocks(blocks: Sequence[Floats], values: Floats) -> Floats:
    """Return the solution of a block-diagonal linear system. All blocks have one size."""
    if len(blocks) == 1:
        return np.asarray(np.linalg.solve(blocks[0], values))
    return np.asarray(np.linalg.solve(np.array(blocks), values.reshape(len(blocks), -1, 1)).reshape(-1))
