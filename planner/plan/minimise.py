"""Quine-McCluskey with ordered thresholds: a formula's minimal DNF, all its prime implicants and prime clauses."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from operator import and_, or_
from typing import TypeAlias, TypeVar

import numpy as np

from mechanisms.formula import FALSE, TRUE, AllOf, AnyOf, Cut, Formula, list_literals
from planner.plan.cover import Candidate, find_minimal_cover
from planner.plan.simplify import simplify
from planner.question.plan import Minimised

MOST_THRESHOLDS = 12  # of all functionals: at most 4,096 states, each one bit of the truth table
MOST_PRIMES = 2048  # of each kind; a formula with more is folded alone

Literals: TypeAlias = tuple[Cut, ...]
Points: TypeAlias = int  # a set of feasible assignments, one bit each
Bounds: TypeAlias = tuple[int, int]  # first and last state of an interval, both included
Box: TypeAlias = tuple[Bounds, ...]  # one interval per functional
Part = TypeVar("Part")


def minimise(formula: Formula) -> Minimised:
    """Return the minimal DNF of a formula in negation normal form, with all its prime implicants and prime clauses.

    Guarantee: the result equals `formula` for all integer values of the functionals. It uses only literals (functional,
    cut, sign) that `formula` uses, each with the smallest tolerance it has there; every term holds at most one interval
    per functional and can be true. Among such DNFs it has the fewest literals, then the fewest terms (up to the search
    limit of `find_minimal_cover`). Formulas that are equal as functions get the same DNF, apart from tolerances.

    Beyond `MOST_THRESHOLDS` distinct thresholds the formula is folded as a tree first (`simplify`); with still
    too many, or with more than `MOST_PRIMES` primes, it comes back folded and `exact` is false.

    **Why typed literals are enough.** The thresholds `c_1 < ... < c_k` of one functional cut the integers into k + 1
    non-empty states, and crossing from state j - 1 to state j changes exactly one variable, `S > c_j`, from false to
    true; the other assignments are the don't-cares. So a term that can be true is a box, an interval of states per
    functional, and a prime implicant is a box inside the true points that no larger box inside them contains. Let such
    a box end below `c_j` (it would need the literal `S <= c_j`) and suppose the formula never uses `S <= c_j`. Every
    literal it does use keeps its value or turns from false to true when S crosses `c_j`, and a formula without
    negations is monotone in its literals; so each point one state above the box is true as well, and the box was not
    maximal. The same holds below with `S > c_j`, and for clauses, whose complements are the maximal boxes of the false
    points, with the signs exchanged. Complements of typed literals are therefore never needed, which matters since
    under SQL's NULL an atom and its negation are both false.

    References: McCluskey 1956; ProBE 4.3; Petrick 1956 for the cover.
    """
    axes = _list_axes(formula)
    if sum(len(axis.cuts) for axis in axes) > MOST_THRESHOLDS:
        smaller = simplify(formula)
        if len({(cut.functional, cut.cut) for cut in list_literals(smaller)}) <= MOST_THRESHOLDS:
            return minimise(smaller)
        return Minimised(formula=smaller, implicants=(), clauses=(), is_minimal=False)
    space = _Space.from_axes(axes)
    true = space.find_true_points(formula)
    in_term = [axis.list_term_intervals() for axis in axes]
    in_clause = [axis.list_clause_intervals() for axis in axes]
    true_boxes = space.find_prime_boxes(true, in_term)
    false_boxes = space.find_prime_boxes(space.everything ^ true, in_clause)
    if len(true_boxes) > MOST_PRIMES or len(false_boxes) > MOST_PRIMES:
        return Minimised(formula=simplify(formula), implicants=(), clauses=(), is_minimal=False)
    terms = [
        {bounds: axis.find_term(bounds) for bounds in choices} for axis, choices in zip(axes, in_term, strict=True)
    ]
    slabs = [{bounds: space.find_slab(index, bounds) for bounds in choices} for index, choices in enumerate(in_term)]
    implicants = sorted(
        ((_join_literals(terms, box), reduce(and_, _choose_parts(slabs, box), space.everything)) for box in true_boxes),
        key=lambda pair: _rank_literals(pair[0]),
    )
    needed = {(cut.functional, cut.cut) for literals, _ in implicants for cut in literals}
    if len(needed) < sum(len(axis.cuts) for axis in axes):
        return minimise(_make_dnf([literals for literals, _ in implicants]))
    candidates = [Candidate(points=points, literals=len(literals)) for literals, points in implicants]
    clauses = [
        {bounds: axis.find_clause(bounds) for bounds in choices} for axis, choices in zip(axes, in_clause, strict=True)
    ]
    return Minimised(
        formula=_make_dnf([implicants[index][0] for index in find_minimal_cover(true, candidates)]),
        implicants=tuple(literals for literals, _ in implicants),
        clauses=tuple(sorted((_join_literals(clauses, box) for box in false_boxes), key=_rank_literals)),
        is_minimal=True,
    )


def _make_dnf(terms: Sequence[Literals]) -> Formula:
    if () in terms:
        return TRUE
    return AnyOf(tuple(AllOf(literals) for literals in terms)) if terms else FALSE


def _rank_literals(literals: Literals) -> tuple[tuple[int, int, bool], ...]:
    return tuple((cut.functional, cut.cut, cut.above) for cut in literals)


def _choose_parts(tables: Sequence[Mapping[Bounds, Part]], box: Box) -> Iterator[Part]:
    """Yield, from each axis's table, the part for the box's interval."""
    return (table[bounds] for table, bounds in zip(tables, box, strict=True))


def _join_literals(tables: Sequence[Mapping[Bounds, Literals]], box: Box) -> Literals:
    return tuple(cut for part in _choose_parts(tables, box) for cut in part)


@dataclass(frozen=True, slots=True)
class _Axis:
    """One functional: its thresholds ascending, and the tolerance of each literal that occurs, by cut.

    State j means that exactly the first j thresholds are exceeded.
    """

    functional: int
    cuts: tuple[int, ...]
    above: Mapping[int, int]
    below: Mapping[int, int]

    def list_term_intervals(self) -> list[Bounds]:
        return self._list_intervals(starts=self.above, ends=self.below)

    def list_clause_intervals(self) -> list[Bounds]:
        return self._list_intervals(starts=self.below, ends=self.above)

    def _list_intervals(self, *, starts: Mapping[int, int], ends: Mapping[int, int]) -> list[Bounds]:
        """Return the intervals of states that literals of the formula can bound."""
        first = [0, *(state + 1 for state, cut in enumerate(self.cuts) if cut in starts)]
        last = [*(state for state, cut in enumerate(self.cuts) if cut in ends), len(self.cuts)]
        return [(low, high) for low in first for high in last if low <= high]

    def find_term(self, bounds: Bounds) -> Literals:
        """Return the literals that hold exactly inside the interval."""
        low, high = bounds
        start = (self._make_literal(self.cuts[low - 1], above=True),) if low > 0 else ()
        end = (self._make_literal(self.cuts[high], above=False),) if high < len(self.cuts) else ()
        return start + end

    def find_clause(self, bounds: Bounds) -> Literals:
        """Return the literals at least one of which holds exactly outside the interval."""
        low, high = bounds
        start = (self._make_literal(self.cuts[low - 1], above=False),) if low > 0 else ()
        end = (self._make_literal(self.cuts[high], above=True),) if high < len(self.cuts) else ()
        return start + end

    def _make_literal(self, cut: int, *, above: bool) -> Cut:
        tolerance = (self.above if above else self.below)[cut]
        return Cut(functional=self.functional, cut=cut, above=above, tolerance=tolerance)


def _list_axes(formula: Formula) -> tuple[_Axis, ...]:
    tolerances: dict[int, dict[bool, dict[int, int]]] = {}
    for cut in list_literals(formula):
        side = tolerances.setdefault(cut.functional, {True: {}, False: {}})[cut.above]
        side[cut.cut] = min(cut.tolerance, side.get(cut.cut, cut.tolerance))
    return tuple(
        _Axis(
            functional=functional,
            cuts=tuple(sorted({*sides[True], *sides[False]})),
            above=sides[True],
            below=sides[False],
        )
        for functional, sides in sorted(tolerances.items())
    )


@dataclass(frozen=True, slots=True)
class _Space:
    """All feasible assignments, numbered in mixed radix (the last axis changes fastest).

    A set of them is an integer.
    """

    axes: tuple[_Axis, ...]
    strides: tuple[int, ...]
    size: int

    @classmethod
    def from_axes(cls, axes: tuple[_Axis, ...]) -> "_Space":
        states = [len(axis.cuts) + 1 for axis in axes]
        strides = tuple(prod(states[index + 1 :]) for index in range(len(states)))
        return cls(axes=axes, strides=strides, size=prod(states))

    @property
    def everything(self) -> Points:
        return (1 << self.size) - 1

    def find_slab(self, index: int, bounds: Bounds) -> Points:
        """Return the points whose state on one axis lies within the bounds."""
        stride = self.strides[index]
        low, high = bounds
        run = ((1 << (high - low + 1) * stride) - 1) << low * stride
        period = (len(self.axes[index].cuts) + 1) * stride
        return run * (self.everything // ((1 << period) - 1))

    def find_true_points(self, formula: Formula) -> Points:
        """Return the points where the formula holds."""
        literals: dict[tuple[int, int, bool], Points] = {}
        for index, axis in enumerate(self.axes):
            for state, cut in enumerate(axis.cuts):
                literals[axis.functional, cut, True] = self.find_slab(index, (state + 1, len(axis.cuts)))
                literals[axis.functional, cut, False] = self.find_slab(index, (0, state))

        def find_points(cut: Cut) -> Points:
            return literals[cut.functional, cut.cut, cut.above]

        return formula.fold(
            find_points,
            every=lambda children: reduce(and_, children, self.everything),
            some=lambda children: reduce(or_, children, 0),
        )

    def find_prime_boxes(self, points: Points, intervals: Sequence[Sequence[Bounds]]) -> list[Box]:
        """Return the maximal boxes of the given intervals (per axis) inside a set of points."""
        bits = np.frombuffer(points.to_bytes(self.size // 8 + 1, "little"), dtype=np.uint8)
        inside = np.unpackbits(bits, count=self.size, bitorder="little").astype(np.bool_)
        for axis, stride, choices in zip(self.axes, self.strides, intervals, strict=True):
            slices = inside.reshape(-1, len(axis.cuts) + 1, stride)
            inside = np.stack([slices[:, low : high + 1].all(axis=1) for low, high in choices], axis=1)
        shape = tuple(len(choices) for choices in intervals)
        inside = np.ravel(inside)
        prime = inside.copy()
        for index, choices in enumerate(intervals):
            split = (-1, len(choices), prod(shape[index + 1 :]))
            narrow, wide = prime.reshape(split), inside.reshape(split)
            for position, bounds in enumerate(choices):
                for wider in _list_wider_bounds(bounds, choices):
                    narrow[:, position] &= ~wide[:, choices.index(wider)]
        found = np.unravel_index(np.flatnonzero(prime), shape) if shape else ()
        if not shape:
            return [()] if points else []
        return [
            tuple(choices[int(position)] for choices, position in zip(intervals, positions, strict=True))
            for positions in zip(*found, strict=True)
        ]


def _list_wider_bounds(bounds: Bounds, choices: Sequence[Bounds]) -> Iterator[Bounds]:
    """Yield the intervals one step wider at either end."""
    low, high = bounds
    lower = [other for other, end in choices if end == high and other < low]
    higher = [other for start, other in choices if start == low and other > high]
    if lower:
        yield max(lower), high
    if higher:
        yield low, min(higher)
