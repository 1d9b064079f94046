"""What analysts write, on three owners' tables: each statement is planned, or refused with one code, and nearly all are
planned. `null` says that a statement has no question."""

import pytest

from planner.bind.question import ask
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan
from planner.statements.classify import classify
from planner.statements.settings import accuracy
from tests.in_turn import in_turn
from tests.planner.asked import TODAY
from tests.planner.spec import pairs
from tests.worlds.analysts import NAMES, analysts

STATEMENTS = [(name, *pair) for name in NAMES for pair in pairs(f"analysts/{name}.sql")]


def outcome(name: str, sql: str) -> str:
    catalog = analysts(name)
    wanted = accuracy({}, catalog.defaults)
    try:
        statement = classify(sql, catalog)
        assert isinstance(statement, Asking)
        for part in statement.questions:
            question = ask(part, catalog, accuracy=wanted, parameters={}, today=TODAY, utc=True)
            plan(question, dialect=DUCKDB)
    except KeyholeError as error:
        return error.code
    return "planned"


@in_turn(("name", "sql", "wanted"), STATEMENTS)
def test_what_becomes_of_what_analysts_write(name: str, sql: str, wanted: str) -> None:
    assert outcome(name, sql) == wanted


@pytest.mark.parametrize("name", NAMES)
def test_nearly_all_are_planned(name: str) -> None:
    outcomes = [wanted for one, _, wanted in STATEMENTS if one == name]
    assert len(outcomes) >= 60
    assert outcomes.count("planned") >= 0.8 * len(outcomes)
