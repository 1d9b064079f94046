"""The demo and the example policies: they load, compile, and the demo's questions are worth asking and affordable."""

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from deploy.demo.build import COUNTRIES, HERE, install_demo
from mechanisms.formula import relax_formula
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Bands, Catalog, StoredParameter, StoredQuestion
from planner.catalog.pins import Pins, pin_table
from planner.extract.outer_query import Asking
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.policy.compile import SourceColumn, compile_catalog, list_key_domains
from planner.policy.file import Policy
from planner.policy.rules.document import describe_warnings
from planner.question.plan import Plan
from planner.statements import settings
from planner.statements.classify import classify
from proxy.cli.demo import evaluate_exactly
from proxy.open_policy.pins import pin
from proxy.report.proposal_prices import describe_expensive_proposals
from proxy.sources.open import Source, open_source
from tests.worlds.policies import VERIFIER

NOW = datetime(2026, 3, 1, tzinfo=UTC)
QUESTIONS = tomllib.loads((HERE / "questions.toml").read_text(encoding="utf-8"))["questions"]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return Policy.load(install_demo(tmp_path_factory.mktemp("demo")), environment={})


@pytest.fixture(scope="module")
def source(policy: Policy) -> Iterator[Source]:
    opened = open_source(policy.source.url, directory=policy.directory)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def catalog(policy: Policy, source: Source) -> Catalog:
    return pin(policy, source, confirm=False, now=NOW).catalog


def planned(catalog: Catalog, index: int) -> Plan:
    asked = classify(QUESTIONS[index]["sql"], catalog)
    assert isinstance(asked, Asking)
    wanted = {f"keyhole.{name}": value for name, value in QUESTIONS[index].get("settings", {}).items()}
    contract = settings.read_accuracy(wanted, catalog.defaults)
    question = bind_question(asked.questions[0], catalog, accuracy=contract, parameters={}, today=date(2026, 3, 1))
    return plan_question(question, dialect=DUCKDB)


def test_the_demo_has_494_keys_of_customer_months(policy: Policy, catalog: Catalog) -> None:
    (sales,) = catalog.tables
    assert sales.unit == ("customer_id", "month")
    countries, months = sales.get_column("country").domain, sales.get_column("month").domain
    assert countries is not None
    assert months is not None
    assert len(countries) * len(months) == 494
    assert describe_warnings(policy) == ()


def test_every_country_has_one_region() -> None:
    names = [name for listed in COUNTRIES.values() for name in listed]
    assert len(names) == len(set(names)) == 38


@pytest.mark.parametrize("index", range(len(QUESTIONS)))
def test_each_question_is_affordable(catalog: Catalog, index: int) -> None:
    assert 0 < planned(catalog, index).worst_case_epsilon <= catalog.budget.per_query


def test_all_questions_together_are_affordable(catalog: Catalog) -> None:
    total = sum(planned(catalog, index).worst_case_epsilon for index in range(len(QUESTIONS)))
    assert catalog.budget.per_unit is not None
    assert total <= catalog.budget.per_predicate <= catalog.budget.per_unit


@pytest.mark.parametrize("index", [index for index, asked in enumerate(QUESTIONS) if "LIMIT" not in asked["sql"]])
def test_each_question_tells_groups_apart(catalog: Catalog, source: Source, index: int) -> None:
    """Some groups qualify, some are clearly out, and most are not in between. A ranking has no threshold."""
    asked = planned(catalog, index)
    keys = asked.question.keys
    found = source.read_aggregates(
        asked.rewritten, keys, functionals=len(asked.question.computed_functionals), timeout_ms=60_000
    )
    formula, common = asked.minimised.formula, asked.calibration.task.common
    inside = evaluate_exactly(formula, found.values, common=common)
    near = evaluate_exactly(relax_formula(formula), found.values, common=common) & ~inside
    assert np.count_nonzero(inside) >= 3
    assert np.count_nonzero(~inside & ~near) >= 3
    assert np.count_nonzero(near) <= keys.size // 4


