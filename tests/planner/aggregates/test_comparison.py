"""HAVING is walked in one way: changing nothing changes nothing, and every comparison is met once and in order."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from planner.aggregates.comparison import Comparison, Complement, Conjunction, Disjunction, Having, Slack
from planner.question.question import Measure


def comparison(at: int) -> Comparison:
    """`count(*) > at`, of which only the threshold matters here."""
    return Comparison(
        text=f"count(*) > {at}",
        left_text="count(*)",
        names=("count(*)",),
        measure=Measure.ROWS,
        summands=(),
        operator=">",
        right_value=Fraction(at),
        threshold=Fraction(at),
        origin=Fraction(0),
        per_row=None,
        required_values=(),
        slack=Slack.THRESHOLD,
        position=None,
    )


LEAVES: st.SearchStrategy[Having] = st.builds(comparison, st.integers(0, 3))
FORMULAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Complement, inner),
        st.lists(inner, max_size=3).flatmap(
            lambda children: st.sampled_from([Conjunction(tuple(children)), Disjunction(tuple(children))])
        ),
    ),
    max_leaves=10,
)


@given(FORMULAS)
def test_one_way_of_walking_is_like_the_other(formula: Having) -> None:
    met: list[Having] = []

    def note(leaf: Having) -> Having:
        met.append(leaf)
        return leaf

    assert formula.map_comparisons(note) == formula
    assert met == list(formula.list_comparisons())
