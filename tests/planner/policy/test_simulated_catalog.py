"""A policy without its source: what it lists is kept, what it leaves open is stood in for and said."""

from datetime import date

import pytest

from planner.catalog.catalog import Catalog, SqlType
from planner.catalog.pins import Pins
from planner.policy.simulated_catalog import SimulatedCatalog, SizeMissing, simulate_catalog
from tests.worlds.policies import BASE, changed, compiled, parsed, pins_for

WARDS = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40"
DISEASES = "SELECT disease, ward FROM visits WHERE disease <> 'flu' GROUP BY disease, ward HAVING count(*) > 40"


def stood_in(sql: str, *, text: str = BASE, pins: Pins | None = None, keys: int | None = None) -> SimulatedCatalog:
    return simulate_catalog(parsed(text), sql, pins=pins or Pins(), keys=keys)


def domain(catalog: Catalog, column: str) -> int:
    (table,) = catalog.tables
    return len(table.get_column(column).domain or ())


def test_what_the_policy_lists_is_kept_and_needs_no_size() -> None:
    made = stood_in(WARDS)
    assert made.assumptions == ()
    (visits,), (real,) = made.catalog.tables, compiled().tables
    assert visits.get_column("ward").domain == real.get_column("ward").domain
    assert visits.get_column("month").domain == real.get_column("month").domain
    assert (visits.unit, visits.groups_per_unit, visits.rows_per_unit) == (
        real.unit,
        real.groups_per_unit,
        real.rows_per_unit,
    )
    for measure in ("age", "cost"):
        ours, theirs = visits.get_column(measure), real.get_column(measure)
        assert (ours.bounds, ours.grid, ours.per_unit) == (theirs.bounds, theirs.grid, theirs.per_unit)
    assert made.catalog.budget == compiled().budget


def test_a_domain_from_a_public_table_that_is_not_pinned_has_the_declared_size() -> None:
    made = stood_in(DISEASES, keys=70)
    assert made.assumptions == ("disease has 70 public values",)
    assert domain(made.catalog, "disease") == 70
    (table,) = made.catalog.tables
    assert "flu" in (table.get_column("disease").domain or ())
    with pytest.raises(SizeMissing, match="disease"):
        stood_in(DISEASES)


def test_what_is_pinned_already_is_used() -> None:
    made = stood_in(DISEASES, pins=pins_for(parsed()))
    assert made.assumptions == ()
    (table,) = made.catalog.tables
    assert table.get_column("disease").domain == ("flu", "gout", "measles")


def test_a_type_that_is_pinned_is_no_guess() -> None:
    """A column that the policy says nothing of, and the text compares with nothing that tells."""
    text = f"{BASE}\n[tables.visits.columns.floor]\n"
    pinned = Pins(columns=(("visits", (("floor", "integer"),)),))
    for pins, kind in ((Pins(), SqlType.TEXT), (pinned, SqlType.INTEGER)):
        (table,) = stood_in(WARDS, text=text, pins=pins).catalog.tables
        assert table.get_column("floor").sql_type is kind


def test_a_key_without_a_domain_gets_one() -> None:
    nights = "SELECT nights FROM visits WHERE nights < 5 GROUP BY nights HAVING count(*) > 40"
    made = stood_in(nights, keys=12)
    (table,) = made.catalog.tables
    assert table.get_column("nights").sql_type is SqlType.INTEGER
    assert domain(made.catalog, "nights") == 12
    (visits,) = stood_in("SELECT house FROM visits GROUP BY house HAVING count(*) > 4", keys=3).catalog.tables
    assert visits.get_column("house").sql_type is SqlType.TEXT


def test_values_that_stand_in_are_possible_for_a_derived_column() -> None:
    text = changed(('key = { range = ["2025-12-01", "2026-02-01"], step = "1 month" }', ""))
    by_month = "SELECT month FROM visits GROUP BY month HAVING count(*) > 40"
    (table,) = stood_in(by_month, text=text, keys=24).catalog.tables
    values = table.get_column("month").domain or ()
    assert len(values) == 24
    assert all(isinstance(value, date) and value.day == 1 for value in values)


def test_a_text_that_is_no_question_leaves_the_policy_as_it_is() -> None:
    for sql in ("", "SELECT", "not sql at all (", "SELECT 1"):
        assert domain(stood_in(sql).catalog, "ward") == 3


def test_a_large_domain_is_as_large_as_declared() -> None:
    by_house = "SELECT house FROM visits GROUP BY house HAVING count(*) > 4"
    assert domain(stood_in(by_house, keys=150_000).catalog, "house") == 150_000
