"""Tolerances: the text that sets them, and the integers that follow, always rounded down."""

import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.formula import list_literals
from planner.bind.bind_question import bind_question
from planner.catalog.tolerance import Amount, StepSize, parse_tolerances, round_allowed_steps
from planner.errors import KeyholeError
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.statements.settings import read_accuracy
from tests.in_turn import in_turn
from tests.planner.asked import TODAY, asked, asking
from tests.worlds.retail import retail


def test_texts() -> None:
    found = parse_tolerances("10%, count( * ) = 25, AVG(age)=2.5 , amount=1%")
    assert found.default_tolerance == Amount(Decimal(10), is_percent=True)
    assert found.find_amount(("count(*)", "count")) == Amount(Decimal(25), is_percent=False)
    assert found.find_amount(("avg(age)", "avg", "age")) == Amount(Decimal("2.5"), is_percent=False)
    assert found.find_amount(("sum(amount)", "sum", "amount")) == Amount(Decimal(1), is_percent=True)
    assert found.find_amount(("sum(age)", "sum", "age")) == found.default_tolerance
    assert parse_tolerances("5 % of  Bounds").default_tolerance == Amount(
        Decimal(5), is_percent=False, refers_to_bounds=True
    )
    assert parse_tolerances("5% of bounds").default_tolerance == parse_tolerances("5 % of  Bounds").default_tolerance
    assert parse_tolerances("count(DISTINCT a, b)=3").named_tolerances == (
        ("count(distincta,b)", Amount(Decimal(3), is_percent=False)),
    )


@in_turn(
    "text",
    [
        "",
        "x",
        "-1",
        "101%",
        "10%, 20%",
        "count=1, COUNT=2",
        "nan",
        "inf",
        "1e30",
        "count=",
        "%",
        "101% of bounds",
        "of bounds",
        "% of bounds",
        "5 of bounds",
    ],
)
def test_bad_texts_are_refused(text: str) -> None:
    with pytest.raises(KeyholeError, match="KH402"):
        parse_tolerances(text)


@given(
    st.fractions(min_value=-1000, max_value=1000, max_denominator=20).filter(bool),
    st.decimals(min_value=0, max_value=100, places=1),
    st.sampled_from([Fraction(1), Fraction(1, 100), Fraction(1, 3)]),
    st.integers(1, 60),
)
def test_steps_are_the_largest_within_the_percentage(
    threshold: Fraction, percent: Decimal, size: Fraction, rows: int
) -> None:
    found = round_allowed_steps(Amount(percent, is_percent=True), threshold=threshold, step=StepSize(size, rows))
    wanted = abs(threshold) * Fraction(percent) / 100 * rows
    assert found * size <= wanted < (found + 1) * size


def test_a_percentage_of_zero_is_refused_and_an_amount_is_not() -> None:
    sql = "SELECT country FROM sales GROUP BY country HAVING sum(amount) > 0"
    with pytest.raises(KeyholeError, match="KH304") as refusal:
        asked(sql, tolerance="10%, sum=10%")
    assert refusal.value.position == sql.index("sum(amount)") + 1
    assert [cut.tolerance for cut in list_literals(asked(sql, tolerance="10%, sum=2").formula)] == [200]


WARDS = "SELECT ward FROM visits GROUP BY ward HAVING "
COUNTRIES = "SELECT country FROM sales GROUP BY country HAVING "
INSURED = "FILTER (WHERE insured)"
OTHERS = "FILTER (WHERE NOT insured)"


