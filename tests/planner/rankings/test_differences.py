"""Two sides compared, where nobody said by how much they may err: what a fixed price allows."""

import re
from decimal import Decimal
from fractions import Fraction

import pytest

from mechanisms.formula import list_literals
from mechanisms.threshold.one_shot import find_least_rate
from planner.errors import KeyholeError
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from tests.in_turn import in_turn
from tests.planner.asked import asked
from tests.worlds.retail import retail

WARDS, STORES = "SELECT ward FROM visits GROUP BY ward HAVING ", "SELECT country FROM sales GROUP BY country HAVING "
INSURED, OTHERS = "count(*) FILTER (WHERE insured)", "count(*) FILTER (WHERE NOT insured)"
GIFTS, SALES = "sum(amount) FILTER (WHERE gift)", "sum(amount) FILTER (WHERE NOT gift)"
PRICE = retail().budget.per_query / 4


@in_turn(
    ("sql", "number"),
    [
        (f"{WARDS}{INSURED} > {OTHERS}", 1),
        (f"{WARDS}count(CASE WHEN insured THEN 1 END) <= 1.5 * count(CASE WHEN NOT insured THEN 1 END)", 1),
        (f"{WARDS}{INSURED} = {OTHERS}", 1),
        (f"{WARDS}{INSURED} > {OTHERS} OR {INSURED} < {OTHERS}", 1),
        (f"{WARDS}{INSURED} > {OTHERS} AND {INSURED} < 3 * {OTHERS}", 2),
        (f"SELECT ward, {INSURED} > {OTHERS} AS a, sum(age) > 2 * sum(cost) AS b FROM visits GROUP BY ward", 2),
        (f"{STORES}{GIFTS} > 1.2 * {SALES}", 1),
        (f"{STORES}sum(amount) > 0 AND count(amount) >= 5000", 1),  # amounts may be negative
        (f"{WARDS}({INSURED} > {OTHERS}) IS NOT TRUE", 1),
    ],
)
def test_an_amount_is_what_a_share_of_a_quarter_buys(sql: str, number: int) -> None:
    """It is the least at which the test alone costs that, rounded up to two digits: a tenth less costs more."""
    question = asked(sql)
    assert len(question.priced_differences) == number
    for name, amount in question.priced_differences:
        made = next(one for one in question.functionals if one.name == name)
        steps = Fraction(amount) / Fraction(made.unit_size)
        assert steps.denominator == 1
        tested = [
            cut
            for one in question.formulas
            for cut in list_literals(one)
            if question.functionals[cut.functional] == made
        ]
        assert {cut.tolerance for cut in tested} == {steps}
        rates = {"fnr": question.accuracy.fnr / number, "fpr": question.accuracy.fpr / number}
        costs = [made.sensitivity * find_least_rate(tolerance=int(steps * part / 10), **rates).rate for part in (10, 9)]
        assert costs[0] <= PRICE / number < costs[1]
        told = next(one for one in question.warnings if one.startswith(f"{name} may err where it is within {amount:f}"))
        said = re.search(r"SET keyhole\.tolerance = '((?:[^']|'')*)';", told)
        assert said is not None
        halved = asked(sql, tolerance=said[1].replace("''", "'"))
        assert name not in dict(halved.priced_differences)
        atoms = [one for one in (*question.atoms, *halved.atoms) if one.text.startswith(f"{name} ")]
        widths = [one.upper - one.lower for one in atoms]
        assert widths == sorted(widths, reverse=True)
    if number == 1:
        ((name, amount),) = question.priced_differences
        same = asked(sql, tolerance=f"10%, {name}={amount:f}")
        assert not same.priced_differences
        assert (
            plan_question(same, dialect=POSTGRES).fingerprint == plan_question(question, dialect=POSTGRES).fingerprint
        )


def test_one_difference_costs_a_quarter_at_most() -> None:
    for sql in (f"{WARDS}{INSURED} > {OTHERS}", f"{STORES}sum(quantity) > 2 * count(*)"):
        assert plan_question(asked(sql), dialect=POSTGRES).worst_case_epsilon <= PRICE


@in_turn(
    ("sql", "tolerance"),
    [
        (f"{WARDS}{INSURED} > {OTHERS}", "5"),
        (f"{WARDS}{INSURED} > {OTHERS}", "10%, count=5"),
        (f"{WARDS}{INSURED} > {OTHERS}", "10% of bounds"),
        (f"{WARDS}{INSURED} > {OTHERS} + 20", "10%"),
        (f"{WARDS}{INSURED} > 20", "10%"),
    ],
)
def test_whatever_has_a_tolerance_keeps_it(sql: str, tolerance: str) -> None:
    assert not asked(sql, tolerance=tolerance).priced_differences


