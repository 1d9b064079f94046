"""Guarded formulas are walked in one way, and their complement's complement is what they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.formula import AllOf, AnyOf, Cut, Formula
from planner.aggregates.row_expression import RequiredValues
from planner.errors import KeyholeError
from planner.functionals.guards import (
    Absence,
    Guarded,
    GuardedAll,
    GuardedAny,
    GuardedFormula,
    complement,
    find_guards,
)
from planner.question.condition import ALWAYS
from tests.worlds.questions import total


def guarded(cut: int, side: str) -> Guarded:
    """One literal, of which only the threshold and the side matter here."""
    return Guarded(
        Cut(functional=0, cut=cut, above=side == ">", tolerance=1),
        required_values=(),
        text=f"count {cut}",
        position=None,
    )


LEAVES: st.SearchStrategy[GuardedFormula] = st.builds(guarded, st.integers(-2, 2), st.sampled_from([">", "<="]))
FORMULAS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3).flatmap(
        lambda children: st.sampled_from([GuardedAll(tuple(children)), GuardedAny(tuple(children))])
    ),
    max_leaves=10,
)


@given(FORMULAS)
def test_one_way_of_walking_is_like_the_other(formula: GuardedFormula) -> None:
    met: list[GuardedFormula] = []

    def note(leaf: Guarded) -> GuardedFormula:
        met.append(leaf)
        return leaf

    rebuilt = formula.fold(
        note, every=lambda children: GuardedAll(tuple(children)), some=lambda children: GuardedAny(tuple(children))
    )
    assert rebuilt == formula
    assert met == list(formula.walk_leaves())


@given(FORMULAS)
def test_a_complement_of_a_complement_is_the_formula(formula: GuardedFormula) -> None:
    assert complement(complement(formula)) == formula
    assert len(list(complement(formula).walk_leaves())) == len(list(formula.walk_leaves()))


@pytest.mark.parametrize("others", [0, 1, 2])
def test_what_one_literal_decides_needs_no_guard_whatever_the_others_say(others: int) -> None:
    """Rows without values add 0 or 1 each, so a sum below -1 decides, however many literals depend on the rows."""
    never = Cut(functional=0, cut=-2, above=False, tolerance=1)
    unknown = Cut(functional=0, cut=5, above=True, tolerance=1)
    literals: list[Formula] = [unknown] * others
    for place in range(others + 1):
        formula = AllOf((*literals[:place], never, *literals[place:]))
        absence = Absence(RequiredValues("amount", ALWAYS), (0, 1))
        assert find_guards(Guarded(formula, (absence,), "sums", None), {0: total()}) == frozenset()
    alone = Guarded(AnyOf((unknown,)), (Absence(RequiredValues("amount", ALWAYS), (0, 1)),), "sum > 5", None)
    with pytest.raises(KeyholeError, match="KH206"):
        find_guards(alone, {0: total()})
