"""Joint sensitivity: the loss of any unit's rows is covered by some exposure, and some set affected together."""

import itertools
import operator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from mechanisms.formula import TRUE
from mechanisms.threshold.joint_loss import expose_functional_sets
from planner.catalog.catalog import RowCap, Table, Value
from planner.functionals.row_range import find_row_range
from planner.functionals.sensitivity import MOST_FUNCTIONALS, find_affected_sets, find_exposures, find_joint_sensitivity
from planner.question.condition import ALWAYS, And, Compare, Condition, IsNull, Like, Not, Or, Within, evaluate
from planner.question.question import Functional, Measure, Term
from tests.effort import examples
from tests.in_turn import in_turn
from tests.worlds.questions import CAPPED, CLIPPED, FRANCE, ROWS, SPAIN, average, count, question, total, units

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
    And((Compare("amount", ">=", 20), Compare("amount", "<", 60))),
    Within("amount", (20, 50)),
)

ROW = st.fixed_dictionaries(
    {
        "country": st.sampled_from(["France", "Spain", "Norway", None]),
        "amount": st.sampled_from([0, 20, 50, 51, 59, 60, 100, None]),
        "line_id": st.integers(),
    }
)


def counted(functional: Functional, row: dict[str, Value | None], where: Condition) -> int:
    """What a row adds to a functional."""
    if evaluate(where, row) is not True:
        return 0
    total = 0
    for term in functional.terms:
        value = row[term.column] if term.column else 1
        assert value is None or isinstance(value, int)
        if value is not None and evaluate(term.condition, row) is True:
            total += term.coefficient * value**term.power
    return total


def linear(terms: list[Term], *, table: Table = ROWS, where: Condition = ALWAYS) -> Functional:
    """Any linear form with its sensitivity by definition."""
    least, most = find_row_range(terms, ranges={"amount": (0, 100)}, table=table, among=where)
    rows = table.rows_per_unit or (table.row_cap.rows if table.row_cap else 1)
    clipped = not table.is_row_unit and table.row_cap is None
    return Functional(
        name="linear",
        measure=Measure.TOTAL,
        terms=tuple(terms),
        sensitivity=max(-least, most, 1) * rows,
        unit_range=(least * rows, most * rows) if clipped else None,
        unit_size=Decimal(1),
        rows=1,
    )


TERMS = st.lists(
    st.one_of(
        st.builds(Term, st.sampled_from([1, -1, 3]), st.just("amount"), st.sampled_from(CONDITIONS), st.just(1)),
        st.builds(
            Term,
            st.sampled_from([5, -65, 100]),
            st.sampled_from([None, "amount"]),
            st.sampled_from(CONDITIONS),
            st.just(0),
        ),
    ),
    min_size=1,
    max_size=3,
)


@given(
    table=st.sampled_from([ROWS, CAPPED, CLIPPED]),
    where=st.sampled_from(CONDITIONS),
    chosen=st.lists(TERMS, min_size=1, max_size=4),
    rows=st.lists(ROW, min_size=1, max_size=8),
    epsilons=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    blocks=st.frozensets(st.integers(0, 3)),
)
@examples(300)
def test_no_unit_loses_more_than_the_dearest_exposure(
    table: Table,
    where: Condition,
    chosen: list[list[Term]],
    rows: list[dict[str, Value | None]],
    epsilons: list[int],
    blocks: frozenset[int],
) -> None:
    """Those in blocks lose their whole epsilon as soon as they change; `blocks` may name none that there are."""
    functionals = [linear(terms, table=table, where=where) for terms in chosen]
    asked = question(TRUE, *functionals, table=table, where=where)
    if table.is_row_unit:
        rows = rows[:1]
    elif table.row_cap:
        rows = rows[: table.row_cap.rows]
    loss = in_blocks = Fraction(0)
    for index, (functional, epsilon) in enumerate(zip(functionals, epsilons, strict=False)):
        change = sum(counted(functional, row, where) for row in rows)
        if functional.unit_range is not None:
            low, high = functional.unit_range
            change = min(max(change, low), high)
        part = Fraction(abs(change), functional.sensitivity)
        loss += epsilon * part
        in_blocks += epsilon * (ceil(part) if index in blocks else part)
    sets, parts = find_affected_sets(asked), find_exposures(asked)
    assert frozenset().union(*sets) == frozenset(range(len(functionals)))
    assert all(any(one[index] > 0 for one in parts) for index in range(len(functionals)))
    dearest = max(sum(epsilons[index] for index in group) for group in sets)
    assert loss <= max(sum(map(operator.mul, one, epsilons)) for one in parts) <= dearest
    joint = find_joint_sensitivity(asked)
    named = blocks & frozenset(range(len(functionals)))
    assert in_blocks <= max(sum(map(operator.mul, one, epsilons)) for one in joint.find_exposures(named))
    assert joint.find_exposures(joint.find_free_blocks(named)) == parts


