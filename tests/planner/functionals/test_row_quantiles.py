"""Comparisons of a group's mean with a quantile of rows: their bins, numbers, sensitivities, and refusals."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest

from mechanisms.formula import list_literals
from mechanisms.protocol import RowQuantile
from mechanisms.threshold.joint_loss import compute_joint_loss
from planner.errors import KeyholeError
from planner.functionals.cell_readings import list_cell_sums
from planner.functionals.sensitivity import find_exposures_of_bins
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.question.condition import evaluate
from planner.question.question import Functional, Question
from tests.planner.asked import asked, refusal
from tests.worlds.retail import VISITS, retail

WARDS = "SELECT ward FROM visits GROUP BY ward HAVING "
AGE = "percentile_cont(0.5) WITHIN GROUP (ORDER BY age)"
HALF = Fraction(1, 2)


def find_quantile(question: Question) -> tuple[RowQuantile, Functional]:
    """Return the quantile that a question reads, and the functional of its comparison."""
    one = next(one for one in question.functionals if one.pair is not None)
    assert one.pair is not None
    assert one.pair.quantile is not None
    return one.pair.quantile, one


@pytest.mark.parametrize(
    ("text", "times", "share", "constant"),
    [
        (f"avg(age) > (SELECT {AGE} FROM visits)", 1, HALF, 0),
        ("avg(age) > (SELECT median(age) FROM visits)", 1, HALF, 0),
        (f"avg(age) > 2 * (SELECT {AGE} FROM visits) - 3", 2, HALF, -3),
        (f"(SELECT {AGE} / 2 + 1 FROM visits) < avg(age)", HALF, HALF, 1),
        (f"2 * avg(age) >= 5 - (SELECT {AGE} FROM visits)", -HALF, HALF, Fraction(5, 2)),
        ("avg(age) < (SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY age) FROM visits)", 1, Fraction(9, 10), 0),
        ("avg(age) < (SELECT percentile_cont(.1) WITHIN GROUP (ORDER BY age DESC) FROM visits)", 1, Fraction(9, 10), 0),
        ("avg(age) > (SELECT median(2 * age + 7) FROM visits)", 2, HALF, 7),
        (
            "avg(age) < (SELECT percentile_cont(0.2) WITHIN GROUP (ORDER BY 90 - age) FROM visits)",
            -1,
            Fraction(4, 5),
            90,
        ),
    ],
)
def test_sides_are_those_of_the_text(text: str, times: Fraction, share: Fraction, constant: Fraction) -> None:
    """Ages are whole, and the own mean is counted from the middle of their range, 55."""
    quantile, one = find_quantile(asked(WARDS + text))
    pair = one.pair
    assert pair is not None
    assert (quantile.times, quantile.share) == (times, share)
    assert not pair.other_factor
    assert pair.constant == constant - 55


@pytest.mark.parametrize(
    "sql",
    [
        f"WITH m AS (SELECT {AGE} AS v FROM visits WHERE insured) SELECT ward FROM visits, m GROUP BY ward, m.v "
        "HAVING avg(age) > m.v",
        f"SELECT ward FROM visits CROSS JOIN (SELECT {AGE} AS v FROM visits WHERE insured) m GROUP BY ward, v "
        "HAVING avg(age) > v",
        "SELECT ward FROM (SELECT ward, avg(age) AS n FROM visits GROUP BY ward) q "
        f"WHERE n > (SELECT {AGE} FROM visits WHERE insured)",
        WARDS + f"avg(age) > (SELECT {AGE} FILTER (WHERE insured) FROM visits)",
    ],
)
def test_other_spellings_ask_the_same(sql: str) -> None:
    plain = asked(WARDS + f"avg(age) > (SELECT {AGE} FROM visits WHERE insured)")
    assert [one.pair for one in asked(sql).functionals] == [one.pair for one in plain.functionals]
    assert list_cell_sums(asked(sql))[1] == list_cell_sums(plain)[1]


@pytest.mark.parametrize(
    ("column", "where", "number"),
    [
        ("age", "", 56),  # 111 values in pairs
        ("age", "age BETWEEN 20 AND 25", 6),
        ("age", "age = 30", 1),
        ("cost", "", 64),
        ("cost", "cost > 4000", 63),
    ],
)
def test_every_value_is_in_one_bin_near_its_middle(column: str, where: str, number: int) -> None:
    """Beyond the bounds it counts as the nearest bound. Infinity is a value, and NULL is in no bin."""
    where = f" WHERE {where}" if where else ""
    sql = WARDS.replace(" GROUP", f"{where} GROUP") + f"avg({column}) > (SELECT median({column}) FROM visits{where})"
    question = asked(sql, tolerance="10%, avg=4000" if column == "cost" else "10%")
    quantile, one = find_quantile(question)
    bins = [read.summed.terms for read in one.cell_reads[2:]]
    assert len(bins) == quantile.bins == number
    table = question.table.get_column(column)
    assert table.bounds is not None
    low, high = map(Fraction, table.bounds)
    last = quantile.first + (number - 1) * quantile.width
    steps = [low + Fraction(place) * (high - low) / 220 for place in range(-20, 240)]
    values = {Fraction(int(one)) if column == "age" else Fraction(round(one, 2)) for one in steps}
    for value in values:
        row = {column: int(value) if column == "age" else Decimal(float(value))}
        held = [place for place, (term,) in enumerate(bins) if evaluate(term.condition, row)]
        assert len(held) == 1
        assert all(term.coefficient == 1 and term.column is None for (term,) in bins)
        near = min(max(value, quantile.first - quantile.reach), last + quantile.reach)
        assert abs(near - (quantile.first + held[0] * quantile.width)) <= quantile.reach
    assert not any(evaluate(term.condition, {column: None}) for (term,) in bins)
    if column == "cost":
        for odd, place in ((Decimal("Infinity"), number - 1), (Decimal("-Infinity"), 0)):
            held = [at for at, (term,) in enumerate(bins) if evaluate(term.condition, {column: odd})]
            assert held == [place]


def test_a_cell_loses_what_its_dearest_row_costs() -> None:
    """Over every row: its change of each sum times the sum's rate. No more is charged, and no less."""
    question = asked(WARDS + f"avg(age) > (SELECT {AGE} FROM visits WHERE insured) AND count(*) >= 900")
    sums, common = list_cell_sums(question)
    _, one = find_quantile(question)
    bins = [place for place, _ in common.readings[question.functionals.index(one)][2:]]
    rates = [Fraction(1 + 3 * place % 7, 50 + place % 5) / one.sensitivity for place, one in enumerate(sums)]
    dearest = Fraction(0)
    for age, insured in product([None, *range(111)], (True, False, None)):
        row = {"age": age, "insured": insured}
        changes = [abs(_add_row(one, row)) for one in sums]
        assert sum(map(bool, (changes[place] for place in bins))) <= 1
        dearest = max(dearest, sum((rate * change for rate, change in zip(rates, changes, strict=True)), Fraction(0)))
    losses = [rate * one.sensitivity for rate, one in zip(rates, sums, strict=True)]
    charged = compute_joint_loss(losses, common.exposures)
    assert dearest <= charged
    alike = [Fraction(1, 9)] * len(sums)  # as of bins, whose rates are equal
    whole = max(
        sum(rate * abs(_add_row(one, row)) / one.sensitivity for rate, one in zip(alike, sums, strict=True))
        for row in ({"age": age, "insured": True} for age in range(111))
    )
    assert compute_joint_loss(alike, common.exposures) == whole


