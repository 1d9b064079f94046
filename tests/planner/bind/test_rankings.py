"""ORDER BY an aggregate: what keys are ranked by, how far, and within which tolerance; what cannot be ranked by."""

from planner.bind.bind_question import bind_question
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from tests.in_turn import in_turn
from tests.planner.asked import TODAY
from tests.planner.rendering import question_text
from tests.planner.spec import pairs
from tests.worlds.retail import retail

TOLERANCE = {"keyhole.tolerance": "100, sum(amount)=5000"}


def outcome(sql: str) -> str:
    """The questions of a statement as text, or the refusal's code with the word that it points to."""
    catalog = retail()
    try:
        statement = classify(sql, catalog)
        assert isinstance(statement, Asking)
        wanted = read_accuracy(TOLERANCE, catalog.defaults)
        made = [
            bind_question(part, catalog, accuracy=wanted, parameters={1: 3}, today=TODAY, is_utc=True)
            for part in statement.questions
        ]
    except KeyholeError as error:
        at = "" if error.position is None else f" {sql[error.position - 1 :].split()[0]}"
        return f"{error.code}{at}"
    return " | ".join(map(question_text, made)) or "nothing is asked"


@in_turn(("sql", "wanted"), [*pairs("rankings.sql"), *pairs("ranks.sql")])
def test_what_becomes_of_a_ranking(sql: str, wanted: str) -> None:
    assert outcome(sql) == wanted