def test_disjoint_filters_are_apart_where_rows_are_summed() -> None:
    for table in (ROWS, CAPPED):
        asked = question(TRUE, count(FRANCE, table=table), count(SPAIN, table=table), table=table)
        assert find_affected_sets(asked) == (frozenset({0}), frozenset({1}))


def test_a_unit_of_two_rows_is_in_two_blocks() -> None:
    """One row in each of two disjoint counts costs both blocks whole, already under a cap of two rows."""
    table = replace(CAPPED, row_cap=RowCap(rows=2, unique="line_id"))
    joint = find_joint_sensitivity(question(TRUE, count(FRANCE, table=table), count(SPAIN, table=table), table=table))
    assert max(sum(one) for one in joint.find_exposures(frozenset({0, 1}))) == 2
    assert joint.find_free_blocks(frozenset({0, 1})) == frozenset()


def test_disjoint_filters_are_together_where_totals_are_clipped_per_unit() -> None:
    asked = question(TRUE, count(FRANCE, table=CLIPPED), total(SPAIN, table=CLIPPED), table=CLIPPED)
    assert find_affected_sets(asked) == (frozenset({0, 1}),)


def test_counted_units_are_in_every_set() -> None:
    asked = question(TRUE, count(FRANCE, table=CAPPED), units(SPAIN), count(SPAIN, table=CAPPED), table=CAPPED)
    assert find_affected_sets(asked) == (frozenset({0, 1}), frozenset({1, 2}))


def test_a_measure_and_the_rows_without_it_are_apart() -> None:
    missing = count(IsNull("amount"))
    assert find_affected_sets(question(TRUE, total(), missing)) == (frozenset({0}), frozenset({1}))


def test_the_where_separates_too() -> None:
    expensive, cheap = count(Compare("amount", ">", 50)), count(Not(FRANCE))
    within = question(TRUE, expensive, cheap, where=And((FRANCE,)))
    assert find_affected_sets(within) == (frozenset({0}), frozenset({1}))
    assert find_affected_sets(replace(within, where=ALWAYS)) == (frozenset({0, 1}),)


def test_no_functionals_and_too_many() -> None:
    assert find_affected_sets(question(TRUE)) == ()
    many = [count(FRANCE if index % 2 else SPAIN) for index in range(MOST_FUNCTIONALS + 1)]
    assert find_affected_sets(question(TRUE, *many)) == (frozenset(range(MOST_FUNCTIONALS + 1)),)
    assert len(find_affected_sets(question(TRUE, *many[:-1]))) == 2


