"""`keyhole odometer` reads the balances by which the caps are kept: what follows from the calendar is known to it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from planner.policy.file import Policy
from proxy.open_policy.column_dependencies import find_all_dependencies
from proxy.open_policy.pins import make_catalog_from_pins
from proxy.open_policy.service import Service
from tests.proxy.cli.conftest import Ran
from tests.worlds.wards import install

JANUARY = "SELECT month FROM visits WHERE month = '2026-01-01' GROUP BY month HAVING count(*) > 1530"
FEBRUARY = "SELECT day FROM visits WHERE day BETWEEN '2026-02-03' AND '2026-02-09' GROUP BY day HAVING count(*) > 1531"


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = install(tmp_path)
    text = path.read_text()
    assert 'range = ["2026-01-01", "2026-01-28"]' in text
    month = """
[tables.visits.columns.month]
expression = "date_trunc('month', day)"
key = { range = ["2026-01-01", "2026-02-01"], step = "1 month" }
"""
    path.write_text(text.replace('"2026-01-28"', '"2026-02-28"') + month)
    monkeypatch.setenv("KEYHOLE_POLICY", str(path))
    return path


def test_the_odometer_agrees_with_the_caps(policy: Path, run: Callable[..., Ran]) -> None:
    """No visit is in January and in February: the two questions do not add up."""
    assert run("check").status == 0
    for question in (JANUARY, FEBRUARY):
        assert run("query", question).status == 0
    spent = [family["spent_at_most"] for family in run("budget", "--json").document["families"]]
    (table,) = run("odometer", "--json").document["tables"]
    assert table["epsilon"] == max(spent)
    costs = [entry["epsilon"] for entry in run("ledger", "list", "--json").document]
    assert table["epsilon"] == max(costs) < sum(costs)


def test_without_pins_it_says_rather_more(policy: Path, run: Callable[..., Ran]) -> None:
    assert run("check").status == 0
    for question in (JANUARY, FEBRUARY):
        assert run("query", question).status == 0
    policy.with_suffix(".pins.json").unlink()
    (table,) = run("odometer", "--json").document["tables"]
    costs = [entry["epsilon"] for entry in run("ledger", "list", "--json").document]
    assert table["epsilon"] == pytest.approx(sum(costs))


def test_what_is_pinned_is_the_catalog_that_answers(policy: Path, run: Callable[..., Ran]) -> None:
    assert run("check").status == 0
    found = make_catalog_from_pins(Policy.load(policy))
    with Service.open(policy) as service:
        assert found.digest == service.catalog.digest
        labels = frozenset(column.label for column in service.catalog.tables[0].columns)
        known = find_all_dependencies(service.catalog)("visits", labels)
    assert known
    assert repr(find_all_dependencies(found)("visits", labels)) == repr(known)


def test_where_each_row_is_a_unit_the_budget_has_no_empty_line_for_units(policy: Path, run: Callable[..., Ran]) -> None:
    assert run("check").status == 0
    assert run("query", JANUARY).status == 0
    told = run("budget").out
    assert "Groups, in epsilon" in told
    assert "Privacy unit, over all questions" not in told