@pytest.mark.parametrize(
    ("sql", "tolerance"),
    [
        (f"{WARDS}{INSURED} > {OTHERS}", "10%, count=10%"),  # a percentage that somebody said of it
        (f"{WARDS}{INSURED} <> {OTHERS}", "10%"),  # every group would pass
        (f"{WARDS}{INSURED} < count(*)", "10%"),  # never below 0: groups without rows lie at the edge
        (f"{WARDS}sum(cost) > 0", "10%"),
        (f"{WARDS}count(*) > 0", "10%"),
    ],
)
def test_other_percentages_of_zero_are_refused(sql: str, tolerance: str) -> None:
    with pytest.raises(KeyholeError, match="KH304"):
        asked(sql, tolerance=tolerance)


def test_an_amount_does_not_depend_on_what_else_is_asked() -> None:
    alone, beside = (asked(f"{WARDS}{INSURED} > {OTHERS}{more}") for more in ("", " AND count(*) > 100"))
    assert alone.priced_differences == beside.priced_differences == ((f"{INSURED} - {OTHERS}", Decimal(7)),)


BEFORE = "lag(count(*)) OVER (ORDER BY month)"
APART = f"count(*) - {BEFORE}"


def by_month(condition: str) -> str:
    """A question that compares months `n` with those before, `b`."""
    return (
        f"SELECT month FROM (SELECT month, count(*) AS n, {BEFORE} AS b FROM sales GROUP BY month) q WHERE {condition}"
    )


def widths(sql: str, **settings: str) -> list[Fraction]:
    """The tolerances of a question's literals, in the analyst's unit."""
    question = asked(sql, parameters=None, catalog=None, **settings)
    cuts = [cut for one in question.formulas for cut in list_literals(one)]
    return [cut.tolerance * Fraction(question.functionals[cut.functional].unit_size) for cut in cuts]


@in_turn(
    ("condition", "numbers"),
    [
        ("n > b + 10", "10"),
        ("n >= b + 0.5", "0.5"),
        ("n < b - 10", "-10"),
        ("n - b BETWEEN 10 AND 90", "10 and 90"),
        ("abs(n - b) > 10", "-10 and 10"),
        ("n = b + 10", "10"),
        ("n > b + 10 OR n > b", "0 and 10"),
    ],
)
def test_a_small_number_beside_other_groups_errs_as_none(condition: str, numbers: str) -> None:
    """A percentage of it would say nothing of how large the groups are, and would cost hundreds."""
    question, plain = asked(by_month(condition)), asked(by_month("n > b"))
    assert question.priced_differences == plain.priced_differences
    ((_, amount),) = question.priced_differences
    assert set(widths(by_month(condition))) == {amount}
    assert any(
        one.startswith(f"{APART} may err where it is within {amount:f} of {numbers}, ") for one in question.warnings
    )
    assert plan_question(question, dialect=POSTGRES).worst_case_epsilon <= 1.2 * PRICE


def test_each_side_of_a_number_is_the_larger_of_both() -> None:
    """The amount is 1200. A number whose percentage is larger takes no share of the price."""
    assert widths(by_month("n > b + 12000")) == [1200]
    assert widths(by_month("n > b + 12010")) == [1201]
    assert not asked(by_month("n > b + 12010")).priced_differences
    (alone,) = widths(by_month("n > 1.2 * b"))
    assert widths(by_month("n > 1.2 * b AND n > b + 50000")) == [alone, 5000]
    assert widths(by_month("n > b + 10 OR n > b + 50000")) == [1200, 5000]
    first, second = widths(by_month("n > 1.2 * b AND n > b + 10"))
    assert first > alone
    assert second > 1200


@in_turn(
    ("condition", "tolerance", "width"),
    [
        ("n > b + 100", f"10%, {APART}=7", 7),
        ("n > b + 100", f"10%, {APART}=10%", 10),
        ("n > b + 100", "7", 7),
        ("n > b + 100", "0%", 0),
        ("n <> b + 100", "10%", 10),
        ("n + b > 1000", "10%", 100),  # how large both are together
        ("b > 1000", "10%", 100),
    ],
)
def test_numbers_that_say_how_large_groups_are_keep_their_percentage(
    condition: str, tolerance: str, width: int
) -> None:
    assert not asked(by_month(condition), tolerance=tolerance).priced_differences
    assert set(widths(by_month(condition), tolerance=tolerance)) == {width}
