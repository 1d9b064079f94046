"""The budget map shows what is wished for, as far as it is there, with the figures of `keyhole budget`."""

from pathlib import Path

import pytest

from accountant.charges import NANO
from accountant.ledger import Ledger
from accountant.reports.balance_report import BudgetReport
from proxy.console.owner.budget_map import EVERY_FILTER, MOST_DRAWN, BudgetMap, MapRequest, choose_map, describe_share
from proxy.console.owner.burn_lines import list_burn_rows, make_burn_document
from proxy.report.heat_map import NEVER, make_heat_maps
from tests.accountant.conftest import now
from tests.accountant.examples import cells, charge, limits

CAPS = limits(4 * NANO)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    opened = Ledger.open(f"sqlite:///{tmp_path_factory.mktemp('map')}/ledger.db", clock=now)
    for number, (table, where, keys, epsilon) in enumerate(
        (
            ("sales", "", cells(country=("DE", "FR", "UK")), NANO // 2),
            ("sales", "age > 60", cells(country=("DE",)), NANO),
            ("sales", "", cells(country=("FR",), month=("2011-01", "2011-02")), NANO // 4),
            ("visits", "", cells(ward=tuple(f"w{n:03}" for n in range(MOST_DRAWN + 20))), NANO // 8),
        )
    ):
        asked = charge(epsilon, table=table, where=where, keys=keys, question=f"{number:064x}")
        opened.reserve(asked, CAPS)
    return opened


@pytest.fixture(scope="module")
def report(ledger: Ledger) -> BudgetReport:
    return ledger.report_balances(CAPS)


def chosen(found: BudgetMap) -> list[list[str]]:
    return [[one.label for one in some if one.chosen] for some in (found.tables, found.groupings, found.conditions)]


def test_what_is_most_spent_is_shown_where_nothing_is_wished_for(report: BudgetReport) -> None:
    found = choose_map(report, MapRequest())
    assert chosen(found) == [["sales"], ["country"], ["whatever the filter"]]
    (same,) = make_heat_maps([one for one in report.families if one.family.columns == ("country",)])
    assert found.shown is not None
    assert found.shown.percent.tolist() == same.percent.tolist()
    assert found.make_document()["rows"] == ["DE", "FR", "UK"]


def test_one_filter_shows_its_own_groups_alone(report: BudgetReport) -> None:
    found = choose_map(report, MapRequest("sales", "country", "age > 60"))
    assert chosen(found)[2] == ["age > 60"]
    assert found.make_document()["rows"] == ["DE"]


@pytest.mark.parametrize(
    "wish", [MapRequest("nowhere"), MapRequest("sales", "no key"), MapRequest("", "", "no filter")]
)
def test_what_is_not_there_becomes_what_is_most_spent(report: BudgetReport, wish: MapRequest) -> None:
    assert chosen(choose_map(report, wish)) == chosen(choose_map(report, MapRequest()))


def test_a_text_narrows_rows_or_else_columns(report: BudgetReport) -> None:
    by_both = MapRequest("sales", "country, month", EVERY_FILTER)
    whole = choose_map(report, by_both).make_document()
    assert (whole["rows"], whole["columns"]) == (["2011-01", "2011-02"], ["FR"])
    narrowed = choose_map(report, MapRequest("sales", "country, month", EVERY_FILTER, " -02 "))
    assert narrowed.make_document()["rows"] == ["2011-02"]
    across = choose_map(report, MapRequest("sales", "country, month", EVERY_FILTER, "fr"))
    assert across.make_document()["percent"] == whole["percent"]
    nothing = choose_map(report, MapRequest("sales", "country, month", EVERY_FILTER, "nothing"))
    assert not nothing.found
    assert nothing.make_document() == whole


def test_a_large_map_says_what_is_left_out_and_finds_it_by_its_name(report: BudgetReport) -> None:
    found = choose_map(report, MapRequest("visits"))
    assert found.shown is not None
    assert len(found.shown.rows) == MOST_DRAWN
    assert "20 rows" in found.shown.remark
    assert choose_map(report, MapRequest("visits", find="w119")).make_document()["rows"] == ["w119"]


def test_a_ledger_without_questions_has_no_map(tmp_path: Path) -> None:
    with Ledger.open(f"sqlite:///{tmp_path}/empty.db", clock=now) as empty:
        found = choose_map(empty.report_balances(CAPS), MapRequest("sales"))
        assert (found.shown, found.table, found.make_document()) == (None, None, {})
        (everybody,) = list_burn_rows(empty.report_burn_down(CAPS))
        assert (everybody.everybody, everybody.cap, everybody.left) == (True, "4", "4.0000")
        assert make_burn_document(empty.report_burn_down(CAPS))["lines"] == []


def test_a_line_begins_at_its_cap_and_ends_at_what_is_left(ledger: Ledger, report: BudgetReport) -> None:
    found = ledger.report_burn_down(CAPS)
    document = {line["name"]: line for line in make_burn_document(found)["lines"]}
    assert set(document) == {"everybody together", "ann"}
    for line in document.values():
        assert line["group"][0] == 4
        assert len(line["at"]) == len(line["group"]) == len(line["unit"])
    left = min(min(family.left_nano) for family in report.families) / NANO
    assert document["everybody together"]["group"][-1] == left
    assert [row.left for row in list_burn_rows(found)] == [f"{left:.4f}"] * 2


def test_a_share_is_said_in_words() -> None:
    assert (describe_share(NEVER), describe_share(0), describe_share(100)) == ("never asked", "0 %", "100 %")
