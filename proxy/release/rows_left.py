"""The check that rows with declared values can meet a release's condition."""

from planner.question.condition import Condition
from planner.question.possible_rows import may_hold
from planner.question.question import Question
from proxy.release.release_refusals import refuse_no_rows


def check_rows_left(question: Question, where: str) -> None:
    """Raise KH315 if no row with declared values can meet the condition, or if the condition leaves no group."""
    if not question.keys.size or not can_be_met(question.where, question):
        raise refuse_no_rows(where)


def can_be_met(condition: Condition, question: Question) -> bool:
    """Return True if some row with declared values, in a group of the question, may meet a condition."""
    keys = dict(zip(question.keys.names, question.keys.values, strict=True))
    return may_hold(condition, question.table, keys=keys)
