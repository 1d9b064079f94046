"""Whether rows with declared values can satisfy a condition: held against every such row of a small table."""

from dataclasses import replace
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.catalog import Column, SqlType, Value
from planner.question.condition import ALWAYS, NEVER, And, Compare, Condition, IsNull, Like, Not, Or, Within, evaluate
from planner.question.possible_rows import may_hold
from tests.effort import examples
from tests.in_turn import in_turn
from tests.worlds.retail import VISITS

_BOUNDS = (Decimal(0), Decimal(2))
WARDS = ("A", "B")
TABLE = replace(
    VISITS,
    columns=(
        Column("y", SqlType.INTEGER, "integer", bounds=_BOUNDS, grid=Decimal(1)),
        Column("x", SqlType.DOUBLE, "double precision", bounds=_BOUNDS, grid=Decimal("0.5")),
        Column("ward", SqlType.TEXT, "text", domain=WARDS),
        Column("free", SqlType.INTEGER, "integer"),
    ),
)
VALUES: dict[str, tuple[Value | None, ...]] = {
    "y": (None, 0, 1, 2),
    "x": (None, Decimal(0), Decimal("0.25"), Decimal("0.5"), Decimal(2)),
    "ward": (None, *WARDS),
    "free": (None, -3, 9),
}
ROWS = [dict(zip(VALUES, values, strict=True)) for values in product(*VALUES.values())]


def _compare(name: str, *values: Value) -> st.SearchStrategy[Condition]:
    operators = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    return st.builds(Compare, st.just(name), operators, st.sampled_from(values))


def conditions() -> st.SearchStrategy[Condition]:
    others: list[Condition] = [Within("ward", ("B", "C")), Within("y", (3, 4)), Like("ward", "C%"), IsNull("y"), NEVER]
    leaves = st.one_of(
        _compare("y", -1, 0, 1, 2, 3),
        _compare("x", Decimal(-1), Decimal(0), Decimal("0.5"), Decimal(2), Decimal(3)),
        _compare("ward", "A", "C"),
        _compare("free", -3, 50),
        st.sampled_from(others),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple)),
            st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        ),
        max_leaves=5,
    )


@examples(300)
@given(conditions(), st.sampled_from([None, ("A",), ("B",), WARDS]))
def test_it_says_no_only_where_no_row_satisfies_it(condition: Condition, wards: tuple[str, ...] | None) -> None:
    keys = None if wards is None else {"ward": wards}
    if not may_hold(condition, TABLE, keys=keys):
        rows = [row for row in ROWS if wards is None or row["ward"] in wards]
        assert not any(evaluate(condition, row) is True for row in rows)


@in_turn(
    "condition",
    [
        Compare("y", "=", 3),
        Compare("y", "<", 0),
        Not(Compare("y", "<=", 2)),
        Compare("x", ">", Decimal(2)),
        Compare("ward", "=", "C"),
        And((Compare("y", ">", 0), Compare("y", "<", 1))),
        Or((Compare("y", "=", 3), Compare("ward", "=", "C"))),
        And((Compare("free", "=", 9), Within("ward", ("C", "D")))),
        NEVER,
    ],
)
def test_it_says_no_of_a_slip_of_the_pen(condition: Condition) -> None:
    assert not may_hold(condition, TABLE)


@pytest.mark.parametrize(
    "condition",
    [Compare("y", "=", 2), Compare("x", ">=", Decimal(2)), IsNull("ward"), Compare("free", "=", 10**9), ALWAYS],
)
def test_what_a_row_may_satisfy_is_not_refused(condition: Condition) -> None:
    assert may_hold(condition, TABLE)


def test_a_row_in_a_group_has_one_of_its_values() -> None:
    assert not may_hold(Compare("ward", "=", "A"), TABLE, keys={"ward": ("B",)})
    assert not may_hold(IsNull("ward"), TABLE, keys={"ward": WARDS})
