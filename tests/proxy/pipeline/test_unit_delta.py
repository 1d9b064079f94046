"""A unit's balance with a delta: which questions are charged by curve, how many fit, what becomes of their noise."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from accountant.charges import NANO
from planner.errors import KeyholeError
from planner.policy.file import Policy
from proxy.cli.check import check
from proxy.cli.simulate import Sizes, simulate
from proxy.dashboard.question_list import read_list
from proxy.dashboard.tolerance_split import rehearse_list
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.answering import explain_as_document, explain_question
from proxy.pipeline.claim import make_current_claim
from proxy.pipeline.messages import Answer, Asked, read_bare_question
from proxy.report import budget
from proxy.report.odometer import read_odometer
from tests.worlds.house import VERIFIER

POLICY = """
[source]
url = "duckdb:///grocer.duckdb"
[accuracy]
tolerance = "100"
[budget]
epsilon_per_predicate = 4.0
epsilon_per_unit = 3.0
epsilon_per_query = 2.0
{delta}
[tables.baskets]
privacy_unit = "household_id"
max_groups_per_unit = 24
rows_per_unit = 1
refresh = "static"
[tables.baskets.columns.week]
key = { range = [1, 24] }
[tables.baskets.columns.kind]
[analysts.ada]
password = "{verifier}"
[analysts.bob]
password = "{verifier}"
"""
# every number another functional, each of 1,500 households in every group: 31 scales of the noise above the threshold
QUESTION = "SELECT week FROM baskets WHERE kind <> {} GROUP BY week HAVING count(*) > {}"
WITH_DELTA = "delta = 1e-9"
Open = Callable[[str], AbstractContextManager[Service]]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """The service under the policy with this line in its budget; its ledger is one."""
    with duckdb.connect(str(tmp_path / "grocer.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE baskets AS SELECT g AS household_id, w AS week, 0 AS kind "
            "FROM range(1500) s(g), range(1, 25) t(w)"
        )

    @contextmanager
    def open_with(line: str) -> Iterator[Service]:
        policy = tmp_path / "keyhole.toml"
        policy.write_text(POLICY.replace("{verifier}", VERIFIER).replace("{delta}", line))
        check(policy, confirm=False)
        with Service.open(policy) as service:
            yield service

    return open_with


def put(service: Service, number: int, threshold: int = 700, *, analyst: str = "ada", **settings: str) -> Asked:
    return Asked(
        question=read_bare_question(QUESTION.format(number, threshold), service.catalog),
        settings={f"keyhole.{name}": value for name, value in ({"test": "gradual"} | settings).items()},
        parameters={},
        analyst=service.find_analyst(analyst),
        today=datetime.now(UTC).date(),
    )


def ask(service: Service, asked: Asked) -> Answer:
    return pipeline.answer(service, pipeline.plan_asked_question(service, asked), asked)


def count_answered(service: Service, *, most: int, test: str = "gradual") -> int:
    for number in range(1, most + 1):
        asked = put(service, number, test=test)
        if not explained_further(service, asked):
            with pytest.raises(KeyholeError) as refused:
                ask(service, asked)
            assert refused.value.code == "KH305"
            return number - 1
        ask(service, asked)
    raise AssertionError("there is no end of it")


def explained_further(service: Service, asked: Asked) -> int:
    """How many such questions fit, as EXPLAIN says."""
    cost = explain_as_document(service, asked)["cost"]
    assert isinstance(cost, dict)
    return int(cost["further_questions"])


def simulated_fit(directory: Path, test: str = "gradual") -> int:
    sizes = Sizes(units=1500, keys=None, rows=None)
    found = simulate(
        directory / "keyhole.toml", QUESTION.format(1, 700), given={"keyhole.test": test}, sizes=sizes
    ).fitting_questions
    assert found is not None
    return found


def test_more_questions_fit_and_as_many_as_was_told(opened: Open, tmp_path: Path) -> None:
    with opened(WITH_DELTA) as service:
        asked = put(service, 1)
        document = explain_as_document(service, asked)
        told = document["cost"]
        assert isinstance(told, dict)
        assert told["unit_delta"] == 1e-9
        lines = "\n".join(explain_question(service, asked, form="text"))
        assert "one unit is charged in Rényi divergences, since more such questions fit (as a plain sum 3)" in lines
        assert "holds except with a delta of 1e-09" in lines
        assert simulated_fit(tmp_path) == told["further_questions"]
        texts = [QUESTION.format(number, 700) for number in range(1, told["further_questions"] + 3)]
        listed = read_list("; ".join(texts), service.catalog, analyst=service.find_analyst("ada"), given=asked.settings)
        quotes = rehearse_list(service, listed, most_nano=None).quotes
        assert sum(quote.fits for quote in quotes) == told["further_questions"]
        answer = ask(service, asked)
        assert len(answer.keys.keys) == 24
        assert answer.payment is not None
        assert answer.payment.further_questions == told["further_questions"] - 1
        assert "by itself" in answer.payment.write_charged()
        assert count_answered(service, most=20) == told["further_questions"] > 3
        assert service.ledger.verify_everything() == 2 * told["further_questions"]
        for question in service.ledger.read_history():
            assert question.charge.renyi is not None
            assert question.spent is not None
            assert question.spent.keys is None
            assert question.spent.largest_losses == question.charge.own_amounts
        report = service.report_balances(None)
        assert report.unit_spent_nano <= 3 * NANO < report.unit_loss.pure_nano
        assert budget.make_document(service, None)["unit"]["delta"] == 1e-9


def test_arc_looks_are_charged_by_their_own_curve_and_leave_no_noise(opened: Open) -> None:
    """The same question again costs nothing; another threshold of the same sum costs all of it again."""
    with opened(WITH_DELTA) as service:
        gradual = explained_further(service, put(service, 1))
        asked = put(service, 1, mechanism="arc")
        told = explained_further(service, asked)
        assert told >= 2 * gradual
        first = ask(service, asked)
        assert len(first.keys.keys) == 24
        spent = service.report_balances(None).unit_spent_nano
        assert ask(service, asked).keys.keys == first.keys.keys
        assert service.report_balances(None).unit_spent_nano == spent
        (question,) = service.ledger.read_history()
        assert question.charge.renyi is not None
        assert question.spent is not None
        assert question.spent.keys is None
        assert service.ledger.verify_everything() == 2
        assert explained_further(service, put(service, 1, 650, mechanism="arc")) == told - 1
        ask(service, put(service, 1, 650, mechanism="arc"))
        assert service.report_balances(None).unit_spent_nano > spent
        # a coarser question finds no noise to read
        before = service.report_balances(None).unit_spent_nano
        ask(service, put(service, 1, mechanism="keyhole", tolerance="300"))
        assert service.report_balances(None).unit_spent_nano > before


def test_hints_count_arc_looks_by_their_own_curve(opened: Open) -> None:
    """The tolerance of a hint fits, and is far narrower than for any other noise of the same pure loss."""
    with opened(WITH_DELTA) as service:
        number = 0
        while explained_further(service, put(service, number := number + 1, mechanism="arc")):
            ask(service, put(service, number, mechanism="arc"))
        with pytest.raises(KeyholeError) as refused:
            ask(service, put(service, number, mechanism="arc"))
        assert refused.value.code == "KH305"
        assert refused.value.hint is not None
        tolerance = refused.value.hint.split("keyhole.tolerance = '")[1].split("'")[0]
        assert float(tolerance.removesuffix("%")) < 20  # for any noise of the same loss it would be 38
        ask(service, put(service, number, mechanism="arc", tolerance=tolerance))


def test_without_a_delta_arc_looks_are_charged_by_their_pure_loss(opened: Open) -> None:
    with opened("") as service:
        asked = put(service, 1, mechanism="arc")
        assert explained_further(service, asked) == 2  # 1.5 times the loss of a test on Laplace noise
        ask(service, asked)
        (question,) = service.ledger.read_history()
        assert question.charge.renyi is None
        assert service.report_balances(None).unit_spent_nano == question.charge.unit_epsilon_nano


def test_without_a_delta_nothing_changes(opened: Open) -> None:
    with opened("") as service:
        document = explain_as_document(service, put(service, 1))
        assert "Rényi" not in json.dumps(document, ensure_ascii=False)
        assert (
            make_current_claim(
                service, pipeline.plan_asked_question(service, put(service, 1)), put(service, 1)
            ).charge.renyi
            is None
        )
        ask(service, put(service, 1))
        (question,) = service.ledger.read_history()
        assert question.charge.renyi is None


def test_a_dear_question_is_a_plain_sum_and_refunds(opened: Open) -> None:
    with opened(WITH_DELTA) as service:
        asked = put(service, 1, tolerance="35")
        lines = "\n".join(explain_question(service, asked, form="verbose"))
        assert "one unit is charged a plain sum" in lines
        ask(service, asked)
        (question,) = service.ledger.read_history()
        assert question.charge.renyi is None


def test_its_noise_answers_coarser_questions_for_nothing_and_is_never_refined(opened: Open) -> None:
    with opened(WITH_DELTA) as service:
        ask(service, put(service, 1))
        before = service.report_balances(None).unit_loss
        assert len(ask(service, put(service, 1, 600)).keys.keys) == 24
        assert len(ask(service, put(service, 1, 650, tolerance="150")).keys.keys) == 24
        assert service.report_balances(None).unit_loss == before
        assert [question.status for question in service.ledger.read_history()] == ["committed", "read", "read"]
        ask(service, put(service, 1, tolerance="80"))
        sharper = service.ledger.read_history()[-1].charge
        assert sharper.path_continuation is None
        assert sharper.renyi is not None
        assert service.report_balances(None).unit_loss == before.add_question(sharper.unit_epsilon_nano, sharper.renyi)
        # the finer noise is now the one that is read
        ask(service, put(service, 1, 620, tolerance="80"))
        assert service.ledger.read_history()[-1].status == "read"


def test_pure_noise_is_refined_as_before(opened: Open) -> None:
    with opened("") as service:
        ask(service, put(service, 1))
    with opened(WITH_DELTA) as service:
        ask(service, put(service, 1, tolerance="80"))
        charge = service.ledger.read_history()[-1].charge
        assert charge.path_continuation is not None
        assert charge.renyi is None


def test_a_question_that_died_stays_spent_by_its_curve(opened: Open) -> None:
    with opened(WITH_DELTA) as service:
        asked = put(service, 1)
        made = make_current_claim(service, pipeline.plan_asked_question(service, asked), asked)
        told = explained_further(service, asked)
        reserved = service.ledger.reserve(made.charge, made.limits)
        assert reserved.charge.renyi is not None
    with opened(WITH_DELTA) as service:
        assert service.report_balances(None).unit_loss.curve == reserved.charge.renyi
        assert len(service.ledger.list_open_reservations()) == 1
        assert explained_further(service, put(service, 2)) == told - 1


def test_a_smaller_delta_or_none_leaves_less_never_more(opened: Open) -> None:
    with opened(WITH_DELTA) as service:
        for number in range(1, 5):
            ask(service, put(service, number))
        left = [service.report_balances(None).unit_left_nano]
    for line in ("delta = 1e-10", ""):
        with opened(line) as service:
            left.append(service.report_balances(None).unit_left_nano)
    assert left[0] is not None
    assert left[1] is not None
    assert left[0] > left[1] > 0
    assert left[2] == 0
    with opened("") as service, pytest.raises(KeyholeError) as refused:
        ask(service, put(service, 9))
    assert refused.value.code == "KH305"


def test_the_odometer_says_what_holds_but_for_one_in_a_billion(opened: Open, tmp_path: Path) -> None:
    with opened(WITH_DELTA) as service:
        for number in range(1, 5):
            ask(service, put(service, number))
        reading = read_odometer(Policy.load(tmp_path / "keyhole.toml"), service.ledger)
        told = "\n".join(reading.write_lines())
        assert "with probability all but one in a billion, all answers together can have changed" in told
        assert reading.unit_balance == service.report_balances(None).unit_spent_nano / NANO
        assert reading.unit_balance < reading.unit_epsilon < service.report_balances(None).unit_loss.pure_nano / NANO


def test_another_analysts_cap_counts_what_is_read_in_full(opened: Open) -> None:
    with opened(WITH_DELTA) as service:
        ask(service, put(service, 1))
        ask(service, put(service, 1, analyst="bob"))
        read = service.ledger.read_history()[-1].charge
        assert (read.analyst, read.shared, read.renyi) == ("bob", False, None)
        assert service.report_balances("bob").unit_loss.pure_nano == read.unit_epsilon_nano > 0
