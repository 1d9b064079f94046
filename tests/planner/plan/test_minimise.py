"""The minimal DNF: equal to what was typed, made of prime implicants, as small as possible, canonical."""

import itertools
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.formula import (
    FALSE,
    TRUE,
    AllOf,
    AnyOf,
    Booleans,
    Cut,
    Formula,
    Integers,
    evaluate_formula,
    list_literals,
)
from planner.plan.cover import Candidate, find_minimal_cover
from planner.plan.minimise import MOST_THRESHOLDS, minimise
from tests.effort import examples


def above(functional: int, cut: int = 0, *, tolerance: int = 0) -> Cut:
    return Cut(functional=functional, cut=cut, above=True, tolerance=tolerance)


def below(functional: int, cut: int = 0, *, tolerance: int = 0) -> Cut:
    return Cut(functional=functional, cut=cut, above=False, tolerance=tolerance)


def dnf(*terms: tuple[Cut, ...]) -> Formula:
    return AnyOf(tuple(AllOf(term) for term in terms))


LITERALS = st.builds(
    Cut,
    functional=st.integers(0, 2),
    cut=st.sampled_from([-3, 0, 1, 5]),
    above=st.booleans(),
    tolerance=st.integers(0, 3),
)


def formulas(literals: st.SearchStrategy[Cut] = LITERALS) -> st.SearchStrategy[Formula]:
    leaves: st.SearchStrategy[Formula] = literals
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4).flatmap(
            lambda children: st.sampled_from([AllOf(tuple(children)), AnyOf(tuple(children))])
        ),
        max_leaves=12,
    )


def grid(formula: Formula) -> Integers:
    """Every combination of the integers around each functional's thresholds, shape (functionals, points)."""
    values: list[list[int]] = []
    for functional in range(3):
        near = {
            cut.cut + step for cut in list_literals(formula) if cut.functional == functional for step in (-1, 0, 1, 2)
        }
        values.append(sorted(near) or [0])
    return np.array(list(itertools.product(*values)), dtype=np.int64).T


def holds(formula: Formula, points: Integers) -> Booleans:
    return evaluate_formula(formula, lambda cut: cut.evaluate(points[cut.functional]), keys=points.shape[1])


def boxes(formula: Formula, points: Integers) -> Iterator[Booleans]:
    """The points of every satisfiable product of intervals between the formula's thresholds, complements included."""
    choices = []
    for functional in range(3):
        edges = sorted({cut.cut for cut in list_literals(formula) if cut.functional == functional})
        ends: list[float] = [-np.inf, *edges, np.inf]
        choices.append([(low, high) for low, high in itertools.combinations(ends, 2)])
    for box in itertools.product(*choices):
        inside = np.ones(points.shape[1], dtype=np.bool_)
        for functional, (low, high) in enumerate(box):
            inside &= (points[functional] > low) & (points[functional] <= high)
        yield inside


def points_of(box: Booleans) -> frozenset[int]:
    return frozenset(int(point) for point in np.flatnonzero(box))


def maximal(sets: list[frozenset[int]]) -> set[frozenset[int]]:
    distinct = sorted(set(sets), key=len, reverse=True)
    found: list[frozenset[int]] = []
    for one in distinct:
        if not any(one < other for other in found):
            found.append(one)
    return set(found)


@given(formulas())
@examples(250)
def test_the_minimal_form_equals_the_typed_form_at_every_integer(formula: Formula) -> None:
    points = grid(formula)
    minimised = minimise(formula)
    assert minimised.is_minimal
    assert (holds(minimised.formula, points) == holds(formula, points)).all()


@given(formulas())
@examples(100)
def test_the_implicants_and_clauses_are_exactly_the_prime_ones(formula: Formula) -> None:
    """Against brute force over all boxes, with literals of both signs whether typed or not."""
    points = grid(formula)
    true = holds(formula, points)
    minimised = minimise(formula)
    inside_true = [points_of(box) for box in boxes(formula, points) if true[box].all()]
    inside_false = [points_of(box) for box in boxes(formula, points) if not true[box].any()]
    implicants = [points_of(holds(AllOf(term), points)) for term in minimised.implicants]
    clauses = [points_of(~holds(AnyOf(clause), points)) for clause in minimised.clauses]
    assert set(implicants) == maximal(inside_true)
    assert set(clauses) == maximal(inside_false)
    assert len(implicants) == len(set(implicants))
    assert len(clauses) == len(set(clauses))


@given(formulas())
@examples(150)
def test_only_typed_literals_occur_each_with_its_smallest_tolerance(formula: Formula) -> None:
    smallest: dict[tuple[int, int, bool], int] = {}
    for cut in list_literals(formula):
        literal = (cut.functional, cut.cut, cut.above)
        smallest[literal] = min(cut.tolerance, smallest.get(literal, cut.tolerance))
    minimised = minimise(formula)
    everywhere = [*list_literals(minimised.formula), *itertools.chain(*minimised.implicants, *minimised.clauses)]
    for cut in everywhere:
        assert smallest[cut.functional, cut.cut, cut.above] == cut.tolerance


@given(formulas())
@examples(150)
def test_minimising_twice_changes_nothing(formula: Formula) -> None:
    once = minimise(formula)
    assert minimise(once.formula) == once


@given(formulas(), st.randoms(use_true_random=False))
@examples(100)
def test_the_order_of_what_was_typed_does_not_matter(formula: Formula, random: Random) -> None:
    def shuffled(part: Formula) -> Formula:
        match part:
            case Cut():
                return part
            case AllOf(children) | AnyOf(children):
                mixed = [shuffled(child) for child in children]
                random.shuffle(mixed)
                return type(part)(tuple(mixed))

    assert minimise(shuffled(formula)) == minimise(formula)