def _add_row(one: Functional, row: Mapping[str, int | bool | None]) -> int:
    """Return what a row adds to a sum."""
    added = 0
    for term in one.terms:
        value = 1 if term.column is None else row[term.column]
        if value is not None and evaluate(term.condition, row):
            added += term.coefficient * int(value) ** term.power
    return added


def test_a_unit_of_several_rows_may_change_as_many_bins() -> None:
    """Five capped rows move a bin by five, or five bins by one each. Without a cap a unit might change all bins."""
    text = "SELECT month FROM {0} GROUP BY month HAVING avg(quantity) > (SELECT median(quantity) FROM {0})"
    question = asked(text.format("capped_sales"), tolerance="10%, avg=40")
    sums, common = list_cell_sums(question)
    _, one = find_quantile(question)
    bins = [place for place, _ in common.readings[question.functionals.index(one)][2:]]
    assert {sums[place].sensitivity for place in bins} == {5}
    assert {sum(parts[place] for place in bins) for parts in common.exposures} == {1}
    error = refusal(text.format("sales"), tolerance="10%, avg=40")
    assert error is not None
    assert error.code == "KH204"
    assert "max_rows_per_group" in (error.hint or "")
    beyond = replace(question, table=replace(question.table, row_cap=None, rows_per_unit=100))
    charged = find_exposures_of_bins(beyond, sums, bins)
    assert {sum(parts[place] for place in bins) for parts in charged} == {len(bins)}