@in_turn("size", range(1, 8))
def test_the_sets_are_exactly_the_maximal_ones(size: int) -> None:
    """Filters that are pairs of values: two are apart unless they share a value. Against brute force."""
    names = ("France", "Germany", "Norway", "Spain")
    pairs = [*itertools.combinations(names, 2), ("France",)]
    filters = [Within("country", tuple(pair)) for pair in pairs][:size]
    found = find_affected_sets(question(TRUE, *(count(condition) for condition in filters)))

    def together(group: tuple[int, ...]) -> bool:
        return all(set(pairs[one]) & set(pairs[other]) for one, other in itertools.combinations(group, 2))

    every = itertools.chain.from_iterable(itertools.combinations(range(size), n) for n in range(1, size + 1))
    cliques = [frozenset(group) for group in every if together(group)]
    assert set(found) == {group for group in cliques if not any(group < other for other in cliques)}
    assert len(found) == len(set(found))


def test_row_sums_are_measured_in_rows_and_totals_only() -> None:
    asked = question(TRUE, replace(count(FRANCE), measure=Measure.UNITS), count(SPAIN))
    assert find_affected_sets(asked) == (frozenset({0, 1}),)


def test_a_row_that_moves_one_mean_in_full_moves_another_little() -> None:
    """Amounts from 0 to 100: the row 0 moves x - 65 by 65 of 65 and x - 5 by 5 of 95, the row 100 by 35 and by 95."""
    parts = find_exposures(question(TRUE, average(65), average(5)))
    assert set(parts) == {(Fraction(1), Fraction(5, 95)), (Fraction(35, 65), Fraction(1))}


def test_conditions_on_what_is_summed_narrow_its_corners() -> None:
    """Amounts from 20 to 60: the ends of x - 65 are -45 and -5, of x - 5 they are 15 and 55; 20 moves the one by 45 of
    45 and the other by 15 of 55, 60 by 5 of 45 and in full."""
    where = And((Compare("amount", ">=", 20), Compare("amount", "<=", 60)))
    means = [linear([Term(1, "amount", ALWAYS, 1), Term(-at, "amount", ALWAYS, 0)], where=where) for at in (65, 5)]
    assert [mean.sensitivity for mean in means] == [45, 55]
    parts = find_exposures(question(TRUE, *means, where=where))
    assert set(parts) == {(Fraction(1), Fraction(15, 55)), (Fraction(5, 45), Fraction(1))}


def test_under_a_cap_every_row_moves_its_part() -> None:
    capped = [replace(average(at), sensitivity=5 * average(at).sensitivity) for at in (65, 5)]
    assert find_exposures(question(TRUE, *capped, table=CAPPED)) == find_exposures(
        question(TRUE, average(65), average(5))
    )


def test_counted_units_are_together_beside_a_sum_that_no_row_moves() -> None:
    never = And((Compare("amount", ">", 50), Compare("amount", "<=", 50)))
    dead = linear([Term(1, "amount", never, 1), Term(-4, "amount", never, 0)], table=CAPPED)
    parts = find_exposures(question(TRUE, units(FRANCE), dead, units(SPAIN), table=CAPPED))
    assert parts == expose_functional_sets([[0, 2], [1]], functionals=3)


def test_clipped_totals_are_charged_in_full() -> None:
    clipped = [replace(average(at), unit_range=(-at, 100 - at)) for at in (65, 5)]
    assert find_exposures(question(TRUE, *clipped, table=CLIPPED)) == ((Fraction(1), Fraction(1)),)
    beside = [average(65), average(5), units()]
    assert all(part[2] == 1 for part in find_exposures(question(TRUE, *beside, table=CAPPED)))


def test_counts_and_sums_of_one_sign_have_the_exposures_of_their_sets() -> None:
    asked = question(TRUE, count(FRANCE), total(FRANCE), count(SPAIN), total(Compare("amount", ">", 50)))
    assert find_exposures(asked) == expose_functional_sets(find_affected_sets(asked), functionals=4)


def test_sums_of_one_sign_are_free_in_blocks_beside_means() -> None:
    """A row in France may move its sum in full whatever it adds to the means; with its blocks nothing is larger. The
    means' own blocks are not free: 5 moves neither in full, but both indices."""
    joint = find_joint_sensitivity(question(TRUE, total(FRANCE), total(SPAIN), average(65), average(5)))
    assert joint.find_free_blocks(frozenset(range(4))) < frozenset(range(4))
    beside = find_joint_sensitivity(question(TRUE, count(FRANCE), total(IsNull("country")), total(SPAIN)))
    assert beside.find_free_blocks(frozenset(range(3))) == frozenset(range(3))


