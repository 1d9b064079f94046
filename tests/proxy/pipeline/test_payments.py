"""What an analyst is told to pay: the ledger's own amounts, and as many more questions as really fit."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from planner.errors import KeyholeError
from planner.explain.payment import Payer, Payment, RemainingBalance
from proxy.open_policy.accounts import convert_to_nano
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.answering import explain_as_document, explain_question
from proxy.pipeline.messages import Answer, Asked, read_bare_question
from proxy.report.limit_names import write_distinct_amounts
from tests.worlds.house import VERIFIER, check_once

POLICY = """
[source]
url = "duckdb:///grocer.duckdb"
[accuracy]
tolerance = "20"
mechanism = "keyhole"
mechanisms = ["keyhole", "svt"]
[budget]
epsilon_per_predicate = 4.0
epsilon_per_unit = 3.0
epsilon_per_query = 2.0
[tables.baskets]
privacy_unit = "household_id"
max_groups_per_unit = 3
rows_per_unit = 1
refresh = "static"
[tables.baskets.columns.week]
key = { range = [1, 5] }
[tables.receipts]
privacy_unit = "row"
refresh = "static"
epsilon_per_table = 1.5
[tables.receipts.columns.week]
key = { range = [1, 5] }
[analysts.ada]
password = "{verifier}"
[analysts.bob]
password = "{verifier}"
epsilon_per_predicate = 1.0
epsilon_per_unit = 2.5
"""
HOUSEHOLDS = "SELECT week FROM baskets GROUP BY week HAVING count(*) > {}"
RECEIPTS = "SELECT week FROM receipts GROUP BY week HAVING count(*) > {}"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with duckdb.connect(str(tmp_path / "grocer.duckdb")) as connection:
        for table in ("baskets", "receipts"):
            connection.execute(
                f"CREATE TABLE {table} AS SELECT g AS household_id, 1 + g % 3 AS week FROM range(900) AS s(g)"
            )
    policy = tmp_path / "keyhole.toml"
    policy.write_text(POLICY.replace("{verifier}", VERIFIER))
    with Service.open(check_once(policy)) as opened:
        yield opened


def put(service: Service, sql: str, *, analyst: str = "ada", **settings: str) -> Asked:
    return Asked(
        question=read_bare_question(sql, service.catalog),
        settings={"keyhole.reuse": "off", **{f"keyhole.{name}": value for name, value in settings.items()}},
        parameters={},
        analyst=service.find_analyst(analyst),
        today=datetime.now(UTC).date(),
    )


def ask(service: Service, sql: str, *, analyst: str = "ada", **settings: str) -> Answer:
    asked = put(service, sql, analyst=analyst, **settings)
    return pipeline.answer(service, pipeline.plan_asked_question(service, asked), asked)


def paid(answer: Answer) -> Payment:
    assert answer.payment is not None
    return answer.payment


@pytest.mark.parametrize("question", [HOUSEHOLDS, RECEIPTS])
def test_as_many_more_questions_fit_as_were_told_and_not_one_more(service: Service, question: str) -> None:
    """With this mechanism every group loses the worst case, so that what fits at least is what fits."""
    told = paid(ask(service, question.format(500)))
    assert told.further_questions is not None
    assert told.further_questions > 0
    for number in range(told.further_questions):
        told = paid(ask(service, question.format(501 + number)))
    assert told.further_questions == 0
    assert ": no further question like this (limit: the balance of " in told.write_charged()
    refused: dict[str, Any] = explain_as_document(service, put(service, question.format(700)))
    assert refused["refused"] is True
    assert refused["cost"]["further_questions"] == 0
    assert refused["cost"]["sentence"].endswith(f": too little for it (limit: {told.limit_name}).")
    with pytest.raises(KeyholeError, match="not enough budget") as short:
        ask(service, question.format(700))
    assert f"The limit is {told.limit_name}." in (short.value.detail or "")


def test_the_cap_on_one_question_is_named_where_balances_would_do(service: Service) -> None:
    """The owner's by its key in the policy, the session's own by its setting; figures show which is more."""
    asked = put(service, RECEIPTS.format(500), tolerance="0")
    document: Any = explain_as_document(service, asked)
    assert document["cost"]["sentence"].endswith("too little for it (limit: epsilon_per_query).")
    with pytest.raises(KeyholeError, match="KH302") as owners:
        ask(service, RECEIPTS.format(500), tolerance="0")
    assert "The limit is epsilon_per_query." in (owners.value.detail or "")
    cost = float(explain_as_document(service, put(service, RECEIPTS.format(500)))["cost"]["group_at_most"])  # type: ignore[index]
    with pytest.raises(KeyholeError, match="KH302") as own:
        ask(service, RECEIPTS.format(500), max_epsilon=f"{cost - 1e-5:.6f}")
    assert "The limit is keyhole.max_epsilon." in (own.value.detail or "")
    figures = [float(one) for one in re.findall(r"\d+\.\d+", own.value.message)]
    assert figures[0] > figures[1]


def test_more_fit_only_where_the_shared_balance_has_room_for_them(service: Service) -> None:
    """A stored answer costs its reader the own balances alone; a further question costs everybody's."""
    first = HOUSEHOLDS.format(500)
    ask(service, first)
    number = 501
    while paid(ask(service, HOUSEHOLDS.format(number))).further_questions:
        number += 1
    told = ask(service, first, analyst="bob")
    assert told.is_reused
    assert [one.cap for one in paid(told).left] == [1.0, 2.5], "what reading counts towards"
    assert paid(told).further_questions == 0
    assert paid(told).limit_name == "the balance of a privacy unit that all analysts share"


