"""A wider tolerance, a larger rate or a tighter bound on units never makes a question dearer, but for what
numeric solvers leave."""

import math
from dataclasses import replace
from random import Random

import pytest

from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from tests.effort import rounds
from tests.planner.asked import asked
from tests.worlds.retail import retail

SOLVED = 1e-3
"""How far apportionment and the bisection of early looks may end from the least loss, as a part of it. It was up to
.033 where apportionment stopped at bends of the loss."""

FORMULAS = (
    "count(*) > {count}",
    "sum({x}) > {sum}",
    "count({x}) >= 300 AND avg({x}) > {mean}",
    "count({x}) >= 300 AND avg({x}) BETWEEN {mean} AND {above}",
    "count({x}) >= 300 AND (avg({x}) > {above} OR avg({x}) < {mean})",
    "count(*) > {count} AND sum({x}) > {sum}",
    "count(*) BETWEEN {count} AND 3 * {count}",
    "count(*) > {count} OR sum({x}) > {sum}",
    "count(*) > {count} AND count(*) FILTER (WHERE {x} > 60) > {count}",
    "count(*) > 300 AND 1.0 * count(*) FILTER (WHERE {x} > 60) / count(*) BETWEEN 0.5 AND 0.72",
)
BANDS = "count({x}) >= 300|avg({x}) > {mean} AS low, avg({x}) > {above} AS middle, sum({x}) > {sum} AS high"
TABLES = (("visits", "ward", "cost", 1500, 1000), ("sales", "country", "amount", 90, 30))


def with_rows(rows: int) -> Catalog:
    """The catalog with a bound on the rows of one unit in one group."""
    tables = (
        replace(
            table,
            rows_per_unit=rows if table.rows_per_unit else None,
            row_cap=replace(table.row_cap, rows=rows) if table.row_cap else None,
        )
        for table in retail().tables
    )
    return replace(retail(), tables=tuple(tables))


def price(sql: str, settings: dict[str, str], *, rows: int) -> float:
    """What one group costs at most; infinity where no noise is enough."""
    try:
        return plan_question(
            asked(sql, parameters=None, catalog=with_rows(rows), **settings), dialect=DUCKDB
        ).worst_case_epsilon
    except KeyholeError as error:
        if error.code != "KH303":
            raise
        return math.inf


def draw_question(random: Random) -> str:
    table, key, x, highest, scale = random.choice((*TABLES, ("capped_sales", *TABLES[1][1:])))
    count, mean = random.choice((60, 100, 300, 1000)), random.choice((15, 50, 70)) * highest // 100
    words = {"x": x, "count": count, "sum": count * scale, "mean": mean, "above": mean + highest // 5}
    having, _, shown = random.choice((*FORMULAS, *FORMULAS, BANDS, BANDS, BANDS)).format(**words).partition("|")
    return f"SELECT {', '.join(filter(None, (key, shown)))} FROM {table} GROUP BY {key} HAVING {having}"


def widen(settings: dict[str, str], name: str, factor: float) -> dict[str, str]:
    """Widen one part of a contract, up to what may be asked for."""
    value = min(float(settings[name].rstrip("%")) * factor, 90.0 if name == "tolerance" else 0.45)
    return settings | {name: f"{value:.4f}" + ("%" if name == "tolerance" else "")}


def draw_widening(random: Random, settings: dict[str, str], rows: int) -> tuple[dict[str, str], int]:
    name = random.choice(("tolerance", "fnr", "fpr", "rows"))
    if name == "rows":
        return settings, random.randint(1, rows)
    return widen(settings, name, random.choice((1.01, 1.1, 1.5, 1.7, 2.0))), rows


@pytest.mark.parametrize("mechanism", ["keyhole", "progressive"])
@pytest.mark.parametrize("reuse", ["on", "off"])
def test_no_wider_contract_costs_more(mechanism: str, reuse: str) -> None:
    """Random questions, contracts and bounds, each widened five times in a row (quick: 3 chains, else 60)."""
    random = Random(31)
    for _ in range(rounds(60, quick=3)):
        sql, rows = draw_question(random), random.choice((2, 4, 6, 8))
        settings = {
            "tolerance": f"{random.choice((5, 8, 10, 15, 20, 25))}%",
            "fnr": str(random.choice((0.01, 0.05, 0.1))),
            "fpr": str(random.choice((0.01, 0.05, 0.1))),
            "min_rows": "300",
            "mechanism": mechanism,
            "reuse": reuse,
        }
        last = price(sql, settings, rows=rows)
        for _ in range(5):
            settings, rows = draw_widening(random, settings, rows)
            now = price(sql, settings, rows=rows)
            assert now <= last * (1.0 + SOLVED), (sql, settings, rows, last)
            last = now


@pytest.mark.parametrize(
    ("sql", "settings", "widened"),
    [
        # blocks were cheap enough to stay at the narrow tolerance and gave way to a dearer sum at the wide one
        ("SELECT ward FROM visits GROUP BY ward HAVING sum(cost) > 100000", {"tolerance": "5%"}, {"tolerance": "8.5%"}),
        ("SELECT ward FROM visits GROUP BY ward HAVING sum(cost) > 60000", {"tolerance": "10%"}, {"tolerance": "15%"}),
        # common sums were given up unless they saved a tenth
        (
            "SELECT country, avg(amount) > 20 AS low, avg(amount) > 40 AS high FROM sales GROUP BY country "
            "HAVING count(amount) >= 300",
            {"tolerance": "15%"},
            {"tolerance": "25%"},
        ),
        # shares were split where the slope of the loss has a bend, and rose by 3.3 %
        (
            "SELECT country FROM sales GROUP BY country HAVING count(amount) >= 300 AND avg(amount) BETWEEN 13 AND 31",
            {"tolerance": "8%", "fnr": "0.05", "fpr": "0.1210", "reuse": "off", "mechanism": "keyhole", "rows": "1"},
            {"fpr": "0.1222"},
        ),
        # the last rate was found to a sixteenth of what early looks may cost
        (
            "SELECT country FROM capped_sales GROUP BY country HAVING sum(amount) > 9000",
            {"tolerance": "20%", "fnr": "0.05", "fpr": "0.1", "reuse": "off", "rows": "6"},
            {"fpr": "0.1010"},
        ),
    ],
)
def test_prices_that_rose(sql: str, settings: dict[str, str], widened: dict[str, str]) -> None:
    fixed = {"fnr": "0.1", "fpr": "0.01", "min_rows": "300", "rows": "4"} | settings

    def find_price(own: dict[str, str]) -> float:
        asked_with = fixed | own
        return price(sql, asked_with, rows=int(asked_with.pop("rows")))

    assert find_price(widened) <= find_price({})