@pytest.mark.parametrize("groups", [3, 50])
def test_a_question_with_a_quantile_is_affordable(groups: int) -> None:
    """Groups of 4,000 rows, within 5 % of the range: a third of epsilon at most, also for 50 groups."""
    domain = tuple(f"w{place}" for place in range(groups))
    wards = tuple(replace(one, domain=domain) if one.name == "ward" else one for one in VISITS.columns)
    catalog = replace(retail(), tables=(replace(VISITS, columns=wards),))
    text = f"avg(age) > (SELECT {AGE} FROM visits) AND count(age) >= 4000"
    question = asked(WARDS + text, catalog=catalog, tolerance="10%, avg=5.5")
    made = plan_question(question, dialect=POSTGRES)
    assert 0.1 < made.worst_case_epsilon < 0.33
    assert find_quantile(question)[0].slack < Fraction(4, 100)


def test_ranks_and_bins_are_told() -> None:
    question = asked(WARDS + f"avg(age) > (SELECT {AGE} FROM visits) AND count(age) >= 4000")
    quantile, one = find_quantile(question)
    shown = (
        f"may be off by ranks of {float(quantile.slack * 100):g} % of the rows, and is read off bins of age that are 2"
    )
    assert any(shown in warning for warning in question.warnings)
    assert one.pair is not None
    tolerance = next(cut.tolerance for cut in list_literals(question.formula))
    assert tolerance * one.pair.step >= 4 * quantile.reach


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("avg(age) > 0.8 * (SELECT max(age) FROM visits)", "KH107", "Instead you can ask: "),
        ("avg(age) > 2 * (SELECT min(age) FROM visits WHERE insured)", "KH107", "Instead you can ask: "),
        ("avg(age) > (SELECT percentile_cont(1) WITHIN GROUP (ORDER BY age) FROM visits)", "KH204", "Ask for a per"),
        ("avg(age) > (SELECT percentile_disc(0) WITHIN GROUP (ORDER BY age) FROM visits)", "KH204", "Ask for a per"),
        (f"avg(age) > (SELECT avg(age) + {AGE} FROM visits)", "KH204", "Compare a mean with it"),
        (f"avg(age) / (SELECT {AGE} FROM visits) > 1.2", "KH204", "Multiply out"),
        (f"avg(age) / nullif((SELECT {AGE} FROM visits), 0) > 1.2", "KH204", "Multiply out"),
        ("avg(age) > (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY age) FROM visits) / 2", "KH204", "Make one s"),
        (f"sum(age) > 100 * (SELECT {AGE} FROM visits)", "KH107", "Instead you can ask: "),
        (f"count(*) > (SELECT {AGE} FROM visits)", "KH107", "Instead you can ask: "),
        (f"median(age) > (SELECT {AGE} FROM visits)", "KH107", "Instead you can ask: "),
        ("avg(age) > (SELECT variance(age) FROM visits)", "KH107", "Instead you can ask: "),
    ],
)
def test_other_comparisons_are_refused_with_a_way_out(text: str, code: str, hint: str) -> None:
    error = refusal(WARDS + text)
    assert error is not None
    assert error.code == code
    assert (error.hint or "").startswith(hint)
    if hint.startswith("Instead"):
        assert refusal((error.hint or "").removeprefix("Instead you can ask: ").rstrip(";")) is None


def test_quantiles_of_different_rows_are_refused_in_one_question() -> None:
    text = f"avg(age) > (SELECT {AGE} FROM visits) AND avg(age) < (SELECT {AGE} FROM visits WHERE insured)"
    with pytest.raises(KeyholeError, match="different rows") as refused:
        plan_question(asked(WARDS + text), dialect=POSTGRES)
    assert refused.value.code == "KH204"


def test_a_tolerance_narrower_than_two_bins_is_refused() -> None:
    """The hint's tolerance is wide enough."""
    text = WARDS + "avg(cost) > (SELECT median(cost) FROM visits)"
    with pytest.raises(KeyholeError) as refused:
        asked(text, tolerance="10%, avg=50")
    assert refused.value.code == "KH304"
    wanted = (refused.value.hint or "").removeprefix("SET keyhole.tolerance = '").removesuffix("';")
    assert find_quantile(asked(text, tolerance=wanted))[0].bins == 64