def test_figures_show_what_rounding_hides() -> None:
    assert write_distinct_amounts(1_440_000_000, 120_000_000) == ("1.44", "0.12")
    assert write_distinct_amounts(1_000_400_000, 1_000_000_000) == ("1.0004", "1.0000")
    assert write_distinct_amounts(1_000_000_001, 1_000_000_000) == ("1.000000001", "1.000000000")


def test_a_unit_pays_for_every_group_that_it_can_be_in_and_the_ledger_agrees(service: Service) -> None:
    told = paid(ask(service, HOUSEHOLDS.format(500)))
    (entry,) = service.ledger.read_history()
    assert entry.spent is not None
    assert round(told.group * 1e9) == entry.charge.epsilon_nano == entry.spent.epsilon_nano
    assert told.unit is not None
    assert round(told.unit * 1e9) == entry.charge.unit_epsilon_nano == 3 * entry.charge.epsilon_nano
    assert [(one.payer, one.cap) for one in told.left] == [(Payer.GROUP, 4.0), (Payer.UNIT, 3.0)]
    assert [one.epsilon for one in told.left] == [4.0 - told.group, pytest.approx(3.0 - 3 * told.group)]


def test_a_narrowed_question_costs_a_unit_the_groups_that_are_left(service: Service) -> None:
    one = paid(ask(service, "SELECT week FROM baskets WHERE week <= 2 GROUP BY week HAVING count(*) > 500"))
    assert one.groups == 2
    assert one.unit == pytest.approx(2 * one.group)
    assert f"for one (household_id) in 2 groups; left {4 - one.group:.2f}"[:45] in one.write_charged()


def test_a_row_pays_once_and_no_unit_is_mentioned(service: Service) -> None:
    told = paid(ask(service, RECEIPTS.format(500)))
    assert told.unit is None
    assert [one.payer for one in told.left] == [Payer.GROUP, Payer.TABLE]
    assert "for one" not in told.write_charged()
    assert " of 1.5 of the table: " in told.write_charged()


def test_one_loss_for_all_groups_is_paid_once(service: Service) -> None:
    told = paid(ask(service, HOUSEHOLDS.format(500), mechanism="svt", most_positives="1"))
    assert told.unit == told.group
    assert "groups" not in told.write_charged()


def test_an_own_cap_is_what_is_left_where_it_is_less(service: Service) -> None:
    told = paid(ask(service, HOUSEHOLDS.format(500), analyst="bob"))
    assert [one.cap for one in told.left] == [1.0, 2.5]


