"""Which cells a question that joins a public table is charged to."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date

import pytest

from deploy.demo.build import install_demo
from planner.catalog.catalog import Catalog
from planner.plan.question_identity import find_fingerprint
from planner.question.plan import Plan
from proxy.open_policy.accounts import read_label
from proxy.open_policy.service import Service
from proxy.pipeline import claim as charging
from proxy.pipeline import stages as pipeline
from proxy.pipeline.messages import Asked, read_bare_question
from tests.worlds.house import check_once

JOINED = "SELECT {} FROM sales s JOIN countries c ON s.country = c.name {} GROUP BY {} HAVING count(*) > 1000"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service.open(check_once(install_demo(tmp_path_factory.mktemp("demo")))) as opened:
        yield opened


def _planned(service: Service, sql: str, catalog: Catalog | None = None) -> tuple[Plan, charging.Claim]:
    asked = Asked(
        question=read_bare_question(sql, catalog or service.catalog),
        settings={"keyhole.mechanism": "keyhole"},
        parameters={},
        analyst=service.find_analyst(None),
        today=date(2012, 1, 1),
    )
    plan = pipeline.plan_asked_question(service, asked)
    version = service.find_version(plan.question.table)
    return plan, charging.make_claim(plan, service.catalog, asked=asked, version=version)


def _cells(claim: charging.Claim) -> dict[str, tuple[str, ...]]:
    return {read_label(label): values for label, values in claim.charge.cells.columns}


def test_a_group_that_is_looked_up_is_a_cell_of_its_own(service: Service) -> None:
    """Its label names the pinned table, the columns, the pin and the private column; it never changes if that does not.

    Regions and countries are different columns of the ledger, so that the answers about both add up.
    """
    _, claim = _planned(service, JOINED.format("c.region", "", "c.region"))
    ((label, values),) = claim.charge.cells.columns
    digest = next(table.digest for table in service.catalog.public_tables if table.name == "countries")
    assert label == f"country.countries.region=countries.region by name {digest} of country"
    assert set(values) == {
        "British Isles",
        "Europe",
        "Americas",
        "Asia and Oceania",
        "Middle East and Africa",
        "Unspecified",
    }
    assert claim.charge.family.filter == ""
    assert claim.charge.family.immutable == {label}


def test_the_column_that_is_joined_by_is_the_private_one(service: Service) -> None:
    _, joined = _planned(service, JOINED.format("c.name", "", "c.name"))
    _, plain = _planned(service, "SELECT country FROM sales GROUP BY country HAVING count(*) > 1000")
    assert joined.charge.cells == plain.charge.cells
    assert joined.charge.question == plain.charge.question


def test_a_filter_on_a_looked_up_column_is_one_on_the_private_column(service: Service) -> None:
    """A customer's month may be in two countries: such a filter narrows no cells at unit level, the month's does."""
    where = "WHERE c.region = 'Americas' AND s.month = '2011-11-01'"
    plan, claim = _planned(service, JOINED.format("s.hour", where, "s.hour"))
    assert set(_cells(claim)) == {"hour", "month"}
    assert claim.charge.family.filter == "\"country\" IN ('Brazil', 'Canada', 'USA')"
    written = "SELECT hour FROM sales WHERE month = '2011-11-01' AND country IN ('USA', 'Canada', 'Brazil') "
    same, other = _planned(service, f"{written} GROUP BY hour HAVING count(*) > 1000")
    assert other.charge == claim.charge
    assert find_fingerprint(same.question) == find_fingerprint(plan.question)


def test_a_filter_narrows_cells_where_the_row_is_the_unit(service: Service) -> None:
    tables = tuple(replace(table, unit=(), rows_per_unit=None) for table in service.catalog.tables)
    catalog = replace(service.catalog, tables=tables)
    _, claim = _planned(service, JOINED.format("s.hour", "WHERE c.region = 'Americas'", "s.hour"), catalog)
    assert _cells(claim)["country"] == ("Brazil", "Canada", "USA")
    assert claim.charge.family.filter == ""


def test_a_condition_on_a_grouped_region_restricts_the_groups(service: Service) -> None:
    where = "WHERE c.region IN ('Americas', 'Europe')"
    _, claim = _planned(service, JOINED.format("c.region", where, "c.region"))
    assert _cells(claim) == {"country.countries.region": ("Americas", "Europe")}


def test_another_pin_is_another_column_and_another_question(service: Service) -> None:
    sql = JOINED.format("c.region", "", "c.region")
    plan, claim = _planned(service, sql)
    public = tuple(replace(table, digest="f" * 64) for table in service.catalog.public_tables)
    other, moved = _planned(service, sql, replace(service.catalog, public_tables=public))
    assert claim.charge.family.columns != moved.charge.family.columns
    assert find_fingerprint(plan.question) != find_fingerprint(other.question)


def test_an_alias_changes_nothing(service: Service) -> None:
    plan, claim = _planned(service, JOINED.format("c.region", "", "c.region"))
    sql = "SELECT region FROM countries, sales WHERE name = country GROUP BY 1 HAVING count(*) > 1000"
    other, same = _planned(service, sql)
    assert same.charge == claim.charge
    assert find_fingerprint(plan.question) == find_fingerprint(other.question)