def test_a_difference_of_filters_moves_by_the_filter_that_a_row_is_in() -> None:
    """At most a fifth in Spain: 5 * count in Spain - count; a row in France moves it by 1 of 4, and no other filter."""
    share = linear([Term(5, None, SPAIN, 0), Term(-1, None, ALWAYS, 0)])
    parts = find_exposures(question(TRUE, share, count(FRANCE), count(SPAIN)))
    assert set(parts) == {(Fraction(1, 4), Fraction(1), Fraction(0)), (Fraction(1), Fraction(0), Fraction(1))}


def test_too_many_cases_fall_back_to_the_sets() -> None:
    """Twelve patterns, any of which a country may match or not: 4,096 cases."""
    patterns = [Like("country", f"%{letter}%") for letter in "abcdefghijkl"]
    form = linear([Term(2**place, None, one, 0) for place, one in enumerate(patterns)])
    asked = question(TRUE, form, average(65), count(FRANCE), count(SPAIN))
    assert find_exposures(asked) == expose_functional_sets(find_affected_sets(asked), functionals=4)


def different(column: str, condition: Condition, *, table: Table, most: int) -> Functional:
    """count(DISTINCT column) FILTER (WHERE condition), of which one unit has `most` values at most."""
    return replace(
        count(condition, table=table), measure=Measure.VALUES, terms=(Term(1, column, condition, 0),), sensitivity=most
    )


@given(
    before=st.lists(ROW, max_size=6),
    unit=st.lists(ROW, min_size=1, max_size=5),
    chosen=st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=4),
    epsilons=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    capped=st.booleans(),
)
@examples(200)
def test_no_unit_loses_more_by_different_values(
    before: list[dict[str, Value | None]],
    unit: list[dict[str, Value | None]],
    chosen: list[Condition],
    epsilons: list[int],
    capped: bool,
) -> None:
    """Beside a count; the unit's rows join any others, of which some have the same values."""
    table, most = (CAPPED, 5) if capped else (ROWS, 1)
    counts = [different("amount", condition, table=table, most=most) for condition in chosen]
    asked = question(TRUE, *counts, count(FRANCE, table=table), table=table)

    def values(functional: Functional, rows: list[dict[str, Value | None]]) -> int:
        found = [row for row in rows if counted(functional, row, ALWAYS)]
        return len({row["amount"] for row in found}) if functional.measure is Measure.VALUES else len(found)

    after = before + unit[:most]
    loss = sum(
        Fraction(epsilon * abs(values(one, after) - values(one, before)), one.sensitivity)
        for one, epsilon in zip(asked.functionals, [*epsilons[: len(chosen)], 1], strict=True)
    )
    weights = [*epsilons[: len(chosen)], 1]
    assert loss <= max(sum(map(operator.mul, one, weights)) for one in find_exposures(asked))


def test_one_value_of_a_unit_with_several_rows_may_be_in_every_filter() -> None:
    """A customer with a row in France and one in Spain changes both counts of customers by one: no maximum there."""
    counts = [different("customer_id", condition, table=CAPPED, most=1) for condition in (FRANCE, SPAIN)]
    assert find_exposures(question(TRUE, *counts, table=CAPPED)) == ((Fraction(1), Fraction(1)),)
    several = [different("line_id", condition, table=CAPPED, most=5) for condition in (FRANCE, SPAIN)]
    assert len(find_exposures(question(TRUE, *several, table=CAPPED))) == 2
    rows = [different("customer_id", condition, table=ROWS, most=1) for condition in (FRANCE, SPAIN)]
    assert len(find_exposures(question(TRUE, *rows))) == 2
