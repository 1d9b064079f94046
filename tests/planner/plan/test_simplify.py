"""Folding trees: the same function of the values, with no literal that the others settle."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.formula import FALSE, TRUE, AllOf, AnyOf, Cut, Formula, evaluate_formula, list_literals
from planner.explain.literal_labels import identify_literal
from planner.plan.minimise import MOST_THRESHOLDS, minimise
from planner.plan.simplify import simplify
from tests.effort import examples
from tests.worlds.questions import above, below

VALUES = np.array(list(product(range(-1, 6), repeat=3)), dtype=np.int64).T


def truth(formula: Formula) -> list[bool]:
    def literal(cut: Cut) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return cut.evaluate(VALUES[cut.functional])

    return [bool(holds) for holds in evaluate_formula(formula, literal, keys=VALUES.shape[1])]


LITERALS = st.builds(
    Cut,
    functional=st.integers(0, 2),
    cut=st.integers(0, 4),
    above=st.booleans(),
    tolerance=st.integers(0, 2),
)
FORMULAS = st.recursive(
    LITERALS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda children: AllOf(tuple(children))),
        st.lists(inner, max_size=4).map(lambda children: AnyOf(tuple(children))),
    ),
    max_leaves=24,
)


def nodes(formula: Formula) -> list[Formula]:
    if isinstance(formula, Cut):
        return [formula]
    return [formula, *(node for child in formula.children for node in nodes(child))]


@given(formula=FORMULAS)
@examples(300)
def test_the_folded_formula_is_the_same_function(formula: Formula) -> None:
    assert truth(simplify(formula)) == truth(formula)


@given(formula=FORMULAS)
@examples(200)
def test_only_typed_literals_are_left_each_with_its_smallest_tolerance_and_no_more_often(formula: Formula) -> None:
    typed, left = ([identify_literal(cut) for cut in list_literals(part)] for part in (formula, simplify(formula)))
    assert all(left.count(literal) <= typed.count(literal) for literal in left)
    for cut in list_literals(simplify(formula)):
        same = [
            one.tolerance
            for one in list_literals(formula)
            if (one.functional, one.cut, one.above) == (cut.functional, cut.cut, cut.above)
        ]
        assert cut.tolerance == min(same)


@given(formula=FORMULAS)
@examples(200)
def test_and_and_or_alternate_and_no_constant_is_left_inside(formula: Formula) -> None:
    result = simplify(formula)
    for node in nodes(result):
        if isinstance(node, Cut) or (node is result and node in (TRUE, FALSE)):
            continue
        assert len(node.children) >= 2
        assert not any(type(child) is type(node) for child in node.children)
        assert len(set(node.children)) == len(node.children)
        bounds = [(cut.functional, cut.above) for cut in node.children if isinstance(cut, Cut)]
        assert len(bounds) == len(set(bounds))


@given(formula=FORMULAS)
@examples(100)
def test_folding_again_changes_nothing(formula: Formula) -> None:
    assert simplify(simplify(formula)) == simplify(formula)


def test_ordered_thresholds_tautologies_and_contradictions_of_sixty_four_literals() -> None:
    rising = tuple(above(0, cut, 1) for cut in range(64))
    assert simplify(AllOf(rising)) == above(0, 63, 1)
    assert simplify(AnyOf(rising)) == above(0, 0, 1)
    assert simplify(AllOf((*rising, below(0, 63, 1)))) == FALSE
    assert simplify(AnyOf((*rising, below(0, 0, 1)))) == TRUE
    deep = AnyOf(tuple(AllOf((above(1, cut, 0), below(0, cut, 0), above(0, cut, 0))) for cut in range(21)))
    assert simplify(deep) == FALSE
    assert minimise(deep).is_minimal


def test_a_literal_settles_what_hangs_below_its_siblings() -> None:
    inner = AnyOf((above(0, 3, 1), AllOf((above(1, 2, 1), below(0, 9, 1)))))
    assert simplify(AllOf((above(0, 5, 1), inner))) == above(0, 5, 1)
    assert simplify(AllOf((above(0, 10, 1), AnyOf((below(0, 9, 1), above(1, 2, 1)))))) == AllOf(
        (above(0, 10, 1), above(1, 2, 1))
    )
    assert simplify(AnyOf((above(0, 5, 1), AllOf((above(0, 7, 1), above(1, 1, 1)))))) == above(0, 5, 1)
    absorbed = AnyOf((AllOf((above(0, 5, 1), above(1, 1, 1))), AllOf((above(0, 5, 1), above(1, 1, 1), above(2, 1, 1)))))
    assert simplify(absorbed) == AllOf((above(0, 5, 1), above(1, 1, 1)))


def test_a_large_formula_that_folds_into_few_thresholds_is_minimised_exactly() -> None:
    terms = tuple(AllOf((above(0, cut, 1), above(1, 3, 1))) for cut in range(20))
    many = AnyOf((above(1, 3, 1), *terms))
    assert len({(cut.functional, cut.cut) for cut in list_literals(many)}) > MOST_THRESHOLDS
    result = minimise(many)
    assert result.is_minimal
    assert list(list_literals(result.formula)) == [above(1, 3, 1)]
