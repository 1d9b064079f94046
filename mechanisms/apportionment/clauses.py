"""The terms and clauses of a formula as error constraints.

In a wrong answer, at least one literal of one of these sets has erred.

The formula is evaluated as given. In a false negative, a feasible term whose literals are all true has a rejected
literal. In a false positive, a clause whose relaxed literals are all false has an accepted one. Literals of one
functional share its noise, so within a term or clause they fail as one event on each side.

Proof: docs/proofs/apportionment.md.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from mechanisms.formula import AnyOf, Cut, Formula, list_literals

MOST_LITERALS = 12  # beyond, sets of literals are too many to enumerate in a question's time
_MOST_SETS = 256  # terms or clauses: each is a row of the programme that shares are found by
_MOST_PRODUCTS = 4096  # unions made at one node, before those that others cover are left out


@dataclass(frozen=True, slots=True)
class Contribution:
    """One functional's contribution to a term or clause.

    `scenarios` lists the extreme true values as tuples of distances, one distance for each side of the interval. The
    functional's error probability is the largest sum, over a scenario, of its test's error rates at these distances.
    """

    functional: int
    scenarios: tuple[tuple[int, ...], ...]

    def compute_probability(self, rate: Callable[[int, int], float]) -> float:
        """Return the functional's error probability. `rate(functional, distance)` is the error rate of its test.

        A sum of two tails is convex in the true value while both are at most one half, so its extremes suffice. If one
        tail is larger, the two sides are bounded separately.
        """
        chances: list[list[float]] = [
            [rate(self.functional, distance) for distance in scenario] for scenario in self.scenarios
        ]
        if max(map(max, chances)) > 0.5:
            sides: list[float] = [max(side) for side in zip(*chances, strict=True)]
            return min(1.0, sum(sides))
        return max(sum(scenario) for scenario in chances)


@dataclass(frozen=True, slots=True)
class Constraint:
    """Functionals whose error probabilities must sum to no more than the contract's rate."""

    parts: tuple[Contribution, ...]

    def bound_probability(self, rate: Callable[[int, int], float]) -> float:
        """Return the union bound over the functionals, given `rate(functional, distance)`."""
        return sum(part.compute_probability(rate) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Constraints:
    """All constraints of a formula: `fnr` from its feasible terms, `fpr` from its feasible clauses."""

    fnr: tuple[Constraint, ...]
    fpr: tuple[Constraint, ...]


@lru_cache(maxsize=64)
def derive_constraints(formula: Formula) -> Constraints | None:
    """Return the formula's constraints from all its terms and clauses.

    Return None if the formula has too many literals, terms or clauses to enumerate.

    Results are cached, since one question is calibrated more than once and may have several formulas.

    `a OR (b AND c)` has the terms `a` and `b, c`, and the clauses `a, b` and `a, c`:

    >>> from mechanisms.formula import AllOf
    >>> a, b, c = (Cut(functional, 100, above=True, tolerance=10) for functional in range(3))
    >>> found = derive_constraints(AnyOf((a, AllOf((b, c)))))
    >>> [[part.functional for part in one.parts] for one in found.fnr]
    [[0], [1, 2]]
    >>> [[part.functional for part in one.parts] for one in found.fpr]
    [[0, 1], [0, 2]]
    """
    literals = tuple(dict.fromkeys(list_literals(formula)))
    if len(literals) > MOST_LITERALS:
        return None
    places = {literal: place for place, literal in enumerate(literals)}
    try:
        terms = _find_minimal_sets(formula, places, dual=False)
        clauses = _find_minimal_sets(formula, places, dual=True)
    except _TooManyError:
        return None
    return Constraints(
        fnr=_drop_dominated_constraints(
            terms,
            feasible=lambda mask: _make_term(_list_members(literals, mask)),
            closed=lambda mask: _add_implied_literals(literals, mask, _literal_implies),
        ),
        fpr=_drop_dominated_constraints(
            clauses,
            feasible=lambda mask: _make_clause(_list_members(literals, mask)),
            closed=lambda mask: _add_implied_literals(literals, mask, _literal_excludes),
        ),
    )


class _TooManyError(Exception):
    pass


def _find_minimal_sets(formula: Formula, places: dict[Cut, int], *, dual: bool) -> list[int]:
    """Return the minimal literal sets that make the formula true (its terms).

    If `dual`, return the minimal sets that make it false when they are false, its clauses.
    """
    match formula:
        case Cut():
            return [1 << places[formula]]
        case _:
            parts = [_find_minimal_sets(child, places, dual=dual) for child in formula.children]
    if isinstance(formula, AnyOf) != dual:
        return _absorb_masks(mask for part in parts for mask in part)
    result = [0]
    for part in parts:
        if len(result) * len(part) > _MOST_PRODUCTS:
            raise _TooManyError
        result = _absorb_masks(left | right for left, right in product(result, part))
    return result


def _absorb_masks(masks: Iterable[int]) -> list[int]:
    kept: list[int] = []
    for mask in sorted(set(masks), key=int.bit_count):
        if not any(small & mask == small for small in kept):
            kept.append(mask)
            if len(kept) > _MOST_SETS:
                raise _TooManyError
    return kept


def _list_members(literals: Sequence[Cut], mask: int) -> list[Cut]:
    return [literal for place, literal in enumerate(literals) if mask >> place & 1]


def _group_by_functional(members: Sequence[Cut]) -> dict[int, tuple[list[Cut], list[Cut]]]:
    grouped: dict[int, tuple[list[Cut], list[Cut]]] = {}
    for literal in members:
        grouped.setdefault(literal.functional, ([], []))[0 if literal.above else 1].append(literal)
    return grouped


def _make_term(members: Sequence[Cut]) -> Constraint | None:
    parts = []
    for functional, (above, below) in sorted(_group_by_functional(members).items()):
        if above and below:
            width = min(cut.cut for cut in below) - max(cut.cut for cut in above)
            if width <= 0:
                return None
            parts.append(Contribution(functional=functional, scenarios=((1, width), (width, 1))))
        else:
            parts.append(Contribution(functional=functional, scenarios=((1,),)))
    return Constraint(tuple(parts))


def _make_clause(members: Sequence[Cut]) -> Constraint | None:
    parts = []
    for functional, (above, below) in sorted(_group_by_functional(members).items()):
        greatest = min((cut.cut - cut.tolerance for cut in above), default=None)
        least = max((cut.cut + cut.tolerance + 1 for cut in below), default=None)
        rise = min((cut.cut for cut in above), default=0)
        fall = max((cut.cut for cut in below), default=0) + 1
        if greatest is not None and least is not None:
            if least > greatest:
                return None
            ends = ((greatest - rise, fall - greatest), (least - rise, fall - least))
            parts.append(Contribution(functional=functional, scenarios=ends))
        elif greatest is not None:
            parts.append(Contribution(functional=functional, scenarios=((greatest - rise,),)))
        elif least is not None:
            parts.append(Contribution(functional=functional, scenarios=((fall - least,),)))
    return Constraint(tuple(parts))


def _literal_implies(known: Cut, other: Cut) -> bool:
    """Return True if the literal `other` is true at every value at which `known` is true."""
    if known.functional != other.functional or known.above != other.above:
        return False
    return known.cut >= other.cut if known.above else known.cut <= other.cut


def _literal_excludes(known: Cut, other: Cut) -> bool:
    """Return True if the relaxed literal `other` is false at every value at which the relaxed `known` is false."""
    return _literal_implies(other.relax(), known.relax())


def _add_implied_literals(literals: Sequence[Cut], mask: int, implied: Callable[[Cut, Cut], bool]) -> int:
    members = _list_members(literals, mask)
    for place, other in enumerate(literals):
        if any(implied(known, other) for known in members):
            mask |= 1 << place
    return mask


def _drop_dominated_constraints(
    masks: Sequence[int], *, feasible: Callable[[int], Constraint | None], closed: Callable[[int], int]
) -> tuple[Constraint, ...]:
    """Return the feasible constraints that can bind. A set whose closure contains a cheaper constraint is dropped."""
    found = {mask: constraint for mask in masks if (constraint := feasible(mask)) is not None}
    result: list[Constraint] = []
    for mask, constraint in found.items():
        reach = closed(mask)
        sides = _list_sides(constraint)
        cheaper = any(
            other & reach == other and _list_sides(rival) < sides
            for other, rival in (found.items() if reach != mask else ())
            if other != mask
        )
        if not cheaper and constraint not in result:
            result.append(constraint)
    return tuple(result)


def _list_sides(constraint: Constraint) -> frozenset[tuple[int, tuple[tuple[int, ...], ...]]]:
    return frozenset((part.functional, part.scenarios) for part in constraint.parts)
