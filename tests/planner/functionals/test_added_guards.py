"""Guards that Keyhole adds: the same question as the one with the guard typed, of the group size that is in force."""

import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from mechanisms.formula import list_literals
from planner.catalog.pace import TableSize
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.question.question import Question
from tests.in_turn import in_turn
from tests.planner.asked import asked, refusal
from tests.worlds.analysts import analysts

WARDS = "SELECT ward FROM visits GROUP BY ward HAVING "
COUNTRIES = "SELECT country FROM sales GROUP BY country HAVING "


def _fingerprint(question: Question) -> str:
    return plan_question(question, dialect=DUCKDB).fingerprint


@pytest.mark.parametrize(
    ("sql", "guard"),
    [
        (WARDS + "avg(age) >= 65", "count(age) >= 50"),
        (WARDS + "NOT avg(age) > 65", "count(age) >= 50"),
        (WARDS + "round(avg(age)) >= 65", "count(age) >= 50"),
        (WARDS + "avg(age) FILTER (WHERE insured) <= 30", "count(age) FILTER (WHERE insured) >= 100"),
        (WARDS + "100.0 * count(*) FILTER (WHERE insured) / count(*) <= 30", "count(*) >= 100"),
        (WARDS + "min(age) >= 18", "count(age) >= 50"),
        (WARDS + "max(age) <= 18", "count(age) >= 50"),
        (WARDS + "percentile_cont(0.5) WITHIN GROUP (ORDER BY age) > 65", "count(age) >= 50"),
        (WARDS + "percentile_disc(0.5) WITHIN GROUP (ORDER BY age) <= 65", "count(age) >= 50"),
        (WARDS + "stddev(age) < 10", "count(age) >= 1000"),
        (WARDS + "variance(age) >= 1600", "count(age) >= 200"),
        (WARDS + "-avg(age) < -65 AND every(insured)", "count(insured) >= 50"),
        (COUNTRIES + "avg(amount) >= 20", "count(amount) >= 10000"),
        (
            COUNTRIES + "sum(amount) < 90000",
            "count(DISTINCT (customer_id, month)) FILTER (WHERE amount IS NOT NULL) >= 50",
        ),
    ],
)
def test_an_added_guard_makes_the_question_that_has_it_typed(sql: str, guard: str) -> None:
    tolerance = "30%"
    if "sales" in sql:
        tolerance = "10%"
    added = asked(sql, tolerance=tolerance)
    if "sales" not in sql:  # a wider tolerance needs a smaller count, and the policy's group size is the least
        assert refusal(sql, tolerance=tolerance, guard="refuse") is not None
    assert _fingerprint(added) == _fingerprint(asked(f"{sql} AND {guard}", tolerance=tolerance))
    assert any(f"AND {guard} was added" in warning for warning in added.warnings), added.warnings


@pytest.mark.parametrize(
    ("comparison", "tolerance", "least"),
    [
        ("avg(age) >= 65", "30%", 50),  # the policy's: a mean of 20 would do
        ("avg(age) >= 65", "10%", 100),  # 5 times 65 years are a tenth of 65 years in 56 rows
        ("avg(age) >= 65 AND avg(age) <= 70", "10%", 100),  # one count guards both
        ("avg(age) >= 65", "1%", 1000),  # the mean asks for 506, a count that is sharp to one in a hundred for 500
        ("avg(age) >= 65", "10%, count=100%", 100),  # half of the count's number is left for the mean
        ("avg(cost) >= 20", "10%", 50),  # the mean asks for 13,834: all groups would be hidden
        ("avg(age) >= 65", "0%", 50),
        ("sum(age) <= 20000", "5%", 100),
    ],
)
def test_the_number_is_the_larger_of_what_the_count_and_the_mean_ask_for(
    comparison: str, tolerance: str, least: int
) -> None:
    question = asked(WARDS + comparison, tolerance=tolerance)
    (guard,) = (one for one in question.atoms if one.text.startswith("count("))
    assert guard.text.endswith(f" >= {least}")
    explained = [warning for warning in question.warnings if "one row could move" in warning]
    assert len(explained) == (least > 50)
    assert all("SET keyhole.min_rows = 50;" in warning for warning in explained)


def test_a_number_larger_than_the_policys_costs_less_than_half() -> None:
    costs = [plan_question(asked(WARDS + "avg(age) >= 65", min_rows=set_to), dialect=DUCKDB) for set_to in ("50", "")]
    small, large = (one.worst_case_epsilon for one in costs)
    assert large < small / 1.8


def test_the_group_size_that_is_set_is_the_guard_and_that_of_the_mean() -> None:
    added = asked(COUNTRIES + "avg(amount) >= 20", min_rows="700")
    typed = asked(COUNTRIES + "avg(amount) >= 20 AND count(amount) >= 700", min_rows="700")
    assert _fingerprint(added) == _fingerprint(typed)
    assert {one.rows for one in added.functionals} == {1, 700}


