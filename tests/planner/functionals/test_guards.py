"""Guarded formulas are walked in one way, and their complement's complement is what they were."""

from hypothesis import given
from hypothesis import strategies as st

from mechanisms.formula import Cut
from planner.functionals.guards import Guarded, GuardedAll, GuardedAny, GuardedFormula, complement


def guarded(cut: int, side: str) -> Guarded:
    """One literal, of which only the threshold and the side matter here."""
    return Guarded(
        Cut(functional=0, cut=cut, above=side == ">", tolerance=1), values=(), text=f"count {cut}", position=None
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
    assert met == list(formula.leaves())


@given(FORMULAS)
def test_a_complement_of_a_complement_is_the_formula(formula: GuardedFormula) -> None:
    assert complement(complement(formula)) == formula
    assert len(list(complement(formula).leaves())) == len(list(formula.leaves()))
