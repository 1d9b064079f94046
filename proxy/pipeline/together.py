"""The joint cost of one statement's questions, and the check that all of them fit one after the other.

Each question has its own noise. A group or unit that is in several questions is therefore charged for each of them
(docs/proofs/cells.md, "Several groupings in one statement"). Noise that one question leaves for the next is taken into
account.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accountant.charges import NANO
from planner.explain.rounded_numbers import write_ceiling
from planner.question.plan import Plan
from proxy.open_policy.service import Service
from proxy.pipeline.advice.affordable import find_question_balance
from proxy.pipeline.claim import make_current_claim
from proxy.pipeline.messages import Asked
from proxy.pipeline.question_refusals import refuse_joint_cost
from proxy.pipeline.rehearsal import Quote, Rehearsals


@dataclass(frozen=True, slots=True)
class StatementCost:
    """The total cost of a statement's questions: the largest loss of one group, and of one unit (`unit_epsilon`).

    `first_unfitting` is the number of the first question that does not fit after the earlier ones, or None if all fit.
    `unit_epsilon` is None if each row is its own privacy unit. `unit_text` is the unit's name in sentences.
    """

    count: int
    group_epsilon: float
    unit_epsilon: float | None
    unit_text: str
    first_unfitting: int | None

    @property
    def sentence(self) -> str:
        """The total cost as a sentence for EXPLAIN."""
        cost = f"Together: at most {write_ceiling(self.group_epsilon)} epsilon for a group"
        if self.unit_epsilon is not None:
            cost += f", {write_ceiling(self.unit_epsilon)} for one {self.unit_text}"
        if self.first_unfitting is None:
            return f"{cost}; all {self.count} fit one after the other."
        unfitting = f"question {self.first_unfitting} does not, so that none would be asked"
        return f"{cost} without those that do not fit; {unfitting}."

    def make_document(self, number: int) -> dict[str, Any]:
        """Return the costs as a JSON document with the number of a question."""
        return {
            "question": number,
            "of": self.count,
            "group_at_most": self.group_epsilon,
            "unit_at_most": self.unit_epsilon,
            "fits": self.first_unfitting is None,
        }


def compute_joint_cost(service: Service, questions: Sequence[tuple[Asked, Plan]]) -> StatementCost:
    """Return the total cost of a statement's questions, if they were asked now. Nothing is charged.

    Raise KH502 if the ledger is not available.
    """
    rehearsed = _begin(service, questions).rehearse_list(questions, {})
    together = rehearsed.total
    units = {plan.question.table.unit_text for _, plan in questions if plan.question.table.unit}
    return StatementCost(
        count=len(questions),
        group_epsilon=together.epsilon_nano / NANO,
        unit_epsilon=together.unit_epsilon_nano / NANO if units else None,
        unit_text=f"({units.pop()})" if len(units) == 1 else "unit",
        first_unfitting=next((at for at, quote in enumerate(rehearsed.quotes, start=1) if not quote.fits), None),
    )


def check_joint_cost(service: Service, questions: Sequence[tuple[Asked, Plan]]) -> None:
    """Refuse a statement if its questions, each at its worst case, do not all fit one after the other.

    Guarantee: the result depends on the questions, the policy and the ledger alone. Nothing is spent.

    Raises:
        KeyholeError: KH301, KH302, KH305, KH306, KH309, before any question has spent; KH502.
    """
    if sum(plan.reads_data for _, plan in questions) < 2:
        return
    spent = False
    for number, quote in enumerate(_begin(service, questions).quote_each(questions), start=1):
        if not quote.fits:
            _refuse(service, questions, quote, number, is_spent=spent)
            return
        spent = spent or quote.charge is not None


def _begin(service: Service, questions: Sequence[tuple[Asked, Plan]]) -> Rehearsals:
    tables = frozenset(plan.question.table.ledger_root.table for _, plan in questions)
    return Rehearsals(service, tables, most_nano=None)


def _refuse(
    service: Service, questions: Sequence[tuple[Asked, Plan]], quote: Quote, number: int, *, is_spent: bool
) -> None:
    """Raise the refusal of a question that does not fit.

    If nothing was spent before it, do nothing: asking will refuse.
    """
    if quote.refusal is not None:
        raise quote.refusal
    if quote.short_balance is None or not is_spent:
        return
    asked, plan = questions[number - 1]
    claim = make_current_claim(service, plan, asked)
    raise refuse_joint_cost(
        quote.short_balance,
        plan=plan,
        left=find_question_balance(service, claim),
        is_session_cap=claim.is_capped_by_session,
        place=(number, len(questions)),
    )
