"""Products of measures: their range holds every product of numbers in the factors' ranges, and is reached."""

from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.aggregates import row_expression
from planner.catalog.catalog import Column
from planner.question.products import add_products, find_product_range, find_steps, make_product, remove_products
from tests.effort import examples
from tests.planner.asked import refusal
from tests.worlds.retail import VISITS

_FACTORS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(-4, 4), st.integers(0, 4)), min_size=1, max_size=4
).map(lambda drawn: [(name, low, low + width) for name, low, width in drawn])


@examples(200)
@given(_FACTORS)
def test_the_range_is_that_of_all_products(drawn: list[tuple[str, int, int]]) -> None:
    range_of = {name: (low, high) for name, low, high in drawn}
    names = [name for name, _, _ in drawn]
    values = product(*(range(low, high + 1) for low, high in range_of.values()))
    reached = [prod(dict(zip(range_of, one, strict=True))[name] for name in names) for one in values]
    assert find_product_range([range_of[name] for name in names], names) == (min(reached), max(reached))


def test_a_product_is_the_same_in_any_order_and_nesting() -> None:
    age, cost = VISITS.get_column("age"), VISITS.get_column("cost")
    assert make_product([age, cost]) == make_product([cost, age])
    assert make_product([make_product([cost, age]), cost]) == make_product([age, make_product([cost, cost])])


def test_ranges_of_nested_products_cover_those_of_their_factors() -> None:
    cost = VISITS.get_column("cost")
    size, low, high = find_steps(make_product([cost, cost])) or (0, 0, 0)
    assert (size, low, high) == ((find_steps(cost) or (0,))[0] ** 2, 0, 10_000**2)


def test_a_table_with_products_is_the_policys_without_them() -> None:
    made = make_product([VISITS.get_column("age"), VISITS.get_column("cost")])
    more = add_products(VISITS, [made, None, made, VISITS.get_column("age")])
    assert [column.name for column in more.columns][-1] == made.name
    assert len(more.columns) == len(VISITS.columns) + 1
    assert remove_products(more) == VISITS


def test_a_product_of_long_sums_is_refused_before_it_is_multiplied_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty terms multiplied three times took fifteen seconds of the processor, a hundred four times all memory."""
    multiplied: list[object] = []

    def multiply(*given: object) -> Column:
        multiplied.append(given)
        return VISITS.get_column("age")

    monkeypatch.setattr(row_expression, "_make_product", multiply)
    short, long = " + ".join(["age"] * 5), " + ".join(["age"] * 30)
    for factors in ((short, short), (long, "cost"), ("cost", f"({short}) * (cost + {short})")):
        text = " * ".join(f"({one})" for one in factors)
        refused = refusal(f"SELECT ward FROM visits GROUP BY ward HAVING sum({text}) > 100000")
        assert refused is not None
        assert refused.code == "KH204"
        assert "has too many cases" in refused.message
    assert multiplied == []