def test_a_mean_is_meant_for_groups_that_pass_the_guard_within_its_tolerance() -> None:
    """M20's N' = N - tau_N: a group of 9,000 rows may pass a guard of 10,000."""
    assert {one.rows for one in asked(COUNTRIES + "avg(amount) >= 20").functionals} == {1, 9000}


def test_an_absolute_tolerance_of_the_mean_is_none_of_the_guard() -> None:
    """Two years are no two rows: the guard's tolerance is a tenth then."""
    question = asked(WARDS + "avg(age) >= 65", tolerance="2")
    guard = next(one for one in question.atoms if one.text.startswith("count(age)"))
    assert guard.lower == 200 - 20
    assert guard.literals == ((199, True),)


@pytest.mark.parametrize(
    "sql",
    [
        WARDS + "(avg(age) >= 65) IS NOT TRUE",
        WARDS + "count(*) > 5 EXCEPT " + WARDS + "avg(age) >= 65",
    ],
)
def test_no_guard_is_added_where_the_complement_counts(sql: str) -> None:
    """There a small group would come because it is small, whatever its mean."""
    refused = refusal(sql)
    assert refused is not None
    assert refused.code == "KH206"


def test_in_an_or_only_the_comparison_is_guarded() -> None:
    question = asked(WARDS + "avg(age) >= 65 OR count(*) > 40")
    typed = asked(WARDS + "(avg(age) >= 65 AND count(age) >= 100) OR count(*) > 40")
    assert _fingerprint(question) == _fingerprint(typed)


def test_what_bounds_decide_is_refused_as_before() -> None:
    with pytest.raises(KeyholeError, match="KH220"):
        asked(WARDS + "avg(age) >= 0")


@in_turn(
    ("divisor", "times"),
    [
        ("sum(cost)", Fraction(1)),
        ("(sum(cost) / 1000.0)", Fraction(1000)),
        ("nullif(2 * sum(cost), 0)", Fraction(1, 2)),
    ],
)
def test_a_ratio_by_a_sum_is_one_of_groups_that_reach_a_base(divisor: str, times: Fraction) -> None:
    """The base is affordable, and the ratio's tolerance is meant for groups that reach it within its tolerance. It is
    one of the sum itself, whatever that is multiplied by. What the NOTICE says to type asks half as large groups."""
    ratio = f"{WARDS}sum(cost) FILTER (WHERE insured) / {divisor} > {float(times / 2)}"
    added = asked(ratio)
    assert _fingerprint(added) == _fingerprint(asked(f"{ratio} AND sum(cost) >= 250000"))
    (tested,) = (one for one in added.atoms if one.text.startswith("sum(cost) FILTER"))
    (base,) = (one for one in added.atoms if one.text.startswith("sum(cost) >="))
    assert base.lower == 225_000
    assert (tested.lower, tested.upper) == (Decimal(str(float(times * 9 / 20))), Decimal(str(float(times / 2))))
    (cut,) = (one for one in list_literals(added.formula) if one.functional == tested.functional)
    assert cut.tolerance * Fraction(added.functionals[cut.functional].unit_size) == times * Fraction(1, 20) * 225_000
    costs = [
        plan_question(one, dialect=DUCKDB).worst_case_epsilon for one in (added, asked(ratio + _typed_smaller(added)))
    ]
    assert costs[0] < 2 < costs[1] < 4


def _typed_smaller(question: Question) -> str:
    (told,) = (found for one in question.warnings if (found := re.search(r"write AND (sum\(cost\) >= \d+) ", one)))
    return f" AND {told[1]}"


def test_the_base_shows_that_the_divisor_has_values() -> None:
    """Units with many rows: no count of units stands beside a base of their sum, as none does beside a typed one."""
    for more in ("", " AND sum(quantity) >= 100000"):
        sql = f"SELECT region FROM orders GROUP BY region HAVING sum(total) / sum(quantity) > 5{more}"
        question = asked(sql, catalog=analysts("orders"))
        assert [one.text for one in question.atoms if one.text.startswith("count(")] == []


def test_a_ratio_by_a_sum_of_either_sign_is_one_of_groups_that_reach_a_base_on_either_side() -> None:
    """As somebody types it who knows the bases. A base in the text chooses a side, and so do bounds of units."""
    of_sales = "SELECT country FROM sales GROUP BY country HAVING "
    ratio = "sum(quantity) / nullif(sum(amount), 0) > 2"
    above, below = f"{ratio} AND sum(amount) >= 75000", f"{ratio} AND sum(amount) <= -75000"
    assert _fingerprint(asked(of_sales + ratio)) == _fingerprint(asked(f"{of_sales}({above}) OR ({below})"))
    for side in (above, below):
        assert len(asked(of_sales + side).functionals) == 2
    only = "sum(amount) / sum(quantity) > 2"  # no customer of a month takes off more than the declared 0
    assert _fingerprint(asked(of_sales + only)) == _fingerprint(asked(f"{of_sales}{only} AND sum(quantity) >= 50000"))
    assert refusal(of_sales + ratio, guard="refuse", tolerance="10%") is not None


