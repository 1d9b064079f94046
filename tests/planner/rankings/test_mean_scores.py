"""Means that keys are ranked by: the score is the mean of groups that are large enough, and a unit moves it by no more
than its sensitivity, by brute force over small groups."""

from decimal import Decimal
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.question.question import Functional, MeanScore, Measure, Question, Ranked
from planner.rankings.mean_scores import compute_scores
from tests.planner.asked import asked, refusal

UNITS = "count(DISTINCT (customer_id, month))"
SMALL = st.integers(min_value=0, max_value=2**40)


def functional(sensitivity: int) -> Functional:
    return Functional("mean", Measure.TOTAL, (), sensitivity, None, Decimal(1), 1)


def ranked_by(*, rows: int, times: int, reach: int, worst: int = 0) -> Ranked:
    score = MeanScore(functional(reach), functional(1), rows, times, Decimal(worst), reach, Decimal(1))
    return Ranked(
        functional(1),
        descending=True,
        most_returned=1,
        tolerance=1,
        has_both_signs=True,
        tolerance_value=Decimal(2),
        mean=score,
    )


def by_mean(
    by: str, *, table: str = "sales", having: str = "", min_rows: str = "", tolerance: str = "10%"
) -> tuple[Question, Ranked]:
    key = "ward" if table == "visits" else "country"
    sql = f"SELECT {key} FROM {table} GROUP BY {key} {having} ORDER BY {by} LIMIT 2"
    question = asked(sql, tolerance=tolerance, min_rows=min_rows) if min_rows else asked(sql, tolerance=tolerance)
    assert question.ranked is not None
    assert question.ranked.mean is not None
    return question, question.ranked


def scores(ranked: Ranked, groups: list[tuple[int, int]]) -> list[int]:
    totals, counts = zip(*groups, strict=True)
    return [int(score) for score in compute_scores(ranked, np.array([totals, counts], dtype=np.int64))]


@given(total=SMALL, count=st.integers(0, 2**30), rows=st.integers(1, 10**9), power=st.integers(0, 9))
def test_a_score_is_the_exact_quotient_rounded_down(total: int, count: int, rows: int, power: int) -> None:
    times, reach = 10**power, 2**20
    total = min(total, reach * count)  # no value lies further away
    for sign in (1, -1):
        expected = floor(Fraction(sign * total * times, max(count, rows)))
        assert scores(ranked_by(rows=rows, times=times, reach=reach), [(sign * total, count)]) == [expected]


def test_no_sum_however_large_leaves_the_integers() -> None:
    largest = 2**63 - 1
    ranked = ranked_by(rows=5, times=10**9, reach=2**20)
    found = scores(ranked, [(largest, 1), (-largest, 1), (largest, largest), (0, 0), (-1, largest)])
    assert max(map(abs, found)) <= 2**20 * 10**9


@pytest.mark.parametrize("rows", [1, 3, 8, 20])
@pytest.mark.parametrize(("table", "most"), [("visits", 1), ("capped_sales", 5), ("sales", 100)])
def test_a_unit_moves_a_share_by_its_sensitivity_at_most_and_attains_it(table: str, most: int, rows: int) -> None:
    """Every group of up to thirty rows that are 0 or 1, to which a unit adds up to five rows, or a hundred."""
    flag = "insured" if table == "visits" else "gift"
    _, ranked = by_mean(f"avg(CASE WHEN {flag} THEN 1 ELSE 0 END) DESC", table=table, min_rows=str(rows))
    assert ranked.mean is not None
    assert (ranked.mean.least_rows, ranked.mean.largest_distance, ranked.mean.count.sensitivity) == (rows, 1, most)
    lengths = range(1, most + 1) if most < 100 else (1, 2, 30, 99, 100)
    units = [(total, size) for size in lengths for total in (range(size + 1) if size < 30 else (0, 1, size - 1, size))]
    groups = [(total, size) for size in range(31) for total in range(size + 1)]
    before = scores(ranked, groups)
    largest = 0
    for unit in units:
        after = scores(ranked, [(total + unit[0], size + unit[1]) for total, size in groups])
        largest = max(largest, *(abs(one - other) for one, other in zip(before, after, strict=True)))
    assert largest <= ranked.functional.sensitivity
    assert largest >= 0.99 * ranked.functional.sensitivity


