"""What comparisons with other groups cost beside the same question with a number, for rows and for people."""

from dataclasses import replace

import pytest

from planner.catalog.catalog import Catalog, SqlType
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from tests.end_to_end.statistics.placed_worlds import Bounds, make_catalog
from tests.planner.asked import asked

UNITS = {
    "rows": Bounds(0, 1, 0, 10),
    "people of one group": Bounds(1, 2, 0, 10),
    "people of four": Bounds(4, 3, 0, 10),
    "people of 52": Bounds(52, 3, 0, 10, capped=True),
}
TOTALS = {"count(*)": 100_000, "sum(amount)": 500_000}


def _with_groups(bounds: Bounds, groups: int, mechanism: str) -> Catalog:
    catalog = make_catalog(bounds, ("ward",))
    (table,) = catalog.tables
    columns = tuple(
        replace(one, sql_type=SqlType.INTEGER, declared="integer", domain=tuple(range(groups)))
        if one.name == "ward"
        else one
        for one in table.columns
    )
    defaults = replace(catalog.defaults, mechanism=mechanism)
    return replace(catalog, tables=(replace(table, columns=columns),), defaults=defaults)


def _cost(having: str, catalog: Catalog, tolerance: float) -> float:
    question = asked(
        f"SELECT ward FROM visits GROUP BY ward HAVING {having}", catalog=catalog, tolerance=str(round(tolerance))
    )
    return plan_question(question, dialect=DUCKDB).worst_case_epsilon


@pytest.mark.parametrize("mechanism", ["keyhole", "progressive"])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("size", TOTALS)
def test_a_tenth_of_the_total_and_an_average_cost_about_what_a_number_does(
    size: str, unit: str, mechanism: str
) -> None:
    """The total has the noise of all groups: a tenth of it has as much as one of a hundred groups has."""
    for groups, part, most in ((10, 0.1, 1.0), (20, 0.1, 1.05), (38, 0.1, 1.12), (50, 0.1, 1.18), (50, 0.02, 1.05)):
        catalog = _with_groups(UNITS[unit], groups, mechanism)
        total = f"(SELECT {size} FROM visits)"
        if part == 1 / groups:
            total = f"{groups} * (SELECT avg(n) FROM (SELECT {size} AS n FROM visits GROUP BY ward) q)"
        for tolerance in (0.05, 0.2):
            threshold = part * TOTALS[size]
            number = _cost(f"{size} > {round(threshold)}", catalog, tolerance * threshold)
            assert _cost(f"{size} > {part} * {total}", catalog, tolerance * threshold) <= most * number
