"""The SQL of docs/asking.md and docs/thresholds.md plans: over the demo's policy, or over a world of tests."""

import re
from collections.abc import Callable
from math import ceil
from pathlib import Path

import pytest

from deploy.demo.build import install_demo
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from proxy.cli.check import check
from proxy.open_policy.service import Service
from tests.planner.aggregates.test_key_thresholds import CATALOG as ROOMS
from tests.planner.asked import TODAY
from tests.worlds.stays import people

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGES = "\n".join((DOCS / name).read_text(encoding="utf-8") for name in ("asking.md", "thresholds.md"))
BLOCKS = re.findall(r"^ *```sql\n(.*?)^ *```", PAGES, re.MULTILINE | re.DOTALL)
EXAMPLES = [" ".join(sql.split()) for block in BLOCKS for sql in block.split(";") if sql.strip()]
PRICED = re.findall(r"^\| `(.+)` \| ([\d.]+) \|$", PAGES, re.MULTILINE)
ELSEWHERE: dict[str, Callable[[], Catalog]] = {"FROM stays s": people, "FROM visits v JOIN": lambda: ROOMS}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    policy = install_demo(tmp_path_factory.mktemp("demo"))
    check(policy, confirm=False)
    with Service.open(policy) as service:
        return service.catalog


def test_the_pages_have_examples_of_all_that_may_be_written() -> None:
    assert len(EXAMPLES) >= 30
    assert sum("FROM sales" in sql for sql in EXAMPLES) >= 25


def cost_of(sql: str, catalog: Catalog) -> float:
    """Plan every question of a statement, and return what a group is charged for the most expensive."""
    statement = classify(sql, catalog)
    assert isinstance(statement, Asking)
    wanted = read_accuracy({}, catalog.defaults)
    costs = []
    for part in statement.questions:
        try:
            question = bind_question(part, catalog, accuracy=wanted, parameters={}, today=TODAY, is_utc=True)
        except KeyholeError as error:
            raise AssertionError(f"{error}: {error.hint}") from error
        costs.append(plan_question(question, dialect=DUCKDB).worst_case_epsilon)
    return max(costs)


@pytest.mark.parametrize("sql", EXAMPLES)
def test_an_example_plans(sql: str, demo: Catalog) -> None:
    catalog = next((made() for words, made in ELSEWHERE.items() if words in sql), demo)
    assert cost_of(sql, catalog) >= 0  # listing the values of a key costs nothing


@pytest.mark.parametrize(("having", "price"), PRICED)
def test_a_threshold_costs_what_is_written(having: str, price: str, demo: Catalog) -> None:
    cost = cost_of(f"SELECT hour FROM sales GROUP BY hour HAVING {having}", demo)
    assert f"{ceil(100 * cost - 1e-9) / 100:.2f}" == price
