"""The least that a row adds to `price * (1 - discount)`, which a ratio is divided by, against all rows on the grid."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from planner.aggregates.arithmetic import find_least_per_row
from planner.aggregates.row_expression import SumPart
from planner.catalog.catalog import Column, SqlType
from planner.question.condition import ALWAYS, Compare, Condition, IsNull, Not
from planner.question.products import make_product
from tests.effort import examples

_STEP = Decimal("0.5")


def _column(name: str, low: int, high: int) -> Column:
    return Column(name, SqlType.NUMERIC, "numeric(9,2)", bounds=(low * _STEP, high * _STEP), grid=_STEP)


def _present(column: Column) -> Condition:
    return Not(IsNull(column.name))


@examples(400, quick=100)
@given(
    low=st.integers(-1, 3),
    width=st.integers(0, 3),
    shares=st.lists(
        st.tuples(st.integers(-1, 2), st.integers(0, 3), st.sampled_from((-2, -1, 1))), min_size=1, max_size=2
    ),
    whole=st.integers(-1, 4),
)
def test_no_row_adds_less(low: int, width: int, shares: list[tuple[int, int, int]], whole: int) -> None:
    """The bound is attained where nothing may be below 0 and all shares lower the sum."""
    price = _column("price", low, low + width)
    others = [_column(f"share{i}", first, first + more) for i, (first, more, _) in enumerate(shares)]
    made = [make_product([price, other]) for other in others]
    parts = [SumPart(Fraction(whole), price, ALWAYS, 1)]
    parts += [SumPart(Fraction(factor), one, ALWAYS, 1) for one, (_, _, factor) in zip(made, shares, strict=True)]
    least = find_least_per_row(tuple(parts))
    xs = [Fraction(n, 2) for n in range(low, low + width + 1)]
    ys = [[Fraction(n, 2) for n in range(first, first + more + 1)] for first, more, _ in shares]
    sums: list[Fraction] = [
        sum((factor * x * y for y, (_, _, factor) in zip(found, shares, strict=True)), start=whole * x)
        for x, *found in product(xs, *ys)
    ]
    assert least <= max(Fraction(0), min(sums))
    if low >= 0 and all(first >= 0 and factor < 0 for first, _, factor in shares):
        assert least == max(Fraction(0), min(sums))


def test_a_product_that_counts_where_its_factor_does_not_is_no_bound() -> None:
    """A row without the price, or outside of its FILTER, would only lower the sum."""
    price, share = _column("price", 2, 4), _column("share", 0, 1)
    less = make_product([price, share])
    both = (SumPart(Fraction(1), price, _present(less), 1), SumPart(Fraction(-1), less, ALWAYS, 1))
    assert find_least_per_row(both) == Fraction(1, 2)
    filtered = replace(both[0], condition=Compare("price", ">", Decimal(1)))
    assert find_least_per_row((filtered, both[1])) == 0
