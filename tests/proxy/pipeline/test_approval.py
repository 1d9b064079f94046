"""What an owner decides changes what analysts may ask: approvals (KH308, KH318), caps per table (KH309), grants,
windows."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from planner.catalog.catalog import Budget, TableCaps
from planner.errors import KeyholeError
from planner.policy.file import Policy
from planner.policy.rules.document import describe_warnings
from proxy.cli import main as cli
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.answering import explain_as_document, explain_question
from proxy.pipeline.messages import Answer, Asked, read_bare_question
from tests.worlds.house import check_once
from tests.worlds.wards import install

# all but some ages: every one of them another functional, so that no question reads what another has revealed
QUESTION = "SELECT ward FROM visits WHERE age < {} GROUP BY ward HAVING count(*) > 1500"

Ask = Callable[..., Answer]


def with_budget(directory: Path, *lines: str) -> Path:
    path = install(directory)
    path.write_text(path.read_text().replace("[budget]\n", "[budget]\n" + "\n".join(lines) + "\n"))
    return check_once(path)


def asking(service: Service) -> Ask:
    def ask(age: int, analyst: str = "ada") -> Answer:
        asked = Asked(
            question=read_bare_question(QUESTION.format(age), service.catalog),
            settings={},
            parameters={},
            analyst=service.find_analyst(analyst),
            today=datetime.now(UTC).date(),
        )
        return pipeline.answer(service, pipeline.plan_asked_question(service, asked), asked)

    return ask


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    assert ended.value.code == 0


def refused(ask: Ask, code: str, age: int, analyst: str = "ada") -> KeyholeError:
    with pytest.raises(KeyholeError) as caught:
        ask(age, analyst)
    assert caught.value.code == code
    return caught.value


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[tuple[Path, Service]]:
    path = with_budget(tmp_path, "approval_above_epsilon = 0.001")
    with Service.open(path) as service:
        yield path, service


def test_a_dear_question_waits_costs_nothing_and_passes_once_approved(waiting: tuple[Path, Service]) -> None:
    path, service = waiting
    ask = asking(service)
    told = refused(ask, "KH308", 90)
    assert service.ledger.read_history() == ()
    identity = re.search(r"[0-9a-f]{64}", told.detail or "")
    assert identity is not None
    assert told.hint == f"Ask the data owner to run: keyhole approve {identity[0]}"
    run("approve", identity[0], "--policy", str(path), "--why", "seen", "--by", "kim")
    assert not ask(90).is_reused
    assert ask(90).is_reused
    refused(ask, "KH308", 89)  # another age is another question
    assert refused(ask, "KH308", 89).hint != told.hint
    assert len(service.ledger.read_history()) == 1


def test_the_owner_sees_the_same_id_and_the_state_in_explain(
    waiting: tuple[Path, Service], capsys: pytest.CaptureFixture[str]
) -> None:
    path, service = waiting
    identity = re.search(r"[0-9a-f]{64}", refused(asking(service), "KH308", 90).detail or "")
    assert identity is not None
    capsys.readouterr()
    run("explain", QUESTION.format(90), "--policy", str(path))
    assert f"Question id: {identity[0]} (waits for approval)" in capsys.readouterr().out
    run("approve", identity[0].upper(), "--policy", str(path), "--why", "seen", "--by", "kim")
    run("approve", identity[0], "--policy", str(path), "--why", "seen", "--by", "kim")
    assert "was approved before" in capsys.readouterr().out
    run("explain", QUESTION.format(90), "--policy", str(path))
    told = capsys.readouterr().out
    assert f"Question id: {identity[0]} (approved)" in told
    asking(service)(90)
    run("approve", identity[0], "--policy", str(path), "--why", "seen again", "--by", "kim")
    assert "asked as: SELECT ward FROM visits WHERE age < ? GROUP BY ward HAVING count(*) > 1500\n" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("kept", "shown"),
    [
        ("redacted", "SELECT ward FROM visits WHERE age < ? GROUP BY ward HAVING count(*) > 1500"),
        ("full", "SELECT ward FROM visits WHERE age < 90 GROUP BY ward HAVING count(*) > 1500"),
        ("none", "(the policy keeps no texts)"),
    ],
)
def test_who_approves_sees_what_waits_as_far_as_the_policy_keeps_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kept: str, shown: str
) -> None:
    path = with_budget(tmp_path, "approval_above_epsilon = 0.001")
    path.write_text(path.read_text() + f'\n[ledger]\nkeep_text = "{kept}"\n')
    with Service.open(path) as service:
        ask = asking(service)
        identity = re.search(r"[0-9a-f]{64}", refused(ask, "KH308", 90).detail or "")
        assert identity is not None
        refused(ask, "KH308", 90)  # once more is the same one
        refused(ask, "KH308", 90, "bob")
        capsys.readouterr()
        run("queue", "--policy", str(path))
        told = capsys.readouterr().out
        assert told.count(identity[0]) == 2
        assert shown in told
        assert " ada: " in told
        assert " bob: " in told
        assert "missed at most" in told
        run("approve", identity[0], "--policy", str(path), "--why", "seen", "--by", "kim")
        told = capsys.readouterr().out
        assert f"asked as: {shown}" in told if kept != "none" else "asked as" not in told
        run("queue", "--policy", str(path), "--json")
        assert json.loads(capsys.readouterr().out) == []
        ask(90)
        service.ledger.verify_everything()


def test_an_approval_is_for_everybody_and_does_not_lift_a_cap(waiting: tuple[Path, Service]) -> None:
    path, service = waiting
    ask = asking(service)
    identity = re.search(r"[0-9a-f]{64}", refused(ask, "KH308", 90).detail or "")
    assert identity is not None
    run("approve", identity[0], "--policy", str(path), "--why", "seen", "--by", "kim")
    assert ask(90, "cy").keys.keys == (("A",),)
    dear = Policy.load(path).budget.epsilon_per_predicate
    assert max(service.report_balances(None).families[0].lost_nano) < dear * 1e9


def test_a_cap_per_table_refuses_and_a_grant_lifts_it(tmp_path: Path) -> None:
    path = with_budget(tmp_path, "epsilon_per_table = 0.06")
    with Service.open(path) as service:
        ask = asking(service)
        ask(90)
        ask(89)
        told = refused(ask, "KH309", 88)
        assert "visits" in (told.detail or "")
        spent = len(service.ledger.read_history())
        run("grant", "0.1", "--cap", "table", "--table", "visits", "--why", "more", "--policy", str(path), "--by", "k")
        ask(88)
        assert len(service.ledger.read_history()) == spent + 1
        (grant,) = service.ledger.owner.list_grants()
        run("revoke", grant, "--why", "enough", "--policy", str(path), "--by", "k")
        refused(ask, "KH309", 87)
        (table,) = service.report_balances(None).tables
        assert table.left_nano == 0
        assert ask(88).is_reused  # what was released is served whatever is left


def test_a_new_window_lets_balances_start_anew_and_the_odometer_forgets_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = with_budget(tmp_path, "epsilon_per_table = 0.05")
    with Service.open(path) as service:
        ask = asking(service)
        ask(90)
        refused(ask, "KH309", 89)
        first = max(service.report_balances(None).families[0].lost_nano)
        with pytest.raises(SystemExit) as ended:
            cli.main(["window", "open", "--why", "new rows", "--policy", str(path), "--by", "kim"])
        assert ended.value.code == 1  # nobody said yes
        assert "Over all 2 that is epsilon 8: a factor of 3,000" in capsys.readouterr().out
        refused(ask, "KH309", 89)
        run("window", "open", "--why", "new rows", "--yes", "--policy", str(path), "--by", "kim")
        ask(89)
        second = max(service.report_balances(None).families[0].lost_nano)
        capsys.readouterr()
        run("odometer", "--policy", str(path))
        told = capsys.readouterr().out
    assert "2 questions from" in told
    assert "in 2 budget windows" in told
    assert f"(epsilon {(first + second) / 1e9:.4f})" in told


def test_a_threshold_that_never_matters_is_warned_of(tmp_path: Path) -> None:
    path = with_budget(tmp_path, "approval_above_epsilon = 0.5", "epsilon_per_table = 0.4")
    said = " ".join(describe_warnings(Policy.load(path)))
    assert "no question ever waits for approval" in said
    assert "budget.epsilon_per_table (0.4) is below budget.epsilon_per_query (0.5)" in said


def test_a_simulation_knows_the_cap_per_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = with_budget(tmp_path, "epsilon_per_table = 0.1")
    run("simulate", QUESTION.format(90), "--units", "3002", "--policy", str(path))
    assert "(budget.epsilon_per_table is reached first)" in capsys.readouterr().out


def with_table(directory: Path, *lines: str, budget: tuple[str, ...] = ()) -> Path:
    path = with_budget(directory, *budget)
    own = "[tables.visits]\n" + "\n".join(lines) + "\n"
    path.write_text(path.read_text().replace("[tables.visits]\n", own))
    return path


@pytest.mark.parametrize("budget", [(), ("epsilon_per_table = 0.03",), ("epsilon_per_table = 3.0",)])
def test_a_tables_own_cap_holds_in_the_place_of_the_budgets(tmp_path: Path, budget: tuple[str, ...]) -> None:
    path = with_table(tmp_path, "epsilon_per_table = 0.06", budget=budget)
    with Service.open(path) as service:
        ask = asking(service)
        ask(90)
        ask(89)
        refused(ask, "KH309", 88)
        (table,) = service.report_balances(None).tables
        assert table.cap_nano == 60_000_000
        run("grant", "0.1", "--cap", "table", "--table", "visits", "--why", "more", "--policy", str(path), "--by", "k")
        ask(88)
        (table,) = service.report_balances(None).tables
        assert table.cap_nano == 160_000_000


def test_another_cap_of_a_table_leaves_stored_answers_where_they_are(tmp_path: Path) -> None:
    path = with_table(tmp_path)
    with Service.open(path) as service:
        asking(service)(90)
    with_own = path.read_text().replace("[tables.visits]\n", "[tables.visits]\nepsilon_per_table = 0.06\n")
    path.write_text(with_own)
    with Service.open(path) as service:
        assert asking(service)(90).is_reused


def test_a_tables_own_line_for_approval_holds_in_the_place_of_the_budgets(tmp_path: Path) -> None:
    (tmp_path / "lower").mkdir()
    (tmp_path / "higher").mkdir()
    lower = with_table(tmp_path / "lower", "approval_above_epsilon = 0.001", budget=("approval_above_epsilon = 0.4",))
    with Service.open(lower) as service:
        assert "more than 0.001" in refused(asking(service), "KH308", 90).message
    higher = with_table(tmp_path / "higher", "approval_above_epsilon = 0.4", budget=("approval_above_epsilon = 0.001",))
    with Service.open(higher) as service:
        asking(service)(90)


def test_the_lowest_line_of_the_tables_joined_holds() -> None:
    own = (TableCaps("a", per_table=None, approval_above=0.5), TableCaps("b", per_table=3.0, approval_above=None))
    budget = Budget(per_predicate=4.0, per_unit=8.0, per_query=2.0, approval_above=1.0, tables=own)
    lines = [budget.find_approval_limit(tables) for tables in (("a",), ("b",), ("a", "b"), ("c", "b"))]
    assert lines == [0.5, 1.0, 0.5, 1.0]
    assert replace(budget, approval_above=None).find_approval_limit(("b", "c")) is None
    assert replace(budget, approval_above=None).find_approval_limit(("b", "a")) == 0.5


def test_a_tables_caps_are_checked_printed_and_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = with_table(tmp_path, "epsilon_per_table = 0.1", "approval_above_epsilon = 0.5")
    said = " ".join(describe_warnings(Policy.load(path)))
    assert "tables.visits.approval_above_epsilon (0.5) is not below budget.epsilon_per_query (0.5)" in said
    assert "tables.visits.epsilon_per_table (0.1) is below budget.epsilon_per_query (0.5)" in said
    run("check", "--policy", str(path))
    told = capsys.readouterr().out
    assert "caps of visits: all questions on it together 0.1; a question above 0.5 waits for keyhole approve" in told
    run("simulate", QUESTION.format(90), "--units", "3002", "--policy", str(path))
    assert "(tables.visits.epsilon_per_table is reached first)" in capsys.readouterr().out


def test_explain_tells_what_the_refusal_would_and_nothing_once_it_is_approved(
    waiting: tuple[Path, Service], capsys: pytest.CaptureFixture[str]
) -> None:
    path, service = waiting
    ask = asking(service)
    asked = Asked(
        question=read_bare_question(QUESTION.format(90), service.catalog),
        settings={},
        parameters={},
        analyst=service.find_analyst("ada"),
        today=datetime.now(UTC).date(),
    )
    lines = "\n".join(explain_question(service, asked, form="text"))
    document = explain_as_document(service, asked)
    told = refused(ask, "KH308", 90)
    identity = document["question_id"]
    assert told.detail == f"The question's id is {identity}. Nothing is spent."
    assert f"  Approval: {told.message}\n    {told.detail}\n    {told.hint}" in lines
    assert document["waits_for_approval"] == {
        "question": identity,
        "message": told.message,
        "detail": told.detail,
        "hint": told.hint,
    }
    run("approve", str(identity), "--policy", str(path), "--why", "seen", "--by", "kim")
    assert explain_as_document(service, asked)["waits_for_approval"] is None
    assert "Approval" not in "\n".join(explain_question(service, asked, form="text"))


def test_explain_says_that_a_stored_answer_waits_unless_its_analyst_has_it(tmp_path: Path) -> None:
    path = with_budget(tmp_path)
    with Service.open(path) as service:
        asking(service)(90)
    path.write_text(path.read_text().replace("[budget]\n", "[budget]\napproval_above_epsilon = 0.001\n"))
    with Service.open(path) as service:
        for name in ("ada", "cy"):
            asked = Asked(
                question=read_bare_question(QUESTION.format(90), service.catalog),
                settings={},
                parameters={},
                analyst=service.find_analyst(name),
                today=datetime.now(UTC).date(),
            )
            waits = explain_as_document(service, asked)["waits_for_approval"]
            assert (waits is None) == (name == "ada")
        assert asking(service)(90).is_reused
        refused(asking(service), "KH308", 90, "cy")


def test_what_is_declined_leaves_the_queue_and_comes_back_when_asked_again(
    waiting: tuple[Path, Service], capsys: pytest.CaptureFixture[str]
) -> None:
    path, service = waiting
    ask = asking(service)
    identity = re.search(r"[0-9a-f]{64}", refused(ask, "KH308", 90).detail or "")
    assert identity is not None
    for told in ("declined", "does not wait for approval"):
        run("decline", identity[0], "--policy", str(path), "--why", "too dear", "--by", "kim")
        assert f"{identity[0]}: {told}" in capsys.readouterr().out
    assert service.ledger.owner.find_waiting_questions() == ()
    refused(ask, "KH318", 90)
    assert [one.question for one in service.ledger.owner.find_waiting_questions()] == [identity[0]]


def test_whoever_asks_what_was_declined_is_told_when_and_why_until_it_is_approved(
    waiting: tuple[Path, Service],
) -> None:
    path, service = waiting
    ask = asking(service)
    identity = re.search(r"[0-9a-f]{64}", refused(ask, "KH308", 90).detail or "")
    assert identity is not None
    run("decline", identity[0], "--policy", str(path), "--why", "by quarters, \x1b[2Jplease", "--by", "kim")
    for name in ("ada", "bob"):
        told = refused(ask, "KH318", 90, name)
        assert told.message == r"the data owner declined the question: by quarters, \x1b[2Jplease"
        assert re.search(r"That was at \d{4}-\d\d-\d\d \d\d:\d\d UTC\. ", told.detail or "")
        assert told.hint is not None
        assert f"keyhole approve {identity[0]}" in told.hint
        assert "kim" not in f"{told.message} {told.detail} {told.hint}"
    asked = Asked(
        question=read_bare_question(QUESTION.format(90), service.catalog),
        settings={},
        parameters={},
        analyst=service.find_analyst("ada"),
        today=datetime.now(UTC).date(),
    )
    assert f"  Approval: {told.message}" in "\n".join(explain_question(service, asked, form="text"))
    refused(ask, "KH308", 89)  # another question was not declined
    with Service.open(path) as another:  # what was said is read anew
        refused(asking(another), "KH318", 90)
    run("approve", identity[0], "--policy", str(path), "--why", "a last time", "--by", "kim")
    assert not ask(90).is_reused
    assert service.ledger.find_decline_reason(identity[0]) is None
    service.ledger.verify_everything()
