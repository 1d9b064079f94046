"""What analysts write, on the tables of many owners: each statement is planned, or refused with one code, and
nearly all are planned. `null` says that a statement has no question."""

from zlib import crc32

import pytest

from planner.bind.bind_question import bind_question
from planner.errors import KeyholeError
from planner.extract.hints.answerable_questions import INSTEAD
from planner.extract.outer_query import Asking
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from tests.effort import rounds
from tests.in_turn import in_turn
from tests.planner.asked import TODAY
from tests.planner.spec import pairs
from tests.worlds.analysts import NAMES, analysts

INSTEADS = ("KH110", "KH203", "KH204", "KH206", "KH208")
STATEMENTS = [(name, *pair) for name in NAMES for pair in pairs(f"analysts/{name}.sql")]


def refusal(name: str, sql: str, *, is_planned: bool = True) -> KeyholeError | None:
    """The refusal of a statement, of a question in it or, if they are planned, of its plan; None for others."""
    catalog = analysts(name)
    wanted = read_accuracy({}, catalog.defaults)
    try:
        statement = classify(sql, catalog)
        assert isinstance(statement, Asking)
        for part in statement.questions:
            question = bind_question(part, catalog, accuracy=wanted, parameters={}, today=TODAY, is_utc=True)
            if is_planned:
                plan_question(question, dialect=DUCKDB)
    except KeyholeError as error:
        return error
    return None


def outcome(name: str, sql: str, *, is_planned: bool = True) -> str:
    error = refusal(name, sql, is_planned=is_planned)
    return "planned" if error is None else error.code


@in_turn(("name", "sql", "wanted"), STATEMENTS)
def test_what_becomes_of_what_analysts_write(name: str, sql: str, wanted: str) -> None:
    """At quick every sixth of the questions that are bound is planned: nearly all refusals are found before that."""
    is_planned = wanted != "planned" or crc32(sql.encode()) % rounds(1, quick=6) == 0
    assert outcome(name, sql, is_planned=is_planned) == wanted


@pytest.mark.parametrize("name", NAMES)
def test_most_are_planned(name: str) -> None:
    outcomes = [wanted for one, _, wanted in STATEMENTS if one == name]
    assert len(outcomes) >= 15
    assert outcomes.count("planned") >= 0.6 * len(outcomes)


def test_nearly_all_are_planned() -> None:
    outcomes = [wanted for _, _, wanted in STATEMENTS]
    assert len(outcomes) >= 450
    assert outcomes.count("planned") >= 0.8 * len(outcomes)


def test_what_a_refusal_shows_instead_is_planned() -> None:
    errors = [(name, refusal(name, sql)) for name, sql, wanted in STATEMENTS if wanted in INSTEADS]
    hints = [(name, error.hint or "") for name, error in errors if error is not None]
    shown = [
        (name, hint.removeprefix(INSTEAD).rstrip(";")) for name, hint in hints if hint.startswith(f"{INSTEAD}SELECT ")
    ]
    assert shown
    assert any("count(DISTINCT (pickup::date)) FILTER (WHERE fare > 150) >= 30" in sql for _, sql in shown)
    assert any("count(*) > 91 * 50" in sql for _, sql in shown)
    assert any("stddev_samp(fare) > 0.8 * 50 AND avg(fare) < 50" in sql for _, sql in shown)
    assert any(sql.endswith("HAVING count(*) > 250 * 91") for _, sql in shown)
    for name, sql in shown:
        assert outcome(name, sql) == "planned", sql
