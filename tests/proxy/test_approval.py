"""What an owner decides changes what analysts may ask: approvals (KH308), caps per table (KH309), grants, windows."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from planner.errors import KeyholeError
from planner.policy import Policy
from planner.policy_rules import warnings
from proxy import checking, cli, pipeline
from proxy.answers import Answer, Asked, bare_question
from proxy.service import Service
from tests.proxy.wards import install

# all but some ages: every one of them another functional, so that no question reads what another has revealed
QUESTION = "SELECT ward FROM visits WHERE age < {} GROUP BY ward HAVING count(*) > 1500"

Ask = Callable[..., Answer]


def with_budget(directory: Path, *lines: str) -> Path:
    path = install(directory)
    path.write_text(path.read_text().replace("[budget]\n", "[budget]\n" + "\n".join(lines) + "\n"))
    checking.check(path, confirm=False)
    return path


def asking(service: Service) -> Ask:
    def ask(age: int, analyst: str = "ada") -> Answer:
        asked = Asked(
            question=bare_question(QUESTION.format(age), service.catalog),
            settings={},
            parameters={},
            analyst=service.analyst(analyst),
            today=datetime.now(UTC).date(),
        )
        return pipeline.answer(service, pipeline.prepare(service, asked), asked)

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
    assert service.ledger.history() == ()
    identity = re.search(r"[0-9a-f]{64}", told.detail or "")
    assert identity is not None
    assert told.hint == f"Ask the data owner to run: keyhole approve {identity[0]}"
    run("approve", identity[0], "--policy", str(path), "--why", "seen", "--by", "kim")
    assert not ask(90).reused
    assert ask(90).reused
    refused(ask, "KH308", 89)  # another age is another question
    assert refused(ask, "KH308", 89).hint != told.hint
    assert len(service.ledger.history()) == 1


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
    assert f"Question id: {identity[0]} (approved)" in capsys.readouterr().out


def test_an_approval_is_for_everybody_and_does_not_lift_a_cap(waiting: tuple[Path, Service]) -> None:
    path, service = waiting
    ask = asking(service)
    identity = re.search(r"[0-9a-f]{64}", refused(ask, "KH308", 90).detail or "")
    assert identity is not None
    run("approve", identity[0], "--policy", str(path), "--why", "seen", "--by", "kim")
    assert ask(90, "cy").keys.keys == (("A",),)
    dear = Policy.load(path).budget.epsilon_per_predicate
    assert max(service.balances(None).families[0].lost_nano) < dear * 1e9


def test_a_cap_per_table_refuses_and_a_grant_lifts_it(tmp_path: Path) -> None:
    path = with_budget(tmp_path, "epsilon_per_table = 0.06")
    with Service.open(path) as service:
        ask = asking(service)
        ask(90)
        ask(89)
        told = refused(ask, "KH309", 88)
        assert "visits" in (told.detail or "")
        spent = len(service.ledger.history())
        run("grant", "0.1", "--cap", "table", "--table", "visits", "--why", "more", "--policy", str(path), "--by", "k")
        ask(88)
        assert len(service.ledger.history()) == spent + 1
        (grant,) = service.ledger.owner.grants()
        run("revoke", grant, "--why", "enough", "--policy", str(path), "--by", "k")
        refused(ask, "KH309", 87)
        (table,) = service.balances(None).tables
        assert table.left_nano == 0
        assert ask(88).reused  # what was released is served whatever is left


def test_a_new_window_lets_balances_start_anew_and_the_odometer_forgets_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = with_budget(tmp_path, "epsilon_per_table = 0.05")
    with Service.open(path) as service:
        ask = asking(service)
        ask(90)
        refused(ask, "KH309", 89)
        first = max(service.balances(None).families[0].lost_nano)
        with pytest.raises(SystemExit) as ended:
            cli.main(["window", "open", "--why", "new rows", "--policy", str(path), "--by", "kim"])
        assert ended.value.code == 1  # nobody said yes
        assert "Over all 2 that is epsilon 8: a factor of 3,000" in capsys.readouterr().out
        refused(ask, "KH309", 89)
        run("window", "open", "--why", "new rows", "--yes", "--policy", str(path), "--by", "kim")
        ask(89)
        second = max(service.balances(None).families[0].lost_nano)
        capsys.readouterr()
        run("odometer", "--policy", str(path))
        told = capsys.readouterr().out
    assert "2 questions from" in told
    assert "in 2 budget windows" in told
    assert f"(epsilon {(first + second) / 1e9:.4f})" in told


def test_a_threshold_that_never_matters_is_warned_of(tmp_path: Path) -> None:
    path = with_budget(tmp_path, "approval_above_epsilon = 0.5", "epsilon_per_table = 0.4")
    said = " ".join(warnings(Policy.load(path)))
    assert "no question ever waits for approval" in said
    assert "budget.epsilon_per_table (0.4) is below budget.epsilon_per_query (0.5)" in said


def test_a_simulation_knows_the_cap_per_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = with_budget(tmp_path, "epsilon_per_table = 0.1")
    run("simulate", QUESTION.format(90), "--units", "3002", "--policy", str(path))
    assert "(budget.epsilon_per_table is first)" in capsys.readouterr().out