@given(st.lists(st.tuples(st.integers(1, 2**7 - 1), st.integers(0, 4)), min_size=1, max_size=9))
@examples(150)
def test_the_cover_is_the_cheapest(sets: list[tuple[int, int]]) -> None:
    candidates = [Candidate(points=points, literals=literals) for points, literals in sets]
    everything = 0
    for candidate in candidates:
        everything |= candidate.points

    def union(chosen: tuple[int, ...]) -> int:
        points = 0
        for index in chosen:
            points |= candidates[index].points
        return points

    def cost(chosen: tuple[int, ...]) -> tuple[int, int]:
        return sum(candidates[index].literals for index in chosen), len(chosen)

    every = itertools.chain.from_iterable(itertools.combinations(range(len(sets)), n) for n in range(len(sets) + 1))
    cheapest = min(cost(chosen) for chosen in every if union(chosen) == everything)
    found = find_minimal_cover(everything, candidates)
    assert union(found) == everything
    assert cost(found) == cheapest


@pytest.mark.parametrize(
    ("typed", "minimal"),
    [
        (AllOf((above(0), above(1), above(2))), dnf((above(0), above(1), above(2)))),
        (AnyOf((above(0), above(1))), dnf((above(0),), (above(1),))),
        (
            AllOf((AnyOf((above(0), above(1))), AnyOf((above(0), above(2))))),
            dnf((above(0),), (above(1), above(2))),
        ),
        (
            AnyOf((AllOf((above(0), above(1))), AllOf((above(0), above(2))))),
            dnf((above(0), above(1)), (above(0), above(2))),
        ),
        (
            AllOf((AnyOf((above(0), above(1))), AnyOf((above(0), above(2))), AnyOf((above(1), above(2))))),
            dnf((above(0), above(1)), (above(0), above(2)), (above(1), above(2))),
        ),
        (AnyOf((above(0), AllOf((above(1), above(2))))), dnf((above(0),), (above(1), above(2)))),
    ],
    ids=["and", "or", "or-and-or", "and-or-and", "majority", "or-of-and"],
)
def test_the_reference_queries(typed: Formula, minimal: Formula) -> None:
    """The shapes of the apportionment table."""
    assert minimise(typed).formula == minimal


def test_the_clauses_of_the_reference_queries() -> None:
    factored = dnf((above(0), above(1)), (above(0), above(2)))
    assert minimise(factored).clauses == ((above(0),), (above(1), above(2)))
    majority = dnf((above(0), above(1)), (above(0), above(2)), (above(1), above(2)))
    assert minimise(majority).clauses == tuple(tuple(cut for cut in term) for term in minimise(majority).implicants)


def test_thresholds_of_one_functional_are_ordered() -> None:
    assert minimise(AllOf((above(0, 0), above(0, 100)))).formula == dnf((above(0, 100),))
    assert minimise(AnyOf((above(0, 0), above(0, 100)))).formula == dnf((above(0, 0),))
    assert minimise(AllOf((above(0, 100), below(0, 500)))).formula == dnf((above(0, 100), below(0, 500)))
    assert minimise(AllOf((above(0, 4), below(0, 5)))).formula == dnf((above(0, 4), below(0, 5)))
    assert minimise(AllOf((above(0, 500), below(0, 100)))).formula == FALSE
    assert minimise(AnyOf((above(0, 100), below(0, 500)))).formula == TRUE


def test_an_implied_guard_disappears() -> None:
    guard, enough = above(1, 0), above(1, 9, tolerance=9)
    assert minimise(AllOf((below(0, 20), guard, enough))).formula == dnf((below(0, 20), enough))


def test_overlapping_intervals_become_one() -> None:
    typed = dnf((above(0, 0), below(0, 10)), (above(0, 5), below(0, 20)))
    assert minimise(typed).formula == dnf((above(0, 0), below(0, 20)))


def test_constants() -> None:
    for typed in (TRUE, AllOf((TRUE, TRUE)), AnyOf((above(0), TRUE)), AnyOf((above(0), below(0)))):
        minimised = minimise(typed)
        assert (minimised.formula, minimised.implicants, minimised.clauses) == (TRUE, ((),), ())
    for typed in (FALSE, AnyOf((FALSE,)), AllOf((above(0), FALSE)), AllOf((above(0), below(0)))):
        minimised = minimise(typed)
        assert (minimised.formula, minimised.implicants, minimised.clauses) == (FALSE, (), ((),))


def test_beyond_twelve_thresholds_the_typed_tree_stays() -> None:
    typed = AllOf((AnyOf(tuple(above(index) for index in range(MOST_THRESHOLDS))), above(MOST_THRESHOLDS)))
    minimised = minimise(typed)
    assert minimised.formula == typed
    assert (minimised.implicants, minimised.clauses, minimised.is_minimal) == ((), (), False)
    assert minimise(AnyOf(tuple(above(index) for index in range(MOST_THRESHOLDS)))).is_minimal


def test_twelve_thresholds_with_both_signs() -> None:
    ring = dnf(*((above(index), below((index + 1) % 12)) for index in range(12)))
    minimised = minimise(ring)
    assert minimised.is_minimal
    assert len(minimised.implicants) == 12 * 11
    random = np.random.default_rng(5)
    points = random.integers(-1, 3, size=(12, 2000))
    assert (holds(minimised.formula, points) == holds(ring, points)).all()
