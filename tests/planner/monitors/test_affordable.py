"""Keys with which a monitor fits: each that is told does, and a step less does not."""

import pytest

from planner.catalog.catalog import Catalog
from planner.lower.dialects.duckdb import DUCKDB
from planner.monitors.affordable import find_exceeded_cap, find_fitting
from planner.monitors.build import plan_monitor
from planner.monitors.monitor_plan import MonitorPlan
from tests.worlds.monitored import BY_WARD, SQL, TABLES, declared, planned

OF_STAYS = "SELECT ward, day FROM stays GROUP BY ward, day HAVING count(DISTINCT patient_id) > 100"


def _fitting(catalog: Catalog, most: float) -> tuple[str, ...]:
    def fits(plan: MonitorPlan) -> bool:
        return plan.epsilon_per_cell <= most

    return find_fitting(catalog, catalog.monitors[0], dialect=DUCKDB, fits=fits)


def test_the_least_tolerance_and_the_most_looks_are_told() -> None:
    tolerance, every, close = _fitting(declared(), 0.12)
    percent = int(tolerance.split('"')[1].removesuffix("%"))
    assert planned(tolerance=f'"{percent}%"').epsilon_per_cell <= 0.12
    assert planned(tolerance=f'"{percent - 1}%"').epsilon_per_cell > 0.12
    assert every.startswith('every = "')
    assert planned(every=every.removeprefix("every = ").split(" (")[0]).epsilon_per_cell <= 0.12
    assert close == 'alert = "close"'
    assert planned(alert='"close"').epsilon_per_cell <= 0.12


def test_nothing_is_told_that_does_not_fit() -> None:
    assert _fitting(declared(), 1e-4) == ()


def test_of_a_stream_it_is_what_it_may_lose_of_an_event() -> None:
    (smaller,) = _fitting(declared(mechanism='"pegasus"', epsilon="0.5"), 0.3)
    assert smaller == "epsilon = 0.295"
    for epsilon, fits in (("0.295", True), ("0.3", False)):
        assert (planned(mechanism='"pegasus"', epsilon=epsilon).epsilon_per_cell <= 0.3) is fits


def test_windows_that_hop_are_looked_at_less_often() -> None:
    window = '{ column = "seen_at", length = "24 hours", hop = "12 hours" }'
    found = _fitting(declared(BY_WARD, window=window), 0.25)
    assert any(one.startswith("every = ") for one in found)


def test_the_first_cap_that_is_exceeded_is_named() -> None:
    catalog = declared(OF_STAYS)
    plan = plan_monitor(catalog, catalog.monitors[0], dialect=DUCKDB)
    assert find_exceeded_cap(plan, catalog.budget) == ("budget.epsilon_per_unit", 8.0)
    assert find_exceeded_cap(planned(), catalog.budget) is None
    dear = planned(SQL, tolerance='"0"')
    assert find_exceeded_cap(dear, catalog.budget) == ("budget.epsilon_per_query", 2.0)


@pytest.mark.parametrize("per_table", [1.0, 20.0])
def test_a_tables_own_cap_counts(per_table: float) -> None:
    tables = TABLES.replace(
        'privacy_unit = "patient_id"', f'privacy_unit = "patient_id"\nepsilon_per_table = {per_table}'
    )
    catalog = declared(OF_STAYS, tables=tables, tolerance='"80%"')
    plan = plan_monitor(catalog, catalog.monitors[0], dialect=DUCKDB)
    expected = ("tables.stays.epsilon_per_table", 1.0) if per_table < plan.epsilon_per_unit else None
    assert find_exceeded_cap(plan, catalog.budget) == expected
