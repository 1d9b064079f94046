"""Comparisons of a group's mean with a standard deviation of rows: their numbers, sensitivities, and refusals."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from mechanisms.formula import list_literals
from mechanisms.protocol import RowDeviation
from planner.errors import KeyholeError
from planner.functionals.cell_readings import list_cell_sums
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.question.question import Functional, Question
from tests.planner.asked import asked, refusal
from tests.worlds.retail import VISITS, retail

WARDS = "SELECT ward FROM visits GROUP BY ward HAVING "
SALES = "SELECT month FROM {} GROUP BY month HAVING avg({}) > (SELECT avg({}) + stddev({}) FROM {})"


def find_deviation(question: Question) -> tuple[RowDeviation, Functional]:
    """Return the deviation that a question reads, and the functional of its comparison."""
    one = next(one for one in question.functionals if one.pair is not None)
    assert one.pair is not None
    assert one.pair.deviation is not None
    return one.pair.deviation, one


@pytest.mark.parametrize(
    ("text", "times", "factor", "constant"),
    [
        ("avg(age) > (SELECT avg(age) + stddev_pop(age) FROM visits)", 1, 1, 0),
        ("avg(age) > (SELECT avg(age) FROM visits) - 2 * (SELECT stddev(age) FROM visits) + 3", 1, -2, 3),
        ("(SELECT 0.5 * stddev(age) FROM visits) < avg(age)", 0, Fraction(1, 2), 0),
        ("2 * avg(age) >= (SELECT stddev(age) FROM visits) - 4", 0, Fraction(1, 2), -2),
        ("(avg(age) - (SELECT avg(age) FROM visits)) / (SELECT stddev(age) FROM visits) > 1.5", 1, Fraction(3, 2), 0),
        ("((SELECT avg(age) FROM visits) - avg(age)) / (SELECT stddev(age) FROM visits) > 2", 1, -2, 0),
    ],
)
def test_sides_are_those_of_the_text(text: str, times: Fraction, factor: Fraction, constant: Fraction) -> None:
    """Ages are whole, and counted from the middle of their range, 55."""
    deviation, one = find_deviation(asked(WARDS + text))
    pair = one.pair
    assert pair is not None
    assert (pair.other_factor, deviation.times) == (times, factor)
    assert deviation.square == 1
    assert pair.constant == constant + 55 * times - 55
    assert deviation.is_sample is ("stddev_pop" not in text)


def test_a_least_deviation_is_worth_the_tolerance() -> None:
    """It is at most the half range, beyond which no deviation is."""
    question = asked(WARDS + "avg(age) > (SELECT 2 * stddev(age) FROM visits)", tolerance="10%, avg=3")
    deviation, one = find_deviation(question)
    tolerance = next(cut.tolerance for cut in list_literals(question.formula))
    assert tolerance * Fraction(one.unit_size) == 3
    assert deviation.least == Fraction(3, 2)
    assert any("a standard deviation below 1.5 counts as 1.5" in warning for warning in question.warnings)
    deviation, _ = find_deviation(asked(WARDS + "avg(age) > (SELECT 0.01 * stddev(age) FROM visits)", tolerance="20"))
    assert deviation.least == 55


@pytest.mark.parametrize(
    ("sql", "values", "rows"),
    [
        (WARDS + "avg(age) > (SELECT avg(age) + stddev(age) FROM visits)", [Fraction(x) for x in range(111)], 1),
        (
            WARDS + "avg(2 * age + 1) > (SELECT stddev(2 * age + 1) FROM visits)",
            [Fraction(2 * x + 1) for x in range(111)],
            1,
        ),
        (
            WARDS.replace(" GROUP", " WHERE age BETWEEN 20 AND 25 GROUP")
            + "avg(age) > (SELECT stddev(age) FROM visits WHERE age BETWEEN 20 AND 25)",
            [Fraction(x) for x in range(20, 26)],
            1,
        ),
        (SALES.format("sales", *("quantity",) * 3, "sales"), [Fraction(x) for x in range(-100, 101)], 100),
        (SALES.format("capped_sales", *("quantity",) * 3, "capped_sales"), [Fraction(x) for x in range(-100, 101)], 5),
    ],
)
def test_squares_change_by_as_much_as_is_claimed(sql: str, values: list[Fraction], rows: int) -> None:
    """Over every value of a row, as many of them as one unit has: the claim is the largest change, no more and no less.

    A square is never above the square of the reach that the error bounds count with.
    """
    question = asked(sql)
    deviation, one = find_deviation(question)
    sums, common = list_cell_sums(question)
    place = common.readings[question.functionals.index(one)][-1][0]
    pair, squares = one.pair, sums[place]
    assert pair is not None
    unit = Fraction(one.unit_size) / pair.step  # the worth of a step of the sum
    found = [_evaluate(squares, value, values) * deviation.square * unit**2 for value in range(len(values))]
    widened = [Fraction(0), *values]  # rows without a value add 0
    middle = (min(widened) + max(widened)) / 2
    assert max(found) == max((value - middle) ** 2 for value in values)
    assert rows * max(found) == squares.sensitivity * deviation.square * unit**2
    assert max(found) <= (pair.largest_other_mean * unit) ** 2


def _evaluate(squares: Functional, place: int, values: list[Fraction]) -> int:
    """Return what a row adds, whose column has the value at a place of the range."""
    scale = values[1] - values[0]
    column = (values[place] - 1) / 2 if scale == 2 else values[place]
    return int(sum(term.coefficient * column**term.power for term in squares.terms))


def test_a_question_with_a_deviation_is_affordable() -> None:
    """At about the price that is aimed at, whatever the factor."""
    for factor in (0.5, 1, 3):
        text = f"avg(age) > (SELECT avg(age) + {factor} * stddev(age) FROM visits) AND count(age) >= 5000"
        made = plan_question(asked(WARDS + text), dialect=POSTGRES)
        assert 0.1 < made.worst_case_epsilon < 1.2


def test_a_deviation_is_not_taken_for_that_of_other_rows() -> None:
    """Questions that differ in the deviation's rows alone read different squares."""
    one, other = (
        asked(WARDS + f"avg(age) > (SELECT stddev(age) FROM visits{where})") for where in ("", " WHERE insured")
    )
    assert find_deviation(one)[1].cell_reads[-1] != find_deviation(other)[1].cell_reads[-1]
    assert find_deviation(one)[0] == replace(find_deviation(other)[0], least=find_deviation(one)[0].least)


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("avg(age) > (SELECT avg(age) + stddev(cost) FROM visits)", "KH204", "Compare a mean with it"),
        ("avg(age) > (SELECT stddev(age) FROM visits) - (SELECT stddev_pop(age) FROM visits)", "KH204", "Compare a me"),
        ("(avg(age) - (SELECT avg(age) FROM visits)) / (SELECT stddev(age) FROM visits) > -1", "KH204", "Multiply out"),
        ("(avg(age) - 40) / (SELECT stddev(age) FROM visits) > 1", "KH204", "Multiply out"),
        ("max(age) > (SELECT avg(age) + 3 * stddev(age) FROM visits)", "KH107", "Instead you can ask: "),
        ("sum(age) > 100 * (SELECT stddev(age) FROM visits)", "KH107", "Instead you can ask: "),
        (
            "avg(age) > 2 * (SELECT max(age) FROM visits WHERE insured)",
            "KH107",
            "Instead you can ask: "
            + WARDS
            + "avg(age) > 2 * (SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY age) FROM visits WHERE insured);",
        ),
        (
            "count(*) FILTER (WHERE age > (SELECT avg(age) FROM visits)) >= 20",
            "KH107",
            "Instead you can ask: " + WARDS + "count(*) FILTER (WHERE age > 55) >= 20;",
        ),
    ],
)
def test_other_comparisons_are_refused_with_a_way_out(text: str, code: str, hint: str) -> None:
    error = refusal(WARDS + text)
    assert error is not None
    assert error.code == code
    assert (error.hint or "").startswith(hint)
    if hint.startswith("Instead"):
        assert refusal((error.hint or "").removeprefix("Instead you can ask: ").rstrip(";")) is None


def test_squares_with_too_many_digits_are_refused() -> None:
    catalog = retail()
    finer = tuple(replace(one, grid=Decimal("0.0001")) if one.name == "cost" else one for one in VISITS.columns)
    catalog = replace(catalog, tables=(replace(VISITS, columns=finer),))
    with pytest.raises(KeyholeError, match="too many digits") as refused:
        asked(WARDS + "avg(cost) > (SELECT stddev(cost) FROM visits)", catalog=catalog)
    assert refused.value.code == "KH208"


def test_a_single_row_is_not_compared_with_a_private_number() -> None:
    above = "(SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY age) FROM visits)"
    error = refusal(WARDS + f"count(*) FILTER (WHERE age > {above}) >= 20")
    assert error is not None
    assert "no error rate could be promised" in (error.detail or "")
