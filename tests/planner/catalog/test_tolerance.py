"""Tolerances: the text that sets them, and the integers that follow, always rounded down."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.formula import cuts
from planner.catalog.tolerance import Amount, Step, steps, tolerances
from planner.errors import KeyholeError
from tests.planner.asked import asked


def test_texts() -> None:
    found = tolerances("10%, count( * ) = 25, AVG(age)=2.5 , amount=1%")
    assert found.default == Amount(Decimal(10), percent=True)
    assert found.amount(("count(*)", "count")) == Amount(Decimal(25), percent=False)
    assert found.amount(("avg(age)", "avg", "age")) == Amount(Decimal("2.5"), percent=False)
    assert found.amount(("sum(amount)", "sum", "amount")) == Amount(Decimal(1), percent=True)
    assert found.amount(("sum(age)", "sum", "age")) == found.default
    assert tolerances("count(DISTINCT a, b)=3").named == (("count(distincta,b)", Amount(Decimal(3), percent=False)),)


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "101%", "10%, 20%", "count=1, COUNT=2", "nan", "inf", "1e30", "count=", "%"]
)
def test_bad_texts_are_refused(text: str) -> None:
    with pytest.raises(KeyholeError, match="KH402"):
        tolerances(text)


@given(
    st.fractions(min_value=-1000, max_value=1000, max_denominator=20).filter(bool),
    st.decimals(min_value=0, max_value=100, places=1),
    st.sampled_from([Fraction(1), Fraction(1, 100), Fraction(1, 3)]),
    st.integers(1, 60),
)
def test_steps_are_the_largest_within_the_percentage(
    threshold: Fraction, percent: Decimal, size: Fraction, rows: int
) -> None:
    found = steps(Amount(percent, percent=True), threshold=threshold, step=Step(size, rows))
    wanted = abs(threshold) * Fraction(percent) / 100 * rows
    assert found * size <= wanted < (found + 1) * size


def test_a_percentage_of_zero_is_refused_and_an_amount_is_not() -> None:
    sql = "SELECT country FROM sales GROUP BY country HAVING sum(amount) > 0"
    with pytest.raises(KeyholeError, match="KH304") as refusal:
        asked(sql, tolerance="10%")
    assert refusal.value.position == sql.index("sum(amount)") + 1
    assert [cut.tolerance for cut in cuts(asked(sql, tolerance="10%, sum=2").formula)] == [200]


def test_names_reach_their_atoms() -> None:
    sql = (
        "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 100 OR count(age) > 100 OR sum(cost) > 100 "
        "OR count(*) FILTER (WHERE age > 65) > 100"
    )
    question = asked(sql, tolerance="1, count=2, count(age)=3, cost=4, count(*) FILTER (WHERE age > 65)=5")
    assert [cut.tolerance for cut in cuts(question.formula)] == [2, 3, 8, 5]


def test_the_policy_fills_what_a_session_leaves_open() -> None:
    question = asked("SELECT ward FROM visits GROUP BY ward HAVING count(*) > 100 OR sum(age) > 100", tolerance="sum=7")
    assert [cut.tolerance for cut in cuts(question.formula)] == [10, 7]