def test_a_tolerance_of_all_leaves_an_added_base_half_of_itself() -> None:
    made = asked(WARDS + "sum(cost) FILTER (WHERE insured) / sum(cost) > 0.5", tolerance="100%")
    (base,) = (one for one in made.atoms if one.text.startswith("sum(cost) >="))
    assert base.lower is not None
    assert base.lower > 0


def test_without_added_guards_a_ratio_by_a_sum_shows_its_base() -> None:
    refused = refusal(WARDS + "sum(cost) / sum(age) > 2", guard="refuse")
    assert refused is not None
    assert refused.code == "KH206"
    assert asked(f"{WARDS}sum(cost) / sum(age) > 2 {(refused.hint or '').removeprefix('Add: ')}", guard="refuse")


@pytest.mark.parametrize(
    ("sql", "counted"),
    [
        ("sum(co2) / sum(pressure) >= 2", ["count(pressure) >= 200"]),  # pressure is 900 at the least
        ("sum(co2) / sum(pressure) < 2", ["count(co2) >= 200"]),
        ("sum(co2) / sum(humidity) >= 20", []),  # a base shows that there is something to divide by
        ("sum(co2) / sum(humidity) <= 20", ["count(co2) >= 50"]),
        ("sum(CASE WHEN ok THEN co2 ELSE 0 END) / sum(humidity) >= 20", []),
    ],
)
def test_only_what_could_pass_as_null_is_counted(sql: str, counted: list[str]) -> None:
    question = asked(f"SELECT site FROM readings GROUP BY site HAVING {sql}", catalog=analysts("readings"))
    assert sorted(one.text for one in question.atoms if one.text.startswith("count(")) == counted


def test_rows_of_a_column_that_is_never_null_are_its_values() -> None:
    """As the source's schema says, or WHERE."""
    for where, comparison in (
        ("cost > 3", "sum(age) - sum(cost) > 5000"),
        (
            "cost > 3",
            "avg(CASE WHEN disease LIKE 'I%' THEN age ELSE 0 END) >= 20 AND count(*) FILTER (WHERE"
            " (disease LIKE 'I%' AND age IS NOT NULL) OR disease NOT LIKE 'I%' OR disease IS NULL) >= 50",
        ),
        ("cost IS NOT NULL", "avg(cost) >= 20 AND count(*) >= 500"),
    ):
        asked_for = [
            one.text for one in asked(f"SELECT ward FROM visits WHERE {where} GROUP BY ward HAVING {comparison}").atoms
        ]
        assert " AND ".join(asked_for) == comparison


def test_a_base_that_the_declared_size_cannot_reach_is_warned_of() -> None:
    """200 customers of at most 5,000 each add up to 1,000,000; a wider tolerance asks for a smaller base."""
    known = replace(analysts("orders"), sizes=(("orders", TableSize(rows=30_000, units=200)),))
    for having, tolerance, beyond in (
        ("sum(total) / sum(price) > 2", "1%", "sum(price) >= "),
        ("sum(total) / sum(price) > 2", "20%", None),
        ("count(*) > 40000 OR count(DISTINCT customer_id) > 100", "20%", None),
        ("count(*) > 40000 AND count(DISTINCT customer_id) > 100", "20%", "count(*) > 40000"),
    ):
        question = asked(
            f"SELECT region FROM orders GROUP BY region HAVING {having}", catalog=known, tolerance=tolerance
        )
        told = [one for one in question.warnings if one.startswith("no group can reach ")]
        assert len(told) == (beyond is not None), (having, question.warnings)
        assert all(one.startswith(f"no group can reach {beyond}") and "200 (customer_id)" in one for one in told)


def test_numbers_of_other_groups_are_not_warned_of() -> None:
    """The bound on one unit's change in the group itself is no bound on sums of other groups."""
    known = replace(analysts("orders"), sizes=(("orders", TableSize(rows=30_000, units=200)),))
    months = "SELECT month, lag(sum(total)) OVER (ORDER BY month) AS before FROM orders GROUP BY month"
    question = asked(f"SELECT month FROM ({months}) q WHERE before > 500000", catalog=known, tolerance="1%")
    assert question.functionals[0].cell_reads
    assert not any(one.startswith("no group can reach ") for one in question.warnings)


@pytest.mark.parametrize("share", ["count(*) >= 0.1 * {}", "100.0 * count(*) / {} >= 5", "NOT count(*) < 0.1 * {}"])
def test_empty_groups_reach_no_share_of_a_total(share: str) -> None:
    """At a total of 0 a share of it is reached, but then no group has rows."""
    compared = share.format("(SELECT count(*) FROM visits)")
    for sql in (WARDS + compared, f"SELECT ward, {compared} AS large FROM visits GROUP BY ward"):
        warnings = asked(sql, tolerance="10").warnings
        assert not any("groups without rows" in one for one in warnings), warnings
