"""The arithmetic of the caps is that of the ledger: a fresh one has as much left for a question as check says."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from planner.errors import KeyholeError
from planner.policy.file import Policy
from planner.policy.rules.document import describe_warnings
from proxy.cli.check import check
from proxy.open_policy.service import Service
from proxy.pipeline.answering import explain_as_document
from proxy.pipeline.messages import Asked, read_bare_question
from proxy.report.cap_arithmetic import list_costliest_questions
from tests.worlds.house import VERIFIER

POLICY = f"""
[source]
url = "duckdb:///grocer.duckdb"
[budget]
epsilon_per_predicate = 4.0
epsilon_per_unit = 8.0
epsilon_per_query = 2.0
[tables.baskets]
privacy_unit = "household_id"
max_groups_per_unit = 3
rows_per_unit = 5
refresh = "static"
groupings = {{ week = {{ max_groups = 53 }}, "store, week" = {{ max_groups = 60 }} }}
[tables.baskets.columns.week]
key = {{ range = [1, 54] }}
[tables.baskets.columns.store]
key = {{ values = ["a", "b", "c", "d"] }}
[tables.baskets.columns.household_id]
[tables.receipts]
privacy_unit = "row"
refresh = "static"
[tables.receipts.columns.week]
key = {{ range = [1, 54] }}
[tables.tills]
privacy_unit = "household_id"
max_groups_per_unit = 50
rows_per_unit = 5
epsilon_per_table = 1.0
refresh = "static"
[tables.tills.columns.week]
key = {{ range = [1, 4] }}
[analysts.ada]
password = "{VERIFIER}"
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "grocer.duckdb")) as connection:
        for table in ("baskets", "receipts", "tills"):
            connection.execute(f"CREATE TABLE {table} (household_id integer, week integer, store text)")
    path = tmp_path / "keyhole.toml"
    path.write_text(POLICY)
    return path


@pytest.fixture
def service(policy: Path) -> Iterator[Service]:
    check(policy, confirm=False)
    with Service.open(policy) as opened:
        yield opened


def left_for(service: Service, table: str, keys: str) -> float:
    """What a ledger without entries has left for a group of a question by these keys."""
    asked = Asked(
        question=read_bare_question(
            f"SELECT {keys} FROM {table} GROUP BY {keys} HAVING count(*) > 100", service.catalog
        ),
        settings={},
        parameters={},
        analyst=service.find_analyst("ada"),
        today=datetime.now(UTC).date(),
    )
    left: Any = explain_as_document(service, asked)["left"]
    return float(left)


def test_what_check_says_is_what_the_ledger_would_admit(service: Service) -> None:
    told = {(found.table, ", ".join(found.keys)): found.epsilon for found in list_costliest_questions(service.catalog)}
    assert set(told) == {("baskets", "week"), ("baskets", "store, week"), ("tills", "week")}
    for (table, keys), epsilon in told.items():
        assert left_for(service, table, keys) == pytest.approx(epsilon, abs=2e-9)
    for table, keys in (("baskets", "store"), ("receipts", "week")):
        assert left_for(service, table, keys) == 2.0


def test_check_says_it_in_words(policy: Path) -> None:
    found = check(policy, confirm=False)
    lines = "\n".join(found.lines())
    assert (
        "  baskets: no question by week can cost a group more than 0.15, since one (household_id) may be in 53 of them "
        "and may lose 8 over all questions\n"
    ) in lines
    assert "tills: no question by week can cost a group more than 0.25" in lines
    assert "may lose to questions on this table 1 over all questions" in lines
    assert "whoever thought it as likely as not that a row is in the data can now be at most 98.3 % sure of it" in lines
    assert "that one (household_id) is in the data at all can now be at most 99.97 % sure of it" in lines
    documents = found.make_document()["dearest_questions"]
    assert [document["groups_of_one_unit"] for document in documents] == [53, 60, 4]


@pytest.mark.parametrize(
    ("before", "after", "warning"),
    [
        ("epsilon_per_unit = 8.0", "epsilon_per_unit = 3.0", "is never reached: what a group loses"),
        ("epsilon_per_table = 4.0", "epsilon_per_table = 3.0", "is never reached by groups of tables.tills"),
        ("epsilon_per_unit = 8.0", "epsilon_per_unit = 11.0", "may become 59,874 to one)"),
        ("epsilon_per_unit = 8.0", "epsilon_per_unit = 900.0", "may become more than a million to one)"),
    ],
)
def test_check_warns_of_caps_that_are_never_reached_or_protect_little(
    policy: Path, before: str, after: str, warning: str
) -> None:
    receipts = POLICY[POLICY.index("[tables.receipts]") : POLICY.index("[tables.tills]")]
    sound = POLICY.replace(receipts, "").replace("epsilon_per_table = 1.0", "epsilon_per_table = 4.0")
    changed = sound.replace(before, after)
    assert changed != sound

    def warned(text: str) -> bool:
        policy.write_text(text)
        return any(warning in said for said in describe_warnings(Policy.load(policy)))

    assert warned(changed)
    assert not warned(sound)


def test_where_rows_are_protected_a_group_may_lose_more_than_a_unit(policy: Path) -> None:
    policy.write_text(POLICY.replace("epsilon_per_unit = 8.0", "epsilon_per_unit = 3.0"))
    assert not any("what a group loses" in said for said in describe_warnings(Policy.load(policy)))


def test_with_a_delta_what_one_unit_loses_is_no_sum(policy: Path) -> None:
    """More fits than the sum over its groups says, so nothing is said of it; a table's cap stays a sum."""
    policy.write_text(POLICY.replace("epsilon_per_query = 2.0", "epsilon_per_query = 2.0\ndelta = 1e-9"))
    found = check(policy, confirm=False)
    lines = "\n".join(found.lines())
    assert [document["table"] for document in found.make_document()["dearest_questions"]] == ["tills"]
    assert "99.97 % sure of it, but for a delta of 1e-09" in lines
    with Service.open(policy) as service:
        assert left_for(service, "baskets", "week") > 8 / 53


def test_a_delta_needs_a_cap_that_it_is_about(policy: Path) -> None:
    rows = POLICY[: POLICY.index("[tables.baskets]")] + POLICY[POLICY.index("[tables.receipts]") :]
    rows = rows[: rows.index("[tables.tills]")] + rows[rows.index("[analysts") :]
    policy.write_text(rows.replace("epsilon_per_unit = 8.0", "delta = 1e-9"))
    with pytest.raises(KeyholeError) as refused:
        Policy.load(policy)
    assert "budget.delta = 1E-9: has no meaning without epsilon_per_unit" in refused.value.message
    for wrong in ("0", "0.1", "-1e-9"):
        policy.write_text(POLICY.replace("epsilon_per_query = 2.0", f"epsilon_per_query = 2.0\ndelta = {wrong}"))
        with pytest.raises(KeyholeError) as refused:
            Policy.load(policy)
        assert "delta" in refused.value.message
