"""Balances of groups with a delta: how many questions fit, as was told, and what is said of it."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import duckdb
import pytest

from accountant.charges import NANO
from planner.errors import KeyholeError
from planner.policy.file import Policy
from proxy.cli.check import check
from proxy.cli.simulate import Sizes, simulate
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.answering import explain_as_document, explain_question
from proxy.pipeline.claim import make_current_claim
from proxy.report import budget
from proxy.report.budget_terminal import make_tables
from proxy.report.odometer import read_odometer
from tests.accountant.examples import all_of
from tests.proxy.pipeline.test_unit_delta import QUESTION, ask, explained_further, put
from tests.worlds.house import VERIFIER

POLICY = """
[source]
url = "duckdb:///grocer.duckdb"
[accuracy]
tolerance = "100"
[budget]
epsilon_per_predicate = 0.75
epsilon_per_query = 0.5
{caps}
[tables.baskets]
privacy_unit = {unit}
{bounds}
refresh = "static"
[tables.baskets.columns.week]
key = {{ range = [1, 3] }}
[tables.baskets.columns.kind]
[analysts.ada]
password = "{verifier}"
{own}
[analysts.bob]
password = "{verifier}"
"""
ROWS = {"unit": '"row"', "bounds": ""}
HOUSEHOLDS = {"unit": '"household_id"', "bounds": "max_groups_per_unit = 3\nrows_per_unit = 1"}
DELTA = "delta_per_cell = 1e-5"
CAP = 0.75
PLAIN, BY_CURVE, BY_ARC_LOOKS = 18, 21, 42  # questions that fit into the cap
Open = Callable[..., AbstractContextManager[Service]]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """The service under a policy with these caps; its ledger is one."""
    with duckdb.connect(str(tmp_path / "grocer.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE baskets AS SELECT g AS household_id, w AS week, 0 AS kind "
            "FROM range(1500) s(g), range(1, 4) t(w)"
        )

    @contextmanager
    def open_with(caps: str, table: dict[str, str], *, own: str = "") -> Iterator[Service]:
        policy = tmp_path / "keyhole.toml"
        policy.write_text(POLICY.format(caps=caps, own=own, verifier=VERIFIER, **table))
        check(policy, confirm=True)
        with Service.open(policy) as service:
            yield service

    return open_with


def read_payloads(directory: Path) -> list[dict[str, object]]:
    with closing(sqlite3.connect(directory / "keyhole.db")) as connection:
        return [json.loads(payload) for (payload,) in connection.execute("SELECT payload FROM events ORDER BY id")]


def count_answered(service: Service, *, least: int) -> int:
    """Ask so many different questions, and more until EXPLAIN says that none fits. The next one is then refused."""
    for number in range(1, 100):
        asked = put(service, number)
        if number > least and not explained_further(service, asked):
            with pytest.raises(KeyholeError) as refused:
                ask(service, asked)
            assert refused.value.code == "KH301"
            return number - 1
        ask(service, asked)
    raise AssertionError("there is no end of it")


def test_more_questions_about_rows_fit_and_as_many_as_was_told(opened: Open, tmp_path: Path) -> None:
    with opened("", ROWS) as service:
        assert explained_further(service, put(service, 1)) == PLAIN
    with opened(DELTA, ROWS) as service:
        asked = put(service, 1)
        lines = "\n".join(explain_question(service, asked, form="text"))
        assert (
            f"each group is charged in Rényi divergences, since more such questions fit (as a plain sum {PLAIN})"
            in lines
        )
        assert "Caps then hold except with a delta of 1e-05" in lines
        cost = explain_as_document(service, asked)["cost"]
        assert isinstance(cost, dict)
        assert (cost["group_delta"], cost["unit_delta"], cost["further_questions"]) == (1e-5, None, BY_CURVE)
        for test, fitting in (("gradual", BY_CURVE), ("auto", BY_ARC_LOOKS)):
            given, sizes = {"keyhole.test": test}, Sizes(units=1500, keys=None, rows=None)
            found = simulate(tmp_path / "keyhole.toml", QUESTION.format(1, 700), given=given, sizes=sizes)
            assert found.fitting_questions == fitting
        assert explained_further(service, put(service, 1, test="auto")) == BY_ARC_LOOKS
        answered = count_answered(service, least=BY_CURVE)  # the last one is a plain sum, and gives back
        assert service.ledger.verify_everything() == 2 * answered
        for question in service.ledger.read_history()[: BY_CURVE - 1]:
            assert (question.charge.renyi, question.charge.cell_renyi is None) == (None, False)
            assert question.spent == all_of(question.charge)
        families = service.report_balances(None).families
        assert max(families[0].lost_nano) <= NANO * CAP < sum(max(one.spent_nano) for one in families)
        assert budget.make_document(service, None)["delta_per_cell"] == 1e-5
        assert "Groups, in epsilon, with delta 1e-05" in [table.title for table in make_tables(service, None)]
    # nothing is forgotten: as plain sums the groups have lost more than the cap
    with opened("", ROWS) as service, pytest.raises(KeyholeError) as refused:
        ask(service, put(service, 99))
    assert refused.value.code == "KH301"


def test_without_a_delta_for_cells_no_byte_of_an_event_changes(opened: Open, tmp_path: Path) -> None:
    with opened("", ROWS) as service:
        ask(service, put(service, 1))
    assert [payload["v"] for payload in read_payloads(tmp_path)] == [3, 2]
    with opened(DELTA, ROWS) as service:
        ask(service, put(service, 2))
    reserved = read_payloads(tmp_path)[2]
    assert (reserved["v"], reserved["renyi"]) == (5, None)
    assert isinstance(reserved["cell_renyi"], list)


def test_a_unit_and_its_groups_are_charged_by_curve_together(opened: Open) -> None:
    """A unit whose balance would end first needs its delta, too: all balances count in the choice."""
    with opened(f"epsilon_per_unit = 8\ndelta = 1e-5\n{DELTA}", HOUSEHOLDS) as service:
        asked = put(service, 1)
        lines = "\n".join(explain_question(service, asked, form="text"))
        assert "Unit, groups: one unit and each group are charged in Rényi divergences" in lines
        assert explained_further(service, asked) == BY_CURVE
        ask(service, asked)
        (question,) = service.ledger.read_history()
        assert question.charge.renyi is not None
        assert question.charge.cell_renyi is not None
    with opened(f"epsilon_per_unit = 1.2\n{DELTA}", HOUSEHOLDS) as service:
        lines = "\n".join(explain_question(service, put(service, 2), form="verbose"))
        assert "each group is charged a plain sum, since no more such questions would fit" in lines


def test_its_noise_answers_coarser_questions_for_nothing_and_is_never_refined(opened: Open) -> None:
    with opened(DELTA, ROWS) as service:
        ask(service, put(service, 1))
        (before,) = service.report_balances(None).families
        ask(service, put(service, 1, 650, tolerance="150"))
        assert service.ledger.read_history()[-1].status == "read"
        (after,) = service.report_balances(None).families
        assert after == before
        ask(service, put(service, 1, tolerance="95"))
        sharper = service.ledger.read_history()[-1].charge
        assert sharper.path_continuation is None
        assert sharper.cell_renyi is not None


def test_a_question_that_died_stays_spent_by_its_curve(opened: Open) -> None:
    with opened(DELTA, ROWS) as service:
        asked = put(service, 1)
        claim = make_current_claim(service, pipeline.plan_asked_question(service, asked), asked)
        told = explained_further(service, asked)
        assert service.ledger.reserve(claim.charge, claim.limits).charge.cell_renyi is not None
    with opened(DELTA, ROWS) as service:
        assert len(service.ledger.list_open_reservations()) == 1
        assert explained_further(service, put(service, 2)) == told - 1


def test_the_ones_who_read_are_charged_the_plain_loss_and_have_a_balance_of_their_own(opened: Open) -> None:
    """An analyst's own cap is counted by curve as well, and what others asked at its curve."""
    with opened(DELTA, ROWS, own="epsilon_per_predicate = 0.7") as service:
        told = explained_further(service, put(service, 1))
        assert PLAIN < told + 2 < BY_CURVE + 2
        ask(service, put(service, 1))
        assert explained_further(service, put(service, 2)) == told - 1
        ask(service, put(service, 1, analyst="bob"))
        read = service.ledger.read_history()[-1].charge
        assert (read.analyst, read.shared, read.is_by_curve) == ("bob", False, False)
        assert service.ledger.verify_everything() == 4


def test_the_odometer_and_check_say_what_holds_but_for_delta(opened: Open, tmp_path: Path) -> None:
    with opened(DELTA, ROWS) as service:
        for number in range(1, 4):
            ask(service, put(service, number))
        reading = read_odometer(Policy.load(tmp_path / "keyhole.toml"), service.ledger)
        told = "\n".join(reading.write_lines())
        assert "With probability all but one in 100,000, all answers together can have changed anybody's odds" in told
        assert f"The policy lets a group lose epsilon {CAP} in one window" in told
        assert "each window with delta 1e-05" in told
        findings = check(tmp_path / "keyhole.toml", confirm=False)
        told = "\n".join(findings.lines())
        assert f"a group's cap of {CAP} fits {PLAIN}, 9 and 4 as a plain sum, and {BY_CURVE}, 9 and 4 with its" in told
        assert "a group may lose 0.75 epsilon (with delta 1e-05)" in told
