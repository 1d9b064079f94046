"""Formulas are walked in one way: changing nothing changes nothing, and folding is evaluating."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.formula import (
    AllOf,
    AnyOf,
    Booleans,
    Cut,
    Formula,
    evaluate_formula,
    list_literals,
    negate_formula,
    relax_formula,
)

LITERALS = st.builds(
    Cut,
    functional=st.integers(0, 2),
    cut=st.integers(-3, 3),
    above=st.booleans(),
    tolerance=st.integers(0, 3),
)
LEAVES: st.SearchStrategy[Formula] = LITERALS
FORMULAS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3).flatmap(
        lambda children: st.sampled_from([AllOf(tuple(children)), AnyOf(tuple(children))])
    ),
    max_leaves=10,
)
VALUES = np.stack(np.meshgrid(*[np.arange(-7, 8)] * 3)).reshape(3, -1)


def holds(literal: Cut) -> Booleans:
    return literal.evaluate(VALUES[literal.functional])


@given(FORMULAS)
def test_one_way_of_walking_is_like_the_other(formula: Formula) -> None:
    met: list[Cut] = []

    def note(literal: Cut) -> Formula:
        met.append(literal)
        return literal

    assert formula.map_literals(note) == formula
    assert met == list(list_literals(formula))
    rebuilt = formula.fold(
        note, every=lambda children: AllOf(tuple(children)), some=lambda children: AnyOf(tuple(children))
    )
    assert rebuilt == formula
    everywhere = np.ones(VALUES.shape[1], dtype=np.bool_)
    folded = formula.fold(
        holds,
        every=lambda children: np.logical_and.reduce([everywhere, *children]),
        some=lambda children: np.logical_or.reduce([~everywhere, *children]),
    )
    np.testing.assert_array_equal(folded, evaluate_formula(formula, holds, keys=VALUES.shape[1]))


@given(FORMULAS)
def test_a_complement_holds_elsewhere_and_a_relaxed_formula_holds_where_it_did(formula: Formula) -> None:
    keys = VALUES.shape[1]
    truth = evaluate_formula(formula, holds, keys=keys)
    np.testing.assert_array_equal(evaluate_formula(negate_formula(formula), holds, keys=keys), ~truth)
    assert negate_formula(negate_formula(formula)) == formula
    assert (evaluate_formula(relax_formula(formula), holds, keys=keys) >= truth).all()
    assert all(literal.tolerance == 0 for literal in list_literals(relax_formula(formula)))
