"""Comparisons of a group's mean with the mean of other groups: tolerances, counts beside them, and refusals."""

from fractions import Fraction

import pytest

from mechanisms.formula import list_literals
from mechanisms.protocol import MeanPair
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.question.question import NEAR_EMPTY, Question
from tests.planner.asked import asked, refusal

MONTHS = "SELECT month FROM sales GROUP BY month HAVING "
ALL = "(SELECT avg(amount) FROM sales)"
EITHER_SIDE = (
    "SELECT month FROM (SELECT month, lead(avg(amount)) OVER (ORDER BY month) AS m, "
    "lag(avg(amount)) OVER (ORDER BY month) AS b FROM sales GROUP BY month) q WHERE m > b"
)
BEFORE = (
    "SELECT month FROM (SELECT month, avg(amount) AS m, lag(avg(amount)) OVER (ORDER BY month) AS b FROM sales "
    "GROUP BY month) q WHERE "
)


def find_pair(question: Question) -> tuple[MeanPair, Fraction, int]:
    """Return the first comparison of means, the worth of its step, and its tolerance in such steps."""
    place, one = next((place, one) for place, one in enumerate(question.functionals) if one.pair is not None)
    assert one.pair is not None
    tolerance = next(cut.tolerance for cut in list_literals(question.formula) if cut.functional == place)
    return one.pair, Fraction(one.unit_size), tolerance


@pytest.mark.parametrize("amount", ["25", "0.5", "300"])
def test_an_amount_is_the_tolerance_in_the_unit_of_the_mean(amount: str) -> None:
    _, unit, tolerance = find_pair(asked(MONTHS + f"avg(amount) > {ALL}", tolerance=f"10%, avg={amount}"))
    assert unit * tolerance == Fraction(amount)


def test_constants_and_steps_are_counted_alike() -> None:
    """A constant of 7 adds as many steps as a tolerance of 7 has."""
    plain, unit, _ = find_pair(asked(MONTHS + f"avg(amount) > {ALL}", tolerance="10%, avg=7"))
    more, _, tolerance = find_pair(asked(MONTHS + f"avg(amount) > {ALL} + 7", tolerance="10%, avg=7"))
    assert more.constant - plain.constant == tolerance * more.step
    assert tolerance * unit == 7
    assert plain.other_factor == more.other_factor == 1


@pytest.mark.parametrize(
    ("text", "times", "constant"),
    [
        ("m > 1.2 * b", Fraction(6, 5), 0),
        ("m - b > 2", 1, 2),
        ("b < m", 1, 0),
        ("2 * m < b - 6", Fraction(1, 2), -3),
        ("NOT b + m >= 90", -1, 90),
    ],
)
def test_sides_are_those_of_the_text(text: str, times: Fraction, constant: int) -> None:
    """Sums are taken from the middle of the range, 0 to 1,500 here, so that the constant moves with the factor."""
    pair, unit, _ = find_pair(asked(BEFORE + text))
    assert pair.other_factor == times
    step = unit / pair.step
    middle = find_pair(asked(BEFORE + "m > 2 * b"))[0].constant * step  # once too often
    assert pair.constant * step == constant + (times - 1) * middle


def test_counts_are_added_with_a_notice() -> None:
    question = asked(MONTHS + f"avg(amount) > {ALL}")
    assert len(question.functionals) == 3
    assert any("sum(count(amount)) OVER () >= 590000 (added" in one for one in question.warnings)
    assert any("AND count(amount) >= 50000 was added" in one for one in question.warnings)
    assert any(
        "avg(amount) > sum(sum(amount)) OVER ()" in one and "may err within 68" in one for one in question.warnings
    )


def test_counts_of_the_analyst_stand_for_those_that_are_added() -> None:
    """They are demanded within their own tolerance, 10 % here."""
    own = "count(amount) >= 20000 AND sum(count(amount)) OVER () >= 400000"
    question = asked(MONTHS + f"avg(amount) > avg(amount) OVER () AND {own}".replace("avg(amount) OVER ()", ALL))
    assert not [one for one in question.warnings if "was added" in one or "(added" in one]
    pair, _, _ = find_pair(question)
    assert (pair.rows, pair.other_rows) == (18_000, 360_000)