def test_a_stored_answer_is_said_to_be_stored_and_costs_its_analyst_nothing(service: Service) -> None:
    ask(service, HOUSEHOLDS.format(500))
    assert ask(service, HOUSEHOLDS.format(500)).payment is None
    lines = explain_question(service, put(service, HOUSEHOLDS.format(500)), form="text")
    (stored,) = (line for line in lines if line.startswith("  Stored: "))
    assert stored.endswith("asking returns it again and costs nothing.")
    assert not any(line.startswith(("  Cost: ", "  Left for")) for line in lines)
    while (told := paid(ask(service, HOUSEHOLDS.format(501 + len(service.ledger.read_history()))))).further_questions:
        pass
    assert explain_as_document(service, put(service, HOUSEHOLDS.format(500)))["refused"] is False
    assert ask(service, HOUSEHOLDS.format(500)).is_reused
    assert told.left


def test_who_reads_anothers_answer_is_told_what_the_own_caps_bear(service: Service) -> None:
    ask(service, HOUSEHOLDS.format(500))
    lines = explain_question(service, put(service, HOUSEHOLDS.format(500), analyst="bob"), form="text")
    (stored,) = (line for line in lines if line.startswith("  Stored: "))
    assert "counts towards your own caps: at most " in stored
    told = ask(service, HOUSEHOLDS.format(500), analyst="bob")
    assert told.is_reused
    assert [(one.payer, one.cap) for one in paid(told).left] == [(Payer.GROUP, 1.0), (Payer.UNIT, 2.5)]
    while paid(
        ask(service, HOUSEHOLDS.format(501 + len(service.ledger.read_history())), analyst="bob")
    ).further_questions:
        pass
    other = ask(service, HOUSEHOLDS.format(90))
    assert other.payment is not None
    document = explain_as_document(service, put(service, HOUSEHOLDS.format(90), analyst="bob"))
    assert document["refused"] is True
    with pytest.raises(KeyholeError, match="your own cap"):
        ask(service, HOUSEHOLDS.format(90), analyst="bob")


def test_what_the_question_alone_decides_costs_nothing(service: Service) -> None:
    answer = ask(service, "SELECT week FROM baskets GROUP BY week HAVING count(*) >= 0")
    assert answer.payment is None
    assert answer.make_document()["cost"] is None


PAYMENT = Payment(
    group=0.3641,
    unit=4.3692,
    groups=12,
    unit_text="household_id",
    left=(RemainingBalance(Payer.GROUP, 2.999, 4.0), RemainingBalance(Payer.UNIT, 3.5, 8.0)),
    further_questions=0,
    limit_name="epsilon_per_query",
)


def test_the_sentences() -> None:
    """Costs are rounded up, what is left down."""
    assert PAYMENT.write_charged() == (
        "at most 0.37 epsilon for a group, 4.37 for one (household_id) in 12 groups; left 2.99 of 4 and 3.5 of 8: "
        "no further question like this (limit: epsilon_per_query)."
    )
    table = (*PAYMENT.left, RemainingBalance(Payer.TABLE, -0.5, 20.0))
    assert (
        replace(PAYMENT, left=table, further_questions=1)
        .write_charged()
        .endswith(
            "; left 2.99 of 4, 3.5 of 8 and 0 of 20 of the table: at least 1 more like this fits "
            "(limit: epsilon_per_query)."
        )
    )
    rows = replace(PAYMENT, unit=None, left=PAYMENT.left[:1], further_questions=1234)
    assert (
        rows.write_charged() == "at most 0.37 epsilon for a group; left 2.99 of 4: at least 1,234 more like this fit "
        "(limit: epsilon_per_query)."
    )
    assert (
        rows.write_price() == "at most 0.37 epsilon for a group; left 2.99 of 4: enough for at least 1,234 like it "
        "(limit: epsilon_per_query)."
    )
    assert PAYMENT.write_price().endswith("3.5 of 8: too little for it (limit: epsilon_per_query).")


def test_no_part_of_a_loss_is_rounded_away() -> None:
    """The double next to .1 is a little more than .1."""
    assert convert_to_nano(0.1) == 100_000_001
    assert convert_to_nano(0.5) == 500_000_000
    assert convert_to_nano(1e-12) == 1
    assert convert_to_nano(0.0) == 0