@pytest.mark.parametrize("stored", ["busy_markets", "market_status"])
def test_the_stored_questions_are_questions(catalog: Catalog, stored: str) -> None:
    assert isinstance(classify(f"SELECT * FROM {stored}", catalog), Asking)


def test_the_bands_that_the_demo_proposes_are_affordable(catalog: Catalog) -> None:
    (sales,) = catalog.tables
    assert [shown.name for shown in sales.band_columns] == ["amount_sum_band", "rows_band", "units_band"]
    assert list(describe_expensive_proposals(catalog, dialect=DUCKDB)) == []


@pytest.mark.parametrize(
    ("bands", "problem"),
    [
        (Bands("sum", (Decimal(2000), Decimal(50000))), "costs a group 13.3"),
        (Bands("sum", (Decimal(0),)), "is refused (KH220"),
        (Bands("sum", (Decimal(0), Decimal(50000))), "is refused (KH220"),
    ],
)
def test_bands_that_no_budget_pays_for_are_told_of(catalog: Catalog, bands: Bands, problem: str) -> None:
    (sales,) = catalog.tables
    columns = tuple(replace(column, bands=(bands,)) if column.name == "amount" else column for column in sales.columns)
    changed = replace(catalog, tables=(replace(sales, columns=columns),))
    (told,) = describe_expensive_proposals(changed, dialect=DUCKDB)
    assert told.startswith("tables.sales.columns.amount.bands: asking for those of sum by country ")
    assert problem in told
    assert list(describe_expensive_proposals(replace(changed, tables=(sales,)), dialect=DUCKDB)) == []
    dear = replace(changed, budget=replace(catalog.budget, per_unit=0.5), tables=(sales,))
    assert [
        problem
        for problem in describe_expensive_proposals(dear, dialect=DUCKDB)
        if "above budget.epsilon_per_unit (0.5)" in problem
    ]


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT country, sum(amount) FROM sales GROUP BY country", "is refused (KH101"),
        ("SELECT country, nothing_of_the_kind FROM sales GROUP BY country HAVING count(*) > 9", "is refused (KH2"),
        ("SELECT country FROM sales GROUP BY country HAVING sum(amount) > $1", "costs a group 2.9"),
        ("SELECT 1", "is refused (KH106"),
    ],
)
def test_a_stored_question_that_cannot_be_asked_is_told_of(catalog: Catalog, sql: str, problem: str) -> None:
    stored = StoredQuestion("status", sql, parameters=(StoredParameter("least", 1000),) if "$1" in sql else ())
    (told,) = describe_expensive_proposals(replace(catalog, stored_questions=(stored,)), dialect=DUCKDB)
    assert told.startswith(f"views.status: reading it {problem}")


def test_the_hospital_example_loads_and_compiles() -> None:
    path = Path(HERE).parent / "policies" / "hospital.toml"
    secrets = {"KEYHOLE_SOURCE_PASSWORD": "x", "KEYHOLE_LEDGER_PASSWORD": "y", "KEYHOLE_DASHBOARD_VERIFIER": VERIFIER}
    policy = Policy.load(path, environment=secrets)
    types = {
        "patient_id": "bigint",
        "ward": "text",
        "disease": "text",
        "day": "date",
        "age": "smallint",
        "cost": "numeric(10,2)",
        "emergency": "boolean",
    }
    schema = {
        "visits": tuple(SourceColumn(name, declared, True) for name, declared in types.items()),
        "diseases": (SourceColumn("name", "text", False),),
    }
    pins = Pins(tables=(pin_table("diseases", schema["diseases"], [("flu",), ("gout",)]),))
    pinned = tuple(domain for domain, _ in list_key_domains(policy, schema=schema, pins=pins))
    catalog = compile_catalog(
        policy, schema=schema, pins=Pins(tables=pins.tables, domains=pinned), directory=policy.directory
    )
    assert catalog.tables[0].get_column("day").domain is not None
    assert describe_warnings(policy) == ()
    assert isinstance(classify(catalog.stored_questions[0].sql, catalog), Asking)
