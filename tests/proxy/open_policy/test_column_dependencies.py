"""What the catalog knows of the ledger's columns, and what that makes of balances."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta

import pytest

from accountant.balances.dependencies import Dependency
from accountant.charges import Spent
from deploy.demo.build import install_demo
from planner.catalog.catalog import Catalog, Column, Derivation, SqlType, Table, Value
from planner.catalog.key_space import format_value
from proxy.cli.check import check
from proxy.open_policy.column_dependencies import find_all_dependencies
from proxy.open_policy.service import Service
from proxy.pipeline import claim as charging
from proxy.pipeline import stages as pipeline
from proxy.pipeline.messages import Asked, read_bare_question
from tests.in_turn import in_turn

BY_COUNTRY = "SELECT country FROM sales GROUP BY country HAVING count(*) > {}"
BY_REGION = (
    "SELECT c.region FROM sales s JOIN countries c ON s.country = c.name GROUP BY c.region HAVING count(*) > 1000"
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The demo, of which all but one ask the catalog alone."""
    policy = install_demo(tmp_path_factory.mktemp("demo"))
    check(policy, confirm=False)
    with Service.open(policy) as opened:
        yield opened


def claimed(service: Service, sql: str) -> charging.Claim:
    asked = Asked(
        question=read_bare_question(sql, service.catalog),
        settings={"keyhole.mechanism": "keyhole", "keyhole.tolerance": "50%"},
        parameters={},
        analyst=service.find_analyst(None),
        today=date(2012, 1, 1),
    )
    plan = pipeline.plan_asked_question(service, asked)
    return charging.make_claim(plan, service.catalog, asked=asked, version=service.find_version(plan.question.table))


def lost(service: Service, claim: charging.Claim) -> dict[str, int]:
    """What the report says of each group of a question's family."""
    (family,) = (one for one in service.report_balances(None).families if one.family == claim.charge.family)
    return {key[0]: nano for key, nano in zip(family.list_keys(), family.lost_nano, strict=True)}


def region_of(service: Service) -> dict[str, str]:
    (public,) = (one for one in service.catalog.public_tables if one.name == "countries")
    names = [column.name for column in public.columns]
    name, region = names.index("name"), names.index("region")
    return {str(row[name]): str(row[region]) for row in public.rows}


def test_a_country_lost_what_its_own_region_did_and_no_other(service: Service) -> None:
    """Reports, what is left for the same keys, and refusals go by the same sums."""
    by_country, by_region = claimed(service, BY_COUNTRY.format(1000)), claimed(service, BY_REGION)
    ledger, regions = service.ledger, region_of(service)
    ((_, countries),) = by_country.charge.cells.columns
    ((_, asked_regions),) = by_region.charge.cells.columns
    own = {country: 1000 * number for number, country in enumerate(countries, 1)}
    of_region = {region: 7 * number for number, region in enumerate(asked_regions, 1)}
    for claim, losses in ((by_country, list(own.values())), (by_region, list(of_region.values()))):
        spent = Spent.from_keys(losses, unit_epsilon_nano=max(losses))
        ledger.commit(ledger.reserve(claim.charge, claim.limits), spent, None)
    assert len(of_region) > 2
    assert lost(service, by_country) == {
        country: amount + of_region.get(regions.get(country, ""), 0) for country, amount in own.items()
    }
    assert lost(service, by_region) == {
        region: amount + max(own[country] for country in countries if regions[country] == region)
        for region, amount in of_region.items()
    }
    most = max(lost(service, by_country).values())
    left = ledger.find_headroom(claimed(service, BY_COUNTRY.format(2000)).charge, by_country.limits)
    assert left.shared_room.epsilon_nano == by_country.limits.per_predicate_nano - most


def test_labels_of_another_pin_are_in_no_dependency(service: Service) -> None:
    """They stay free to combine with every country: an over-count, and never less."""
    ((label, _),) = claimed(service, BY_REGION).charge.cells.columns
    columns = frozenset({label, "country"})
    (known,) = find_all_dependencies(service.catalog)("sales", columns)
    assert (known.determined_column, known.base_column, known.is_complete) == (label, "country", True)
    assert known.determined_values == region_of(service)
    pinned_anew = tuple(replace(table, digest="0" * 64) for table in service.catalog.public_tables)
    assert find_all_dependencies(replace(service.catalog, public_tables=pinned_anew))("sales", columns) == ()
    assert find_all_dependencies(service.catalog)("another table", columns) == ()