def test_without_added_counts_the_refusal_says_which() -> None:
    error = refusal(MONTHS + f"avg(amount) > {ALL} AND count(amount) >= 50000", guard="refuse")
    assert error is not None
    assert error.code == "KH206"
    hint = error.hint or ""
    assert hint.startswith("Add: AND sum(count(amount)) OVER () >= ")
    followed = MONTHS + f"avg(amount) > {ALL} AND count(amount) >= 50000 AND {hint.removeprefix('Add: AND ')}"
    assert refusal(followed, guard="refuse") is None


def test_a_comparison_costs_less_where_the_other_mean_is_that_of_more_rows() -> None:
    """The month before is one group, all months are thirteen."""
    costs = [
        plan_question(asked(text, tolerance="10%, avg=68"), dialect=POSTGRES).calibration.worst_case_epsilon
        for text in (MONTHS + f"avg(amount) > {ALL}", BEFORE + "m > b")
    ]
    assert costs[0] < 0.7 * costs[1] < 0.5


def test_counts_on_both_sides_are_those_that_the_noise_needs() -> None:
    """Neither side is the group itself, so that no count of its own rows is added."""
    question = asked(EITHER_SIDE)
    pair, _, _ = find_pair(question)
    assert (pair.rows, pair.other_rows) == (45_000, 45_000)
    assert plan_question(question, dialect=POSTGRES).calibration.worst_case_epsilon < 0.5


def test_a_ratio_of_sums_demands_that_the_other_ratio_lies_in_reach() -> None:
    """Twice the largest cost over the largest age; a share of one sum in another needs no demand."""
    wards = "SELECT ward FROM visits GROUP BY ward HAVING "
    question = asked(f"{wards}sum(cost) / sum(age) > 2 * (SELECT sum(cost) / sum(age) FROM visits)")
    (pair,) = (one.pair for one in question.functionals if one.pair is not None)
    assert "91 * sum(sum(age)) OVER () - (sum(sum(cost)) OVER ())" in {one.name for one in question.functionals}
    assert pair.largest_mean >= 2 * pair.largest_other_mean >= 4 * 91 / 0.9
    insured = "sum(cost) FILTER (WHERE insured) / sum(cost)"
    share = asked(f"{wards}{insured} > (SELECT {insured} FROM visits)")
    (pair,) = (one.pair for one in share.functionals if one.pair is not None)
    assert pair.largest_other_mean == 1
    assert len(share.functionals) == 3


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (MONTHS + "sum(amount) / sum(quantity) > (SELECT sum(amount) / sum(quantity) FROM sales)", "KH204"),  # below 0
        (BEFORE + "(m - b) / b > 0.1", "KH204"),
        (BEFORE + "m / b > 1.1", "KH204"),
        (BEFORE.replace("lag(avg(amount))", "lag(avg(amount), 1, 0)") + "m > b", "KH204"),
        (BEFORE.replace("lag(avg(amount))", "lag(count(*))") + "m > b", "KH204"),
        (MONTHS + f"avg(amount) > {ALL} + 2000", "KH204"),  # beyond the bounds of amount
        (BEFORE + "(m > b) IS NOT TRUE", "KH204"),  # true of the first month
        (MONTHS + "count(*) > 0.1 * (SELECT avg(amount) FROM sales)", "KH204"),
    ],
)
def test_other_comparisons_are_refused(text: str, code: str) -> None:
    error = refusal(text)
    assert error is not None
    assert error.code == code


def test_a_share_of_a_total_is_not_said_to_hold_without_rows() -> None:
    """Beside the month before, a group without rows may be within the tolerance: both may be empty."""
    share, growth = "count(*) > 0.1 * (SELECT count(*) FROM sales)", BEFORE.replace("avg(amount)", "count(*)") + "m > b"
    assert not any(NEAR_EMPTY in one for one in asked(MONTHS + share).warnings)
    assert any(NEAR_EMPTY in one for one in asked(growth).warnings)
    assert any(NEAR_EMPTY in one for one in asked(MONTHS + share.replace(">", "<")).warnings)