@pytest.mark.parametrize("by", ["avg(quantity) DESC", "avg(quantity)", "-2 * avg(amount) DESC", "avg(amount - 3)"])
def test_no_corner_moves_a_mean_further(by: str) -> None:
    for table in ("sales", "capped_sales"):
        for rows in (10, 90, 5_000):
            _, ranked = by_mean(by, table=table, min_rows=str(rows))
            mean = ranked.mean
            assert mean is not None
            sign, unit = (1 if ranked.descending else -1), mean.count.sensitivity
            sizes = sorted({0, 1, rows - unit - 1, rows - unit, rows - 1, rows, rows + 1, 2 * rows, 10 * rows} - {-1})
            groups = [
                (sign * mean.largest_distance * size * part // 4, size)
                for size in sizes
                if size >= 0
                for part in range(5)
            ]
            before = np.array(scores(ranked, groups))
            for size in {1, unit // 2, unit}:
                most = min(mean.largest_distance * size, mean.total.sensitivity)
                for added in (0, most // 2, most):
                    after = scores(ranked, [(total + sign * added, n + size) for total, n in groups])
                    assert np.abs(before - np.array(after)).max() <= ranked.functional.sensitivity


def test_groups_said_to_be_larger_than_any_are_divided_by_what_leaves_the_integers_exact() -> None:
    """In steps of a billionth a unit moves no score further, whatever the total is."""
    for count in (10**13, 10**14, 10**15, 10**18):
        _, ranked = by_mean("avg(quantity) DESC", having=f"HAVING count(*) >= {count}")
        assert ranked.mean is not None
        added = ranked.mean.total.sensitivity
        groups = [(total, 10**7) for total in range(10**8, 10**9, 99_999_983)]
        for (total, _), score in zip(groups, scores(ranked, groups), strict=True):
            assert score == floor(Fraction(ranked.mean.multiplier * total, ranked.mean.least_rows))
        after = scores(ranked, [(total + added, size) for total, size in groups])
        moved = np.array(after) - np.array(scores(ranked, groups))
        assert np.abs(moved).max() <= ranked.functional.sensitivity


def test_small_groups_come_last_in_either_order() -> None:
    """A group of one row at the best value stands behind a larger one in the middle."""
    for by, best, middle in (("avg(quantity) DESC", 100, 10), ("avg(quantity)", -100, -10)):
        _, ranked = by_mean(by, min_rows="50")
        assert ranked.mean is not None
        worst = int(ranked.mean.worst_value)
        assert worst == -best
        alone, large = scores(ranked, [(best - worst, 1), (80 * (middle - worst), 80)])
        assert (large > alone) is ranked.descending


def test_how_large_groups_are_is_said_by_having_or_the_setting_or_follows_from_the_price() -> None:
    def rows(having: str = "", *, min_rows: str = "", tolerance: str = "10%") -> int:
        _, ranked = by_mean("avg(quantity) DESC", having=having, min_rows=min_rows, tolerance=tolerance)
        assert ranked.mean is not None
        return ranked.mean.least_rows

    assert rows(min_rows="70") == 70
    assert rows("HAVING count(*) >= 90000") == 81_000  # less its tolerance of 10 %
    assert rows("HAVING count(quantity) >= 90000 AND count(*) < 100000") == 81_000
    _, ranked = by_mean(
        f"sum(quantity) * 1.0 / {UNITS} DESC", having=f"HAVING {UNITS} > 900 AND {UNITS} > 500 AND {UNITS} < 9999"
    )
    assert ranked.mean is not None
    assert ranked.mean.least_rows == 811
    assert rows("HAVING count(*) >= 90000 OR sum(quantity) > 40", min_rows="70") == 70  # not in every case
    priced = rows()
    assert priced > 1_000
    assert rows(tolerance="10%, avg(quantity)=100") < priced < rows(tolerance="10%, avg(quantity)=1")


def test_a_tolerance_is_kept_in_the_unit_of_the_mean() -> None:
    """Means further apart than the tolerance have scores that the ranking keeps apart, though they are rounded down."""
    _, ranked = by_mean("avg(quantity) DESC", tolerance="10%, avg(quantity)=0.75")
    step = Fraction(ranked.functional.unit_size)
    assert Fraction(ranked.tolerance_value) <= Fraction(3, 4)
    assert (ranked.tolerance + 1) * step == Fraction(ranked.tolerance_value)
    question, priced = by_mean("avg(quantity) DESC")
    assert any(
        f"groups within {priced.tolerance_value:f} of each other in avg(quantity)" in one for one in question.warnings
    )
    assert (priced.tolerance + 1) * Fraction(priced.functional.unit_size) == Fraction(priced.tolerance_value)


@pytest.mark.parametrize(
    ("by", "same"),
    [
        ("round(avg(quantity), 2) DESC", "avg(quantity) DESC"),
        ("avg(quantity)::numeric(10, 2) DESC", "avg(quantity) DESC"),
        ("-avg(quantity)", "avg(quantity) DESC"),
        ("sum(quantity) * 1.0 / nullif(count(quantity), 0) DESC", "avg(quantity) DESC"),
        ("coalesce(avg(quantity), 0) DESC", "avg(quantity) DESC"),
        ("count(*) FILTER (WHERE gift) * 100.0 / count(*)", "avg(CASE WHEN gift THEN 1.0 ELSE 0 END)"),
    ],
)
def test_spellings_of_a_mean(by: str, same: str) -> None:
    one, other = by_mean(by)[1], by_mean(same)[1]
    assert one.mean is not None
    assert other.mean is not None
    assert (one.descending, one.mean.least_rows, one.tolerance) == (
        other.descending,
        other.mean.least_rows,
        other.tolerance,
    )
    assert one.mean.total.sensitivity == other.mean.total.sensitivity


@pytest.mark.parametrize(
    "by",
    [
        "sum(amount) / sum(quantity)",
        "avg(quantity) FILTER (WHERE gift) - avg(quantity)",
        "stddev(quantity)",
        "percentile_disc(0.5) WITHIN GROUP (ORDER BY quantity)",
        f"{UNITS} * 1.0 / {UNITS} FILTER (WHERE gift)",
        f"{UNITS} * 1.0 / count(*)",
        "sum(quantity) * 1.0 / count(*) FILTER (WHERE gift)",
    ],
)
def test_what_is_no_mean_of_the_rows_that_it_divides_by_is_not_ranked_by(by: str) -> None:
    refused = refusal(f"SELECT country FROM sales GROUP BY country ORDER BY {by} DESC LIMIT 2")
    assert refused is not None
    assert refused.code == "KH204"
