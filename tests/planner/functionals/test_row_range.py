"""The range of what one row can add: no row leaves it, and it is reached where terms are of the same rows."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.catalog import Column, Lookup, LookupValues, SqlType, Value
from planner.functionals.row_range import (
    MOST_CONDITIONS,
    find_row_range,
    find_row_range_without,
    make_not_true_condition,
)
from planner.question.condition import ALWAYS, NEVER, And, Compare, Condition, IsNull, Not, Or, Within, evaluate
from planner.question.question import Term
from tests.effort import examples
from tests.in_turn import in_turn
from tests.worlds.retail import VISITS

RANGES = {"age": (0, 110), "cost": (-3, 8)}
CONDITIONS: tuple[Condition, ...] = (
    ALWAYS,
    Compare("insured", "=", True),
    Not(Compare("insured", "=", True)),
    Compare("age", ">", 65),
    Compare("age", "<=", 4),
    IsNull("age"),
    Or((Compare("age", ">", 4), IsNull("insured"))),
    And((Within("ward", ("A", "B")), Not(IsNull("cost")))),
    Not(Within("ward", ("A", "B"))),
)
Row = dict[str, Value | None]
ROWS = st.fixed_dictionaries(
    {
        "age": st.sampled_from([None, 0, 4, 5, 65, 66, 110]),
        "cost": st.sampled_from([None, -3, 0, 8]),
        "insured": st.sampled_from([None, True, False]),
        "ward": st.sampled_from([None, "A", "C"]),
    }
)
TERMS = st.builds(
    Term,
    st.integers(-3, 3).filter(bool),
    st.sampled_from(["age", "cost"]),
    st.sampled_from(CONDITIONS),
    st.integers(0, 1),
)


def added(terms: list[Term], row: Row) -> int:
    result = 0
    for term in terms:
        value = row[term.column] if term.column else 1
        if value is not None and evaluate(term.condition, row) is True:
            assert isinstance(value, int)
            result += term.coefficient * value**term.power
    return result


@given(terms=st.lists(TERMS, min_size=1, max_size=10), rows=st.lists(ROWS, min_size=1, max_size=30))
@examples(300)
def test_no_row_adds_less_or_more(terms: list[Term], rows: list[Row]) -> None:
    low, high = find_row_range(terms, ranges=RANGES, table=VISITS)
    assert low <= 0 <= high
    assert all(low <= added(terms, row) <= high for row in rows)


@given(
    terms=st.lists(TERMS, min_size=1, max_size=4),
    column=st.sampled_from([None, "age", "cost"]),
    condition=st.sampled_from(CONDITIONS),
    rows=st.lists(ROWS, min_size=1, max_size=40),
)
@examples(300)
def test_no_row_without_the_values_adds_less_or_more(
    terms: list[Term], column: str | None, condition: Condition, rows: list[Row]
) -> None:
    low, high = find_row_range_without(terms, column=column, condition=condition, ranges=RANGES, table=VISITS)
    for row in rows:
        if evaluate(condition, row) is not True or (column is not None and row[column] is None):
            assert low <= added(terms, row) <= high


@given(condition=st.recursive(
    st.sampled_from(CONDITIONS),
    lambda inner: st.one_of(
        st.builds(Not, inner), st.builds(And, st.tuples(inner, inner)), st.builds(Or, st.tuples(inner, inner))
    ),
    max_leaves=5,
), row=ROWS)  # fmt: skip
def test_not_true_is_true_exactly_where_the_condition_is_not(condition: Condition, row: Row) -> None:
    assert (evaluate(make_not_true_condition(condition), row) is True) is (evaluate(condition, row) is not True)
    assert make_not_true_condition(ALWAYS) == NEVER


@in_turn(
    ("terms", "expected"),
    [
        ([Term(1, "age", ALWAYS, 1), Term(-65, "age", ALWAYS, 0)], (-65, 45)),
        ([Term(1, "age", ALWAYS, 1), Term(-20, None, ALWAYS, 0)], (-20, 90)),
        ([Term(1, "age", CONDITIONS[1], 1), Term(-1, "age", CONDITIONS[2], 1)], (-110, 110)),
        ([Term(1, None, CONDITIONS[3], 0), Term(1, None, CONDITIONS[4], 0)], (0, 1)),
        ([Term(1, "age", ALWAYS, 1), Term(40, None, IsNull("age"), 0)], (0, 110)),
        ([Term(4, None, CONDITIONS[3], 0), Term(-1, None, ALWAYS, 0)], (-1, 3)),
        (
            [Term(1, "age", ALWAYS, 1), Term(-100, None, CONDITIONS[3], 0)],
            (-34, 65),
        ),  # who is not above 65 is not older
        ([Term(1, None, Compare("cost", ">", Decimal(i)), 0) for i in range(MOST_CONDITIONS + 1)], (0, 9)),
    ],
)
def test_ranges_by_hand(terms: list[Term], expected: tuple[int, int]) -> None:
    assert find_row_range(terms, ranges=RANGES, table=VISITS) == expected


@pytest.mark.parametrize(("column", "most"), [("hour", 5), ("cost", 6), ("height", 6)])
def test_a_value_that_is_there_may_be_no_number_where_its_type_has_one(column: str, most: int) -> None:
    """Where both have values `age - x` is at most 6 - 1; where `x` may be NaN, which numeric has, too, its part is
    nothing."""
    terms = [Term(1, "age", ALWAYS, 1), Term(-1, column, ALWAYS, 1)]
    there = And((Not(IsNull("age")), Not(IsNull(column))))
    assert find_row_range(terms, ranges={"age": (5, 6), column: (1, 2)}, table=VISITS, among=there) == (0, most)


def test_a_sum_adds_nothing_where_its_column_is_null() -> None:
    """`sum(CASE WHEN insured THEN cost ELSE 0 END)` over rows where all cases are NULL: insured rows without a cost."""
    insured = Compare("insured", "=", True)
    values = Or((Or((Compare("insured", "=", False), IsNull("insured"))), And((insured, Not(IsNull("cost"))))))
    terms = [Term(1, "cost", insured, 1)]
    assert find_row_range_without(terms, column=None, condition=values, ranges=RANGES, table=VISITS) == (0, 0)


_BEDS = LookupValues.from_pairs((("A", 3), ("B", 40)))
BEDS = Column("beds", SqlType.INTEGER, "integer", derivation=Lookup("ward", "wards name beds", _BEDS))
JOINED = replace(VISITS, columns=(*VISITS.columns, BEDS))
FOUND: tuple[Condition, Condition] = (Not(IsNull("beds")), Within("ward", ("A", "B")))


@in_turn("found", FOUND)
@in_turn("ward", ["A", "B", "C", None])
@in_turn("age", [None, 0, 66, 110])
def test_a_looked_up_column_has_a_value_where_it_is_found(found: Condition, ward: str | None, age: int | None) -> None:
    """Planning says it by the column, rewriting by what it is looked up by: sensitivities of both have to agree."""
    over = Compare("age", ">", 65)
    terms = [Term(1, "age", And((over, found)), 1), Term(-1, "beds", And((over, Not(IsNull("age")))), 1)]
    ranges = {"age": (0, 110), "beds": (3, 40)}
    low, high = find_row_range(terms, ranges=ranges, table=JOINED)
    assert (low, high) == (-40, 107)
    row: Row = {"age": age, "ward": ward, "beds": {"A": 3, "B": 40}.get(ward or "")}
    assert low <= added(terms, row) <= high
    absent = [Term(1, "age", over, 1), Term(-1, "beds", over, 1)]
    assert find_row_range(absent, ranges=ranges, table=JOINED) == (0, 110)
