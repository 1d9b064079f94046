"""Joint sensitivity: the loss of any unit's rows is covered by some set of functionals affected together."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.formula import TRUE
from planner.catalog import Table, Value
from planner.condition import ALWAYS, And, Compare, Condition, IsNull, Not, Or, Within, evaluate
from planner.question import Functional, Measure
from planner.sensitivity import MOST_FUNCTIONALS, affected_together
from tests.planner.questions import CAPPED, CLIPPED, FRANCE, ROWS, SPAIN, count, question, total, units

CONDITIONS: tuple[Condition, ...] = (
    ALWAYS,
    FRANCE,
    SPAIN,
    Not(FRANCE),
    Within("country", ("France", "Norway")),
    Compare("amount", ">", 50),
    Compare("amount", "<=", 50),
    And((FRANCE, Compare("amount", ">", 50))),
    Or((SPAIN, IsNull("amount"))),
    IsNull("amount"),
)

ROW = st.fixed_dictionaries(
    {
        "country": st.sampled_from(["France", "Spain", "Norway", None]),
        "amount": st.sampled_from([0, 50, 51, 100, None]),
        "line_id": st.integers(),
    }
)


def counted(functional: Functional, row: dict[str, Value | None], where: Condition) -> int:
    """What a row adds to a functional."""
    if evaluate(where, row) is not True or evaluate(functional.condition, row) is not True:
        return 0
    if functional.column is None:
        return 1
    value = row[functional.column]
    assert value is None or isinstance(value, int)
    return 0 if value is None else value


@given(
    table=st.sampled_from([ROWS, CAPPED, CLIPPED]),
    where=st.sampled_from(CONDITIONS),
    chosen=st.lists(st.tuples(st.sampled_from([count, total]), st.sampled_from(CONDITIONS)), min_size=1, max_size=5),
    rows=st.lists(ROW, min_size=1, max_size=8),
    weights=st.lists(st.integers(0, 3), min_size=5, max_size=5),
)
@settings(max_examples=300, deadline=None)
def test_no_unit_loses_more_than_the_dearest_set(
    table: Table,
    where: Condition,
    chosen: list[tuple[type, Condition]],
    rows: list[dict[str, Value | None]],
    weights: list[int],
) -> None:
    functionals = [make(condition, table=table) for make, condition in chosen]
    asked = question(TRUE, *functionals, table=table, where=where)
    if table.row_unit:
        rows = rows[:1]
    elif table.row_cap:
        rows = rows[: table.row_cap.rows]
    loss = 0.0
    for functional, weight in zip(functionals, weights, strict=False):
        change = sum(counted(functional, row, where) for row in rows)
        if functional.unit_range is not None:
            low, high = functional.unit_range
            change = min(max(change, low), high)
        loss += weight * abs(change) / functional.sensitivity
    sets = affected_together(asked)
    assert frozenset().union(*sets) == frozenset(range(len(functionals)))
    assert loss <= max(sum(weights[index] for index in group) for group in sets) + 1e-9


def test_disjoint_filters_are_apart_where_rows_are_summed() -> None:
    for table in (ROWS, CAPPED):
        asked = question(TRUE, count(FRANCE, table=table), count(SPAIN, table=table), table=table)
        assert affected_together(asked) == (frozenset({0}), frozenset({1}))


def test_disjoint_filters_are_together_where_totals_are_clipped_per_unit() -> None:
    asked = question(TRUE, count(FRANCE, table=CLIPPED), total(SPAIN, table=CLIPPED), table=CLIPPED)
    assert affected_together(asked) == (frozenset({0, 1}),)


def test_counted_units_are_in_every_set() -> None:
    asked = question(TRUE, count(FRANCE, table=CAPPED), units(SPAIN), count(SPAIN, table=CAPPED), table=CAPPED)
    assert affected_together(asked) == (frozenset({0, 1}), frozenset({1, 2}))


def test_a_measure_and_the_rows_without_it_are_apart() -> None:
    missing = count(IsNull("amount"))
    assert affected_together(question(TRUE, total(), missing)) == (frozenset({0}), frozenset({1}))


def test_the_where_separates_too() -> None:
    expensive, cheap = count(Compare("amount", ">", 50)), count(Not(FRANCE))
    within = question(TRUE, expensive, cheap, where=And((FRANCE,)))
    assert affected_together(within) == (frozenset({0}), frozenset({1}))
    assert affected_together(replace(within, where=ALWAYS)) == (frozenset({0, 1}),)


def test_no_functionals_and_too_many() -> None:
    assert affected_together(question(TRUE)) == ()
    many = [count(FRANCE if index % 2 else SPAIN) for index in range(MOST_FUNCTIONALS + 1)]
    assert affected_together(question(TRUE, *many)) == (frozenset(range(MOST_FUNCTIONALS + 1)),)
    assert len(affected_together(question(TRUE, *many[:-1]))) == 2


@pytest.mark.parametrize("size", range(1, 8))
def test_the_sets_are_exactly_the_maximal_ones(size: int) -> None:
    """Filters that are pairs of values: two are apart unless they share a value. Against brute force."""
    names = ("France", "Germany", "Norway", "Spain")
    pairs = [*itertools.combinations(names, 2), ("France",)]
    filters = [Within("country", tuple(pair)) for pair in pairs][:size]
    found = affected_together(question(TRUE, *(count(condition) for condition in filters)))

    def together(group: tuple[int, ...]) -> bool:
        return all(set(pairs[one]) & set(pairs[other]) for one, other in itertools.combinations(group, 2))

    every = itertools.chain.from_iterable(itertools.combinations(range(size), n) for n in range(1, size + 1))
    cliques = [frozenset(group) for group in every if together(group)]
    assert set(found) == {group for group in cliques if not any(group < other for other in cliques)}
    assert len(found) == len(set(found))


def test_row_sums_are_measured_in_rows_and_totals_only() -> None:
    asked = question(TRUE, replace(count(FRANCE), measure=Measure.UNITS), count(SPAIN))
    assert affected_together(asked) == (frozenset({0, 1}),)