def calendar(catalog: Catalog, days: tuple[Value, ...], *parts: tuple[str, str]) -> dict[str, Dependency]:
    """What is known of columns derived from a day with this domain, by their names."""
    columns = [Column("day", SqlType.DATE, "date", domain=days)]
    for function, part in parts:
        kind = SqlType.DATE if function == "date_trunc" else SqlType.INTEGER
        columns.append(Column(f"{function}_{part}", kind, kind.value, derivation=Derivation(function, part, "day")))
    table: Table = replace(catalog.tables[0], name="t", columns=tuple(columns), unit=(), root=None, members=())
    known = find_all_dependencies(replace(catalog, tables=(table,)))("t", frozenset(column.label for column in columns))
    return {one.determined_column.partition("=")[0]: one for one in known if one.base_column == "day"}


def test_a_day_tells_its_month_and_a_month_all_of_whose_days_are_keys_holds_no_other(service: Service) -> None:
    days = tuple(date(2024, 1, 15) + timedelta(days=number) for number in range(60))
    known = calendar(service.catalog, days, ("date_trunc", "month"), ("date_trunc", "week"), ("extract", "dow"))
    month, week, dow = known["date_trunc_month"], known["date_trunc_week"], known["extract_dow"]
    assert month.determined_values == {format_value(day): format_value(day.replace(day=1)) for day in days}
    assert not month.is_complete
    assert month.excluded_values == {"2024-02-01"}
    assert week.excluded_values == {format_value(days[0] + timedelta(days=7 * number)) for number in range(8)}
    assert dow.determined_values == {format_value(day): str(day.isoweekday() % 7) for day in days}
    assert dow.excluded_values == frozenset()


def test_a_year_of_days_is_closed_when_its_leap_day_is_there(service: Service) -> None:
    days = tuple(date(2023, 1, 1) + timedelta(days=number) for number in range(730))
    known = calendar(service.catalog, days, ("date_trunc", "year"), ("extract", "year"), ("date_trunc", "quarter"))
    assert known["date_trunc_year"].excluded_values == {"2023-01-01"}
    assert known["extract_year"].excluded_values == {"2023"}
    assert known["date_trunc_quarter"].excluded_values == {
        format_value(date(year, month, 1)) for year in (2023, 2024) for month in (1, 4, 7, 10)
    } - {"2024-10-01"}


@in_turn(
    ("finer", "coarser", "follows"),
    [
        (("date_trunc", "hour"), ("date", ""), True),
        (("date", ""), ("date_trunc", "week"), True),
        (("date_trunc", "month"), ("extract", "quarter"), True),
        (("date_trunc", "week"), ("date_trunc", "month"), False),
        (("date_trunc", "week"), ("extract", "year"), False),
        (("date", ""), ("extract", "hour"), False),
        (("extract", "month"), ("extract", "quarter"), False),
    ],
)
def test_a_derived_column_tells_those_that_are_the_same_for_all_its_times(
    service: Service, finer: tuple[str, str], coarser: tuple[str, str], follows: bool
) -> None:
    moments = [datetime(2024, 1, 1) + timedelta(hours=number) for number in range(48)]
    domain: tuple[Value, ...] = tuple(moments) if finer[1] == "hour" else tuple({one.date() for one in moments})
    kind = SqlType.TIMESTAMP if finer[1] == "hour" else SqlType.DATE
    base = Column("finer", kind, kind.value, domain=domain, derivation=Derivation(*finer, "visited"))
    derived = Column("coarser", SqlType.DATE, "date", derivation=Derivation(*coarser, "visited"))
    table = replace(service.catalog.tables[0], name="t", columns=(base, derived), unit=(), root=None, members=())
    known = find_all_dependencies(replace(service.catalog, tables=(table,)))(
        "t", frozenset({base.label, derived.label})
    )
    assert [(one.base_column, one.determined_column) for one in known] == (
        [(base.label, derived.label)] if follows else []
    )