@in_turn(
    ("formula", "rows", "allowed"),
    [
        (f"count(*) {INSURED} > count(*) {OTHERS}", "50", 5),  # a tenth of 50 rows
        (f"count(*) {INSURED} > count(*) {OTHERS}", "800", 80),
        (f"count(*) {INSURED} > 3 * count(*) {OTHERS}", "50", 15),  # the larger side counts three for a row
        (
            f"sum(age) {INSURED} - sum(age) {OTHERS} > 0 AND count(age) {INSURED} > 9 AND count(age) {OTHERS} > 9",
            "50",
            550,
        ),  # 50 times 110
        ("sum(age) - sum(cost) > 0 AND count(age) > 9 AND count(cost) > 9", "50", 25_000),
        (
            "avg(age) - avg(cost) > 0 AND count(age) > 9 AND count(cost) > 9",
            "50",
            500,
        ),  # of the mean, whatever the group
        ("sum(age) > 100", "50", 550),
    ],
)
def test_a_part_of_the_bounds_is_one_of_what_the_larger_side_can_come_to(formula: str, rows: str, allowed: int) -> None:
    """In the analyst's unit: the same tolerance as if the number had been set."""
    where = "WHERE age IS NOT NULL AND cost IS NOT NULL" if "avg" in formula else ""
    sql = f"SELECT ward FROM visits {where} GROUP BY ward HAVING {formula}"
    if "AND count" in formula:
        named = "sum" if formula.startswith("sum") else "avg"
        parts, numbers = f"count=5, {named}=10% of bounds, 10%", f"count=5, {named}={allowed}, 10%"
    else:
        parts, numbers = "10% of bounds", f"{allowed}"
    said = asked(sql, tolerance=parts, min_rows=rows)
    assert said.formula == asked(sql, tolerance=numbers, min_rows=rows).formula
    assert max(cut.tolerance for cut in list_literals(said.formula)) > 0


@pytest.mark.parametrize(
    "sql",
    [
        f"{WARDS}count(*) {INSURED} > count(*) {OTHERS}",
        f"{WARDS}count(age) >= 500 AND count(cost) >= 500 AND sum(age) - 20 * sum(cost) > 0",
        f"{COUNTRIES}count(*) FILTER (WHERE gift) > count(*) FILTER (WHERE NOT gift)",
        f"{COUNTRIES}count(amount) FILTER (WHERE gift) > 50000 AND count(amount) FILTER (WHERE NOT gift) > 50000 AND "
        "sum(amount) FILTER (WHERE gift) > sum(amount) FILTER (WHERE NOT gift)",
    ],
)
def test_the_scale_that_a_refused_difference_is_given_is_worth_a_few_units(sql: str) -> None:
    """The hint is followed as it stands, and the question then costs less than what one question may."""
    with pytest.raises(KeyholeError, match="KH304") as refusal:
        asked(sql, tolerance="10%, sum=10%, count=10%")
    said = dict(re.findall(r"SET keyhole\.(\w+) = '?([^';]*)'?;", refusal.value.hint or ""))
    assert said["tolerance"].endswith("=10% of bounds")
    catalog = retail()
    wanted = read_accuracy({f"keyhole.{name}": value for name, value in said.items()}, catalog.defaults)
    (question,) = asking(sql).questions
    made = plan_question(
        bind_question(question, catalog, accuracy=wanted, parameters={}, today=TODAY), dialect=POSTGRES
    )
    assert made.worst_case_epsilon < 1.5


def test_what_never_is_below_zero_is_given_no_slack_that_groups_without_rows_would_pass() -> None:
    with pytest.raises(KeyholeError, match="KH304") as refusal:
        asked(f"{WARDS}sum(cost) > 0")
    assert "SET keyhole.tolerance = '10%, sum(cost)=0.5';" in (refusal.value.hint or "")
    assert "a larger threshold costs less" in (refusal.value.hint or "")


def test_the_standard_deviation_that_bounds_allow_is_half_their_range() -> None:
    sql = f"{WARDS}stddev_pop(age) > 30"
    assert asked(sql, tolerance="20% of bounds").formula == asked(sql, tolerance="11").formula


def test_names_reach_their_atoms() -> None:
    sql = (
        "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 100 OR count(age) > 100 OR sum(cost) > 100 "
        "OR count(*) FILTER (WHERE age > 65) > 100"
    )
    question = asked(sql, tolerance="1, count=2, count(age)=3, cost=4, count(*) FILTER (WHERE age > 65)=5")
    assert [cut.tolerance for cut in list_literals(question.formula)] == [2, 3, 8, 5]


def test_the_policy_fills_what_a_session_leaves_open() -> None:
    question = asked("SELECT ward FROM visits GROUP BY ward HAVING count(*) > 100 OR sum(age) > 100", tolerance="sum=7")
    assert [cut.tolerance for cut in list_literals(question.formula)] == [10, 7]
