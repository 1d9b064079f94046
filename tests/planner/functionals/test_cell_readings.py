"""Comparisons with other groups in integers: the combination of sums that their SQL says, in every group."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.formula import Booleans, Cut, evaluate_formula, list_literals
from mechanisms.keyhole.noisy_cells import evaluate_literal
from planner.functionals.cell_readings import list_cell_sums, reads_cells
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.scan import rewrite
from planner.values.operators import COMPARISONS
from tests.effort import examples
from tests.mechanisms.keyhole.cell_worlds import read_plainly
from tests.planner.asked import asked
from tests.worlds.retail import COUNTRIES, MONTHS

Grid = Sequence[Sequence[Fraction]]  # by country and month
SHAPE = (len(COUNTRIES), len(MONTHS))


def mean(values: Sequence[Fraction]) -> Fraction | None:
    return sum(values, start=Fraction(0)) / len(values) if values else None


def one(values: Sequence[Fraction]) -> Fraction | None:
    return values[0] if values else None


def summed(values: Sequence[Fraction]) -> Fraction | None:
    return sum(values, start=Fraction(0)) if values else None


BY_MONTH = "PARTITION BY country ORDER BY month"
WINDOWS: Mapping[str, Callable[[Grid, int, int], Fraction | None]] = {
    "sum({a}) OVER ()": lambda grid, _c, _m: summed([value for row in grid for value in row]),
    "avg({a}) OVER ()": lambda grid, _c, _m: mean([value for row in grid for value in row]),
    "sum({a}) OVER (PARTITION BY country)": lambda grid, c, _m: summed(grid[c]),
    "avg({a}) OVER (PARTITION BY month)": lambda grid, _c, m: mean([row[m] for row in grid]),
    f"lag({{a}}) OVER ({BY_MONTH})": lambda grid, c, m: one(grid[c][m - 1 : m] if m else ()),
    f"lag({{a}}, 12) OVER ({BY_MONTH})": lambda grid, c, m: one(grid[c][m - 12 : m - 11] if m >= 12 else ()),
    f"lead({{a}}) OVER ({BY_MONTH})": lambda grid, c, m: one(grid[c][m + 1 : m + 2]),
    f"first_value({{a}}) OVER ({BY_MONTH})": lambda grid, c, _m: one(grid[c]),
    f"sum({{a}}) OVER ({BY_MONTH})": lambda grid, c, m: summed(grid[c][: m + 1]),
    f"avg({{a}}) OVER ({BY_MONTH} ROWS 2 PRECEDING)": lambda grid, c, m: mean(grid[c][max(0, m - 2) : m + 1]),
    f"sum({{a}}) OVER ({BY_MONTH} ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)": lambda grid, c, m: summed(
        grid[c][max(0, m - 3) : m]
    ),
    "avg({a}) OVER (PARTITION BY country, extract(year FROM month))": lambda grid, c, m: mean(
        [value for value, month in zip(grid[c], MONTHS, strict=True) if month.year == MONTHS[m].year]
    ),
}
FACTORS = st.sampled_from(("-3", "-1", "-0.25", "0.1", "0.5", "1", "1.2", "2"))


@examples(200)
@given(
    window=st.sampled_from(sorted(WINDOWS)),
    windowed=st.sampled_from(("count(*)", "sum(amount)")),
    factors=st.tuples(FACTORS, FACTORS, FACTORS),
    sizes=st.sampled_from(("n", "s", "ns")),
    operator=st.sampled_from((">", ">=", "<", "<=")),
    threshold=st.integers(-500, 500),
    data=st.data(),
)
def test_a_reading_is_the_combination_that_the_sql_says(
    window: str,
    windowed: str,
    factors: tuple[str, str, str],
    sizes: str,
    operator: str,
    threshold: int,
    data: st.DataObject,
) -> None:
    """On random counts and cents of every country and month: the same up to one factor, the same answer on
    either side of the threshold, and nothing where the window reads no group."""
    own = [f"{factor} * {size}" for factor, size in zip(factors, ("n", "s"), strict=False) if size in sizes]
    left = " + ".join((*own, f"{factors[2]} * w"))
    inner = f"SELECT country, month, count(*) AS n, sum(amount) AS s, {window.format(a=windowed)} AS w"
    question = asked(
        f"SELECT country, month FROM ({inner} FROM sales GROUP BY country, month) q "
        f"WHERE {left} {operator} {threshold}",
        tolerance="100",
    )
    assert reads_cells(question)
    sums, common = list_cell_sums(question)
    assert common.shape == SHAPE
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    counts = generator.integers(0, 20, size=SHAPE)
    cents = generator.integers(-3_000, 3_000, size=SHAPE)
    assert all(term.coefficient == 1 for one_sum in sums for term in one_sum.terms)
    drawn = {None: counts, "amount": cents}
    values = np.array([drawn[term.column].ravel() for one_sum in sums for term in one_sum.terms])

    grids = {
        "count(*)": [[Fraction(int(one_value)) for one_value in row] for row in counts],
        "sum(amount)": [[Fraction(int(one_value), 100) for one_value in row] for row in cents],
    }
    expected = []
    for country, month in np.ndindex(*SHAPE):
        beside = WINDOWS[window](grids[windowed], country, month)
        sized = {"n": grids["count(*)"][country][month], "s": grids["sum(amount)"][country][month]}
        parts = [Fraction(factor) * sized[size] for factor, size in zip(factors, "ns", strict=False) if size in sizes]
        expected.append(None if beside is None else sum(parts, start=Fraction(factors[2]) * beside))

    truth = [value is not None and COMPARISONS[operator](value, threshold) for value in expected]

    def literal(cut: Cut) -> Booleans:
        return evaluate_literal(common, cut, values)

    assert evaluate_formula(question.formula, literal, keys=len(expected)).tolist() == truth
    (functional,) = {cut.functional for cut in list_literals(question.formula)}
    found, present = read_plainly(common, functional, values)
    assert present.tolist() == [value is not None for value in expected]
    known = [(read, value) for read, value in zip(found, expected, strict=True) if value is not None]
    largest = max(known, key=lambda pair: abs(pair[0]))
    assert all(read * largest[1] == value * largest[0] for read, value in known)


@pytest.mark.parametrize("dialect", [DUCKDB, POSTGRES], ids=lambda one: one.name)
def test_other_groups_are_read_in_the_same_scan_as_a_groups_own_sum(dialect: Dialect) -> None:
    """The SQL is that of the same sum compared with a number, so a share of a total reads the table no second time."""
    number = "SELECT month FROM sales GROUP BY month HAVING sum(amount) > 5000"
    share = "SELECT month FROM sales GROUP BY month HAVING sum(amount) > 0.1 * (SELECT sum(amount) FROM sales)"
    months = "SELECT month, sum(amount) AS s, lag(sum(amount)) OVER (ORDER BY month) AS b FROM sales GROUP BY month"
    alone = rewrite(asked(number), dialect=dialect).sql
    for compared in (share, f"SELECT month FROM ({months}) AS q WHERE s > b + 500"):
        question = asked(compared, tolerance="100")
        assert reads_cells(question)
        sums, _ = list_cell_sums(question)
        assert rewrite(replace(question, functionals=sums), dialect=dialect).sql == alone
